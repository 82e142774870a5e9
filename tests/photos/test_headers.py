"""Files that ask for more than they are: refused from their headers, before a pixel is decoded."""

import io
import re
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin, TiffImagePlugin

from helpers.bad_images import encoded, picture, png_header
from outword.errors import ImageError, LargeImageError
from outword.photos import avif, boxes, budget, decode, headers, plan, walk
from outword.photos.decode import open_image, with_image
from outword.photos.headers import check_parts, decoding_cost
from outword.photos.sources import patterns, tar


@pytest.fixture
def undecoded(monkeypatch):
    """No pixel may be decoded."""

    def fail(*_):
        raise AssertionError("a pixel was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    monkeypatch.setattr(TiffImagePlugin.TiffImageFile, "load", fail)


def webp_giant():
    frame = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)[12:]
    body = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + struct.pack("<I", 16382)[:3] + struct.pack("<I", 10921)[:3]
    body += b"ANIM" + struct.pack("<I", 6) + bytes(6)
    body += b"ANMF" + struct.pack("<I", 16 + len(frame)) + bytes(16) + frame
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def gif_giant():
    small = encoded(Image.new("P", (1, 1)), "GIF")
    return small[:6] + struct.pack("<HH", 13_377, 13_377) + small[10:]


def tiff(*entries, data=b""):
    """A TIFF of these tags (number, type, count, value), with data from byte 8 on."""
    tags = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    head = b"II*\0" + struct.pack("<I", 8 + len(data))
    return head + data + struct.pack("<H", len(entries)) + tags + bytes(4)


def tiff_giant():
    size = [(256, 4, 1, 13_000), (257, 4, 1, 13_000), (258, 3, 1, 32), (259, 3, 1, 8), (262, 3, 1, 1), (339, 3, 1, 2)]
    return tiff(*size, (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 13_000), (279, 4, 1, 100), data=bytes(100))


@pytest.mark.parametrize("data", [webp_giant(), gif_giant(), tiff_giant(), png_header(13_000, 13_000)])
@pytest.mark.parametrize("min_side", [0, 224])
def test_a_canvas_out_of_proportion_to_its_bytes(undecoded, data, min_side):
    with pytest.raises(ImageError, match=r"out of proportion: \d+ x \d+ pixels are .* unpacked, over 500 times the \d"):
        open_image(data, min_side=min_side)


def test_the_proportion_is_asked_of_large_images_only(monkeypatch):
    flat = encoded(Image.new("L", (1000, 1000)), "PNG")
    assert open_image(flat).size == (1000, 1000)
    monkeypatch.setattr(headers, "FREE", 999_999)
    with pytest.raises(ImageError, match="out of proportion"):
        open_image(flat)
    assert open_image(flat + bytes(2000)).size == (1000, 1000)


def jpeg_of(scans, side=64):
    """A progressive JPEG with so many scans, ten or more."""
    jpeg = encoded(picture(side, side), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * (scans - 9) + jpeg[-2:]


def test_scans_by_pixels_and_bytes(undecoded, monkeypatch):
    with pytest.raises(ImageError, match="too many scans: 33 is over 32 for 64 x 64 pixels"):
        open_image(jpeg_of(33))
    monkeypatch.setattr(headers, "MAX_SCANNED", 64 * 64 * 12)
    with pytest.raises(ImageError, match="too many scans: 13 is over 12"):
        open_image(jpeg_of(13))
    monkeypatch.setattr(headers, "MAX_PROGRESSIVE", 100)
    with pytest.raises(ImageError, match="in several scans is over 100"):
        open_image(jpeg_of(10))


def scans_of(data):
    """The slow, obvious count: markers, each with what belongs to it, on the whole file."""
    count, place = 0, 2
    while found := re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL).search(data, place):
        if found[0] == b"\xff\xd9" or len(data) < found.end() + 2:
            break
        count += found[0] == b"\xff\xda"
        place = found.end() + int.from_bytes(data[found.end() : found.end() + 2], "big")
    return count


