"""The catalogue of sets, the layouts that people have, and `outword data check`."""

import hashlib
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from conftest import call
from helpers.archives import photo, write_parquet, write_photos, write_tar
from outword.encoders import get_encoder
from outword.errors import InputError, MissingExtraError, ParameterError
from outword.photos.decode import Blob, read_bytes
from outword.vectors.source import Identity, find_names
from outword.words.labels import check_labels
from outword_lab.benchmark.run import imagenet
from outword_lab.benchmark.run.catalogue import (
    catalogue,
    class_of,
    find_set,
    folder_ood,
    labels_of,
    source_of,
    world_catalogue,
)
from outword_lab.benchmark.run.photos import encoded
from outword_lab.benchmark.run.suite import FOLDER, read_suite, suite_names
from outword_lab.world.sets import world_sets

TENCH, GOLDFISH, BRAMBLING, BULLFROG = "n01440764", "n01443537", "n01530575", "n01641577"

ENCODER = Identity("ab" * 32, "any")  # there are no stores among the sets


def names(found):
    return [os.fspath(item) for item in source_of(found, ENCODER).items()]


def shown(found):
    return [class_of(found.data_set, name) for name in names(found)]


# ImageNet


def test_998_different_names():
    classes = imagenet.classes()
    assert len(classes) == len({wnid for wnid, _ in classes}) == 1000
    every = [name for _, name in classes]
    assert sorted({name for name in every if every.count(name) > 1}) == ["crane", "maillot"]
    assert len(check_labels(imagenet.labels())) == 998
    assert [imagenet.classes_by_key()[key][1] for key in ("264", "474")] == ["Cardigan Welsh corgi", "cardigan"]
    assert classes[999] == ("n15075141", "toilet tissue")


@pytest.mark.parametrize("key", ["n00000000", "1000", "-1", "007", "", "val", "tench"])
def test_no_class(key):
    assert key not in imagenet.classes_by_key()


def test_subsets():
    sizes = {n: set(imagenet.subset(n)) for n in imagenet.SUBSETS}
    assert {n: len(wnids) for n, wnids in sizes.items()} == {10: 10, 20: 20, 100: 100}
    assert {imagenet.classes_by_key()[wnid][1] for wnid in sizes[10]} == {
        *("warplane", "sports car", "brambling", "Siamese cat", "impala", "Greater Swiss Mountain dog", "bullfrog"),
        *("garbage truck", "sorrel", "container ship"),
    }
    assert not sizes[10] & sizes[20] and len(sizes[20] & sizes[100]) == 2
    with pytest.raises(ParameterError, match="unknown subset of ImageNet"):
        imagenet.subset(50)


# The file


def test_every_set_says_where_it_is_from():
    for name, data_set in catalogue().items():
        assert data_set.name == name and data_set.images > 0
        assert all((data_set.title, data_set.about, data_set.licence, data_set.get, data_set.layout, data_set.folders))
        assert data_set.source.startswith("https://")
        for checksum in data_set.checksums.values():
            kind, _, digest = checksum.partition(":")
            assert len(bytes.fromhex(digest)) == hashlib.new(kind).digest_size


def test_every_suite_names_sets_of_the_catalogue():
    suites = [read_suite(name) for name in suite_names()]
    used = {name for suite in suites for name in (*suite.id, *suite.ood, *filter(None, [suite.train]))}
    assert used - {FOLDER} <= {*catalogue(), *world_catalogue()}


# The rendered world


def test_sets_of_the_world_need_no_folder():
    found = find_set(None, "world-id")
    assert (found.status, found.count, found.where, found.paths) == ("present", 1000, None, ("world:id",))
    every = list(find_names(found.paths))
    assert [class_of(found.data_set, name) for name in every[:80]] == ["fish"] * 40 + ["bird"] * 40
    for name in ("v2", "sketch", "rendition", "adverse", "train", "sketch-train"):
        other = find_set(None, f"world-{name}")
        assert labels_of(other.data_set, find_names(other.paths)) == labels_of(found.data_set, every)
    assert len(labels_of(found.data_set, every)) == 25
    assert set(world_catalogue()) == {f"world-{name}" for name in world_sets()}
    with pytest.raises(InputError, match="the set sun needs a folder with data sets, got none"):
        find_set(None, "sun")
    with pytest.raises(ParameterError, match='did you mean "world-near"'):
        find_set(".", "world-nearr")


