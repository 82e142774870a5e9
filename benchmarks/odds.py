"""Which share of a label's photos is in, by what the encoder knows of the label: where the odds of `mini` come from.

    python benchmarks/odds.py --photos BENCH_VAL --more BENCH_MINI --work FOLDER [--only users,known,left-out]

Photos are ImageNet's validation photos, two a class (BENCH_VAL/imagenet/WNID_N.jpg), what people sort
(BENCH_VAL/users/SET/CLASS/FILE), and BENCH_MINI's textures and scenes as unrelated ones. Lists are of one to 50 labels:

* users: the classes of each set as they are called, alone, all together, and each beside known names;
* known: names of ImageNet's classes, by chance;
* left-out: names that were left out of `mini` (benchmarks/left_out.py), alone, together, and beside known names.

Each list is fitted as `fit` does, with the reference that ships, and own photos that are in are counted; no photo of a
label is in the reference. FOLDER keeps features, sentence vectors and what was counted. Prints the shares that
`outword.base.odds` has (from one half of the names), what is told and found on the other half, and the worst labels.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from common import table
from left_out import LeftOut, Sentences, class_wnids, features, folds, with_mined_words
from outword.base.terms import familiarity
from outword.detector.detector import Detector
from outword.detector.cuts import named_in, pseudo_id
from outword.detector.fitting import prepare
from outword.detector.recipe import METHOD, resolve
from outword.encoders import Encoder, get_encoder
from outword.maths.numerics import Array, log_sum_exp, unit_rows
from outword.maths.thresholds import fit_reference
from outword.vectors.names import name_vectors, rival_names
from outword.vectors.reference import Reference
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts

IN_REFERENCE = ("screenshots", "codes")  # users' sets of which photos are in the reference
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
        return np.flatnonzero((self.shows == name) & ~np.isin(self.sets, ("scenes", "textures")))


@dataclass(frozen=True)
class Record:
    """A label of a list: what is known of it beforehand, and what was found."""

    part: str
    label: str
    flag: str
    cosine: float  # of its name to the nearest known one
    n_labels: int
    n_known: int
    promised: float  # the share of photos of one more label that are in
    let_in: float  # the share of the reference
    n_photos: int
    n_in: int


def read_photos(root: Path, more: Path, work: Path) -> Photos:
    """All photos, their features and what they show."""
    paths = [*sorted((root / "imagenet").glob("*.jpg")), *sorted((root / "users").glob("*/*/*"))]
    paths += [path for of in ("scenes", "textures") for path in sorted((more / of).iterdir())]
    paths = [path for path in paths if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")]
    of_users = np.array(["users" in path.parts for path in paths])
    shows = [path.parts[-2] if user else path.name.partition("_")[0] for path, user in zip(paths, of_users)]
    sets = [path.parts[-3] if user else path.parts[-2] for path, user in zip(paths, of_users)]
    return Photos(features(paths, work / "features.npz"), np.array(shows), np.array(sets))


def reference_of(photos: Photos, vectors: Array) -> Reference:
    """The reference as it ships, as another encoder sees it."""
    rows = reference_rows(photos)
    imagenet = photos.sets[rows] == "imagenet"
    names = [class_name(shown) if own else shown for shown, own in zip(photos.shows[rows], imagenet)]
    wnids = [shown if own else "" for shown, own in zip(photos.shows[rows], imagenet)]
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
    prompts = get_prompts(encoder.prompts)
    known = unit_rows(name_vectors(encoder, prompts, rival_names(encoder)))
    for pairs in lists:
        names = [label for label, _ in pairs]
        detector, masses = judge(names)
        scores = detector.scorer.combine(masses)
        rest = ~named_in(detector, reference)
        own = in_reference[rest]
        some, shown = own[::2], np.array(reference.wnids)[rest][::2].tolist()  # which is quicker
        cut = fit_reference(scores[own], pseudo_id(detector, vectors[some], shown, masses[some]))
        nearest = (unit_rows(name_vectors(encoder, prompts, names)) @ known.T).max(axis=1)
        flags = detector.coverage
        n_known = sum(familiarity(flag) == "known" for flag in flags.values())
        for (label, shown), cosine in zip(pairs, nearest.tolist(), strict=True):
            rows = photos.of(shown) if shown else []
            if len(rows):
                n_in = int((scores[rows] >= cut.value).sum())
                yield Record(part, label, flags[label], cosine, len(names), n_known, cut.tpr, cut.fpr, len(rows), n_in)


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
        encoder = get_encoder("mini")
        vectors = encoder._head.images(photos.features)
        lists = user_lists(photos) if part == "users" else known_lists(wnids)
    else:
        encoder = with_mined_words(LeftOut(held, sentences))
        vectors = encoder.seen(photos.features)
        out = [wnids[i] for i in held]
        lists = left_out_lists(out, sorted({*wnids} - {*out}), fold)
    return measure(part, encoder, lists, photos, vectors)


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
    print(len(records), Counter(one.part for one in records))


if __name__ == "__main__":
    main()
