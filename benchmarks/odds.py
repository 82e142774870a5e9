"""Which share of a label's photos is in, by what the encoder knows of the label: where the odds of `mini` come from.

    python benchmarks/odds.py --photos BENCH_VAL --more BENCH_MINI --work FOLDER [--only users,known,left-out]

Photos are ImageNet's validation photos, two a class (BENCH_VAL/imagenet/WNID_N.jpg), what people sort
(BENCH_VAL/users/SET/CLASS/FILE), and BENCH_MINI's textures and scenes as unrelated ones. Lists are of one to 50 labels:

* users: the classes of each set as they are called, alone, all together, and each beside known names;
* known: names of ImageNet's classes, by chance;
* left-out: names that were left out of `mini` (benchmarks/left_out.py), alone, together, and beside known names.

Each list is fitted as `fit` does, with the reference that ships, and own photos that are in are counted; no photo of a
label is in the reference. FOLDER keeps features, sentence vectors and what was counted. Prints the numbers of
`outword.encoders.mini.odds`, the shares that were found, and for each half of the names what is told of them by the
odds that were fitted on the other half.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import cast, get_args

import numpy as np

from common import table
from left_out import LeftOut, Sentences, class_wnids, features, folds, with_mined_words
from outword.base.odds import LEAST, MeasuredOdds, Odds
from outword.base.terms import Familiarity, Flag, familiarity
from outword.detector.cuts import named_in, pseudo_id
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.label_odds import cosines_to_known
from outword.detector.recipe import METHOD, resolve
from outword.encoders import Encoder
from outword.encoders.mini.encoder import Mini
from outword.maths.methods.grounded import Grounded
from outword.maths.numerics import Array, log_sum_exp
from outword.maths.thresholds import fit_reference
from outword.vectors.reference import Reference
from outword.words.nouns import nouns

IN_REFERENCE = ("screenshots", "codes")  # users' sets of which photos are in the reference
MOST = 8  # photos that a label counts as
BESIDE = "dog, cat"  # known names in a list with a class of users' photos
DRAWS = {1: 30, 3: 15, 10: 10, 50: 3, 200: 1}  # lists of known names by their length
MIXED = ((1, 0, 25), (3, 0, 8), (10, 0, 6), (1, 3, 15), (3, 7, 6), (1, 9, 8), (40, 0, 1))  # left out, known, draws


@dataclass(frozen=True)
class Photos:
    """Photos by what they show: the class or the WordNet number, and the set that each is of."""

    features: Array
    shows: Array
    sets: Array

    def of(self, name: str) -> Array:
        """The photos that show a class."""
        return np.flatnonzero((self.shows == name) & ~np.isin(self.sets, ("scenes", "textures")))


@dataclass(frozen=True)
class Record:
    """A label of a list: what is known of it beforehand, and what was found."""

    part: str
    label: str
    flag: str
    cosine: float  # of its name to the nearest known one
    n_labels: int
    cut: float
    n_photos: int
    n_in: int

    @property
    def how(self) -> Familiarity:
        """How the encoder knows the name."""
        return familiarity(Flag(self.flag))

    @property
    def found(self) -> float:
        """The share of its photos that is in."""
        return self.n_in / self.n_photos

    @property
    def half(self) -> int:
        """One of two halves of all names, by chance."""
        return hashlib.sha256(self.label.lower().encode()).digest()[-1] % 2


def read_photos(root: Path, more: Path, work: Path) -> Photos:
    """All photos, their features and what they show."""
    paths = [*sorted((root / "imagenet").glob("*.jpg")), *sorted((root / "users").glob("*/*/*"))]
    paths += [path for of in ("scenes", "textures") for path in sorted((more / of).iterdir())]
    paths = [path for path in paths if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")]
    of_users = np.array(["users" in path.parts for path in paths])
    shows = [
        path.parts[-2] if user else path.name.partition("_")[0] for path, user in zip(paths, of_users, strict=True)
    ]
    sets = [path.parts[-3] if user else path.parts[-2] for path, user in zip(paths, of_users, strict=True)]
    return Photos(features(paths, work / "features.npz"), np.array(shows), np.array(sets))


def reference_of(photos: Photos, vectors: Array) -> Reference:
    """The reference as it ships, as another encoder sees it."""
    rows = reference_rows(photos)
    imagenet = photos.sets[rows] == "imagenet"
    names = [class_name(shown) if own else shown for shown, own in zip(photos.shows[rows], imagenet, strict=True)]
    wnids = [shown if own else "" for shown, own in zip(photos.shows[rows], imagenet, strict=True)]
    return Reference(vectors[rows].astype(np.float16), tuple(names), tuple(wnids), tuple(photos.sets[rows]), "")


def reference_rows(photos: Photos) -> Array:
    """Which photos the reference has."""
    own = np.isin(photos.sets, ("imagenet", "scenes", "textures", *IN_REFERENCE))
    return np.flatnonzero(own & (photos.shows != "nothing in particular"))


@cache
def class_name(wnid: str) -> str:
    """What a class is called first."""
    return nouns().names(nouns().by_wnid(wnid))[0]


def measure(
    part: str, encoder: Encoder, lists: Iterator[list[tuple[str, str]]], photos: Photos, vectors: Array
) -> Iterator[Record]:
    """A record for each label that photos are there of; a list has pairs of a label and what its photos show."""
    reference = reference_of(photos, vectors)
    in_reference, judge = reference_rows(photos), Judge(encoder, vectors)
    for pairs in lists:
        names = [label for label, _ in pairs]
        detector, masses = judge(names)
        scores = np.asarray(cast(Grounded, detector.scorer).combine(masses))
        rest = ~named_in(detector, reference)
        own = in_reference[rest]
        some, shown = own[::2], np.array(reference.wnids)[rest][::2].tolist()  # which is quicker
        cut = fit_reference(scores[own], pseudo_id(detector, vectors[some], shown, masses[some]))
        nearest = cosines_to_known(encoder, detector).tolist()
        flags = detector.coverage
        for (label, shown), cosine in zip(pairs, nearest, strict=True):
            rows = photos.of(shown) if shown else []
            if len(rows):
                n_in = int((scores[rows] >= cut.value).sum())
                yield Record(part, label, flags[label], cosine, len(names), cut.value, len(rows), n_in)


class Judge:
    """Detectors of one encoder and what photos have of their scores; the words' logits are worked out once."""

    def __init__(self, encoder: Encoder, vectors: Array) -> None:
        self.encoder, self.vectors = encoder, vectors
        self.recipe = resolve(encoder, METHOD, {})
        self.words: dict[str, int] = {}
        self.powers = np.zeros((len(vectors), 0), np.float32)

    def __call__(self, names: Sequence[str]) -> tuple[Detector, Array]:
        """The detector of some names without a cut, and log P, log Q and the largest logit of each photo."""
        detector = prepare(self.recipe, list(names)).fit()
        scorer = detector.scorer
        if new := [place for place, word in enumerate(detector.wild) if word not in self.words]:
            self.words |= {detector.wild[place]: len(self.words) + at for at, place in enumerate(new)}
            more = np.exp(self.vectors @ scorer.wild_[new].astype(np.float32).T / self.encoder.temperature)
            self.powers = np.hstack([self.powers, more])
            self.total = self.powers.sum(axis=1, dtype=np.float64)
        left_out = sorted({*range(len(self.words))} - {self.words[word] for word in detector.wild})
        words = np.log(self.total - self.powers[:, left_out].sum(axis=1, dtype=np.float64))
        logits = self.vectors @ scorer.labels_.astype(np.float32).T / self.encoder.temperature
        return detector, np.stack([log_sum_exp(logits), words, logits.max(axis=1)], axis=1).astype(np.float64)