def test_data_check_of_the_world(tmp_path):
    seen = call("data", "check", tmp_path, "--suite", "world")
    assert "missing" not in seen.stdout + seen.stderr
    assert {"world-id", "world-train", "world-sketch", "world:sketch"} <= set(seen.stdout.split())
    assert "world" not in call("data", "check", tmp_path).stdout


# Layouts


def test_imagenet_in_class_folders(tmp_path):
    write_photos(tmp_path / "imagenet-1k" / "val", [f"{GOLDFISH}/b.JPEG", f"{TENCH}/a.JPEG", f"{TENCH}/c.JPEG"])
    found = find_set(tmp_path, "imagenet-1k")
    assert (found.status, found.count, found.where) == ("incomplete", 3, tmp_path / "imagenet-1k" / "val")
    assert "3 images found, 50,000 expected" in found.advice
    assert shown(found) == ["tench", "tench", "goldfish"]
    assert [*labels_of(found.data_set, reversed(names(found)))] == ["tench", "goldfish"]


def test_imagenet_in_one_folder_tells_no_classes(tmp_path):
    write_photos(tmp_path / "ILSVRC2012" / "val", ["ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG"])
    found = find_set(tmp_path, "imagenet-1k")
    assert found.count == 2 and shown(found) == [None, None]
    assert [*labels_of(found.data_set, names(found))] == imagenet.labels()
    part = find_set(tmp_path, "imagenet-10")
    assert (part.status, part.count) == ("missing", 0) and "does not tell the classes" in part.advice


def test_imagenet_validation_tar(tmp_path):
    write_tar(tmp_path / "ILSVRC2012_img_val.tar", {f"ILSVRC2012_val_{n}.JPEG": photo(n) for n in range(4)})
    assert find_set(tmp_path, "imagenet-1k").count == 4


def test_imagenet_parquet(tmp_path):
    index = {wnid: n for n, (wnid, _) in enumerate(imagenet.classes())}
    data = tmp_path / "imagenet-1k" / "data"
    write_parquet(
        data / "validation-0.parquet", [(photo(0), "a.JPEG"), (photo(1), None)], [index[BULLFROG], index[TENCH]]
    )
    write_parquet(data / "validation-1.parquet", [(photo(2), None)], [index[BRAMBLING]])
    write_parquet(data / "train-0.parquet", [(photo(3), None)], [0])
    found = find_set(tmp_path, "imagenet-1k")
    assert (found.count, found.where) == (3, data)
    assert shown(found) == ["bullfrog", "tench", "brambling"]
    assert [*labels_of(found.data_set, names(found))] == ["tench", "brambling", "bullfrog"]
    assert find_set(tmp_path, "imagenet-1k-train").count == 1
    part = find_set(tmp_path, "imagenet-10")
    assert (part.status, part.count) == ("incomplete", 2) and shown(part) == ["bullfrog", "brambling"]
    assert [read_bytes(item) for item in source_of(part, ENCODER).items()] == [photo(0), photo(2)]


def test_subset_of_class_folders(tmp_path):
    write_photos(tmp_path / "imagenet" / "val", [f"{TENCH}/1.JPEG", f"{BRAMBLING}/2.JPEG", f"{BULLFROG}/3.JPEG"])
    found = find_set(tmp_path, "imagenet-10")
    assert (found.count, shown(found)) == (2, ["brambling", "bullfrog"])
    assert [*labels_of(found.data_set, names(found))] == ["brambling", "bullfrog"]
    assert len(labels_of(found.data_set, [])) == 10
    assert class_of(found.data_set, f"val/{TENCH}/1.JPEG") is None


def test_own_folder_of_a_subset_comes_first(tmp_path):
    write_photos(tmp_path, [f"imagenet/val/{BRAMBLING}/2.JPEG", f"ImageNet10/val/{BULLFROG}/3.JPEG"])
    assert shown(find_set(tmp_path, "imagenet-10")) == ["bullfrog"]


def test_imagenet_v2_has_indices(tmp_path):
    folder = tmp_path / "imagenetv2-matched-frequency-format-val"
    write_photos(folder, ["999/a.jpeg", "0/b.jpeg", "10/c.jpeg"])
    found = find_set(tmp_path, "imagenet-v2")
    assert sorted(shown(found)) == ["brambling", "tench", "toilet tissue"]
    assert [*labels_of(found.data_set, names(found))] == ["tench", "brambling", "toilet tissue"]


