"""CONTRIBUTING's guides, tried: the code blocks of "add a method, a source, an encoder, a verb" do what they say."""

import re
import sys
import textwrap
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import outword
from conftest import PHOTOS
from outword import cli
from outword.detectors import MaxLogit
from outword.photos.sources import SOURCES
from outword.testing import check_detector, check_encoder, planted_world

GUIDE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a code block of the guide to a module and imports it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(mark, name):
        code = re.search(rf"{mark}\n *```python\n(.*?) *```", GUIDE, flags=re.DOTALL).group(1)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return import_module(name)

    return write


def invoke(*args):
    run = CliRunner().invoke(cli.main, [*map(str, args)])
    assert run.exit_code == 0, run.output
    return run.stdout


def test_the_method_of_the_guide_passes_the_public_checks(written):
    made = written("reference, and an example that doctest runs.\n", "topk").TopK
    check_detector(made())
    world = planted_world()
    one, top = made(k=1).fit(world.labels), MaxLogit().fit(world.labels)
    np.testing.assert_array_equal(one.score(world.id_images), top.score(world.id_images))


def test_the_source_of_the_guide_is_read_by_every_verb(written, monkeypatch, tmp_path):
    monkeypatch.setitem(SOURCES._things, "zip", written("<!-- source -->", "zipped").ZIP)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for name in ("cat", "coffee"):
            archive.write(PHOTOS / f"{name}.jpg", f"{name}.jpg")
    (tmp_path / "damaged.zip").write_bytes(b"PK, but no more")
    outword.fit(["tabby cat", "espresso"]).save(tmp_path / "d.outword")
    plain = invoke("score", tmp_path / "d.outword", PHOTOS / "cat.jpg", PHOTOS / "coffee.jpg").splitlines()[1:]
    zips = tmp_path / "photos.zip", tmp_path / "damaged.zip"
    *packed, damaged = invoke("score", tmp_path / "d.outword", *zips).splitlines()[1:]
    assert [row.split(",")[1:] for row in packed] == [row.split(",")[1:] for row in plain]
    assert "the zip file cannot be read" in damaged
    monkeypatch.chdir(tmp_path)
    assert "photos.zip/cat.jpg: in" in invoke("explain", "d.outword", "photos.zip")


def test_the_encoder_of_the_guide_passes_the_public_checks(written):
    colours = written("<!-- encoder -->", "colours").Colours()
    check_encoder(colours)
    found = outword.fit(["red", "green"], encoder=colours, method="mcm").score([PHOTOS / "cat.jpg"])
    assert np.isfinite(found).all()


def test_the_verb_of_the_guide_counts_photos(written, monkeypatch, tmp_path):
    written("<!-- verb -->", "count_verb")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setattr(cli, "VERBS", (*cli.VERBS, "count"))
    assert invoke("count", PHOTOS) == f"{len(list(PHOTOS.glob('*.jpg')))}\n"
    monkeypatch.delitem(sys.modules, "outword.cli.count_verb")
