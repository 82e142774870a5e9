"""Output in parts: what is written, how a run goes on, and what is refused."""

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import contents
from outword.base.files import _machine
from outword.base.prediction import Prediction, cells
from outword.encoders.reading import Span
from outword.errors import ArtifactError, InputError
from outword.photos.sources.base import Piece
from outword.scoring import parts as module
from outword.scoring.parts import MANIFEST, SCHEMA, Parts, left_over
from outword.scoring.rows import Totals, Writer

ABOUT = {"detector": "d" * 64}


@dataclass(frozen=True)
class Named(Piece):
    """A piece of so many photos, that are never read."""

    label: str
    photos: int

    @property
    def name(self):
        return self.label

    def items(self, skip=0, *, contents=True):
        return iter([Path(f"{self.label}/{n}") for n in range(skip, self.photos)])

    def version(self):
        return f"{self.label} {self.photos}"


PIECES = [Named("a", 25), Named("empty", 0), Named("b", 20), Named("c", 3)]


@pytest.fixture(autouse=True)
def ten_rows_a_part(monkeypatch):
    monkeypatch.setattr(module, "PART", 10)


def row(path):
    if path[-1] == "3":
        return Prediction(path, error="empty")
    return Prediction(
        path,
        score=len(path) / 8,  # exact in six digits
        verdict="in",
        basis="batch",
        threshold=-0.5,
        p=0.25,
        label="cat",
        kind="tabby",
        nearest="cat",
        looks_like=("cat", "cat (pet)"),
        labels=(("cat", 0.5), ("dog", 0.1 + 0.2)),
        words=(("raccoon", 0.1 + 0.2),),
        notes=("blurred",),
    )


def chunks(pieces, progress, size=4):
    """What an engine gives: chunks that end where a part does."""
    for job in left_over(pieces, progress):
        paths = [str(item) for item in job.piece.items(job.skip)]
        cuts, place = [], 0
        while place < len(paths) or not cuts:
            stop = min(place + size, len(paths), (place // 10 + 1) * 10)
            cuts.append((place, stop))
            place = stop
        for start, stop in cuts:
            rows = [row(path) for path in paths[start:stop]]
            yield Span(job.number, job.piece.name, job.version, job.skip + start, stop == len(paths)), rows


def run(folder, pieces=PIECES, kind="csv", stop=None, order=None, about=ABOUT):
    """Write a run, or the first `stop` chunks of it; `order` shuffles what comes."""
    with Parts(folder, kind, about) as parts:
        found = list(chunks(pieces, parts.progress()))
        if order is not None:
            random.Random(order).shuffle(found)
        for span, rows in found[:stop]:
            parts.add(span, rows)
        if stop is None:
            parts.finish(len(pieces))
        rows = parts.records() if kind == "records" else parts.rows()
        return list(rows), parts.totals(), parts.redone, len(found)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "records"])
def test_rows_come_back_in_the_order_of_the_source(tmp_path, kind):
    rows, totals, _, _ = run(tmp_path / "s", kind=kind)
    names = [f"{piece.label}/{n}" for piece in PIECES for n in range(piece.photos)]
    whole = [row(name) for name in names]
    assert rows == (whole if kind == "records" else [cells(one) for one in whole])
    count = Writer(lambda record: None)
    for one in whole:
        count(one)
    assert totals == count.totals() == Totals(48, {"error": 5, "in": 43})
    expected = ["000000-0000", "000000-0001", "000000-0002", "000002-0000", "000002-0001", "000003-0000"]
    assert sorted(contents(tmp_path / "s")) == [MANIFEST, *(f"part-{part}.{kind}" for part in expected)]


@pytest.mark.parametrize("order", range(5))
def test_order_does_not_matter(tmp_path, order):
    run(tmp_path / "one")
    run(tmp_path / "other", order=order)
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


