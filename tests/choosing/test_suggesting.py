"""Kinds for a label, found from photos of it: vectors that are made up around known names, and files."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import outword
from conftest import PHOTOS, call
from outword.choosing import suggesting
from outword.choosing.suggesting import Shares, SuggestedKinds, suggest_from_vectors
from outword.detector import fitting
from outword.detector.fitting import fit
from outword.encoders import get_encoder
from outword.errors import InputError, ParameterError
from outword.maths.methods.grounded import Grounded
from outword.vectors.names import name_vectors
from outword.vectors.reference import find_reference
from outword.words.prompts import get_prompts

MINI = get_encoder("mini")
SEEN = ["parachute", "balloon"]  # what the made-up photos of freedom look like to the encoder


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def photos_like(names, each=6, seed=0):
    """Vectors as near to names as photos are, so many of each name."""
    texts = name_vectors(MINI, get_prompts(MINI.prompts), [name for name in names for _ in range(each)])
    noise = unit(np.random.default_rng(seed).standard_normal(texts.shape))
    return unit(0.55 * texts + 0.85 * noise)


@pytest.fixture(scope="module")
def small():
    """A part of the shipped reference, of all its sets: quicker."""
    whole = find_reference(MINI)
    rows = range(0, len(whole), 7)
    texts = (tuple(of[row] for row in rows) for of in (whole.names, whole.wnids, whole.sets))
    found = replace(whole, vectors=whole.vectors[::7], **dict(zip(("names", "wnids", "sets"), texts, strict=True)))
    with pytest.MonkeyPatch.context() as patch:
        for module in (fitting, suggesting):
            patch.setattr(module, "find_reference", lambda _: found)
        yield found


@pytest.fixture(scope="module")
def found(small):
    return suggest_from_vectors("freedom", photos_like(SEEN), small, MINI)


def test_names_that_fit_the_photos_become_kinds(found):
    assert {*SEEN} <= {*found.kinds}
    assert found.line == f"freedom > {' | '.join(found.kinds)}"
    assert found.n_photos == 12
    assert found.alone.own < 0.5
    assert found.with_kinds.own > 0.8
    assert found.with_kinds.unrelated < 0.2
    assert str(found).startswith(found.line + "\nof 12 photos, ")
    assert "counted on photos that they were not chosen with" in str(found)


@pytest.mark.usefixtures("small")
def test_the_line_is_a_label(found):
    detector = fit([found.line])
    assert detector.labels == ["freedom"]
    new = photos_like(SEEN, seed=1)
    assert np.mean(detector.scorer.score(new) >= detector.threshold) >= 0.8


def test_no_names_are_suggested_where_none_brings_in_photos_that_were_not_looked_at(small):
    noise = unit(np.random.default_rng(5).standard_normal((8, MINI.dim)))
    nothing = suggest_from_vectors("freedom", noise, small, MINI)
    assert nothing.kinds == ()
    assert nothing.line == "freedom"
    assert "no names that the encoder knows bring in more" in str(nothing)


def test_names_about_other_labels_and_about_the_label_are_no_candidates(small):
    own = photos_like(["grey fox", "badger", "tabby"])
    detector = fit(["cat"])
    alone = {*suggesting._candidates(detector, own, ())[0]}
    assert {"grey fox", "badger"} <= alone
    assert "tabby" not in alone
    beside = {*suggesting._candidates(detector, own, ["fox"])[0]}
    assert "badger" in beside
    assert "grey fox" not in beside


def test_scores_with_a_kind_are_those_of_a_detector_that_has_it():
    label, kind, other, image = unit(np.random.default_rng(0).standard_normal((4, 5)))
    alone = Grounded(temperature=0.5).fit(labels=[label], wild=[kind, other])
    seen = suggesting._Seen(alone.masses([image]), np.array([[image @ kind, image @ other]]) / 0.5)
    both = Grounded(temperature=0.5).fit(labels=[label, kind], wild=[other], owners=[0, 0])
    np.testing.assert_allclose(suggesting._scores(alone, seen, []), alone.score([image]), rtol=1e-6)
    np.testing.assert_allclose(suggesting._scores(alone, seen, [0]), both.score([image]), rtol=1e-6)


def test_how_unusual_photos_are_by_hand():
    """Of 3 unrelated photos, none scores as high as the first and all as high as the second: p is 1/4 and 1."""
    scorer = Grounded(temperature=1.0)
    own, unrelated = (suggesting._Seen(np.array([[s, 0.0, 0.0] for s in row]), np.zeros((len(row), 0)))
                      for row in ([9.0, 0.0], [1.0, 2.0, 3.0]))  # fmt: skip
    assert suggesting._how_unusual(scorer, own, unrelated, []) == pytest.approx(np.log(0.25) / 2 / np.log(0.005))


def test_files_are_the_same_in_any_order_and_count_once(small, tmp_path):
    names = ["cat", "raccoon", "coffee", "clock", "helmet", "rocket"]
    given = [PHOTOS / f"{name}.jpg" for name in names]
    first = outword.suggest_kinds("pet", given)
    shutil.copy(given[0], tmp_path / "copy.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"none")
    with pytest.warns(UserWarning, match="1 of 8 ID images are left out"):
        again = outword.suggest_kinds("pet", [tmp_path, *given[::-1]])
    assert again.n_photos == 6
    assert [path for path, _ in again.unreadable] == [str(tmp_path / "broken.jpg")]
    assert replace(again, unreadable=()) == first


@pytest.mark.parametrize(
    ("label", "photos", "options", "error", "told"),
    [
        ("raccoon", ["cat", "cat", "coffee"], {}, InputError, "from 5 different photos at least, got 2"),
        ("raccoon > badger", ["cat"], {}, InputError, "a name without kinds, got 'raccoon > badger'"),
        ("animal > -dog", ["cat"], {}, InputError, "a name without kinds"),
        ("raccoon", ["cat"], {"most": 0}, ParameterError, "most must be a whole number between 1 and 20, got 0"),
    ],
)
def test_what_cannot_be_done_is_said(label, photos, options, error, told):
    with pytest.raises(error, match=told):
        outword.suggest_kinds(label, [PHOTOS / f"{name}.jpg" for name in photos], **options)


def test_an_encoder_without_a_reference_says_how_to_make_one(monkeypatch):
    monkeypatch.setattr(suggesting, "find_reference", lambda _: None)
    with pytest.raises(InputError, match="mini has no reference") as error:
        outword.suggest_kinds("raccoon", [PHOTOS / "cat.jpg"])
    assert "outword reference PHOTOS --encoder mini" in error.value.hint


def test_the_lead_is_what_photos_have_before_unrelated_ones():
    assert Shares(0.75, 0.25).lead == 0.5
    told = SuggestedKinds("raccoon", ("badger",), Shares(0.1, 0.05), Shares(0.8, 0.0625), 1, 2100)
    assert str(told) == (
        "raccoon > badger\nof 1 photo, 10% would be in with the name alone, 80% with these kinds (counted on photos "
        "that they were not chosen with); of 2,100 unrelated photos, 5.0% and 6.2%"
    )


@pytest.mark.usefixtures("small")
def test_the_verb_suggests_the_same():
    given = [PHOTOS / f"{name}.jpg" for name in ("cat", "raccoon", "coffee", "clock", "helmet")]
    options = [text for path in given for text in ("--photos", path)]
    found = outword.suggest_kinds("pet", given)
    (record,) = json.loads(call("labels", "pet", *options, "--json").stdout)
    assert record["label"] == "pet"
    assert record["suggested"] == json.loads(json.dumps(found.as_json()))
    shown = call("labels", "pet", *options)
    assert shown.stdout.splitlines()[-1] == found.line
    assert found.told in shown.stderr


def test_the_verb_takes_photos_of_one_label_only():
    refused = call("labels", "cat, dog", "--photos", PHOTOS / "cat.jpg", code=2)
    assert "--photos is for a single label, got 2" in refused.stderr


@pytest.mark.parametrize(("share", "told"), [(0.9, "it needs no kinds"), (0.5, "bring the photos to outword tune")])
def test_why_there_are_no_kinds(share, told):
    alone = Shares(share, 0.05)
    assert SuggestedKinds("raccoon", (), alone, alone, 40, 2100).told.endswith(told)