@pytest.mark.parametrize("top", ["iNaturalist", "inaturalist", "ood_data/iNaturalist", "images_largescale/inaturalist"])
def test_mos_folder(tmp_path, top):
    write_photos(tmp_path / top / "images", ["b.jpg", "a.jpg"])
    found = find_set(tmp_path, "inaturalist")
    assert (found.where, found.count) == (tmp_path / top, 2)
    assert names(found) == [str(tmp_path / top / "images" / name) for name in ("a.jpg", "b.jpg")]
    assert shown(found) == [None, None] and [*labels_of(found.data_set, names(found))] == []


def test_mos_tarball_as_it_is(tmp_path):
    write_tar(tmp_path / "Places.tar.gz", {f"Places/images/{n}.jpg": photo(n) for n in range(3)}, "w:gz")
    found = find_set(tmp_path, "places")
    assert (found.status, found.count, found.where) == ("incomplete", 3, tmp_path / "Places.tar.gz")
    assert all(isinstance(item, Blob) for item in source_of(found, ENCODER).items())


def test_unpacked_folder_comes_before_the_tarball_unless_empty(tmp_path):
    write_tar(tmp_path / "SUN.tar.gz", {"SUN/images/1.jpg": photo(1)}, "w:gz")
    (tmp_path / "SUN").mkdir()
    assert find_set(tmp_path, "sun").where == tmp_path / "SUN.tar.gz"
    write_photos(tmp_path / "SUN", ["images/1.jpg"])
    assert find_set(tmp_path, "sun").where == tmp_path / "SUN"


def test_torchvision_keeps_the_tarball_beside_the_folder(tmp_path):
    write_photos(tmp_path / "dtd" / "dtd" / "images", ["banded/1.jpg", "zigzagged/2.jpg"])
    write_tar(tmp_path / "dtd" / "dtd-r1.0.1.tar.gz", {"dtd/images/banded/1.jpg": photo(1)}, "w:gz")
    assert find_set(tmp_path, "textures").count == 2


def test_pets_by_file_names(tmp_path):
    files = {"images/Abyssinian_12.jpg": photo(0), "images/great_pyrenees_3.jpg": photo(1), "images/x.mat": b""}
    write_tar(tmp_path / "oxford-iiit-pet" / "images.tar.gz", files, "w:gz")
    found = find_set(tmp_path, "pets")
    assert (found.status, shown(found)) == ("incomplete", ["Abyssinian", "great pyrenees"])
    assert "2 classes found, 37 expected" in found.advice


def test_birds_and_food_by_folders(tmp_path):
    write_photos(
        tmp_path / "CUB_200_2011" / "images", ["001.Black_footed_Albatross/a.jpg", "200.Common_Yellowthroat/b.jpg"]
    )
    write_photos(tmp_path / "food-101" / "images", ["apple_pie/1.jpg", "3/1.jpg"])
    assert shown(find_set(tmp_path, "cub-200")) == ["Black footed Albatross", "Common Yellowthroat"]
    food = find_set(tmp_path, "food-101")
    assert [*labels_of(food.data_set, names(food))] == ["3", "apple pie"]


def test_cars_as_published_do_not_pass(tmp_path):
    write_photos(tmp_path / "stanford_cars", ["cars_test/1.jpg", "cars_train/1.jpg"])
    found = find_set(tmp_path, "cars")
    assert found.status == "incomplete" and "2 classes found, 196 expected" in found.advice


def test_present_and_more_than_expected(tmp_path, monkeypatch):
    write_photos(tmp_path / "sun", ["1.jpg", "2.jpg", "3.jpg"])
    for images, status, told in (
        (3, "present", ""),
        (2, "present", "perhaps there is more"),
        (4, "incomplete", "get:"),
    ):
        monkeypatch.setitem(catalogue(), "sun", replace(catalogue()["sun"], images=images))
        found = find_set(tmp_path, "sun")
        assert found.status == status and told in found.advice and bool(told) == bool(found.advice)


def test_missing_set_says_what_to_do(tmp_path):
    found = find_set(tmp_path, "textures")
    assert (found.status, found.where, found.count, names(found)) == ("missing", None, 0, [])
    assert "dtd-r1.0.1.tar.gz" in found.advice and "https://www.robots.ox.ac.uk" in found.advice


