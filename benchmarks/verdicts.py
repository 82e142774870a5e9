"""Verdicts from names alone, on photos that come as vectors: how many are right on either side.

    python benchmarks/verdicts.py [--draws 20] [--only broad,exact,scenes] [--sizes 10,50] [--batch | --validation]

Photos are those of bench-mini, as vectors (in the lab). They are split into halves: the cut is made from the one,
verdicts are counted on the other, then the other way round. With --validation they are those of the reference that
comes with `mini`, ImageNet's validation photos among them, and the halves are of classes. "without" leaves the set of
unrelated photos that is counted out of the reference; what stands for photos of the labels stays. A photo is of a label
if WordNet has what it shows at or below the label's sense. With --batch the photos of the other half are their own
reference, as for an encoder that has none; "formula" is the natural cut, which looks at no photo. Balanced accuracy is
the mean of the share of own photos that are in and the share of others that are out, the latter a mean over sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from common import table
from outword.base.processors import usable_cpus
from outword.detector.cuts import cut_by_batch, cut_by_reference
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.recipe import METHOD, resolve
from outword.encoders import get_encoder
from outword.maths.numerics import Array
from outword.metrics import auroc
from outword.vectors.names import name_vectors, readable_names
from outword.vectors.reference import Reference, find_reference
from outword.vectors.vocabulary import Vocabulary
from outword.words.kinds import are_below
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts
from outword_lab.benchmark.vectors.lists import BROAD
from outword_lab.encoders.bench_mini import bench_mini

SCENES, FLOWERS = "forest, glacier, mountain, sea, street, building", "dandelion, tulip, sunflower, rose"
SIZES = (5, 10, 20, 50, 100, 200, 400)
SETS = ("imagenet", "textures", "scenes", "flowers")


@dataclass(frozen=True)
class Photos:
    """The reference as photos to be judged, and the half that each is of."""

    reference: Reference
    half: Array

    @property
    def sets(self) -> Array:
        """The set of each photo."""
        return np.array(self.reference.sets)

    def part(self, rows: Array) -> Reference:
        """A reference of some of the photos."""
        places, all_of = np.flatnonzero(rows), self.reference
        names, wnids, sets = (tuple(of[i] for i in places) for of in (all_of.names, all_of.wnids, all_of.sets))
        return Reference(all_of.vectors[places], names, wnids, sets, all_of.source)


@dataclass(frozen=True)
class Task:
    """A list of labels, and which photos are of it, which are not, and which do not count."""

    detector: Detector
    inside: Array
    outside: Array
    scores: Array


def read_photos(encoder: str = "mini", seed: int = 0, *, validation: bool = False) -> Photos:
    """The photos as an encoder sees them, each set cut in halves by chance; those of a class stay together."""
    used = get_encoder(encoder)
    reference = find_reference(used) if validation else bench_mini(used)
    assert reference is not None
    sets, half = np.array(reference.sets), np.zeros(len(reference), bool)
    for place, one in enumerate(dict.fromkeys([*SETS, *reference.sets])):
        rows = np.random.default_rng([seed, place]).permutation(np.flatnonzero(sets == one))
        half[rows[: len(rows) // 2]] = True
    if validation:
        wnids = np.array(reference.wnids)
        classes = np.unique(wnids[sets == "imagenet"])
        chosen = np.random.default_rng(seed).permutation(classes)[: len(classes) // 2]
        half[sets == "imagenet"] = np.isin(wnids[sets == "imagenet"], chosen)
    return Photos(reference, half)


def make_task(photos: Photos, labels: Sequence[str], method: str, own: Array | None = None, **options) -> Task:
    """A detector for a list, without a cut; `own` are the photos of the labels, by default those below their senses."""
    encoder = get_encoder("mini")
    detector = prepare(resolve(encoder, method, {}, **options), list(labels)).fit()
    names = readable_names(encoder)
    vectors = name_vectors(encoder, get_prompts(encoder.prompts), names).astype(np.float16)
    detector = replace(detector, vocabulary=Vocabulary(names, vectors))
    below = np.array(are_below(photos.reference.wnids, detector.card.meanings))
    inside = below & (photos.sets == "imagenet") if own is None else own
    scores = detector.scorer.score(photos.reference.vectors.astype(np.float32))
    return Task(detector, inside, ~below & ~inside, scores)


def lists(
    photos: Photos, draws: int, only: Sequence[str], sizes: Sequence[int] = SIZES
) -> Iterator[tuple[str, list[str], Array | None]]:
    """The lists, each with its name, its labels, and its photos where these are not those below the labels' senses."""
    if "broad" in only:
        for labels in BROAD:
            yield labels, labels.split(", "), None
    if "scenes" in only:
        for labels, of in ((SCENES, "scenes"), (FLOWERS, "flowers")):
            if of in photos.sets:
                yield labels, labels.split(", "), photos.sets == of
    wnids = np.array(photos.reference.wnids)
    rows = np.flatnonzero(photos.sets == "imagenet")
    rows = rows[np.sort(np.unique(wnids[rows], return_index=True)[1])]  # one of each class
    for size in sizes if "exact" in only else ():
        for seed in range(draws):
            chosen = np.sort(np.random.default_rng([seed, size]).choice(rows, size, replace=False))
            names = [photos.reference.names[i] for i in chosen]
            if len(set(names)) == size:  # two classes are called crane
                yield f"{size} names", names, np.isin(wnids, wnids[chosen]) & (photos.sets == "imagenet")


