"""`outword bench` from data sets to report: on a made-up data root with small random CLIPs; on folders with `mini`."""

import csv
import json
import os
import re
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import PHOTOS, call, lay_out
from helpers.archives import write_tar
from helpers.bad_images import encoded
from helpers.stopped import stopped
from outword.encoders import get_encoder
from outword.metrics import aupr, auroc, fpr_at_tpr
from outword.words.corpora import get_corpus, make_corpus
from outword_lab.benchmark.run import imagenet
from outword_lab.benchmark.run.bench import bench
from outword_lab.benchmark.run.photos import of_set
from outword_lab.benchmark.run.results import Results
from outword_lab.benchmark.run.suite import Entry, read_suite

TABLES = {
    "table1-imagenet1k": ["clip-vit-b-16"],
    "table2-backbones": ["clip-vit-b-32", "clip-vit-l-14", "clip-rn50"],
    "table3-resolution": ["clip-vit-l-14-336"],
    "table4-corpora": ["clip-vit-b-16"],
    "table5-domain-shift": ["clip-vit-b-16"],
}
N_CLASSES = 130  # the printed formula needs at least as many labels as a group has words


def noise(seed):
    """A tiny picture."""
    pixels = np.random.default_rng(seed).integers(256, size=(9, 9, 3), dtype=np.uint8)
    return encoded(Image.fromarray(pixels), "PNG")


def fill(folder, names, first):
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(noise(first + number))


