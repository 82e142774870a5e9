"""CLIP's text towers on one core: class names at their own length, in fp32, fp16 and int8, against padded fp32."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from outword.base.extras import require
from perf.clip import NAMES, exported, open_clip_encoder, padded
from perf.cores import one_core
from perf.tables import Goal, Table, times

MODELS = ("ViT-B-32", "ViT-B-16")
FEW = NAMES[::4]  # the plain loop is slow, and its time a text does not depend on the text
BASE = "torch fp32, padded to 77"
GOAL = 20.0


def run(device: str) -> Iterator[Table]:
    """One table for each shape; models that differ in their image towers only share it."""
    if device != "cpu":
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_core():
            for names in _shapes():
                yield _table(names)
    finally:
        torch.set_num_threads(threads)


def _shapes() -> list[list[str]]:
    """The models, those with one text tower together."""
    library = require("open_clip", "this benchmark")
    found: dict[str, list[str]] = {}
    for name in MODELS:
        config = library.get_model_config(name)
        found.setdefault(str([config["embed_dim"], config["text_cfg"]]), []).append(name)
    return list(found.values())


def _table(names: list[str]) -> Table:
    """Texts a second of each way, and the least cosine to the padded fp32 vector of the same text."""
    with tempfile.TemporaryDirectory() as scratch:
        encoder = open_clip_encoder(names[0], Path(scratch) / "torch", images=False)
        ways = {"torch fp32, own length": encoder}
        for kind in ("fp32", "fp16", "int8"):
            ways[f"onnxruntime {kind}, own length"] = exported(encoder, Path(scratch) / kind, kind)
        runs: dict[str, Callable[[], object]] = {BASE: lambda: padded(encoder, FEW)}
        runs |= {way: (lambda e=other: e.encode_texts(NAMES)) for way, other in ways.items()}
        took = times(runs, rounds=3)
        wanted = padded(encoder, FEW)
        least = {way: float((other.encode_texts(FEW) * wanted).sum(axis=1).min()) for way, other in ways.items()}
        length = np.mean([encoder.model.count(text) for text in NAMES])
    each = {way: ms / len(FEW if way == BASE else NAMES) for way, ms in took.items()}
    ratio = {way: each[BASE] / ms for way, ms in each.items()}
    rows = [
        {"": way, "texts/s": 1e3 / ms, "ratio": ratio[way], "least cosine": f"{least.get(way, 1):.5f}"}
        for way, ms in each.items()
    ]
    reached = ratio["onnxruntime int8, own length"]
    return Table(
        f"Texts of {' and '.join(names)}, random weights, {len(NAMES)} class names of {length:.1f} tokens, one core",
        rows,
        [Goal(f"int8 at least {GOAL:g} times padded fp32", f"{reached:.1f} times", reached >= GOAL)],
        "The cosine is that to the first row. Tokens are made anew in each run.",
    )
