"""Files that ask for more than they are: refused from their headers, before a pixel is decoded."""

import io
import struct
import tracemalloc
import zlib
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile, JpegImagePlugin, PngImagePlugin, TiffImagePlugin

from helpers.bad_images import encoded, picture, png_header
from helpers.room import asked_room
from outword.errors import ImageError
from outword.photos import avif, boxes, budget, decode, headers, plan, walk
from outword.photos.budget import Budget
from outword.photos.decode import Jpeg, LargeImageError, open_image, with_image
from outword.photos.headers import check_parts, decoding_cost
from outword.photos.png import Png
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
    with pytest.raises(ImageError, match="its scans have over 100"):
        open_image(jpeg_of(10))


def scans_of(data):
    """The slow, obvious count: byte by byte, each marker with what belongs to it, up to the end of the image."""
    scans, place = 0, 2
    while place + 1 < len(data):
        marker = data[place + 1]
        if data[place] != 0xFF or marker in (0x00, 0xFF):
            place += 1 if data[place] != 0xFF or marker == 0xFF else 2
        elif marker == 0xD9 and scans:
            break
        elif marker < 0xC0 or 0xD0 <= marker <= 0xD9:
            place += 2
        else:
            scans += marker == 0xDA
            place += 2 + max(2, int.from_bytes(data[place + 2 : place + 4].ljust(2, b"\0"), "big"))
    return scans


def counted(data):
    return check_parts(io.BytesIO(data), "Jpeg")


def split_scans(jpeg):
    """What is before the first scan of a JPEG, and each scan with the tables that stand before it."""
    places = [at for at in range(2, len(jpeg)) if jpeg[at : at + 2] in (b"\xff\xda", b"\xff\xc4")]
    starts = [at for at, before in zip(places, [0, *places], strict=False) if jpeg[before + 1] != 0xC4]
    ends = [*starts[1:], len(jpeg) - 2]
    return jpeg[: starts[0]], [jpeg[start:end] for start, end in zip(starts, ends, strict=True)]


def between(rng):
    """What libjpeg passes over between scans, as a string of bytes; some say that more of it follows."""
    marker = rng.choice([0x01, *range(0xD0, 0xD8)])
    comment = b"\xff\xfe\0\x0a\xff\xda\0\x08\x01\xff\xd9\x01"
    parts = [b"", b"\xff\0", b"\xff" * 7, bytes(9), b"\xff\0\xff\xff\0", b"\xff\xfe\0\0", b"\xff\xe1\0\1", comment]
    parts += [bytes([0xFF, marker, 0xFF, 0xFF]), bytes([0xFF, marker])]
    return b"".join(parts[i] for i in rng.integers(0, len(parts), 3))


@pytest.mark.parametrize("seed", range(8))
def test_scans_are_counted_as_libjpeg_does(seed):
    rng = np.random.default_rng(seed)
    noise = Image.fromarray(rng.integers(0, 256, (40, 60, 3), np.uint8))
    whole = encoded(noise, "JPEG", progressive=True, restart_marker_rows=seed % 2)
    head, scans = split_scans(whole)
    assert (counted(whole), len(scans)) == (10, 10)
    kept = int(rng.integers(1, 11))
    plain = head + b"".join(scans[:kept]) + b"\xff\xd9"
    odd = head + b"".join(scan + between(rng) for scan in scans[:kept]) + b"\xff\xd9" + b"".join(scans)
    assert counted(plain) == counted(odd) == kept
    assert np.array_equal(open_image(odd), open_image(plain))  # libjpeg has found the same scans
    cut = head + b"".join(scans[: kept - 1]) + b"\xff\xd9"
    assert kept == 1 or not np.array_equal(open_image(cut), open_image(plain))  # and each of them counts


@pytest.mark.parametrize("marker", [0x01, 0x02, 0xBF, *range(0xD0, 0xD9)])
def test_no_marker_hides_a_scan(undecoded, marker):
    head, scans = split_scans(encoded(picture(), "JPEG", progressive=True))
    again = bytes([0xFF, marker, 0xFF, 0xFF]) + scans[-1]
    with pytest.raises(ImageError, match="too many scans: 40 is over 32"):
        open_image(head + b"".join(scans) + again * 30 + b"\xff\xd9")