def judged(
    name: str, labels: list[str], own: Array | None, method: str, batch: bool, validation: bool
) -> tuple[str, dict, float]:
    """What a list comes to: its name, `measure` and AUROC."""
    photos = read_photos(validation=validation)
    task = make_task(photos, labels, method, own)
    return name, measure(task, photos, batch, alone=validation), ranked(task, photos)


def shares(
    task: Task, detector: Detector, photos: Photos, tested: Array, one: str | None = None
) -> tuple[float, float]:
    """Own photos that are in, and others that are out, of a half; the latter of a set, or their mean over sets."""
    scores, cut = task.scores, detector.threshold
    inside = scores[task.inside & tested] >= cut
    sets = [one] if one else [name for name in SETS if (task.outside & tested & (photos.sets == name)).any()]
    out = [np.mean(scores[task.outside & tested & (photos.sets == name)] < cut) for name in sets]
    return float(inside.mean()) if len(inside) else np.nan, float(np.mean(out))


def measure(task: Task, photos: Photos, batch: bool, *, alone: bool = False) -> dict[str, tuple[float, float]]:
    """TPR and TNR with the reference, without the set that is counted (not if `alone`), and the best that could be."""
    found = {"with": [], "formula": [], "without": [], "best": []}
    for given in (photos.half, ~photos.half):
        tested = ~given
        if batch:
            cut, _ = cut_by_batch(task.detector, photos.reference.vectors[tested].astype(np.float32))
            found["with"].append(shares(task, cut, photos, tested))
            found["formula"].append(_natural(task, photos, tested))
        else:
            found["with"].append(shares(task, cut_by_reference(task.detector, photos.part(given)), photos, tested))
        if not batch and not alone:
            sets = [one for one in SETS if (task.outside & tested & (photos.sets == one)).any()]
            apart = [shares(task, _without(task, photos, given, one), photos, tested, one) for one in sets]
            found["without"].append(tuple(np.mean(apart, axis=0)))
        found["best"].append(_best(task, photos, tested))
    return {name: tuple(np.nanmean(pairs, axis=0)) for name, pairs in found.items() if pairs}


def _without(task: Task, photos: Photos, given: Array, one: str) -> Detector:
    """The cut where photos of a set are no reference; those of ImageNet still stand for photos of a label."""
    return cut_by_reference(task.detector, photos.part(given), unrelated=photos.sets[given] != one)


def _natural(task: Task, photos: Photos, tested: Array) -> tuple[float, float]:
    """The natural cut of the score without its absolute part, which looks at no photo."""
    alone = task.detector.scorer.relative()
    scores = alone.score(photos.reference.vectors.astype(np.float32))
    return shares(replace(task, scores=scores), task.detector, photos, tested)


def _best(task: Task, photos: Photos, tested: Array) -> tuple[float, float]:
    scores = task.scores
    own = scores[task.inside & tested]
    others = [scores[task.outside & tested & (photos.sets == name)] for name in SETS]
    cuts = np.quantile(scores, np.linspace(0, 1, 500))
    pairs = [((own >= cut).mean(), np.mean([(some < cut).mean() for some in others if len(some)])) for cut in cuts]
    return max(pairs, key=sum) if len(own) else (np.nan, np.nan)


def ranked(task: Task, photos: Photos) -> float:
    """AUROC, mean over sets."""
    scores = task.scores
    others = [scores[task.outside & (photos.sets == name)] for name in SETS]
    return float(np.mean([auroc(scores[task.inside], some) for some in others if len(some)]))


def looks_right(photos: Photos) -> float:
    """The share of ImageNet's photos whose nearest readable name is that of the class, or of what it is a kind of."""
    encoder, net = get_encoder("mini"), nouns()
    names, rows = readable_names(encoder), np.flatnonzero(photos.sets == "imagenet")
    vectors = name_vectors(encoder, get_prompts(encoder.prompts), names).astype(np.float16)
    first = Vocabulary(names, vectors).begin(photos.reference.vectors[rows].astype(np.float32), 1)()[:, 0]
    shown = [net.by_wnid(photos.reference.wnids[row]) for row in rows]
    return float(
        np.mean([net.readable()[names[i]] in (own, *net.above(own)) for i, own in zip(first, shown, strict=True)])
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", default="broad,exact,scenes")
    parser.add_argument("--method", default=METHOD)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--validation", action="store_true")
    args = parser.parse_args()
    photos, found, ranks = read_photos(validation=args.validation), dict[str, list](), dict[str, list]()
    with ProcessPoolExecutor(usable_cpus()) as pool:
        some = lists(photos, args.draws, args.only.split(","), [*map(int, args.sizes.split(","))])
        for begun in [pool.submit(judged, *one, args.method, args.batch, args.validation) for one in some]:
            name, measured, rank = begun.result()
            found.setdefault(name, []).append(measured)
            ranks.setdefault(name, []).append(rank)
    ways = [way for way in ("with", "formula", "without", "best") if way in next(iter(found.values()))[0]]
    rows = []
    for name, measured in found.items():
        means = {way: 100 * np.nanmean([one[way] for one in measured], axis=0) for way in ways}
        cells = [f"{tpr:.1f} / {tnr:.1f} = {(tpr + tnr) / 2:.1f}" for tpr, tnr in means.values()]
        rows.append([name, *cells, f"{100 * np.mean(ranks[name]):.2f}"])
    print(table(["labels", *(f"{way}: in / out = balanced" for way in ways), "AUROC"], rows))
    if not args.batch:
        right = 100 * looks_right(photos)
        print(
            f"\nThe first *looks like* is the class, a synonym or a parent of it: {right:.1f} % of ImageNet's photos."
        )


if __name__ == "__main__":
    main()