@pytest.fixture(autouse=True)
def few_plots(request, monkeypatch):
    """Plots take most of a short run: Tables 1 and 3 draw them, and so do killed runs, which are processes.

    The other tables of the paper make every figure but do not write it, which is what takes so long.
    """
    if "table_of_the_paper" not in request.node.name:
        monkeypatch.setattr("outword_lab.benchmark.run.bench.write_plots", lambda outcome, folder: [])
    elif not any(table in request.node.name for table in ("table1", "table3")):
        monkeypatch.setattr("outword_lab.benchmark.show.picture._write", lambda figure, path: path.touch() or path)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The sets of Tables 1 to 5 in the layouts that people have; SUN has a photo that is damaged."""
    top = tmp_path_factory.mktemp("data")
    wnids = [wnid for wnid, _ in imagenet.classes()[:N_CLASSES]]
    fill(top / "imagenet-1k/val", [f"{wnid}/a.png" for wnid in wnids], 0)
    fill(top / "imagenet-1k/train", [f"{wnid}/{i}.png" for wnid in wnids for i in (1, 2)], 1000)
    fill(top / "sketch", [f"{wnid}/a.png" for wnid in wnids], 2000)
    fill(top / "imagenet-a", [f"{wnid}/a.png" for wnid in wnids], 3000)
    fill(top / "imagenet-r", [f"{wnid}/a.png" for wnid in wnids], 4000)
    fill(top / "imagenetv2-matched-frequency-format-val", [f"{i}/a.png" for i in range(N_CLASSES)], 5000)
    write_tar(top / "iNaturalist.tar.gz", {f"iNaturalist/images/{i}.png": noise(6000 + i) for i in range(9)}, "w:gz")
    fill(top / "SUN/images", [f"{i}.png" for i in range(10)], 7000)
    (top / "SUN/images/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    fill(top / "Places/images", [f"{i}.png" for i in range(11)], 8000)
    fill(top / "dtd/images", [f"{kind}/{i}.png" for kind in ("dotted", "woven") for i in range(6)], 9000)
    return top


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    from helpers.tiny import clip_folder

    folder = tmp_path_factory.mktemp("clip")
    clip_folder(folder)
    return f"hf:{folder}"


@pytest.fixture
def short_corpora(monkeypatch):
    """Every corpus ends after 1000 words, since mining a long one takes minutes."""

    def short(name):
        corpus = get_corpus(name)
        step = max(1, len(corpus) // 1000)
        return make_corpus(corpus.name, corpus.read()[::step])

    monkeypatch.setattr("outword.detector.recipe.get_corpus", short)


@pytest.fixture
def short_learning(monkeypatch):
    """Prompts are learned for one epoch."""
    whole = Entry.by_shots

    def short(entry):
        return [replace(one, params={**one.params, "epochs": 1}) if one.shots else one for one in whole(entry)]

    monkeypatch.setattr(Entry, "by_shots", short)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def tables_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_paper(name, root, clip, short_corpora, short_learning, tmp_path):
    stands_for = [option for encoder in TABLES[name] for option in ("--encoder", f"{encoder}={clip}")]
    out = tmp_path / "results"
    seen = call("bench", name, "--data", root, "-o", out, *stands_for, "--seeds", 2, "--samples", 20)
    suite, rows = read_suite(name), rows_of(out)
    assert {row["ood"] for row in rows} == {"inaturalist", "sun", "places", "textures"}
    assert {row["id"] for row in rows} == set(suite.id)
    assert {row["encoder"] for row in rows} == set(suite.encoders)
    assert {row["corpus"] for row in rows} == set(suite.corpora or [""])
    skipped = {"eoe", "zoc", "clipn"}  # they want a word list, words for each photo, an encoder that says no
    assert {row["entry"] for row in rows} == {entry.shown for entry in suite.methods} - skipped
    assert {row["unread_ood"] for row in rows if row["ood"] == "sun"} == {1}
    for row in rows:
        assert 0 <= row["auroc_ci"][0] <= row["auroc_ci"][1] <= 1
        assert row["n_id"] == N_CLASSES
        assert row["config"]["labels"]["count"] == N_CLASSES
    assert {path.suffix for path in (out / "tables").iterdir()} == {".md", ".csv", ".tex"}
    assert "| published |" in seen.stdout
    assert "SUN: 1 of 11 images could not be read" in seen.stdout
    assert "incomplete" in seen.stdout
    with (out / "tables" / "main.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["source"] for line in lines} >= {"measured", "published"}
    page = (out / "report.html").read_text()
    assert ("mean AUROC by shots" in page) == (out / "tables" / "shots.csv").exists() == (name == "table1-imagenet1k")
    assert page.count("<img") > 4
    assert 'src="http' not in page


def test_what_prompts_were_learned_from_is_kept_and_told(tmp_path, short_learning):
    given = ["--methods", "mcm, coop, 2 shots, lapt, 1 shot", "--seeds", 1, "--samples", 20, "-o", tmp_path]
    seen = call("bench", "world-few-shot", *given).stdout
    found = {row["entry"]: row["config"]["learned_from"] for row in rows_of(tmp_path)}
    assert found["mcm"] is None
    coop, lapt = found["coop, 2 shots"], found["lapt, 1 shot"]
    assert (coop["photos"], coop["shots"], coop["words"], coop["id_images"]["classes"]) == (50, 2, 0, 25)
    assert (lapt["photos"], lapt["shots"], lapt["words"]) == (25, 1, 300)
    assert len(coop["losses"]) == 1 and len(coop["id_images"]["fingerprint"]) == 64
    page = (tmp_path / "report.html").read_text()
    assert "coop, 2 shots: learned from 50 photos, 2 of each label." in page
    assert "lapt, 1 shot: learned from 25 photos, 1 of each label; 300 words." in page
    assert "### World, few shots" in seen and "| coop | – | – |" in seen


def test_without_a_training_set_everything_is_scored(root, clip, short_corpora, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(root, data, ignore=shutil.ignore_patterns("train"))
    given = ["--data", data, "-o", tmp_path / "r", "--encoder", clip, "--methods", "mcm,knn", "--samples", 20]
    seen = call("bench", "table1-imagenet1k", *given).stdout
    assert {(row["entry"], row["n_id"], row["seed"]) for row in rows_of(tmp_path / "r")} == {("mcm", N_CLASSES, 0)}
    assert "- knn: skipped: knn needs ID images" in seen
    assert "- ImageNet-1k, training set: missing, so that there are no photos to fit on: get: " in seen


def test_each_line_of_a_table_is_told_apart(root, clip, short_corpora, tmp_path):
    stands_for = [option for encoder in TABLES["table2-backbones"] for option in ("--encoder", f"{encoder}={clip}")]
    given = ["--data", root, "-o", tmp_path / "r", *stands_for, "--methods", "debiased (released settings)"]
    call("bench", "table2-backbones", *given, "--seeds", 1, "--samples", 20)
    with (tmp_path / "r" / "tables" / "main.csv").open() as file:
        lines = [(line["encoder"], line["method"]) for line in csv.DictReader(file) if line["source"] == "measured"]
    assert lines == [(encoder, "debiased (released settings)") for encoder in TABLES["table2-backbones"]]
    other = [*given[:3], tmp_path / "s", "--encoder", clip, "--methods", "mcm,debiased (released settings)"]
    seen = call("bench", "table2-backbones", *other, "--samples", 20).stdout
    assert "debiased (released settings): skipped: it is for clip-vit-b-32" in seen


def test_published_figures_stand_beside_ours(root, clip, short_corpora, tmp_path):
    given = ["--data", root, "-o", tmp_path / "r", "--encoder", f"clip-vit-b-16={clip}", "--methods", "mcm"]
    table = call("bench", "table1-imagenet1k", *given, "--seeds", 1, "--samples", 20).stdout.splitlines()
    at = next(i for i, line in enumerate(table) if line.startswith("| mcm | measured |"))
    assert table[at + 1].startswith("| MCM | published | 94.59 | 32.20 | 92.25 | 38.80 |")
    assert "90.82 | 43.93" in table[at + 1]
    assert any(line.startswith("| Ours | published |") and "94.52 | 22.37" in line for line in table)
    other = call("bench", "table1-imagenet1k", *given[:3], tmp_path / "s", "--encoder", clip, "--methods", "mcm").stdout
    assert "| published |" not in other  # another encoder has no published figures


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A user's folders: two classes, two OOD sets, made of the demo photos."""
    top = tmp_path_factory.mktemp("own")
    chosen = {
        "id/tabby_cat": ["cat", "raccoon"],
        "id/space shuttle": ["shuttle", "rocket"],
        "ood/textures": ["gravel", "grass", "brick"],
        "ood/far": ["retina", "galaxies"],
    }
    lay_out(top, chosen)
    return top