@pytest.mark.parametrize("order", [None, 1, 2])
@pytest.mark.parametrize("stop", range(0, 16, 2))
def test_run_that_ends_anywhere_goes_on(tmp_path, stop, order):
    run(tmp_path / "whole")
    _, _, _, before = run(tmp_path / "s", stop=stop, order=order)
    _, totals, _, left = run(tmp_path / "s", order=order)
    assert contents(tmp_path / "whole") == contents(tmp_path / "s")
    assert totals.rows == 48 and left <= before
    _, _, _, again = run(tmp_path / "s")
    assert again == 0  # nothing is scored twice
    assert contents(tmp_path / "whole") == contents(tmp_path / "s")


def test_what_a_kill_leaves_behind(tmp_path):
    run(tmp_path / "whole")
    folder = tmp_path / "s"
    run(folder, stop=9)
    manifest = folder / MANIFEST
    manifest.write_bytes(manifest.read_bytes() + b'{"piece": 2, "pa')  # a line cut off
    (folder / f".outword-{_machine()}-0123456789abcdef").mkdir()
    (folder / "part-000002-0000.csv").write_bytes(b"written, but not in the manifest")
    run(folder)
    assert contents(tmp_path / "whole") == contents(folder)


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_lost_part_is_made_again(tmp_path, damage):
    run(tmp_path / "s")
    whole = contents(tmp_path / "s")
    part = tmp_path / "s" / "part-000000-0001.csv"
    part.write_bytes(part.read_bytes()[:-1]) if damage == "changed" else part.unlink()
    _, totals, redone, scored = run(tmp_path / "s")
    assert redone == ["part-000000-0001.csv"] and totals.rows == 48
    assert scored == 3 + 2  # the second and the third part of that piece
    assert contents(tmp_path / "s") == whole


def test_source_that_grew_at_its_end_is_gone_on_with(tmp_path):
    run(tmp_path / "s", PIECES[:2])
    _, totals, _, _ = run(tmp_path / "s")
    run(tmp_path / "whole")
    assert totals.rows == 48 and contents(tmp_path / "s") == contents(tmp_path / "whole")


def test_source_that_changed_is_refused(tmp_path):
    run(tmp_path / "s")
    for pieces in ([Named("a", 26), *PIECES[1:]], PIECES[1:]):
        with pytest.raises(InputError, match="not what it was when the run began"):
            run(tmp_path / "s", pieces)
    with pytest.raises(InputError, match="not in it any more: c"):
        run(tmp_path / "s", PIECES[:3])
    assert run(tmp_path / "s")[1].rows == 48


def test_another_run_is_refused(tmp_path):
    run(tmp_path / "s")
    with pytest.raises(InputError, match="holds the output of another run: detector differ"):
        run(tmp_path / "s", about={"detector": "e" * 64})
    with pytest.raises(InputError, match="format"):
        run(tmp_path / "s", kind="jsonl")


def test_raw_csv_is_another_run(tmp_path):
    def rows(**options):
        with Parts(tmp_path / "s", "csv", ABOUT, **options) as parts:
            for span, rows in chunks([Named("=a", 3)], parts.progress()):
                parts.add(span, rows)
            parts.finish(1)
            return list(parts.rows())

    assert rows(raw_csv=True) == rows(raw_csv=True) == [cells(row(f"=a/{n}")) for n in range(3)]
    assert b"\n=a/1," in (tmp_path / "s" / "part-000000-0000.csv").read_bytes()
    with pytest.raises(InputError, match="another run: raw_csv differ"):
        rows()


def test_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match=r"holds other files \(cat.jpg\)"):
        run(tmp_path / "photos")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(InputError, match="is no folder"):
        run(tmp_path / "file")
    with pytest.raises(InputError, match="is not a folder"):
        run(tmp_path / "none" / "s")
    assert os.listdir(tmp_path / "photos") == ["cat.jpg"]


