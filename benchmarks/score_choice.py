"""Is the default score the right one: AUROC against the others, with paired intervals; and what each part of it brings.

    python benchmarks/score_choice.py [--draws 20] [--photos STORE --users STORE]

Photos are those of the shipped reference of `mini` (bench-mini, as vectors), or those of stores that `outword embed`
made with `mini`: ImageNet's, named WNID_NUMBER.jpg, and what people sort, SET/CLASS/FILE. AUROC is the mean over the
sets of unrelated photos. With stores the lists are what people type: the classes of each set, of which `mini` knows
few, and a list of animals and other things with photos of persons. A cell of the first table is what `grounded` is
ahead by, in points: `+` and `-` mark those whose 95 % interval leaves out 0. Over draws of names that is the t-interval
of the paired differences; lists that are given have no draws, so photos are drawn with replacement instead, and the
interval is that of the percentiles. "kinds" are methods with the kinds that `grounded` has. The second table takes the
score apart: AUROC, mean over the same lists.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from common import table
from outword.base.processors import usable_cpus
from outword.detector.fitting import LabelCache, prepare
from outword.detector.recipe import resolve
from outword.encoders import get_encoder
from outword.maths.numerics import Array
from outword.metrics import auroc
from outword.vectors.names import rival_names
from outword.vectors.reference import Reference
from outword.vectors.store import open_store
from outword.words.kinds import are_below, understand
from outword.words.labels import check_labels
from outword.words.nouns import nouns
from verdicts import BROAD, FLOWERS, SCENES, SIZES, Photos, Task, make_task, read_photos

OTHERS = ("debiased", "neglabel", "maxlogit", "energy", "mcm")
RIVALRY = [(f"{name}, kinds", name, {"kinds": "auto"}) for name in OTHERS] + [(name, name, {}) for name in OTHERS]
Stores = tuple[Path, Path]  # of ImageNet's photos, and of users' sets
MIXED = "dog, elephant, raccoon, guitar, horse, house, person"
OF_MIXED = ("raccoons", "faces-masks")  # users' sets that show some of them, beside ImageNet's photos
IN_NO_LIST = "nothing in particular"  # a class of users' photos that is no label
UNKNOWN = {SCENES: "scenes", FLOWERS: "flowers"}  # lists of which the encoder knows few or none
ALL = 600
T_95 = 2.09  # of Student's t at 19 degrees of freedom
MINED, RIVALS = "mined", "rivals"  # the score with a part of its words
PARTS = {
    "grounded": ("grounded", {}, {}),
    "b = 0: relative evidence alone": ("grounded", {"b": 0.0}, {}),
    "b = 0.5": ("grounded", {"b": 0.5}, {}),
    "b = 2": ("grounded", {"b": 2.0}, {}),
    "b to infinity: absolute evidence alone": ("maxlogit", {}, {"kinds": "auto"}),
    "all kinds instead of the known ones": ("grounded", {}, {"kinds": "all"}),
    "no kinds": ("grounded", {}, {"kinds": "off"}),
    "mined words alone, no rivals": (MINED, {}, {}),
    "rivals alone, no mined words": (RIVALS, {}, {}),
}


def score(photos: Photos, labels: list[str], method: str, params: dict, options: dict, cache: LabelCache) -> Array:
    """Scores of all photos by a method."""
    encoder, part = get_encoder("mini"), method in (MINED, RIVALS)
    ready = prepare(resolve(encoder, "grounded" if part else method, params, **options), labels, label_cache=cache)
    if part:
        names = set(rival_names(encoder))
        ready.given["wild"] = ready.given["wild"][[(word in names) == (method == RIVALS) for word in ready.wild]]
    return ready.recipe.make_scorer().fit(**ready.given).score(photos.reference.vectors.astype(np.float32))


def ranked(task: Task, photos: Photos, scores: Array, rows: Array | None = None) -> float:
    """AUROC in points, mean over sets; of the photos `rows`, some perhaps more than once."""
    rows = np.arange(len(scores)) if rows is None else rows
    own, scores = task.inside[rows], scores[rows]
    others = [scores[task.outside[rows] & (photos.sets[rows] == name)] for name in dict.fromkeys(photos.sets)]
    return 100 * float(np.mean([auroc(scores[own], some) for some in others if len(some)]))


@cache
def photos_of(stores: Stores | None) -> Photos:
    """The photos of stores, or those of the shipped reference."""
    if stores is None:
        return read_photos()
    encoder = get_encoder("mini")
    parts, named = [], []
    for folder in stores:
        store = open_store(folder, encoder.fingerprint, encoder.name)
        paths = [*map(Path, store.paths())]
        parts.append(store.vectors(range(len(paths))))
        named += [_named(path, of_imagenet=folder == stores[0]) for path in paths]
    names, wnids, sets = zip(*named, strict=True)
    return Photos(Reference(np.concatenate(parts), names, wnids, sets, "stores"), np.zeros(len(named), bool))


def _named(path: Path, *, of_imagenet: bool) -> tuple[str, str, str]:
    """What a photo shows, its number in WordNet or "", and the set that it is of."""
    if not of_imagenet:
        return path.parts[-2], "", path.parts[-3]
    wnid = path.name.partition("_")[0]
    sense = nouns().by_wnid(wnid)
    return ("" if sense is None else nouns().names(sense)[0]), wnid, "imagenet"


def lists_of(photos: Photos, stores: Stores | None, draws: int) -> Iterator[tuple[str, list[str], Array | None]]:
    """Every list, with its name and its photos; None for those below the senses of its labels."""
    if stores is None:
        yield from lists(photos, draws)
        return
    shows = np.array(photos.reference.names)
    for name in sorted({*photos.sets} - {"imagenet"}):
        own = (photos.sets == name) & (shows != IN_NO_LIST)
        yield name, sorted({*shows[own].tolist()}), own
    below = np.array(are_below(photos.reference.wnids, understand(check_labels(MIXED.split(", ")), "off")))
    yield MIXED, MIXED.split(", "), below | np.isin(photos.sets, OF_MIXED)


def lists(photos: Photos, draws: int) -> list[tuple[str, list[str], Array | None]]:
    """The lists for the photos of the shipped reference."""
    found = [(labels, labels.split(", "), None) for labels in BROAD]
    found += [(labels, labels.split(", "), photos.sets == of) for labels, of in UNKNOWN.items()]
    rows = np.flatnonzero(photos.sets == "imagenet")
    for size in (*SIZES, ALL):
        for seed in range(1 if size == ALL else draws):
            chosen = np.sort(np.random.default_rng([seed, size]).choice(rows, size, replace=False))
            _, first = np.unique([photos.reference.names[i] for i in chosen], return_index=True)
            chosen = chosen[np.sort(first)]  # two classes may have one name
            names = [photos.reference.names[i] for i in chosen]
            found.append((f"{size} names", names, np.isin(np.arange(len(photos.sets)), chosen)))
    return found


def measure(
    name: str, labels: list[str], own: Array | None, samples: int, stores: Stores | None
) -> tuple[str, Array, dict[str, float]]:
    """AUROC of `grounded` and all others, (n_samples, 1 + n_others), and that of its parts.

    There is one sample, of all photos, for names that were drawn; given lists have `samples`, of photos drawn anew.
    """
    photos = photos_of(stores)
    cache: LabelCache = {}
    task = make_task(photos, labels, "grounded", own)
    scores = [task.scores, *(score(photos, labels, method, {}, options, cache) for _, method, options in RIVALRY)]
    rows = [None] if is_drawn(name) else [_sample(len(task.inside), seed) for seed in range(samples)]
    figures = np.array([[ranked(task, photos, of_method, some) for of_method in scores] for some in rows])
    parts = {told: ranked(task, photos, score(photos, labels, *part, cache)) for told, part in PARTS.items()}
    return name, figures, parts


def is_drawn(name: str) -> bool:
    """Whether a list is one of several draws."""
    return name.endswith("names") and name != f"{ALL} names"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--photos", type=Path, help="a store of ImageNet's photos; with --users")
    parser.add_argument("--users", type=Path, help="a store of users' sets")
    args = parser.parse_args()
    if (args.photos is None) != (args.users is None):
        parser.error("--photos and --users belong together")
    draws, stores = args.draws, (args.photos, args.users) if args.photos else None
    figures, parts = dict[str, list](), dict[str, dict[str, list]]()
    with ProcessPoolExecutor(usable_cpus()) as pool:
        begun = [pool.submit(measure, *one, 2 * draws, stores) for one in lists_of(photos_of(stores), stores, draws)]
        for name, of_samples, of_parts in (one.result() for one in begun):
            figures.setdefault(name, []).extend(of_samples)
            for told, figure in of_parts.items():
                parts.setdefault(told, {}).setdefault(name, []).append(figure)
    means = {name: np.mean(found, axis=0) for name, found in figures.items()}
    rows = []
    for name, found in figures.items():
        own, *others = np.transpose(found)
        rows.append([name, f"{own.mean():.2f}", *(_told(name, own - other) for other in others)])
    over_all = np.mean(list(means.values()), axis=0)
    rows.append(["mean of the lists", f"{over_all[0]:.2f}", *(f"{ahead:+.2f}" for ahead in over_all[0] - over_all[1:])])
    print(table(["labels", "grounded", *(told for told, _, _ in RIVALRY)], rows) + "\n")
    cells = [[told, f"{np.mean([np.mean(some) for some in of.values()]):.2f}"] for told, of in parts.items()]
    print(table(["score", "AUROC"], cells))


def _sample(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(n, size=n)


def _told(name: str, differences: Array) -> str:
    """The mean of differences, with a mark where their interval leaves out 0."""
    low, high = np.percentile(differences, [2.5, 97.5])
    if is_drawn(name):
        margin = T_95 * differences.std(ddof=1) / np.sqrt(len(differences))
        low, high = differences.mean() - margin, differences.mean() + margin
    return f"{differences.mean():+.2f}{' +' if low > 0 else ' -' if high < 0 else ''}"


if __name__ == "__main__":
    main()
