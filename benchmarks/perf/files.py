"""From JPEG files to rows on disk with CLIP on a CUDA device, in one process: by decoder, and by number of cores."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from outword.base.processors import usable_cpus
from perf.jpegs import HEIGHT, WIDTH, write_jpegs
from perf.judging import detector_of
from perf.tables import Goal, Table

DISTINCT, IMAGES = 2048, 4096  # different files, and images in memory
COUNTS = {"nvjpeg": 40_960, "simplejpeg": 20_480, "pillow": 2560}  # files; long runs, so that their ends weigh little
CORES = (1, 2, 4, 8, 16)
PEAK = {"ViT-B-16": 0.65, "ViT-L-14": 0.7}
GOALS = {"ViT-B-16": {"nvjpeg": 9000.0, "simplejpeg": 6000.0}, "ViT-L-14": {"nvjpeg": 0.95}}


def run(device: str) -> Iterator[Table]:
    """Tables of two models; none for the CPU."""
    if device == "cuda":
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "photos"
            folder.mkdir()
            write_jpegs(folder, max(COUNTS.values()), distinct=DISTINCT)
            for name in GOALS:
                yield from by_decoder(name, folder)


def by_decoder(name: str, folder: Path) -> Iterator[Table]:
    """Images a second from files to rows with each decoder, beside the encoder alone; and by cores for the smaller."""
    from perf.clip import operations, towers, transformers_clip

    encoder, found = towers(transformers_clip(name)), dict[str, float]()
    detector = detector_of(encoder)
    pixels = np.random.default_rng(0).integers(256, size=(IMAGES, 224, 224, 3), dtype=np.uint8)
    turns = [(max(rate(lambda: encoder.encode_pixels(pixels), IMAGES, 3)), matrix_peak()) for _ in range(3)]
    found["the encoder alone, from memory"], peak = (max(column) for column in zip(*turns, strict=True))
    for decoder, count in COUNTS.items():
        with decoding(encoder, decoder):
            found[decoder] = max(rate(lambda n=count: scored(detector, folder, n), count, 2))
    yield _table(name, found, operations(name) * found["the encoder alone, from memory"] / 1e12, peak)
    if name == "ViT-B-16":
        yield by_cores(name, encoder, detector, folder)


def matrix_peak() -> float:
    """TFLOP/s of a large product in fp16."""
    import torch

    from encode import matrix_peak as peak

    return peak(torch.float16)


def _table(name: str, found: dict[str, float], tflops: float, peak: float) -> Table:
    alone, least = found["the encoder alone, from memory"], PEAK[name]
    aim = f"the encoder: at least {least:.0%} of the matrix peak, {peak:,.0f} TFLOP/s, by all operations of the model"
    goals = [Goal(aim, f"{tflops / peak:.0%}", tflops >= least * peak)]
    for decoder, least in GOALS[name].items():
        share = least < 1
        reached = found[decoder] / alone if share else found[decoder]
        aim = f"{least:.0%} of the encoder alone" if share else f"{least:,.0f} images/s"
        goals.append(
            Goal(f"{decoder}: at least {aim}", f"{reached:.0%}" if share else f"{reached:,.0f}", reached >= least)
        )
    told = ", ".join(f"{decoder} {count:,}" for decoder, count in COUNTS.items())
    return Table(
        f"{name}: JPEG files of {WIDTH} x {HEIGHT} to rows on disk, one process, {usable_cpus()} cores",
        [{"": what, "images/s": speed, "of the encoder": speed / alone} for what, speed in found.items()],
        goals,
        f"outword score with 1,000 labels and 12,000 words, random weights; {DISTINCT:,} different files, the others "
        f"are further names of them, all in the page cache: {told} files. The best of two runs; the encoder and the "
        "matrix peak are the best of three turns.",
    )


def by_cores(name: str, encoder, detector, folder: Path) -> Table:
    """The same by the number of cores that the threads may use."""
    rows, every = [], sorted(os.sched_getaffinity(0))
    try:
        for cores in (n for n in CORES if n <= len(every)):
            os.sched_setaffinity(0, set(every[:cores]))  # of this thread, and of those that it starts
            row: dict[str, float | int] = {"cores": cores}
            for decoder, most in COUNTS.items():
                count = most // 2
                with decoding(encoder, decoder):
                    began = time.perf_counter()
                    scored(detector, folder, count)
                    row[decoder] = count / (time.perf_counter() - began)
            rows.append(row)
    finally:
        os.sched_setaffinity(0, set(every))
    return Table(f"{name}: files to rows by cores, images/s", rows, note="A core is one that the system shows.")


@contextmanager
def decoding(encoder, decoder: str) -> Iterator[None]:
    """A block in which an encoder has another decoder, as it would have with OUTWORD_DECODER."""
    before, encoder.decoder = encoder.decoder, decoder
    vars(encoder).pop("loader", None)
    try:
        yield
    finally:
        encoder.decoder = before
        vars(encoder).pop("loader", None)


def rate(run, count: int, rounds: int) -> Iterator[float]:
    """Images a second of each round; the first, which warms up, is left out."""
    for turn in range(rounds + 1):
        began = time.perf_counter()
        run()
        if turn:
            yield count / (time.perf_counter() - began)


def scored(detector, folder: Path, count: int) -> Mapping[str, int]:
    """Score files into a CSV file."""
    from outword.scoring.runs import run as score

    with tempfile.TemporaryDirectory() as scratch:
        files = sorted(map(str, folder.iterdir()))[:count]
        listing = Path(scratch) / "files.txt"
        listing.write_text("\n".join(files) + "\n")
        totals = score(detector, listing, Path(scratch) / "scores.csv")
        assert totals.rows == count
        assert not totals.counts.get("error")
        return totals.counts