@pytest.mark.parametrize("window", [4, 5, 7, 64, 1 << 16])
def test_scans_are_counted_whatever_part_of_the_file_is_looked_at(monkeypatch, window):
    monkeypatch.setattr(headers, "_WINDOW", window)
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8))
    for data in (
        jpeg_of(10),
        jpeg_of(31),
        encoded(noise, "JPEG", quality=100),
        encoded(noise, "JPEG") + b"\xff\xda" * 9,
    ):
        assert check_parts(io.BytesIO(data), "Jpeg") == scans_of(data) > 0
    for _ in range(50):
        data = bytearray(jpeg_of(12))
        data[int(rng.integers(2, len(data)))] = int(rng.choice([0, 0xFF, 0xDA, 1]))
        data = bytes(data[: int(rng.integers(2, len(data)))])
        assert check_parts(io.BytesIO(data), "Jpeg") == scans_of(data)


def png_chunk(name, data=b""):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def floods():
    """Files of 1,000 and more parts, and what each has too many of."""
    jpeg, png = encoded(picture(), "JPEG"), encoded(picture(), "PNG")
    gif = encoded(Image.new("P", (1, 1)), "GIF")
    start = 13 + (3 << ((gif[10] & 7) + 1))
    size = [(256, 4, 1, 8), (257, 4, 1, 8)]
    strips = tiff(*size, (273, 4, 2000, 8), data=bytes(8000))
    return {
        "segments": jpeg[:2] + b"\xff\xfe\0\x02" * 1000 + jpeg[2:],
        "chunks": png[:33] + png_chunk(b"prVt") * 1000 + png[33:],
        "blocks": gif[:start] + b"!\xfe" + b"\x01a" * 1000 + b"\0" + gif[start:],
        "values of a tag": strips,
        "tags": tiff(*size, *((40_000 + i, 1, 1, 0) for i in range(1500))),
    }


@pytest.mark.parametrize("what", list(floods()))
def test_too_many_parts(undecoded, monkeypatch, what):
    monkeypatch.setattr(headers, "PARTS", 999)
    with pytest.raises(ImageError, match=f"too many {what}: over 999"):
        open_image(floods()[what])


def test_honest_files_have_few_parts(monkeypatch):
    monkeypatch.setattr(headers, "PARTS", 100)
    for form in ("JPEG", "PNG", "GIF", "TIFF"):
        assert open_image(encoded(picture(), form)).size == picture().size


def test_big_tiff_is_looked_at_too(monkeypatch):
    data = encoded(picture(), "TIFF", big_tiff=True)
    assert data[2] == 43
    assert open_image(data).size == picture().size
    monkeypatch.setattr(headers, "PARTS", 5)
    with pytest.raises(ImageError, match="too many tags"):
        open_image(data)


def test_tags_that_lie_over_each_other_are_not_read(undecoded):
    data = tiff((256, 4, 1, 8), (257, 4, 1, 8), *((40_000 + i, 7, 1 << 20, 8) for i in range(100)), data=bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(ImageError, match=r"its tags come to 104,857,608 bytes, more than the file has"):
        open_image(data)
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()


def test_the_pages_of_a_tiff_are_left_alone(monkeypatch):
    pages = encoded(picture(), "TIFF", save_all=True, append_images=[picture()] * 3)
    sought = []
    plain = TiffImagePlugin.TiffImageFile._seek
    monkeypatch.setattr(TiffImagePlugin.TiffImageFile, "_seek", lambda self, n: sought.append(n) or plain(self, n))
    assert open_image(pages).size == picture().size
    assert sought == [0]


def bmp_in_runs(width=64, height=48):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, 0, 0, 0, 2, 0) + b"\0\0\0\0\xff\xff\xff\0"
    data = (bytes([width, 1]) + b"\0\0") * height + b"\0\x01"
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(data), 0, 0, 14 + len(head)) + head + data


@pytest.mark.parametrize("data", [bmp_in_runs(), b"P6 64 48 100\n" + bytes(3 * 64 * 48)])
def test_what_pillow_decodes_in_python_must_be_small(monkeypatch, data):
    assert open_image(data).size == (64, 48)
    monkeypatch.setattr(headers, "MAX_SLOW", 1000)
    with pytest.raises(
        ImageError, match=r"too slow to decode: (BMP|PPM) of this kind with [39],\d+ values is over 1,000"
    ):
        open_image(data)


