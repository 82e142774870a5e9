"""HEIC and RAW: what is read, how it is turned, and what is refused before it costs anything."""

import io
import struct
import sys

import numpy as np
import pytest
from PIL import Image

from conftest import PHOTOS, call, rows_of
from helpers.bad_images import ORIENTATION, encoded, picture
from helpers.cameras import box, dng, grid, heic, jpeg, with_sizes
from outword.base.extras import install
from outword.errors import ImageError
from outword.photos import heif, raw
from outword.photos.budget import Budget
from outword.photos.decode import open_image
from outword.photos.formats import format_of
from outword.photos.plan import Plan
from outword.photos.walk import find_images

CAT = Image.open(PHOTOS / "cat.jpg").convert("RGB").resize((452, 300))


def far(image, other):
    """By how much pixels differ, on the mean."""
    return np.abs(np.asarray(image, float) - np.asarray(other, float)).mean()


def turned(image, orientation):
    """An image as it lies in a file, which is to be turned by this orientation of EXIF to be upright."""
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    return image.transpose(back[orientation]) if orientation > 1 else image


def test_heic_is_read():
    assert far(open_image(heic(CAT)), CAT) < 3
    assert far(open_image(heic(CAT), min_side=64), CAT) < 3
    assert format_of(heic(CAT)).suffix == ".heic"
    grey = CAT.convert("L")
    assert far(open_image(heic(grey)), grey.convert("RGB")) < 3
    clear = CAT.convert("RGBA")
    clear.putalpha(0)
    assert far(open_image(heic(clear)), Image.new("RGB", CAT.size, "white")) < 3
    deep = Image.fromarray(np.asarray(grey, np.uint16) * 257)
    assert far(open_image(heic(deep)), grey.convert("RGB")) < 3


