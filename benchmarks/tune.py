"""What `outword tune` tells to expect, beside what comes true on photos that were held out from the whole command.

    python benchmarks/tune.py PATH [--draws 5]

Three lists of labels on bench-mini: ten broad names, six kinds of scene, four flowers. Some photos of the classes,
drawn by seed and with their classes, and of all other sets are given to the command; the rest are held out. With the
reference, none of the others are given: the encoder's reference stands in, without the photos of one set, which is
judged, for each set in turn. Beside it stands the default method alone, calibrated on the same photos. The first run
encodes words and photos: minutes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_mini import PARENTS
from common import OOD_SETS, Bench, parents, read_bench, table
from outword.choosing.compare import applicable
from outword.choosing.photos import Photos, numbered
from outword.choosing.tune import OUTSIDE, Tuned, entries, tune_vectors, unrelated
from outword.detector.recipe import METHOD
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword.words.labels import check_labels
from outword_lab.encoders.bench_mini import bench_mini

SIZES = (20, 100)  # photos of the classes that are given, and as many of other things


@dataclass(frozen=True)
class List:
    """Labels, photos that show them, which of them each shows, and the other photos by set."""

    name: str
    labels: list[str]
    inside: Array
    shown: Array
    outside: dict[str, Array]


@dataclass(frozen=True)
class Outcome:
    """What was told, and on the photos held out which verdicts are right, of the choice and of the default method."""

    told: Tuned
    inside: Array
    outside: Array
    default: tuple[Array, Array]

    @property
    def hits(self) -> tuple[bool, bool]:
        """Whether the shares on the photos held out lie in the intervals that were told."""
        pairs = ((self.told.tpr, self.inside), (self.told.tnr, self.outside))
        return tuple(share.low <= right.mean() <= share.high for share, right in pairs)


def lists(bench: Bench) -> Iterator[List]:
    """The lists of labels."""
    broad = parents(bench, PARENTS)
    yield List("10 broad names", broad.names, broad.inside, broad.shown, broad.outside)
    for of in ("scenes", "flowers"):
        names = sorted(set(bench.kinds[of]))
        shown = np.array([names.index(kind) for kind in bench.kinds[of]])
        others = {name: bench.photos[name] for name in ("imagenet", *OOD_SETS) if name != of}
        yield List(f"{len(names)} {of}", names, bench.photos[of], shown, others)


def drawn(rng: np.random.Generator, n: int, size: int) -> tuple[Array, Array]:
    """Rows that are given to the command, and rows that are held out."""
    order = rng.permutation(n)
    return np.sort(order[:size]), np.sort(order[size:])


def outcome(
    bench: Bench, one: List, rows: Array, outside: Photos | str, inside_held: Array, outside_held: Array
) -> Outcome:
    """What the command makes of some photos of the classes; the name of a set stands for the reference without it."""
    labels, shown = check_labels(one.labels), one.shown[rows]
    counts = Counter(one.labels[i] for i in shown)
    inside = IdImages(one.inside[rows], shown, dict(counts), [])
    if isinstance(outside, str):
        reference = bench_mini(bench.encoder).without(outside)
        outside = unrelated(bench.encoder, reference, labels, IdImages(one.inside, None, {}, []))
    recipes = applicable(entries(), bench.encoder, id_images=inside)
    told, alone = (tune_vectors(some, labels, inside, outside) for some in (recipes, {METHOD: recipes[METHOD]}))
    right = [(score(inside_held) >= cut, score(outside_held) < cut) for score, cut in map(_judge, (told, alone))]
    return Outcome(told, *right[0], right[1])


def _judge(told: Tuned):
    return told.detector.scorer.score, told.detector.threshold


def with_others(bench: Bench, one: List, size: int, draws: int) -> Iterator[Outcome]:
    """Some photos of other things are given, from all sets."""
    others = np.concatenate([*one.outside.values()])
    for seed in range(draws):
        rng = np.random.default_rng([seed, size])
        (own, rest), (given, held) = drawn(rng, len(one.inside), size), drawn(rng, len(others), size)
        photos = numbered(OUTSIDE, others[given])
        yield outcome(bench, one, own, photos, one.inside[rest], others[held])


def with_reference(bench: Bench, one: List, size: int) -> Iterator[Outcome]:
    """The reference stands in, without the set that is judged; photos of other classes are in ImageNet's set."""
    for seed, (name, others) in enumerate(one.outside.items()):
        own, rest = drawn(np.random.default_rng([seed, size]), len(one.inside), size)
        without = "imagenet" if name == "other classes" else name
        yield outcome(bench, one, own, without, one.inside[rest], others)


def row(name: str, given: str, found: list[Outcome]) -> list[str]:
    """A line of the table: means over draws."""
    told = [(o.told.tpr.value, o.told.tnr.value) for o in found]
    held = [(o.inside.mean(), o.outside.mean()) for o in found]
    default = [[right.mean() for right in o.default] for o in found]
    hits = np.sum([outcome.hits for outcome in found], axis=0)
    chosen = Counter(outcome.told.candidates[0].name for outcome in found).most_common()
    counts = f"{hits[0]} / {hits[1]} of {len(found)}"
    names = ", ".join(f"{method} {count}" for method, count in chosen)
    return [name, given, _shares(told), _shares(held), counts, _shares(default), names]


def _shares(pairs: list) -> str:
    tpr, tnr = 100 * np.mean(pairs, axis=0)
    return f"{tpr:.1f} / {tnr:.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    args = parser.parse_args()
    bench, rows = read_bench(args.path), []
    for one in lists(bench):
        for size in SIZES:
            rows.append(row(one.name, f"{size} and {size}", [*with_others(bench, one, size, args.draws)]))
        rows.append(row(one.name, f"{SIZES[-1]} and the reference", [*with_reference(bench, one, SIZES[-1])]))
    head = [
        "labels",
        "photos",
        "told: TPR / TNR",
        "held out: TPR / TNR",
        "in the interval",
        f"{METHOD} alone",
        "chosen",
    ]
    print(table(head, rows))


if __name__ == "__main__":
    main()