@pytest.mark.parametrize("text", ["", "\n", "[]\n", "{}\n{}\n", "\0\n", '{"schema": 1}\n{"piece": []}\n'])
def test_damaged_manifest_is_refused(tmp_path, text):
    run(tmp_path / "s")
    (tmp_path / "s" / MANIFEST).write_text(text)
    with pytest.raises((ArtifactError, InputError)):
        run(tmp_path / "s")


def test_chunk_that_comes_twice_is_written_once(tmp_path):
    run(tmp_path / "whole")
    with Parts(tmp_path / "s", "csv", ABOUT) as parts:
        for span, rows in chunks(PIECES, {}):
            parts.add(span, rows)
            parts.add(span, rows)
        parts.finish(len(PIECES))
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


@pytest.mark.parametrize("lost", range(0, 16, 3))
def test_run_is_not_complete_while_a_chunk_is_missing(tmp_path, lost):
    found = list(chunks(PIECES, {}))
    with Parts(tmp_path / "s", "csv", ABOUT) as parts:
        for span, rows in found[:lost] + found[lost + 1 :]:
            parts.add(span, rows)
        with pytest.raises((ArtifactError, InputError)):
            parts.finish(len(PIECES))
    assert b"complete" not in (tmp_path / "s" / MANIFEST).read_bytes()
    assert run(tmp_path / "s")[1].rows == 48


def test_part_that_no_manifest_knows_is_removed(tmp_path):
    run(tmp_path / "s", PIECES[:2])
    (tmp_path / "s" / "part-000009-0000.csv").write_bytes(b"of a killed run")
    (tmp_path / "s" / "notes.csv").write_bytes(b"the user's")
    run(tmp_path / "s")
    assert len(contents(tmp_path / "s")) == 1 + 6 + 1


def test_run_without_parts_may_become_another(tmp_path):
    run(tmp_path / "s", stop=0, about={"column": None})
    assert run(tmp_path / "s")[1].rows == 48


def test_refused_run_changes_nothing(tmp_path):
    run(tmp_path / "s")
    whole = contents(tmp_path / "s")
    for pieces, about in ((PIECES[1:], ABOUT), (PIECES[:1], ABOUT), ([], ABOUT), (PIECES, {"detector": ""})):
        with pytest.raises(InputError):
            run(tmp_path / "s", pieces, about=about)
        assert contents(tmp_path / "s") == whole


def test_one_writer_at_a_time(tmp_path):
    with Parts(tmp_path / "s", "csv", ABOUT), pytest.raises(InputError, match="another run is writing"):
        run(tmp_path / "s")
    assert run(tmp_path / "s")[1].rows == 48


def test_manifest_can_be_read(tmp_path):
    run(tmp_path / "s")
    first, *parts, last = map(json.loads, (tmp_path / "s" / MANIFEST).read_text().splitlines())
    assert first == {"schema": SCHEMA, "format": "csv", "raw_csv": False, "part_rows": 10, **ABOUT}
    assert [(part["name"], part["rows"], part["last"]) for part in parts] == [
        *[("a", 10, False), ("a", 10, False), ("a", 5, True), ("empty", 0, True)],
        *[("b", 10, False), ("b", 10, True), ("c", 3, True)],
    ]
    assert (last["complete"], last["pieces"], last["rows"]) == (True, 4, 48)


def test_jobs_are_what_is_left():
    jobs = left_over(PIECES, {0: ("a 25", None), 2: ("b 20", 10)})
    assert [(job.number, job.skip) for job in jobs] == [(1, 0), (2, 10), (3, 0)]


def test_a_run_that_an_older_version_began_does_not_go_on(tmp_path):
    run(tmp_path / "s", stop=3)
    manifest = tmp_path / "s" / MANIFEST
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join([lines[0].replace(f'"schema": {SCHEMA}', f'"schema": {SCHEMA - 1}'), *lines[1:]]))
    with pytest.raises(InputError, match="was begun by another version of outword, whose rows have other columns"):
        run(tmp_path / "s")