def test_heic_of_another_brand():
    data = heic(CAT).replace(b"ftypheic\0\0\0\0mif1heic", b"ftypmif1\0\0\0\0mif1heic")
    assert far(open_image(data), CAT) < 3
    with pytest.raises(ImageError, match=r"truncated|damaged"):
        open_image(b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifheic")  # AVIF as before


@pytest.mark.parametrize("orientation", range(1, 9))
def test_heic_and_raw_are_upright(orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    lying = turned(CAT, orientation)
    for data in (heic(lying, exif=exif.tobytes()), dng(np.asarray(lying), orientation=orientation)):
        found = open_image(data)
        assert found.size == CAT.size and far(found.resize((45, 30)), CAT.resize((45, 30))) < 40
    large = lying.resize([4 * side for side in lying.size])
    found = open_image(dng(np.asarray(lying), orientation=orientation, preview=jpeg(large)), min_side=100)
    assert far(found.resize((45, 30)), CAT.resize((45, 30))) < 10


def test_the_main_one_of_many():
    others = [Image.new("RGB", (64, 64), (n, 0, 0)) for n in range(40)]
    assert far(open_image(heic(CAT, others=others)), CAT) < 3


def stream_of(data):
    """What lies in the file besides its description."""
    return data[data.index(b"mdat") + 4 :]


def test_heic_of_tiles_as_phones_write_it():
    tile = CAT.resize((256, 192))
    found = open_image(grid(tile, 2, 3))
    assert found.size == (768, 384)
    for left, top in ((0, 0), (512, 192)):
        assert far(found.crop((left, top, left + 256, top + 192)), tile) < 3
    assert open_image(grid(tile, 2, 3, size=(700, 380))).size == (700, 380)
    data = grid(tile, 2, 3)
    made, of_pixels = heif.plan(io.BytesIO(data)), 10 * 2 * 768 * 384  # its own pixels, and those of its tiles
    assert made == Plan(768, 384, working=made.working) and 0 <= made.working - of_pixels <= 7 * len(stream_of(data))
    clear = heic(tile.convert("RGBA"))
    masked = heif.plan(io.BytesIO(clear))
    assert masked == Plan(256, 192, clear=True, working=10 * 2 * 256 * 192 + len(stream_of(clear)))
    for size, words in {(20000, 20000): "too many pixels", (0, 5): "damaged", (800, 400): "damaged"}.items():
        with pytest.raises(ImageError, match=words):
            open_image(grid(tile, 2, 3, size=size))
    with pytest.raises(ImageError, match="out of proportion: 64 x 48 pixels are made of"):
        open_image(grid(tile, 20, 20, size=(64, 48)))


def item_file(*, references, sizes, owned, main=1):
    """A HEIC of boxes alone."""
    ispe = b"".join(box(b"ispe", struct.pack(">III", 0, *size)) for size in sizes)
    entries = b"".join(struct.pack(">HBB", item, 1, place) for item, place in owned)
    ipma = box(b"ipma", struct.pack(">II", 0, len(owned)), entries)
    dimg = b"".join(
        box(b"dimg", struct.pack(f">HH{len(others)}H", one, len(others), *others)) for one, others in references
    )
    boxes = [box(b"pitm", struct.pack(">IH", 0, main)), box(b"iref", bytes(4), dimg)]
    meta = box(b"meta", bytes(4), *boxes, box(b"iprp", box(b"ipco", ispe), ipma))
    return box(b"ftyp", b"heic\0\0\0\0mif1heic") + meta


@pytest.mark.parametrize(
    ("sizes", "references", "decoded"),
    [
        ([(512, 512), (64, 64)], [(1, [2] * 64)], 512 * 512 + 64 * 64 * 64),
        ([(512, 512), (8000, 8000)], [(1, [2] * 60_000)], 512 * 512 + 60_000 * 64_000_000),
        ([(10, 10)] * 6, [(n, [n + 1] * 100) for n in range(1, 6)], sum(100 * 100**n for n in range(6))),
    ],
)
def test_what_tiles_cost_is_known_before_they_are_decoded(sizes, references, decoded):
    data = item_file(sizes=sizes, references=references, owned=[(n + 1, n + 1) for n in range(len(sizes))])
    if decoded > 4 * sizes[0][0] * sizes[0][1] + (16 << 20):
        with pytest.raises(ImageError, match=f"out of proportion.* made of {decoded:,}"):
            heif.plan(io.BytesIO(data))
    else:
        assert heif.plan(io.BytesIO(data)).working == 10 * decoded


def test_heic_that_is_made_of_itself_or_nested_without_end():
    for references in ([(1, [1])], [(1, [2]), (2, [1])], [(n, [n + 1]) for n in range(1, 40)]):
        with pytest.raises(ImageError, match="nested too deeply"):
            open_image(item_file(sizes=[(9, 9)], references=references, owned=[]))


def test_heic_that_lies_or_ends_too_early():
    data = heic(CAT)
    for size in ((64, 64), (451, 300), (4000, 4000), (20000, 20000), (0, 0), (1 << 31, 1 << 31)):
        with pytest.raises(ImageError):
            open_image(with_sizes(data, *size))
    with pytest.raises(ImageError, match="too many pixels: 2000"):
        open_image(with_sizes(data, 20000, 20000))
    for end in (12, 30, 100, 200, 400, len(data) // 2, len(data) - 10):
        with pytest.raises(ImageError, match=r"truncated|damaged"):
            open_image(data[:end])
    at = data.index(b"meta") - 4
    for size in (1, 7, 1 << 30):  # of the box
        with pytest.raises(ImageError):
            open_image(data[:at] + struct.pack(">I", size) + data[at + 4 :])
    flat = heic(Image.new("RGB", (5000, 5000)))
    with pytest.raises(ImageError, match="out of proportion: 5000 x 5000"):
        open_image(flat)


def test_any_byte_of_heic_and_raw_may_be_wrong():
    rng = np.random.default_rng(0)
    for data in (heic(picture()), dng(np.asarray(picture())), dng(np.asarray(picture()), preview=jpeg(picture()))):
        for _ in range(60):
            bad = bytearray(data)
            for at in rng.integers(0, min(len(bad), 900), 3):
                bad[at] = rng.integers(256)
            for side in (0, 16):
                try:
                    assert open_image(bytes(bad), min_side=side).mode == "RGB"
                except ImageError as error:
                    assert len(error.message) < 200


def test_raw_is_read():
    for order in "<>":
        data = dng(np.asarray(CAT), order=order)
        found = open_image(data)
        assert found.size == CAT.size and far(found.resize((45, 30)), CAT.resize((45, 30))) < 40
        assert open_image(data, min_side=60).size == (226, 150)  # half of it is enough
        assert open_image(data, min_side=90).size == CAT.size
    assert open_image(encoded(CAT, "TIFF")).size == CAT.size  # which begins alike


def test_the_preview_in_raw_is_taken_where_it_is_large_enough(monkeypatch):
    data = dng(np.asarray(CAT), preview=jpeg(CAT.resize((300, 200))))
    with monkeypatch.context() as patch:
        patch.setattr(raw.Raw, "load", lambda self: pytest.fail("the sensor was looked at"))
        assert open_image(data, min_side=100).size == (300, 200)
    assert open_image(data, min_side=101).size == CAT.size
    assert open_image(data).size == CAT.size
    for broken in (b"\xff\xd8\xff", b"", b"\0" * 100, encoded(CAT, "PNG")):
        assert open_image(dng(np.asarray(CAT), preview=broken), min_side=60).size == (226, 150)


def test_raw_that_lies_or_ends_too_early(monkeypatch):
    pixels = np.asarray(CAT)
    for size, words in {
        (20000, 20000): "too many pixels",
        (12000, 12000): "out of proportion",
        (60000, 60000): "too many pixels",
        (2, 2): "of a kind that is not read",
    }.items():
        with pytest.raises(ImageError, match=words):
            open_image(dng(pixels, size=size), min_side=60)
    data = dng(pixels)
    for end in (10, 100, len(data) // 2, len(data) - 10):
        with pytest.raises(ImageError, match="truncated" if end > 100 else "damaged|not read|truncated"):
            open_image(data[:end])
    for start in (b"IIRO", b"IIU\0", b"FUJIFILMCCD-RAW ", b"\0\0\0\x18ftypcrx ", b"II*\0\x10\0\0\0CR\x02\0"):
        with pytest.raises(ImageError, match=r"RAW of a kind that is not read|truncated|damaged"):
            open_image(start + bytes(2000))
    monkeypatch.setattr("outword.photos.decode.decoding", lambda: Budget(65_500_000))
    with pytest.raises(ImageError, match="too large: decoding it takes"):
        open_image(data)


@pytest.mark.parametrize(("package", "name", "extra"), [("pillow_heif", "HEIC", "heif"), ("rawpy", "RAW", "raw")])
def test_without_the_extra_the_row_says_what_brings_it(saved, tmp_path, monkeypatch, package, name, extra):
    (tmp_path / "IMG.HEIC").write_bytes(heic(CAT))
    (tmp_path / "img.dng").write_bytes(dng(np.asarray(CAT)))
    assert [path.name for path in find_images([tmp_path])] == ["IMG.HEIC", "img.dng"]
    rows = rows_of(call("score", saved, tmp_path).stdout)
    assert [row["label"] for row in rows] == ["tabby cat"] * 2 and not any(row["error"] for row in rows)
    monkeypatch.setitem(sys.modules, package, None)
    wrong = [row["error"] for row in rows_of(call("score", saved, tmp_path).stdout) if row["error"]]
    assert wrong == [f"{name} is not read without an extra: {install(extra)}"]