def test_an_image_behind_tables_only():
    jpeg = encoded(picture(), "JPEG", progressive=True)
    tables = b"\xff\xd8\xff\xfe\0\4ab\xff\xd9"
    assert np.array_equal(open_image(tables + jpeg), open_image(jpeg))
    assert counted(tables + jpeg) == 10
    with pytest.raises(ImageError, match="too many scans: 33"):
        open_image(tables + jpeg_of(33))


@pytest.mark.parametrize("marker", [0xC8, 0xDE, 0xDF, 0xF0, 0xFD])
def test_markers_at_which_libjpeg_gives_up(marker):
    jpeg = jpeg_of(10)
    last = jpeg.rindex(b"\xff\xda")
    odd = jpeg[:last] + bytes([0xFF, marker, 0, 2]) + jpeg[last:]
    with pytest.raises(OSError, match="broken data stream"):
        Image.open(io.BytesIO(odd)).load()
    with pytest.raises(ImageError, match="damaged image"):
        counted(odd)


def test_the_only_scan_of_a_plain_jpeg_is_not_gathered():
    jpeg = encoded(picture(), "JPEG")
    assert counted(jpeg) == counted(jpeg + b"\xff\xda" * 50) == 0
    scan = jpeg[jpeg.index(b"\xff\xda") : -2]
    assert counted(jpeg[:-2] + scan * 50 + jpeg[-2:]) == 0
    with pytest.raises(ImageError, match="damaged image"):  # libjpeg decodes the first, and wants the end
        open_image(jpeg[:-2] + scan * 50 + jpeg[-2:])


@pytest.mark.parametrize("window", [32, 33, 64, 1 << 16])
def test_scans_are_counted_whatever_part_of_the_file_is_looked_at(monkeypatch, window):
    monkeypatch.setattr(headers, "_WINDOW", window)
    rng = np.random.default_rng(0)
    for data in (jpeg_of(10), jpeg_of(31), jpeg_of(12) + b"\xff\xda" * 9):
        assert counted(data) == scans_of(data) > 0
    for _ in range(50):
        data = bytearray(jpeg_of(12))
        first = data.index(b"\xff\xda")
        data[int(rng.integers(first + 14, len(data)))] = int(rng.choice([0, 0xFF, 0xDA, 1]))
        data = bytes(data[: int(rng.integers(2, len(data)))])
        assert counted(data) == scans_of(data)


def arithmetic(data):
    """The same JPEG, but that it says that it is in arithmetic coding."""
    return data.replace(b"\xff\xc0", b"\xff\xc9").replace(b"\xff\xc2", b"\xff\xca")


@pytest.mark.parametrize(("data", "scans"), [(encoded(picture(), "JPEG"), 1), (jpeg_of(12), 12)])
def test_arithmetic_coding_of_much(undecoded, monkeypatch, data, scans):
    least = scans * 64 * (48 if scans == 1 else 64)
    monkeypatch.setattr(headers, "MAX_ARITHMETIC", least)
    assert counted(arithmetic(data)) == counted(data)
    monkeypatch.setattr(headers, "MAX_ARITHMETIC", least - 1)
    with pytest.raises(ImageError, match=f"too slow to decode: {least:,} pixels in arithmetic coding"):
        open_image(arithmetic(data))
    assert counted(data) in (0, 12)


def test_a_run_of_fill_bytes_is_not_walked_again_and_again():
    jpeg = encoded(picture(), "JPEG")
    place = jpeg.index(b"\xff\xda") + 40

    def filled(count):
        return Jpeg(io.BytesIO(jpeg[:place] + b"\xff" * count + jpeg[place:]))

    with suppress(OSError):
        filled(10_000).load()
    with pytest.raises(ImageError, match="damaged image"):
        filled(200_000).load()


