"""Notes on photos: what is small, blurred, empty or there twice, and what is not."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from conftest import PHOTOS
from outword.base.files import sha256_bytes
from outword.encoders import get_encoder
from outword.encoders.loader import Loader
from outword.encoders.preprocess import Preprocess
from outword.photos.decode import open_image
from outword.photos.quality import Fingerprint, fingerprint
from outword.photos.twins import DIFFERENT, Twins

DEMO = {path.stem: Image.open(path).convert("RGB") for path in sorted(PHOTOS.glob("*.jpg"))}


def notes_of(image):
    return get_encoder("mini").loader.see(image).look.notes


def blurred(image, share):
    return image.filter(ImageFilter.GaussianBlur(share * min(image.size)))


def saved(image, quality=60, scale=1.0):
    image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return open_image(file.getvalue())


def distance(one, other):
    return (one.bits ^ other.bits).bit_count()


def test_real_photos_are_neither_blurred_nor_empty():
    assert [name for name, image in DEMO.items() if notes_of(image)] == []


def test_photos_that_are_blurred_by_hand():
    noted = {name: notes_of(blurred(image, 0.02)) for name, image in DEMO.items()}
    assert [name for name, notes in noted.items() if "blurred" not in notes] == [
        "brick",
        "galaxies",
    ]  # of stripes, dots
    assert sum("blurred" in notes_of(blurred(image, 0.004)) for image in DEMO.values()) == 0


def test_small_is_by_either_side_and_is_not_blurred():
    cat = DEMO["cat"]
    small = {size: (f"only {size[0]} x {size[1]} pixels",) for size in ((300, 43), (43, 900), (40, 30))}
    for size, notes in {(300, 259): (), (75, 50): (), (44, 44): (), **small}.items():
        assert notes_of(cat.resize(size)) == notes
    large = Loader(Preprocess(336, 336, "bicubic", [0.5] * 3, [0.5] * 3), 336)
    assert large.see(cat.resize((80, 55))).look.notes == ("only 80 x 55 pixels",)
    assert large.see(cat).look.notes == large.see(cat.resize((84, 56))).look.notes == ()
    huge = io.BytesIO()
    cat.resize((3000, 2000)).save(huge, "JPEG")  # decoded at a fraction of its size
    assert notes_of(huge.getvalue()) == ()


def test_empty_photos():
    cat = DEMO["cat"]
    assert notes_of(cat.point(lambda value: value // 12)) == ("nearly black",)
    assert notes_of(cat.point(lambda value: value // 3)) == ()
    assert notes_of(Image.new("RGB", (300, 300), "white")) == ("nearly one colour",)
    assert notes_of(Image.new("RGB", (30, 30))) == ("only 30 x 30 pixels", "nearly black")
    assert fingerprint(Image.new("RGB", (30, 30), "red")) is None


def test_fingerprints_are_of_the_photo_and_not_of_the_file():
    prints = {name: fingerprint(image) for name, image in DEMO.items()}
    others = [distance(one, other) for a, one in prints.items() for b, other in prints.items() if a < b]
    assert min(others) > 5 * DIFFERENT
    for again in ({"quality": 40}, {"scale": 0.5}, {"scale": 1.7}):
        far = [distance(prints[name], fingerprint(saved(image, **again))) for name, image in DEMO.items()]
        assert sum(bits < DIFFERENT for bits in far) >= 17, (again, far)


def test_another_colour_or_a_small_thing_makes_another_photo():
    scene = DEMO["grass"].resize((400, 300))
    with_cat, with_raccoon = scene.copy(), scene.copy()
    with_cat.paste(DEMO["cat"].resize((90, 70)), (150, 100))
    with_raccoon.paste(DEMO["raccoon"].resize((90, 70)), (150, 100))
    discs = [Image.new("RGB", (300, 300), "white") for _ in range(3)]
    for disc, colour in zip(discs, ("blue", "red", "green"), strict=True):
        ImageDraw.Draw(disc).ellipse((80, 80, 220, 220), fill=colour)
    with Twins() as twins:
        for number, image in enumerate([scene, with_cat, with_raccoon, *discs]):
            assert twins.first(str(number), fingerprint(image)) is None
        assert twins.first("again", fingerprint(saved(with_raccoon, quality=40))) == "2"


def bits(number):
    return Fingerprint(number, bytes(432))


def test_twins_are_found_in_order_whatever_their_names():
    names = ["caf\udce9.jpg", "b; c.jpg", "=d.jpg", "\ud800", ""]
    with Twins() as twins:
        for number, name in enumerate(names):
            assert twins.note(name, bits(0b1111111 << 9 * number)) == []
        assert twins.note("none", None) == twins.note("nor this", None) == []
        for number, name in enumerate(names):
            for flips in (0, 1, 1 << 127, 1 << 64 | 1 << 65 | 1 << 66):
                assert twins.note("again", bits((0b1111111 << 9 * number) ^ flips)) == [f"the same as {name}"]
        assert twins.note("other", bits(0b1111111 ^ 0b1111 << 60)) == []


def test_twins_by_bits_that_lie_anywhere():
    rng = np.random.default_rng(0)
    with Twins() as twins:
        for number in range(200):
            found = int.from_bytes(rng.bytes(16), "big")
            assert twins.first(str(number), bits(found)) is None
            flips = sum(1 << int(place) for place in rng.choice(128, DIFFERENT - 1, replace=False))
            assert twins.first("copy", bits(found ^ flips)) == str(number)


def test_where_the_disk_is_full_the_run_goes_on():
    with Twins() as twins:
        twins._known.execute("pragma max_page_count = 4")
        with pytest.warns(UserWarning, match="not looked for any more: database or disk is full"):
            for number in range(1000):
                assert twins.note("x" * 500, bits(int(sha256_bytes(b"%d" % number)[:32], 16))) == []
        assert twins.note("y", bits(0)) == []
