"""Questions about cuts: how often verdicts are right by each, and what odds a label is promised and gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from outword.detector.cuts import cut_by_batch, cut_by_reference, named_like_labels
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.imagining import refined_by
from outword.detector.thresholds import Thresholds
from outword.encoders.base import Vectors
from outword.maths.numerics import Array
from outword.vectors.reference import Reference
from outword_lab.benchmark.found import Found, percent
from outword_lab.benchmark.vectors.lists import Judged, List
from outword_lab.benchmark.vectors.measuring import Bench, Figure, default_recipe, names_of, pick

SAMPLE = 200  # photos that verdicts are counted on, half of them of the labels
TOGETHER = {1: 60, 5: 100, 20: 200, 200: 200}  # photos that are judged at a time: how many of the sample are counted
REFERENCES = (100, 1000)
HALF_LENGTHS = (3, 10, 50, 200)
MOST = 20  # lists of each length
SAMPLES = 5  # of each broad list
STEPS = 500  # cuts that the best one is looked for among
TENTHS = 10
LEVELS = (0.01, 0.05, 0.1)
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sample:
    """Photos that verdicts are counted on: the places 0, 2, 4 ... are of the labels, the others are not."""

    vectors: Vectors
    rest: Vectors  # the other photos, which a reference may be made from

    @property
    def own(self) -> Flags:
        """Which photos are of the labels."""
        return np.asarray(np.arange(len(self.vectors)) % 2 == 0)

    def shares(self, scores: Array, cuts: Array | float, first: int = SAMPLE) -> dict[str, float]:
        """The shares of own photos that are in and of others that are out, among the first so many."""
        inside, own = (scores >= cuts)[:first], self.own[:first]
        return {"in": float(inside[own].mean()), "out": float(1 - inside[~own].mean())}


def draw_sample(given: List, photos: Judged) -> Sample:
    """Own photos and others by chance, the others from each set in turn; where there are too few, some are repeated."""
    rng = np.random.default_rng([len(given.labels), given.draw, 1])
    half = SAMPLE // 2
    own = np.resize(rng.permutation(len(photos.inside.vectors)), half)
    orders = [rng.permutation(len(one.vectors)) for one in photos.outside]
    each = -(-half // len(orders))
    chosen = [one.vectors[np.resize(order, each)] for one, order in zip(photos.outside, orders, strict=True)]
    in_turn = np.stack(chosen, axis=1).reshape(-1, photos.inside.vectors.shape[1])[:half]
    vectors = np.empty((SAMPLE, in_turn.shape[1]), np.float32)
    vectors[0::2], vectors[1::2] = photos.inside.vectors[own], in_turn
    left = [one.vectors[order[each:]] for one, order in zip(photos.outside, orders, strict=True)]
    return Sample(vectors, rng.permutation(np.concatenate(left)))


def verdicts(bench: Bench) -> Found:
    """How often verdicts are right by each cut."""
    header, rows = _table(_figures(bench))
    return Found(
        "verdicts",
        "How often are verdicts right, by each cut?",
        header,
        rows,
        (
            "Own photos that are in / others that are out = their mean, in percent, of the default method. A formula "
            "looks at no photo. A reference is made of ordinary photos, here of those OOD photos that no verdict is "
            f"counted on and that look like no label. A batch is of {SAMPLE} photos, half of them own. Imagined cuts "
            "are refined by as many photos as the column says, those that are judged together, half of them own; with "
            "0 they have the constants of the family.",
            f"Counted on up to {SAMPLE} photos of each list ({SAMPLES} times for a broad one), half of them own, the "
            f"others in equal numbers from the OOD sets ({_together()}). The best cut is chosen with all photos of the "
            "list, so where own photos are few it is chance.",
        ),
    )


def halves(bench: Bench) -> Found:
    """The same for names of either half of the classes, so that what was chosen on one can be counted on the other."""
    lists = bench.halves(*HALF_LENGTHS)
    header, rows = _table(bench.figures("halves", lists, lambda given, photos: _cut(bench, given, photos)))
    return Found(
        "halves",
        "Do verdicts hold on either half of the classes?",
        header,
        rows,
        (
            "As above, with names drawn from the classes with even numbers alone, and from those with odd ones. "
            "Constants that were chosen on one half are counted on the other.",
        ),
    )


def _table(figures: Sequence[Figure]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The header and the rows of shares by group and way."""
    ways = names_of(figures, "way")
    rows = []
    for group in _groups(figures):
        rows.append((group, *(_balanced(pick(figures, group=group, way=way)) for way in ways)))
    return ("labels", *ways), tuple(rows)


