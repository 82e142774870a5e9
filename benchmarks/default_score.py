"""Should another score be the default? Each against `grounded`, on real CLIP's vectors and on `mini`.

    python benchmarks/default_score.py --vectors FOLDER --photos STORE [--method maxlogit --set ...] [--draws 20]

FOLDER is one that `outword bench vectors` takes, STORE one of `outword embed` with `mini` of ImageNet's photos, named
WNID_NUMBER.jpg. A score becomes the default only if it is ahead in the mean for each encoder and significantly worse in
no cell: AUROC of photos of the labels against one set of others, the same lists for both scores, a paired 95 % interval
over the lists. Without --method the variants are tried that look at how the logits of a photo are spread.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from common import table
from imagined import Task, tasks_of_folder, tasks_of_mini
from outword.base.files import parse_json
from outword.detector.recipe import make_detector
from outword.maths.methods import DETECTORS
from outword.maths.methods.grounded import Grounded
from outword.maths.numerics import log_sum_exp, unit_rows
from outword.metrics import auroc

LENGTHS = (3, 10, 50, 200)
ROWS = 500
Logits = NDArray[np.float64]
Score = Callable[[Logits, Logits], Logits]  # of logits of labels (n, n_labels) and of words (n, n_words)


def default(labels: Logits, words: Logits) -> Logits:
    """`grounded`."""
    return log_odds(labels, words) + labels.max(axis=1)


def log_odds(labels: Logits, words: Logits, scale: float = 1.0) -> Logits:
    """log(P / Q) with logits divided by a scale."""
    return log_sum_exp(labels / scale) - log_sum_exp(words / scale)


def level(labels: Logits, words: Logits) -> Logits:
    """The mean logit of each photo."""
    return np.concatenate([labels, words], axis=1).mean(axis=1)


def less_level(labels: Logits, words: Logits) -> Logits:
    """`grounded` without a quarter of the photo's own level."""
    return default(labels, words) - level(labels, words) / 4


def two_temperatures(labels: Logits, words: Logits) -> Logits:
    """`grounded` with the log-odds at twice the temperature beside."""
    return default(labels, words) + 2 * log_odds(labels, words, 2.0)


def by_spread(labels: Logits, words: Logits) -> Logits:
    """`grounded` with a quarter of its largest logit in units of the spread of the photo's logits."""
    both, best = np.concatenate([labels, words], axis=1), labels.max(axis=1)
    return default(labels, words) + (2.5 * (best - both.mean(axis=1)) / both.std(axis=1) - best) / 4


def by_entropy(labels: Logits, words: Logits) -> Logits:
    """`grounded` less the entropy over all names at twice the temperature."""
    both = np.concatenate([labels, words], axis=1) / 2
    logs = both - log_sum_exp(both)[:, None]
    return default(labels, words) + (np.exp(logs) * logs).sum(axis=1)


def by_strange_level(labels: Logits, words: Logits) -> Logits:
    """`grounded` less how strange the level of a photo is, in deviations of CLIP's."""
    return default(labels, words) - ((level(labels, words) - 18.7) / 1.6) ** 2 / 2


VARIANTS: Mapping[str, Score] = {
    "log-odds alone (b = 0)": log_odds,
    "largest logit alone": lambda labels, words: labels.max(axis=1),
    "less a quarter of the level": less_level,
    "with a second temperature": two_temperatures,
    "by the spread of logits": by_spread,
    "less the entropy": by_entropy,
    "less a strange level": by_strange_level,
}


def logits_of(task: Task, images: NDArray[np.floating]) -> tuple[Logits, Logits]:
    """Logits of labels and of words."""
    scorer = cast(Grounded, task.detector.scorer)
    assert scorer.wild_ is not None
    x, labels, words = unit_rows(images), unit_rows(scorer.labels_), unit_rows(scorer.wild_)
    return x @ labels.T / scorer.temperature, x @ words.T / scorer.temperature


