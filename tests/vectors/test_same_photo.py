"""A threshold is not set on the photos that a method was fitted on, however they are named."""

import hashlib
import shutil
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call
from outword.detector import artifact
from outword.detector.detector import FITTED_ON
from outword.encoders import get_encoder
from outword.encoders.loader import Loader
from outword.encoders.reading import read_photos
from outword.errors import ArtifactError, InputError
from outword.photos.decode import Blob
from outword.photos.walk import find_images
from outword.vectors.embed import embed
from outword.vectors.id_images import IdImages
from outword.vectors.same_photo import any_of, collected, hashes_of_vectors, short

ALL = sorted(PHOTOS.glob("*.jpg"))[:11]
TRAIN, OTHERS = ALL[:5], ALL[5:]
pytestmark = pytest.mark.filterwarnings("ignore:.*photos (leave the threshold uncertain|look like none)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five photos under other names, a store of them, and a tar."""
    root = tmp_path_factory.mktemp("fitted")
    (root / "train").mkdir()
    for number, photo in enumerate(TRAIN):
        shutil.copy(photo, root / "train" / f"{number}.jpg")
    embed(get_encoder("mini"), find_images([root / "train"]), root / "train.store")
    with tarfile.open(root / "train.tar", "w") as file:
        file.add(root / "train", "inside")
    return root


@pytest.fixture(scope="module", params=["train", "train.store"])
def made(request, folder):
    return outword.fit(LABELS, method="knn", id_images=folder / request.param)


def test_why_it_is_refused(folder):
    detector = outword.fit(LABELS, method="knn", id_images=folder / "train")
    detector.fitted_on = None  # as if they were not known
    detector.calibrate(TRAIN)
    assert detector.calibration_.low > 0.5  # what is promised of other photos,
    assert (detector.score(OTHERS) < detector.threshold_).all()  # and none of them is accepted


def of_bytes(photo):
    return photo.read_bytes()


def of_pixels(photo):
    return np.asarray(Image.open(photo).convert("RGB"))


@pytest.mark.parametrize("given", [str, of_bytes])
def test_files_are_known_by_their_content(made, given):
    with pytest.raises(InputError, match=r"^2 of 7 photos are among those that knn was fitted on.*too high: ") as error:
        made.calibrate([given(photo) for photo in [*OTHERS[:5], *TRAIN[:2]]])
    assert ("'photos[5]', 'photos[6]'" if given is of_bytes else f"{str(TRAIN[0])!r}, ") in error.value.message
    assert error.value.hint == "leave them out, and calibrate on other photos of the classes"
    assert made.calibration_ is None
    assert made.with_threshold(None).calibrate([given(photo) for photo in OTHERS]).threshold_ < 0


def test_arrays_are_known_by_their_vectors():
    pixels = [of_pixels(photo) for photo in ALL]
    vectors = get_encoder("mini").encode_images(pixels)
    found = IdImages(vectors[:5], None, {}, [])
    detector = outword.fit(LABELS, method="knn", id_images=found)
    with pytest.raises(
        InputError, match=r"^5 of 11 photos .*: 'photos\[0\]', 'photos\[1\]', 'photos\[2\]' and 2 more\."
    ):
        detector.calibrate(pixels)
    detector.calibrate(pixels[5:])


@pytest.mark.parametrize("photos", ["train", "train.store", "train.tar"])
def test_the_command_line_refuses_them_too(made, folder, photos, tmp_path):
    made.save(tmp_path / "d")
    told = call("calibrate", tmp_path / "d", folder / photos, *OTHERS, code=2).stderr
    assert "5 of 11 photos are among those that knn was fitted on" in " ".join(told.split())
    assert outword.load(tmp_path / "d").calibration_ is None
    assert float(call("calibrate", tmp_path / "d", *OTHERS).stdout) < 0


def test_the_hashes_come_back(made, tmp_path):
    made.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    np.testing.assert_array_equal(back.fitted_on, made.fitted_on)
    assert len(made.fitted_on) == 2 * len(TRAIN)  # of 8 bytes each: 16 a photo
    assert artifact.load(tmp_path / "d").arrays[FITTED_ON].dtype == np.uint64
    assert back.fingerprint == made.fingerprint


def test_an_older_detector_says_that_it_does_not_know(made, tmp_path):
    made.with_threshold(None).save(tmp_path / "d")
    saved = artifact.load(tmp_path / "d")
    card = {key: value for key, value in saved.card.items() if key not in ("schema", "files", "fingerprint")}
    arrays = {name: array for name, array in saved.arrays.items() if name != FITTED_ON}
    artifact.save(tmp_path / "d", replace(saved, card=card, arrays=arrays))
    assert outword.load(tmp_path / "d").fitted_on is None
    told = call("calibrate", tmp_path / "d", *TRAIN).stderr
    assert "it does not say which photos it was fitted on: use others" in told


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 2), np.uint64)])
def test_hashes_that_are_none_are_refused(made, wrong, tmp_path):
    other = made.with_threshold(None)
    other.fitted_on = wrong
    other.save(tmp_path / "d")
    with pytest.raises(ArtifactError, match="fitted_on must be hashes in one row"):
        outword.load(tmp_path / "d")


