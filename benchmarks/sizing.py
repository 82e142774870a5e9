"""What a billion images take: the rates of readers and scorers, each a process as on a cluster, measured by themselves.

    python benchmarks/sizing.py [--device cuda] [--seconds 10]

Readers decode and resize JPEG files of 500 x 375 pixels out of tars. Scorers have chunks of pixels in memory, and
encode and score them against 1,000 labels and 12,000 words, evidence included. CLIP has its true shapes and random
weights. The writer takes the rows of scorers into Parquet parts. Prints rates, and the hours that they come to;
docs/scale.md explains them.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import pickle
import tarfile
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import outword
from outword.base.prediction import Prediction
from outword.detector.judge import judge_chunks
from outword.detectors import Debiased
from outword.encoders.loader import Loader
from outword.encoders.preprocess import Preprocess
from outword.encoders.reading import Span
from outword.photos.sources import find_pieces
from outword.scoring.parts import Parts
from outword.vectors.reader import read as read_jobs
from outword.vectors.source import Job
from perf import facts
from perf.clip import MEAN, STD, towers, transformers_clip
from perf.jpegs import write_jpegs
from perf.judging import chunk_of, made_of

LABELS, WORDS, A_TAR = 1000, 12_000, 500
BILLION = 1e9


def main() -> None:
    """Print a line for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    cores = os.cpu_count() or 1
    print(f"{cores} cores; {device_name(args.device)}")
    counts = [n for n in (1, 2, 4, 8, 16, 32) if n <= cores]
    with tempfile.TemporaryDirectory() as scratch:
        tar = write_tar(Path(scratch))
        for number in counts:
            tell("readers", number, together(number, read, (tar,), args.seconds), "core", cores)
    tell("writer", 1, together(1, write, (), args.seconds), "core", cores)
    for model in ("ViT-B-16", "ViT-L-14") if args.device == "cuda" else ("mini",):
        for number in [n for n in counts if n <= 8]:
            rate = together(number, score, (model,), args.seconds)
            tell(f"scorers, {model}", number, rate, "GPU" if args.device == "cuda" else "core", cores)


def tell(what: str, count: int, rate: float, unit: str, cores: int) -> None:
    """A rate, and the hours of a core or of the GPU that a billion images take at it."""
    used = 1 if unit == "GPU" else min(count, cores)
    hours = used * BILLION / rate / 3600
    print(f"{what}: {count} processes, {rate:,.0f} images/s, a billion in {hours:,.0f} {unit} hours", flush=True)


def together(number: int, work, arguments: tuple, seconds: float) -> float:
    """Images a second of so many processes that work at once, from when all of them are ready."""
    context = multiprocessing.get_context("spawn")
    ready, queue = context.Barrier(number), context.Queue()
    processes = [context.Process(target=measured, args=(work, arguments, seconds, ready, queue)) for _ in range(number)]
    for process in processes:
        process.start()
    total = sum(queue.get() for _ in processes)
    for process in processes:
        process.join()
    return total


def measured(work, arguments: tuple, seconds: float, ready, queue) -> None:
    """In a process: images a second of `work`."""
    os.environ["OMP_NUM_THREADS"] = "1"  # as Ray does
    step = work(*arguments)
    next(step)  # warm
    ready.wait()
    began, done = time.perf_counter(), 0
    while (now := time.perf_counter()) - began < seconds:
        done += next(step)
    queue.put(done / (now - began))


def read(tar: str):
    """Chunks of a tar, again and again."""
    loader = Loader(Preprocess(224, 224, "bicubic", MEAN, STD), 224)
    while True:
        for piece in find_pieces([tar]):
            for chunk in read_jobs([Job(0, piece)], loader, 64, workers=1):
                yield len(chunk.values)


def score(model: str):
    """The same chunk, again and again."""
    rng = np.random.default_rng(0)
    encoder = outword.encoders.get_encoder("mini") if model == "mini" else towers(transformers_clip(model))
    vectors = Debiased(temperature=encoder.temperature).fit(
        rng.normal(size=(LABELS, encoder.dim)), rng.normal(size=(WORDS, encoder.dim))
    )
    labels, words = [f"label {n}" for n in range(LABELS)], [f"word {n}" for n in range(WORDS)]
    detector = made_of(vectors, labels, words, encoder)
    side = 260 if model == "mini" else 224
    pixels = rng.integers(256, size=(encoder.chunk, side, side, 3), dtype=np.uint8)
    chunk = chunk_of(pixels)
    while True:
        ((_, rows),) = judge_chunks(detector, [chunk])
        yield len(rows)


def write():
    """Rows of a piece without end, as the driver gets them."""
    said: Any = {"verdict": "out", "label": "tabby cat", "words": (("raccoon", 0.5), ("lynx", 0.2))}
    rows = [Prediction(f"shard.tar/{n:08d}.jpg", score=n / 7, **said) for n in range(1024)]
    with tempfile.TemporaryDirectory() as scratch, Parts(Path(scratch) / "scores", "parquet", {}) as parts:
        for first in count(0, len(rows)):
            data = pickle.dumps((Span(0, "shard.tar", "", first, False), rows))
            parts.add(*pickle.loads(data))
            yield len(rows)


def write_tar(folder: Path) -> str:
    """JPEG files in a tar; gives its path."""
    with tarfile.open(folder / "shard.tar", "w") as tar:
        for number, file in enumerate(write_jpegs(folder, A_TAR)):
            data = file.read_bytes()
            info = tarfile.TarInfo(f"{number:08d}.jpg")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return str(folder / "shard.tar")


def device_name(device: str) -> str:
    """What it runs on."""
    return "no GPU" if device == "cpu" else facts.device_name()


if __name__ == "__main__":
    main()
