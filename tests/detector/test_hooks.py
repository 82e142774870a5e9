"""A method of somebody else's that makes its own inputs: the pipeline needs to know nothing of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import outword
from conftest import call
from outword.detector.inputs import not_offered
from outword.detector.judge import judge
from outword.encoders import get_encoder
from outword.errors import ArtifactError, ImageError, InputError
from outword.maths.methods import DETECTORS, MCM, Need
from outword.maths.methods.needs import NEEDS, by_hand, from_pixels, of_photo, versions
from outword.testing import check_detector
from outword_lab.learning.needs import NO_TOWER, PROMPTS

PHOTOS = sorted((Path(outword.__file__).parent / "demo" / "photos").glob("*.jpg"))[:5]


@dataclass
class Mirrored(MCM):
    """MCM of a photo and of its mirror image, of which dark photos have none; labels are taken as sentences, twice."""

    summary = "for tests"

    def fit_inputs(self, request):
        (first, *_) = request.sentences()
        told = {"labels": sorted(request.labels), "texts": len(first), "vectors": len(request.given["labels"])}
        rows = np.asarray(request.given["labels"], np.float32)
        return {"negatives": None, "kept": rows, "learned": told, "seconds": 7.0}

    def fit(self, labels=None, wild=None, *, kept=None, **given):
        super().fit(labels, wild, **given)
        self.kept_ = {} if kept is None else {"mirror/labels": kept}
        return self

    def kept_names(self):
        return ("mirror/labels",)

    def score_inputs(self, request):
        if request.pixels is None:
            return super().score_inputs(request)
        bright = request.pixels.mean(axis=(1, 2, 3)) > 60
        pairs = zip(request.names, bright, strict=True)
        errors = [None if good else ImageError(f"{name} is too dark") for name, good in pairs]
        given = request.encoder.encode_on_device(request.pixels[bright][:, :, ::-1])
        return {"images": request.vectors[bright], "mirrored": given, "errors": errors}

    def sample_inputs(self, images, words):
        return {"mirrored": images}

    def score(self, images, *, mirrored=None, **more):
        return super().score(images) + (0 if mirrored is None else super().score(mirrored))


@pytest.fixture
def mirrored(monkeypatch):
    monkeypatch.setitem(DETECTORS._things, "mirrored", Mirrored)
    return outword.fit(["cat", "dog", "coffee"], method="mirrored")


def test_such_a_method_passes_the_public_checks():
    check_detector(Mirrored())


def test_both_hooks_are_called_and_what_is_kept_comes_back(mirrored, tmp_path):
    assert mirrored.card.learned == {"labels": ["cat", "coffee", "dog"], "texts": 1, "vectors": 3}
    scores = mirrored.score(PHOTOS)
    plain = outword.fit(["cat", "dog", "coffee"], method="mcm").score(PHOTOS)
    assert (scores > plain).all()
    mirrored.save(tmp_path / "made.outword")
    back = outword.load(tmp_path / "made.outword")
    np.testing.assert_array_equal(back.scorer.kept_["mirror/labels"], mirrored.scorer.kept_["mirror/labels"])
    np.testing.assert_array_equal(back.score(PHOTOS), scores)
    assert back.fingerprint == mirrored.fingerprint


def test_the_command_line_says_of_what_was_learned_what_the_method_says(mirrored, tmp_path, monkeypatch):
    fitted = ["fit", "cat, dog", "--method", "mirrored", "-o", tmp_path / "d.outword"]
    assert " texts\n" not in call(*fitted).stderr
    monkeypatch.setattr(Mirrored, "describe_learning", lambda self, facts: f"from {len(facts['labels'])} texts")
    assert "from 2 texts\n" in call(*fitted[:-1], tmp_path / "e.outword").stderr


def test_a_photo_that_the_method_cannot_score_is_a_row_with_its_error(mirrored):
    dark = np.zeros((64, 64, 3), np.uint8)
    first, second, third = mirrored.predict([PHOTOS[0], dark, PHOTOS[1]])
    assert (first.error, second.error, third.error) == ("", "photos[1] is too dark", "")
    assert [first.score, third.score] == mirrored.score(PHOTOS[:2]).tolist()
    with pytest.raises(ImageError, match="is too dark"):
        mirrored.score([dark])


def test_scores_that_are_known_ask_the_method_for_nothing(mirrored, monkeypatch):
    monkeypatch.setattr(Mirrored, "score_inputs", None)
    vectors = get_encoder("mini").encode_images(PHOTOS[:2])
    assert [one.score for one in judge(mirrored, vectors, scores=np.array([0.25, 0.75]))] == [0.25, 0.75]


@pytest.mark.parametrize("change", ["lost", "stray"])
def test_what_a_method_keeps_is_there_and_nothing_else_of_the_kind(mirrored, change, tmp_path, monkeypatch):
    kept = {} if change == "lost" else {**mirrored.scorer.kept_, "mirror/other": np.ones(3)}
    monkeypatch.setattr(mirrored.scorer, "kept_", kept)
    mirrored.save(tmp_path / "made.outword")
    with pytest.raises(ArtifactError, match=r"there must be \['mirror/labels'\] of mirrored, got"):
        outword.load(tmp_path / "made.outword")


def test_every_need_says_where_it_comes_from():
    for need in NEEDS:
        assert bool(need.offer) == bool(need.lack) == bool(need.hint), need
    for need in of_photo(NEEDS):
        assert bool(need.offer) != bool(need.how), need
    assert {*from_pixels(NEEDS), *by_hand(NEEDS)} == {*of_photo(NEEDS)} == {Need.PATCHES, Need.PIXELS, Need.WORDS}


DEPTH = Need("depth", "for tests", "depth", "{method} needs depth: {encoder} has none", "take another")


@pytest.mark.parametrize("need", [Need.PATCHES, Need.PIXELS, PROMPTS, NO_TOWER, DEPTH], ids=lambda need: need.offer)
def test_what_an_encoder_does_not_offer_is_one_error(need):
    mini = get_encoder("mini")
    error = not_offered("topk", [need], mini)
    assert isinstance(error, InputError)
    assert error.message.startswith("topk ") and "mini" in error.message and error.hint == need.hint
    assert not_offered("topk", [need], mini, "--set k=0 will do").hint == "--set k=0 will do"
    assert not_offered("topk", [], mini) is None
    assert versions([Need.LABELS, need]) == ({"patches": "value path"} if need is Need.PATCHES else {})


def test_a_plug_in_that_needs_more_of_a_photo_must_say_how_it_comes_by_it():
    @dataclass
    class Silent(MCM):
        """For tests."""

        summary = "for tests"
        needs = (Need.LABELS, Need.PATCHES)

    assert DETECTORS._problem(Silent) == "it needs patches, and has no score_inputs"
    assert DETECTORS._problem(DETECTORS["glmcm"]) == ""
