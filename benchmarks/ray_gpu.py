"""Ray with a GPU: the rows of a local run, how busy the device is, and a scorer that is killed.

    python benchmarks/ray_gpu.py WORK [--model ViT-L-14] [--tars 40]

WORK is a folder for photos and results, some gigabytes. Each run is a command `outword score` on tars of 1,024 JPEG
files of 500 x 375 pixels, decoded by nvJPEG; CLIP has its true shape and random weights. Rates are from the first part
on disk to the last, so that Ray's start is left out; the device is looked at in the same time, with nvidia-smi. Prints
JSON; talk goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
from pyarrow import parquet

import outword
from outword.encoders.packed import VARIABLE
from outword.words.corpora import get_corpus
from perf.clip import MEAN, STD, letters, transformers_clip
from perf.jpegs import write_jpegs
from scale import fresh, say, score

A_TAR, LABELS, WORDS = 1024, 1000, 12_000
EVERY = 100  # milliseconds between two looks at the device


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--model", default="ViT-L-14")
    parser.add_argument("--tars", type=int, default=40)
    args = parser.parse_args()
    work = args.work.resolve()
    os.environ[VARIABLE] = "nvjpeg"
    source, detector = prepare(work, args.model, args.tars)
    found: dict[str, object] = {"model": args.model, "images": args.tars * A_TAR}
    found["local"] = watched(detector, source, work / "local", "local")
    found["ray"] = watched(detector, source, work / "ray", "ray")
    found["ray, a scorer killed"] = watched(detector, source, work / "killed", "ray", kill=("scorer", 1.0))
    for name in ("ray", "killed"):
        found[f"rows of {name} against the local run"] = compared(work / "local", work / name)
    print(json.dumps(found, indent=2))


def prepare(work: Path, model: str, tars: int) -> tuple[str, Path]:
    """Photos, an encoder and a detector, where they are not there yet."""
    (work / "files").mkdir(parents=True, exist_ok=True)
    (work / "tars").mkdir(exist_ok=True)
    files = sorted((work / "files").iterdir()) or write_jpegs(work / "files", 2 * A_TAR)
    for number in range(tars):
        path = work / "tars" / f"{number:06d}.tar"
        if not path.exists():
            with tarfile.open(path, "w") as tar:
                for place in range(A_TAR):
                    tar.add(files[(number * A_TAR + place) % len(files)], f"{number * A_TAR + place:08d}.jpg")
    detector = work / f"{model}.outword"
    if not detector.exists():
        write_encoder(work / model, model)
        words = work / "words.txt"
        words.write_text("\n".join(get_corpus("wordnet").words[:WORDS]) + "\n")
        labels = [f"thing {n}" for n in range(LABELS)]
        outword.fit(labels, encoder=f"hf:{work / model}", corpus=words, miner="all", method="debiased").save(detector)
    return f"{work}/tars/*.tar", detector


def write_encoder(folder: Path, model: str) -> None:
    """A CLIP of true shape with random weights, as transformers saves one."""
    transformers_clip(model).save_pretrained(folder)
    letters().save_pretrained(folder)
    size = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True}
    scale = {"do_resize": True, "do_rescale": True, "do_normalize": True, "image_mean": MEAN, "image_std": STD}
    (folder / "preprocessor_config.json").write_text(json.dumps({**size, **scale, "resample": 3}))


def watched(detector: Path, source: str, out: Path, engine: str, kill=None) -> dict[str, object]:
    """A run, its rate between the first and the last part, and the share of that time in which the device worked."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"-lms={EVERY}"]
    looks: list[tuple[float, int]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as smi:
        run = _in_background(smi, looks, lambda: score(detector, source, fresh(out), engine, kill=kill))
    assert run.code == 0, run.said
    assert bool(run.struck) == bool(kill), "the run ended before its scorer was killed: take more tars"
    ends = sorted(path.stat().st_mtime for path in out.glob("part-*"))
    busy = [share for at, share in looks if ends[0] <= at <= ends[-1]]
    rate = (len(ends) - 1) * A_TAR / (ends[-1] - ends[0])
    shown = {"seconds": round(run.seconds, 1), "images/s between parts": round(rate), "peak MB": run.memory}
    found = {**shown, "device busy, mean %": round(statistics.mean(busy or [0])), "looks": len(busy)}
    say({engine: found})
    return found


def compared(one: Path, other: Path) -> dict[str, object]:
    """How many rows differ in anything but the score, and in the score, and by how much.

    A device does not add in the same order twice: two local runs differ in 2 % of the scores, by 2e-8 at most.
    """
    texts, scores, rows, most = 0, 0, 0, 0.0
    for path in sorted(one.glob("part-*")):
        a, b = (parquet.read_table(folder / path.name) for folder in (one, other))
        texts += sum(x != y for x, y in zip(*(t.drop_columns("score").to_pylist() for t in (a, b)), strict=True))
        gaps = np.abs(np.subtract(*(t["score"].to_numpy() for t in (a, b))))
        scores, rows, most = scores + int((gaps > 0).sum()), rows + len(gaps), max(most, float(gaps.max()))
    return {"rows": rows, "differ in other columns": texts, "differ in the score": scores, "at most": most}


def _in_background(smi: subprocess.Popen[str], looks: list[tuple[float, int]], work):
    """What `work` gives, while the device is looked at."""

    def look() -> None:
        for line in smi.stdout or ():
            looks.append((time.time(), int(line)))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        return work()
    finally:
        smi.terminate()
        thread.join()


if __name__ == "__main__":
    main()
