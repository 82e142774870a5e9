"""Detectors of label lists in the cache: made once, made again where damaged, and not kept without end."""

import os

import numpy as np
import pytest

from conftest import LABELS, PHOTOS
from outword.base.cache import KINDS, Kind, cache_dir
from outword.detector import cached
from outword.detector.cached import fit_cached


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of the detectors in a cache that has none yet."""
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    return tmp_path / "detectors"


@pytest.fixture
def quick(detector, monkeypatch):
    """A fit that takes no time: it gives a detector of other labels."""
    monkeypatch.setattr(cached, "fit", lambda *args, **options: detector)


def test_the_same_labels_are_fitted_once(kept, detector, monkeypatch):
    made, was_there = fit_cached(LABELS)
    assert not was_there and made.fingerprint == detector.fingerprint
    assert len(list(kept.iterdir())) == 1
    monkeypatch.setattr(cached, "fit", lambda *args, **options: pytest.fail("it was fitted again"))
    again, was_there = fit_cached(LABELS)
    assert was_there and again.fingerprint == made.fingerprint
    np.testing.assert_array_equal(again.score([PHOTOS / "cat.jpg"]), detector.score([PHOTOS / "cat.jpg"]))


def test_other_labels_prompts_references_and_versions_are_others(kept, monkeypatch):
    keys = {cached._key(cached.check_labels(labels), cached.get_encoder("mini")) for labels in (
        ["cat", "dog"], ["dog", "cat"], ["cat", "dog#2"], {"cat": "a cat", "dog": ""}, {"cat": ["tabby"], "dog": ""},
    )}  # fmt: skip
    monkeypatch.setattr("outword.detector.cached.__version__", "9")
    keys.add(cached._key(cached.check_labels(["cat", "dog"]), cached.get_encoder("mini")))
    monkeypatch.setattr(cached, "find_reference", lambda encoder: None)
    keys.add(cached._key(cached.check_labels(["cat", "dog"]), cached.get_encoder("mini")))
    keys.add(cached._key(cached.check_labels(["cat", "dog"]), cached.get_encoder("mini-float")))
    assert len(keys) == 8


@pytest.mark.parametrize("damage", ["changed", "card lost"])
def test_a_damaged_one_is_made_again(kept, quick, damage):
    fit_cached(["cat"])
    (folder,) = kept.iterdir()
    (folder / "labels.txt").write_text("dog\n") if damage == "changed" else (folder / "detector.json").unlink()
    assert not fit_cached(["cat"])[1]
    assert fit_cached(["cat"])[1]


def test_those_used_least_recently_go(kept, quick, monkeypatch):
    monkeypatch.setitem(KINDS, "detectors", Kind("detectors", most=2))
    for number, label in enumerate(("cat", "dog")):
        fit_cached([label])
        for folder in kept.iterdir():
            os.utime(folder, (number, number))
    fit_cached(["cat"])  # now it is the last that was used
    fit_cached(["fox"])
    assert fit_cached(["cat"])[1] and fit_cached(["fox"])[1] and not fit_cached(["dog"])[1]


def test_a_cache_that_cannot_be_written_is_a_warning(kept, quick, detector):
    kept.write_text("in the way")
    with pytest.warns(UserWarning, match="the cache cannot be written"):
        made, was_there = fit_cached(["cat"])
    assert made is detector and not was_there
