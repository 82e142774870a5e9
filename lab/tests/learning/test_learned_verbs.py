"""`outword fit` with prompts that are learned, and what it says."""

import json

import pytest
from click.testing import CliRunner

from outword.cli import main

LABELS = "hammer\nsaw\ncat\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A detector with a learned prompt, and lists of labels."""
    top = tmp_path_factory.mktemp("learned")
    (top / "labels.txt").write_text(LABELS)
    (top / "others.txt").write_text("apple\nsailboat\n")
    photos = [part for label in LABELS.split() for part in ("--id-images", f"world:train/{label}")]
    made = call("fit", top / "labels.txt", "--method", "fa", "--encoder", "world-s", *photos, "--set", "epochs=2")
    assert made.exit_code == 0, made.stderr
    assert "learned from 48 photos (16 of a label at most); loss" in made.stderr
    assert "fa has no threshold yet: outword calibrate" in made.stderr
    assert "senses" not in made.stderr
    return top


def call(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_contexts_move_to_other_labels(place):
    given = ["fit", place / "others.txt", "--contexts", place / "labels.outword", "-o", place / "moved.outword"]
    moved = call(*given, "--json")
    assert moved.exit_code == 0, moved.stderr
    assert json.loads(moved.stdout)["learned"]["moved"]
    assert "learned for other labels" in moved.stderr
    assert call(*given, "--encoder", "world-s").exit_code == 0
    refused = call("calibrate", place / "moved.outword", "world:train/hammer")
    assert "among those that fa was fitted on" in refused.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--encoder", "nonsense"], "unknown encoder"),
        (["--method", "coop"], "with --contexts all is as in that detector, got --method"),
        (["--set", "epochs=3"], "got --set"),
    ],
)
def test_nothing_else_goes_with_contexts(place, options, told):
    found = call("fit", place / "others.txt", "--contexts", place / "labels.outword", *options)
    assert found.exit_code != 0
    assert told in found.stderr


def test_a_detector_without_learned_prompts_has_no_contexts(place):
    assert call("fit", place / "labels.txt", "--method", "mcm", "-o", place / "mcm.outword").exit_code == 0
    found = call("fit", place / "others.txt", "--contexts", place / "mcm.outword")
    assert "has no learned prompts: it is of mcm" in found.stderr
