"""The command line as people use it: data on stdout, talk on stderr, exit codes, bad input."""

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call, rows_of, six_digits
from helpers.archives import write_tar
from helpers.bad_images import make_bad_images
from outword.base.extras import install
from outword.cli import VERBS
from outword.detector.cuts import with_cut
from outword.detectors import DETECTORS, Need
from outword.errors import ParameterError
from outword.maths.thresholds import fit_reference
from outword.vectors.vocabulary import Vocabulary

COLUMNS = ["path", "verdict", "label", "kind", "nearest", "score", "threshold", "p", "basis"]
COLUMNS += ["looks_like", "words", "notes", "error"]


@pytest.fixture
def labels_file(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(LABELS))
    return path


def test_version_and_help():
    assert call("--version").stdout.strip() == f"outword, version {outword.__version__}"
    assert all(verb in call("--help").stdout for verb in VERBS)
    for verb in VERBS:
        assert "Example:" in call(verb, "--help").stdout


def test_fit_then_score_as_in_the_readme(labels_file, tmp_path):
    made = call("fit", labels_file, "-o", tmp_path / "pets.outword")
    assert made.stdout.strip() == str(tmp_path / "pets.outword")
    assert "tabby cat: good" in made.stderr
    result = call("score", tmp_path / "pets.outword", PHOTOS)
    rows = rows_of(result.stdout)
    assert list(rows[0]) == COLUMNS
    by_name = {Path(r["path"]).stem: r for r in rows}
    assert (by_name["cat"]["verdict"], by_name["cat"]["basis"]) == ("in", "reference")
    assert by_name["cat"]["label"] == "tabby cat"
    assert (by_name["gravel"]["verdict"], by_name["gravel"]["label"]) == ("out", "")
    assert by_name["gravel"]["nearest"] in LABELS
    assert {row["label"] for row in rows} - {""} <= set(LABELS)
    assert "images: " in result.stderr
    assert by_name["raccoon"]["words"]
    assert not any(r["error"] for r in rows)


def test_fit_defaults_and_json(labels_file):
    result = call("fit", labels_file, "--method", "mcm", "--json")
    told = json.loads(result.stdout)
    assert told["path"].endswith("labels.outword")
    assert told["coverage"]["tabby cat"] == "known"
    assert outword.load(told["path"]).method == "mcm"


def test_fit_from_a_folder_with_parameters(tmp_path, words_file):
    for name in ("tabby_cat", "pizza"):
        (tmp_path / "classes" / name).mkdir(parents=True)
    options = ["--corpus", words_file, "--method", "debiased"]
    for given in ("n_groups=3", "tau=0.2", "policy=paper", "miner.alpha=5"):
        options += ["--set", given]
    result = call("fit", tmp_path / "classes", "-o", tmp_path / "d", *options)
    assert result.stdout.strip() == str(tmp_path / "d")
    made = outword.load(tmp_path / "d")
    assert made.labels == ["pizza", "tabby cat"]
    assert (made.scorer.tau, made.scorer.policy) == (0.2, "paper")
    assert made.card.miner.parameters["alpha"] == 5


@pytest.mark.parametrize(("tau", "told"), [("0.5", "tau: 0.25 is used in place of 0.5"), ("0.2", "")])
def test_the_tau_in_use_is_told(labels_file, tmp_path, tau, told):
    words = tmp_path / "words.txt"
    words.write_text("\n".join(f"{first}{second}" for first in "bcdfg" for second in "aeiou"))
    labels_file.write_text("cat\ndog\nfox\npizza\ntulip")
    options = ["--corpus", words, "--method", "debiased", "--set", "n_groups=2", "--set", f"tau={tau}"]
    made = call("fit", labels_file, "-o", tmp_path / "d", *options, "--json")
    assert told in made.stderr if told else "tau:" not in made.stderr
    used = json.loads(made.stdout)["in_use"]["tau"]
    explained = call("explain", tmp_path / "d", PHOTOS / "cat.jpg").stdout
    assert f"tau {used:.4g}" in explained
    assert json.loads(call("explain", tmp_path / "d", PHOTOS / "cat.jpg", "--json").stdout)["in_use"] == {"tau": used}


