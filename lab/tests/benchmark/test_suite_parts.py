"""`outword bench` on suites of parts, and on the rendered world, which needs no data."""

import json
import signal
import sys

import numpy as np
import pytest

from conftest import call
from helpers.stopped import stopped
from outword.base.extras import install
from outword_lab.benchmark.run import parts as parts_of_run
from outword_lab.benchmark.show.overview import Answer
from outword_lab.benchmark.show.table import Column, Line, Table

TABLE = """
title = "Two encoders"
about = "What is asked here."
id = ["world-train"]
ood = ["world-ground"]
encoders = ["world-s"]
corpora = ["world"]
prompts = "mcm"
seeds = 2
methods = ["mcm", "neglabel"]
"""
SWEEP = """
title = "A sweep"
kind = "sweep"
id = ["world-train"]
ood = ["world-ground"]
encoders = ["world-s"]
corpora = ["world"]
seeds = 1
[[methods]]
method = "neglabel"
name = "far words"
miner = "quantile"
params = { n_groups = 10 }
[[methods]]
method = "neglabel"
name = "dense words"
miner = "density"
params = { n_groups = 10 }
[[sweep]]
parameter = "L"
values = [100, 3418]
"""
QUICK = ["--samples", 20]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "table.toml").write_text(TABLE)
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "both.toml").write_text('title = "Both"\nabout = "All."\nparts = ["table.toml", "sweep.toml"]\n')
    return folder / "both.toml"


@pytest.fixture(scope="module")
def whole(suite, tmp_path_factory):
    """The results of a run that nothing stopped, with plots."""
    folder = tmp_path_factory.mktemp("whole") / "results"
    return folder, call("bench", suite, "-o", folder, *QUICK)


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr("outword_lab.benchmark.run.bench.write_plots", lambda outcome, folder: [])


def tables_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.glob("*/tables/*"))}


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_every_part_has_a_folder_and_all_have_a_page(whole):
    folder, seen = whole
    assert [line for line in seen.stdout.splitlines() if line.startswith("###")] == [
        "### Two encoders",
        "### A sweep: L",
    ]
    assert sorted(path.name for path in (folder / "store").glob("[!.]*")) == ["world-ground", "world-train"]
    assert not list(folder.glob("*/store"))
    page = (folder / "report.html").read_text()
    for told in ("What is asked here.", "All.", "has the highest AUROC", "dense words", "data:image/svg"):
        assert told in page
    for part in ("table", "sweep"):
        assert f'href="{part}/report.html"' in page and (folder / part / "report.html").exists()
    assert "What it answers" not in page
    failures = (folder / "table" / "report.html").read_text()
    assert "world:ground/nothing/" in failures and "data:image/jpeg" in failures  # thumbnails are drawn again


def test_a_rule_that_counts_in_shares_is_swept_by_the_number_of_words(whole):
    rows = {(row["entry"], row["point"]): row["config"]["miner"]["parameters"] for row in rows_of(whole[0] / "sweep")}
    assert rows["dense words", "L=100"]["size"] == 100
    assert np.isclose(rows["far words", "L=100"]["share"], 100 / 3418)
    assert rows["far words", "L=3418"]["share"] == 1


def test_what_is_done_is_not_done_again(whole, suite, monkeypatch, no_plots):
    before = tables_of(whole[0])
    monkeypatch.setattr("outword.choosing.cell.prepare", lambda *a, **k: pytest.fail("fitted again"))
    monkeypatch.setattr("outword_lab.benchmark.run.photos.embed", lambda *a, **k: pytest.fail("drawn again"))
    call("bench", suite, "-o", whole[0], *QUICK)
    assert tables_of(whole[0]) == before


def test_killed_between_two_parts(whole, suite, tmp_path, no_plots):
    out, store = tmp_path / "killed", whole[0] / "store"
    given = ["bench", suite, "-o", out, "--store", store, *QUICK]
    with stopped("outword_lab.benchmark.run.parts:bench", 1, *given) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert (out / "table" / "report.html").exists() and not (out / "report.html").exists()
    lines = (out / "table" / "rows.jsonl").read_bytes()
    call(*given)
    assert (out / "table" / "rows.jsonl").read_bytes() == lines
    assert tables_of(out) == tables_of(whole[0])


