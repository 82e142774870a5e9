"""Images a second for a folder, and the share of the time that the encoder waits for pixels.

    python benchmarks/throughput.py FOLDER [--labels labels.txt]

The wait is the time between asking for the next batch and having it; decoding runs ahead in threads. FOLDER may be a
store, and nothing is encoded then.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import outword
from outword.labels import read_labels
from outword.stream import Clock, open_sources, score_sources

DEMO = Path(outword.__file__).parent / "demo" / "labels.txt"


def main() -> None:
    """Print one line a pass; the first pass warms the disk cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=Path, default=DEMO)
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()
    detector = outword.fit(read_labels(args.labels))
    for turn in range(args.passes):
        clock, began = Clock(), time.perf_counter()
        count = sum(1 for _ in score_sources(detector, open_sources(detector, [args.folder]), clock=clock))
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"pass {turn + 1}: {count} images in {seconds:.1f} s, {count / seconds:.1f} images/s, "
            f"encoder waits {clock.waiting / seconds:.1%} of the time, peak memory {peak:.0f} MB"
        )


if __name__ == "__main__":
    main()