def scores_of(task: Task, images: NDArray[np.floating], scores: Mapping[str, Score]) -> dict[str, Logits]:
    """The scores of images, some at a time."""
    found: dict[str, list[Logits]] = {name: [] for name in scores}
    for start in range(0, len(images), ROWS):
        given = logits_of(task, images[start : start + ROWS])
        for name, score in scores.items():
            found[name].append(score(*given))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def method_scores(task: Task, images: NDArray[np.floating], method: str, params: Mapping[str, Any]) -> Logits:
    """The scores of a method, fitted on what the default was fitted on."""
    scorer = task.detector.scorer
    made = make_detector(method, task.detector.card.encoder.temperature, params)
    return made.fit(scorer.labels_, scorer.wild_, owners=scorer.owners_).score(images)


def ranked(task: Task, args: argparse.Namespace) -> Iterator[tuple[str, str, float]]:
    """AUROC by set and score; that of the default is called "grounded"."""
    scores = {"grounded": default, **({} if args.method else VARIANTS)}
    own = scores_of(task, task.own, scores)
    if args.method:
        own[args.method] = method_scores(task, task.own, args.method, args.params)
    for name, images in task.sets.items():
        others = scores_of(task, images, scores)
        if args.method:
            others[args.method] = method_scores(task, images, args.method, args.params)
        for score, of_others in others.items():
            yield name, score, 100 * auroc(own[score], of_others)


def interval(differences: NDArray[np.float64]) -> float:
    """Half the width of the 95 % interval of a mean."""
    return 1.96 * float(differences.std(ddof=1)) / len(differences) ** 0.5


def main() -> None:
    """Print a table, and which score passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--method", choices=sorted(DETECTORS))
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--draws", type=int, default=20)
    args = parser.parse_args()
    pairs = [setting.partition("=")[::2] for setting in args.settings]
    args.params = {name: parse_json(value) for name, value in pairs}
    found = dict[tuple[str, str, str], dict[str, list[float]]]()
    tasks = tasks_of_folder(args.vectors, args.draws, LENGTHS), tasks_of_mini(args.photos, args.draws, LENGTHS)
    for task in chain(*tasks):
        for name, score, value in ranked(task, args):
            cell = found.setdefault((task.detector.card.encoder.name.partition(":")[0], task.labels, name), {})
            cell.setdefault(score, []).append(value)
    show(found)


def show(found: Mapping[tuple[str, str, str], Mapping[str, list[float]]]) -> None:
    """Print the table of cells, and what passes."""
    scores = [score for score in next(iter(found.values())) if score != "grounded"]
    rows, worse, means = [], dict[str, list[str]](), dict[tuple[str, str], list[float]]()
    for (encoder, labels, name), cell in found.items():
        base, cells = np.array(cell["grounded"]), []
        for score in scores:
            differences = np.array(cell[score]) - base
            half = interval(differences)
            means.setdefault((score, encoder), []).append(float(differences.mean()))
            is_worse = differences.mean() < -half
            if is_worse:
                worse.setdefault(score, []).append(f"{encoder}, {labels}, {name}")
            cells.append(f"{differences.mean():+.2f} ± {half:.2f}{' *' if is_worse else ''}")
        rows.append([encoder, labels, name, f"{base.mean():.2f}", *cells])
    encoders = [*dict.fromkeys(encoder for encoder, _, _ in found)]
    for encoder in encoders:
        cells = [f"{np.mean(means[score, encoder]):+.2f}" for score in scores]
        rows.append([encoder, "mean", "", "", *cells])
    print(table(["encoder", "labels", "others", "grounded", *scores], rows))
    print()
    for score in scores:
        ahead = all(np.mean(means[score, encoder]) > 0 for encoder in encoders)
        passes = ahead and score not in worse
        print(f"{score}: {'passes' if passes else 'does not pass'}; worse in {len(worse.get(score, []))} cells")


if __name__ == "__main__":
    main()