def _together() -> str:
    return ", ".join(f"{counted} photos judged {many} at a time" for many, counted in TOGETHER.items())


def _figures(bench: Bench) -> list[Figure]:
    return bench.figures("cuts", _lists(bench), lambda given, photos: _cut(bench, given, photos))


def _lists(bench: Bench) -> dict[str, list[List]]:
    """Some drawn lists of each length, and the broad ones, each with several samples of photos."""
    broad = {name: _several(some) for name, some in bench.broad().items()}
    return _drawn(bench) | broad


def _drawn(bench: Bench) -> dict[str, list[List]]:
    return {name: some[:MOST] for name, some in bench.drawn().items()}


def _several(lists: Sequence[List]) -> list[List]:
    """Each list as often as photos are drawn for it."""
    return [replace(given, draw=draw) for given in lists for draw in range(SAMPLES)]


def _groups(figures: Sequence[Figure]) -> list[str]:
    return names_of(figures, "group")


def _balanced(figures: Iterator[Figure]) -> str:
    """Own in / others out = their mean; nothing where nothing was measured."""
    pairs = [(one.values["in"], one.values["out"]) for one in figures]
    if not pairs:
        return ""
    own, others = (100 * float(np.mean(side)) for side in zip(*pairs, strict=True))
    return f"{own:.1f} / {others:.1f} = {(own + others) / 2:.1f}"


def _cut(bench: Bench, given: List, photos: Judged) -> list[Figure]:
    """Each cut on the sample of a list."""
    detector = prepare(default_recipe(bench.folder), given.typed).finish()
    sample = draw_sample(given, photos)
    scores = detector.scorer.score(sample.vectors)
    found = {"formula": _formula(detector, sample)}
    plain = replace(detector, thresholds=Thresholds())
    for way, made in _by_photos(plain, sample):
        if made.threshold is not None and made.cut:
            found[way] = sample.shares(scores, made.threshold)
    found |= _imagined(detector, sample, scores)
    found["best"] = sample.shares(scores, _best(detector, photos))
    return [Figure(given.group, given.draw, way, values) for way, values in found.items()]


def _by_photos(detector: Detector, sample: Sample) -> Iterator[tuple[str, Detector]]:
    """The detector with the cuts that references and a batch give; as it is where these cannot tell."""
    unrelated = sample.rest[~named_like_labels(detector, sample.rest)]
    for size in REFERENCES:
        if len(unrelated) >= size:
            yield f"reference of {size:,}", cut_by_reference(detector, _reference(unrelated[:size]))
    by_batch, _ = cut_by_batch(detector, sample.vectors)
    yield f"batch of {SAMPLE}", by_batch


def _formula(detector: Detector, sample: Sample) -> dict[str, float]:
    """The natural cut of the part of the score that has one."""
    alone = detector.scorer.relative()
    assert alone.default_threshold_ is not None
    return sample.shares(alone.score(sample.vectors), alone.default_threshold_)


def _reference(vectors: Vectors) -> Reference:
    """Ordinary photos, of which nobody knows what they show."""
    n = len(vectors)
    return Reference(vectors, ("",) * n, ("",) * n, ("photos",) * n, "a folder of vectors")


def _best(detector: Detector, photos: Judged) -> float:
    """The cut with the largest mean of both shares on all photos of a list, each OOD set counting the same."""
    own = detector.scorer.score(photos.inside.vectors)
    others = [detector.scorer.score(one.vectors) for one in photos.outside]
    cuts = np.quantile(np.concatenate([own, *others]), np.linspace(0, 1, STEPS))
    right = [(own >= cut).mean() + np.mean([(some < cut).mean() for some in others]) for cut in cuts]
    return float(cuts[int(np.argmax(right))])


def _imagined(detector: Detector, sample: Sample, scores: Array) -> Iterator[tuple[str, dict[str, float]]]:
    """Imagined cuts: that of the detector, and the same refined by different numbers of photos."""
    if detector.threshold is None or detector.basis != "imagined":
        return
    yield "imagined, 0", sample.shares(scores, detector.threshold)
    for many, counted in TOGETHER.items():
        together = [sample.vectors[start : start + many] for start in range(0, counted, many)]
        cuts = np.repeat([refined_by(detector, vectors).threshold for vectors in together], many)
        yield f"imagined, {many}", sample.shares(scores[:counted], cuts.astype(np.float64), counted)


