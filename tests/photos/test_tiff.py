"""TIFF: strips that ask for more than they are, files that are cut while they are read, and what libtiff writes."""

import csv
import io
import logging
import lzma
import os
import random
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from conftest import PHOTOS, call
from helpers.bad_images import encoded, picture
from helpers.tiffs import strips, tiff
from outword.errors import ImageError
from outword.photos import decode, headers
from outword.photos import strips as reckoned
from outword.photos import tiff as reader
from outword.photos.decode import open_image
from outword.photos.strips import Part, check_strips

MAPS = Path("/proc/self/maps")
WIDTH, ROWS, COUNT = 64, 16, 4
GREY = np.arange(WIDTH * ROWS, dtype=np.uint8).tobytes()
PACKED = {
    "deflate": (8, zlib.compress(GREY)),
    "LZMA": (34925, lzma.compress(GREY, lzma.FORMAT_XZ)),
    "JPEG": (7, encoded(Image.frombytes("L", (WIDTH, ROWS), GREY), "JPEG")),
}


def shared(compression, data, **options):
    """Strips that all lie in the same place."""
    return strips(WIDTH, ROWS, COUNT, compression, [0] * COUNT, [len(data)] * COUNT, data, **options)


def apart(compression, data, **options):
    """The same strips, each in its own place."""
    places = [len(data) * number for number in range(COUNT)]
    return strips(WIDTH, ROWS, COUNT, compression, places, [len(data)] * COUNT, data * COUNT, **options)


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setattr(reckoned, "SHARED", 0)


@pytest.mark.parametrize("name", list(PACKED))
@pytest.mark.parametrize("options", [{}, {"big": True}, {"tiles": True}])
def test_strips_that_share_their_bytes(monkeypatch, name, options):
    compression, data = PACKED[name]
    data += bytes(400)  # else the tags of a small file make up for it
    plain = open_image(apart(compression, data, **options))
    assert plain.size == (WIDTH, ROWS * COUNT)
    assert open_image(shared(compression, data, **options)).tobytes() == plain.tobytes()  # few bytes may be shared
    monkeypatch.setattr(reckoned, "SHARED", 0)
    assert open_image(apart(compression, data, **options)).tobytes() == plain.tobytes()
    with pytest.raises(ImageError, match=r"damaged image: its strips come to [\d,]+ bytes, the file to [\d,]+"):
        open_image(shared(compression, data, **options))


def test_strips_that_overlap_and_planes_that_share(strict):
    compression, data = PACKED["deflate"]
    length = len(data) + 300
    overlap = strips(WIDTH, ROWS, COUNT, compression, [0, 60, 120, 180], [length] * COUNT, data + bytes(480))
    with pytest.raises(ImageError, match="its strips come to"):
        open_image(overlap)
    planes = [(284, 3, [2]), (273, 4, [8] * 3 * COUNT), (279, 4, [len(data) + 100] * 3 * COUNT)]
    with pytest.raises(ImageError, match="its strips come to"):
        open_image(strips(WIDTH, ROWS, COUNT, compression, [], [], data + bytes(100), samples=3, more=planes))


def test_lengths_beyond_the_end_of_the_file_count_up_to_it(strict):
    compression, data = PACKED["deflate"]
    places = [len(data) * number for number in range(COUNT)]
    lies = [len(data)] * (COUNT - 1) + [1 << 31]
    assert check_strips(
        io.BytesIO(made := strips(WIDTH, ROWS, COUNT, compression, places, lies, data * COUNT)), len(made)
    )


def test_of_a_tag_that_is_there_twice_the_first_counts_as_for_libtiff():
    compression, data = 8, zlib.compress(bytes(4096 * 4096))
    tags = [(256, 4, [16]), (257, 4, [16]), (258, 3, [8]), (259, 3, [compression]), (262, 3, [1]), (277, 3, [1])]
    tags += [(322, 4, [4096]), (322, 4, [16]), (323, 4, [4096]), (323, 4, [16]), (324, 4, [8]), (325, 4, [len(data)])]
    made = tiff(tags, data)
    _, _, cost = decode._opened(decode._source(io.BytesIO(made)), 0, decode.MAX_PIXELS)
    assert cost > 4 * 4096 * 4096
    wide = tiff([*tags[:5], (277, 3, [1]), (322, 16, [4096]), *tags[8:]], data)  # eight bytes long
    assert check_strips(io.BytesIO(wide), len(wide)) == 4 * 4096 * 4096


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [("FREE", 1000, "out of proportion: tiles that are 262,144 bytes"), ("MAX_RAW", 2000, "too large: tiles that are")],
)
def test_a_tile_larger_than_the_image_counts_in_full(monkeypatch, limit, most, words):
    data = zlib.compress(bytes(512 * 512))
    more = [(256, 4, [16]), (257, 4, [16])]
    made = strips(512, 512, 1, 8, [0], [len(data)], data, tiles=True, more=more)
    _, _, cost = decode._opened(decode._source(io.BytesIO(made)), 0, decode.MAX_PIXELS)
    assert cost >= 4 * 512 * 512
    assert open_image(made).size == (16, 16)
    monkeypatch.setattr(headers, "PROPORTION", 500)
    monkeypatch.setattr(headers, limit, most)
    with pytest.raises(ImageError, match=words):
        open_image(made)