@pytest.mark.parametrize(("limit", "form", "most"), [("MAX_RAW_PNG", "PNG", 9000), ("MAX_RAW", "TIFF", 9000)])
def test_unpacked_bytes_are_bounded(undecoded, monkeypatch, limit, form, most):
    monkeypatch.setattr(headers, limit, most)
    with pytest.raises(ImageError, match="too large: 64 x 48 pixels are 9,216 bytes unpacked, over 9,000"):
        open_image(encoded(picture(), form))


def test_sixteen_bits_a_channel_count_twice():
    deep = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 48, 16, 2, 0, 0, 0))
    data = (
        b"\x89PNG\r\n\x1a\n" + deep + png_chunk(b"IDAT", zlib.compress(bytes(48 * (1 + 64 * 6)))) + png_chunk(b"IEND")
    )
    with Image.open(io.BytesIO(data)) as image:
        assert headers._bits(image) == 48


@pytest.mark.parametrize(
    ("made", "options", "each"),
    [
        (picture(), {"format": "PNG"}, 4),
        (picture().convert("L"), {"format": "PNG"}, 1),
        (picture().convert("1"), {"format": "PNG"}, 1),
        (Image.fromarray(np.zeros((48, 64), np.uint16)), {"format": "PNG"}, 2),
        (picture(), {"format": "BMP"}, 4),
        (picture().convert("P"), {"format": "GIF"}, 1),
        (picture(), {"format": "JPEG"}, 4),
    ],
)
def test_the_cost_of_a_pixel(made, options, each):
    data = encoded(made, **options)
    with Image.open(io.BytesIO(data)) as image:
        assert decoding_cost(image, len(data)) == each * 64 * 48


def test_what_libtiff_webp_and_avif_take_besides():
    plain, packed = encoded(picture(), "TIFF"), encoded(picture(), "TIFF", compression="tiff_lzw")
    with Image.open(io.BytesIO(plain)) as image:
        assert decoding_cost(image, len(plain)) == 4 * 64 * 48
    with Image.open(io.BytesIO(packed)) as image:
        assert decoding_cost(image, len(packed)) == 4 * 64 * 48 + len(packed) + 4 * 64 * 48  # one strip
    for form, each in (("WEBP", 16), ("AVIF", 18)):
        data = encoded(picture(), form)
        with Image.open(io.BytesIO(data)) as image:
            assert decoding_cost(image, len(data)) == each * 64 * 48 + 2 * len(data)


@pytest.mark.parametrize(("subsampling", "values"), [(0, 3), (2, 1.5)])
def test_a_jpeg_of_several_scans_is_kept_whole(subsampling, values):
    data = encoded(picture(), "JPEG", progressive=True, subsampling=subsampling)
    with Image.open(io.BytesIO(data)) as image:
        assert headers.coefficients(image) == 2 * values * 64 * 48


def modes():
    """Images of all kinds, and transparent ones."""
    grey = np.add.outer(np.arange(48), np.arange(64))
    seen = picture().convert("P")
    seen.info["transparency"] = 3
    half = picture().convert("RGBA")
    half.putalpha(Image.fromarray((2 * grey).astype(np.uint8)))
    keyed = picture()
    keyed.info["transparency"] = picture().getpixel((5, 5))
    return {
        "RGB": picture(),
        "L": picture().convert("L"),
        "CMYK": picture().convert("CMYK"),
        "1": picture().convert("1"),
        "P": seen,
        "RGBA": half,
        "LA": half.convert("LA"),
        "key": keyed,
        "I;16": Image.fromarray((500 * grey).astype(np.uint16)),
        "I": Image.fromarray((100_000 * grey - 5).astype(np.int32)),
        "F": Image.fromarray(np.where(grey == 7, np.nan, grey / 30).astype(np.float32)),
    }


