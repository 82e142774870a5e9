"""Many methods on the same vectors: each image is encoded once and scored by all; each method gets a row of figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outword.detector.detector import PathLike
from outword.detector.fitting import prepare
from outword.detector.inputs import check_store
from outword.detector.recipe import check_inputs, make_detector
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import InputError, OutwordError
from outword.maths.methods import Need, VectorDetector
from outword.maths.metrics import aupr, auroc, fpr_at_tpr
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword.vectors.reader import vectors_of
from outword.vectors.source import find_source
from outword.vectors.wild import Report, quiet
from outword.words.prompts import Prompts

SEED = 0  # of the order in which a method that learns from the test images sees them
MEAN = "mean"


class Chunk(NamedTuple):
    """Some images of a set: vectors (n, dim), and those of their patches (n, n_patches, dim), if there are any."""

    vectors: NDArray[np.floating]
    patches: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class Row:
    """The figures of a method on one OOD set, or on the mean of several.

    AUPR and FPR95 are given in both conventions, with ID and with OOD as the positives (see `outword.metrics`). Seconds
    are those of the method's own `fit`, and of its `score` on the ID set and the OOD set, on vectors.
    """

    method: str
    ood: str
    auroc: float
    aupr_id: float
    aupr_ood: float
    fpr95_id: float
    fpr95_ood: float
    fit_seconds: float
    score_seconds: float


FIGURES = tuple(column.name for column in fields(Row))[2:]


@dataclass
class Entrant:
    """A fitted method under the name that its rows have; `scores` are those of the sets so far, by name of the set."""

    name: str
    vectors: VectorDetector
    fit_seconds: float
    scores: dict[str, list[Array]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def score(self, name: str, chunk: Chunk) -> None:
        """Score some images of a set."""
        since = time.perf_counter()
        patches = chunk.patches if Need.PATCHES in self.vectors.wants() else None
        scores = self.vectors.score(chunk.vectors, patches=patches)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - since
        self.scores.setdefault(name, []).append(scores)


def enter(
    labels: Iterable[str] | Mapping[str, str],
    encoder: Encoder,
    methods: Iterable[str],
    *,
    corpus: PathLike | None = None,
    words: PathLike | None = None,
    id_images: IdImages | None = None,
    store: PathLike | None = None,
    params: Mapping[str, Any] | None = None,
    report: Report = quiet,
    on_left_out: Callable[[str, str], None] = lambda method, reason: None,
) -> tuple[list[Entrant], dict[str, str]]:
    """Fit every method that applies; the others, each with what it lacks.

    A method that changes pixels takes part in its form for vectors, if it has one, and its name says so.

    Args:
        labels, encoder, corpus, report: as for `outword.fit`.
        methods: their names.
        words: a corpus of the user's, for the methods that want one.
        id_images: photos of the classes, for the methods that need them.
        store: a store among the sets, if there is one: it has vectors only.
        params: of the methods; the name of an entrant says which were set.
        on_left_out: called with a method and what it lacks, as soon as that is known.
    """
    entered: list[Entrant] = []
    left_out: dict[str, str] = {}

    def leave(method: str, error: OutwordError) -> None:
        left_out[method] = error.message
        on_left_out(method, error.message)

    ready = []
    for method in methods:  # what they lack is said before the first of them takes minutes
        changed = dict(params or {})
        try:
            vectors = make_detector(method, encoder.temperature, changed)
            if Need.PIXELS in vectors.wants():
                changed |= vectors.on_vectors
                vectors = make_detector(method, encoder.temperature, changed)
            check_store(method, vectors, store)
            given: dict[str, Any] = {
                "corpus": words if vectors.corpus == "" else corpus,
                "id_images": id_images if Need.ID_IMAGES in vectors.wants() else None,
            }
            check_inputs(method, vectors, encoder, **given)
        except OutwordError as error:
            leave(method, error)
        else:
            ready.append((method, changed, given))
    remembered: dict[Prompts, Vectors] = {}
    for method, changed, given in ready:
        try:
            prepared = prepare(
                labels,
                encoder=encoder,
                method=method,
                report=report,
                params=changed,
                remembered=remembered,
                **given,
            )
            since = time.perf_counter()
            fitted = prepared.fit().scorer
        except OutwordError as error:
            leave(method, error)
            continue
        told = ", ".join(f"{key}={value}" for key, value in changed.items())
        name = f"{method} ({told})" if told else method
        entered.append(Entrant(name, fitted, time.perf_counter() - since))
    return entered, left_out


def read_set(
    encoder: Encoder,
    paths: Iterable[PathLike],
    *,
    patches: bool,
    left_out: list[tuple[str, str]],
    report: Callable[[int], None] = lambda done: None,
) -> Iterator[Chunk]:
    """The images of a source in chunks; what cannot be read is added to `left_out`, path and reason."""
    done = 0
    for some in vectors_of(encoder, find_source(paths, encoder), patches=patches):
        left_out += some.unreadable
        done += len(some.paths) + len(some.unreadable)
        report(done)
        if len(some.vectors):
            yield Chunk(some.vectors, some.patches)


def compare(entrants: Sequence[Entrant], inside: Iterable[Chunk], outside: Mapping[str, Iterable[Chunk]]) -> list[Row]:
    """A row for each method and OOD set, methods first.

    A chunk is scored by every method as it comes and then forgotten, so that patches never pile up. A method that
    learns from the test images (`sees_order`) is given ID and OOD images as one stream instead, in an order shuffled
    by `SEED`, afresh for each OOD set.

    Args:
        entrants: the fitted methods.
        inside: the ID set, in chunks.
        outside: the OOD sets by name, each in chunks.
    """
    inside_vectors = _score_set(entrants, "", inside)
    rows = []
    for name, chunks in outside.items():
        vectors = _score_set(entrants, name, chunks)
        for entrant in entrants:
            if entrant.vectors.sees_order:
                since = time.perf_counter()
                streamed = stream_scores(entrant.vectors, inside_vectors, vectors, SEED)
                rows.append(_row(entrant, name, *streamed, time.perf_counter() - since))
            else:
                seconds = entrant.seconds[""] + entrant.seconds[name]
                scores = [np.concatenate(entrant.scores[part]) for part in ("", name)]
                rows.append(_row(entrant, name, scores[0], scores[1], seconds))
    order = {entrant.name: at for at, entrant in enumerate(entrants)}
    return sorted(rows, key=lambda row: order[row.method])


def means(rows: Sequence[Row]) -> list[Row]:
    """One row a method: the mean over the OOD sets.

    >>> a = Row("mcm", "x", 0.8, 0.5, 0.5, 0.2, 0.2, 1.0, 2.0)
    >>> b = Row("mcm", "y", 0.6, 0.5, 0.5, 0.2, 0.2, 1.0, 2.0)
    >>> round(means([a, b])[0].auroc, 3)
    0.7
    """
    found = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        mean = {name: float(np.mean([getattr(row, name) for row in own])) for name in FIGURES}
        found.append(Row(method, MEAN if len(own) > 1 else own[0].ood, **mean))
    return found


def _score_set(entrants: Sequence[Entrant], name: str, chunks: Iterable[Chunk]) -> NDArray[np.floating]:
    """Let the methods that do not see the order score a set; its vectors, for those that do."""
    seen: list[NDArray[np.floating]] = []
    for chunk in chunks:
        for entrant in entrants:
            if not entrant.vectors.sees_order:
                entrant.score(name, chunk)
        seen.append(chunk.vectors)
    if not sum(map(len, seen)):
        raise InputError(f"the {name or 'ID'} set has no image that can be read", hint="check its path")
    return np.concatenate(seen)


def stream_scores(
    detector: VectorDetector, inside: NDArray[np.floating], outside: NDArray[np.floating], seed: int
) -> tuple[Array, Array]:
    """ID and OOD scores of a method that learns from the images that it scores: one stream, shuffled by the seed."""
    images = np.concatenate([inside, outside])
    order = np.random.default_rng(seed).permutation(len(images))
    scores = np.empty(len(images))
    detector.reset()
    scores[order] = detector.score(images[order])
    detector.reset()
    return scores[: len(inside)], scores[len(inside) :]


def _row(entrant: Entrant, ood: str, inside: Array, outside: Array, seconds: float) -> Row:
    return Row(
        entrant.name,
        ood,
        auroc(inside, outside),
        aupr(inside, outside, positive="id"),
        aupr(inside, outside, positive="ood"),
        fpr_at_tpr(inside, outside, positive="id"),
        fpr_at_tpr(inside, outside, positive="ood"),
        entrant.fit_seconds,
        seconds,
    )