def progressive(scans, rows=ROWS):
    """A progressive JPEG of so many scans, six or more."""
    jpeg = encoded(Image.frombytes("L", (WIDTH, ROWS), GREY).resize((WIDTH, rows)), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * (scans - jpeg.count(b"\xff\xda") + 1) + jpeg[-2:]


def test_the_scans_of_all_strips_count(monkeypatch):
    assert open_image(apart(7, progressive(9))).size == (WIDTH, ROWS * COUNT)
    with pytest.raises(ImageError, match="too many scans: 33 in a strip is over 32"):
        open_image(apart(7, progressive(33)))
    monkeypatch.setattr(headers, "MAX_SCANNED", 9 * COUNT * WIDTH * ROWS - 1)
    with pytest.raises(ImageError, match=r"too many scans: over [\d,]+ pixels in those of all strips"):
        open_image(apart(7, progressive(9)))
    assert open_image(apart(7, PACKED["JPEG"][1])).size == (WIDTH, ROWS * COUNT)  # one scan each
    monkeypatch.undo()
    monkeypatch.setattr(headers, "MAX_PROGRESSIVE", 500)
    with pytest.raises(ImageError, match="in several scans is over 500"):
        open_image(apart(7, progressive(9)))


def test_what_libjpeg_keeps_of_a_strip_is_reckoned():
    plain, several = apart(7, PACKED["JPEG"][1]), apart(7, progressive(9))
    costs = [check_strips(io.BytesIO(data), len(data)) for data in (plain, several)]
    assert costs[1] == costs[0] + 2 * WIDTH * ROWS


def test_a_strip_that_is_longer_than_its_rows_counts_with_all_of_them():
    assert reckoned._frame(progressive(9, rows=200)) == (200, False)
    assert reckoned._frame(PACKED["JPEG"][1]) == (ROWS, True)
    assert reckoned._frame(PACKED["JPEG"][1][:60]) == (65_535, False)
    odd = PACKED["JPEG"][1]
    assert reckoned._frame(odd[:2] + b"\xff\x01" + odd[2:]) == (65_535, False)  # a marker without a length


def test_usual_strips_are_told_from_their_first_bytes():
    """A frame of the usual kind has one scan, whatever is behind it."""
    rng = random.Random(0)
    seeds = [encoded(picture(), "JPEG", quality=q, progressive=p) for q in (30, 90) for p in (False, True)]
    for _ in range(300):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(2, min(700, len(data)))] = rng.choice([0, 1, 0xC0, 0xC2, 0xD8, 0xDA, 0xFF])
        _, plain = reckoned._frame(bytes(data[:2048]))
        try:
            with Image.open(io.BytesIO(bytes(data))) as image:
                several = bool(image.info.get("progressive"))
        except (OSError, SyntaxError):
            continue
        assert not (plain and several)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "lzma", "zstd", "packbits", "jpeg", None])
@pytest.mark.parametrize("big", [False, True])
def test_from_a_file_and_from_bytes_as_pillow_reads_them(tmp_path, monkeypatch, compression, big):
    monkeypatch.setattr(TiffImagePlugin, "STRIP_SIZE", 4096)
    options = {"compression": compression} if compression else {}
    for image in (picture(), picture().convert("L"), picture().convert("CMYK")):
        data = encoded(image, "TIFF", big_tiff=big, **options)
        (tmp_path / "a.tif").write_bytes(data)
        with Image.open(io.BytesIO(data)) as opened:
            expected = opened.convert("RGB").tobytes()
        assert open_image(data).tobytes() == open_image(tmp_path / "a.tif").tobytes() == expected


def test_lzma_has_a_limit_of_its_own(monkeypatch):
    data = encoded(picture(), "TIFF", compression="lzma")
    monkeypatch.setattr(reckoned, "MAX_LZMA", 100)
    with pytest.raises(ImageError, match=r"too large: [\d,]+ bytes in LZMA is over 100"):
        open_image(data)


