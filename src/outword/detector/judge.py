"""The judgement of images: score, verdict, labels and wild words with their shares, from one product.

One more product, with a readable vocabulary, says what an image looks like; it decides nothing.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from outword.base.prediction import Prediction, Shares, label_of
from outword.base.terms import IN, OUT, UNCALIBRATED, Flag, VerdictName
from outword.detector.inputs import check_handed
from outword.encoders.base import Pixels, Vectors
from outword.encoders.reading import Chunk
from outword.errors import ImageError
from outword.maths.kernels import to_numpy
from outword.maths.kernels.evidence import Evidence
from outword.maths.methods.needs import from_pixels
from outword.maths.methods.requests import ScoreRequest
from outword.maths.numerics import Array
from outword.photos.twins import Twins

if TYPE_CHECKING:
    from outword.detector.detector import Detector

Said: TypeAlias = tuple[Chunk, list[Prediction]]  # a chunk, and what is said of each of its photos
FIRED = 0.01  # the least share, of its group and the labels together, of a wild word that is named


@dataclass(frozen=True, kw_only=True)
class Explanation(Prediction):
    """What is said of a photo, with what it depends on; `words` has all that were asked for, however small their share.

    Attributes:
        cut: how the threshold was found, in words.
        coverage: how well the encoder knows each of the labels that are named.
        in_use: what became of parameters, such as tau, that need not be used as they were given.
    """

    cut: str
    coverage: dict[str, Flag]
    in_use: dict[str, float]

    @property
    def fired(self) -> Shares:
        """The wild words with a share that counts."""
        return tuple(pair for pair in self.words if pair[1] >= FIRED)


@dataclass(frozen=True, eq=False)
class Verdicts(Iterable[Prediction]):
    """What is said of images, as arrays until it is asked for; a device may still be at work on them until then.

    `errors` are of all images that were given, None for most. Those with an error have no verdict: the rest of this is
    of the others.
    """

    detector: Detector
    found: Callable[[], tuple[Array, Evidence]]  # waits for scores and evidence
    named: Callable[[], NDArray[np.int64]]  # waits for what images look like, (n_images, most) places in the vocabulary
    encoded: Any  # what was scored, (n_images, dim), where the encoder left it
    paths: Sequence[str]  # what the images are called
    own_words: Sequence[Sequence[str]] | None = None  # words that were named for each image, where evidence is of these
    errors: Sequence[ImageError | None] = ()
    least: float = FIRED

    @cached_property
    def _found(self) -> tuple[Array, Evidence]:
        return self.found()

    @property
    def scores(self) -> Array:
        """(n_images,) float64."""
        return self._found[0]

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors that were scored: of changed pixels, where the method asks for that."""
        return to_numpy(self.encoded)

    def __len__(self) -> int:
        return len(self.encoded)

    def __iter__(self) -> Iterator[Prediction]:
        detector, (scores, evidence) = self.detector, self._found
        labels, threshold, needed = detector.labels, detector.threshold, detector.needed
        words = [detector.wild] * len(scores) if self.own_words is None else self.own_words
        names = detector.vocabulary.names if detector.vocabulary else ()
        kinds = detector.label_rows.kinds_of(evidence)
        p_values = detector.thresholds.p_values(scores)
        ps = [None] * len(scores) if p_values is None else p_values.tolist()
        near, fired = (evidence.labels, evidence.label_shares), (evidence.words, evidence.word_shares)
        columns = (column.tolist() for column in (scores, *near, *fired, self.named()))
        for path, p, kind, wild, score, near_ids, near_shares, fired_ids, fired_shares, seen in zip(
            self.paths, ps, kinds, words, *columns, strict=True
        ):
            verdict = side(score, threshold)
            near_labels = tuple((labels[i], share) for i, share in zip(near_ids, near_shares, strict=True))
            nearest = near_labels[0][0] if near_labels else ""
            shares = zip(fired_ids, fired_shares, strict=True)
            yield Prediction(
                path,
                verdict=verdict,
                label=label_of(verdict, nearest),
                kind=kind,
                nearest=nearest,
                score=score,
                threshold=threshold,
                p=p,
                needed=needed,
                basis=detector.basis,
                looks_like=tuple(names[i] for i in seen),
                labels=near_labels,
                words=tuple((wild[i], share) for i, share in shares if i >= 0 and share >= self.least),
            )


def judge(
    detector: Detector,
    images: Pixels | NDArray[np.floating],
    top: int = 3,
    *,
    names: Sequence[str] | None = None,
    scores: Array | None = None,
    lenient: bool = False,
    least: float = FIRED,
) -> Verdicts:
    """Judge images: on the device of the encoder where that is one, from one product of images and texts.

    Images are preprocessed pixels (n_images, height, width, 3), or vectors (n_images, dim). With `top`=0 there is the
    score alone, without labels, words and what an image looks like. `scores` are those of the images, where they are
    known already. `names` are what photos are called, for the methods that want words per image; one that nobody has
    words for is an `ImageError`, or, if that is to be `lenient`, one of the `errors` of what is returned. Wild words
    with a share below `least` are not named.
    """
    scorer, request = detector.in_force, _request(detector, images, names)
    temperature = detector.card.encoder.temperature
    if scores is not None:
        vectors, known = request.vectors, partial(_known, scores, scorer.evidence(request.vectors, top, temperature))
        errors = [None] * len(images)
        return Verdicts(detector, known, _seen(detector, vectors, top), vectors, request.names, None, errors, least)
    check_handed(detector)
    given = scorer.score_inputs(request)
    vectors, named, errors = given["images"], given.pop("named", None), given.pop("errors", [None] * len(images))
    for name, error in zip(request.names, errors, strict=True):
        if error is not None and not lenient:
            raise ImageError(f"{name!r}: {error.message}", hint=error.hint)
    found = scorer.begin(top=top, temperature=temperature, **given)
    paths = [name for name, error in zip(request.names, errors, strict=True) if error is None]
    return Verdicts(detector, found, _seen(detector, vectors, top), vectors, paths, named, errors, least)


