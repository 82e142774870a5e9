"""ID images from folders and stores: which label each shows, what is left out, and what is said."""

import shutil

import numpy as np
import pytest
from test_store import Tiny, photo

from outword.errors import InputError
from outword.photos.walk import find_images
from outword.vectors.embed import embed
from outword.vectors.id_images import read_id_images

LABELS = ["tabby cat", "dog", "space shuttle"]
pytestmark = pytest.mark.filterwarnings("ignore:no ID image shows")


@pytest.fixture
def photos(tmp_path):
    """Five photos in class folders, one of them two levels deep."""
    root = tmp_path / "train"
    names = ["tabby_cat/a.png", "Tabby_Cat/more/b.png", "dog/c.png", "dog/d.png", "x/dog/e.png"]
    for shade, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        photo(root / name, 20 * shade)
    return root


def read(paths, **options):
    return read_id_images(Tiny(), paths, LABELS, **{"with_classes": True, **options})


def test_the_class_is_the_nearest_folder_with_the_name_of_a_label(photos):
    found = read(photos)
    assert [LABELS[i] for i in found.classes] == ["tabby cat", "dog", "dog", "tabby cat", "dog"]  # sorted: T d d t x
    assert found.counts == {"tabby cat": 2, "dog": 3}
    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == (5, 8)
    assert found.left_out == []


def test_folders_with_joined_names_or_wnids_are_told_as_where_labels_come_from_them(tmp_path):
    for shade, name in enumerate(("TabbyCat", "n02084071", "space-shuttle")):
        (tmp_path / name).mkdir()
        photo(tmp_path / name / "a.png", 20 * shade)
    assert read(tmp_path).counts == dict.fromkeys(LABELS, 1)


def test_neither_the_order_nor_the_way_of_naming_matters(photos):
    whole = read(photos)
    parts = sorted(path for path in photos.iterdir())
    for paths in (parts, parts[::-1], [*parts, photos], [str(path) for path in find_images([photos])]):
        found = read(paths)
        np.testing.assert_array_equal(found.vectors, whole.vectors)
        np.testing.assert_array_equal(found.classes, whole.classes)
        assert found.fingerprint == whole.fingerprint


def test_the_given_folder_may_be_a_label_and_those_above_it_are_not_looked_at(photos, monkeypatch):
    assert read([photos / "dog"]).counts == {"dog": 2}
    monkeypatch.chdir(photos / "dog")
    assert read(".").counts == {"dog": 2}
    (photos / "dog" / "puppies").mkdir()
    photo(photos / "dog" / "puppies" / "f.png", 200)
    with pytest.raises(InputError, match=r"f\.png' is in none"):
        read(photos / "dog" / "puppies")


def test_a_store_gives_what_its_folder_gives(photos, tmp_path):
    embed(Tiny(), find_images([photos]), tmp_path / "s")
    encoder = Tiny()
    found = read_id_images(encoder, tmp_path / "s", LABELS, with_classes=True)
    assert encoder.encoded == 0
    assert found.fingerprint == read(photos).fingerprint
    with pytest.raises(InputError, match="has no embeddings of tiny"):
        read_id_images(Tiny("cd" * 32), tmp_path / "s", LABELS, with_classes=True)


def test_stores_and_folders_together(photos, tmp_path):
    embed(Tiny(), find_images([photos / "dog"]), tmp_path / "s")
    shutil.move(photos / "dog", tmp_path / "gone")
    assert read([tmp_path / "s", photos]).counts == {"tabby cat": 2, "dog": 3}


def test_without_classes_any_folder_will_do(photos):
    photo(photos / "stray.png", 220)
    found = read(photos, with_classes=False)
    assert (found.classes, found.counts, len(found.vectors)) == (None, {}, 6)
    assert read(photos / "dog", with_classes=False).counts == {"dog": 2}


def test_a_photo_of_no_class_is_named_with_the_rule(photos):
    (photos / "space_shutle").mkdir()
    photo(photos / "space_shutle" / "z.png", 220)
    with pytest.raises(InputError, match=r"nearest folder above it with the name of a label.*z\.png' is in none") as e:
        read(photos)
    assert e.value.hint == 'did you mean "space shuttle" by the folder "space_shutle"?'
    shutil.move(photos / "space_shutle", photos / "qqqq")
    with pytest.raises(InputError) as e:
        read(photos / "qqqq")
    assert e.value.hint == "the labels are tabby cat, dog, space shuttle"


def test_unreadable_photos_are_left_out_with_a_warning(photos, tmp_path):
    whole = read(photos)
    for name in "vwxyz":
        (photos / "dog" / f"{name}.png").write_bytes(b"junk")
    with pytest.warns(UserWarning, match=r"^5 of 10 ID images are left out \(.*v\.png': not an image, .* and 2 more\)"):
        found = read(photos)
    assert found.fingerprint == whole.fingerprint
    assert len(found.left_out) == 5
    embed(Tiny(), find_images([photos]), tmp_path / "s")
    with pytest.warns(UserWarning, match="^5 of 10"):
        assert read(tmp_path / "s").left_out == found.left_out


def test_no_photo_at_all(photos, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="at least one ID image"):
        read(tmp_path / "empty")
    with pytest.raises(InputError, match="nowhere: no such file or folder"):
        read(tmp_path / "nowhere")
    (tmp_path / "empty" / "dog").mkdir()
    (tmp_path / "empty" / "dog" / "x.jpg").write_bytes(b"")
    with pytest.warns(UserWarning, match="1 of 1"), pytest.raises(InputError, match="at least one ID image"):
        read(tmp_path / "empty")


def test_progress_is_told(photos):
    told = []
    read(photos, report=lambda *what: told.append(what))
    assert told == [("encoding ID images", n, 5) for n in (2, 4, 5)]


def test_labels_without_photos_are_named(photos):
    with pytest.warns(UserWarning, match="no ID image shows dog, space shuttle"):
        read([photos / "tabby_cat"])


def test_equal_paths_in_two_stores_are_two_photos(tmp_path, monkeypatch):
    for shade, name in enumerate("ab"):
        (tmp_path / name / "dog").mkdir(parents=True)
        photo(tmp_path / name / "dog" / "1.png", 100 * shade)
        monkeypatch.chdir(tmp_path / name)
        embed(Tiny(), find_images(["dog"]), tmp_path / f"{name}.store")
    assert read([tmp_path / "a.store", tmp_path / "b.store"]).counts == {"dog": 2}


def test_a_photo_counts_once_and_the_outer_folder_names_it(photos):
    whole = read([photos / "dog"])
    (photos / "dog" / "close-ups").mkdir()
    photo(photos / "dog" / "close-ups" / "f.png", 150)
    assert read([photos / "dog" / "close-ups", photos / "dog"]).counts == {"dog": len(whole.vectors) + 1}


def test_hyphens_are_spaces_unless_a_label_says_otherwise(tmp_path):
    for shade, name in enumerate(("x-ray", "x ray", "Tabby-Cat")):
        (tmp_path / name).mkdir()
        photo(tmp_path / name / "1.png", 50 * shade)
    found = read_id_images(Tiny(), tmp_path, ["x-ray", "x ray", "tabby cat"], with_classes=True)
    assert found.counts == {"x-ray": 1, "x ray": 1, "tabby cat": 1}
