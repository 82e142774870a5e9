"""Cards whose seal is good and whose content is not: one line, or it works, whatever stands in them."""

import copy
import json
import sys

import numpy as np
import pytest

import outword
from outword.base.records import mistyped
from outword.detector import artifact
from outword.detector.artifact import Saved
from outword.detector.audit import audit
from outword.detector.judge import judge
from outword.errors import ArtifactError, InputError, OutwordError
from outword.maths.thresholds import by_hand, read_threshold
from outword.scoring.page import Summary
from outword.words.labels import read_labels
from outword_lab.benchmark.run.results import ROWS, Results
from outword_lab.benchmark.run.suite import read_suite

GONE = object()
NASTY = [None, True, -1, 0.5, float("nan"), 10**400, 10**5000, "x", "\ud800", [], [["a"]], {"a": 1}, GONE]


def dumps(value):
    """JSON with digits without end."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(value, sort_keys=True)
    finally:
        sys.set_int_max_str_digits(limit)


def places(value, at=()):
    """The way to each node of a card."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 1)) if isinstance(value, list) else []
    for key in keys:
        yield (*at, key)
        yield from places(value[key], (*at, key))


def variants(card):
    """The card with each of its nodes replaced by each of the nasty values, or left out."""
    for *way, last in list(places(card)):
        for value in NASTY:
            made = node = copy.deepcopy(card)
            for key in way:
                node = node[key]
            if value is GONE:
                del node[last]
            else:
                node[last] = value
            yield made


def refused(use):
    """Whether `use` is refused in one line; any other error is raised."""
    try:
        use()
    except OutwordError as error:
        assert "\n" not in error.message
        return True
    return False


def use_detector(path):
    found = outword.load(path)
    list(judge(found, np.eye(2, 512, dtype=np.float32)))
    assert found.encoder.name == "mini"
    assert all([repr(found), Summary.of(found), found.fingerprint]) and audit(found) == []
    assert found.card.corpus is None or ", ".join(found.card.corpus.left_out) in ("", "x")
    found.coverage.items()


def test_a_detector_whose_card_was_sealed_again(detector, tmp_path):
    method = {"name": "mcm", "parameters": {"temperature": 0.01}}
    threshold = {"value": 1.0, "method": "quantile", "tpr": 0.95, "n_photos": 9, "low": 0.8, "high": 1.0, "n_others": 0}
    own = {"method": method, "calibration": threshold, "coverage": {"a": "known"}, "label_prompts": {"a": "an a"}}
    whole = detector.card.as_json()
    own["corpus"] = {**whole["corpus"], "left_out": []}
    meaning = dict.fromkeys(("label", "text"), "a") | {"names": ["a"], "sense": "", "gloss": "", "n_senses": 1}
    meaning |= {"kinds": [], "by_hand": False, "suggestions": []}
    own |= {"cut": None, "meanings": [meaning, {**meaning, "label": "b", "text": "b", "names": ["b"]}]}
    saved = Saved({**whole, **own}, {"labels": np.eye(2, 512)}, ["a", "b"], [], ["a", "b"], [])
    path = artifact.save(tmp_path / "d", saved)
    use_detector(path)
    card = json.loads((path / artifact.CARD).read_text())
    seen = []
    for made in variants(card):
        if made.get("fingerprint") == card["fingerprint"]:
            sealed = {key: value for key, value in made.items() if key != "fingerprint"}
            made["fingerprint"] = artifact.sha256_bytes(dumps(sealed).encode())
        (path / artifact.CARD).write_text(dumps(made))
        seen.append(refused(lambda: use_detector(path)))
    assert len(seen) > 500 and sum(seen) > 300


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "[" * 900 + "]" * 900, "1e999"])
def test_a_card_without_end(saved, text):
    (saved / artifact.CARD).write_text(text)
    with pytest.raises(ArtifactError, match=r"detector.json cannot be read: [^\n]+$"):
        outword.load(saved)


def test_a_threshold_that_is_none():
    whole = artifact.finite(vars(by_hand(1.5)))
    assert read_threshold(whole) == by_hand(1.5)
    for change in ({"method": "guess"}, {"method": "quantile"}, {"tpr": 2}, {"value": "x"}, {"more": 1}):
        with pytest.raises((ValueError, TypeError)):
            read_threshold({**whole, **change})


def test_rows_of_a_benchmark(tmp_path):
    row = {
        **dict.fromkeys(("key", "cell", "id", "encoder", "corpus", "entry", "point", "ood", "commit"), "a"),
        **dict.fromkeys(("seed", "n_id", "n_ood", "unread_id", "unread_ood"), 1),
        **dict.fromkeys(("auroc", "aupr_id", "aupr_ood", "fpr95_id", "fpr95_ood", "fit_seconds", "score_seconds"), 0.5),
        **{"chance": False, "auroc_ci": [0.4, 0.6], "fpr95_ci": [0.4, 0.6], "config": {"a": 1}, "versions": {"b": "2"}},
    }

    def use():
        for found in Results(tmp_path).read().values():
            told = f"{found.auroc:.3f} {found.auroc_ci[0]:.3f} {found.fpr95_ci[1]:.3f} {found.n_id:,} {found.seed:d}"
            assert len(told.split()) == 5
            assert hash((found.id, found.encoder, found.entry, found.ood, found.cell))

    seen = []
    for made in variants(row):
        (tmp_path / ROWS).write_text(dumps(made) + "\n")
        seen.append(refused(use))
    assert len(seen) > 300 and sum(seen) > 200


@pytest.mark.parametrize("line", ["seeds = " + "9" * 5000, "a = " + "[" * 5000, "a = " + "{a=" * 5000, "seeds = nan"])
def test_a_suite_without_end(tmp_path, line):
    (tmp_path / "own.toml").write_text(f'title = "t"\n{line}\n')
    with pytest.raises(InputError, match=r"^[^\n]+$"):
        read_suite(tmp_path / "own.toml")


def test_labels_at_a_name_that_is_none():
    with pytest.raises(InputError, match="what was typed, entry 1: a label must be one line of printable text, got 'a"):
        read_labels("a\0b")


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        (1, float, ""),
        (True, float, "it"),
        (float("inf"), float, "it"),
        (True, bool, ""),
        (True, int, "it"),
        (None, (int, None), ""),
        ("a", (int, None), "it"),
        ({"a": [1, "b"]}, {"a": [int]}, "a[1] is 'b'"),
        ({"a": {"b": 1}}, {"a": {str: str}}, "'b' is 1"),
        ({}, {"a?": int}, ""),
        ({}, {"a": int}, "it has no a"),
        ([], {"a": int}, "it is []"),
        ({"a": 10**5000}, {"a": str}, "a is a int without end"),
    ],
)
def test_kinds(value, kind, told):
    found = mistyped(value, kind)
    assert found.startswith(told) if told else found == ""
