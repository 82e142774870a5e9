"""The examples that are scripts run as they stand, without a warning."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["cat.jpg"].endswith("guarded: cat") and told["helmet.jpg"].endswith("guarded: helmet")
    assert "guarded: None (none of cat, coffee, helmet: looks like maze" in told["brick.jpg"]