def test_symlinks(tmp_path):
    write_photos(tmp_path / "far" / "SUN", ["images/1.jpg"])
    root = tmp_path / "root"
    root.mkdir()
    (root / "SUN").symlink_to(tmp_path / "far" / "SUN")
    assert find_set(root, "sun").count == 1
    (root / "Places").mkdir()
    (root / "Places" / "images").symlink_to(tmp_path / "far" / "SUN" / "images")
    found = find_set(root, "places")
    assert found.status == "missing" and "1 symlinked folders" in found.advice and "link Places itself" in found.advice


def test_bad_roots_and_names(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        find_set(tmp_path / "none", "sun")
    with pytest.raises(ParameterError, match='did you mean "textures"'):
        find_set(tmp_path, "texturs")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    write_parquet(tmp_path / "imagenet-1k" / "data" / "validation-0.parquet", [photo(0)])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError):
        find_set(tmp_path, "imagenet-1k")


# The user's own


def test_own_folders_match_as_id_images_do(tmp_path):
    root = tmp_path / "tabby cat"  # a folder above the set does not count
    write_photos(root / "id", ["tabby_cat/1.jpg", "space-shuttle/deep/2.jpg", "Pizza/3.jpg", "4.jpg"])
    write_photos(root / "train", ["Space_Shuttle/1.jpg", "other/2.jpg"])
    found = find_set(root, "folder")
    assert (found.status, found.count, found.where) == ("present", 4, root / "id")
    assert [*labels_of(found.data_set, [])] == ["Pizza", "space shuttle", "tabby cat"]
    by_name = dict(zip([name.rpartition("/")[2] for name in names(found)], shown(found), strict=True))
    assert by_name == {"1.jpg": "tabby cat", "2.jpg": "space shuttle", "3.jpg": "Pizza", "4.jpg": None}
    assert shown(find_set(root, "folder-train")) == ["space shuttle", None]


def test_own_labels_in_a_file(tmp_path):
    write_photos(tmp_path / "id", ["1.jpg"])
    assert find_set(tmp_path, "folder").status == "missing"
    assert "labels.txt" in find_set(tmp_path, "folder").advice
    write_photos(tmp_path / "id", ["dog/2.jpg"])
    (tmp_path / "labels.txt").write_text("cat: a photo of a cat\nDog\n")
    found = find_set(tmp_path, "folder")
    assert (found.status, shown(found)) == ("present", [None, "Dog"])
    prompts = {name: label.prompt for name, label in found.data_set.labels.items()}
    assert prompts == {"cat": "a photo of a cat", "Dog": ""}


def test_own_folder_may_be_a_link(tmp_path):
    write_photos(tmp_path / "far", ["cat/1.jpg", "dog/2.jpg"])
    root = tmp_path / "root"
    (root / "ood").mkdir(parents=True)
    (root / "id").symlink_to(tmp_path / "far")
    (root / "ood" / "far").symlink_to(tmp_path / "far")
    assert shown(find_set(root, "folder")) == ["cat", "dog"]
    assert [(found.data_set.name, found.count) for found in folder_ood(root)] == [("far", 2)]


def test_own_ood_sets(tmp_path):
    ood = tmp_path / "ood"
    write_photos(ood, ["b/1.jpg", "b/deep/2.jpg", "a/1.jpg", ".hidden/1.jpg", "loose.jpg"])
    write_tar(ood / "c.tar.gz", {"1.jpg": photo(1)}, "w:gz")
    write_tar(ood / "a.tar", {"1.jpg": photo(1)})
    write_parquet(ood / "d.parquet", [photo(1), photo(2)])
    (ood / "empty").mkdir()
    found = folder_ood(tmp_path)
    assert [(f.data_set.name, f.count) for f in found] == [
        *(("a", 1), ("a.tar", 1), ("b", 2), ("c", 1), ("d", 2), ("empty", 0)),
    ]
    assert found[-1].status == "missing" and [f.status for f in found[:-1]] == ["present"] * 5
    assert shown(found[0]) == [None]


def test_no_own_sets(tmp_path):
    [ood] = folder_ood(tmp_path)
    assert ood.status == "missing" and str(tmp_path / "ood" / "<set>") in ood.advice
    assert find_set(tmp_path, "folder").status == find_set(tmp_path, "folder-train").status == "missing"


# The command