def test_a_part_is_a_suite_and_results_have_a_place_by_default(whole, suite, tmp_path, monkeypatch, no_plots):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("of no matter\n")
    seen = call("bench", suite.parent / "table.toml", "--store", whole[0] / "store", *QUICK)
    assert "results: outword-table" in seen.stderr and "report: outword-table/report.html" in seen.stderr
    keys = [[row["key"] for row in rows_of(folder)] for folder in (tmp_path / "outword-table", whole[0] / "table")]
    assert keys[0] == keys[1]


def test_options(whole, suite, tmp_path, no_plots):
    given = ["--store", whole[0] / "store", *QUICK]
    seen = call("bench", suite, "-o", tmp_path / "r", "--methods", "mcm", *given)
    assert "sweep: skipped: it has none of the methods that were asked for." in seen.stderr
    assert "sweep: skipped" in (tmp_path / "r" / "report.html").read_text()
    other = call(
        "bench", suite, "-o", tmp_path / "s", "--encoder", "world-s=world-m", "--seeds", 1, "--methods", "mcm", *QUICK
    )
    assert "Encoder world-s: world-m stands for it." in other.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--folder"], "--folder is for a suite without parts, got both"),
        (["--encoder", "mini"], "--encoder must be NAME=ENCODER for a suite of parts, NAME one of world-s; got mini"),
        (["--encoder", "world-l=mini"], "NAME one of world-s; got world-l=mini"),
        (["--methods", "mmc"], 'unknown method of both "mmc"'),
        (["--data", "nowhere"], "ROOT must be a folder with data sets, got nowhere"),
    ],
)
def test_bad_options(suite, tmp_path, options, told):
    seen = call("bench", suite, "-o", tmp_path / "r", *options, code=2)
    assert told in seen.stderr and "hint: " in seen.stderr


def test_a_folder_of_parts_is_not_taken_for_another_suite(whole, suite):
    seen = call("bench", suite.parent / "table.toml", "-o", whole[0], *QUICK, code=2)
    assert "holds results of the suite both, not of table" in seen.stderr


def test_a_part_that_cannot_be_run_is_a_line(suite, whole, tmp_path, no_plots):
    (tmp_path / "bad.toml").write_text(TABLE.replace('"world-s"', '"onnx:nowhere"'))
    (tmp_path / "table.toml").write_text(TABLE)
    (tmp_path / "all.toml").write_text('title = "T"\nparts = ["bad.toml", "table.toml"]\n')
    given = ["--store", whole[0] / "store", *QUICK, "--methods", "mcm"]
    seen = call("bench", tmp_path / "all.toml", "-o", tmp_path / "r", *given)
    assert "bad: skipped: " in seen.stderr and "### Two encoders" in seen.stdout
    (tmp_path / "all.toml").write_text('title = "T"\nparts = ["bad.toml"]\n')
    assert (
        "no part of all could be run (bad: "
        in call("bench", tmp_path / "all.toml", "-o", tmp_path / "s", *given, code=2).stderr
    )


def test_answers(suite, whole, monkeypatch, no_plots):
    table = Table("answer", "In short", [Column("part", "part")], [Line(["table"])], ["A note."])

    def answers(encoders, store, folder, report):
        assert (store, folder) == ((whole[0] / "store").absolute(), whole[0])
        return [Answer("Which?", ["This <b>one</b>."], [table])]

    monkeypatch.setitem(parts_of_run.ANSWERS, "both", answers)
    seen = call("bench", suite, "-o", whole[0], *QUICK)
    assert seen.stdout.startswith("### In short")
    page = (whole[0] / "report.html").read_text()
    assert (
        page.index("What it answers") < page.index("Which?") < page.index("This &lt;b&gt;one") < page.index("A note.")
    )
    assert (whole[0] / "tables" / "answer.csv").read_text() == "part\ntable\n"


def test_without_matplotlib(suite, whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    seen = call("bench", suite, "-o", tmp_path / "r", "--store", whole[0] / "store", *QUICK)
    assert seen.stderr.count("no plots are drawn") == 1
    assert f"{install('bench')} brings them" in seen.stderr and "plots:" not in seen.stderr
    assert tables_of(tmp_path / "r") == tables_of(whole[0])
    assert not list((tmp_path / "r").rglob("*.svg"))
    assert "No plots were drawn." in (tmp_path / "r" / "sweep" / "report.html").read_text()
