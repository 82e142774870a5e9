"""From the verb to the formula: at most ten frames of ours."""

import traceback
from pathlib import Path

from click.testing import CliRunner

import outword
from conftest import PHOTOS
from outword.cli import main
from outword.maths.methods.grounded import Grounded

PACKAGE = Path(outword.__file__).parent


def test_score_reaches_the_formula_in_ten_frames(tmp_path, monkeypatch):
    outword.fit(["tabby cat", "espresso"]).save(tmp_path / "d.outword")
    stacks, combine = [], Grounded._combine

    def seen(self, masses):
        stacks.append([f"{frame.filename}:{frame.name}" for frame in traceback.extract_stack()])
        return combine(self, masses)

    monkeypatch.setattr(Grounded, "_combine", seen)
    run = CliRunner().invoke(main, ["score", str(tmp_path / "d.outword"), str(PHOTOS / "cat.jpg")])
    assert run.exit_code == 0, run.output
    ours = [frame for frame in stacks[-1] if frame.startswith(str(PACKAGE))]
    verb = next(place for place, frame in enumerate(ours) if frame.endswith("score_verb.py:command"))
    assert len(ours[verb:]) + 1 <= 10, "\n".join(ours)  # with the formula itself