QUICK = ["--methods", "debiased,mcm,knn", "--seeds", 2, "--samples", 200]


def run(own, out, *options, code=0):
    return call("bench", "folder", "--data", own, "-o", out, *QUICK, *options, code=code)


def test_a_row_equals_scoring_by_hand_and_says_what_it_hangs_on(own, tmp_path):
    toml = tmp_path / "own.toml"
    toml.write_text('title = "T"\nid = ["folder"]\nood = ["folder"]\nmethods = ["debiased", "mcm"]\nseeds = 2\n')
    call("bench", toml, "--data", own, "-o", tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    assert [(r["entry"], r["seed"], r["ood"]) for r in rows] == [
        *(("debiased", seed, ood) for seed in (0, 1) for ood in ("far", "textures")),
        *(("mcm", 0, ood) for ood in ("far", "textures")),  # nothing is drawn: one seed stands for all
    ]
    photos = sorted((own / "id").rglob("*.jpg"))
    for row in rows:
        params = {"seed": row["seed"]} if row["entry"] == "debiased" else {}
        made = outword.fit(["space shuttle", "tabby cat"], method=row["entry"], **params)
        inside, outside = made.score(photos), made.score(sorted((own / "ood" / row["ood"]).iterdir()))
        assert row["auroc"] == auroc(inside, outside)
        assert row["aupr_id"] == aupr(inside, outside, positive="id")
        assert row["aupr_ood"] == aupr(inside, outside, positive="ood")
        assert row["fpr95_id"] == fpr_at_tpr(inside, outside, positive="id")
        assert row["fpr95_ood"] == fpr_at_tpr(inside, outside, positive="ood")
        config = row["config"]
        assert config["encoder"]["fingerprint"] == get_encoder("mini").fingerprint
        assert config["seed"] == row["seed"]
        assert config["method"]["parameters"] == made.card.method.parameters
        assert len(config["id"]["fingerprint"]) == len(config["ood"]["fingerprint"]) == len(row["key"]) == 64
        assert row["versions"]["outword"] == outword.__version__
        assert re.fullmatch(r"[0-9a-f]{40}\+?|", row["commit"])


def test_photos_to_fit_on_are_drawn_by_the_seed_and_not_scored(own, tmp_path):
    run(own, tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    assert {row["n_id"] for row in rows} == {2}  # of four; all methods score the same photos
    assert {row["chance"] for row in rows} == {True}
    fitted = {r["config"]["id_images"]["fingerprint"] for r in rows if r["entry"] == "knn"}
    assert {r["config"]["id_images"]["count"] for r in rows if r["entry"] == "knn"} == {2}
    assert len(fitted) == 2


def test_a_train_folder_is_fitted_on_and_everything_is_scored(own, tmp_path):
    shutil.copytree(own, tmp_path / "data")
    shutil.copytree(own / "id", tmp_path / "data" / "train")
    run(tmp_path / "data", tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    assert {row["n_id"] for row in rows} == {4}
    assert {(row["entry"], row["chance"]) for row in rows} == {("debiased", True), ("mcm", False), ("knn", False)}


def test_what_is_done_is_not_done_again(own, tmp_path, monkeypatch):
    run(own, tmp_path / "r")
    before, lines = tables_of(tmp_path / "r"), (tmp_path / "r" / "rows.jsonl").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("outword.choosing.cell.prepare", lambda *a, **k: pytest.fail("fitted again"))
        patch.setattr("outword_lab.benchmark.run.photos.embed", lambda *a, **k: pytest.fail("read again"))
        run(own, tmp_path / "r")
    assert (tables_of(tmp_path / "r"), (tmp_path / "r" / "rows.jsonl").read_bytes()) == (before, lines)
    run(own, tmp_path / "other", "--store", tmp_path / "r" / "store")
    assert tables_of(tmp_path / "other") == before
    assert not (tmp_path / "other" / "store").exists()


def test_half_a_line_of_a_killed_run_is_cut_off(own, tmp_path):
    run(own, tmp_path / "r")
    before, path = tables_of(tmp_path / "r"), tmp_path / "r" / "rows.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    run(own, tmp_path / "r")
    assert tables_of(tmp_path / "r") == before
    assert [row["key"] for row in rows_of(tmp_path / "r")][: whole.count(b"\n") - 1] == [
        json.loads(line)["key"] for line in whole.splitlines()[:-1]
    ]


def test_changed_photos_are_measured_anew(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    run(data, tmp_path / "r")
    first = rows_of(tmp_path / "r")
    (data / "ood/far/galaxies.jpg").unlink()
    (data / "ood/far/broken.jpg").write_bytes(b"")
    seen = run(data, tmp_path / "r").stdout
    assert "far: 1 of 2 images could not be read" in seen
    new = rows_of(tmp_path / "r")[len(first) :]
    assert {(row["ood"], row["n_ood"]) for row in new} == {("far", 1), ("textures", 3)}
    shutil.rmtree(data / "ood/far")
    assert "far" not in run(data, tmp_path / "r").stdout


def test_what_is_odd_about_the_photos_is_told(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    (data / "id/pizza").mkdir()
    shutil.copy(PHOTOS / "leaves.jpg", data / "id")
    shutil.copy(PHOTOS / "cat.jpg", data / "ood/far")
    (data / "ood/far/loop.jpg").symlink_to("loop.jpg")
    (data / "ood/sets.zip").write_bytes(b"PK")
    seen = run(data, tmp_path / "r").stdout
    assert "- id: 1 of 5 photos show no label by their folder, and are scored all the same." in seen
    assert "- id: no photo shows pizza." in seen
    assert "- id: each seed draws 2 of 5 photos to fit on; the others are scored." in seen
    assert "- id: 1 photos are among those of far, too." in seen
    assert "- ood: left out, a set is a folder, an archive or a list: sets.zip." in seen
    shutil.copytree(data / "id", data / "train")
    seen = run(data, tmp_path / "s").stdout
    assert "- id: 5 photos are among the photos to fit on, too." in seen
    assert "- train: 1 photos show no label by their folder." in seen


def test_which_methods_are_asked_for_does_not_change_what_is_scored(own, tmp_path):
    for name, methods in (("r", "mcm"), ("s", "mcm,knn")):
        call("bench", "folder", "--data", own, "-o", tmp_path / name, "--methods", methods, "--seeds", 1)
    figures = [[row["auroc"] for row in rows_of(tmp_path / name) if row["entry"] == "mcm"] for name in "rs"]
    assert figures[0] == figures[1]


def test_photos_are_fitted_on_only_where_a_method_asks(own, tmp_path):
    shutil.copytree(own, tmp_path / "data")
    shutil.copytree(own / "id", tmp_path / "data" / "train")
    run(tmp_path / "data", tmp_path / "r", "--methods", "mcm")
    assert not (tmp_path / "r" / "store" / "folder-train").exists()
    assert {row["n_id"] for row in rows_of(tmp_path / "r")} == {4}


def test_photos_without_a_class_are_scored_not_fitted_on(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    for photo in ("leaves", "stairs", "tripod", "helmet"):
        shutil.copy(PHOTOS / f"{photo}.jpg", data / "id")
    seen = run(data, tmp_path / "r").stdout
    assert "- id: each seed draws 2 of 8 photos to fit on; the others are scored." in seen
    assert {row["n_id"] for row in rows_of(tmp_path / "r")} == {6}
    assert {r["config"]["id_images"]["count"] for r in rows_of(tmp_path / "r") if r["entry"] == "knn"} == {2}


def test_odd_names_of_sets(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    for name in (b"folder", b"average", b"far.npy", b"\xff", b"empty"):
        folder = data / "ood" / os.fsdecode(name)
        folder.mkdir()
        if name != b"empty":
            shutil.copy(PHOTOS / "leaves.jpg", folder)
    seen = run(data, tmp_path / "r").stdout
    oods = {row["ood"] for row in rows_of(tmp_path / "r")}
    assert oods == {"far", "textures", "ood-folder-", "ood-average-", "ood-far.npy-", "\\xff"}
    assert "- ood: " not in seen
    assert "- empty: missing, skipped: put photos into ROOT/ood/empty/" in seen


def test_the_same_twice(own, root, tmp_path):
    given = ["--encoder", "mini", "--encoder", "mini", "--methods", "mcm"]
    run(own, tmp_path / "r", *given)
    with (tmp_path / "r" / "tables" / "all.csv").open() as file:
        assert {line["seeds"] for line in csv.DictReader(file)} == {"2"}
    shutil.copytree(own, tmp_path / "data")
    shutil.copytree(root / "dtd", tmp_path / "data" / "textures")
    toml = tmp_path / "own.toml"
    toml.write_text('title = "T"\nid = ["folder"]\nood = ["textures", "folder"]\nmethods = ["mcm"]\n')
    told = call("bench", toml, "--data", tmp_path / "data", "-o", tmp_path / "s", code=2).stderr
    assert "OOD sets must have different names, got two called textures" in told


def test_a_set_that_is_gone_is_not_in_the_report(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    (data / "ood/cats").mkdir()
    shutil.copy(PHOTOS / "cat.jpg", data / "ood/cats/tom.jpg")
    run(data, tmp_path / "r")
    assert "tom.jpg" in (tmp_path / "r" / "report.html").read_text()
    shutil.rmtree(data / "ood/cats")
    run(data, tmp_path / "r")
    assert "tom.jpg" not in (tmp_path / "r" / "report.html").read_text()


def test_own_sets_beside_those_of_the_catalogue(own, root, tmp_path):
    shutil.copytree(own, tmp_path / "data")
    shutil.copytree(root / "SUN", tmp_path / "data" / "SUN")
    toml = tmp_path / "own.toml"
    toml.write_text('title = "T"\nid = ["folder"]\nood = ["sun", "folder"]\nmethods = ["mcm"]\n')
    call("bench", toml, "--data", tmp_path / "data", "-o", tmp_path / "r")
    assert [row["ood"] for row in rows_of(tmp_path / "r")] == ["sun", "far", "textures"]


def test_a_run_that_found_nothing_leaves_the_folder_free(own, tmp_path):
    (tmp_path / "empty").mkdir()
    call("bench", "near-far", "--data", tmp_path / "empty", "-o", tmp_path / "r", code=2)
    run(own, tmp_path / "r")


def test_ctrl_c(own, tmp_path, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("outword_lab.benchmark.run.suite.resolve", stop)
    told = run(own, tmp_path / "r", code=130).stderr
    assert "interrupted" in told
    assert "the same command goes on where it was" in told


def test_a_set_without_a_readable_photo_is_a_line(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    (data / "ood/bad").mkdir()
    (data / "ood/bad/a.jpg").write_bytes(b"no photo")
    only = tmp_path / "only"
    shutil.copytree(data, only, ignore=shutil.ignore_patterns("far", "textures"))
    told = run(only, tmp_path / "s", code=2).stderr
    assert "nothing could be run (bad: skipped: ROOT/ood/bad has no image that can be read)" in told
    seen = run(data, tmp_path / "r").stdout
    assert "- bad: skipped: ROOT/ood/bad has no image that can be read." in seen
    assert {row["ood"] for row in rows_of(tmp_path / "r")} == {"far", "textures"}


def test_a_photo_that_cannot_be_read_is_counted_though_nothing_is_measured_anew(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    run(data, tmp_path / "r")
    lines = (tmp_path / "r" / "rows.jsonl").read_bytes()
    (data / "ood/far/broken.jpg").write_bytes(b"")
    assert "far: 1 of 3 images could not be read" in run(data, tmp_path / "r").stdout
    assert (tmp_path / "r" / "rows.jsonl").read_bytes() == lines


def test_a_photo_in_another_class_folder_is_another_task(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    run(data, tmp_path / "r")
    first = rows_of(tmp_path / "r")
    (data / "id/tabby_cat/raccoon.jpg").rename(data / "id/space shuttle/raccoon.jpg")
    run(data, tmp_path / "r")
    assert len(rows_of(tmp_path / "r")) > len(first)


def test_scores_that_are_gone_are_made_again(own, tmp_path):
    run(own, tmp_path / "r")
    before = tables_of(tmp_path / "r")
    whole, damaged = sorted((tmp_path / "r" / "scores").glob("*.npz"))[:2]
    whole.unlink()
    damaged.write_bytes(damaged.read_bytes()[:200])
    run(own, tmp_path / "r")
    assert tables_of(tmp_path / "r") == before


def test_runs_on_other_roots_may_share_a_store(own, tmp_path, monkeypatch):
    """Sets of one name in two roots, where the second run is killed before it can say what it has put there."""
    run(own, tmp_path / "r", "--store", tmp_path / "store")
    before = tables_of(tmp_path / "r")
    shutil.copytree(own, tmp_path / "data")
    shutil.copy(PHOTOS / "leaves.jpg", tmp_path / "data" / "ood" / "far")
    with monkeypatch.context() as patch:
        patch.setattr("outword_lab.benchmark.run.photos.whole_file", lambda path: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception, match="killed"):
            run(tmp_path / "data", tmp_path / "s", "--store", tmp_path / "store")
    (tmp_path / "r" / "rows.jsonl").unlink()
    run(own, tmp_path / "r", "--store", tmp_path / "store")
    assert tables_of(tmp_path / "r") == before
    run(tmp_path / "data", tmp_path / "s", "--store", tmp_path / "store")
    assert {row["n_ood"] for row in rows_of(tmp_path / "s") if row["ood"] == "far"} == {3}


def test_words_of_the_user(own, tmp_path):
    toml, words = tmp_path / "own.toml", tmp_path / "words.txt"
    words.write_text("\n".join(f"thing {i}" for i in range(120)))
    entry = '[[methods]]\nmethod = "eoe"\n'
    toml.write_text(f'title = "T"\nid = ["folder"]\nood = ["folder"]\n{entry}corpus = "{words}"\n')
    call("bench", toml, "--data", own, "-o", tmp_path / "r", "--samples", 20)
    shutil.copytree(own, tmp_path / "data")
    shutil.copy(words, tmp_path / "data" / "words.txt")
    run(tmp_path / "data", tmp_path / "s", "--methods", "eoe")
    found = [{row["config"]["corpus"]["fingerprint"] for row in rows_of(tmp_path / name)} for name in "rs"]
    assert found[0] == found[1]


def test_a_damaged_line_is_told(own, tmp_path):
    run(own, tmp_path / "r")
    path = tmp_path / "r" / "rows.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    assert "line 1 of" in run(own, tmp_path / "r", code=2).stderr


POINTS = {  # when a run is killed: before which call of what
    "while photos are encoded": ("outword.vectors.shards:write_synced", 2),
    "between two methods": ("outword_lab.benchmark.run.results:Results.append", 2),
    "when all is measured and tables are due": ("outword_lab.benchmark.run.bench:make_tables", 0),
}


@pytest.fixture(scope="module")
def whole(own, tmp_path_factory):
    """The results of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole") / "results"
    run(own, folder)
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_resume(point, own, whole, tmp_path):
    out = tmp_path / "killed"
    with stopped(*POINTS[point], "bench", "folder", *QUICK, "--data", own, "-o", out) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (out / "report.html").exists()
    run(own, out)
    assert tables_of(out) == tables_of(whole)
    assert (out / "report.html").exists()
    assert {row["key"] for row in rows_of(out)} == {row["key"] for row in rows_of(whole)}


def test_each_encoder_reads_the_labels_itself(own, clip, tmp_path):
    """Label vectors are kept from one method to the next, but not from one encoder to the next."""
    both, alone = tmp_path / "both", tmp_path / "alone"
    given = ["folder", "--data", own, "--methods", "mcm,maxlogit", "--seeds", 1, "--samples", 20]
    call("bench", *given, "-o", both, "--encoder", "mini", "--encoder", clip)
    call("bench", *given, "-o", alone, "--encoder", clip)
    keys = [[row["key"] for row in rows_of(folder) if row["encoder"] == clip] for folder in (both, alone)]
    figures = [[row["auroc"] for row in rows_of(folder) if row["encoder"] == clip] for folder in (both, alone)]
    assert keys[0] == keys[1] != []
    assert figures[0] == figures[1]
    assert {row["encoder"] for row in rows_of(both)} == {"mini", clip}


def test_one_photo_a_class_leaves_none_to_fit_on(own, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(own, data)
    (data / "id/tabby_cat/raccoon.jpg").unlink()
    (data / "id/space shuttle/rocket.jpg").unlink()
    seen = run(data, tmp_path / "r").stdout
    assert {(row["entry"], row["n_id"], row["chance"]) for row in rows_of(tmp_path / "r")} == {
        ("debiased", 2, True),
        ("mcm", 2, False),
    }
    assert "- knn: skipped: knn needs ID images" in seen


def test_two_at_once(own, tmp_path):
    with Results(tmp_path / "r").locked("folder"):
        told = run(own, tmp_path / "r", code=2).stderr
    assert "another run is writing to" in told
    assert "hint: wait for it, or choose another folder" in told
    run(own, tmp_path / "r")


def test_a_folder_of_something_else_is_refused(own, root, tmp_path):
    run(own, tmp_path / "r")
    told = call("bench", "near-far", "--data", root, "-o", tmp_path / "r", code=2).stderr
    assert "holds results of the suite folder, not of near-far" in told
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    assert "is not empty and holds no results" in run(own, tmp_path / "full", code=2).stderr


def test_missing_sets_are_lines(root, clip, short_corpora, tmp_path):
    given = ["--data", root, "--encoder", clip, "--methods", "mcm", "--seeds", 1, "--samples", 20]
    seen = call("bench", "near-far", *given, "-o", tmp_path / "r").stdout
    for title in ("NINCO", "SSB-hard", "OpenImage-O"):
        assert re.search(rf"^- {title}: missing, skipped: .*get: ", seen, flags=re.MULTILINE)
    assert "2 of 5 sets" in seen
    told = call("bench", "small-k", *given, "-o", tmp_path / "s").stdout
    assert "Cars" in told
    assert str(root) not in seen + told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["folder"], "ROOT must be a folder with data sets, got nothing"),
        (["folder", "--data", "nowhere"], "ROOT must be a folder with data sets, got nowhere"),
        (["foldr", "--data", "."], 'unknown suite "foldr"'),
        (["folder", "--data", "OWN", "--methods", "msm"], 'unknown method of folder "msm"'),
        (["folder", "--data", "OWN", "--encoder", "clip=mini"], 'unknown encoder of folder "clip"'),
        (["folder", "--data", "OWN", "--methods", ","], "--methods must name at least one method, got none"),
        (["table1-imagenet1k", "--data", "OWN"], "none of the suite's ID sets is in"),
        (["folder", "--data", "OWN", "--encoder", "minni"], 'unknown encoder "minni"'),
        (["folder", "--data", "OWN", "--encoder", "mini=mini", "--encoder", "mini"], "with NAME= always or never"),
        (
            ["folder", "--data", "OWN", "--methods", "eoe", "--seeds", "1"],
            "nothing could be run (eoe: eoe needs a word",
        ),
    ],
)
def test_bad_input(options, told, own, tmp_path):
    given = [str(own) if option == "OWN" else option for option in options]
    result = call("bench", *given, "-o", tmp_path / "r", code=2)
    assert told in result.stderr
    assert "hint: " in result.stderr


def test_an_encoder_that_is_not_here_is_a_line(own, tmp_path):
    given = ["--encoder", "mini", "--encoder", f"onnx:{tmp_path}/none"]
    seen = run(own, tmp_path / "r", *given).stdout
    assert re.search(rf"^- onnx:{re.escape(str(tmp_path))}/none: .*no ", seen, flags=re.MULTILINE)


def test_a_sweep_on_folders(own, tmp_path):
    toml = tmp_path / "own.toml"
    toml.write_text(
        'title = "T"\nkind = "sweep"\nid = ["folder"]\nood = ["folder"]\nseeds = 2\n'
        '[[methods]]\nmethod = "debiased"\n'
        '[[sweep]]\nparameter = "tau"\nvalues = [0.0, 0.5]\n'
        '[[sweep]]\nparameter = "B"\nvalues = [1, 100]\n'
        '[[sweep]]\nparameter = "K"\nvalues = [2, 99]\n'
    )
    shutil.copytree(own, tmp_path / "data")
    for photo in ("coffee", "clock", "camera"):
        folder = tmp_path / "data" / "id" / photo
        folder.mkdir()
        shutil.copy(PHOTOS / f"{photo}.jpg", folder)
    out = tmp_path / "r"
    seen = call("bench", toml, "--data", tmp_path / "data", "-o", out, "--samples", 20).stdout
    rows = rows_of(out)
    assert {row["point"] for row in rows} == {"tau=0", "tau=0.5", "B=1", "B=100", "K=2"}
    assert {row["config"]["labels"]["count"] for row in rows if row["point"] == "K=2"} == {2}
    assert max(row["n_id"] for row in rows if row["point"] == "K=2") < 7 == max(row["n_id"] for row in rows)
    assert len({row["config"]["labels"]["fingerprint"] for row in rows if row["point"] == "K=2"}) == 2
    assert {row["config"]["method"]["parameters"]["tau"] for row in rows if row["point"] == "tau=0"} == {0.0}
    assert "debiased, K=99: skipped: K must be 2 to 5, the labels of folder, got 99" in seen
    assert {"sweep-tau.md", "sweep-B.csv", "sweep-K.tex", "all.md"} <= set(tables_of(out))
    used = {row["point"]: f"{row['config']['learned']['tau']:.3g}" for row in rows}
    with (out / "tables/sweep-B.csv").open() as file:  # the header's word for the tau that B admits
        assert [(f"B={line['B']}", line["tau_used"]) for line in csv.DictReader(file)] == [
            (point, used[point]) for point in ("B=1", "B=100")
        ]
    assert used["B=1"] != used["B=100"]


def test_a_sweep_of_the_miner(own, tmp_path, short_corpora):
    toml = tmp_path / "own.toml"
    toml.write_text(
        'title = "T"\nkind = "sweep"\nid = ["folder"]\nood = ["folder"]\nseeds = 1\n[[methods]]\nmethod = "debiased"\n'
        '[[sweep]]\nparameter = "alpha"\nvalues = [5]\n[[sweep]]\nparameter = "L"\nvalues = [200]\n'
    )
    call("bench", toml, "--data", own, "-o", tmp_path / "r", "--samples", 20)
    miners = {row["point"]: row["config"]["miner"]["parameters"] for row in rows_of(tmp_path / "r")}
    assert (miners["alpha=5"]["alpha"], miners["alpha=5"]["size"]) == (5, 12000)
    assert (miners["L=200"]["alpha"], miners["L=200"]["size"]) == (100, 200)


def test_a_suite_of_the_paper_on_folders(own, tmp_path, short_corpora):
    given = ["--folder", "--encoder", "mini", "--seeds", 1, "--samples", 20]
    call("bench", "fig2-kappa-L", "--data", own, "-o", tmp_path / "r", *given, "--store", tmp_path / "s", code=0)
    rows = rows_of(tmp_path / "r")
    assert {(row["id"], row["encoder"]) for row in rows} == {("folder", "mini")}
    assert {row["config"]["method"]["parameters"]["temperature"] for row in rows if row["point"] == "kappa=0.1"} == {
        0.1
    }


def test_theorem(tmp_path):
    toml = tmp_path / "small.toml"
    toml.write_text(
        'title = "T"\nkind = "theorem"\n[theorem]\nsizes = [300, 1000, 3000]\nscales = [1.0]\ndraws = 40\nimages = 4\n'
    )
    seen = call("bench", toml, "-o", tmp_path / "r")
    assert "Theorem 2" in seen.stdout
    assert (tmp_path / "r" / "plots" / "theorem2.png").stat().st_size > 10_000
    assert (tmp_path / "r" / "curves.jsonl").read_text().count("\n") == 6  # two kinds of vectors, three axes
    assert "<img" in (tmp_path / "r" / "report.html").read_text()
    before = tables_of(tmp_path / "r")
    call("bench", toml, "-o", tmp_path / "r")
    assert tables_of(tmp_path / "r") == before


def test_patches_are_scored_in_the_order_of_the_vectors(root, clip, tmp_path):
    """GL-MCM reads the photos once more, and its scores belong to the same photos."""
    suite = replace(read_suite("near-far"), encoders=("clip-vit-b-16",), methods=(read_suite("near-far").methods[4],))
    assert suite.methods[0].method == "glmcm"
    bench(suite, root, tmp_path / "r", encoders=lambda _: get_encoder(clip), samples=20)
    results = Results(tmp_path / "r")
    row = next(row for row in results.read().values() if row.ood == "inaturalist")
    made = outword.fit([name for _, name in imagenet.classes()[:N_CLASSES]], encoder=clip, method="glmcm")
    with np.load(tmp_path / "r" / "scores" / f"{row.cell}.npz") as kept:
        photos = sorted(os.fspath(path) for path in (root / "imagenet-1k/val").rglob("*.png"))
        assert np.allclose(kept["id"], made.score(photos), atol=1e-6)


def test_classes_and_labels_of_a_set(tmp_path):
    from outword_lab.benchmark.run.catalogue import Found, catalogue
    from outword_lab.benchmark.run.task import half, make_task

    names = [f"val/{wnid}/{i}.png" for wnid in ("n01443537", "n01440764") for i in range(4)]
    found = Found(catalogue()["imagenet-1k"], "present", tmp_path, 8, "", (tmp_path,))
    photos = of_set(found, names, np.eye(8, dtype=np.float32), [])
    assert list(photos.labels) == ["tench", "goldfish"]
    assert photos.shown.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    task = make_task(photos, None, seed=0, n_labels=None, split=True)
    assert task.id_images.counts == {"tench": 2, "goldfish": 2}
    assert len(task.rows) == 4
    scored = set(task.rows.tolist())
    assert scored.isdisjoint(np.flatnonzero(task.id_images.vectors.sum(axis=0)).tolist())
    other = make_task(photos, None, seed=1, n_labels=None, split=True)
    assert other.rows.tolist() != task.rows.tolist()
    assert half(np.array([0, 1, 2]), np.arange(3), seed=0).tolist() == []
    assert half(np.zeros(0, np.int64), np.arange(0), seed=0).tolist() == []
    train = make_task(photos, photos, seed=0, n_labels=2, split=True)
    assert len(train.rows) == len(train.id_images.vectors) == 8
    flat = of_set(found, ["val/a.png"], np.eye(1, dtype=np.float32), [])
    assert len(flat.labels) == 998
    assert (flat.shown < 0).any()
    with pytest.raises(outword.errors.InputError, match="K needs the class of each photo"):
        make_task(flat, None, seed=0, n_labels=2, split=False)
