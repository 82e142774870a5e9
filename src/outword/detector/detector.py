"""The whole chain in readable lines: class names to a detector, images to scores, a score to a verdict and why."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from outword.detector import artifact
from outword.detector.judge import UNCALIBRATED, Explanation, judge, sides_of
from outword.detector.recipe import resolve_card
from outword.encoders import Encoder
from outword.encoders.base import as_list
from outword.errors import ArtifactError, InputError
from outword.maths.methods import Need, VectorDetector
from outword.maths.numerics import Array, unit_rows
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_threshold
from outword.photos.decode import ImageLike
from outword.vectors.fitted import Hashes, any_of, collected, hashes_of_files, hashes_of_vectors
from outword.vectors.id_images import a_few
from outword.vectors.wild import Report, quiet
from outword.words.corpora import is_named
from outword.words.labels import Given

FITTED_ON = "fitted_on"  # what an artifact calls the hashes of the photos
NOTHING = collected()
PathLike = str | os.PathLike[str]


class Detector:
    """Tells whether an image shows one of `labels`; made by `outword.fit` or `outword.load`.

    Attributes:
        scorer: the method, fitted: it sees vectors only.
        labels: the ID labels.
        wild: the wild words, best first.
        card: where it comes from: method, encoder, corpus, miner and prompts, with parameters and fingerprints.
        calibration_: the fitted `Threshold`, or None.
        encoder_override: whether the encoder was named anew when the detector was loaded.
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
        encoder_override: bool = False,
        fitted_on: Hashes | None = NOTHING,
    ) -> None:
        self.scorer = scorer
        self.labels = list(labels)
        self.wild = list(wild)
        self.card = card
        self.calibration_ = calibration
        self.encoder_override = encoder_override
        self.fitted_on = fitted_on
        self._get_encoder = encoder

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
        return cast("dict[str, str]", self.card["coverage"])

    @property
    def threshold_(self) -> float | None:
        """The calibrated threshold, or None."""
        return None if self.calibration_ is None else self.calibration_.value

    @property
    def threshold(self) -> float | None:
        """The score from which a verdict is `in`: the calibrated threshold, else the method's own, if it has one."""
        return self.scorer.default_threshold_ if self.calibration_ is None else self.calibration_.value

    def score(self, images: Iterable[ImageLike]) -> Array:
        """Score of each image, (n_images,) float64; higher means more in-distribution.

        A method that learns from what it scores (`scorer.sees_order`) goes on from the images of the last call, in
        the order given; `reset()` starts afresh.
        """
        scores = [judge(self, pixels, 0).scores for pixels in self.encoder.pixel_chunks(images)]
        return np.concatenate([np.zeros(0), *scores])

    def calibrate(
        self, images: Iterable[ImageLike], tpr: float = 0.95, method: CalibrationMethod = "quantile"
    ) -> Detector:
        """Set the threshold that accepts a share `tpr` of images like these ID photos; returns self.

        The photos must be others than those that the method was fitted on.
        """
        photos = as_list(images)
        with self.isolated():
            judged = [judge(self, pixels, 0) for pixels in self.encoder.pixel_chunks(photos)]
        self.check_unfitted(_hashed(photos, (part.vectors for part in judged)))
        scores = np.concatenate([np.zeros(0), *(part.scores for part in judged)])
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
    def isolated(self) -> Iterator[None]:
        """A block in which a method that learns from what it scores starts anew; what it learns there is forgotten."""
        self.reset()
        try:
            yield
        finally:
            self.reset()

    def verdict(self, score: float) -> str:
        """`in` or `out`; while no threshold was fitted the method's own is used, and the verdict says so."""
        return sides_of(self)[self.threshold is not None and bool(score >= self.threshold)]

    def explain(self, image: ImageLike, top: int = 5) -> Explanation:
        """Verdict, nearest labels with their share, and the wild words that fired.

        A method that learns from what it scores does not learn from this.
        """
        (pixels,) = self.encoder.pixel_chunks([image])
        return self.explain_values(pixels[0], top)

    def explain_values(self, values: NDArray[Any], top: int = 5) -> Explanation:
        """The same of an image that was decoded, (height, width, 3) as the encoder wants it, or encoded, (dim,)."""
        pupil = copy.copy(self)
        if self.scorer.sees_order:
            pupil.scorer = copy.deepcopy(self.scorer)
        (found,) = judge(pupil, values[None], top)
        return Explanation(
            found.score,
            found.verdict,
            found.labels,
            found.words,
            threshold=self.threshold,
            calibrated=self.calibration_ is not None,
            coverage={label: self.coverage[label] for label, _ in found.labels if label in self.coverage},
            in_use=self.scorer.in_use(),
        )

    def audit(self, top: int = 20) -> list[tuple[str, str, float]]:
        """Mined words closest to an ID label, as (word, label, cosine): likely positives among the wild words."""
        labels, wild = self.scorer.labels_, self.scorer.wild_
        cosines = unit_rows(labels[:0] if wild is None else wild) @ unit_rows(labels).T
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

    def relabel(self, labels: Given, report: Report = quiet) -> Detector:
        """A new detector for other labels, made as this one was; it is not calibrated.

        Encoder, method, corpus, miner and prompts are the same, with the same parameters.
        """
        corpus = self.card.get("corpus", {}).get("name")
        own_words, own_photos = corpus is not None and not is_named(corpus), Need.ID_IMAGES in self.scorer.wants()
        if own_words or own_photos:
            lost = "photos that it was fitted on" if own_photos else f"word list {corpus}"
            raise InputError(
                f"{self.method} cannot be made for other labels: the {lost} did not come along",
                hint='make it with "outword fit"',
            )
        from outword.detector.fitting import prepare  # which makes detectors

        return prepare(resolve_card(self.card, self.encoder), labels, report=report).fit()


def _hashed(
    photos: Sequence[ImageLike], vectors: Iterable[NDArray[np.float32]]
) -> Iterator[tuple[str, list[int | None]]]:
    """What each photo is called, and the hashes of its file, if it is one, and of its vector."""
    rows = (row for part in vectors for row in hashes_of_vectors(part))
    for place, ((photo, content), row) in enumerate(zip(hashes_of_files(photos), rows, strict=True)):
        name = repr(os.fspath(photo)) if isinstance(photo, str | os.PathLike) else f"images[{place}]"
        yield name, [content, row]
