"""What kinds are worth that `outword.suggest_kinds` finds from photos: how many photos that it did not look at are in.

    python benchmarks/suggest_kinds.py --users STORE [--least 15] [--first 5]

STORE is what `outword embed` made with `mini` of photos that people sort, SET/CLASS/FILE. Each class with so many
photos is a label, but for the sets that the reference has. Kinds are found from one half of its photos, and the other
half is counted, by the detector that `fit` makes; then the other way round. Others are the photos of the other sets.
With --first only so many photos of the half are looked at.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from common import table
from outword.base.processors import usable_cpus
from outword.choosing.suggesting import suggest_from_vectors
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.recipe import METHOD, resolve
from outword.encoders import get_encoder
from outword.maths.numerics import Array
from outword.metrics import auroc
from outword.vectors.reference import find_reference
from outword.vectors.store import open_store
from outword.words.labels import check_labels

IN_REFERENCE = ("screenshots", "codes")  # users' sets that the reference of `mini` has
HEAD = ["label", "photos", "alone: in", "others out", "AUROC", "kinds: in", "others out", "AUROC", "found from a half"]


def read(folder: Path) -> tuple[list[Path], Array]:
    """Paths and vectors of a store."""
    encoder = get_encoder("mini")
    store = open_store(folder, encoder.fingerprint, encoder.name)
    paths = [*map(Path, store.paths())]
    return paths, store.vectors(range(len(paths)))


def judged(detector: Detector, own: Array, others: Array) -> tuple[float, float, float]:
    """The share of own photos that are in, that of others that are out, and AUROC."""
    inside, outside = detector.scorer.score(own), detector.scorer.score(others)
    cut = detector.threshold
    return float(np.mean(inside >= cut)), float(np.mean(outside < cut)), auroc(inside, outside)


def made(labels) -> Detector:
    """What `fit` makes, without its warnings."""
    return prepare(resolve(get_encoder("mini"), METHOD, {}), check_labels(labels)).finish()


def measure(label: str, own: Array, others: Array, first: int | None) -> tuple[Array, Array, list[str]]:
    """`judged` with the label alone and with kinds, mean over the halves, and the kinds that each half gave."""
    encoder = get_encoder("mini")
    reference = find_reference(encoder)
    assert reference is not None
    own = own[np.random.default_rng(0).permutation(len(own))]
    alone, before, after, kinds = made([label]), [], [], []
    for start in range(2):
        given, counted = own[start::2][:first], own[1 - start :: 2]
        found = suggest_from_vectors(label, given, reference, encoder)
        detector = made({label: list(found.kinds)}) if found.kinds else alone
        before.append(judged(alone, counted, others))
        after.append(judged(detector, counted, others))
        kinds.append(", ".join(found.kinds) or "none")
    return np.mean(before, axis=0), np.mean(after, axis=0), kinds


def labels(paths: list[Path], least: int) -> Iterator[tuple[str, Array, Array]]:
    """Each class with enough photos, its photos, and those of the other sets."""
    sets, classes = (np.array([path.parts[place] for path in paths]) for place in (-3, -2))
    for one, name in sorted({*zip(sets.tolist(), classes.tolist(), strict=True)}):
        own = (sets == one) & (classes == name)
        if one not in IN_REFERENCE and own.sum() >= least:
            yield name.lower(), own, (sets != one) & ~np.isin(sets, IN_REFERENCE)


def main() -> None:
    """Print the table, and the means over all labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=Path, required=True, help="a store of photos that people sort")
    parser.add_argument("--least", type=int, default=15, help="photos that a label must have")
    parser.add_argument("--first", type=int, help="how many photos of a half are looked at")
    args = parser.parse_args()
    paths, vectors = read(args.users)
    rows, figures = [], []
    with ProcessPoolExecutor(usable_cpus()) as pool:
        begun = [
            (label, own, pool.submit(measure, label, vectors[own], vectors[others], args.first))
            for label, own, others in labels(paths, args.least)
        ]
        for label, own, task in begun:
            before, after, kinds = task.result()
            rows.append([label, str(own.sum()), *_percent(before), *_percent(after), " / ".join(kinds)])
            figures.append([*before, *after])
    rows.append(["mean", "", *_percent(np.mean(figures, axis=0)), ""])
    print(table(HEAD, rows))


def _percent(shares: Array) -> list[str]:
    return [f"{100 * share:.1f}" for share in shares]


if __name__ == "__main__":
    main()
