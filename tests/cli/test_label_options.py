"""Labels on the command line: typed, from standard input and from files, for all verbs; and no fit first."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import outword
from conftest import LABELS, PHOTOS, call, lay_out, rows_of
from helpers.contrastive import paint, register
from outword.cli import main
from outword.detector import cached
from outword.detector.saving import zipped

TYPED = ", ".join(LABELS)


@pytest.fixture
def no_fit(monkeypatch):
    """A function after which nothing is fitted any more."""
    return lambda: monkeypatch.setattr(cached, "fit", lambda *args, **options: pytest.fail("it was fitted again"))


def piped(text, *args):
    """Run the command line with this on standard input."""
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=text)
    assert result.exit_code == 0, result.output
    return result


def test_one_line_from_names_to_rows_and_a_page(saved, tmp_path, no_fit):
    photos = [PHOTOS / "cat.jpg", PHOTOS / "gravel.jpg"]
    first = call("score", "--labels", TYPED, *photos, "--html", tmp_path / "page.html")
    assert first.stdout == call("score", saved, *photos).stdout
    assert (tmp_path / "page.html").read_text().count("<img") == 2
    no_fit()
    again = call("score", *photos, "--labels", TYPED, "-o", tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == first.stdout
    assert again.stderr.splitlines()[0] == f"{TYPED}: fitted before, and taken from the cache (mini, grounded)"


def test_labels_from_standard_input_and_from_files_are_the_same_detector(tmp_path, no_fit):
    expected = call("score", "--labels", TYPED, PHOTOS / "cat.jpg").stdout
    no_fit()
    assert piped("\n".join(LABELS), "score", "--labels", "-", PHOTOS / "cat.jpg").stdout == expected
    rows = "".join(f"{number},{label}\n" for number, label in enumerate(LABELS))
    (tmp_path / "l.csv").write_text(f"number,species\n{rows}")
    found = call("score", "--labels", tmp_path / "l.csv", PHOTOS / "cat.jpg")
    assert found.stdout == expected and "labels are taken from the column 'species'" in found.stderr
    named = call("score", "--labels", tmp_path / "l.csv", "--label-column", "species", PHOTOS / "cat.jpg")
    assert named.stdout == expected and "taken from the column" not in named.stderr


def test_explain_takes_labels(saved, no_fit):
    told = call("explain", "--labels", TYPED, PHOTOS / "cat.jpg", "--json").stdout
    assert json.loads(told) == json.loads(call("explain", saved, PHOTOS / "cat.jpg", "--json").stdout)
    no_fit()
    assert "nearest label" in call("explain", "--labels", TYPED, "--audit").stdout


def test_an_encoder_for_labels(tmp_path):
    found = call(
        "score", "--labels", "cat, dog", "--encoder", "mini-float", PHOTOS / "cat.jpg", "-o", f"{tmp_path}/out/"
    )
    assert "(mini-float, grounded)" in found.stderr
    again = call(
        "score", "--labels", "cat, dog", "--encoder", "mini-float", PHOTOS / "cat.jpg", "-o", f"{tmp_path}/out/"
    )
    assert "1 row is there already" in again.stderr


def test_fit_takes_typed_labels_and_says_what_was_merged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = call("fit", "cat, dog, Cats", "--method", "mcm")
    assert "is replaced" not in made.stderr
    again = call("fit", "cat, dog", "--method", "mcm")
    assert "labels.outword: the detector that was there is replaced\n" in again.stderr
    assert made.stdout == "labels.outword\n" and "merged: cat = Cats (entries 1, 3)" in made.stderr
    assert (tmp_path / "labels.outword" / "labels.txt").read_text() == "cat\ndog\n"
    (tmp_path / "a.tsv").write_text("genus\tspecies\nFelis\tcat\nCanis\tdog\n")
    assert call("fit", "a.tsv", "--column", "species", "--method", "mcm", "--json").stdout
    assert (tmp_path / "a.outword" / "labels.txt").read_text() == "cat\ndog\n"


def test_a_long_list_may_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = [f"class {number}" for number in range(200)]  # more than a name of a file may have
    assert call("fit", ",".join(labels), "--method", "maxlogit").stdout == "labels.outword\n"
    assert (tmp_path / "labels.outword" / "labels.txt").read_text().splitlines() == labels


def test_filter_takes_typed_labels(tmp_path):
    lay_out(tmp_path, {"photos": ["cat", "gravel"]})
    for _ in range(2):  # the second goes on with the first
        call("filter", tmp_path / "photos", "--labels", TYPED, "-o", tmp_path / "kept")
    assert (tmp_path / "kept" / "kept.txt").read_text() == f"{tmp_path}/photos/cat.jpg\n"


def test_filter_goes_on_only_with_the_labels_as_they_were_typed(tmp_path):
    lay_out(tmp_path, {"photos": ["cat", "gravel"]})
    args = ["filter", tmp_path / "photos", "-o", tmp_path / "kept", "--labels"]
    call(*args, "animal, coffee")
    assert "was made for other labels" in call(*args, "animal > -cat, coffee", code=2).stderr


def test_compare_takes_typed_labels(tmp_path):
    lay_out(tmp_path, {"in": ["cat", "coffee"], "out": ["gravel", "brick"]})
    found = call("compare", TYPED, "--id", tmp_path / "in", "--ood", tmp_path / "out", "--methods", "mcm", "--json")
    assert [row["method"] for row in json.loads(found.stdout)] == ["mcm"]


def test_serve_reads_labels_from_standard_input_once(monkeypatch):
    pytest.importorskip("fastapi", reason="the service needs outword[serve]")
    from outword.serve import server

    served = []
    monkeypatch.setattr(server.Server, "run", lambda self, sockets: served.append(self.config.app))
    told = piped("cat\ndog\n", "serve", "--labels", "-", "--port", "0").stderr
    assert "cat: good" in told and len(served) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["score"], "score takes a DETECTOR or --labels, got neither"),
        (["score", "--labels", "cat"], "score needs PATHS"),
        (["score", "SAVED"], "score needs PATHS"),
        (["score", "--labels", "cat", "SAVED", PHOTOS], "score takes a DETECTOR or --labels, got both"),
        (["score", "--labels", "labls.txt", PHOTOS], "there is no label list labls.txt"),
        (["score", "--labels", "", PHOTOS], "1 to 50,000 labels, got 0 in what was typed"),
        (["explain"], "explain takes a DETECTOR or --labels, got neither"),
        (["explain", "--labels", "cat"], "there is nothing to explain"),
        (["fit", "no/such.txt"], "there is no label list no/such.txt"),
        (["compare", "no.csv", "--id", "a", "--ood", "b"], "there is no label list no.csv"),
        (["filter", PHOTOS, "--labels", "no.json", "-o", "x"], "there is no label list no.json"),
        (["serve", "--labels", "no.txt"], "there is no label list no.txt"),
        (["filter", PHOTOS, "-o", "x"], "filter takes --detector or --labels, got neither"),
        (
            ["filter", PHOTOS, "-o", "x", "--labels", "cat", "--detector", "d"],
            "filter takes --detector or --labels, got both",
        ),
        (["serve", "--labels", "cat", "SAVED"], "serve takes a DETECTOR or --labels, got both"),
    ],
)
def test_what_is_wrong_is_one_line(saved, args, message):
    told = call(*(saved if arg == "SAVED" else arg for arg in args), code=2).stderr.splitlines()
    assert message in told[-2] and told[-2].startswith("error: ") and told[-1].startswith("hint: ")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["explain", "photos/cat.jpg"], 'outword explain --labels "cat, dog" photos/cat.jpg'),
        (["score", "photos/cat.jpg"], 'outword score --labels "cat, dog" photos/cat.jpg'),
        (["score", "photos", "photos", "photos"], 'outword score --labels "cat, dog" photos photos ...'),
        (["score", "cat, dog", "photos/cat.jpg"], "outword score --labels 'cat, dog' photos/cat.jpg"),
        (["score", "cat," * 2000, "photos"], f"outword score --labels {'cat,' * 2000} photos"),
        (["score", "labels.txt", "photos/"], "outword score --labels labels.txt photos/"),
        (["score", "shard.tar"], 'outword score --labels "cat, dog" shard.tar'),
        (["score", "labels.txt"], "outword score --labels labels.txt photos/"),
        (["serve", "labels.txt"], "outword serve --labels labels.txt"),
        (
            ["score", "pets.outwrod", "photos"],
            'make one with "outword fit", or name the classes: outword score --labels ',
        ),
    ],
)
def test_where_the_detector_was_forgotten_the_hint_is_what_was_meant(tmp_path, monkeypatch, args, hint):
    lay_out(tmp_path, {"photos": ["cat"]})
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    (tmp_path / "shard.tar").touch()
    monkeypatch.chdir(tmp_path)
    error, told = call(*args, code=2).stderr.splitlines()
    assert error.startswith(f"error: {args[1]} is not a saved detector") and told.startswith(f"hint: {hint}")


def test_a_zip_file_of_a_detector_is_a_detector_too(saved, tmp_path):
    packed = tmp_path / "d.outword.zip"
    packed.write_bytes(zipped(outword.load(saved), "d.outword"))
    assert "got both" in call("score", "--labels", "cat, dog", packed, PHOTOS / "cat.jpg", code=2).stderr
    assert call("score", packed, PHOTOS / "cat.jpg").stdout == call("score", saved, PHOTOS / "cat.jpg").stdout
    packed.write_bytes(b"PK")
    assert "d.outword.zip is not a saved detector: " in call("score", packed, PHOTOS, code=2).stderr


def test_a_forgotten_comma_is_said():
    told = call("score", "--labels", "cat dog, espresso", PHOTOS / "cat.jpg").stderr
    assert 'hint: commas separate labels: "cat, dog"\n' in told
    told = call("score", "--labels", "bright red sports car", PHOTOS / "cat.jpg").stderr
    assert "commas" not in told


def test_what_is_recommended_for_unknown_labels_can_be_typed():
    told = piped("blorfle\nxyzzy\n", "score", "--labels", "-", PHOTOS / "cat.jpg").stderr
    assert "WARNING: blorfle: " in told and "WARNING: xyzzy: " in told
    assert "  outword score --labels 'blorfle, xyzzy' --encoder clip-vit-b-16 ...\n" in told


def test_unknown_labels_are_warned_of_each_time():
    for _ in range(2):
        told = call("score", "--labels", "cat, quasiparticle flumph", PHOTOS / "cat.jpg").stderr
        assert "WARNING: quasiparticle flumph: not seen" in told and "the encoder does not know it" in told
        assert "outword score --labels 'cat, quasiparticle flumph' --encoder clip-vit-b-16 ..." in told


def test_verdicts_are_columns_before_any_calibration(tmp_path):
    pandas = pytest.importorskip("pandas")
    for kind, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        call("score", "--labels", TYPED, PHOTOS, "-o", tmp_path / f"rows.{kind}")
        table = read(tmp_path / f"rows.{kind}")
        assert set(table.verdict) == {"in", "out"} and set(table.basis) == {"reference"}
        inside = table[table.verdict == "in"]
        assert "cat" in {Path(path).stem for path in inside.path} and len(inside) < len(table)
        assert (inside.score >= inside.threshold).all() and (
            table[table.verdict == "out"].score < table.threshold[0]
        ).all()
        assert inside.p.max() < 0.1 and (table.looks_like != "").all()


def test_a_formula_judges_where_there_is_no_reference_and_words_are_phrases(tmp_path, no_reference, words_file):
    call("fit", TYPED, "--corpus", words_file, "-o", tmp_path / "d")
    rows = rows_of(call("score", tmp_path / "d", PHOTOS / "cat.jpg", PHOTOS / "gravel.jpg").stdout)
    assert {row["verdict"] for row in rows} <= {"in", "out"} and {row["basis"] for row in rows} == {"formula"}


def test_fit_tells_the_odds_of_labels_and_warns_of_the_weak(tmp_path, monkeypatch):
    register(monkeypatch)
    found = call("fit", "car, zorbly, red", "--encoder", "made-up", "-o", tmp_path / "d", "--json")
    odds = outword.load(tmp_path / "d").odds
    assert [one.is_weak for one in odds] == [False, True, False]
    told = [{"label": one.label, "share": one.share, "word": one.word} for one in odds]
    assert json.loads(found.stdout)["odds"] == told
    said = found.stderr.splitlines()
    assert {str(odds[0]), str(odds[2]), f"WARNING: {odds[1]}"} <= set(said)
    after = said[said.index(f"WARNING: {odds[1]}") + 1 :]
    assert "outword tune, outword calibrate" in after[0] and "zorbly: WordNet does not know it" in found.stderr
    mean = sum(one.share for one in odds) / 3
    assert f"expected: about {100 * mean:.0f} % of your photos in" in found.stderr
    paint(tmp_path / "photos", [("canoe", 1)])
    short = call("score", "--labels", "car, zorbly, red", "--encoder", "made-up", tmp_path / "photos").stderr
    assert f"WARNING: {odds[1]}" in short and str(odds[0]) not in short
    assert "no reference for made-up: the threshold is from photos imagined from names, refined by these" in short


def test_what_a_name_is_taken_for_is_told(tmp_path):
    typed = "black cat, dog, mouse#device, crane, собака, person"
    told = CliRunner().invoke(main, ["fit", typed, "-o", str(tmp_path / "d.outword")]).stderr
    for line in (
        "black cat: stands for cat; mini knows the noun alone, so cat of any look will do",
        'mouse: mini reads "computer mouse", which has that sense',
        "crane: large long-necked wading bird",
        "собака: no English name that WordNet knows; mini knows English names only",
        "person: seen by what people wear, too",
    ):
        assert line in told
    assert "dog: a member of the genus" not in told  # which is what anybody would take it for


def test_a_detector_after_the_photos_and_one_that_fit_is_to_write(tmp_path):
    saved = str(tmp_path / "d.outword")
    assert CliRunner().invoke(main, ["fit", "cat", "-o", saved]).exit_code == 0
    swapped = CliRunner().invoke(main, ["score", str(tmp_path), saved])
    assert swapped.exit_code == 2 and f"hint: outword score {saved} {tmp_path}" in swapped.stderr
    behind = CliRunner().invoke(main, ["fit", "cat", "new.outword"])
    assert "outword fit cat -o new.outword" in behind.stderr
    photos = CliRunner().invoke(main, ["fit", "cat", str(tmp_path)])
    assert "fit takes class names alone" in photos.stderr
