"""The whole chain in readable lines: class names to a detector, images to scores, a score to a verdict and why."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from outword.detector import artifact
from outword.detector.judge import Evidence, Perturbing, Shares, largest, shares
from outword.encoders import Encoder
from outword.encoders.base import Pixels, several
from outword.errors import ArtifactError, InputError
from outword.maths.kernels.rows import product, whole_width
from outword.maths.methods import Need, VectorDetector
from outword.maths.numerics import Array, softmax, unit_rows
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_threshold
from outword.photos.images import ImageLike
from outword.vectors.fitted import Hashes, any_of, collected, hashes_of_files, hashes_of_vectors
from outword.vectors.id_images import a_few
from outword.vectors.wild import Report, quiet
from outword.words.corpora import is_named

UNCALIBRATED = "uncalibrated"
FITTED_ON = "fitted_on"  # what an artifact calls the hashes of the photos
NOTHING = collected()
BLOCK = 512  # rows that become unit vectors together: their float64 copies stay in the cache, four times as fast
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Explanation:
    """A verdict and its reasons.

    `coverage` says how well the encoder knows each of the labels named, `in_use` what became of parameters, such as
    tau, that need not be used as they were given.
    """

    score: float
    verdict: str
    threshold: float | None
    calibrated: bool
    labels: Shares
    words: Shares
    coverage: dict[str, str]
    in_use: dict[str, float]


class Detector:
    """Tells whether an image shows one of `labels`; made by `outword.fit` or `outword.load`.

    Attributes:
        scorer: the method, fitted: it sees vectors only.
        labels: the ID labels.
        wild: the wild words, best first.
        card: where it comes from: method, encoder, corpus, miner and prompts, with parameters and fingerprints.
        calibration_: the fitted `Threshold`, or None.
        elsewhere: whether the encoder was named anew when the detector was loaded.
        fitted_on: hashes of the photos that the method was fitted on (`vectors.fitted`); None where they are not known,
            since the detector was saved before they were kept.
    """

    def __init__(
        self,
        scorer: VectorDetector,
        labels: Sequence[str],
        wild: Sequence[str],
        card: dict[str, Any],
        calibration: Threshold | None = None,
        *,
        encoder: Callable[[], Encoder],
        elsewhere: bool = False,
        fitted_on: Hashes | None = NOTHING,
    ) -> None:
        self.scorer = scorer
        self.labels = list(labels)
        self.wild = list(wild)
        self.card = card
        self.calibration_ = calibration
        self.elsewhere = elsewhere
        self.fitted_on = fitted_on
        self._get_encoder = encoder
        self._rows: tuple[NDArray[np.int64], Array] | None = None

    def __repr__(self) -> str:
        threshold = UNCALIBRATED if self.threshold_ is None else f"threshold {self.threshold_:.4g}"
        return f"<outword.Detector: {self.method}, {len(self.labels)} labels, {len(self.wild)} wild words, {threshold}>"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors; loaded when it is first needed."""
        wanted, used = self.card["encoder"], self._get_encoder()
        if wanted["fingerprint"] not in (used.fingerprint, used.exported_from):
            raise ArtifactError(
                f"the detector was made with the encoder {wanted['name']}, and {used.name} is another one, or another "
                "version of it",
                hint="fit it again, or name the encoder that it was made with",
            )
        return used

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.card["method"]["name"])

    @property
    def fingerprint(self) -> str:
        """sha256 of all that the detector is, its threshold included."""
        return artifact.fingerprint(self._saved())

    @property
    def coverage(self) -> dict[str, str]:
        """How well the encoder knows each label; empty when it cannot tell."""
        flags: dict[str, str] = self.card["coverage"]
        return flags

    @property
    def threshold_(self) -> float | None:
        """The calibrated threshold, or None."""
        return None if self.calibration_ is None else self.calibration_.value

    @property
    def cut(self) -> float | None:
        """The score from which a verdict is `in`: the calibrated threshold, else the natural cut, if there is one."""
        return self.scorer.natural_cut_ if self.calibration_ is None else self.calibration_.value

    def score(self, images: Iterable[ImageLike]) -> Array:
        """Score of each image, (n_images,) float64; higher means more in-distribution.

        A method that learns from what it scores (`vectors.sees_order`) goes on from the images of the last call, in
        the order given; `reset()` starts afresh.
        """
        scores = [self.score_pixels(pixels)[0] for pixels in self.encoder.pixel_chunks(images)]
        return np.concatenate([np.zeros(0), *scores])

    def score_pixels(self, pixels: Pixels) -> tuple[Array, NDArray[np.float32]]:
        """Scores of preprocessed pixels, and the vectors that were scored: of changed pixels, where the method asks."""
        wants = self.scorer.wants()
        if Need.PATCHES in wants:
            vectors, patches = self.encoder.encode_patches(pixels)
            return self.score_vectors(vectors, patches), vectors
        if Need.PIXELS in wants:
            method = cast(Perturbing, self.scorer)
            vectors = self.encoder.encode_perturbed(pixels, method.gradient, method.epsilon)
        else:
            vectors = self.encoder.encode_pixels(pixels)
        return self.score_vectors(vectors), vectors

    def score_vectors(self, vectors: NDArray[np.floating], patches: NDArray[np.floating] | None = None) -> Array:
        """Scores of image vectors (n_images, dim), and of those of their patches where the method asks for them."""
        return self.scorer.score(vectors, patches=patches)

    def calibrate(
        self, images: Iterable[ImageLike], tpr: float = 0.95, method: CalibrationMethod = "quantile"
    ) -> Detector:
        """Set the threshold that accepts a share `tpr` of images like these ID photos; returns self.

        The photos must be others than those that the method was fitted on.
        """
        photos = several(images)
        with self.afresh():
            scored = [self.score_pixels(pixels) for pixels in self.encoder.pixel_chunks(photos)]
        self.check_unfitted(_hashed(photos, (vectors for _, vectors in scored)))
        scores = np.concatenate([np.zeros(0), *(scores for scores, _ in scored)])
        self.calibration_ = fit_threshold(scores, tpr, method)
        return self

    def check_unfitted(self, photos: Iterable[tuple[str, Iterable[int | None]]]) -> None:
        """Raise if the method was fitted on some of these photos: what each is called, and its hashes."""
        if self.fitted_on is None or not len(self.fitted_on):
            return
        known = self.fitted_on
        seen = [(name, any_of(hashes, known)) for name, hashes in photos]
        if fitted := [name for name, found in seen if found]:
            raise InputError(
                f"{len(fitted):,} of {len(seen):,} photos are among those that {self.method} was fitted on, and a "
                f"threshold from them would be too high: {a_few(fitted)}",
                hint="leave them out, and calibrate on other photos of the classes",
            )

    def reset(self) -> None:
        """Forget the images that were scored; for methods that learn from them."""
        self.scorer.reset()

    @contextmanager
    def afresh(self) -> Iterator[None]:
        """A block in which a method that learns from what it scores starts anew; what it learns there is forgotten."""
        self.reset()
        try:
            yield
        finally:
            self.reset()

    def verdict(self, score: float) -> str:
        """`in` or `out`; while no threshold was fitted the natural cut is used, and the verdict says so."""
        if self.cut is None:
            return UNCALIBRATED
        side = "in" if score >= self.cut else "out"
        return side if self.calibration_ else f"{side} ({UNCALIBRATED})"

    def explain(self, image: ImageLike, top: int = 5) -> Explanation:
        """Verdict, nearest labels with their share, and the wild words that fired.

        A method that learns from what it scores does not learn from this.
        """
        (pixels,) = self.encoder.pixel_chunks([image])
        pupil = copy.copy(self)
        if self.scorer.sees_order:
            pupil.scorer = copy.deepcopy(self.scorer)
        scores, vectors = pupil.score_pixels(pixels)
        score, found = float(scores[0]), self.evidence(vectors, top)[0]
        return Explanation(
            score=score,
            verdict=self.verdict(score),
            threshold=self.cut,
            calibrated=self.calibration_ is not None,
            labels=found.labels,
            words=found.words,
            coverage={label: flag for label, flag in self.coverage.items() if label in dict(found.labels)},
            in_use=self.scorer.in_use(),
        )

    def evidence(self, images: NDArray[np.floating], top: int = 5) -> list[Evidence]:
        """Shares for image vectors (n_images, dim), as the score sees them, group by group.

        With `Q_b` the mass of group b, a word of that group has the share `e^h / (P + Q_b)`, and a label the mean over
        groups of the same; without wild words the labels have it all. A method that deals its words into no groups
        has them all in one. One that learned the classes from ID images gives its own shares (`class_logits`).
        """
        if (learned := self.scorer.class_logits(images)) is not None:
            return self._learned_evidence(*learned, top)
        return self._shared_evidence(images, top)

    def _shared_evidence(self, images: NDArray[np.floating], top: int) -> list[Evidence]:
        temperature = self.card["encoder"]["temperature"]
        if not self.scorer.own_temperature:
            temperature = self.scorer.params().get("temperature", temperature)
        groups, k = self._groups(), len(self.labels)
        if self._rows is None or not np.array_equal(self._rows[0], groups):
            rows = self._text_rows(groups)
            self._rows = groups, np.pad(rows, ((0, whole_width(len(rows)) - len(rows)), (0, 0)))
        n_texts = k + groups.size
        cosines = product(images.astype(np.float64, order="C"), self._rows[1].T)[:, :n_texts].astype(np.float32)
        words = cosines[:, k:].reshape(len(cosines), *groups.shape)
        for_labels, near, for_words = shares(cosines[:, :k], words, temperature, top)
        found = []
        for key, p, b, log_q in zip(cosines, for_labels, near, for_words, strict=True):
            best = largest(log_q, top)
            wild = zip(groups[b].ravel()[best], np.exp(log_q[best]), strict=True)
            labels = [(self.labels[i], float(p[i])) for i in largest(key[:k], top)]
            found.append(Evidence(labels, [(self.wild[i], float(q)) for i, q in wild]))
        return found

    def _groups(self) -> NDArray[np.int64]:
        """The groups of wild words, (n_groups, size) indices; one of them all where the method deals none."""
        return self.scorer.state().get("groups", np.arange(len(self.wild))[None])

    def _learned_evidence(self, classes: NDArray[np.int64], logits: Array, top: int) -> list[Evidence]:
        shares = np.zeros((len(logits), len(self.labels)))
        shares[:, classes] = softmax(logits)
        return [Evidence([(self.labels[i], float(row[i])) for i in largest(row, top)], []) for row in shares]

    def audit(self, top: int = 20) -> list[tuple[str, str, float]]:
        """Mined words closest to an ID label, as (word, label, cosine): likely positives among the wild words."""
        rows, k = self._text_rows(np.arange(len(self.wild))), len(self.labels)
        cosines = rows[k:] @ rows[:k].T
        nearest, closest = cosines.argmax(axis=1), cosines.max(axis=1, initial=-1)
        order = np.argsort(-closest, kind="stable")[:top]
        return [(self.wild[i], self.labels[nearest[i]], float(closest[i])) for i in order]

    def save(self, path: PathLike) -> None:
        """Write the detector to a directory, whole or not at all."""
        artifact.save(path, self._saved())

    def zipped(self, folder: str = "detector.outword") -> bytes:
        """The directory that `save` writes, under this name in a zip file."""
        return artifact.zipped(self._saved(), folder)

    def _saved(self) -> artifact.Saved:
        stored = artifact.finite(asdict(self.calibration_)) if self.calibration_ else None
        arrays = self.scorer.state()
        if self.fitted_on is not None and len(self.fitted_on):
            arrays[FITTED_ON] = self.fitted_on
        return artifact.Saved({**self.card, "calibration": stored}, arrays, self.labels, self.wild)

    def with_threshold(self, threshold: Threshold | None) -> Detector:
        """The same detector with another threshold; vectors are shared, and this one stays as it is."""
        other = copy.copy(self)
        other.calibration_ = threshold
        return other

    def relabel(self, labels: Iterable[str] | Mapping[str, str], report: Report = quiet) -> Detector:
        """A new detector for other labels, made as this one was; it is not calibrated.

        Encoder, method, corpus, miner and prompts are the same, with the same parameters.
        """
        corpus = self.card["corpus"]["name"] if self.wild else None
        own_words, own_photos = corpus is not None and not is_named(corpus), Need.ID_IMAGES in self.scorer.wants()
        if own_words or own_photos:
            lost = "photos that it was fitted on" if own_photos else f"word list {corpus}"
            raise InputError(
                f"{self.method} cannot be made for other labels: the {lost} did not come along",
                hint='make it with "outword fit"',
            )
        miner = self.card.get("miner", {"name": None, "parameters": {}})
        from outword.detector.fitting import fit  # which makes detectors

        return fit(
            labels,
            encoder=self.encoder,
            corpus=corpus,
            method=self.method,
            miner=miner["name"],
            prompts=self.card["prompts"]["name"],
            miner_params=miner["parameters"],
            report=report,
            **self.card["method"]["parameters"],
        )

    def _text_rows(self, words: NDArray[np.int64]) -> Array:
        """Unit vectors of the labels, then of these wild words, for explanations."""
        parts = [self.scorer.labels_] + ([] if self.scorer.wild_ is None else [self.scorer.wild_[words.ravel()]])
        blocks = (part[start : start + BLOCK] for part in parts for start in range(0, len(part), BLOCK))
        return np.concatenate([unit_rows(block) for block in blocks])


def _hashed(
    photos: Sequence[ImageLike], vectors: Iterable[NDArray[np.float32]]
) -> Iterator[tuple[str, list[int | None]]]:
    """What each photo is called, and the hashes of its file, if it is one, and of its vector."""
    rows = (row for part in vectors for row in hashes_of_vectors(part))
    for place, ((photo, content), row) in enumerate(zip(hashes_of_files(photos), rows, strict=True)):
        name = repr(os.fspath(photo)) if isinstance(photo, str | os.PathLike) else f"images[{place}]"
        yield name, [content, row]
