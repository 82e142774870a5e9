"""`outword.Guard`: a classifier is asked only about photos of its classes."""

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import PHOTOS
from outword.errors import InputError
from outword.maths.thresholds import by_hand

CAT, COFFEE, WALL = (PHOTOS / f"{name}.jpg" for name in ("cat", "coffee", "brick"))


def test_a_photo_of_no_class_is_none_and_the_reason_is_there(detector):
    asked = []
    guard = outword.Guard(lambda photo: asked.append(photo) or "mine", detector)
    assert (guard(CAT), guard(WALL), guard(b"no photo")) == ("mine", None, None)
    assert asked == [CAT]
    found = guard.check(WALL)
    assert found.answer is None and found.prediction.verdict == "out"
    assert found.reason.startswith("none of tabby cat, espresso, space shuttle and 1 more: looks like ")
    assert "fits better than" in found.reason
    assert guard.check("nope.jpg").reason == "no such file"
    assert guard.check(CAT) == outword.Guarded("mine", "", detector.predict(CAT)[0])


def test_a_path_without_a_file_is_an_error_and_no_photo_that_is_out(detector):
    asked = []
    guard = outword.Guard(asked.append, detector)
    for photos in ("nope.jpg", [CAT, "nope.jpg"]):
        with pytest.raises(InputError, match=r"there is no file at nope\.jpg") as raised:
            guard(photos)
        assert "guard.check(photos)" in raised.value.hint and not asked
    found = outword.Guard(lambda photo: "mine", detector).check(["nope.jpg", CAT])
    assert [(one.answer, one.reason) for one in found] == [(None, "no such file"), ("mine", "")]
    with pytest.raises(InputError, match="a guard takes photos, one by one, got "):
        guard(PHOTOS)


def test_lists_keep_their_order_and_photos_go_on_as_they_came(detector):
    image, array = Image.open(CAT), np.asarray(Image.open(COFFEE))
    photos = [WALL, image, b"no photo", array, COFFEE.read_bytes()]
    answers = outword.Guard(lambda photo: photo, detector)(photo for photo in photos)
    assert [a is b for a, b in zip(answers, [None, image, None, array, photos[4]], strict=True)] == [True] * 5
    assert outword.Guard(len, detector)([]) == []


def test_a_classifier_of_lists_is_asked_once(detector):
    asked = []
    guard = outword.Guard(lambda photos: asked.append(photos) or np.arange(len(photos)), detector, batch=True)
    assert guard([CAT, WALL, COFFEE]) == [0, None, 1]
    assert guard(WALL) is None and guard([]) == [] and guard(CAT) == 0
    assert asked == [[CAT, COFFEE], [CAT]]
    with pytest.raises(InputError, match="must give an answer a photo, got 1 for 2"):
        outword.Guard(lambda photos: ["cat"], detector, batch=True)([CAT, COFFEE])
    with pytest.raises(InputError, match="must give an answer a photo, got 0 for 1"):
        outword.Guard(lambda photos: None, detector, batch=True)(CAT)


def test_what_the_classifier_raises_goes_through(detector):
    def broken(photo):
        raise ZeroDivisionError("mine")

    guard = outword.Guard(broken, detector)
    assert guard(WALL) is None
    with pytest.raises(ZeroDivisionError, match="mine"):
        guard(CAT)


def test_what_cannot_guard_says_so(detector):
    with pytest.raises(InputError, match="classifier must be a callable, got <outword"):
        outword.Guard(detector, len)
    with pytest.raises(InputError, match=r"detector must be an outword\.Detector, got 'pets\.outword'"):
        outword.Guard(len, "pets.outword")


def test_a_method_without_a_threshold_cannot_guard_until_it_has_one(no_reference):
    guard = outword.Guard(lambda photo: "mine", outword.fit(["tabby cat", "espresso"], method="maxlogit"))
    with pytest.raises(InputError, match="a guard needs a threshold, and maxlogit has none yet"):
        guard(CAT)
    guard.detector = guard.detector.with_threshold(by_hand(-1.0))
    assert guard(CAT) == "mine"


@pytest.mark.parametrize("answers", [np.array(3), "ab", {"a": 1, "b": 2}, None])
def test_what_is_no_list_of_answers_is_said(detector, answers):
    guard = outword.Guard(lambda photos: answers, detector, batch=True)
    with pytest.raises(InputError, match="must give an answer a photo, got 0 for 2"):
        guard([PHOTOS / "cat.jpg", PHOTOS / "coffee.jpg"])


def test_what_a_generator_of_answers_raises_goes_through(detector):
    def answers(photos):
        yield "mine"
        raise TypeError("a fault of the classifier's own")

    with pytest.raises(TypeError, match="a fault of the classifier's own"):
        outword.Guard(answers, detector, batch=True)([CAT, PHOTOS / "coffee.jpg"])
    generator = outword.Guard(lambda photos: (number for number in range(len(photos))), detector, batch=True)
    assert generator([CAT]) == [0]
