"""Thresholds from the photos that are asked about: the rule `batch`, and imagined thresholds that they refine.

    python benchmarks/imagined.py [--photos STORE] [--vectors FOLDER] [--world STORE] [--draws 10]

Each encoder is used as if it had no reference. STORE of --photos is one of `outword embed` of ImageNet's photos, named
WNID_NUMBER.jpg, with `mini`; FOLDER is one that `outword bench vectors` takes; STORE of --world is a folder where the
world's photos are kept as vectors. From the photos of a list of labels and from others so many are drawn, with
replacement, of which 1, 50 or 99 % show a label, and a rule finds its threshold on them. What is shown is the balanced
accuracy of that threshold on all photos, in percent: the mean of the share of own photos that are in and of the share
of others that are out. "best" is the best threshold that there is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import table
from outword.detector import imagining
from outword.detector.batches import MOST, REFINING
from outword.detector.cuts import cut_by_batch
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.imagining import cut_by_imagining, find_sight, refined_by
from outword.detector.recipe import METHOD, resolve
from outword.encoders import Encoder, get_encoder
from outword.maths.imagined import Imagination, Sight
from outword.vectors.names import name_vectors, readable_names, rival_names
from outword.vectors.store import open_store
from outword.vectors.vocabulary import Vocabulary
from outword.words.corpora import get_corpus
from outword.words.kinds import are_below
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts
from outword_lab.benchmark.world.lab import Lab, exact_lists, open_lab
from outword_lab.encoders.vectors import VectorFolder
from verdicts import BROAD

SIZES = (100, 1000, 10_000)
SHARES = (0.01, 0.5, 0.99)
LENGTHS = (3, 10, 50)
OTHER_CLASSES = "other classes"
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Task:
    """A detector without a threshold, photos of its labels, and others by set."""

    encoder: str
    labels: str
    detector: Detector
    own: Vectors
    sets: Mapping[str, Vectors]

    @property
    def others(self) -> Vectors:
        """The other photos of all sets."""
        return np.concatenate([*self.sets.values()])


def fitted(encoder: Encoder, labels: Sequence[str], **options: str) -> Detector:
    """A detector as `fit` makes it, with what photos look like, and without a threshold."""
    names = readable_names(encoder)
    vectors = name_vectors(encoder, get_prompts(encoder.prompts), names).astype(np.float16)
    detector = prepare(resolve(encoder, METHOD, {}, **options), list(labels)).fit()
    return replace(detector, vocabulary=Vocabulary(names, vectors))


def tasks_of(
    encoder: Encoder,
    vectors: Vectors,
    wnids: Sequence[str],
    sets: Mapping[str, Vectors],
    draws: int,
    lengths: Sequence[int] = LENGTHS,
) -> Iterator[Task]:
    """Lists drawn from the names of the classes, and broad ones, with the photos that show them."""
    known = set(rival_names(encoder))
    shown = sorted(set(wnids))
    visible = {nouns().wnid(sense): name for name, sense in nouns().visible().items()}
    names = [visible[wnid] for wnid in shown if visible.get(wnid) in known]
    for length in lengths:
        for draw in range(draws):
            chosen = np.random.default_rng([length, draw]).choice(names, length, replace=False)
            yield task_of(encoder, f"{length} names", chosen.tolist(), vectors, wnids, sets)
    for labels in BROAD:
        found = [label for label in labels.split(", ") if label in known]
        if len(found) > 1:
            yield task_of(encoder, "broad lists", found, vectors, wnids, sets)


def task_of(
    encoder: Encoder,
    name: str,
    labels: Sequence[str],
    vectors: Vectors,
    wnids: Sequence[str],
    sets: Mapping[str, Vectors],
) -> Task:
    """A list with its photos."""
    detector = fitted(encoder, labels)
    own = np.array(are_below(wnids, detector.card.meanings))
    return Task(encoder.name, name, detector, vectors[own], {OTHER_CLASSES: vectors[~own], **sets})


def tasks_of_world(store: Path, draws: int) -> Iterator[Task]:
    """Lists of things of the rendered world; words that compete are the world's nouns.

    They are fewer than an imagined threshold takes, which is why the rule `batch` stays there: here both are tried.
    """
    imagining.FEWEST_NAMES = 20
    lab = open_lab(get_encoder("world-m"), store)
    lab.encoder.sight = sight_in_world(lab)
    for length in (3, 10, 25):
        for given in exact_lists(length, draws):
            detector = fitted(lab.encoder, given.labels, corpus="world-nouns", prompts="mcm")
            yield Task("world-m", f"{length} names", detector, lab.inside(given), lab.outside(given))


def sight_in_world(lab: Lab) -> Sight:
    """How the encoder sees ordinary photos of its world."""
    texts = lab.names(get_corpus("world-nouns").words)
    return Imagination(texts[:1], texts[1:], lab.encoder.temperature).sight_of(lab.vectors["reference"])


def balanced(own: NDArray[np.float64], others: NDArray[np.float64], cut: float | None) -> float:
    """The mean of both shares that are right, in percent."""
    return 50 * float((own >= cut).mean() + (others < cut).mean())


def judged(task: Task, seed: int) -> Iterator[tuple[str, float]]:
    """What each rule comes to, by what the columns of the table are called."""
    detector = task.detector
    own, others = detector.scorer.score(task.own), detector.scorer.score(task.others)
    cuts = np.quantile(np.concatenate([own, others]), np.linspace(0, 1, 500))
    yield "best", max(balanced(own, others, cut) for cut in cuts)
    sight = find_sight(detector, detector.encoder)
    assert sight is not None
    imagined = cut_by_imagining(detector, sight)
    yield "imagined, no photo", balanced(own, others, imagined.threshold)
    rng = np.random.default_rng(seed)
    for size in SIZES:
        for share in SHARES:
            n_own = round(share * size)
            rows = [task.own[rng.integers(len(task.own), size=n_own)]]
            rows.append(task.others[rng.integers(len(task.others), size=size - n_own)])
            photos = rng.permutation(np.concatenate(rows))
            by_batch, _ = cut_by_batch(detector, photos[:MOST])
            yield f"batch {size:,} {share:.0%}", balanced(own, others, by_batch.threshold)
            refined = refined_by(imagined, photos[:REFINING])
            yield f"imagined {size:,} {share:.0%}", balanced(own, others, refined.threshold)


def tasks_of_mini(photos: Path, draws: int, lengths: Sequence[int] = LENGTHS) -> Iterator[Task]:
    """The tasks of `mini` on a store of ImageNet's photos."""
    encoder = get_encoder("mini")
    store = open_store(photos, encoder.fingerprint, encoder.name)
    paths = [*store.paths()]
    wnids = [Path(path).name[:9] for path in paths]
    yield from tasks_of(encoder, store.vectors(range(len(paths))), wnids, {}, draws, lengths)


