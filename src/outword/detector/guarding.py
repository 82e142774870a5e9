"""A classifier with a guard before it, that answers None for a photo of none of its classes, and says why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from outword.base.prediction import Prediction
from outword.base.terms import IN, UNCALIBRATED
from outword.base.wording import a_few
from outword.detector.detector import Detector
from outword.detector.sources import is_path, is_place
from outword.encoders.base import as_list, is_one
from outword.errors import InputError
from outword.photos.decode import ImageLike


@dataclass(frozen=True)
class Guarded:
    """What becomes of one photo.

    Attributes:
        answer: the classifier's; None where it was not asked.
        reason: why it was not: the photo shows none of the classes, or cannot be read; "" where it was.
        prediction: what the detector said of the photo.
    """

    answer: Any
    reason: str
    prediction: Prediction


class Guard:
    """Asks a classifier only about photos that show one of the classes; of the others, the answer is None.

        guard = outword.Guard(classifier, outword.fit(["cat", "dog"]))
        guard("a.jpg")                    # what classifier("a.jpg") gives, or None
        guard.check("a.jpg").reason       # why it was None

    The classifier gets photos as they were given here, paths, bytes, PIL images or arrays, and what it raises goes
    through. A photo that cannot be read is None, too; a path with no file behind it is an error, and no answer. `check`
    raises for neither, and says why.

    Args:
        classifier: any callable, from a photo to an answer.
        detector: says which photos show one of the classes; made of the names of the classifier's.
        batch: whether the classifier takes a list of photos, and gives as many answers.
    """

    def __init__(self, classifier: Callable[[Any], Any], detector: Detector, *, batch: bool = False) -> None:
        if not callable(classifier):
            raise InputError(f"classifier must be a callable, got {classifier!r}", hint="pass a function of a photo")
        if not isinstance(detector, Detector):
            raise InputError(
                f"detector must be an outword.Detector, got {detector!r}",
                hint="make one of the names of the classes: outword.fit(names)",
            )
        self.classifier = classifier
        self.detector = detector
        self.batch = batch

    def __call__(self, photos: ImageLike | Iterable[ImageLike]) -> Any:
        """The answer to a photo, or a list of answers to any number; None where a photo is none of the classes.

        A path with no file behind it is an `InputError`, before the classifier is asked about any photo.
        """
        given = [photos] if is_one(photos) else as_list(photos)
        if missing := [str(photo) for photo in given if _is_missing(photo)]:
            hint = "check the path; guard.check(photos) raises nothing, and says why each answer is None"
            raise InputError(f"there is no file at {a_few(missing)}", hint=hint)
        answers = [one.answer for one in self._checked(given)]
        return answers[0] if is_one(photos) else answers

    @overload
    def check(self, photos: ImageLike) -> Guarded: ...  # type: ignore[overload-overlap]
    @overload
    def check(self, photos: Iterable[ImageLike]) -> list[Guarded]: ...
    def check(self, photos: ImageLike | Iterable[ImageLike]) -> Guarded | list[Guarded]:
        """The same with the reasons: a `Guarded` for a photo, or a list of them."""
        if is_one(photos):
            return self._checked([photos])[0]
        return self._checked(as_list(photos))

    def _checked(self, photos: Sequence[ImageLike]) -> list[Guarded]:
        if places := [str(photo) for photo in photos if is_place(photo)]:
            raise InputError(
                f"a guard takes photos, one by one, got {a_few(places)}", hint="list the files of the folder or archive"
            )
        predictions = self.detector.predict(photos)
        if any(one.verdict == UNCALIBRATED for one in predictions):
            raise InputError(
                f"a guard needs a threshold, and {self.detector.method} has none yet",
                hint="detector.calibrate(photos of your classes), or fit another method",
            )
        accepted = [photo for photo, one in zip(photos, predictions, strict=True) if one.verdict == IN]
        answers = iter(self._answers(accepted))
        return [Guarded(next(answers) if one.verdict == IN else None, self._reason(one), one) for one in predictions]

    def _answers(self, photos: list[ImageLike]) -> list[Any]:
        if not self.batch:
            return [self.classifier(photo) for photo in photos]
        found = self.classifier([*photos]) if photos else []  # a list that it may change
        answers = _listed(found)
        if len(answers) != len(photos):
            raise InputError(
                f"the classifier must give an answer a photo, got {len(answers)} for {len(photos)}",
                hint="leave batch=True away if it takes one photo at a time",
            )
        return answers

    def _reason(self, prediction: Prediction) -> str:
        if prediction.error or prediction.verdict == IN:
            return prediction.error
        return f"none of {a_few(self.detector.labels)}: {prediction.why}"


def _is_missing(photo: Any) -> bool:
    """Whether it is a path of this machine with nothing behind it."""
    return is_path(photo) and not is_place(photo) and not os.path.lexists(photo)


def _listed(found: Any) -> list[Any]:
    """What a classifier gave, as a list; an empty one where it is none."""
    if isinstance(found, str | Mapping):
        return []
    try:
        answers = iter(found)
    except TypeError:  # it is no list
        return []
    return list(answers)  # outside, as a generator of answers may raise a TypeError of its own
