"""What a large store costs: time and memory to open it and to read it back, by format and by the order of its rows.

    python benchmarks/store.py [--rows 1000000] [--dim 512]
    python benchmarks/store.py --photos FOLDER

The rows are made up: one block of random vectors again and again, under paths of 40 characters. With photos, the
commands that docs/store.md names are timed, and rows are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from outword.vectors.embed import SHARD_ROWS
from outword.vectors.shards import Shard, write_shard
from outword.vectors.store import Store


def main() -> None:
    """Print one line a store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--photos", type=Path)
    args = parser.parse_args()
    if args.photos:
        time_commands(args.photos.resolve())
        return
    for kind, shuffled in [("safetensors", False), ("safetensors", True), ("parquet", False)]:
        with tempfile.TemporaryDirectory() as folder:
            size = write(Path(folder), args.rows, args.dim, kind, shuffled)
            began = time.perf_counter()
            store = Store(Path(folder), args.dim)
            opened = time.perf_counter()
            read = sum(1 for _ in islice(store.rows(), 100_000))
            seconds = time.perf_counter() - opened
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            name = f"{kind}, rows in no order" if shuffled else kind
            print(
                f"{name}: {len(store):,} rows, {size / 1e9:.2f} GB, opened in {opened - began:.1f} s, "
                f"read at {read / seconds:,.0f} rows/s, peak memory so far {peak:.0f} MB",
                flush=True,
            )
            del store


def time_commands(photos: Path) -> None:
    """Print the seconds of embedding photos, twice, and of scoring them with and without the store."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pets.txt").write_text("tabby cat\nespresso\nspace shuttle\n", encoding="utf-8")
        embed, fit = ["embed", str(photos), "-o", "s"], ["fit", "pets.txt"]
        scores = [["score", "pets.outword", "s"], ["score", "pets.outword", str(photos)]]
        for arguments in [fit, embed, embed, *scores]:
            began = time.perf_counter()
            command = [sys.executable, "-m", "outword", *arguments]
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
            told = " ".join(arguments).replace(str(photos), photos.name)
            print(f"outword {told}: {time.perf_counter() - began:.1f} s", flush=True)


def write(folder: Path, rows: int, dim: int, kind: str, shuffled: bool) -> int:
    """Fill a folder with shards; returns its bytes."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(SHARD_ROWS, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = rng.permutation(rows) if shuffled else np.arange(rows)
    for start in range(0, rows, SHARD_ROWS):
        paths = [b"/data/some/folder/of/photos/%08d.jpg" % n for n in order[start : start + SHARD_ROWS]]
        digests = [hashlib.sha256(path).digest() for path in paths]
        write_shard(folder, Shard(paths, digests, [""] * len(paths), vectors[: len(paths)]), kind)
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    main()
