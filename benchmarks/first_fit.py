"""How long the first `fit` with a CLIP takes, and the second: ten broad names, with the towers of ViT-B/32.

    python benchmarks/first_fit.py [--arch ViT-B-32]

Weights are random, which costs the same time. The first fit encodes the names of things that compete, and the kinds of
the labels; it is run with an empty cache in a process of its own, and so is the second, which finds them there. Seconds
are those of `fit` itself, without loading the encoder, which is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import table
from outword.base.extras import require

LABELS = ["dog", "bird", "snake", "insect", "crustacean", "vehicle", "musical instrument", "furniture", "garment"]
LABELS.append("vegetable")
FIT = """
import json, sys, time
import outword
from outword.detector.imagining import cut_by_imagining, imagination
start = time.perf_counter()
encoder = outword.encoders.get_encoder(sys.argv[1])
encoder.encode_texts(["a cat"])
loaded = time.perf_counter()
labels = json.loads(sys.argv[2])
detector = outword.fit(labels, encoder=encoder)
fitted = time.perf_counter()
cut_by_imagining(detector, detector.thresholds.sight)
facts = {"load": loaded - start, "fit": fitted - loaded, "cut": time.perf_counter() - fitted}
facts |= {"rows": len(detector.rows), "rivals": len(detector.wild), "basis": detector.basis}
print(json.dumps(facts))
"""


def weights(arch: str, path: Path) -> None:
    """Write random weights of an architecture."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    state = require("open_clip", "CLIP").create_model(arch).state_dict()
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)


def fit(encoder: str, cache: Path) -> dict[str, float]:
    """What a process says of its fit."""
    command = [sys.executable, "-c", FIT, encoder, json.dumps(LABELS)]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "OUTWORD_CACHE": str(cache)}
    )
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="ViT-B-32")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        weights(args.arch, path)
        rows = []
        for which in ("first", "second"):
            found = fit(f"open_clip:{args.arch}@{path}", Path(folder) / "cache")
            seconds = [f"{found[name]:.2f}" for name in ("load", "fit", "cut")]
            counts = [str(found[name]) for name in ("rows", "rivals", "basis")]
            rows.append([which, *seconds, *counts])
    print(table(["fit", "loading, s", "fit, s", "threshold again, s", "rows", "rivals", "basis"], rows))


if __name__ == "__main__":
    main()
