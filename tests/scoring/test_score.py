"""`outword score` on the sources that people have, into files and into parts, killed and gone on with."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call, contents, rows_of
from helpers.archives import write_tar
from helpers.stopped import stopped
from outword.base.prediction import Prediction, cells
from outword.encoders import reading
from outword.errors import InputError
from outword.maths.thresholds import by_hand
from outword.scoring import parts
from outword.scoring.parts import MANIFEST
from outword.scoring.rows import read_rows, writing
from outword.scoring.stream import open_source, score_source
from outword.vectors.embed import embed
from outword.vectors.reader import read
from outword.vectors.source import Job

WRITES = "outword.scoring.parts:write_synced"
NAMES = ["cat", "coffee", "gravel", "raccoon", "rocket"]  # as a folder has them: batches round alike


def summary(result):
    """What is said at the end: how many images there are of which verdict."""
    return result.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def photos():
    return {name: (PHOTOS / f"{name}.jpg").read_bytes() for name in NAMES}


@pytest.fixture
def shards(tmp_path, photos):
    """Tars of one photo each, among them a broken one: a part each."""
    folder = tmp_path / "shards"
    for number, (name, data) in enumerate([*photos.items(), ("broken", b"")] * 2):
        write_tar(folder / f"{number:06}.tar", {f"{name}.jpg": data, f"{name}.txt": b"a caption"})
    return folder


def test_all_sources_give_the_same_scores(saved, tmp_path, photos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in photos.items():
        Path("folder").mkdir(exist_ok=True)
        Path(f"folder/{name}.jpg").write_bytes(data)
    write_tar(tmp_path / "one.tar", {f"{name}.jpg": data for name, data in photos.items()})
    paths = [f"folder/{name}.jpg" for name in photos]
    Path("list.txt").write_text("\n".join(paths) + "\n\n")
    structs = [{"bytes": data, "path": name} for name, data in photos.items()]
    for file, column, values in (("a", "image", structs), ("b", "jpeg", list(photos.values())), ("c", "path", paths)):
        pa.parquet.write_table(pa.table({column: values, "other": range(5)}), f"{file}.parquet", row_group_size=2)
    by_name = {Path(r["path"]).stem: r for r in rows_of(call("score", saved, "folder").stdout)}
    expected = [{**by_name[name], "path": ""} for name in photos]
    sources = [["one.tar"], ["list.txt"], ["a.parquet"], ["b.parquet", "--column", "jpeg"], ["c.parquet"]]
    for given in [*sources, paths, ["{one,none}.tar"], [f"file://{tmp_path}/one.tar"]]:
        found = [row for row in rows_of(call("score", saved, *given).stdout) if row["path"] != "none.tar"]
        assert [{**row, "path": ""} for row in found] == expected, given


def test_missing_column_lists_those_that_exist(saved, tmp_path):
    pa.parquet.write_table(pa.table({"url": ["a"], "width": [1]}), tmp_path / "t.parquet")
    for more in ([], ["--column", "img"], ["-o", f"{tmp_path}/out/"]):
        told = call("score", saved, tmp_path / "t.parquet", *more, code=2).stderr
        assert "url, width" in told and "hint: " in told


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_parts_have_the_rows_of_the_file(saved, shards, tmp_path, kind):
    single = call("score", saved, f"{shards}/*.tar", "-o", tmp_path / f"one.{kind}")
    several = call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/", "--format", kind)
    files = sorted((tmp_path / "out").glob("part-*"))
    assert len(files) == 12
    rows = [row for file in files for row in read_rows(file, kind)]
    whole = list(read_rows(tmp_path / f"one.{kind}", kind))
    assert rows == [{**row, "notes": ""} for row in whole] and len(rows) == 12
    assert [bool(row["notes"]) for row in whole] == [False] * 6 + [True] * 5 + [False]  # each photo is there twice
    assert summary(single) == summary(several) and summary(single).startswith("12 images: ")
    assert [row["error"] for row in rows].count("empty file") == 2 and single.stdout == several.stdout == ""
    again = call("score", saved, f"{shards}/*.tar", "-o", tmp_path / "out", "--format", kind)
    assert "12 rows are there already" in again.stderr and summary(again) == summary(single)


def test_page_of_parts_shows_what_is_in_tars(saved, shards, tmp_path):
    call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/", "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 10 and "empty file" in page


def test_cut_into_parts_and_chunks_changes_nothing(detector, shards, monkeypatch):
    def rows():
        return [row for row, _ in score_source(detector, open_source(detector, [f"{shards}/*.tar", PHOTOS]))]

    whole = rows()
    for size in (3, 4):
        monkeypatch.setattr(reading, "PART", size)
        found = rows()
        assert [(row.path, row.error) for row in found] == [(row.path, row.error) for row in whole]
        scores = [[row.score for row in some if not row.error] for some in (found, whole)]
        assert scores[0] == scores[1]


def test_parts_of_a_large_piece_are_gone_on_with(saved, photos, tmp_path, monkeypatch):
    for module in (parts, reading):
        monkeypatch.setattr(module, "PART", 2)
    write_tar(tmp_path / "one.tar", {f"{name}.jpg": data for name, data in photos.items()})
    call("score", saved, tmp_path / "one.tar", "-o", f"{tmp_path}/out/")
    whole = contents(tmp_path / "out")
    assert sorted(whole) == [MANIFEST, *(f"part-000000-000{n}.csv" for n in range(3))]
    (tmp_path / "out" / "part-000000-0001.csv").unlink()
    again = call("score", saved, tmp_path / "one.tar", "-o", f"{tmp_path}/out/")
    assert "warning: part-000000-0001.csv was lost or damaged" in again.stderr and "2 rows are there" in again.stderr
    assert contents(tmp_path / "out") == whole


def test_killed_anywhere_and_run_again(saved, shards, tmp_path):
    """Before the manifest is written, and before the third and the eighth part."""
    call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/whole/")
    for number in (0, 3, 8):
        out = tmp_path / str(number)
        with stopped(WRITES, number, "score", saved, f"{shards}/*.tar", "-o", f"{out}/") as process:
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert len(list(out.glob("part-*"))) == max(0, number - 1)
        call("score", saved, f"{shards}/*.tar", "-o", f"{out}/")
        assert contents(out) == contents(tmp_path / "whole")


def test_twice_at_once(saved, shards, tmp_path):
    with stopped(WRITES, 1, "score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/") as process:
        assert "another run is writing" in call("score", saved, shards, "-o", tmp_path / "out", code=2).stderr
    assert process.returncode == 0
    assert json.loads((tmp_path / "out" / MANIFEST).read_text().splitlines()[-1])["rows"] == 12


def test_other_detector_or_source_into_the_same_folder(saved, shards, tmp_path):
    out = f"{tmp_path}/out/"
    call("score", saved, f"{shards}/*.tar", "-o", out)
    outword.load(saved).with_threshold(by_hand(1.0)).save(tmp_path / "other.outword")
    told = call("score", tmp_path / "other.outword", f"{shards}/*.tar", "-o", out, code=2).stderr
    assert "another run: detector differ" in told
    (shards / "000003.tar").unlink()
    told = call("score", saved, f"{shards}/*.tar", "-o", out, code=2).stderr
    assert "the source is not what it was when the run began" in told and "hint: score it into another folder" in told


def test_source_that_is_not_there_is_not_begun(saved, tmp_path):
    for name in ("photo", "none*.tar", "{000..002}.tar"):
        told = call("score", saved, tmp_path / name, "-o", f"{tmp_path}/out/", code=2).stderr
        assert f"there is nothing at {tmp_path}/{name}" in told and not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", [[], ["-o", "out/"]])
@pytest.mark.parametrize("pattern", ["{0..999999999999}.jpg", "{a,b}" * 2000, f"{{0..{'9' * 5000}}}", "**/a/" * 9])
def test_patterns_without_end_are_one_line(saved, tmp_path, monkeypatch, pattern, output):
    monkeypatch.chdir(tmp_path)
    told = call("score", saved, pattern, *output, code=2).stderr.strip().splitlines()
    assert told[-2].startswith("error: ") and told[-1].startswith("hint: ") and not (tmp_path / "out").exists()


def test_strict_and_methods_that_learn(saved, shards, tmp_path, words_file):
    result = call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/", "--strict", code=1)
    assert "empty file (--strict)" in result.stderr
    (tmp_path / "l.txt").write_text("\n".join(LABELS))
    options = ["--method", "adaneg", "--corpus", words_file, "--miner", "density", "--set", "n_groups=3"]
    call("fit", tmp_path / "l.txt", "-o", tmp_path / "d", *options)
    told = call("score", tmp_path / "d", f"{shards}/*.tar", "-o", f"{tmp_path}/learns/", code=2).stderr
    assert "adaneg learns from the images that it scores" in told and not (tmp_path / "learns").exists()


def test_options_that_do_not_go_together(saved, tmp_path):
    told = call("score", saved, PHOTOS, "--address", "auto", code=2).stderr
    assert "--address is that of a Ray cluster, and the engine is local" in told
    shutil.copy(PHOTOS / "cat.jpg", tmp_path)
    assert "holds other files" in call("score", saved, PHOTOS, "-o", tmp_path, code=2).stderr


def test_embed_takes_the_same_sources(shards, tmp_path):
    result = call("embed", f"{shards}/*.tar", "-o", tmp_path / "s")
    assert "12 images: 5 encoded, 5 reused, 2 errors; the store has 12" in result.stderr


def test_output_within_the_source_is_refused(saved, tmp_path):
    shutil.copytree(PHOTOS, tmp_path / "photos")
    for output in (f"{tmp_path}/photos/scores/", tmp_path / "photos" / "s.parquet"):
        told = call("score", saved, tmp_path / "photos", "-o", output, code=2).stderr
        assert "lies in" in told and "hint: " in told
        assert "lies in" in call("score", saved, f"{tmp_path}/{{none,photos}}", "-o", output, code=2).stderr
    call("score", saved, tmp_path / "photos", "-o", tmp_path / "photos" / "s.csv")  # is not read as a source


def test_hint_for_a_missing_column_can_be_followed(saved, photos, tmp_path):
    pa.parquet.write_table(pa.table({"jpeg": [photos["cat"]]}), tmp_path / "t.parquet")
    call("score", saved, tmp_path / "t.parquet", "-o", f"{tmp_path}/out/", code=2)
    call("score", saved, tmp_path / "t.parquet", "-o", f"{tmp_path}/out/", "--column", "jpeg")
    told = call("calibrate", saved, tmp_path / "t.parquet", "-o", tmp_path / "d", "--column", "jpeg", code=2).stderr
    assert "at least 5 readable ID photos, got 1" in told


def test_other_options_of_the_encoder_are_another_run(saved, shards, tmp_path):
    call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/")
    told = call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/", "--encoder", "mini", code=2).stderr
    assert "another run: options differ" in told


def test_strict_sees_errors_of_an_earlier_run(saved, shards, tmp_path):
    call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/")
    told = call("score", saved, f"{shards}/*.tar", "-o", f"{tmp_path}/out/", "--strict", code=1).stderr
    assert "2 images could not be read (--strict)" in told


def test_store_that_grows_after_it_was_opened_is_seen(detector, tmp_path):
    paths = sorted(PHOTOS.glob("*.jpg"))
    embed(detector.encoder, paths[:2], tmp_path / "s")
    (before,) = open_source(detector, [tmp_path / "s"]).pieces()
    embed(detector.encoder, paths[:4], tmp_path / "s")
    (after,) = open_source(detector, [tmp_path / "s"]).pieces()
    assert before.version() != after.version() and (len(before.opened), len(after.opened)) == (2, 4)
    with pytest.raises(InputError, match="has changed since the run began"):
        list(read([Job(0, after, 0, before.version())], None, 0))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_odd_names_come_back(tmp_path, kind):
    names = ["a\rb", "a\nb", "a\r\nb", 'q"u,o', "x" * 200_000, " ", "caf\u00e9", "-o"]
    values = {"score": 0.5, "verdict": "in", "label": "cat, the", "words": (("ice; cream", 0.25),)}
    records = [Prediction(name, **values) for name in names]
    with (tmp_path / "rows").open("wb") as file, writing(file, kind) as write:
        for record in records:
            write(record)
    rows = list(read_rows(tmp_path / "rows", kind))
    assert rows == [cells(record) for record in records]
    assert [row["path"] for row in rows] == names and {row["words"] for row in rows} == {"ice; cream 0.25"}


FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\uff1d1",
    "'=1",
    "''-1",
    "a;=1",
    "a;b\t;@c",
]
WRITTEN = [
    r"caf\xe9.jpg",
    r"\xff\x80",
    r"\x5cxe9",
    r"\\xe9",
    r"\x5cx5c",
    r"\\x5cx5cx5c\x80",
    r"C:\x\x41.jpg",
    r"\ud800",
]
ODD = ["caf\udce9.jpg", "\udcff\udc80", "\\xe9", "\\\udce9", "\\x5c", "\\\\x5cx5c\udc80", "C:\\x\\x41.jpg", "\ud800"]


@pytest.mark.parametrize("raw_csv", [False, True])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_formulas_and_bytes_that_are_no_text_come_back(tmp_path, kind, raw_csv):
    rng = np.random.default_rng(0)
    alphabet = list("=+-@'; ,\t\r\n\\x5ce9\"\udce9\udc80a")
    names = [*FORMULAS, *ODD[:-1], *("".join(rng.choice(alphabet, 6)) for _ in range(2000))]
    values = {"score": -1.5, "verdict": "in", "basis": "reference", "threshold": 0.5, "p": 0.125}
    with (tmp_path / "rows").open("wb") as file, writing(file, kind, raw_csv=raw_csv) as write:
        for name in names:
            notes, words = ("blurred", f"the same as {name}"), ((f"w{name}w", 0.25),)
            own = {"label": f"a{name}", "kind": f"k{name}", "nearest": f"n{name}"}
            write(Prediction(name, looks_like=(f"b{name}",), words=words, notes=notes, error=name, **own, **values))
    got = list(read_rows(tmp_path / "rows", kind, raw_csv=raw_csv))
    assert got == [
        {
            **{"path": name, **values, "label": f"a{name}", "looks_like": f"b{name}", "words": f"w{name}w 0.25"},
            **{"kind": f"k{name}", "nearest": f"n{name}"},
            **{"notes": f"blurred; the same as {name}", "error": name},
        }
        for name in names
    ]


def test_csv_is_text_and_has_no_formulas(tmp_path):
    with (tmp_path / "rows.csv").open("wb") as file, writing(file, "csv") as write:
        for name in [*FORMULAS, *ODD]:
            texts = {"label": name, "looks_like": (name,), "words": ((name, 0.25),), "notes": (name,), "error": name}
            write(Prediction(name, score=-1.5, verdict="in", **texts))
    rows = rows_of((tmp_path / "rows.csv").read_bytes().decode("utf-8", "strict"))
    assert {row["score"] for row in rows} == {"-1.5"}
    cells = [row[column] for row in rows for column in ("path", "label", "words", "notes", "error")]
    assert not [
        cell for cell in cells for part in re.split("[;\t\r\n]", cell) if part.lstrip()[:1] in set("=+-@\uff1d")
    ]
    assert [row["path"] for row in rows][: -len(ODD)][:2] == ["'=cmd|' /C calc'!A0", "'+1"]
    assert [row["path"] for row in rows][-len(ODD) :] == WRITTEN


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_hostile_names_in_files_and_parts(saved, photos, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"caf\xe9.jpg")
    for name in ("=1+1.jpg", odd):
        Path(name).write_bytes(photos["cat"])
    first = "'=1+1.jpg" if kind == "csv" else "=1+1.jpg"
    call("score", saved, "=1+1.jpg", odd, "-o", f"out.{kind}")
    call("score", saved, "=1+1.jpg", odd, "-o", "out/", "--format", kind)
    for file in (Path(f"out.{kind}"), Path(f"out/part-000000-0000.{kind}")):
        if kind == "parquet":
            found = pyarrow.parquet.read_table(file).column("path").to_pylist()
        elif kind == "csv":
            found = [row["path"] for row in rows_of(file.read_text("utf-8"))]
        else:
            found = [json.loads(line)["path"] for line in file.read_text("utf-8").splitlines()]
        assert found == [first, "caf\\xe9.jpg"]
        assert [row["path"] for row in read_rows(file, kind)] == ["=1+1.jpg", odd]


def test_raw_csv(saved, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("=1+1.jpg").write_bytes(photos["cat"])
    assert rows_of(call("score", saved, "=1+1.jpg", "--raw-csv").stdout)[0]["path"] == "=1+1.jpg"
    call("score", saved, "=1+1.jpg", "--raw-csv", "-o", "out/")
    assert rows_of(Path("out/part-000000-0000.csv").read_text())[0]["path"] == "=1+1.jpg"
    assert "another run: raw_csv differ" in call("score", saved, "=1+1.jpg", "-o", "out/", code=2).stderr
    told = call("score", saved, "=1+1.jpg", "--raw-csv", "--format", "jsonl", code=2).stderr
    assert "--raw-csv is about CSV, and the format is jsonl" in told


def test_notes_stand_in_every_format_and_change_no_score(saved, tmp_path, photos):
    for name in ("a;=b", "copy"):
        (tmp_path / f"{name}.jpg").write_bytes(photos["cat"])
    dark = PIL.Image.new("RGB", (300, 300))
    dark.save(tmp_path / "dark.png")
    (tmp_path / "bad.jpg").write_bytes(b"")
    given = [tmp_path / name for name in ("a;=b.jpg", "bad.jpg", "copy.jpg", "dark.png", "dark.png")]
    wanted = ["", "", f"the same as {given[0]}", "nearly black", "nearly black"]
    for kind in ("csv", "jsonl", "parquet"):
        result = call("score", saved, *given, "-o", tmp_path / f"s.{kind}", "--html", tmp_path / "page.html")
        assert [row["notes"] for row in read_rows(tmp_path / f"s.{kind}", kind)] == wanted
        page = (tmp_path / "page.html").read_text()
        assert page.count("nearly black") == 2 and page.count("the same as ") == 1
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert rows[2]["notes"] == [wanted[2]] and list(rows[0])[-2:] == ["notes", "error"]
    assert rows[0]["score"] == rows[2]["score"]
    in_parts = call("score", saved, *given, "-o", f"{tmp_path / 'parts'}/")
    assert summary(in_parts) == summary(result)
    (part,) = (tmp_path / "parts").glob("part-*.csv")
    assert [row["notes"] for row in read_rows(part, "csv")] == ["", "", "", *wanted[3:]]


def test_notes_are_the_same_in_any_chunk_and_by_any_number_of_threads(detector, tmp_path, photos, monkeypatch):
    for number in range(3):
        for name, data in photos.items():
            (tmp_path / f"{number}-{name}.jpg").write_bytes(data)
    found = []
    for size, threads in ((64, 1), (4, 2), (1, 3)):
        monkeypatch.setattr(type(detector.encoder), "chunk", size)
        monkeypatch.setattr(reading, "usable_cpus", lambda threads=threads: threads)
        outword.scoring.run(detector, tmp_path, tmp_path / "rows.csv")
        found.append([row["notes"] for row in read_rows(tmp_path / "rows.csv", "csv")])
        (tmp_path / "rows.csv").unlink()
    assert found[0] == found[1] == found[2]
    assert found[0][:5] == [""] * 5 and found[0][5:] == 2 * [f"the same as {tmp_path}/0-{name}.jpg" for name in NAMES]


def test_notes_in_python(detector, photos):
    data = [photos["cat"], photos["coffee"], b"", photos["cat"], Image.open(PHOTOS / "tripod.jpg").resize((40, 30))]
    notes = [one.notes for one in detector.predict(data)]
    assert notes == [(), (), (), ("the same as photos[0]",), ("only 40 x 30 pixels",)]