def test_what_decoders_take_besides_a_strip():
    def cost(compression, *more):
        made = apart(compression, bytes(100), more=more)
        return check_strips(io.BytesIO(made), len(made)) // (WIDTH * ROWS)

    assert [cost(5), cost(34925), cost(50000), cost(50001)] == [4, 5, 5, 16]
    assert [cost(5, (262, 3, [6])), cost(6)] == [8, 8]
    assert (
        check_strips(io.BytesIO(made := apart(5, bytes(100), more=[(266, 3, [2])])), len(made))
        == 4 * WIDTH * ROWS + 100
    )


def test_old_jpeg_in_planes_of_several_strips():
    more = [(262, 3, [6]), (277, 3, [3]), (258, 3, [8, 8, 8]), (284, 3, [2])]
    places, lengths = (273, 4, [8] * 3 * COUNT), (279, 4, [10] * 3 * COUNT)
    made = apart(6, bytes(10), more=[*more, places, lengths])
    with pytest.raises(ImageError, match="old JPEG in a TIFF, in planes of several strips, is not read"):
        open_image(made)


@pytest.mark.parametrize("number", [0, 1, 99])
def test_a_part_of_a_file_is_a_file(number):
    data = bytes(range(100))
    part, whole = Part(io.BytesIO(b"before" + data + b"behind"), 6, 100), io.BytesIO(data)
    for file in (part, whole):
        file.seek(number)
    assert part.read(7) == whole.read(7)
    assert part.tell() == whole.tell()
    assert part.seek(-3, 2) == whole.seek(-3, 2)
    assert part.read() == whole.read()
    assert part.read(5) == b""


# Files that are cut while they are read


@pytest.mark.parametrize("form", ["TIFF", "BMP", "PPM", "PNG", "JPEG", "GIF", "WEBP", "AVIF"])
@pytest.mark.parametrize("options", [{}, {"compression": "tiff_lzw"}])
def test_no_file_is_mapped_and_libtiff_has_no_descriptor(tmp_path, monkeypatch, form, options):
    path = tmp_path / "a"
    path.write_bytes(encoded(picture().convert("L"), form, **options if form == "TIFF" else {}))
    seen = []
    plain = Image._getdecoder

    def recorded(mode, name, args, extra=()):
        seen.append((name, args))
        assert not MAPS.exists() or str(path) not in MAPS.read_text()
        return plain(mode, name, args, extra)

    def mapped(*_, **__):
        raise AssertionError("the file is mapped")

    monkeypatch.setattr(Image, "_getdecoder", recorded)
    monkeypatch.setattr("mmap.mmap", mapped)
    open_image(path)
    assert all(not args[1] for name, args in seen if name == "libtiff")
    assert ("libtiff" in [name for name, _ in seen]) == (form == "TIFF" and bool(options))


CUT = """
import sys
from PIL import Image
from outword.photos.decode import open_image
plain = Image._getdecoder
def told(*args):
    print("decoding", flush=True)
    return plain(*args)
Image._getdecoder = told
try:
    print(open_image(sys.argv[1]).size)
except Exception as error:
    print(error)
"""