def test_a_jpeg_without_an_end_is_not_read_for_ever(monkeypatch):
    jpeg = encoded(picture(), "JPEG")
    before, mark, after = encoded(picture(), "JPEG", restart_marker_rows=1).partition(b"\xff\xd0")
    monkeypatch.setattr(decode, "MAX_BYTES", 200_000)
    assert np.array_equal(Jpeg(io.BytesIO(before + bytes(9000) + mark + after)), Image.open(io.BytesIO(jpeg)))
    with pytest.raises(ImageError, match="too large: 262144 bytes is over 200000"):
        Jpeg(io.BytesIO(before + bytes(300_000) + mark + after)).load()
    monkeypatch.setattr(headers, "MAX_PROGRESSIVE", 200_000)
    with pytest.raises(ImageError, match="its scans have over 200,000 bytes"):
        counted(jpeg_of(10)[:-2] + bytes(300_000))
    assert counted(jpeg_of(10) + bytes(300_000)) == 10


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
        "bytes between segments": jpeg[:2] + b"\xff\xfe\0\x02" + bytes(1000) + jpeg[2:],
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


@pytest.mark.parametrize("loose", [bytes(1000), b"\xff" * 1000, b"\xff\xd0" * 500])
def test_bytes_that_pillow_passes_over_one_by_one(monkeypatch, loose):
    jpeg = encoded(picture(), "JPEG")
    start, rest = jpeg[:2] + b"\xff\xfe\0\x02" + loose, jpeg[2:]
    assert open_image(start + rest).size == (64, 48)
    monkeypatch.setattr(headers, "PARTS", 990)
    for data in (start + rest, start, start + b"\xff\xd8"):
        with pytest.raises(ImageError, match="too many bytes between segments: over 990"):
            open_image(data)


@pytest.mark.parametrize("start", [bytes(1000), b"!\xf9\0", b"!\x01\x01a\0\0!\xf9\0", b"!\xff\x0bNETSCAPE2.0\0", b"\0"])
def test_blocks_of_a_gif_that_only_pillow_goes_through(undecoded, monkeypatch, start):
    monkeypatch.setattr(headers, "PARTS", 999)
    gif = encoded(Image.new("P", (1, 1)), "GIF")
    place = 13 + (3 << ((gif[10] & 7) + 1))
    blocks = b"\x01a" * 1000 + b"\0"
    Image.open(io.BytesIO(gif[:place] + start + blocks + gif[place:])).verify()  # it comes to the frame
    with pytest.raises(ImageError, match="too many blocks: over 999"):
        open_image(gif[:place] + start + blocks + gif[place:])


def test_comments_of_a_gif(undecoded, monkeypatch):
    gif = encoded(Image.new("P", (1, 1)), "GIF", comment=b"c" * 700)
    monkeypatch.setattr(headers, "MAX_COMMENT", 699)
    with pytest.raises(ImageError, match="too large: its comments are over 699 bytes"):
        open_image(gif)


def kept():
    """Files with 1,001 bytes or more besides pixels, which Pillow reads in one piece."""
    jpeg, png = encoded(picture(), "JPEG"), encoded(picture(), "PNG")
    exif = b"\xff\xe1\x01\xf6Exif\0\0" + bytes(494)
    return {
        "JPEG": jpeg[:2] + exif * 2 + jpeg[2:],
        "eXIf": png[:33] + png_chunk(b"eXIf", bytes(1001)) + png[33:],
        "private": png[:33] + png_chunk(b"prVt", bytes(600)) * 2 + png[33:],
        "unknown": png[:33] + png_chunk(b"PRVT", bytes(600)) * 2 + png[33:],
        "BMP": b"BM" + bytes(12) + struct.pack("<I", 1001) + bytes(2000),
        "behind": png[:-12] + png_chunk(b"eXIf", bytes(600)) * 2 + png[-12:],
    }


@pytest.mark.parametrize("which", list(kept()))
def test_what_is_kept_besides_pixels(undecoded, monkeypatch, which):
    monkeypatch.setattr(headers, "KEPT", 1000)
    with pytest.raises(ImageError, match="too large: what it has besides pixels is over 1,000 bytes"):
        open_image(kept()[which])


@pytest.mark.parametrize("name", [b"iCCP", b"zTXt", b"iTXt"])
def test_what_is_packed_in_a_png_is_not_unpacked_without_end(undecoded, monkeypatch, name):
    monkeypatch.setattr("zlib.decompressobj", lambda *_: pytest.fail("something was unpacked"))
    png = encoded(picture(), "PNG")
    with pytest.raises(ImageError, match="too many texts: over 100 that may be packed"):
        open_image(png[:33] + png_chunk(name, b"\0\0" + zlib.compress(bytes(1000))) * 101 + png[33:])


