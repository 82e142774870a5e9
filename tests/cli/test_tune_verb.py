"""`outword tune`: what is printed where, and the detector that it leaves."""

import json

import pytest

import outword
from conftest import PHOTOS, call, lay_out, rows_of, six_digits

NAMES = sorted(path.stem for path in PHOTOS.glob("*.jpg"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten photos of the classes, though they show none, in folders of two labels, and eight others."""
    root = tmp_path_factory.mktemp("tune")
    (root / "labels.txt").write_text("tabby cat\nespresso\n")
    lay_out(root, {"mine/tabby_cat": NAMES[:5], "mine/espresso": NAMES[5:10], "other": NAMES[10:]})
    return root


def run(folder, *options, code=0):
    return call(
        "tune", folder / "labels.txt", "--id", folder / "mine", "-o", folder / "best.outword", *options, code=code
    )


def test_the_path_is_printed_and_the_rest_is_told(folder):
    result = run(folder, "--methods", "mcm,knn,mahalanobis,glmcm")
    assert result.stdout == f"{folder / 'best.outword'}\n"
    lines = result.stderr.splitlines()
    assert lines[0] == "left out: glmcm: it looks at patches, and what is compared are vectors"
    head = next(place for place, line in enumerate(lines) if line.startswith("method"))
    assert lines[head].split("  ")[0] == "method" and lines[head].endswith("TPR %  TNR %")
    assert {line.split()[0] for line in lines[head + 1 : head + 4]} == {"mcm", "knn", "mahalanobis"}
    assert lines[head + 4].startswith("(each method by itself")
    assert "no photos of other things were given: " in lines[head + 5] and "stand in" in lines[head + 5]
    assert "is chosen from 3 methods" in lines[head + 6]
    assert any(line.startswith("warning: 10 photos leave the threshold uncertain") for line in lines)
    made = outword.load(folder / "best.outword")
    assert made.method == lines[head + 1].split()[0] and made.basis == "calibrated"
    rows = rows_of(call("score", folder / "best.outword", PHOTOS / "cat.jpg").stdout)
    assert rows[0]["basis"] == "calibrated" and float(rows[0]["threshold"]) == six_digits(made.threshold)


def test_all_of_it_as_json(folder):
    found = json.loads(run(folder, "--methods", "mcm,maxlogit", "--tpr", "0.8", "--json").stdout)
    assert found["path"] == str(folder / "best.outword") and found["stand_in"] is True
    assert found["threshold"]["method"] == "quantile" and found["threshold"]["tpr"] == 0.8
    assert found["method"] == found["candidates"][0]["name"] and found["agreed"] <= found["folds"] == 5
    for share in found["expected"].values():
        assert 0 <= share["low"] <= share["value"] <= share["high"] <= 1
    assert found["expected"]["tpr"]["n"] == 10 and found["expected"]["tnr"]["n"] > 1000
    assert outword.load(folder / "best.outword").threshold == found["threshold"]["value"]


def test_what_is_wrong_is_said(folder, tmp_path):
    told = run(folder, "--ood", folder / "other", "--methods", "mcm", code=2).stderr
    assert "at least 10 different photos of other things, got 8" in told and "then ordinary photos stand in" in told
    assert 'did you mean "mcm"?' in run(folder, "--methods", "mcn", code=2).stderr
    assert "there is nothing at" in run(folder, "--ood", folder / "nowhere", code=2).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("mine")
    assert "is not a saved detector" in run(folder, "-o", tmp_path / "full", code=2).stderr


def test_a_class_that_no_photo_shows_is_named(folder):
    photos = [part for name in NAMES[:10] for part in ("--id", PHOTOS / f"{name}.jpg")]  # of two of them
    told = call("tune", "cat, sea lion", *photos, "-o", folder / "three.outword", "--methods", "knn").stderr
    assert "no photo of yours shows sea lion: what is chosen here" in told
    assert "of your 10 photos look like none of your classes" in told
    told = call("explain", folder / "three.outword", PHOTOS / "brick.jpg").stdout
    assert "the nearest names, which have no part in the score:" in told and "what decided" not in told
