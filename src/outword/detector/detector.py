"""The whole chain in readable lines: class names to a detector, images to scores, a score to a verdict and why."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.files import PathLike
from outword.base.prediction import with_kind
from outword.base.reports import Report, quiet
from outword.base.terms import UNCALIBRATED, Basis, Flag, is_known
from outword.base.wording import counted
from outword.detector import artifact
from outword.detector.calibration import calibrate, score_photos
from outword.detector.card import Card, MethodCard
from outword.detector.judge import Explanation, judge, judge_chunk, side
from outword.detector.predictions import Predictions, predict
from outword.encoders import Encoder
from outword.encoders.base import as_list
from outword.encoders.names import named_now
from outword.encoders.reading import Chunk, name_of, read_photos
from outword.errors import ArtifactError, InputError
from outword.maths.kernels.evidence import Evidence
from outword.maths.methods import Need, VectorDetector
from outword.maths.methods.requests import ScoreRequest
from outword.maths.numerics import Array, unit_rows
from outword.maths.reference import p_values
from outword.maths.thresholds import CalibrationMethod, Threshold
from outword.photos.decode import ImageLike
from outword.vectors.same_photo import Hashes
from outword.vectors.vocabulary import Vocabulary
from outword.words.kinds import Meaning
from outword.words.labels import Given

FITTED_ON, REFERENCE, VOCABULARY = "fitted_on", "reference_scores", "vocabulary"  # arrays that are not the method's
ALIKE = "alike_scores"  # nor this one
NOTHING: Hashes = np.zeros(0, np.uint64)


class Detector:
    """Tells whether an image shows one of `labels`; made by `outword.fit` or `outword.load`.

    Attributes:
        scorer: the method, fitted: it sees vectors only.
        labels: the ID labels.
        rows: names of the rows of `scorer.labels_`: the names of each label and its kinds; without kinds the labels.
        wild: the wild words, best first.
        card: where it comes from: method, encoder, corpus, miner and prompts, with parameters and fingerprints, and
            what each label was taken for (`meanings`), where that is known.
        calibration_: the `Threshold` that was fitted to photos of the user's, or None.
        cut_: the `Threshold` from photos of other things, the reference or the batch itself, or None.
        reference_scores: what photos of a reference score that show none of the labels, sorted, (n,) float64, or None.
        alike_scores: what those score that look like a label and have no name, sorted; they may show one or not. None
            where there are none.
        vocabulary: names to say what a photo looks like, or None.
        by_hand: what somebody handed over for the method, by what it is (`handed`); it is not saved.
        encoder_override: whether the encoder was named anew when the detector was loaded.
        fitted_on: hashes of the photos that the method was fitted on (`vectors.same_photo`); None where they are not
            known, since the detector was saved before they were kept.
    """

    def __init__(
        self,
        scorer: VectorDetector,
        labels: Sequence[str],
        wild: Sequence[str],
        card: Card,
        calibration: Threshold | None = None,
        *,
        encoder: Callable[[], Encoder],
        encoder_override: bool = False,
        fitted_on: Hashes | None = NOTHING,
        rows: Sequence[str] | None = None,
        cut: Threshold | None = None,
        reference_scores: ArrayLike | None = None,
        alike_scores: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.scorer = scorer
        self.labels = list(labels)
        self.rows = list(labels if rows is None else rows)
        self.wild = list(wild)
        self.card = card
        self.calibration_ = calibration
        self.encoder_override = encoder_override
        self.fitted_on = fitted_on
        self.cut_ = cut
        self.reference_scores = _sorted(reference_scores)
        self.alike_scores = _sorted(alike_scores)
        self.vocabulary = vocabulary
        self.by_hand: Mapping[Need, Any] = {}
        self._memo: dict[str, Any] = {}
        self._get_encoder = encoder
        self._whole = False

    def __repr__(self) -> str:
        threshold = f"{self.basis} threshold {self.cut.value:.4g}" if self.cut else UNCALIBRATED
        unknown = sum(not is_known(flag) for flag in self.coverage.values())
        labels = counted(len(self.labels), "label") + (f" ({unknown} unknown to the encoder)" if unknown else "")
        return f"<outword.Detector: {self.method}, {labels}, {len(self.wild)} wild words, {threshold}>"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors; loaded when it is first needed."""
        wanted, used = self.card.encoder, self._get_encoder()
        if wanted.fingerprint not in (used.fingerprint, used.exported_from):
            name = named_now(wanted.name, wanted.fingerprint)
            raise ArtifactError(
                f"the detector was made with the encoder {name}, and {used.name} is another one, or another "
                "version of it",
                hint="fit it again, or name the encoder that it was made with",
            )
        return used

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.card.method.name

    @property
    def fingerprint(self) -> str:
        """sha256 of all that the detector is, its threshold included."""
        return artifact.fingerprint(self._saved())

    @property
    def coverage(self) -> Mapping[str, Flag]:
        """How well the encoder knows each label; empty when it cannot tell."""
        return self.card.coverage

    @property
    def meanings(self) -> tuple[Meaning, ...]:
        """What each label was taken for."""
        return self.card.meanings

    @property
    def threshold_(self) -> float | None:
        """The calibrated threshold, or None."""
        return None if self.calibration_ is None else self.calibration_.value

    @property
    def cut(self) -> Threshold | None:
        """The threshold from photos: the calibrated one, else that of the reference or the batch; None without any."""
        return self.calibration_ or self.cut_

    @property
    def basis(self) -> Basis:
        """What the threshold rests on: "calibrated", "reference", "batch", or "formula" where no photos were seen."""
        return self.cut.basis if self.cut else "formula"

    @property
    def threshold(self) -> float | None:
        """The score from which a verdict is `in`: that of the cut, else the method's own, if it has one."""
        return self.cut.value if self.cut else self.in_force.default_threshold_

    @property
    def cut_told(self) -> str:
        """How the threshold was found, in words."""
        if self.cut:
            return f"{self.cut.told}{self._alike_told}"
        return "no threshold yet" if self.threshold is None else "the score's natural cut, not fitted to any photos"

    @property
    def _alike_told(self) -> str:
        """What part in the cut photos had that look like a label and have no name."""
        if self.alike_scores is None or self.cut is None or self.basis != "reference":
            return ""
        counted = self.cut.n_reference > len(cast(Array, self.reference_scores))
        how = "with" if counted else "apart from"
        return f", {how} {len(self.alike_scores):,} without names that look like the labels"

    @property
    def in_force(self) -> VectorDetector:
        """What scores. This is the one place that decides it.

        As soon as there is a cut from photos, that is the whole method. Before, only a score that has a natural cut
        can be judged by, so it is the part of the method that has one (`VectorDetector.relative`).
        """
        return self.scorer if self.cut or self._whole else self.scorer.relative()

    def p_values(self, scores: ArrayLike) -> Array | None:
        """The share of unrelated photos that score as high as each, (n_images,); None without a reference.

        See `outword.maths.reference.p_values` for what that promises. Photos of the reference that look like a label
        and have no name are counted as unrelated, so p may be too large and is not too small.
        """
        known = self.counted_scores
        return None if known is None or self.cut is None else p_values(scores, known)

    @property
    def counted_scores(self) -> Array | None:
        """The scores that p-values count, sorted, (n,); None without a reference."""
        if self.reference_scores is None or self.alike_scores is None:
            return self.reference_scores
        return np.sort(np.concatenate([self.reference_scores, self.alike_scores]))

    def score(self, images: Iterable[ImageLike]) -> Array:
        """Score of each image, (n_images,) float64; higher means more in-distribution.

        A method that learns from what it scores (`scorer.sees_order`) goes on from the images of the last call, in
        the order given; `reset()` starts afresh.
        """
        found = [np.zeros(0)]
        for chunk in self._read(images):
            judged_chunk, judged = judge_chunk(self, chunk.check(), top=0)
            judged_chunk.check()
            if judged:
                found.append(judged.scores)
        return np.concatenate(found)

    def _read(self, images: Iterable[ImageLike], *, hashed: bool = False) -> Iterator[Chunk]:
        return read_photos(as_list(images), self.encoder.loader, self.encoder.chunk, hashed=hashed)

    def predict(self, photos: ImageLike | Iterable[ImageLike]) -> Predictions:
        """A record for each photo, or for a single one: verdict, label, kind, p, score, what it looks like, and why.

        A photo that cannot be read is a record with an error. `predict(photos).to_pandas()` is a table of them,
        `to_csv(path)` a file, and a notebook shows them with thumbnails. Where nothing tells where to cut, as there is
        no reference, 100 photos or more do so themselves: `basis` is "batch".
        """
        return predict(self, photos)

    def calibrate(
        self,
        images: Iterable[ImageLike],
        tpr: float = 0.95,
        method: CalibrationMethod = "quantile",
        others: Iterable[ImageLike] = (),
    ) -> Detector:
        """Set the threshold that accepts a share `tpr` of images like these ID photos; returns self.

        The photos must be others than those that the method was fitted on. The same photo counts once. `others` are
        photos of other things: as few of them are accepted as `tpr` allows (`outword.maths.thresholds.fit_threshold`).
        It warns of few photos, of photos that look like none of the labels, and of a threshold that lets in much of
        what is unrelated (`Threshold.warning`).
        """
        inside, outside = (
            score_photos(self, (chunk.check() for chunk in self._read(photos, hashed=True)), check=Chunk.check)
            for photos in (images, others)
        )
        self.calibration_, told = calibrate(self, inside, outside, tpr, method)
        for warning in told:
            warnings.warn(warning, stacklevel=2)
        return self

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
        """`in` or `out`, by a cut that was found on photos.

        Where there is only the method's own, the verdict says so: `in (uncalibrated)`, `out (uncalibrated)`. A method
        that has none by itself says `uncalibrated`.
        """
        found = side(score, self.threshold)
        return found if self.cut or found == UNCALIBRATED else f"{found} ({UNCALIBRATED})"

    def kinds_of(self, evidence: Evidence) -> list[str]:
        """The kind of the nearest label that matched, of each image; "" where it is the label itself."""
        if self.scorer.owners_ is None or not evidence.labels.shape[1]:
            return [""] * len(evidence.labels)
        return [self._kinds[row] for row in evidence.kinds[:, 0].tolist()]

    @cached_property
    def _owners(self) -> list[int]:
        """The label of each row."""
        return list(range(len(self.rows))) if self.scorer.owners_ is None else self.scorer.owners_.tolist()

    @cached_property
    def _kinds(self) -> list[str]:
        """The name of each row that is a kind; "" for a label's own names."""
        own = [{meaning.label, *meaning.names} for meaning in self.meanings]
        return ["" if name in own[label] else name for name, label in zip(self.rows, self._owners, strict=True)]

    @cached_property
    def label_texts(self) -> dict[str, str]:
        """The label of each text that stands for one in a row: a label itself, or one with a kind (`dog (beagle)`)."""
        labels = {label: label for label in self.labels}
        for row, owner in enumerate(self._owners):
            labels.setdefault(self._named(row), self.labels[owner])
        return labels

    def explain(self, image: ImageLike, top: int = 5) -> Explanation:
        """Verdict, nearest labels with their share, and the wild words that fired.

        A method that learns from what it scores does not learn from this.
        """
        (pixels,) = self.encoder.pixel_chunks([image])
        return self.explain_values(pixels[0], top, name=name_of(image, 0))

    def explain_values(self, values: NDArray[Any], top: int = 5, *, name: str = "") -> Explanation:
        """The same of an image that was decoded, (height, width, 3) as the encoder wants it, or encoded, (dim,).

        Its name is its path, and for the methods that want words per image.
        """
        pupil = self._with(scorer=copy.deepcopy(self.scorer)) if self.scorer.sees_order else self
        (found,) = judge(pupil, values[None], top, names=[name], least=0.0)
        return Explanation(
            **vars(found),
            cut=self.cut_told,
            coverage={label: self.coverage[label] for label, _ in found.labels if label in self.coverage},
            in_use=self.in_force.in_use(),
        )

    def audit(self, top: int = 20) -> list[tuple[str, str, float]]:
        """Mined words closest to an ID label, as (word, label, cosine): likely positives among the wild words.

        A label has its kind beside it, where that is what the word is closest to. Without words there are none.
        """
        labels, wild = self.scorer.labels_, self.scorer.wild_
        cosines = unit_rows(labels[:0] if wild is None else wild) @ unit_rows(labels).T
        nearest, closest = cosines.argmax(axis=1), cosines.max(axis=1, initial=-1)
        order = np.argsort(-closest, kind="stable")[:top]
        return [(self.wild[i], self._named(nearest[i]), float(closest[i])) for i in order]

    def _named(self, row: int) -> str:
        return with_kind(self.labels[self._owners[row]], self._kinds[row])

    def save(self, path: PathLike) -> None:
        """Write the detector to a directory, whole or not at all."""
        artifact.save(path, self._saved())

    def zipped(self, folder: str = "detector.outword") -> bytes:
        """The directory that `save` writes, under this name in a zip file."""
        return artifact.zipped(self._saved(), folder)

    def _saved(self) -> artifact.Saved:
        cuts = {"calibration": self.calibration_, "cut": self.cut_}
        stored = {name: artifact.finite(asdict(cut)) if cut else None for name, cut in cuts.items()}
        arrays = self.scorer.state()
        if self.fitted_on is not None and len(self.fitted_on):
            arrays[FITTED_ON] = self.fitted_on
        if self.reference_scores is not None:
            arrays[REFERENCE] = self.reference_scores
        if self.alike_scores is not None:
            arrays[ALIKE] = self.alike_scores
        if self.vocabulary is not None:
            arrays[VOCABULARY] = self.vocabulary.vectors
        names = self.vocabulary.names if self.vocabulary else ()
        return artifact.Saved({**self.card.as_json(), **stored}, arrays, self.labels, self.wild, self.rows, list(names))

    def with_threshold(self, threshold: Threshold | None) -> Detector:
        """The same detector with another threshold, on its own scores; this one stays as it is, vectors are shared.

        The scores stay what they are, too: where a part of the method is in force, as no cut was known so far, the new
        detector is of that part.
        """
        if threshold is None or self.in_force is self.scorer:
            return self._with(calibration_=threshold)
        method = MethodCard(self.method, self.in_force.params())
        return self._with(calibration_=threshold, scorer=self.in_force, card=replace(self.card, method=method))

    def with_cut(
        self, threshold: Threshold, reference_scores: ArrayLike | None = None, alike_scores: ArrayLike | None = None
    ) -> Detector:
        """The same detector with a cut from photos that show none of its labels, and their scores by its whole method.

        Such scores are those of `whole()`. Without any there are no p-values. A calibrated threshold stays before it.
        """
        known, alike = _sorted(reference_scores), _sorted(alike_scores)
        return self._with(cut_=threshold, reference_scores=known, alike_scores=alike)

    def with_vocabulary(self, vocabulary: Vocabulary) -> Detector:
        """The same detector with other names to say what a photo looks like."""
        return self._with(vocabulary=vocabulary)

    def with_words(self, source: Callable[..., Any]) -> Detector:
        """The same detector with what names words for photos, for the methods that want some (`Need.WORDS`).

        `source` is called with a list of photos, each with `name`, `pixels` and `vector`, and gives a list of words for
        each, or an `ImageError` for a photo that it has none for (`outword_lab.learning.photo_words`). What
        `outword.read_words_per_image` gives is one, and what `outword.encoders.zoc_decoder` gives. It is not saved.
        """
        if not callable(source):
            raise InputError(
                f"words must come from a callable, got {source!r}", hint="of a file: outword.read_words_per_image(FILE)"
            )
        return self.handed(Need.WORDS, source)

    def handed(self, need: Need, given: Any) -> Detector:
        """The same detector with something that its method wants of each photo and cannot find itself."""
        return self._with(by_hand={**self.by_hand, need: given})

    def score_request(self, images: Any, names: Sequence[str] | None = None) -> ScoreRequest:
        """What the method is asked with to score photos, pixels (n, height, width, 3) or vectors (n, dim)."""
        return ScoreRequest(
            find_encoder=lambda: self.encoder,
            images=images,
            names=[""] * len(images) if names is None else names,
            labels=self.labels,
            rows=self.rows,
            find_prompts=lambda: self.card.prompts,
            by_hand=self.by_hand,
            memo=self._memo,
        )

    def whole(self) -> Detector:
        """The same detector, that scores by its whole method also where no cut is known: to find one."""
        return self._with(_whole=True)

    def _with(self, **changes: Any) -> Detector:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def relabel(self, labels: Given, report: Report = quiet) -> Detector:
        """A new detector for other labels, made as this one was; it is not calibrated.

        Encoder, method, corpus, miner and prompts are the same, with the same parameters. Prompts that were learned for
        all labels together are taken along, and what was measured of them does not hold for others.
        """
        from outword.detector.fitting import relabel  # which makes detectors

        return relabel(self, labels, report)


def _sorted(scores: ArrayLike | None) -> Array | None:
    """Scores in order; None where there are none."""
    found = np.zeros(0) if scores is None else np.sort(np.asarray(scores, dtype=np.float64))
    return found if len(found) else None
