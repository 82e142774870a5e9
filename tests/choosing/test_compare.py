"""Many methods on the same photos: who takes part, what the rows say, and that they equal scoring by hand."""

import csv
import io
import json
import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest

import outword
from conftest import PHOTOS, call, lay_out
from helpers.archives import write_tar
from helpers.cards import a_card
from outword.choosing.cell import Cell
from outword.choosing.compare import Tried, applicable, mean_row, run_cells
from outword.choosing.photos import numbered
from outword.detector.card import Card
from outword.detectors import DETECTORS, AdaNeg
from outword.encoders import get_encoder
from outword.encoders.mini.encoder import Mini
from outword.metrics import aupr, auroc, fpr_at_tpr
from outword.testing import planted_world

LABELS = ["tabby cat", "espresso", "space shuttle"]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Folders with the demo photos: labels, ID photos, two OOD sets, and ID photos in class folders."""
    root = tmp_path_factory.mktemp("sets")
    (root / "labels.txt").write_text("\n".join(LABELS))
    (root / "words.txt").write_text(
        "\n".join(f"{a} {b}" for a in "ABCDEFGH" for b in ("dog", "lamp", "tree", "rock", "sea"))
    )
    chosen = {
        "id": ["cat", "coffee", "shuttle"],
        "textures": ["gravel", "grass", "brick"],
        "far": ["retina", "galaxies"],
        "train/tabby_cat": ["cat"],
        "train/espresso": ["coffee"],
        "train/Space Shuttle": ["shuttle", "rocket"],
    }
    lay_out(root, chosen)
    return root


def run(sets, *options, code=0):
    given = ["--id", sets / "id", "--ood", sets / "textures", "--ood", sets / "far"]
    return call("compare", sets / "labels.txt", *given, *options, code=code)


def test_rows_equal_scoring_by_hand(sets):
    rows = json.loads(run(sets, "--methods", "mcm,msp", "--by-set", "--json").stdout)
    assert [(row["method"], row["ood"]) for row in rows] == [
        ("mcm", "textures"),
        ("mcm", "far"),
        ("msp", "textures"),
        ("msp", "far"),
    ]
    for row in rows:
        made = outword.fit(LABELS, method=row["method"])
        inside, outside = (made.score(sorted((sets / name).iterdir())) for name in ("id", row["ood"]))
        assert row["auroc"] == auroc(inside, outside)
        assert row["aupr_id"] == aupr(inside, outside, positive="id")
        assert row["aupr_ood"] == aupr(inside, outside, positive="ood")
        assert row["fpr95_id"] == fpr_at_tpr(inside, outside, positive="id")
        assert row["fpr95_ood"] == fpr_at_tpr(inside, outside, positive="ood")
        assert min(row["fit_seconds"], row["score_seconds"]) >= 0


def test_every_method_that_applies_and_what_the_others_lack(sets):
    result = run(sets, "--corpus", sets / "words.txt", "--json")
    rows = {row["method"]: row for row in json.loads(result.stdout)}
    lines = result.stderr.splitlines()
    named = [line.split(": ")[1] for line in lines if line.startswith("left out: ")]
    assert sorted([*(name.partition(" ")[0] for name in rows), *named]) == sorted(DETECTORS)
    lack = "left out: mahalanobis: mahalanobis needs ID images with labels: pass --id-images FOLDER"
    assert any(line.startswith(lack) for line in lines)
    assert "left out: glmcm: glmcm needs patches: mini has none" in lines
    assert "odin (epsilon=0)" in rows
    assert any(line.startswith("left out: debiased: n_groups must be between 1 and") for line in lines)  # 40 words
    assert "one stream, shuffled by the seed 0" in result.stderr
    assert all(row["ood"] == "mean" for row in rows.values())


def test_id_images_let_the_methods_in_that_need_them(sets):
    chosen = ("--methods", "mahalanobis,knn,eoe", "--json")
    result = run(sets, *chosen, "--id-images", sets / "train")
    assert [row["method"] for row in json.loads(result.stdout)] == ["knn", "mahalanobis"]
    assert "left out: eoe: eoe needs a word list of yours, one word a line: pass --corpus FILE" in result.stderr
    result = run(sets, *chosen, "--id-images", sets / "id")  # no class folders: photos, but not of which class
    assert [row["method"] for row in json.loads(result.stdout)] == ["knn"]
    assert "mahalanobis needs ID images with labels" in result.stderr
    assert "share photos" in result.stderr


def test_stores_give_what_folders_give(sets, tmp_path):
    for name in ("id", "textures"):
        call("embed", sets / name, "-o", tmp_path / name)
    options = ["--methods", "msp,knn,glmcm", "--id-images", sets / "train", "--json"]
    plain = call("compare", sets / "labels.txt", "--id", sets / "id", "--ood", sets / "textures", *options)
    stored = call("compare", sets / "labels.txt", "--id", tmp_path / "id", "--ood", tmp_path / "textures", *options)
    for a, b in zip(json.loads(plain.stdout), json.loads(stored.stdout), strict=True):
        assert a["ood"] == b["ood"] == "textures"
        for figure in ("auroc", "aupr_id", "aupr_ood", "fpr95_id", "fpr95_ood"):
            assert a[figure] == pytest.approx(b[figure])
    assert "glmcm needs patches, and" in stored.stderr
    assert "is a store, which has none" in stored.stderr


def test_archives_and_lists_give_what_folders_give(sets, tmp_path):
    photos = sorted((sets / "textures").iterdir())
    write_tar(tmp_path / "textures.tar", {path.name: path.read_bytes() for path in photos})
    (tmp_path / "id.txt").write_text("\n".join(map(str, sorted((sets / "id").iterdir()))))
    options = ["--methods", "msp,knn", "--id-images", sets / "train", "--format", "csv"]
    plain = call("compare", sets / "labels.txt", "--id", sets / "id", "--ood", sets / "textures", *options)
    given = ["--id", tmp_path / "id.txt", "--ood", tmp_path / "textures.tar"]
    packed = call("compare", sets / "labels.txt", *given, *options)
    figures = [[line.split(",")[2:7] for line in one.stdout.splitlines()] for one in (plain, packed)]
    assert figures[0] == figures[1]


def test_photos_that_are_fitted_on_and_scored_are_told_by_their_content(sets, tmp_path):
    shutil.copytree(sets / "id", tmp_path / "copies")
    options = ["--methods", "knn", "--ood", sets / "far"]
    for folder in (sets / "id", tmp_path / "copies"):
        given = ["--id", sets / "id", "--id-images", folder, *options]
        assert "--id and --id-images share photos" in call("compare", sets / "labels.txt", *given).stderr
    given = ["--id", sets / "textures", "--id-images", tmp_path / "copies", *options]
    assert "share photos" not in call("compare", sets / "labels.txt", *given).stderr


def test_an_encoder_with_patches_lets_the_methods_in_that_look_at_parts(sets, tmp_path):
    from helpers.tiny import open_clip_folder

    open_clip_folder("vit", tmp_path / "vit")
    encoder = f"hf:{tmp_path / 'vit'}"
    rows = json.loads(run(sets, "--encoder", encoder, "--methods", "glmcm,mcm", "--by-set", "--json").stdout)
    made = outword.fit(LABELS, method="glmcm", encoder=encoder)
    inside, outside = (made.score(sorted((sets / name).iterdir())) for name in ("id", "textures"))
    assert (rows[2]["method"], rows[2]["auroc"]) == ("glmcm", auroc(inside, outside))


def test_formats(sets):
    chosen = ("--methods", "mcm,msp")
    rows = json.loads(run(sets, *chosen, "--json").stdout)
    table = list(csv.DictReader(io.StringIO(run(sets, *chosen, "--format", "csv").stdout)))
    assert [float(row["auroc"]) for row in table] == [row["auroc"] for row in rows]
    lines = run(sets, *chosen, "--format", "md").stdout.splitlines()
    assert lines[0].startswith("| method | AUROC | AUPR (ID) | AUPR (OOD) | FPR95 (ID) | FPR95 (OOD) | fit s | score s")
    assert lines[2].startswith(f"| mcm | {100 * rows[0]['auroc']:.2f} |")
    assert len(lines) == 4
    assert "OOD set" in run(sets, *chosen, "--by-set").stdout
    printed = run(sets, *chosen).stdout
    assert "OOD set" not in printed
    assert "mcm" in printed


def test_bad_sets(sets, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    for name in "abcde":
        (tmp_path / "bad" / f"{name}.jpg").write_bytes(b"junk")
    mcm = ("--methods", "mcm")
    for name in ("empty", "bad"):
        given = ["compare", sets / "labels.txt", "--id", sets / "id", "--ood", tmp_path / name, *mcm]
        assert f"the {name} set has no image that can be read" in call(*given, code=2).stderr
    given = ["compare", sets / "labels.txt", "--id", tmp_path / "bad", "--ood", sets / "far", *mcm]
    assert "the ID set has no image that can be read" in call(*given, code=2).stderr
    shutil.copy(PHOTOS / "brick.jpg", tmp_path / "bad")
    result = call("compare", sets / "labels.txt", "--id", sets / "id", "--ood", tmp_path / "bad", *mcm)
    assert "a.jpg': not an image" in result.stderr
    assert "and 2 more" in result.stderr


def test_bad_methods(sets):
    assert 'did you mean "mcm"?' in run(sets, "--methods", "mcn", code=2).stderr
    assert "there must be a method that applies" in run(sets, "--methods", "mahalanobis", code=2).stderr


def test_names_of_sets_are_no_formulas(sets, tmp_path):
    shutil.copytree(sets / "far", tmp_path / "=1+1")
    given = ["--id", sets / "id", "--ood", tmp_path / "=1+1", "--methods", "mcm", "--by-set", "--format", "csv"]
    assert "\nmcm,'=1+1,1.0," in call("compare", sets / "labels.txt", *given).stdout


def test_sets_of_the_same_name_go_by_their_path(sets, tmp_path):
    shutil.copytree(sets / "far", tmp_path / "far")
    given = ["--id", sets / "id", "--ood", sets / "far", "--ood", tmp_path / "far", "--methods", "mcm", "--by-set"]
    rows = json.loads(call("compare", sets / "labels.txt", *given, "--json").stdout)
    assert [row["ood"] for row in rows] == [str(sets / "far"), str(tmp_path / "far")]


def cell(recipe, world, outside):
    sets = [numbered(name, vectors) for name, vectors in outside.items()]
    rows = np.arange(len(world.id_images))
    return Cell(recipe, dict.fromkeys(LABELS, ""), numbered("ID", world.id_images), rows, sets)


def test_a_method_that_sees_the_order_gets_one_shuffled_stream_for_each_set(monkeypatch):
    world = planted_world()
    halves = np.array_split(world.ood_images, 2)
    detector = AdaNeg().fit(world.labels, world.wild)
    (recipe,) = applicable([Tried("adaneg")], get_encoder("mini")).values()
    monkeypatch.setattr("outword.choosing.cell.prepare", lambda *a, **k: Fitted(detector))
    (rows,) = run_cells({"adaneg": cell(recipe, world, {"a": halves[0], "b": halves[1]})})
    assert [(row.method, row.ood) for row in rows] == [("adaneg", "a"), ("adaneg", "b")]
    images = np.concatenate([world.id_images, halves[1]])
    order = np.random.default_rng(0).permutation(len(images))
    detector.reset()
    scores = np.empty(len(images))
    scores[order] = detector.score(images[order])
    n = len(world.id_images)
    assert rows[1].auroc == auroc(scores[:n], scores[n:])
    assert mean_row(rows).auroc == pytest.approx((rows[0].auroc + rows[1].auroc) / 2)
    assert (mean_row(rows).ood, mean_row(rows[:1]).ood) == ("mean", "a")


@dataclass
class Fitted:
    """What `prepare` gives, for a method that is fitted already."""

    scorer: AdaNeg
    seconds: float = 0.0  # of what was learned before
    card: Card = field(default_factory=a_card)

    def fit(self):
        return self


def test_quick_methods_come_first_and_rows_are_printed_as_they_are_ready(sets, monkeypatch):
    names = applicable([Tried(name) for name in ("debiased", "mcm", "csp", "msp")], get_encoder("mini"))
    assert list(names) == ["mcm", "msp", "debiased", "csp"]
    real = Cell.measure

    def measure(self, *args):
        if self.recipe.method == "debiased":
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(Cell, "measure", measure)
    for kind in ("table", "csv", "md"):
        printed = run(sets, "--methods", "debiased,mcm", "--format", kind, code=130).stdout.splitlines()
        assert any(line.lstrip("| ").startswith("mcm") for line in printed)


def test_words_are_for_the_methods_that_want_a_list(sets):
    result = run(sets, "--methods", "eoe,mcm", "--words", sets / "words.txt", "--json")
    assert [row["method"] for row in json.loads(result.stdout)] == ["mcm", "eoe"]
    assert "left out" not in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ood", "nowhere"], "there is nothing at nowhere"),
        (["--corpus", "wordnt"], 'unknown corpus "wordnt"'),
        (["--words", "no.txt"], "there is no corpus file no.txt"),
        (["--methods", " , "], "--methods must name at least one method"),
    ],
)
def test_what_leads_nowhere_is_said_before_anything_is_encoded(sets, options, message, nothing_encoded):
    assert message in run(sets, *options, code=2).stderr


@pytest.fixture
def nothing_encoded(monkeypatch):
    """An encoder that fails as soon as it is to encode something."""
    for name in ("encode_pixels", "encode_texts"):
        monkeypatch.setattr(Mini, name, lambda *a: pytest.fail("something was encoded"))


def test_what_is_missing_is_said_before_anything_is_encoded(sets, nothing_encoded):
    given = ["--id", sets / "id", "--ood", sets / "far", "--methods", "mahalanobis,glmcm,eoe"]
    result = call("compare", sets / "labels.txt", *given, "--id-images", sets / "far", code=2).stderr
    assert "left out: mahalanobis: mahalanobis needs ID images with labels: the class of an ID image is" in result
    assert "left out: glmcm: glmcm needs patches: mini has none" in result
    assert "left out: eoe" in result
    assert "there must be a method that applies" in result