def test_unknown_labels_are_warned_of_loudly(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("tabby cat\nquasiparticle flumph\n")
    result = call("fit", path, "--method", "mcm")
    assert "1 of 2 labels may not be seen by the small encoder" in " ".join(result.stderr.split())
    assert "--encoder clip-vit-b-16" in result.stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_formats_agree(saved, tmp_path, kind):
    photos = sorted(PHOTOS.glob("c*.jpg"))
    expected = rows_of(call("score", saved, *photos).stdout)
    out = tmp_path / f"rows.{kind}"
    assert call("score", saved, *photos, "-o", out).stdout == ""
    if kind == "csv":
        rows = rows_of(out.read_text())
    elif kind == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert set(rows[0]["words"][0]) == {"word", "share"}
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = parquet.read_table(out).to_pylist()
    assert [list(r) for r in rows] == [COLUMNS] * len(photos)
    assert [six_digits(float(r["score"])) for r in rows] == [float(r["score"]) for r in expected]
    assert [r["path"] for r in rows] == [str(p) for p in photos]


def test_parquet_in_groups_and_without_pyarrow(saved, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("outword.scoring.rows.ROWS_A_GROUP", 2)
    photos = sorted(PHOTOS.glob("c*.jpg"))
    call("score", saved, *photos, "-o", tmp_path / "x.parquet")
    assert parquet.ParquetFile(tmp_path / "x.parquet").metadata.num_rows == len(photos)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = call("score", saved, *photos, "--format", "parquet", code=2)
    assert install("parquet") in result.stderr


def test_bad_images_are_rows_and_the_run_goes_on(saved, tmp_path):
    folder = tmp_path / "bad"
    folder.mkdir()
    expected = make_bad_images(folder)
    shutil.copy(PHOTOS / "cat.jpg", folder / "cat.jpg")
    missing = [p for p in expected if not p.exists()]
    result = call("score", saved, folder, *missing, "--html", tmp_path / "page.html", code=1)  # there is none of these
    rows = {Path(r["path"]): r for r in rows_of(result.stdout)}
    assert set(rows) == {*expected, folder / "cat.jpg"}
    for path, word in expected.items():
        if word is None:
            assert rows[path]["error"] == "", path
            assert rows[path]["score"], path
        else:
            assert word in rows[path]["error"], path
            assert rows[path]["score"] == rows[path]["verdict"] == ""
    n_bad = sum(word is not None for word in expected.values())
    assert f"{n_bad} error" in result.stderr
    assert "Errors" in (tmp_path / "page.html").read_text()


def test_strict_makes_them_fatal_and_leaves_no_file(saved, tmp_path):
    (tmp_path / "x.jpg").write_bytes(b"")
    result = call("score", saved, PHOTOS / "cat.jpg", tmp_path / "x.jpg", "-o", tmp_path / "o.csv", "--strict", code=1)
    assert "empty file" in result.stderr
    assert not (tmp_path / "o.csv").exists()


def test_html_page(saved, tmp_path):
    call(
        "score",
        saved,
        PHOTOS / "cat.jpg",
        PHOTOS / "gravel.jpg",
        "--html",
        tmp_path / "p.html",
        "-o",
        tmp_path / "o.csv",
    )
    page = (tmp_path / "p.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 2
    assert "unrelated photos" in page
    assert "tabby cat" in page


def test_calibrate_then_verdicts_are_plain(saved, tmp_path):
    photos = sorted(PHOTOS.glob("*.jpg"))[:6]
    (tmp_path / "broken.jpg").write_bytes(b"")
    result = call("calibrate", saved, *photos, tmp_path / "broken.jpg", "--tpr", "0.8")
    assert float(result.stdout) == pytest.approx(outword.load(saved).threshold_, rel=1e-5)
    assert "left out" in result.stderr
    assert "6 photos leave the threshold uncertain" in " ".join(result.stderr.split())
    verdicts = {r["verdict"] for r in rows_of(call("score", saved, *photos).stdout)}
    assert verdicts == {"in", "out"}
    told = json.loads(call("calibrate", saved, *photos, "--method", "conformal", "--json", "-o", tmp_path / "n").stdout)
    assert told["method"] == "conformal"
    call("score", tmp_path / "n", *photos, "--html", tmp_path / "page.html")
    assert "conformal" in (tmp_path / "page.html").read_text()
    assert "at least 5 readable ID photos" in call("calibrate", saved, photos[0], code=2).stderr


def test_explain(saved):
    out = call("explain", saved, PHOTOS / "cat.jpg").stdout
    assert "in, as tabby cat" in out and "unrelated photos" in out
    assert "tabby cat" in out
    assert "known" in out
    assert "wild word" in out and "group" not in out
    told = json.loads(call("explain", saved, PHOTOS / "cat.jpg", "--json", "--top", "2").stdout)
    assert [len(told["labels"]), len(told["words"])] == [2, 2]
    none = call("explain", saved, "nowhere.jpg", code=1)
    assert none.stdout == "nowhere.jpg: error: no such file\n"
    assert "--audit" in call("explain", saved, code=2).stderr


def test_explain_says_how_well_it_fits_and_what_it_looks_like(detector, tmp_path):
    names = ["tabby", "brick wall"]
    whole = with_cut(detector, fit_reference(np.arange(124) / 100, fpr=0.05), np.arange(124) / 100)
    whole.vocabulary = Vocabulary(names, detector.encoder.encode_texts(names).astype(np.float16))
    whole.save(tmp_path / "d")
    photos = PHOTOS / "cat.jpg", PHOTOS / "brick.jpg"
    cat, wall = (call("explain", tmp_path / "d", photo).stdout.splitlines() for photo in photos)
    fits = "fits better than 99.2 % of unrelated photos; 94.4 % are needed"
    assert cat[:3] == [f"{photos[0]}: in, as tabby cat", fits, "looks like: tabby, brick wall"]
    assert wall[0] == f"{photos[1]}: out, nearest to space shuttle" and wall[2] == "looks like: brick wall, tabby"
    assert re.fullmatch(r"score 12\.\d{4}, threshold 1\.17 \(lets in 5% of 124 unrelated photos\)", cat[3])
    assert cat[4] == "what decided:"
    told = json.loads(call("explain", tmp_path / "d", photos[0], "--json").stdout)
    assert (told["verdict"], told["label"], told["kind"], told["basis"]) == ("in", "tabby cat", "", "reference")
    assert (told["p"], told["fits"], told["looks_like"]) == (1 / 125, fits, names)
    row = rows_of(call("score", tmp_path / "d", photos[1]).stdout)[0]
    assert (row["verdict"], row["basis"], row["looks_like"]) == ("out", "reference", "brick wall")
    assert float(row["p"]) == pytest.approx(whole.thresholds.p_values([float(row["score"])])[0], rel=1e-5)


def test_explain_takes_what_score_takes(saved, tmp_path):
    write_tar(tmp_path / "a.tar", {"cat.jpg": (PHOTOS / "cat.jpg").read_bytes(), "bad.jpg": b"junk"})
    (tmp_path / "l.txt").write_text(f"{PHOTOS / 'rocket.jpg'}\n")
    result = call("explain", saved, tmp_path / "a.tar", tmp_path / "l.txt", "--json")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    good, bad = [told[0], told[2]], {"path": f"{tmp_path}/a.tar/bad.jpg", "error": "not an image"}
    assert [one["path"] for one in good] == [f"{tmp_path}/a.tar/cat.jpg", str(PHOTOS / "rocket.jpg")]
    assert told[1] == bad and "bad.jpg" not in result.stderr
    Image.open(PHOTOS / "tripod.jpg").resize((40, 30)).save(tmp_path / "small.png")
    plain = call("explain", saved, tmp_path / "a.tar", tmp_path / "small.png").stdout.splitlines()
    assert f"{tmp_path}/a.tar/bad.jpg: error: not an image" in plain
    assert plain.count("the photo is only 40 x 30 pixels") == 1
    none = call("explain", saved, tmp_path / "nope.jpg", tmp_path / "no.tar", "--json", code=1)
    assert [json.loads(line)["error"] for line in none.stdout.splitlines()] == ["no such file"] * 2
    alone = json.loads(call("explain", saved, PHOTOS / "cat.jpg", "--json").stdout)
    assert {**told[0], "path": ""} == {**alone, "path": ""}


def test_explain_takes_a_store_and_needs_no_encoder_for_it(saved, tmp_path, monkeypatch):
    photos = [PHOTOS / "cat.jpg", PHOTOS / "coffee.jpg"]
    call("embed", *photos, "-o", tmp_path / "store")
    expected = call("explain", saved, *photos, "--json").stdout
    monkeypatch.setattr("outword.detector.loading.get_encoder", lambda *a, **k: pytest.fail("an encoder was loaded"))
    assert call("explain", saved, tmp_path / "store", "--json").stdout == expected


def test_audit(saved):
    assert "nearest label" in call("explain", saved, "--audit", "--top", "3").stdout
    rows = json.loads(call("explain", saved, "--audit", "--top", "3", "--json").stdout)
    assert [set(r) for r in rows] == [{"word", "label", "cosine"}] * 3


def test_audit_without_words(tmp_path):
    outword.fit(LABELS, method="mcm").save(tmp_path / "d")
    assert "mcm has no wild words" in call("explain", tmp_path / "d", "--audit").stderr
    assert call("explain", tmp_path / "d", "--audit", "--json").stdout == "[]\n"


@pytest.mark.parametrize("kind", ["encoders", "corpora", "methods", "miners", "prompts"])
def test_list(kind):
    rows = json.loads(call("list", kind, "--json").stdout)
    printed = call("list", kind).stdout
    assert rows
    assert all(row["name"] in printed for row in rows)


def test_list_methods_is_readable_and_says_what_each_needs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = call("list", "methods").stdout.splitlines()
    assert lines[0].split() == ["name", "needs", "about"]
    assert max(map(len, lines)) <= 100
    monkeypatch.setenv("COLUMNS", "150")  # so that the longest needs are in one line
    lines = call("list", "methods").stdout.splitlines()
    for name, method in DETECTORS.items():
        needs = ", ".join(need.value for need in method.needs if need is not Need.NEGATIVES)
        assert any(re.match(rf"{name} +{needs}  ", line) for line in lines), name
    rows = {row["name"]: row for row in json.loads(call("list", "methods", "--json").stdout)}
    assert rows["mahalanobis"]["needs"] == ["ID images", "ID image labels"]
    assert rows["debiased"]["parameters"]["temperature"] == "the encoder's"
    assert rows["csp"]["corpus"] == "conjugated:wordnet"
    long = call("list", "methods", "--long").stdout
    assert "parameters: temperature=the encoder's, n_groups=100, seed=0, tau=0.5" in long
    assert "corpus: a word list of yours" in long


def test_fit_with_id_images(labels_file, tmp_path):
    for name, label in (("cat", "tabby cat"), ("coffee", "Espresso"), ("shuttle", "space_shuttle"), ("clock", "pizza")):
        (tmp_path / label).mkdir()
        shutil.copy(PHOTOS / f"{name}.jpg", tmp_path / label)
    folders = [option for label in ("tabby cat", "Espresso") for option in ("--id-images", tmp_path / label)]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        told = call("fit", labels_file, "-o", tmp_path / "knn", "--method", "knn", *folders).stderr
    assert "warning: no ID image shows space shuttle, pizza" in told
    made = outword.load(tmp_path / "knn")
    assert made.card.id_images.count == made.card.id_images.classes == 2
    scores = [float(row["score"]) for row in rows_of(call("score", tmp_path / "knn", PHOTOS).stdout)]
    assert sorted(scores)[-2:] == pytest.approx([0, 0], abs=1e-3)  # the two photos that it was fitted on
    (tmp_path / "pizza" / "broken.jpg").write_bytes(b"")
    run = subprocess.run(
        [sys.executable, "-m", "outword", "fit", labels_file, "--method", "knn", "--id-images", tmp_path / "pizza"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0
    assert "warning: 1 of 2 ID images are left out" in run.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_OUTWORD_COMPLETE" in call("completion", shell).stdout


def test_completion_offers_methods():
    from outword.cli.choices import Named

    assert [item.value for item in Named("methods").shell_complete(None, None, "deb")] == ["debiased"]


def test_names_in_a_list_may_have_commas():
    from outword.cli.choices import named

    known = ["coop", "coop, 4 shots", "mcm"]
    assert named(" mcm,coop, 4 shots ,mcm,", known, "method", "help") == ["mcm", "coop, 4 shots"]
    assert named("coop, mcm", known, "method", "help") == ["coop", "mcm"]
    with pytest.raises(ParameterError, match='unknown method "5 shots"'):
        named("coop, 5 shots", known, "method", "help")


def test_demo(tmp_path):
    result = call("demo", "--html", tmp_path / "demo.html")
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if ".jpg" in line}
    shown = {"cat", "clock", "coffee", "helmet", "tripod", "astronaut", "camera"}  # a helmet, a tripod: LICENSES.md
    assert {Path(name).stem for name, line in lines.items() if line.split()[1] == "in"} == shown
    assert all(line.split()[1] in ("in", "out") for line in lines.values())
    assert " 99.96 %" in lines["cat.jpg"] and "Egyptian cat" in lines["cat.jpg"]
    assert (tmp_path / "demo.html").read_text().count("<img") == len(lines) == len(list(PHOTOS.glob("*.jpg")))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "1 to 50,000 labels, got 0"),
        ("cat |\n", [], "a name is missing in the label 'cat |'"),
        ("cat\ndog\ncat: a cat\n", [], "labels must differ"),
        ("cat\n" + "x" * 400, [], "at most 200 characters"),
        ("".join(f"c{i}\n" for i in range(100_000)), [], "got 100,000"),
        ("cat\ndog\n", ["--method", "debiased", "--set", "tau=1"], "tau must be a number of at least 0 and below 1"),
        ("cat\ndog\n", ["--set", "tau"], "--set takes NAME=VALUE"),
        ("cat\ndog\n", ["--set", "tu=1"], "unknown parameter"),
        ("cat\ndog\n", ["--set", "miner.alpah=1"], 'parameter of density "alpah"\nhint: did you mean "alpha"?'),
        ("cat\ndog\n", ["--set", "miner.alpha=x"], "alpha must be a whole number, got 'x'"),
        ("cat\ndog\n", ["--set", "miner_params=1"], "miner_params is no parameter of the method"),
        ("cat\ndog\n", ["--method", "neglable"], 'did you mean "neglabel"?'),
        ("cat\ndog\n", ["--encoder", "clip"], "unknown encoder"),
        ("cat\ndog\n", ["-o", "no/such/folder/x"], "is not a folder"),
        ("cat\ndog\n", ["--set", "method=mcm"], "method is no parameter of the method"),
        ("cat\ndog\n", ["--method", "debiased", "--set", "seed=-1"], "seed must be"),
        ("cat\ndog\n", ["--set", "id_images=x"], "id_images is no parameter of the method"),
        (
            "cat\ndog\n",
            ["--method", "mahalanobis"],
            "mahalanobis needs ID images with labels: pass --id-images FOLDER (sub-folders are labels)",
        ),
        ("cat\ndog\n", ["--method", "knn", "--id-images", "nowhere"], "there are no ID images at nowhere"),
        ("cat\ndog\n", ["--id-images", "nowhere"], "grounded does not look at ID images"),
    ],
)
def test_bad_fit_is_one_line_and_exit_2(tmp_path, content, options, message):
    (tmp_path / "l.txt").write_text(content)
    result = call("fit", tmp_path / "l.txt", *options, code=2)
    assert message in result.stderr
    assert "hint: " in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_bad_score_arguments(saved, tmp_path):
    assert "is not a saved detector" in call("score", tmp_path / "no", PHOTOS, code=2).stderr
    assert "is not a folder" in call("score", saved, PHOTOS, "-o", tmp_path / "no" / "x.csv", code=2).stderr
    assert "is a folder" in call("score", saved, PHOTOS, "--html", tmp_path, code=2).stderr
    (tmp_path / "empty").mkdir()
    assert "error: no images found" in call("score", saved, tmp_path / "empty", code=1).stderr


def test_outputs_that_clash_or_have_an_unknown_suffix(saved, tmp_path):
    same = ["-o", tmp_path / "x.csv", "--html", tmp_path / "x.csv"]
    assert "different files" in call("score", saved, PHOTOS, *same, code=2).stderr
    assert 'got ".json"' in call("score", saved, PHOTOS, "-o", tmp_path / "x.json", code=2).stderr


def test_links_and_devices_are_written_to_not_replaced(saved, tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    call("score", saved, PHOTOS / "cat.jpg", "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert "tabby cat" in (tmp_path / "real.csv").read_text()
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    call("score", saved, PHOTOS / "cat.jpg", "-o", tmp_path / "pipe", "--format", "csv")
    assert b"tabby cat" in reader.communicate()[0]


def test_a_full_disk_is_one_line(saved):
    command = f'"{sys.executable}" -m outword score "{saved}" "{PHOTOS}" > /dev/full'
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.returncode != 0
    assert "No space left" in run.stderr
    assert "Traceback" not in run.stderr


def test_files_beside_a_detector_are_never_deleted(saved, tmp_path):
    shutil.copy(PHOTOS / "cat.jpg", saved / "mine.jpg")
    result = call("calibrate", saved, *sorted(PHOTOS.glob("*.jpg"))[:6], code=2)
    assert "holds other files too" in result.stderr
    assert (saved / "mine.jpg").exists()


def test_fit_and_calibrate_in_the_current_folder(tmp_path, monkeypatch):
    for name in ("tabby cat", "pizza"):
        (tmp_path / "classes" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "classes")
    assert call("fit", ".", "--method", "mcm").stdout == "classes.outword\n"
    monkeypatch.chdir("classes.outword")
    call("calibrate", ".", *sorted(PHOTOS.glob("*.jpg"))[:6], "--method", "conformal")


def test_no_infinity_in_json(saved):
    photos = sorted(PHOTOS.glob("*.jpg"))[:6]
    told = call("calibrate", saved, *photos, "--method", "conformal", "--json").stdout
    assert json.loads(told)["value"] is None
    assert json.loads(call("explain", saved, photos[0], "--json").stdout)["threshold"] is None


def test_page_of_a_method_without_a_cut(tmp_path, labels_file, no_reference):
    call("fit", labels_file, "-o", tmp_path / "d", "--method", "energy")
    result = call("score", tmp_path / "d", PHOTOS / "cat.jpg", "--html", tmp_path / "p.html")
    assert "uncalibrated" in result.stdout
    assert "without a verdict" in (tmp_path / "p.html").read_text()


def test_nothing_but_data_on_stdout(saved):
    run = subprocess.run(
        [sys.executable, "-m", "outword", "score", saved, PHOTOS / "cat.jpg", "--format", "jsonl"], capture_output=True
    )
    assert [json.loads(line)["label"] for line in run.stdout.splitlines()] == ["tabby cat"]


def test_a_reader_that_goes_away_is_no_traceback(saved):
    command = f'"{sys.executable}" -m outword score "{saved}" "{PHOTOS}" | head -1'
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.stdout.startswith("path,verdict")
    assert "Traceback" not in run.stderr


def test_undecodable_and_odd_names(saved, tmp_path):
    shutil.copy(PHOTOS / "cat.jpg", bytes(tmp_path) + b"/caf\xe9 \n x.jpg")
    run = subprocess.run([sys.executable, "-m", "outword", "score", saved, tmp_path], capture_output=True)
    assert b"caf\\xe9 \n x.jpg" in run.stdout
    for kind in ("jsonl", "parquet"):
        call("score", saved, tmp_path, "--format", kind, "-o", tmp_path / "out")


def test_progress_without_a_terminal_is_a_line_now_and_then(saved, monkeypatch):
    monkeypatch.setattr("outword.cli.progress.EVERY", -1.0)
    assert "images/s" in call("score", saved, PHOTOS).stderr


def test_a_method_that_learns_from_what_it_scores_says_so(labels_file, words_file, tmp_path):
    options = ["--method", "adaneg", "--corpus", words_file, "--miner", "density", "--set", "n_groups=3"]
    call("fit", labels_file, "-o", tmp_path / "d", *options)
    for verb, *more in (("score",), ("calibrate", "--tpr", "0.5")):
        assert "adaneg learns from the images that it scores" in call(verb, tmp_path / "d", PHOTOS, *more).stderr