def explain(detector: Detector, values: NDArray[Any], top: int = 5, *, name: str = "") -> Explanation:
    """What is said of an image, and why; see `Detector.explain`.

    It was decoded, (height, width, 3) as the encoder wants it, or encoded, (dim,). Its name is its path, and for the
    methods that want words per image.
    """
    apart = replace(detector, scorer=copy.deepcopy(detector.scorer)) if detector.scorer.sees_order else detector
    (found,) = judge(apart, values[None], top, names=[name], least=0.0)
    coverage = detector.coverage
    return Explanation(
        **vars(found),
        cut=detector.how_cut,
        coverage={label: coverage[label] for label, _ in found.labels if label in coverage},
        in_use=detector.in_force.in_use(),
    )


def _request(detector: Detector, images: Any, names: Sequence[str] | None) -> ScoreRequest:
    """What the method is asked with to score photos, pixels (n, height, width, 3) or vectors (n, dim)."""
    return ScoreRequest(
        find_encoder=lambda: detector.encoder,
        images=images,
        names=[""] * len(images) if names is None else names,
        labels=detector.labels,
        rows=detector.rows,
        find_prompts=lambda: detector.card.prompts,
        by_hand=detector.by_hand,
        memo=detector.memo,
    )


def judge_chunk(detector: Detector, chunk: Chunk, top: int = 3) -> tuple[Chunk, Verdicts | None]:
    """Judge the good photos of a chunk, if there are any; in the chunk that is returned more may have an error."""
    names = [photo.name for photo in chunk.good]
    if not names:
        return chunk, None
    judged = judge(detector, chunk.values, top, names=names, lenient=True)
    return _judged(chunk, judged), judged


def judge_chunks(detector: Detector, chunks: Iterable[Chunk]) -> Iterator[Said]:
    """Judge chunks, in order: each with what is said of each of its photos.

    On a device the next chunk is begun before anything is said of one.
    """
    begun: deque[tuple[Chunk, Verdicts | None]] = deque()
    for chunk in chunks:
        on_device = chunk.values.ndim == 4 and detector.encoder.feels_batch
        names = [photo.name for photo in chunk.good]
        judged = judge(detector, chunk.values, names=names, lenient=True) if names else None
        begun.append((chunk, judged))
        while len(begun) > on_device:
            yield _said(*begun.popleft())
    for one in begun:
        yield _said(*one)


def judged_anew(detector: Detector, records: Sequence[Prediction]) -> list[Prediction]:
    """The records of photos as a detector with another threshold has them: scores are the same."""
    threshold, needed, known = detector.threshold, detector.needed, detector.thresholds
    found = []
    for record in records:
        if record.score is None:
            found.append(record)
            continue
        p_values = known.p_values([record.score])
        p = None if p_values is None else float(p_values[0])
        verdict = side(record.score, threshold)
        label = label_of(verdict, record.nearest)
        cut = replace(record, verdict=verdict, label=label, threshold=threshold, basis=detector.basis)
        found.append(replace(cut, p=p, needed=needed))
    return found


def with_twins(said: Said, twins: Twins) -> list[Prediction]:
    """What is said of the photos of a chunk, with a note on those that look the same as one before them."""
    chunk, records = said
    notes = [twins.note(photo.name, photo.look.fingerprint) for photo in chunk.photos]
    return [replace(one, notes=(*one.notes, *note)) for one, note in zip(records, notes, strict=True)]


def _said(unjudged: Chunk, judged: Verdicts | None) -> Said:
    if judged is None:
        return unjudged, [Prediction(photo.name, error=photo.reason) for photo in unjudged.photos]
    chunk, records = _judged(unjudged, judged), list[Prediction]()
    for photo, record in chunk.with_values(list(judged)).pairs():
        if record is None:
            records.append(Prediction(photo.name, error=photo.reason))
        else:
            records.append(replace(record, notes=photo.look.notes))
    return chunk, records


def _judged(chunk: Chunk, judged: Verdicts) -> Chunk:
    """A chunk with the errors that judging brought."""
    kept = [place for place, error in enumerate(judged.errors) if error is None]
    values = chunk.values if len(kept) == len(chunk.values) else chunk.values[kept]
    return chunk.with_errors(judged.errors).with_values(values)


def _seen(detector: Detector, vectors: Any, top: int) -> Callable[[], NDArray[np.int64]]:
    """What images look like, where that is wanted and known."""
    return detector.vocabulary.begin(vectors, top) if top and detector.vocabulary else partial(_nothing, len(vectors))


def _known(scores: Array, evidence: Evidence) -> tuple[Array, Evidence]:
    return scores, evidence


def _nothing(n_images: int) -> NDArray[np.int64]:
    return np.zeros((n_images, 0), np.int64)


def takes_vectors(detector: Detector) -> bool:
    """Whether vectors are enough to judge by, without the photos themselves."""
    return not from_pixels(detector.scorer.wants())


def side(score: float, threshold: float | None) -> VerdictName:
    """On which side of a threshold a score lies: "in" or "out"; "uncalibrated" where there is none.

    >>> side(0.5, 0.5), side(0.4, 0.5), side(0.5, None)
    ('in', 'out', 'uncalibrated')
    """
    if threshold is None:
        return UNCALIBRATED
    return IN if score >= threshold else OUT