@pytest.mark.filterwarnings("ignore:1 of 6 ID images")
def test_a_damaged_photo_was_not_fitted_on(folder, tmp_path):
    shutil.copytree(folder / "train", tmp_path / "train")
    (tmp_path / "train" / "broken.jpg").write_bytes(ALL[0].read_bytes()[:500])
    for id_images in (tmp_path / "train", tmp_path / "store"):
        if id_images.name == "store":
            embed(get_encoder("mini"), find_images([tmp_path / "train"]), id_images)
        outword.fit(LABELS, method="knn", id_images=id_images).save(tmp_path / "d")
        told = call("calibrate", tmp_path / "d", *OTHERS, tmp_path / "train" / "broken.jpg").stderr
        assert "left out" in told and "broken.jpg" in told


def test_a_method_that_was_fitted_on_no_photos_takes_any(tmp_path):
    detector = outword.fit(LABELS, method="mcm")
    detector.save(tmp_path / "d")
    assert FITTED_ON not in artifact.load(tmp_path / "d").arrays
    assert detector.calibrate(TRAIN).threshold_ == outword.load(tmp_path / "d").calibrate(TRAIN).threshold_
    assert "does not say" not in call("calibrate", tmp_path / "d", *TRAIN).stderr


def test_hashes_by_hand(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    expected = int.from_bytes(hashlib.sha256(b"abc").digest()[:8], "little")
    images = [tmp_path / "a", b"abc", Blob("b", b"abc"), tmp_path / "missing", Image.new("RGB", (2, 2))]
    (chunk,) = read_photos(images, Loader(np.asarray, 0), 9, hashed=True)
    assert [short(photo.digest) if photo.digest else None for photo in chunk.photos] == [expected] * 3 + [None] * 2
    row = np.array([0.6, 0.8], "<f4")
    expected = int.from_bytes(hashlib.sha256(row.tobytes()).digest()[:8], "little")
    assert hashes_of_vectors(row[None]) == hashes_of_vectors(np.array([[3.0, 4.0]])) == [expected]
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert len(set(hashes_of_vectors(zeros))) == 1


def test_hashes_do_not_depend_on_blocks(monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    whole = hashes_of_vectors(vectors)
    monkeypatch.setattr("outword.maths.numerics.CELLS", 8)
    assert hashes_of_vectors(vectors) == whole and len(set(whole)) == 9


def test_hashes_are_found_at_both_ends():
    known = collected([5, 2**64 - 1], [0, 5])
    assert known.tolist() == [0, 5, 2**64 - 1]
    assert [any_of([one], known) for one in (0, 1, 5, 2**64 - 1)] == [True, False, True, True]
    assert not any_of([None], known) and not any_of([3], collected())
