"""Peak memory of every method at the paper's size: 60,000 images of 512 dimensions, 14,000 labels and words.

    python benchmarks/memory.py [--methods knn,vos]

Each method runs in a process of its own, on random vectors; what is measured is the whole process, vectors included.
Methods without wild words get 14,000 labels, those with words 1,000 labels and 13,000 words; ID images are the 60,000
images, in 1,000 classes. Heads are fitted for 20 steps, by when the optimiser holds all that it ever holds. GL-MCM
scores 3,000 images, 1,000 at a time, with 196 patches each. The first row is a process that only makes the vectors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from common import table
from outword.detectors import DETECTORS, Need
from outword.maths.methods import probe

IMAGES, DIM, TEXTS, CLASSES, PATCHES, PART, STEPS = 60_000, 512, 14_000, 1_000, 196, 1_000, 20
NOTHING = "vectors alone"


def random_rows(count: int, seed: int) -> np.ndarray:
    """Unit rows in float32, made in parts, so that making them does not count."""
    rng = np.random.default_rng(seed)
    out = np.empty((count, DIM), np.float32)
    for start in range(0, count, PART):
        part = rng.standard_normal((min(PART, count - start), DIM), dtype=np.float32)
        out[start : start + PART] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return out


def run(method: str) -> dict[str, float]:
    """Fit and score in this process: seconds of both, and the peak in MB."""
    images, texts = random_rows(IMAGES, 0), random_rows(TEXTS, 1)
    if method == NOTHING:
        return {"fit": 0.0, "score": 0.0, "peak": peak()}
    probe.MOST_STEPS = STEPS
    detector = DETECTORS[method]()
    wants, began = detector.wants(), time.perf_counter()
    labels, wild = (texts[:CLASSES], texts[CLASSES:]) if Need.WILD in wants else (texts, None)
    classes = np.arange(IMAGES) % CLASSES
    detector.fit(labels, wild, images=images, image_labels=classes)
    fitted = time.perf_counter()
    if Need.PATCHES in wants:
        for start in range(0, IMAGES // 20, PART):
            patches = random_rows(PART * PATCHES, 2).reshape(PART, PATCHES, DIM)
            detector.score(images[start : start + PART], patches=patches)
    else:
        detector.score(images)
    return {"fit": fitted - began, "score": time.perf_counter() - fitted, "peak": peak()}


def peak() -> float:
    """The largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    plain = [name for name, kind in DETECTORS.items() if Need.WORDS not in kind.needs]  # nobody names words here
    parser.add_argument("--methods", default=",".join([NOTHING, *plain]))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run(args.one)))
        return
    rows = []
    for method in args.methods.split(","):
        done = subprocess.run([sys.executable, __file__, "--one", method], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{method}: {done.stderr}")
        found = json.loads(done.stdout)
        rows.append([method, f"{found['peak']:,.0f}", f"{found['fit']:.1f}", f"{found['score']:.1f}"])
        print(*rows[-1], file=sys.stderr)
    print(table(["method", "peak MB", "fit s", "score s"], rows))


if __name__ == "__main__":
    main()
