"""The judgement of images: score, verdict, labels and wild words with their shares, from one product.

One more product, with a readable vocabulary, says what an image looks like; it decides nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outword.base.terms import IN, OUT, UNCALIBRATED, Basis, VerdictName
from outword.detector.inputs import check_handed
from outword.encoders.base import Pixels, Vectors
from outword.encoders.reading import Chunk
from outword.errors import ImageError
from outword.maths.kernels import to_numpy
from outword.maths.kernels.evidence import Evidence
from outword.maths.methods.needs import from_pixels
from outword.maths.numerics import Array

if TYPE_CHECKING:
    from outword.detector.detector import Detector

FIRED = 0.01  # the least share, of its group and the labels together, of a wild word that is named
Shares = list[tuple[str, float]]


@dataclass(frozen=True)
class Verdict:
    """What is said of one image: its score, on which side of the threshold it lies, and why.

    Higher scores mean more in-distribution.

    Attributes:
        score: of the image.
        verdict: "in" or "out"; "uncalibrated" where there is no threshold.
        labels, words: labels and wild words, or words named for this image, with their shares, the largest first.
        kind: the kind of the nearest label that matched; "" where that is the label itself.
        basis: where the threshold comes from: "calibrated", "reference", "batch" or "formula".
        threshold: the score from which on an image is in; None where there is none.
        p: the share of unrelated photos that score as high (`outword.maths.reference.p_values`); None without such.
        looks_like: names from the detector's vocabulary, best first; none where it has no vocabulary.
    """

    score: float
    verdict: VerdictName
    labels: Shares
    words: Shares
    kind: str
    basis: Basis
    threshold: float | None
    p: float | None
    looks_like: list[str]

    @property
    def label(self) -> str:
        """The nearest label."""
        return self.labels[0][0]

    @property
    def named(self) -> str:
        """The nearest label with the kind that matched: `dog (beagle)`."""
        return with_kind(self.label, self.kind)

    @property
    def share(self) -> float:
        """What the nearest label has."""
        return self.labels[0][1]

    @property
    def fired(self) -> Shares:
        """The wild words with a share that counts."""
        return [pair for pair in self.words if pair[1] >= FIRED]


@dataclass(frozen=True)
class Explanation(Verdict):
    """A verdict with what it hangs on.

    `cut` says in words how the threshold was found, `coverage` how well the encoder knows each of the labels named,
    `in_use` what became of parameters, such as tau, that need not be used as they were given.
    """

    cut: str
    coverage: dict[str, str]
    in_use: dict[str, float]

    @property
    def fits(self) -> str:
        """What p says, in plain words; "" where there is none."""
        return in_words(self.p)


def with_kind(label: str, kind: str) -> str:
    """A label with the kind of it that matched.

    >>> with_kind("dog", "beagle"), with_kind("dog", "")
    ('dog (beagle)', 'dog')
    """
    return f"{label} ({kind})" if kind else label


def in_words(p: float | None) -> str:
    """What a p-value says, rounded down; "" for None.

    >>> in_words(0.008)
    'fits better than 99.2 % of unrelated photos'
    >>> [in_words(p).split()[3] for p in (1.0, 0.5, 0.04, 1 / 2001, 1e-6)]
    ['0', '50', '96', '99.95', '99.99']
    """
    if p is None:
        return ""
    share = math.floor(10_000 * (1 - p) + 1e-6) / 100
    return f"fits better than {share:.{1 if p >= 0.001 else 2}f}".removesuffix(".0") + " % of unrelated photos"


@dataclass(frozen=True, eq=False)
class Verdicts(Iterable[Verdict]):
    """Verdicts of images, as arrays until they are asked for; a device may still be at work on them until then.

    `errors` are of all images that were given, None for most. Those with an error have no verdict: the rest of this is
    of the others.
    """

    detector: Detector
    found: Callable[[], tuple[Array, Evidence]]  # waits for scores and evidence
    named: Callable[[], NDArray[np.int64]]  # waits for what images look like, (n_images, most) places in the vocabulary
    encoded: Any  # what was scored, (n_images, dim), where the encoder left it
    own_words: Sequence[Sequence[str]] | None = None  # words that were named for each image, where evidence is of these
    errors: Sequence[ImageError | None] = ()

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

    def __iter__(self) -> Iterator[Verdict]:
        detector, (scores, evidence) = self.detector, self._found
        labels, threshold = detector.labels, detector.threshold
        words = [detector.wild] * len(scores) if self.own_words is None else self.own_words
        names = detector.vocabulary.names if detector.vocabulary else ()
        kinds = detector.kinds_of(evidence)
        p_values = detector.p_values(scores)
        ps = [None] * len(scores) if p_values is None else p_values.tolist()
        near, fired = (evidence.labels, evidence.label_shares), (evidence.words, evidence.word_shares)
        columns = (column.tolist() for column in (scores, *near, *fired, self.named()))
        for p, kind, wild, score, near_ids, near_shares, fired_ids, fired_shares, seen in zip(
            ps, kinds, words, *columns, strict=True
        ):
            yield Verdict(
                score,
                side(score, threshold),
                [(labels[i], share) for i, share in zip(near_ids, near_shares, strict=True)],
                [(wild[i], share) for i, share in zip(fired_ids, fired_shares, strict=True) if i >= 0],
                kind,
                detector.basis,
                threshold,
                p,
                [names[i] for i in seen],
            )


def judge(
    detector: Detector,
    images: Pixels | NDArray[np.floating],
    top: int = 3,
    *,
    names: Sequence[str] | None = None,
    scores: Array | None = None,
    lenient: bool = False,
) -> Verdicts:
    """Judge images: on the device of the encoder where that is one, from one product of images and texts.

    Images are preprocessed pixels (n_images, height, width, 3), or vectors (n_images, dim). With `top`=0 there is the
    score alone, without labels, words and what an image looks like. `scores` are those of the images, where they are
    known already. `names` are what photos are called, for the methods that want words per image; one that nobody has
    words for is an `ImageError`, or, if that is to be `lenient`, one of the `errors` of what is returned.
    """
    scorer, request = detector.in_force, detector.score_request(images, names)
    temperature = detector.card.encoder.temperature
    if scores is not None:
        vectors, known = request.vectors, partial(_known, scores, scorer.evidence(request.vectors, top, temperature))
        return Verdicts(detector, known, _seen(detector, vectors, top), vectors, errors=[None] * len(images))
    check_handed(detector)
    given = scorer.score_inputs(request)
    vectors, named, errors = given["images"], given.pop("named", None), given.pop("errors", [None] * len(images))
    for name, error in zip(request.names, errors, strict=True):
        if error is not None and not lenient:
            raise ImageError(f"{name!r}: {error.message}", hint=error.hint)
    found = scorer.begin(top=top, temperature=temperature, **given)
    return Verdicts(detector, found, _seen(detector, vectors, top), vectors, named, errors)


def judge_chunk(detector: Detector, chunk: Chunk, top: int = 3) -> tuple[Chunk, Verdicts | None]:
    """Judge the good photos of a chunk, if there are any; in the chunk that is returned more may have an error."""
    names = [photo.name for photo in chunk.good]
    if not names:
        return chunk, None
    judged = judge(detector, chunk.values, top, names=names, lenient=True)
    return _judged(chunk, judged), judged


def judge_chunks(
    detector: Detector, chunks: Iterable[Chunk], top: int = 3
) -> Iterator[tuple[Chunk, list[Verdict | None]]]:
    """Judge chunks, in order: each with the verdicts of its photos, None for a photo that has an error.

    On a device the next chunk is begun before the verdicts of one are made.
    """
    begun: deque[tuple[Chunk, Verdicts | None]] = deque()
    for chunk in chunks:
        on_device = chunk.values.ndim == 4 and detector.encoder.feels_batch
        names = [photo.name for photo in chunk.good]
        judged = judge(detector, chunk.values, top, names=names, lenient=True) if names else None
        begun.append((chunk, judged))
        while len(begun) > on_device:
            yield _with_verdicts(*begun.popleft())
    for one in begun:
        yield _with_verdicts(*one)


def _with_verdicts(unjudged: Chunk, judged: Verdicts | None) -> tuple[Chunk, list[Verdict | None]]:
    if judged is None:
        return unjudged, [None] * len(unjudged.photos)
    chunk = _judged(unjudged, judged)
    return chunk, [verdict for _, verdict in chunk.with_values(list(judged)).pairs()]


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
