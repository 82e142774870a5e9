"""Is the default score the right one: AUROC against the others, with paired intervals; and what each part of it brings.

    python benchmarks/score_choice.py [--draws 20]

Photos are those of the shipped reference of `mini` (bench-mini, as vectors), AUROC is the mean over the sets of
unrelated photos. A cell of the first table is what `grounded` is ahead by, in points: `+` and `-` mark those whose 95 %
interval leaves out 0. Over draws of names that is the t-interval of the paired differences; lists that are given have
no draws, so photos are drawn with replacement instead, and the interval is that of the percentiles. "kinds" are methods
with the kinds that `grounded` has. The second table takes the score apart: AUROC, mean over the same lists.
"""

from __future__ import annotations

import argparse

import numpy as np

from common import table
from outword.detector.fitting import LabelCache, prepare
from outword.detector.recipe import resolve
from outword.encoders import get_encoder
from outword.maths.numerics import Array
from outword.metrics import auroc
from outword.vectors.names import rival_names
from verdicts import BROAD, FLOWERS, SCENES, SETS, SIZES, Photos, Task, make_task, read_photos

OTHERS = ("debiased", "neglabel", "maxlogit", "energy", "mcm")
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
    others = [scores[task.outside[rows] & (photos.sets[rows] == name)] for name in SETS]
    return 100 * float(np.mean([auroc(scores[own], some) for some in others if len(some)]))


def lists(photos: Photos, draws: int) -> list[tuple[str, list[str], Task]]:
    """Every list, with its name and task."""
    found = [(labels, labels.split(", "), None) for labels in BROAD]
    found += [
        (labels, labels.split(", "), photos.sets == of) for labels, of in ((SCENES, "scenes"), (FLOWERS, "flowers"))
    ]
    rows = np.flatnonzero(photos.sets == "imagenet")
    for size in (*SIZES, 600):
        for seed in range(1 if size == len(rows) else draws):
            chosen = np.sort(np.random.default_rng([seed, size]).choice(rows, size, replace=False))
            _, first = np.unique([photos.reference.names[i] for i in chosen], return_index=True)
            chosen = chosen[np.sort(first)]  # two classes may have one name
            names = [photos.reference.names[i] for i in chosen]
            found.append((f"{size} names", names, np.isin(np.arange(len(photos.sets)), chosen)))
    return [(name, labels, make_task(photos, labels, "grounded", own)) for name, labels, own in found]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    photos, draws = read_photos(), parser.parse_args().draws
    rivals = [
        (f"{name}{kinds}", name, {"kinds": "auto"} if kinds else {}) for kinds in (", kinds", "") for name in OTHERS
    ]
    ahead, own, parts = dict[str, dict[str, list]](), dict[str, list[float]](), dict[str, dict[str, list]]()
    for name, labels, task in lists(photos, draws):
        cache: LabelCache = {}
        found = {told: score(photos, labels, method, {}, options, cache) for told, method, options in rivals}
        drawn = name.endswith("names") and not name.startswith("600")
        samples = [None] if drawn else [_sample(len(task.inside), seed) for seed in range(2 * draws)]
        for rows in samples:
            mine = ranked(task, photos, task.scores, rows)
            own.setdefault(name, []).append(mine)
            for told, scores in found.items():
                ahead.setdefault(name, {}).setdefault(told, []).append(mine - ranked(task, photos, scores, rows))
        for told, (method, params, options) in PARTS.items():
            scores = score(photos, labels, method, params, options, cache)
            parts.setdefault(told, {}).setdefault(name, []).append(ranked(task, photos, scores))
    names = [told for told, _, _ in rivals]
    rows = [[name, f"{np.mean(own[name]):.2f}", *(_told(ahead[name][told], name) for told in names)] for name in ahead]
    means = [f"{np.mean([np.mean(ahead[name][told]) for name in ahead]):+.2f}" for told in names]
    rows.append(["mean of the lists", f"{np.mean([np.mean(figures) for figures in own.values()]):.2f}", *means])
    print(table(["labels", "grounded", *names], rows), "\n")
    cells = [[told, f"{np.mean([np.mean(figures) for figures in of.values()]):.2f}"] for told, of in parts.items()]
    print(table(["score", "AUROC"], cells))


def _sample(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(n, size=n)


def _told(differences: list[float], name: str) -> str:
    """The mean of differences, with a mark where their interval leaves out 0."""
    values = np.array(differences)
    if name.endswith("names") and not name.startswith("600"):
        margin = 2.09 * values.std(ddof=1) / np.sqrt(len(values))  # of Student's t at 19 degrees of freedom
        low, high = values.mean() - margin, values.mean() + margin
    else:
        low, high = np.percentile(values, [2.5, 97.5])
    return f"{values.mean():+.2f}{' +' if low > 0 else ' -' if high < 0 else ''}"


if __name__ == "__main__":
    main()
