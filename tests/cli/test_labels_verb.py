"""`outword labels` as people use it."""

import json

import outword
from conftest import call


def test_a_table_and_what_to_do():
    found = call("labels", "raccoon, dog")
    head, raccoon, dog = found.stdout.splitlines()[0], "raccoon", "dog"
    assert head.split()[:1] == ["label"] and "odds" in head
    lines = found.stdout.splitlines()
    assert any(line.startswith(raccoon) for line in lines) and any(line.startswith(dog) for line in lines)
    assert "show which known names let it in: outword labels raccoon, --photos PHOTOS\n" in found.stderr
    assert "dog:" not in found.stderr


def test_json_has_the_odds_of_fit(tmp_path):
    told = json.loads(call("labels", "raccoon, dog", "--json").stdout)
    made = call("fit", "raccoon, dog", "-o", tmp_path / "d", "--json")
    assert told == json.loads(made.stdout)["labels_report"]
    assert [one["share"] for one in told] == [round(one.share, 4) for one in outword.load(tmp_path / "d").odds]


def test_fit_says_one_thing_of_each_label(tmp_path):
    said = call("fit", "raccoon, dog", "-o", tmp_path / "d").stderr.splitlines()
    assert sum(line.startswith("dog: good") for line in said) == 1
    assert sum(line.startswith("WARNING: raccoon: ") for line in said) == 1
    assert not any(word in line for line in said for word in ("by insertion", "balances", "in from a score"))
    assert any(line.startswith("expected: about ") and "of your photos in, " in line for line in said)
