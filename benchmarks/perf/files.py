"""From JPEG files to rows on disk with CLIP on a CUDA device, in one process: by decoder, and by number of cores.

    cd benchmarks && python -m perf.files --model ViT-B-16 --decoder nvjpeg --cores 8

measures one line of the last table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from outword.base.processors import usable_cpus
from perf.jpegs import HEIGHT, WIDTH, write_jpegs
from perf.judging import detector_of
from perf.tables import Goal, Table

COUNT, DISTINCT = 20_480, 2048
DECODERS = ("nvjpeg", "simplejpeg", "pillow")
CORES = (1, 2, 4, 8, 16)
GOALS = {"ViT-B-16": {"nvjpeg": 9000.0, "simplejpeg": 6000.0}, "ViT-L-14": {"nvjpeg": 0.95}}


def run(device: str) -> Iterator[Table]:
    """Tables of two models; none for the CPU."""
    if device == "cuda":
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "photos"
            folder.mkdir()
            write_jpegs(folder, COUNT, distinct=DISTINCT)
            for name in GOALS:
                yield by_decoder(name, folder)
            yield by_cores("ViT-B-16", folder)


def by_decoder(name: str, folder: Path) -> Table:
    """Images a second from files to rows with each decoder, beside the encoder alone."""
    from perf.clip import transformers_clip

    module, found = transformers_clip(name), dict[str, float]()
    pixels = np.random.default_rng(0).integers(256, size=(8192, 224, 224, 3), dtype=np.uint8)
    for decoder in DECODERS:
        encoder = made(module, decoder)
        if not found:
            found["the encoder alone, from memory"] = max(rate(lambda e=encoder: e.encode_pixels(pixels), 8192, 3))
        detector = detector_of(encoder)
        count = COUNT if decoder != "pillow" else COUNT // 4
        found[decoder] = max(rate(lambda d=detector, n=count: scored(d, folder, n), count, 3 if count == COUNT else 2))
    alone = found["the encoder alone, from memory"]
    goals = []
    for decoder, least in GOALS[name].items():
        share = least < 1
        reached = found[decoder] / alone if share else found[decoder]
        aim = f"{least:.0%} of the encoder alone" if share else f"{least:,.0f} images/s"
        goals.append(
            Goal(f"{decoder}: at least {aim}", f"{reached:.0%}" if share else f"{reached:,.0f}", reached >= least)
        )
    return Table(
        f"{name}: {COUNT:,} JPEG files of {WIDTH} x {HEIGHT} to rows on disk, one process, {usable_cpus()} cores",
        [{"": what, "images/s": speed, "of the encoder": speed / alone} for what, speed in found.items()],
        goals,
        f"outword score with 1,000 labels and 12,000 words, random weights; {DISTINCT:,} different files, the others "
        "are further names of them, all in the page cache; Pillow on a quarter of them. The best of some runs.",
    )


def by_cores(name: str, folder: Path) -> Table:
    """The same by the number of cores that the process may use."""
    rows = []
    for cores in (n for n in CORES if n <= usable_cpus()):
        row: dict[str, float | int] = {"cores": cores}
        for decoder in DECODERS:
            command = [
                sys.executable,
                "-m",
                "perf.files",
                "--model",
                name,
                "--decoder",
                decoder,
                "--folder",
                str(folder),
            ]
            told = subprocess.run([*command, "--cores", str(cores)], capture_output=True, text=True, check=True)
            row[decoder] = float(told.stdout)
        rows.append(row)
    return Table(f"{name}: files to rows by cores, images/s", rows, note="A process of its own for each cell.")


def made(module: object, decoder: str):
    """An encoder with a decoder."""
    from perf.clip import towers

    os.environ["OUTWORD_DECODER"] = decoder
    return towers(module)


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


def main() -> None:
    """Measure one decoder with some cores, and print images a second."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="ViT-B-16")
    parser.add_argument("--decoder", choices=DECODERS, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    args = parser.parse_args()
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: args.cores]))
    from perf.clip import transformers_clip

    detector = detector_of(made(transformers_clip(args.model), args.decoder))
    count = COUNT // (8 if args.decoder == "pillow" or args.cores < 4 else 2)
    print(max(rate(lambda: scored(detector, args.folder, count), count, 1)))


if __name__ == "__main__":
    main()