def promised(bench: Bench) -> Found:
    """Odds a label, promised and found."""
    figures = promised_figures(bench)
    rows = []
    for group in [*_groups(figures), ""]:
        own = [one for one in figures if group in ("", one.group)]
        tenths = sorted(names_of(own, "way"), key=float)
        rows += [(group or "all", *_tenth([one for one in own if one.way == tenth], tenth)) for tenth in tenths]
    return Found(
        "odds",
        "Do odds of a label hold?",
        ("labels", "promised", "on average", "found", "labels in this tenth", "photos"),
        tuple(rows),
        (
            "The share of a label's photos that is promised to be in, by the constants of the family alone, against "
            "the share of its photos that is, in percent. Labels are put into tenths by what is promised.",
        ),
    )


def promised_figures(bench: Bench) -> list[Figure]:
    """Promised and found shares of the labels of drawn lists, tenth by tenth."""
    return bench.figures("odds", _drawn(bench), lambda given, photos: _promised(bench, given, photos))


def _promised(bench: Bench, given: List, photos: Judged) -> list[Figure]:
    """What is promised of each label of a list, and what is found, tenth by tenth."""
    detector = prepare(default_recipe(bench.folder), given.typed).finish()
    told = np.array([one.share for one in detector.thresholds.odds])
    inside = detector.scorer.score(photos.inside.vectors) >= (detector.threshold or 0.0)
    numbers = bench.folder.class_names()
    tenths = np.minimum((told * TENTHS).astype(int), TENTHS - 1)
    found = []
    for tenth in np.unique(tenths):
        labels = np.flatnonzero(tenths == tenth)
        of_label = [photos.classes == numbers[given.labels[label]] for label in labels]
        n_photos = [int(rows.sum()) for rows in of_label]
        values = {
            "promised": float(np.dot(told[labels], n_photos)),
            "found": float(sum(inside[rows].sum() for rows in of_label)),
            "labels": float(len(labels)),
            "photos": float(sum(n_photos)),
        }
        found.append(Figure(given.group, given.draw, f"{tenth / TENTHS:g}", values))
    return found


def _tenth(figures: Sequence[Figure], tenth: str) -> tuple[str, ...]:
    """The row of a tenth."""
    total = {name: sum(one.values[name] for one in figures) for name in ("promised", "found", "labels", "photos")}
    low = round(100 * float(tenth))
    shares = [f"{100 * total[name] / total['photos']:.1f}" for name in ("promised", "found")]
    return f"{low} to {low + 100 // TENTHS}", *shares, f"{total['labels']:.0f}", f"{total['photos']:.0f}"


def p_values(bench: Bench) -> Found:
    """Whether p-values of imagined photos hold on real ones."""
    figures = bench.figures(
        "p-values", _drawn(bench) | bench.broad(), lambda given, photos: _shares_below(bench, given, photos)
    )
    sets = list(dict.fromkeys(name for one in figures for name in one.values))
    rows = []
    for group in _groups(figures):
        for level in names_of(figures, "way"):
            own = list(pick(figures, group=group, way=level))
            shares = [percent([one.values[name] for one in own]) if name in own[0].values else "" for name in sets]
            rows.append((group, f"p <= {level}", *shares))
    return Found(
        "p-values",
        "Do p-values of imagined photos hold?",
        ("labels", "level", *sets),
        tuple(rows),
        (
            "The share of the photos of an OOD set with such a p, in percent. No more than the level would be right; "
            "imagined photos promise nothing, they are a model's.",
        ),
    )


def _shares_below(bench: Bench, given: List, photos: Judged) -> list[Figure]:
    """The shares of others with p-values up to each level."""
    detector = prepare(default_recipe(bench.folder), given.typed).finish()
    found = {}
    for one in photos.outside:
        p = detector.thresholds.p_values(detector.scorer.score(one.vectors))
        if p is not None:
            found[one.name] = p
    shares = {level: {name: float((p <= level).mean()) for name, p in found.items()} for level in LEVELS}
    return [Figure(given.group, given.draw, f"{level:g}", values) for level, values in shares.items() if values]
