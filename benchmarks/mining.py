"""Exact density mining (Eq. 14): seconds, the ratio to the bare float64 product, and the extra memory.

    python benchmarks/mining.py [--words 70000] [--dim 512]

The product is timed on a tenth of the rows and scaled up, block by block like the mining; random unit vectors.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np

from outword.kernels import neighbour_density
from outword.kernels.numpy_blas import BLOCK_ROWS
from outword.numerics import unit_rows


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=70_000)
    parser.add_argument("--dim", type=int, default=512)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    words = rng.standard_normal((args.words, args.dim), dtype=np.float32)
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    tracemalloc.start()
    began = time.perf_counter()
    neighbour_density(words, 100)
    mined, extra = time.perf_counter() - began, tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    whole, began = unit_rows(words), time.perf_counter()
    for start in range(0, args.words // 10, BLOCK_ROWS):
        whole[start : start + BLOCK_ROWS] @ whole.T
    product = 10 * (time.perf_counter() - began)
    print(
        f"{args.words} words of {args.dim} dimensions: mined in {mined:.0f} s, {mined / product:.1f} times the bare "
        f"product ({product:.0f} s); {extra:.0f} MB above the words themselves"
    )


if __name__ == "__main__":
    main()