@pytest.fixture
def root(tmp_path):
    write_photos(tmp_path / "id", ["cat/1.jpg", "dog/2.jpg"])
    write_photos(tmp_path / "ood", ["far/1.jpg"])
    write_tar(tmp_path / "SUN.tar.gz", {"SUN/images/1.jpg": photo(1)}, "w:gz")
    return tmp_path


def test_check_prints_a_table_and_advice(root):
    result = call("data", "check", root, "sun", "places", code=1)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1:] == [["sun", "incomplete", "1", "10,000", "SUN.tar.gz"], ["places", "missing", "0", "10,000"]]
    assert "Places.tar.gz" in result.stderr and "1 images found" in result.stderr


def test_check_of_everything_and_of_own_sets(root):
    assert len(call("data", "check", root).stdout.splitlines()) == 1 + len(catalogue())
    result = call("data", "check", root, "folder")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["folder", "far"] and result.stderr == ""
    write_photos(root / "train", ["cat/1.jpg"])
    assert "folder-train" in call("data", "check", root, "folder").stdout


def test_check_of_a_suite(root):
    own = root / "own.toml"
    own.write_text(
        'title = "t"\nid = ["folder"]\nood = ["sun", "textures"]\ntrain = "imagenet-1k-train"\nencoders = ["mini"]\n'
        'methods = "all"'
    )
    rows = json.loads(call("data", "check", root, "--suite", own, "--json", code=1).stdout)
    assert [row["name"] for row in rows] == ["folder", "sun", "textures", "imagenet-1k-train", "far"]


def test_check_json_has_everything(root):
    [row] = json.loads(call("data", "check", root, "sun", "--json", code=1).stdout)
    sun = catalogue()["sun"]
    assert (row["status"], row["count"], row["images"], row["where"]) == (
        "incomplete",
        1,
        10000,
        str(root / "SUN.tar.gz"),
    )
    assert (row["licence"], row["source"], row["checksums"]) == (sun.licence, sun.source, dict(sun.checksums))


def test_check_of_checksums(root, monkeypatch):
    result = call("data", "check", root, "sun", "textures", "--checksums", code=1)
    assert "wrong" in result.stdout and "its checksum is not that of the published file" in result.stderr
    good = hashlib.md5((root / "SUN.tar.gz").read_bytes()).hexdigest()
    small = replace(catalogue()["sun"], images=1, checksums={"SUN.tar.gz": f"md5:{good}"})
    monkeypatch.setitem(catalogue(), "sun", small)
    assert "good" in call("data", "check", root, "sun", "--checksums").stdout
    [row] = json.loads(call("data", "check", root, "sun", "--checksums", "--json").stdout)
    assert row["verified"] == {str(root / "SUN.tar.gz"): True}


def test_check_of_nothing(tmp_path):
    assert "there is no folder" in call("data", "check", tmp_path / "none", code=2).stderr
    assert 'unknown set "sunn"' in call("data", "check", tmp_path, "sunn", code=2).stderr
    assert 'unknown suite "table9"' in call("data", "check", tmp_path, "--suite", "table9", code=2).stderr


def test_own_sets_may_be_lists_and_stores(tmp_path):
    write_photos(tmp_path, ["far/0.png", "far/1.png", "train/dog/2.png"])
    (tmp_path / "ood").mkdir()
    (tmp_path / "ood" / "listed.txt").write_text(f"{tmp_path}/far/0.png\n")
    call("embed", tmp_path / "far", "-o", tmp_path / "ood" / "stored")
    (tmp_path / "labels.txt").write_text("dog\ncat")
    write_tar(tmp_path / "id.tar", {"dog/2.png": photo(2)})
    mini, found = get_encoder("mini"), {one.data_set.name: one for one in folder_ood(tmp_path)}
    assert {name: one.count for name, one in found.items()} == {"listed": 1, "stored": 2}
    for _ in range(2):  # the second time from what the first kept
        read = {name: encoded(mini, one, tmp_path / "store", lambda done: None) for name, one in found.items()}
        assert [len(read[name].vectors) for name in ("listed", "stored")] == [1, 2]
    np.testing.assert_allclose(read["listed"].vectors[0], read["stored"].vectors[0], atol=1e-6)
    inside = find_set(tmp_path, FOLDER)
    assert (inside.count, inside.where) == (1, tmp_path / "id.tar")
    assert encoded(mini, inside, tmp_path / "store", lambda done: None).shown.tolist() == [0]
