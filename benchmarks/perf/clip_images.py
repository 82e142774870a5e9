"""Images through CLIP on a CUDA device: `benchmarks/encode.py gpu`, as a section."""

from __future__ import annotations

from collections.abc import Iterator

from perf.tables import Table

MODELS = ["ViT-B-16", "ViT-L-14"]


def run(device: str) -> Iterator[Table]:
    """Tables of two models; none for the CPU, where `mini` is measured."""
    if device == "cuda":
        from encode import on_gpu

        for name in MODELS:
            yield from on_gpu(name, rounds=2)