def tasks_of_folder(folder: Path, draws: int, lengths: Sequence[int] = LENGTHS) -> Iterator[Task]:
    """The tasks of a folder of vectors."""
    encoder = VectorFolder(folder)
    inside = encoder.sets[encoder.inside]
    sets = {name: one.vectors for name, one in encoder.sets.items() if name != encoder.inside}
    wnids = [encoder.wnids[number] for number in inside.classes]
    yield from tasks_of(encoder, inside.vectors, wnids, sets, draws, lengths)


def all_tasks(args: argparse.Namespace) -> Iterator[Task]:
    """The tasks of all encoders that there are photos for."""
    if args.photos:
        yield from tasks_of_mini(args.photos, args.draws)
    if args.vectors:
        yield from tasks_of_folder(args.vectors, args.draws)
    if args.world:
        yield from tasks_of_world(args.world, args.draws)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--world", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    args = parser.parse_args()
    found = dict[tuple[str, str], dict[str, list[float]]]()
    for number, task in enumerate(all_tasks(args)):
        row = found.setdefault((task.encoder.partition(":")[0], task.labels), {})
        for name, value in judged(task, number):
            row.setdefault(name, []).append(value)
    header = ["encoder", "labels", "photos, own", "batch", "imagined", "no photo", "best"]
    rows = []
    for (encoder, labels), by_name in found.items():
        means = {name: f"{np.mean(values):.1f}" for name, values in by_name.items()}
        for size in SIZES:
            for share in SHARES:
                asked = f"{size:,} {share:.0%}"
                both = [means[f"{rule} {asked}"] for rule in ("batch", "imagined")]
                rows.append([encoder, labels, asked, *both, means["imagined, no photo"], means["best"]])
    print(table(header, rows))


if __name__ == "__main__":
    main()
