"""Questions about what people get: kinds, the default score, cuts and p-values, on a contrastive model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.detector.cuts import cut_by_batch, cut_by_reference
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.recipe import resolve
from outword.encoders.base import Vectors
from outword.maths.methods import Grounded, MaxLogit
from outword.maths.reference import p_values
from outword.vectors.names import name_vectors, readable_names
from outword.vectors.vocabulary import Vocabulary
from outword.words.prompts import get_prompts
from outword_lab.benchmark.found import Found, paired, percent
from outword_lab.benchmark.world.lab import OTHER, PROMPTS, Lab, List, Scorer, broad_lists, exact_lists

CORPUS = "world"
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 5.0)
DEFAULT = "b = 1"
OTHERS = ("debiased", "neglabel", "maxlogit", "mcm")
LEVELS = (0.01, 0.05, 0.1, 0.2)
LISTS: dict[str, Callable[[], list[List]]] = {
    "3 families": broad_lists,
    "10 names": partial(exact_lists, 10),
    "25 names": partial(exact_lists, 25),
}


def _fitted(lab: Lab, given: List, method: str = "grounded", **options: Any) -> Detector:
    """A detector for a list, made as `outword.fit` makes it, with what photos look like and without a cut."""
    recipe = resolve(lab.encoder, method, {}, corpus=CORPUS, prompts=PROMPTS, **options)
    names = readable_names(lab.encoder)
    vectors = name_vectors(lab.encoder, get_prompts(PROMPTS), names).astype(np.float16)
    return replace(prepare(recipe, list(given.labels)).fit(), vocabulary=Vocabulary(names, vectors))


def _weighed(detector: Detector, b: float) -> Scorer:
    """The score of a fitted `Grounded` with another weight."""
    scorer = detector.scorer
    assert isinstance(scorer, Grounded)
    return lambda images: scorer.score(images) + (b - scorer.b) * scorer.masses(images)[:, 2]


def score(lab: Lab) -> Found:
    """What kinds, the weight b and leaving out phrases about labels bring, and how other methods compare."""
    rows = []
    for name, lists in LISTS.items():
        ranks: dict[str, list[float]] = {}
        for given in lists():
            made = _fitted(lab, given)
            ways: dict[str, Scorer] = {
                **{f"b = {b:g}": _weighed(made, b) for b in WEIGHTS},
                "no kinds": _fitted(lab, given, kinds="off").scorer.score,
                "words about labels kept": _fitted(lab, given, keep_label_words=True).scorer.score,
                **{other: _fitted(lab, given, other).scorer.score for other in OTHERS},
                "maxlogit, kinds": MaxLogit().fit(labels=made.scorer.labels_).score,
            }
            for way, of in ways.items():
                ranks.setdefault(way, []).append(lab.mean_rank(given, of))
        for way, found in ranks.items():
            rows.append((name, way, percent(found), "" if way == DEFAULT else paired(found, ranks[DEFAULT])))
    return Found(
        "score",
        "What do kinds and the default score bring on a contrastive model?",
        ("labels", "score", "AUROC", "less the default"),
        tuple(rows),
        (f'The default is "{DEFAULT}", `grounded` as it is. Mean over 10 lists by chance and six OOD sets.',),
    )


def verdicts(lab: Lab) -> Found:
    """How often verdicts are right: with a reference, with the photos as their own, by formula, and at best."""
    rows, reference = [], lab.reference()
    for name, lists in LISTS.items():
        shares: dict[str, list[tuple[float, float]]] = {}
        for given in lists():
            made, own, others = _fitted(lab, given), lab.inside(given), lab.outside(given)
            by_batch, _ = cut_by_batch(made, np.concatenate([own, *others.values()]))
            ways: dict[str, tuple[Scorer, float | None]] = {
                "reference": (made.scorer.score, cut_by_reference(made, reference).threshold),
                "batch": (made.scorer.score, by_batch.threshold),
                "formula": (_weighed(made, 0.0), made.threshold),
            }
            for way, (of, cut) in ways.items():
                assert cut is not None
                shares.setdefault(way, []).append(_right(of, cut, own, others))
            shares.setdefault("best", []).append(_best(made.scorer.score, own, others))
        means = [np.mean(found, axis=0).tolist() for found in shares.values()]
        rows.append((name, *(f"{100 * a:.1f} / {100 * b:.1f} = {50 * (a + b):.1f}" for a, b in means)))
    return Found(
        "verdicts",
        "How often are verdicts right, and what does the reference cut bring?",
        ("labels", *(f"{way}: in / out = balanced" for way in ("reference", "batch", "formula", "best"))),
        tuple(rows),
        (
            "Shares of own photos that are in and of others that are out, the latter a mean over six sets. The "
            "reference shows what training shows: near and far things, clutter and shuffled photos are not in it. "
            "`best` is the cut with the largest mean, found on the very photos.",
        ),
    )


def _right(of: Scorer, cut: float, own: Vectors, others: Mapping[str, Vectors]) -> tuple[float, float]:
    """The shares of own photos that are in, and of others that are out."""
    out = [(of(some) < cut).mean() for some in others.values()]
    return float((of(own) >= cut).mean()), float(np.mean(out))


def _best(of: Scorer, own: Vectors, others: Mapping[str, Vectors]) -> tuple[float, float]:
    """The same at the cut that suits these photos best."""
    inside, outside = of(own), [of(some) for some in others.values()]
    cuts = np.quantile(np.concatenate([inside, *outside]), np.linspace(0, 1, 300))
    pairs = [(float((inside >= cut).mean()), float(np.mean([(some < cut).mean() for some in outside]))) for cut in cuts]
    return max(pairs, key=sum)


def promises(lab: Lab) -> Found:
    """The share of photos with p <= a: of those like the reference, for which it is promised, and of other sets."""
    found = dict[str, list[list[float]]]()
    names, vectors = lab.shown["reference"], lab.vectors["reference"]
    for number, given in enumerate(exact_lists(10)):
        half = np.random.default_rng(number).permutation(len(names)) < len(names) // 2
        unrelated: NDArray[np.bool_] = ~np.isin(names, given.things)
        scorer = _fitted(lab, given, kinds="off").scorer
        known = np.sort(scorer.score(vectors[half & unrelated]))
        tested = {"like the reference": vectors[~half & unrelated]}
        tested |= {name: images for name, images in lab.outside(given).items() if name != OTHER}
        for name, images in tested.items():
            p = p_values(scorer.score(images), known)
            found.setdefault(name, []).append([float((p <= level).mean()) for level in LEVELS])
    return Found(
        "p-values",
        "Do p-values hold?",
        ("photos", *(f"p <= {level:g}" for level in LEVELS)),
        tuple((name, *(f"{share:.3f}" for share in np.mean(shares, axis=0))) for name, shares in found.items()),
        (
            "For photos that are like the reference the share with p <= a is promised to be a at most, but for "
            "chance. It is not promised for the others: a larger share there is what it costs to be unlike it.",
        ),
    )
