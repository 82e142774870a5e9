"""A detector: what it is made of, and what it says of photos and does with them, in readable lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from outword.base.files import PathLike
from outword.base.odds import Odds
from outword.base.reports import Report, quiet
from outword.base.terms import UNCALIBRATED, Basis, Flag, is_known
from outword.base.wording import counted
from outword.detector import artifact
from outword.detector.calibration import calibrate, score_photos
from outword.detector.card import Card, MethodCard
from outword.detector.judge import Explanation, explain, judge_chunk, side
from outword.detector.label_rows import LabelRows, label_rows
from outword.detector.labels_report import LabelsReport, report_labels
from outword.detector.predictions import Predictions, predict
from outword.detector.saving import saved_form
from outword.detector.thresholds import Thresholds
from outword.encoders import Encoder
from outword.encoders.base import as_list
from outword.encoders.names import named_now
from outword.encoders.reading import Chunk, name_of, read_photos
from outword.errors import ArtifactError, InputError
from outword.maths.methods import Need, VectorDetector
from outword.maths.numerics import Array
from outword.maths.thresholds import CalibrationMethod, Threshold
from outword.photos.decode import ImageLike
from outword.vectors.same_photo import Hashes
from outword.vectors.vocabulary import Vocabulary
from outword.words.labels import Given

NOTHING: Hashes = np.zeros(0, np.uint64)


@dataclass(eq=False, repr=False, kw_only=True)
class Detector:
    """Tells whether an image shows one of `labels`; made by `outword.fit` or `outword.load`.

    Attributes:
        scorer: the method, fitted: it sees vectors only.
        labels: the ID labels.
        rows: names of the rows of `scorer.labels_`: the names of each label and its kinds; without kinds the labels.
        wild: the wild words, best first.
        card: how it was made, and what each label was taken for.
        find_encoder: gives the encoder that made the vectors; see `encoder`.
        thresholds: the calibrated threshold, the one from photos of other things, and what such photos score.
        vocabulary: names to say what a photo looks like, or None.
        fitted_on: hashes of the photos that the method was fitted on (`vectors.same_photo`); None where they are not
            known, since the detector was saved before they were kept.
        encoder_override: whether the encoder was named anew when the detector was loaded.
        by_hand: what somebody handed over for the method, by what it is (`with_words`); it is not saved.
        by_whole_method: whether its whole method scores also where no threshold from photos is known: to find one.
        refines: whether the photos that are asked about may refine the threshold (`Detector.fixed`).
        memo: what the method keeps from one request to the next.
    """

    scorer: VectorDetector
    labels: list[str]
    rows: list[str]
    wild: list[str]
    card: Card
    find_encoder: Callable[[], Encoder]
    thresholds: Thresholds = field(default_factory=Thresholds)
    vocabulary: Vocabulary | None = None
    fitted_on: Hashes | None = field(default_factory=lambda: NOTHING)
    encoder_override: bool = False
    by_hand: Mapping[Need, Any] = field(default_factory=dict)
    by_whole_method: bool = False
    refines: bool = True
    memo: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        threshold = f"{self.basis} threshold {self.cut.value:.4g}" if self.cut else UNCALIBRATED
        unknown = sum(not is_known(flag) for flag in self.coverage.values())
        labels = counted(len(self.labels), "label") + (f" ({unknown} unknown to the encoder)" if unknown else "")
        return f"<outword.Detector: {self.method}, {labels}, {len(self.wild)} wild words, {threshold}>"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors; loaded when it is first needed."""
        wanted, used = self.card.encoder, self.find_encoder()
        if wanted.fingerprint not in (used.fingerprint, used.exported_from):
            name = named_now(wanted.name, wanted.fingerprint)
            raise ArtifactError(
                f"the detector was made with the encoder {name}, and {used.name} is another one, or another "
                "version of it",
                hint="fit it again, or name the encoder that it was made with",
            )
        return used

    @cached_property
    def label_rows(self) -> LabelRows:
        """Which label, and which kind of it, each of `rows` stands for."""
        return label_rows(self.labels, self.rows, self.scorer.owners_, self.card.meanings)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.card.method.name

    @property
    def coverage(self) -> Mapping[str, Flag]:
        """How well the encoder knows each label; empty when it cannot tell."""
        return self.card.coverage

    @property
    def odds(self) -> tuple[Odds, ...]:
        """Which share of each label's photos will be in, as far as that is known for the threshold in use."""
        return () if self.basis == "calibrated" else self.thresholds.odds

    @property
    def labels_report(self) -> LabelsReport:
        """What is made of each label: sense, kinds, how well the encoder knows it, odds, and what to do.

        Printed it is a line a label, in a notebook a table; `labels_report.weak` are those to look after.
        """
        return report_labels(self)

    @property
    def fingerprint(self) -> str:
        """sha256 of all that the detector is, its threshold included."""
        return artifact.fingerprint(saved_form(self))

    @property
    def calibration_(self) -> Threshold | None:
        """The threshold that was fitted to photos of the user's, or set by hand; or None."""
        return self.thresholds.calibrated

    @property
    def threshold_(self) -> float | None:
        """The value of the calibrated threshold, or None."""
        return None if self.calibration_ is None else self.calibration_.value

    @property
    def cut(self) -> Threshold | None:
        """The calibrated threshold, else that of a reference, of imagined photos or of the batch; None without any."""
        return self.thresholds.chosen

    @property
    def basis(self) -> Basis:
        """What the threshold rests on: "calibrated", "reference", "imagined", "batch", or "formula"."""
        return self.thresholds.basis

    @property
    def threshold(self) -> float | None:
        """The score from which a verdict is `in`: that of `cut`, else the method's own, if it has one."""
        return self.cut.value if self.cut else self.in_force.default_threshold_

    @property
    def needed(self) -> float | None:
        """The p of a photo whose score is the threshold: what it takes to be in; None where p is not known."""
        found = None if self.threshold is None else self.thresholds.p_values([self.threshold])
        return None if found is None else float(found[0])

    @property
    def how_cut(self) -> str:
        """How the threshold was found, in words."""
        return self.thresholds.describe(self.threshold)

    @property
    def in_force(self) -> VectorDetector:
        """What scores. This is the one place that decides it.

        As soon as there is a threshold from photos, that is the whole method. Before, only a score that has a natural
        cut can be judged by, so it is the part of the method that has one (`VectorDetector.relative`).
        """
        return self.scorer if self.cut or self.by_whole_method else self.scorer.relative()

    def verdict(self, score: float) -> str:
        """`in` or `out`, by a threshold that was found on photos.

        Where there is only the method's own, the verdict says so: `in (uncalibrated)`, `out (uncalibrated)`. A method
        that has none by itself says `uncalibrated`.
        """
        found = side(score, self.threshold)
        return found if self.cut or found == UNCALIBRATED else f"{found} ({UNCALIBRATED})"

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

    def reset(self) -> None:
        """Forget the images that were scored; for methods that learn from them."""
        self.scorer.reset()

    def predict(self, photos: ImageLike | Iterable[ImageLike]) -> Predictions:
        """A record for each photo, or for a single one: verdict, label, kind, p, score, what it looks like, and why.

        Photos are paths, bytes, PIL images or arrays; or all that `outword score` takes: folders, globs, tars, tables,
        lists, URLs and stores, whose records are in memory together (`outword.scoring.run` streams any number). A photo
        that cannot be read is a record with an error. `predict(photos).to_pandas()` is a table of them, `to_csv(path)`
        a file, and a notebook shows them with thumbnails. An imagined threshold is refined by these photos, and by no
        others (docs/imagined.md); `fixed()` keeps it as it is.
        """
        return predict(self, photos)

    def fixed(self) -> Detector:
        """The same detector with a threshold that no photos refine: verdicts do not depend on what else is asked."""
        return replace(self, refines=False)

    def explain(self, image: ImageLike, top: int = 5) -> Explanation:
        """Verdict, nearest labels with their share, and the wild words that fired.

        A method that learns from what it scores does not learn from this.
        """
        (pixels,) = self.encoder.pixel_chunks([image])
        return explain(self, pixels[0], top, name=name_of(image, 0))

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
        threshold, told = calibrate(self, inside, outside, tpr, method)
        self.thresholds = replace(self.thresholds, calibrated=threshold)
        for warning in told:
            warnings.warn(warning, stacklevel=2)
        return self

    def save(self, path: PathLike) -> None:
        """Write the detector to a directory, whole or not at all."""
        artifact.save(path, saved_form(self))

    def with_threshold(self, threshold: Threshold | None) -> Detector:
        """The same detector with another threshold, on its own scores; this one stays as it is, vectors are shared.

        The scores stay what they are, too: where a part of the method is in force, as no cut was known so far, the new
        detector is of that part.
        """
        thresholds, part = replace(self.thresholds, calibrated=threshold), self.in_force
        if threshold is None or part is self.scorer:
            return replace(self, thresholds=thresholds)
        card = replace(self.card, method=MethodCard(self.method, part.params()))
        return replace(self, thresholds=thresholds, scorer=part, card=card)

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
        return replace(self, by_hand={**self.by_hand, Need.WORDS: source})

    def relabel(self, labels: Given, report: Report = quiet) -> Detector:
        """A new detector for other labels, made as this one was; it is not calibrated.

        Encoder, method, corpus, miner and prompts are the same, with the same parameters. Prompts that were learned for
        all labels together are taken along, and what was measured of them does not hold for others.
        """
        from outword.detector.fitting import relabel  # which makes detectors

        return relabel(self, labels, report)
