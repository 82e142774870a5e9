"""How quickly CLIP encodes: texts and images on the CPU, images on a GPU; true shapes, random weights, one run.

    python benchmarks/encode.py cpu [ViT-B-32 ViT-B-16]
    python benchmarks/encode.py gpu [ViT-B-16 ViT-L-14]

cpu: open_clip's models on all cores; texts at their own length against texts padded to 77 tokens, and what `outword
export` writes against torch (`python benchmarks/run.py` has the texts on one core). gpu: transformers' models; ours in
fp16 against a plain loop of the same library in fp32, as a share of the measured peak of matrix products, and from JPEG
files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outword.photos.decode import open_image
from perf.clip import (
    NAMES,
    exported,
    normalised,
    open_clip_encoder,
    operations,
    padded,
    plain_loop,
    towers,
    transformers_clip,
)
from perf.facts import device_name
from perf.jpegs import PHOTOS
from perf.tables import Table, markdown, times

DEVICE = "cuda"  # tests go through the same with few images on the CPU
LARGE = 8192  # rows of a product that shows the peak
IMAGES, READY = 4096, 1024  # pixels in memory, and those of the plain loop


def main() -> None:
    """Print the tables of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    names = args.models or (["ViT-B-32", "ViT-B-16"] if args.device == "cpu" else ["ViT-B-16", "ViT-L-14"])
    for name in names:
        for table in (on_cpu if args.device == "cpu" else on_gpu)(name, args.rounds):
            print(f"\n{markdown(table)}", flush=True)


def speeds(title: str, took: Mapping[str, float], count: int, unit: str, note: str = "") -> Table:
    """Items a second, and the ratio to the first row."""
    first = next(iter(took.values()))
    rows = [{"": name, f"{unit}/s": 1e3 * count / ms, "ratio": first / ms} for name, ms in took.items()]
    return Table(title, rows, note=note)


def on_cpu(name: str, rounds: int) -> Iterator[Table]:
    """Texts and images of one model of open_clip through torch and through what `outword export` writes."""
    with tempfile.TemporaryDirectory() as scratch:
        encoder = open_clip_encoder(name, Path(scratch) / "torch")
        others = {kind: exported(encoder, Path(scratch) / kind, kind) for kind in ("fp32", "fp16", "int8")}
        texts: dict[str, Callable[[], object]] = {
            "torch fp32, padded to 77": lambda: padded(encoder, NAMES),
            "torch fp32, own length": lambda: encoder.encode_texts(NAMES),
        }
        texts |= {f"onnxruntime {kind}": (lambda e=other: e.encode_texts(NAMES)) for kind, other in others.items()}
        length = np.mean([encoder.model.count(text) for text in NAMES])
        yield speeds(f"{name}, {len(NAMES)} texts of {length:.1f} tokens", times(texts, rounds), len(NAMES), "texts")
        pixels = np.stack([encoder.preprocess(open_image(path)) for path in sorted(PHOTOS.glob("*.jpg"))[:16]])
        images: dict[str, Callable[[], object]] = {"torch fp32": lambda: encoder.encode_pixels(pixels)}
        images |= {f"onnxruntime {kind}": (lambda e=other: e.encode_pixels(pixels)) for kind, other in others.items()}
        sizes = {kind: sum(path.stat().st_size for path in (Path(scratch) / kind).iterdir()) for kind in others}
        note = "; ".join(f"{kind}: {sizes[kind] / 1e6:.0f} MB, {_cosines(other)}" for kind, other in others.items())
        yield speeds(f"{name}, {len(pixels)} images", times(images, rounds), len(pixels), "images", f"{note}.")


def _cosines(encoder: Any) -> str:
    found = encoder.card["cosine"]
    return f"least cosine to torch {found['image']['min']:.5f} (images), {found['text']['min']:.5f} (texts)"


def on_gpu(name: str, rounds: int) -> Iterator[Table]:
    """Images of one model of transformers, from memory."""
    peak, plain_peak = matrix_peak(torch.float16), matrix_peak(torch.float32)
    pixels = np.random.default_rng(0).integers(256, size=(IMAGES, 224, 224, 3), dtype=np.uint8)
    ready = normalised(pixels[:READY])
    module, theirs = transformers_clip(name), transformers_clip(name)
    theirs.load_state_dict(module.state_dict())
    theirs.to(DEVICE)
    encoder = towers(module)
    assert np.abs(plain_loop(theirs, ready, 64) - encoder.encode_pixels(pixels[:READY])).max() < 5e-3
    runs = {f"plain loop, fp32, batches of {size}": lambda s=size: plain_loop(theirs, ready, s) for size in (64, 256)}
    took = {run: ms / len(ready) for run, ms in times(runs, rounds).items()}
    took |= {"ours, fp16": times({"": lambda: encoder.encode_pixels(pixels)}, rounds)[""] / len(pixels)}
    first = next(iter(took.values()))
    speed = {run: operations(name) / ms / 1e9 for run, ms in took.items()}
    rows = [
        {
            "": run,
            "images/s": 1e3 / ms,
            "ratio": first / ms,
            "TFLOP/s": speed[run],
            "of the fp16 peak": speed[run] / peak,
        }
        for run, ms in took.items()
    ]
    note = f"{device_name()}, torch {torch.__version__}; matrix products {peak:.0f} TFLOP/s in fp16, "
    title = f"{name}, {operations(name) / 1e9:.1f} GFLOP an image, random weights, from memory"
    yield Table(title, rows, note=f"{note}{plain_peak:.0f} in fp32. The plain loop is given normalised floats.")


def matrix_peak(dtype: torch.dtype) -> float:
    """TFLOP/s of a large product of random matrices."""
    a, b = (torch.randn(LARGE, LARGE, device=DEVICE, dtype=dtype) for _ in range(2))

    def products() -> None:
        for _ in range(10):
            a @ b
        wait()

    return 10 * 2 * LARGE**3 / times({"": products}, 5)[""] / 1e9


def wait() -> None:
    """Until the device is done."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
