"""What reading a source costs before anything is decoded: photos a second of processor time, and memory.

    python benchmarks/sources.py WORK [--images 100000] [--lines 10000000] [--files 1000000]

WORK is a folder for what is read: tars and Parquet files of small JPEGs, a list, a flat folder of empty files. Each
reader runs in a process of its own; plain loops over tarfile, pyarrow and webdataset (if it is installed)
are beside ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import resource
import tarfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from outword.photos.sources import find_items, find_pieces
from perf.scale_data import write_tables, write_tars

RUNS = 3


def main() -> None:
    """Print a line for each reader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=1_000_000)
    args = parser.parse_args()
    tars, tables = prepare(args.work.resolve(), args.images)
    readers = {"tars, ours": partial(ours, tars), "tars, tarfile": partial(by_tarfile, tars)}
    if importlib.util.find_spec("webdataset"):
        readers["tars, webdataset"] = partial(by_webdataset, tars)
    readers |= {"Parquet, ours": partial(ours, tables), "Parquet, pyarrow": partial(by_pyarrow, tables)}
    listing, folder = lines(args.work / "list.txt", args.lines), files(args.work / "flat", args.files)
    readers |= {"find_pieces, a list": partial(pieces, listing), "find_pieces, a flat folder": partial(pieces, folder)}
    for name, reader in readers.items():
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, reader))
        process.start()
        process.join()


def measure(name: str, reader) -> None:
    """In a process: the quickest of some runs."""
    best, count = float("inf"), 0
    for _ in range(RUNS):
        began = time.process_time()
        count = sum(reader())
        best = min(best, time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {count:,}, {count / best:,.0f} a processor second, {best:.1f} s, peak {peak:.0f} MB", flush=True)


def prepare(work: Path, images: int) -> tuple[list[str], list[str]]:
    """Tars and Parquet files, where they are not there yet."""
    for name, write in ((f"tars-{images}", write_tars), (f"tables-{images}", write_tables)):
        if not (work / name).exists():
            write(work / "new" / name, images)
            (work / "new" / name).rename(work / name)
    found = (sorted(map(str, (work / f"{name}-{images}").iterdir())) for name in ("tars", "tables"))
    return next(found), next(found)


def lines(path: Path, count: int) -> str:
    """A list of so many paths."""
    if not path.exists():
        with path.open("w") as file:
            file.writelines(f"photos/{n % 1000:03}/img_{n:08}.jpg\n" for n in range(count))
    return str(path)


def files(folder: Path, count: int) -> str:
    """A folder of so many empty files."""
    if not folder.exists():
        folder.mkdir()
        for n in range(count):
            (folder / f"img_{n * 7919 % count:07}.jpg").touch()
    return str(folder)


def ours(paths: list[str]) -> Iterator[int]:
    """Items with their content."""
    return (len(item.data) > 0 for item in find_items(paths))


def pieces(path: str) -> Iterator[int]:
    """Pieces, with as many photos as they have."""
    return (piece.count() for piece in find_pieces([path]))


def by_tarfile(paths: list[str]) -> Iterator[int]:
    """A plain loop: only the photos are read."""
    for path in paths:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith(".jpg"):
                    yield len(tar.extractfile(member).read()) > 0


def by_webdataset(paths: list[str]) -> Iterator[int]:
    """The package's own loop."""
    import webdataset

    return (len(sample["jpg"]) > 0 for sample in webdataset.WebDataset(paths, shardshuffle=False))


def by_pyarrow(paths: list[str]) -> Iterator[int]:
    """A plain loop."""
    from pyarrow import parquet

    for path in paths:
        for batch in parquet.ParquetFile(path).iter_batches(64, columns=["image.bytes", "image.path"]):
            yield from (len(image["bytes"]) > 0 for image in batch.column(0).to_pylist())


if __name__ == "__main__":
    main()