def test_a_file_cut_by_another_process_while_it_is_decoded_does_not_end_this_one(tmp_path):
    noise = np.random.default_rng(0).integers(0, 16, 3_000_000, np.uint8).tobytes()  # slow to decode in LZMA
    data = lzma.compress(noise, lzma.FORMAT_XZ, preset=0)
    path = tmp_path / "a.tif"
    path.write_bytes(strips(1000, 1000, 1, 34925, [0], [len(data)], data, samples=3))
    with subprocess.Popen([sys.executable, "-c", CUT, path], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "decoding\n"
        os.truncate(path, 100)
        said = running.stdout.read()
    assert running.returncode == 0
    assert said == "(1000, 1000)\n"


@pytest.mark.parametrize("options", [{}, {"compression": "tiff_lzw"}])
def test_a_file_cut_between_its_header_and_its_pixels_is_a_row_with_an_error(tmp_path, monkeypatch, saved, options):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.tif").write_bytes(encoded(picture(640, 480), "TIFF", **options))
    plain = reader.Tiff.load

    def cut(self):
        if self.tile and not isinstance(self.fp, io.BytesIO) and str(self.fp.name).endswith("b.tif"):
            os.truncate(self.fp.name, 5000)
        return plain(self)

    monkeypatch.setattr(reader.Tiff, "load", cut)
    monkeypatch.setattr(decode, "ROOM", 0)  # files are opened, and not read first
    out = tmp_path / "rows.csv"
    call("score", saved, *(tmp_path / f"{name}.tif" for name in ("a", "b", "c")), "-o", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert ["truncated image" in row["error"] for row in rows] == [False, True, False]


# What is not compressed


def test_strips_far_apart_are_not_read_with_what_is_between_them(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(strips(WIDTH, ROWS, 2, 1, [0, 50_000_000], [len(GREY)] * 2, GREY))
    with path.open("r+b") as file:
        file.seek(50_000_008)
        file.write(GREY)
    tracemalloc.start()
    image = open_image(path)
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()
    assert image.tobytes() == Image.frombytes("L", (WIDTH, 2 * ROWS), GREY * 2).convert("RGB").tobytes()


@pytest.mark.parametrize("form", ["BMP", "PPM", "TIFF"])
def test_a_long_row_is_read_in_one_piece(form):
    wide = Image.effect_noise((200_000, 2), 50)
    data = encoded(wide, form)

    class Counted(io.BytesIO):
        reads = 0

        def read(self, count=-1):
            self.reads += 1
            return super().read(count)

    image, _, _ = decode._opened(decode._source(file := Counted(data)), 0, decode.MAX_PIXELS)
    file.reads = 0
    image.load()
    assert file.reads <= 4
    assert image.convert("L").tobytes() == wide.tobytes()


def test_a_file_in_memory_counts_once(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(made := encoded(Image.effect_noise((200, 100), 50), "TIFF", compression="tiff_lzw"))
    with path.open("rb") as file:
        _, _, from_disk = decode._opened(decode._source(file), 0, decode.MAX_PIXELS)
    _, _, in_memory = decode._opened(decode._source(io.BytesIO(made)), 0, decode.MAX_PIXELS)
    assert from_disk - in_memory == len(made)


def test_a_long_row_counts_twice():
    costs = []
    for width in (65_536, 65_544):
        _, _, cost = decode._opened(
            decode._source(io.BytesIO(encoded(Image.new("L", (width, 2)), "BMP"))), 0, decode.MAX_PIXELS
        )
        costs.append(cost - 2 * width * 9 - 3 * headers.rows_cost((width, 2)))
    assert costs == [0, 2 * 65_544]


# What libtiff writes


def bad_fax():
    """A fax of noise: an error for nearly each of its rows."""
    data = np.random.default_rng(0).integers(0, 256, 3000, np.uint8).tobytes()
    return strips(1000, 1000, 1, 3, [0], [len(data)], data, more=[(258, 3, [1]), (262, 3, [0])])


@pytest.mark.skipif(sys.platform == "win32", reason="libtiff is a part of Pillow there")
def test_libtiff_writes_nothing(capfd):
    assert reader.SILENT
    assert open_image(bad_fax()).size == (1000, 1000)
    with pytest.raises(ImageError):
        open_image(encoded(picture(), "TIFF", compression="tiff_lzw").replace(b"\x80", b"\xff"))
    assert capfd.readouterr() == ("", "")


def test_where_libtiff_cannot_be_reached_images_are_read_all_the_same(monkeypatch):
    for error in (OSError, AttributeError):

        def lacking(_, error=error):
            raise error

        monkeypatch.setattr(reader.ctypes, "CDLL", lacking)
        assert reader._silence() is False
    with monkeypatch.context() as patched:
        patched.setattr(reader, "_imaging", object())
        assert reader._silence() is False
    assert open_image(bad_fax()).size == (1000, 1000)


def test_what_pillow_logs_of_a_tiff_does_not_reach_stderr(capfd):
    many = apart(8, PACKED["deflate"][1], more=[(277, 4, [35_840])])
    with pytest.raises(ImageError, match="damaged image"):
        open_image(many)
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("PIL.TiffImagePlugin").handlers


def test_a_photo_of_the_package_as_a_tiff(tmp_path):
    with Image.open(PHOTOS / "cat.jpg") as photo:
        photo.save(tmp_path / "a.tif", compression="jpeg")
        assert open_image(tmp_path / "a.tif").size == photo.size


def test_the_limits_of_the_docs_are_those_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    mib = 1 << 20
    assert f"more than its file has | {reckoned.SHARED // mib} MiB | `outword.photos.strips.SHARED` |" in page
    assert f"| bytes of strips in LZMA | {reckoned.MAX_LZMA // mib} MiB | `MAX_LZMA` |" in page
