"""CONTRIBUTING's guides, tried: the code blocks of "add a method, a source, an encoder, a column, a verb" hold."""

import json
import os
import re
import shutil
import subprocess
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
from outword.base.prediction import COLUMNS
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


def changed(root, diff):
    """Apply a diff, given without line numbers, to a copy; gives the names of the files."""
    names = []
    for change in diff.split("--- ")[1:]:
        name, *lines = change.splitlines()
        before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
        after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
        text = (root / name).read_text()
        assert text.count(before) == 1, name
        (root / name).unlink()  # which is a link
        (root / name).write_text(text.replace(before, after))
        names.append(name)
    return names


COLUMN = """
import asyncio, csv, json, sys
import outword
from outword.client import Result
from outword.scoring import run
from outword.serve import schemas
from outword.serve.app import create_app
from outword.serve.limits import Limits

photo = sys.argv[1]
detector = outword.fit(["tabby cat", "espresso"])
for kind in ("csv", "jsonl"):
    run(detector, photo, f"rows.{kind}", html="page.html")
run(detector, photo, "parts/", html="parts.html")
found = detector.predict(photo)
found.to_csv("found.csv")
app = create_app(detector, Limits())
(columns,) = [route.endpoint for route in app.routes if route.path == "/columns"]
record = found[0]
print(json.dumps({
    "right": record.margin == record.score - record.threshold,
    "csv": next(csv.DictReader(open("rows.csv")))["margin"] == f"{record.margin:.6g}",
    "jsonl": json.loads(open("rows.jsonl").readline())["margin"] == record.margin,
    "python": next(csv.DictReader(open("found.csv")))["margin"] == f"{record.margin:.6g}",
    "pandas": found.to_pandas().margin.tolist() == [record.margin],
    "notebook": '<th scope="col">margin</th>' in found._repr_html_(),
    "page": ["margin" in open(page).read() for page in ("page.html", "parts.html")] == [True, True],
    "schema": "margin" in schemas.ScoreAnswer.model_json_schema()["$defs"]["Result"]["required"],
    "answer": schemas.result_of(record).margin == record.margin,
    "client": Result(photo, margin=1.5).margin == 1.5,
    "export": {"name": "margin", "form": "number"} in asyncio.run(columns()),
    "explain": detector.explain(photo).margin == record.margin,
}))
"""


def test_a_column_is_added_in_four_files(tmp_path):
    """On a copy of the package; the guide promises five at most."""
    package = Path(outword.__file__).parent
    shutil.copytree(package, tmp_path / "src" / "outword", copy_function=os.symlink)
    diff = re.search(r"<!-- column -->\n```diff\n(.*?)```", GUIDE, flags=re.DOTALL).group(1)
    assert len(set(changed(tmp_path, diff))) == 4
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-c", COLUMN, str(PHOTOS / "cat.jpg")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [what for what, right in json.loads(done.stdout).items() if not right] == []


def test_the_page_can_write_every_form():
    cells = (Path(outword.__file__).parent / "serve" / "static" / "exports.js").read_text()
    known = re.search(r"const CELLS = \{.*?\n(.*?)\n\};", cells, flags=re.DOTALL).group(1)
    assert {column.form.name for column in COLUMNS} <= set(re.findall(r"^  (\w+):", known, flags=re.MULTILINE))