def test_exif_in_very_many_segments_is_not_joined(undecoded):
    jpeg, exif = encoded(picture(), "JPEG"), b"\xff\xe1\0\x0aExif\0\0MM"
    with pytest.raises(ImageError, match="too many segments of EXIF: over 256"):
        open_image(jpeg[:2] + exif * 257 + jpeg[2:])


def test_exif_in_several_segments_is_read():
    jpeg, exif = encoded(picture(), "JPEG"), b"\xff\xe1\0\x0aExif\0\0MM"
    assert open_image(jpeg[:2] + exif * 256 + jpeg[2:]).size == (64, 48)


def test_a_second_frame_is_refused_as_libjpeg_does():
    jpeg = encoded(picture(), "JPEG")
    frame = jpeg[jpeg.index(b"\xff\xc0") :][:19]
    with pytest.raises(OSError, match="broken data stream"):
        JpegImagePlugin.JpegImageFile(io.BytesIO(jpeg[:2] + frame + jpeg[2:])).load()
    with pytest.raises(ImageError, match="damaged image"):
        open_image(jpeg[:2] + frame + jpeg[2:])


@pytest.mark.parametrize(("mode", "canvases"), [("RGB", 2), ("L", 3)])
def test_very_many_rows_count_besides_their_pixels(monkeypatch, mode, canvases):
    asked = []
    monkeypatch.setattr(Budget, "room", lambda self, cost: asked.append(cost) or nullcontext())
    rows = headers.LONG + 1
    for form in ("PNG", "TIFF"):
        data = encoded(Image.new(mode, (1, rows)), form)
        assert open_image(data).size == (1, rows)
        assert asked.pop() >= rows * (8 * canvases + 4 * (canvases - 1)) + len(data)


def test_a_long_row_of_a_png_is_unpacked_beside_the_one_before(monkeypatch):
    asked = []
    monkeypatch.setattr(Budget, "room", lambda self, cost: asked.append(cost) or nullcontext())
    data = encoded(Image.new("RGB", (headers.LONG + 1, 1)), "PNG")
    assert open_image(data).height == 1
    assert asked[0] >= (headers.LONG + 1) * (2 * (3 + 4 + 8)) + len(data)


def test_large_tags_of_a_tiff_are_asked_of_the_budget(tmp_path, monkeypatch):
    small = encoded(picture(), "TIFF")
    large = encoded(picture(), "TIFF", tiffinfo={37724: bytes(3 << 20)})  # as layers of an editor are kept
    asked = []
    monkeypatch.setattr(Budget, "room", lambda self, cost: asked.append(cost) or nullcontext())
    assert open_image(large).tobytes() == open_image(small).tobytes()
    plain = asked.pop()
    assert asked[0] >= 2 * (3 << 20) + len(large) and asked[1] - len(large) >= 2 * (3 << 20) + plain - len(small)
    monkeypatch.undo()
    path = tmp_path / "a.tif"
    path.write_bytes(tiff((256, 3, 1, 8), (257, 3, 1, 8), (270, 2, 2 << 30, 200)))
    with path.open("ab") as file:
        file.truncate(3 << 30)
    with pytest.raises(ImageError, match="too large: decoding it takes 4,295 MB"):
        open_image(path)


def test_pixels_do_not_count_as_kept_nor_what_is_not_there(monkeypatch):
    monkeypatch.setattr(headers, "KEPT", 1000)
    noise = np.random.default_rng(0).integers(0, 256, (3, 60, 60, 3), np.uint8)
    frames = [Image.fromarray(frame) for frame in noise]
    for form, options in (("PNG", {"save_all": True, "append_images": frames[1:]}), ("JPEG", {"quality": 100})):
        data = encoded(frames[0], form, **options)
        assert len(data) > 5000
        assert open_image(data).size == (60, 60)
    png = encoded(picture(), "PNG")
    with pytest.raises(ImageError, match="truncated image"):
        open_image(png[:33] + b"\x7f\xff\xff\xfftEXt" + bytes(50))
    assert open_image(png[:-12] + b"\x7f\xff\xff\xff\0\0\0\0" + bytes(2000)).size == (64, 48)  # no name: the end


