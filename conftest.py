"""Tests leave the user's cache alone, and share what takes seconds to make."""

import csv
import io
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"  # read when the hub's library is imported: no test asks the real one
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported: its kernels run on the CPU, slowly

import outword
from outword.cli import main

# The same examples every time, and no limit of time: CI fails neither by chance nor on a busy machine.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

PHOTOS = Path(outword.__file__).parent / "demo" / "photos"
LABELS = ["tabby cat", "espresso", "space shuttle", "pizza"]


def call(*args, code=0):
    """Run the command line in this process."""
    result = CliRunner().invoke(main, [str(a) for a in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stderr
    return result


def rows_of(text):
    """The rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(text)))


def contents(folder):
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def six_digits(number):
    """A number as CSV has it."""
    return float(f"{number:.6g}")


def lay_out(root, chosen):
    """Copy demo photos into folders: their names by folder."""
    for folder, names in chosen.items():
        (root / folder).mkdir(parents=True)
        for name in names:
            shutil.copy(PHOTOS / f"{name}.jpg", root / folder)


@pytest.fixture
def no_reference(monkeypatch):
    """As for an encoder that has no reference: `fit` finds no cut."""
    monkeypatch.setattr("outword.detector.fitting.find_reference", lambda encoder: None)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("OUTWORD_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def detector(own_cache):
    return outword.fit(LABELS)


@pytest.fixture
def saved(detector, tmp_path):
    path = tmp_path / "pets.outword"
    detector.save(path)
    return path


@pytest.fixture(scope="session")
def words_file(tmp_path_factory):
    """A corpus small enough to mine in a test."""
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text(
        "\n".join(f"{a} {b}" for a in ("red", "old", "big") for b in ("dog", "lamp", "tree", "rock", "cat"))
    )
    return path
