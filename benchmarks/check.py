"""How many photos in wrong folders `outword check` finds, and how many of those that it lists are wrong.

    python benchmarks/check.py --photos STORE --users STORE [--draws 10] [--fit]

The stores are those of `outword embed` with `mini`: ImageNet's photos, named WNID_NUMBER.jpg, and what people sort,
SET/CLASS/FILE. Sets are those of users, and lists of broad names with ImageNet's photos below them. In each draw 5 % of
a set's photos are wrong: half of them in the folder of another class of the set, half are of none (a user's set gets
photos of ImageNet, ImageNet's lists get photos of users). "Listed" is the share of photos with a finding, "right" the
share of those that are wrong indeed, "found" the share of the wrong photos that are listed: those moved to another
class, and the foreign ones. The curves that say how sure a finding is were fitted to the sets of the upper half, by
`--fit`; the lower half counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common import table
from outword.detector.fitting import fit
from outword.encoders import Encoder, get_encoder
from outword.maths.mislabelled import Evidence, evidence, outlying
from outword.maths.numerics import Array
from outword.scoring.checking import SURE, logits_of
from outword.vectors.names import name_vectors
from outword.vectors.store import open_store
from outword.words.kinds import are_below, understand
from outword.words.labels import check_labels
from outword.words.prompts import get_prompts

WRONG = 0.05
MOVED, FOREIGN = 1, 2
BROAD = {
    "animals": "dog, cat, bird, snake, fish, monkey, insect, spider, lizard, bear, rabbit, crab",
    "things": "car, boat, chair, bottle, hat, clock, lamp, building, musical instrument, weapon, computer, shoe",
    "food": "fruit, vegetable, bread, dessert, beverage, dish",
    "vehicles and more": "truck, aircraft, ball, bag, furniture, tool, kitchen utensil, turtle, frog, bridge",
}
CHOSEN_ON = ("clothes", "groceries", "codes", "animals", "things")  # the sets that the curves were fitted to
STEPS = 50  # of Newton's method, for two numbers


@dataclass(frozen=True, eq=False)
class Set:
    """Photos in class folders, and others that show none of the classes."""

    name: str
    labels: list[str]
    images: Array
    classes: Array
    others: Array


@dataclass(frozen=True, eq=False)
class Draw:
    """A set with photos in wrong folders: which, and what is said of them."""

    wrong: Array  # 0, MOVED or FOREIGN
    known: Evidence
    scores: Array


def sets(photos: Path, users: Path, encoder: Encoder) -> Iterator[Set]:
    """All sets with two classes or more."""
    paths, vectors = _read(photos, encoder)
    own_paths, own = _read(users, encoder)
    named = [(path.parent.parent.name, path.parent.name) for path in own_paths]
    for name in sorted({name for name, _ in named}):
        rows = np.array([row for row, (of, _) in enumerate(named) if of == name])
        labels = sorted({named[row][1] for row in rows})
        if len(labels) > 1:
            yield Set(name, labels, own[rows], np.array([labels.index(named[row][1]) for row in rows]), vectors)
    wnids = [path.name.partition("_")[0] for path in paths]
    for name, listed in BROAD.items():
        labels, classes = listed.split(", "), np.full(len(paths), -1)
        for number, label in enumerate(labels):
            below = np.array(are_below(wnids, understand(check_labels([label]), "off")))
            classes[below & (classes < 0)] = number
        inside = classes >= 0
        yield Set(name, labels, vectors[inside], classes[inside], own)


def draws(found: Set, encoder: Encoder, number: int) -> Iterator[Draw]:
    """The set with other photos wrong each time."""
    detector = fit(found.labels, encoder=encoder)
    names = name_vectors(encoder, get_prompts(encoder.prompts), found.labels)
    logits, there = logits_of(detector), np.unique(found.classes)
    for seed in range(number):
        chance = np.random.default_rng([seed, 7])
        images, classes, wrong = found.images.copy(), found.classes.copy(), np.zeros(len(found.classes), int)
        rows = chance.choice(len(images), max(2, round(WRONG * len(images))), replace=False)
        half = len(rows) // 2
        for row in rows[half:]:
            classes[row] = chance.choice(there[there != classes[row]])
        images[rows[:half]] = found.others[chance.choice(len(found.others), half, replace=False)]
        wrong[rows[half:]], wrong[rows[:half]] = MOVED, FOREIGN
        known = evidence(images, classes, names, logits)
        yield Draw(wrong, known, detector.scorer.score(images))


def row_of(found: Set, drawn: list[Draw], sure: float) -> list[str]:
    """The figures of a set."""
    counts = np.zeros(7)
    for one in drawn:
        listed = np.maximum(one.known.sure_of_other(), one.known.sure_of_none(one.scores)) >= sure
        moved, foreign = one.wrong == MOVED, one.wrong == FOREIGN
        tallied = (listed, listed & (one.wrong > 0), moved, listed & moved, foreign, listed & foreign)
        counts += [len(listed), *(some.sum() for some in tallied)]
    n, n_listed, right, n_moved, found_moved, n_foreign, found_foreign = counts
    shares = [n_listed / n, right / max(n_listed, 1), found_moved / n_moved, found_foreign / n_foreign]
    return [found.name, f"{len(found.labels)}", f"{len(found.images)}", *(f"{100 * share:.0f}" for share in shares)]


def curve(drawn: dict[str, list[Draw]], kind: int) -> tuple[float, float]:
    """The most likely logistic curve of how sure a kind of finding is; every set counts the same."""
    values, truths, weights = [], [], []
    for some in drawn.values():
        for one in some:
            value = one.known.odds if kind == MOVED else outlying(-one.scores) + outlying(-one.known.own)
            rows = (one.wrong == 0) | (one.wrong == kind)
            values.append(np.clip(value[rows], -30, 30))
            truths.append((one.wrong[rows] == kind).astype(float))
            weights.append(np.full(rows.sum(), 1 / rows.sum()))
    x = np.stack([np.concatenate(values), np.ones(sum(map(len, values)))], axis=1)
    y, w, found = np.concatenate(truths), np.concatenate(weights), np.zeros(2)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-x @ found))
        found += np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2), x.T @ (w * (y - p)))
    return float(found[0]), float(found[1])


def _read(folder: Path, encoder: Encoder) -> tuple[list[Path], Array]:
    store = open_store(folder, encoder.fingerprint, encoder.name)
    rows = [(Path(path), vector) for path, vector in store.rows() if isinstance(vector, np.ndarray)]
    return [path for path, _ in rows], np.stack([vector for _, vector in rows])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="the store of ImageNet's photos")
    parser.add_argument("--users", type=Path, required=True, help="the store of users' sets")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sure", type=float, default=SURE)
    parser.add_argument("--fit", action="store_true", help="fit the curves, and print them")
    given = parser.parse_args()
    encoder = get_encoder("mini")
    found = list(sets(given.photos, given.users, encoder))
    drawn = {one.name: list(draws(one, encoder, given.draws)) for one in found}
    if given.fit:
        own = {name: drawn[name] for name in CHOSEN_ON}
        print(f"another class: {curve(own, MOVED)}, none: {curve(own, FOREIGN)}\n")
    header = ["set", "classes", "photos", "listed", "right", "found: moved", "found: foreign"]
    order = sorted(found, key=lambda one: one.name not in CHOSEN_ON)
    print(table(header, [row_of(one, drawn[one.name], given.sure) for one in order]))


if __name__ == "__main__":
    main()