def user_lists(photos: Photos) -> Iterator[list[tuple[str, str]]]:
    """The classes of users' sets: all of a set, each alone, each beside known names."""
    for name in sorted({*photos.sets} - {"imagenet", "scenes", "textures", *IN_REFERENCE}):
        classes = sorted({*photos.shows[photos.sets == name]})
        yield [(label, label) for label in classes]
        for label in classes:
            if len(classes) > 1:
                yield [(label, label)]
            if len(classes) < 12:
                yield [(label, label), *((one, "") for one in BESIDE.split(", "))]


def known_lists(wnids: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Names of classes by chance."""
    for size, draws in DRAWS.items():
        for seed in range(draws):
            chosen = np.random.default_rng([seed, size]).choice(wnids, size, replace=False)
            yield unlike([(class_name(wnid), wnid) for wnid in chosen])


def left_out_lists(held: Sequence[str], known: Sequence[str], seed: int) -> Iterator[list[tuple[str, str]]]:
    """Names that were left out, alone, together, and beside known ones."""
    rng = np.random.default_rng([seed, 1])
    for n_out, n_known, draws in MIXED:
        for _ in range(draws):
            out, beside = rng.choice(held, n_out, replace=False), rng.choice(known, n_known, replace=False)
            yield unlike([(class_name(wnid), wnid if wnid in out else "") for wnid in (*out, *beside)])


def unlike(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without labels that are there before."""
    return list({label.lower(): (label, shown) for label, shown in reversed(pairs)}.values())


def counted(args: argparse.Namespace) -> list[Record]:
    """All records, from the folder where they are there."""
    found: list[Record] = []
    photos: Photos | None = None
    sentences = Sentences(args.work / "sentences.npz")
    for part in args.only.split(","):
        parts = [(fold, held) for fold, held in enumerate(folds()) if fold in args.folds]
        for fold, held in parts if part == "left-out" else [(-1, None)]:
            path = args.work / f"{part}{'' if held is None else fold}.json"
            if not path.exists():
                photos = photos or read_photos(args.photos, args.more, args.work)
                records = list(count(part, held, fold, photos, sentences))
                path.write_text(json.dumps([asdict(one) for one in records]))
                if held is not None:
                    sentences.keep()
            found += [Record(**one) for one in json.loads(path.read_text())]
    return found


def count(part: str, held: Sequence[int] | None, fold: int, photos: Photos, sentences: Sentences) -> Iterator[Record]:
    """The records of one part; of what is left out, those of a fold."""
    wnids = class_wnids()
    if held is None:
        encoder: Mini = Mini()
        vectors = encoder._head.images(photos.features)
        lists = user_lists(photos) if part == "users" else known_lists(wnids)
    else:
        encoder = with_mined_words(LeftOut(held, sentences))
        vectors = encoder.seen(photos.features)
        out = [wnids[i] for i in held]
        lists = left_out_lists(out, sorted({*wnids} - {*out}), fold)
    return measure(part, encoder, lists, photos, vectors)


def fitted(records: Sequence[Record]) -> MeasuredOdds:
    """The odds that explain records best: by maximum likelihood, a label counting as eight photos at most."""
    terms: dict[Familiarity, tuple[float, float, float]] = {}
    known, others = ([one for one in records if (one.how == "known") == is_known] for is_known in (True, False))
    a, slope = _logistic(known, lambda one: [one.cut / 10], 0.1)
    terms["known"] = (round(a, 2), 0.0, round(-slope / 10, 3))
    ways: list[Familiarity] = ["head noun only", "unknown"]  # beside "through"

    def seen(one: Record) -> list[float]:
        return [one.cosine, one.cut / 10, *(float(one.how == way) for way in ways)]

    a, per_cosine, slope, *more = _logistic(others, seen, 0.5)
    for way, extra in zip(["through", *ways], [0.0, *more], strict=True):
        terms[way] = (round(a + extra, 2), round(per_cosine, 2), round(-slope / 10, 3))
    return MeasuredOdds(terms)


def _logistic(records: Sequence[Record], features: Callable[[Record], list[float]], penalty: float) -> list[float]:
    """The intercept and the slopes of a logistic regression, by Newton's method."""
    x = np.array([[1.0, *features(one)] for one in records])
    shares, weights = np.array([one.found for one in records]), np.array([min(one.n_photos, MOST) for one in records])
    ridge = 2 * penalty * np.diag([0.0] + [1.0] * (x.shape[1] - 1))
    found = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weights * (shares - p)) - ridge @ found
        found = found + np.linalg.solve(x.T @ (x * (weights * p * (1 - p))[:, None]) + ridge, slope)
    return found.tolist()


