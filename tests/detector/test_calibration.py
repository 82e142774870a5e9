"""Calibration on photos of the user's: each counts once, and what has to be said of the threshold is said."""

import shutil
import warnings

import numpy as np
import pytest
from PIL import Image

from conftest import PHOTOS
from outword.detector.calibration import check_disjoint, threshold_from_scores
from outword.errors import InputError

REFERENCE = np.arange(1000.0)
MINE = [PHOTOS / f"{name}.jpg" for name in ("cat", "coffee", "rocket", "raccoon", "astronaut")]


def test_photos_that_look_unrelated_by_hand():
    mine = [*[949.0] * 2, *[2000.0] * 298]  # 51 of 1,000 unrelated photos score 949 or more
    assert threshold_from_scores(mine, [], 0.95, "quantile", REFERENCE)[1] == []
    mine = [*[949.0] * 298, *[2000.0] * 2]
    _, told = threshold_from_scores(mine, [], 0.95, "quantile", REFERENCE)
    assert told == ["298 of your 300 photos look like none of your classes"]
    mine = [*[951.0] * 298, *[2000.0] * 2]  # p = 50 / 1,001
    assert threshold_from_scores(mine, [], 0.95, "quantile", REFERENCE)[1] == []


def test_a_threshold_that_lets_much_in_is_said_to():
    mine = np.linspace(800.0, 2000.0, 300)
    found, told = threshold_from_scores(mine, [], 1.0, "quantile", REFERENCE)
    assert (found.fpr, found.n_reference) == (0.201, 1000)  # a little under 800: its margin
    assert told == ["it lets in 20% of 1,000 unrelated photos"]
    assert threshold_from_scores(mine, [], 0.9, "quantile", REFERENCE)[1] == []
    found, told = threshold_from_scores(mine, [], 1.0, "quantile", None)
    assert (found.fpr, found.n_reference, told) == (None, 0, [])


def test_a_photo_is_on_one_side():
    with pytest.raises(InputError, match=r"^1 photo is both among those of the classes and among those of other"):
        check_disjoint([(1, 11), (2, 12)], [(None, 12)])


@pytest.fixture
def fresh(detector):
    return detector.with_threshold(None)


@pytest.fixture(autouse=True)
def few_photos():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*leave the threshold uncertain")
        yield


@pytest.mark.filterwarnings("ignore:.*look like none")
def test_the_same_photo_counts_once(fresh, tmp_path):
    value = fresh.calibrate(MINE, tpr=0.5).threshold_
    shutil.copy(MINE[3], tmp_path / "again.jpg")
    pixels = np.asarray(Image.open(PHOTOS / "brick.jpg").convert("RGB"))
    assert fresh.calibrate([*MINE, MINE[3], MINE[3].read_bytes(), tmp_path / "again.jpg"], tpr=0.5).threshold_ == value
    assert fresh.calibrate([*MINE, pixels, pixels.copy()], tpr=0.5).calibration_.n_photos == 6


@pytest.mark.filterwarnings("ignore:.*look like none")
def test_photos_of_other_things(fresh):
    others = [PHOTOS / "brick.jpg", PHOTOS / "gravel.jpg", PHOTOS / "gravel.jpg"]
    found = fresh.calibrate(MINE, tpr=0.4, others=others).calibration_
    assert (found.n_photos, found.n_others) == (5, 2)
    assert found.value + found.margin == pytest.approx(fresh.score(MINE).min())  # all are above the wall
    assert not (fresh.score(others) >= found.value).any()
    with pytest.raises(InputError, match=r"^1 photo is both among"):
        fresh.calibrate(MINE, others=MINE[:1])


def test_what_is_warned_of_and_what_stays(fresh):
    score, p = fresh.score(MINE[:1])[0], fresh.explain(MINE[0]).p
    assert p < 0.01 and fresh.explain(MINE[0]).basis == "reference"
    with pytest.warns(UserWarning, match="2 of your 5 photos look like none of your classes"):
        fresh.calibrate(MINE, tpr=0.4)
    told = fresh.explain(MINE[0])
    assert (told.score, told.p, told.verdict, told.basis) == (score, p, "in", "calibrated")
    assert told.cut == "quantile at a TPR of 40% from 5 photos"
    assert (fresh.verdict(score), fresh.verdict(-99.0)) == ("in", "out")
    with pytest.warns(UserWarning, match=r"look like none"), pytest.warns(UserWarning, match=r"it lets in \d\d% of 3,"):
        fresh.calibrate([*MINE, PHOTOS / "tripod.jpg"], tpr=1.0)
