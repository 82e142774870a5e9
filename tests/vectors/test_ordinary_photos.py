"""The reference of an encoder: what is shipped, what is made of photos, and files that are none."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file, save_file

from helpers.archives import write_tar
from outword.base.arrays import save_checked
from outword.encoders import get_encoder
from outword.encoders.base import Encoder
from outword.errors import InputError
from outword.vectors import reference
from outword.vectors.embed import embed
from outword.vectors.reference import Named, find_reference, keep_reference, kept_path, make_reference


class Tiny(Encoder):
    """Eight pixels to a vector."""

    name, dim, temperature, prompts, licence, source = "tiny", 8, 0.1, "paper", "none", "this file"
    min_side, batch_size = 0, 1

    def __init__(self, fingerprint="cd" * 32, exported_from=None):
        self.fingerprint, self.exported_from = fingerprint, exported_from

    def preprocess(self, image):
        return np.asarray(image.resize((4, 2), Image.Resampling.NEAREST))

    def encode_pixels(self, pixels):
        rows = pixels[..., 0].reshape(len(pixels), -1).astype(np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(reference, "FEWEST", 5)
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    """Twelve different photos."""
    folder, rng = tmp_path / "photos", np.random.default_rng(0)
    folder.mkdir()
    for number in range(12):
        Image.fromarray(rng.integers(256, size=(2, 4, 3), dtype=np.uint8)).save(folder / f"{number:02}.png")
    return folder


N_SHIPPED = 3109  # photos of the reference of mini


def kept(made):
    return made.reference.vectors.tobytes()


def test_what_is_shipped_for_the_embedded_encoder():
    found = find_reference(get_encoder("mini"))
    assert found.vectors.shape == (N_SHIPPED, 512) and found.vectors.dtype == np.float16
    sets = Counter(found.sets)
    assert sets == {"imagenet": 2000, "textures": 500, "scenes": 500, "screenshots": 40, "codes": 69}
    known = set(zip(found.sets, found.names, found.wnids, strict=True))
    assert len(known) == 1000 + 10 + 6 + 1 + 3
    some = {("imagenet", "zebra", "n02391049"), ("textures", "banded", ""), ("scenes", "forest", "n09284015")}
    assert some | {("scenes", "street", ""), ("codes", "QR code", ""), ("screenshots", "screenshot", "")} <= known
    assert found.source.startswith(f"{N_SHIPPED:,} photos: ImageNet's validation set (two a class), textures, scenes")


def test_its_rows_show_what_they_are_called():
    encoder, found = get_encoder("mini"), find_reference(get_encoder("mini")).without("textures", "scenes")
    rows = [found.wnids.index(wnid) for wnid in ("n02391049", "n01883070", "n04591713", "n01775062")]
    texts = encoder.encode_texts([f"a photo of a {found.names[row]}" for row in rows])
    assert (texts @ found.vectors[rows].T.astype(np.float32)).argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_sets_can_be_left_out():
    found = find_reference(get_encoder("mini"))
    less = found.without("codes", "screenshots", "scenes")
    assert set(less.sets) == {"imagenet", "textures"} and len(less) == len(less.names) == len(less.wnids) == 2500
    assert less.fingerprint != found.fingerprint == found.without().fingerprint
    np.testing.assert_array_equal(less.vectors, found.vectors[np.isin(found.sets, ["imagenet", "textures"])])


def test_photos_of_the_users_own(photos):
    shutil.copy(photos / "03.png", photos / "again.png")  # the same file
    Image.open(photos / "04.png").save(photos / "anew.png", compress_level=1)  # another file, the same photo
    (photos / "broken.png").write_bytes(b"none")
    said, encoder = [], Tiny()
    made = make_reference(encoder, [photos], report=lambda *told: said.append(told))
    assert (len(made.reference), made.n_read, made.n_repeats, made.n_spare) == (12, 14, 2, 0)
    assert made.n_unreadable == 1 and made.failed[0][0].endswith("broken.png")
    assert said[-1] == ("encoding photos", 15, 15)
    assert set(made.reference.names) == set(made.reference.wnids) == {""}
    assert find_reference(encoder) is None
    path = keep_reference(encoder, made.reference)
    back = find_reference(encoder)
    assert path == kept_path(encoder.fingerprint)
    assert (back.fingerprint, back.source) == (made.reference.fingerprint, "photos")
    wanted = encoder.encode_images(sorted(photos.glob("[01]*.png"))).astype(np.float16)
    assert sorted(map(bytes, back.vectors)) == sorted(map(bytes, wanted))


def test_a_reference_depends_on_no_order_and_no_container(photos, tmp_path, monkeypatch):
    files = sorted(photos.iterdir())
    write_tar(tmp_path / "photos.tar", {path.name: path.read_bytes() for path in files})
    embed(Tiny(), files, tmp_path / "store")
    (tmp_path / "list.txt").write_text("\n".join(map(str, files[::-1])))
    containers = [[photos], files[::-1], [tmp_path / "photos.tar"], [tmp_path / "store"], [tmp_path / "list.txt"]]
    for most in (reference.MOST, 7, 5):  # sampled, and pruned on the way
        monkeypatch.setattr(reference, "MOST", most)
        made = [make_reference(Tiny(), paths) for paths in containers]
        assert len({kept(one) for one in made}) == 1
        assert len(made[0].reference) == min(most, 12)
        assert made[0].n_spare == max(12 - most, 0)
    monkeypatch.setattr(Tiny, "chunk", 2)
    assert kept(make_reference(Tiny(), [photos])) == kept(made[0])


def test_too_few_photos_are_no_reference(photos):
    for path in sorted(photos.iterdir())[3:]:
        path.write_bytes(b"none")
    with pytest.raises(InputError, match=r"at least 5 different photos that can be read, got 3 .* 9 could not be read"):
        make_reference(Tiny(), [photos])


def test_ids_of_wordnet_are_read_from_paths(photos):
    (photos / "n02084071").mkdir()
    (photos / "00.png").rename(photos / "n02084071" / "00.png")
    (photos / "01.png").rename(photos / "n01883070_wombat.png")
    (photos / "02.png").rename(photos / "n018830701.png")  # too long for one
    made = make_reference(Tiny(), [photos])
    assert Counter(made.reference.wnids) == {"": 10, "n02084071": 1, "n01883070": 1}
    own = make_reference(Tiny(), [photos], named=lambda path: Named("x", "n00000001", "s"), source="told")
    assert set(zip(own.reference.names, own.reference.sets, strict=True)) == {("x", "s")}
    assert own.reference.source == "told"


def test_an_exported_encoder_uses_that_of_the_one_it_was_made_from(photos):
    made = make_reference(Tiny(), [photos]).reference
    keep_reference(Tiny(), made)
    assert find_reference(Tiny("ef" * 32, exported_from="cd" * 32)).fingerprint == made.fingerprint
    assert find_reference(Tiny("ef" * 32)) is None


def changed(path, vectors=None, **card):
    arrays = load_file(path)
    told = {**json.loads(arrays["card"].tobytes()), **card}
    vectors = arrays["vectors"] if vectors is None else vectors
    save_checked(path, {"vectors": vectors, "card": np.frombuffer(json.dumps(told).encode(), np.uint8)})


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), ""),
        (lambda path: path.write_bytes(b""), ""),
        (lambda path: save_file({"vectors": np.zeros((3, 8), np.float16)}, path), "no hash"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x01"), "not what its hash says"),
        (lambda path: save_checked(path, {"vectors": np.zeros((3, 8), np.float16)}), "card"),
        (lambda path: changed(path, encoder="cd" * 8 + "0" * 48), "another encoder"),
        (lambda path: changed(path, schema=2), "schema is 2"),
        (lambda path: changed(path, names=[1]), "names"),
        (lambda path: changed(path, names=["a"]), "each vector must have a name"),
        (lambda path: changed(path, vectors=np.zeros((12, 8), np.float16)), "length 1"),
        (lambda path: changed(path, vectors=np.full((12, 8), np.nan, np.float16)), "finite"),
        (lambda path: changed(path, vectors=np.eye(12, 9, dtype=np.float16)), "8 columns"),
        (lambda path: changed(path, vectors=np.ones(12, np.float16)), "two-dimensional"),
    ],
)
def test_a_damaged_file_counts_as_none(photos, damage, told):
    path = keep_reference(Tiny(), make_reference(Tiny(), [photos]).reference)
    damage(path)
    with pytest.warns(UserWarning, match=f"(?s)cannot be used .*{told}.*outword reference"):
        assert find_reference(Tiny()) is None


def test_a_cache_that_cannot_be_written_is_said(photos, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be written") as error:
        keep_reference(Tiny(), make_reference(Tiny(), [photos]).reference)
    assert "OUTWORD_CACHE" in error.value.hint