def told_and_found(records: Sequence[Record]) -> str:
    """For each word what is told and found, by odds that were fitted on the names of the other half."""
    told = [(one, _of_other_half(tuple(records), one.half).share(one.how, one.cosine, one.cut)) for one in records]
    rows = []
    for part in ("all", *dict.fromkeys(one.part for one in records)):
        for word in LEAST:
            some = [pair for pair in told if part in ("all", pair[0].part) and Odds("", pair[1]).word == word]
            if some:
                n = sum(one.n_photos for one, _ in some)
                shares = sum(one.n_photos * share for one, share in some) / n, sum(one.n_in for one, _ in some) / n
                rows.append([part, word, str(len(some)), f"{n:,}", *(f"{100 * share:.1f}" for share in shares)])
    single = [
        [one.label, one.flag, str(one.n_labels), str(one.n_photos), f"{100 * share:.0f}", f"{100 * one.found:.0f}"]
        for one, share in told
        if one.n_photos >= 20
    ]
    heads = ["photos of", "told", "labels in lists", "photos", "told, %", "found, %"]
    return f"{table(heads, rows)}\n\n{table(['label', 'flag', 'labels', 'photos', 'told, %', 'found, %'], single)}"


@cache
def _of_other_half(records: tuple[Record, ...], half: int) -> MeasuredOdds:
    return fitted([one for one in records if one.half != half])


def by_flag(records: Sequence[Record]) -> str:
    """The shares of photos that are in, by how a name is known and how many labels the list has."""
    rows = []
    for how in get_args(Familiarity):
        for least, most in ((1, 1), (2, 5), (6, 20), (21, 60), (61, 200)):
            some = [one for one in records if one.how == how and least <= one.n_labels <= most]
            if some:
                n, n_in = sum(one.n_photos for one in some), sum(one.n_in for one in some)
                rows.append(
                    [
                        how,
                        f"{least} to {most}" if least < most else "1",
                        str(len(some)),
                        f"{n:,}",
                        f"{100 * n_in / n:.1f}",
                    ]
                )
    return table(["known", "labels in the list", "labels", "photos", "in, %"], rows)


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--more", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="users,known,left-out")
    parser.add_argument(
        "--folds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of the classes that are left out"
    )
    args = parser.parse_args()
    args.work.mkdir(exist_ok=True)
    records = counted(args)
    print(fitted(records).terms, file=sys.stderr)
    print(f"{by_flag(records)}\n\n{told_and_found(records)}")


if __name__ == "__main__":
    main()