@pytest.mark.parametrize("between", [b"", png_chunk(b"prVt")])
def test_pixels_behind_the_pixels_are_passed_over(between):
    png = encoded(picture(), "PNG")
    data = png[:-12] + between + png_chunk(b"IDAT", bytes(8 << 20)) + png[-12:]
    tracemalloc.start()
    assert np.array_equal(open_image(data), open_image(png))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def late_exif():
    """What says behind the pixels of a PNG how to turn it: a chunk, or a text as older tools write it."""
    text = b"Raw profile type exif\0"
    profile = b"\nexif\n%8d\n%s\n" % (len(exif_of(6)), exif_of(6).hex().encode())
    return {
        "eXIf": png_chunk(b"eXIf", exif_of(6)[6:]),
        "tEXt": png_chunk(b"tEXt", text + profile),
        "zTXt": png_chunk(b"zTXt", text + b"\0" + zlib.compress(profile)),
    }


@pytest.mark.parametrize("which", list(late_exif()))
@pytest.mark.parametrize("place", [33, -12])
def test_exif_counts_before_and_behind_the_pixels(which, place):
    png = encoded(picture(), "PNG")
    assert open_image(png[:place] + late_exif()[which] + png[place:]).size == (48, 64)


def test_texts_are_not_kept():
    png = encoded(picture(), "PNG")
    texts = png_chunk(b"tEXt", b"a\0" + b"b" * 99) + png_chunk(b"iTXt", b"c\0\0\0\0\0" + b"d" * 99)
    texts += late_exif()["tEXt"]
    image = Png(io.BytesIO(png[:33] + texts + png[33:-12] + texts + png[-12:]))
    image.load()
    assert list(image.info) == ["Raw profile type exif"]
    assert list(image.png.im_text) == ["Raw profile type exif"]


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


@pytest.mark.parametrize(
    ("size", "subsampling", "blocks"),
    [((9, 9), 2, 4 + 1 + 1), ((9, 9), 1, 4 + 2 + 2), ((1, 80), 2, 20 + 5 + 5), ((16, 16), 0, 3 * 4)],
)
def test_coefficients_come_in_whole_blocks(size, subsampling, blocks):
    data = encoded(picture(*size), "JPEG", progressive=True, subsampling=subsampling)
    with Image.open(io.BytesIO(data)) as image:
        assert headers.coefficients(image) == 128 * blocks


@pytest.mark.parametrize("scans", [1, 10])
def test_what_a_progressive_jpeg_keeps_is_asked_of_the_budget(monkeypatch, scans):
    costs = []
    monkeypatch.setattr(decode, "decoding", lambda: Budget(10**9))
    monkeypatch.setattr(Budget, "room", lambda self, cost: costs.append(cost) or nullcontext())
    head, found = split_scans(encoded(picture(), "JPEG", progressive=True))
    data = head + b"".join(found[:scans]) + b"\xff\xd9"
    with suppress(ImageError):
        open_image(data)
    plain = encoded(picture(), "JPEG")
    open_image(plain)
    assert costs[0] - len(data) == costs[1] - len(plain) + 2 * 64 * 48 * 3 // 2


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
    data = encoded(picture(), "PNG")
    assert asked_room(monkeypatch, data) == 64 * 48 * 8 + len(data)  # the canvas, a second one to turn it, and its file


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
        f"all scans counted | {headers.MAX_ARITHMETIC // mib} Mi | `MAX_ARITHMETIC` |",
        f"a HEIC or an AVIF | {headers.KEPT // mib} MiB | `KEPT` |",
        f"segments of EXIF of a JPEG | {headers.MAX_PACKED}; {headers.MAX_EXIF} |",
        f"more than its file has | {boxes.SHARED // mib} MiB | `outword.photos.boxes.SHARED` |",
        f"| bytes of comments of a GIF | {headers.MAX_COMMENT // mib} MiB | `MAX_COMMENT` |",
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