@pytest.mark.parametrize("mode", list(modes()))
@pytest.mark.parametrize("band", [1, 640, 700])
def test_bands_give_the_pixels_of_the_whole(monkeypatch, mode, band):
    whole = np.asarray(open_image(modes()[mode]))
    monkeypatch.setattr(decode, "LARGE", 1)
    monkeypatch.setattr(decode, "BAND", band)
    assert np.array_equal(open_image(modes()[mode]), whole)
    reduced = open_image(modes()[mode], min_side=8)
    assert reduced.size == (22, 16)  # a third: 48 is reduced by 48 // 16
    assert np.array_equal(reduced, Image.fromarray(whole).reduce(3))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("options", [{}, {"compression": "tiff_lzw"}])
def test_a_large_turned_tiff_is_turned_when_it_is_small(monkeypatch, orientation, options):
    data = encoded(picture(), "TIFF", tiffinfo={0x0112: orientation}, **options)
    whole = open_image(data)
    assert whole.size == ((64, 48) if orientation < 5 else (48, 64))
    monkeypatch.setattr(decode, "LARGE", 1)
    small = open_image(data, min_side=12)
    assert small.size == ((32, 24) if orientation < 5 else (24, 32))
    assert np.abs(np.asarray(small, int) - np.asarray(whole.reduce(2), int)).max() <= 1


def test_large_ones_are_told_where_others_must_not_wait(monkeypatch):
    for data in (encoded(picture(), "JPEG"), encoded(picture(), "PNG")):
        assert with_image(data, lambda image: image.size, large=False) == (64, 48)
        monkeypatch.setattr(decode, "LARGE", 64 * 48 - 1)
        with pytest.raises(LargeImageError, match="it has 3,072 pixels"):
            with_image(data, lambda image: image.size, min_side=4, large=False)
        monkeypatch.undo()


def test_what_an_image_costs_is_asked_of_the_budget(monkeypatch):
    asked = []

    class Asked:
        def room(self, cost):
            asked.append(cost)
            raise ImageError("too large: decoding it takes more")

    monkeypatch.setattr(decode, "decoding", Asked)
    data = encoded(picture(), "PNG")
    with pytest.raises(ImageError, match="too large"):
        open_image(data)
    assert asked == [64 * 48 * 8 + len(data)]  # the canvas, a second one to turn it, and its file


def test_the_limits_of_the_docs_are_those_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    mib = 1 << 20
    for limit in (
        f"| pixels of an image | {decode.MAX_PIXELS:,} |",
        f"| memory that decoding takes | {budget.DEFAULT} MB less {budget.SMALL // budget.MB} |",
        f"over {headers.FREE // mib} Mi pixels | {headers.PROPORTION} |",
        f"| {headers.MAX_RAW // mib} MiB, of a PNG {headers.MAX_RAW_PNG // mib} MiB |",
        f"| {headers.MAX_SCANS}, and {headers.MAX_SCANNED // mib // 1024} Gi pixels times scans |",
        f"| bytes of a JPEG of several scans | {headers.MAX_PROGRESSIVE // mib} MiB |",
        f"| {headers.PARTS:,} | `PARTS` |",
        f"an AVIF is made of | {plan.WIDER} times its own, and {headers.FREE // mib} Mi | `outword.photos.plan`",
        f"and its parts | {boxes.MOST_BYTES // mib} MiB, {boxes.STEPS:,} | `outword.photos.boxes` |",
        f"| images in an AVIF | {avif._MOST_ITEMS:,} |",
        f"| {headers.MAX_SLOW // mib} Mi | `MAX_SLOW`",
        f"| {decode.MAX_BYTES // mib} MiB | `outword.photos.decode.MAX_BYTES` |",
        f"| {tar.FREE // mib} MiB and {tar.RATIO} times its size |",
        f"without a photo between them | {tar.CHAIN} |",
        f"| {patterns.MOST:,}, {walk.PARTS}, {walk.ANY_DEPTH} |",
    ):
        assert limit in page


def test_a_text_that_is_called_orientation_turns_nothing():
    info = PngImagePlugin.PngInfo()
    info.add_text("orientation", "6")
    exif = Image.Exif()
    exif[0x0112] = 6
    assert open_image(encoded(picture(), "PNG", pnginfo=info)).size == (64, 48)
    assert open_image(encoded(picture(), "PNG", pnginfo=info, exif=exif)).size == (48, 64)
