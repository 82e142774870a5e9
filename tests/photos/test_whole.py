"""Files that their readers read whole: what they will take is known, and room is taken, before that."""

import io
import struct
import threading
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from conftest import PHOTOS
from helpers.bad_images import encoded, picture
from helpers.cameras import box, grid, heic, with_sizes
from helpers.room import asked_room
from helpers.streams import avif, bits, chunk, film, found, frame, moving, still, unit, webp, with_frames
from outword.errors import ImageError
from outword.photos import av1, boxes, decode, heif, plan
from outword.photos import avif as avifs
from outword.photos import webp as webps
from outword.photos.av1 import Frames
from outword.photos.budget import MB, Budget
from outword.photos.decode import open_image
from outword.photos.plan import Plan

CAT = Image.open(PHOTOS / "cat.jpg").convert("RGB").resize((160, 120))


@pytest.fixture
def strict(monkeypatch):
    """An image may be made of four times its pixels, however few they are."""
    monkeypatch.setattr(plan, "FREE", 0)


def frames_of(stream, config=b""):
    return av1.frames_of(lambda at, count: stream[at : at + count], len(stream), lambda: None, config)


# AV1: how large the frames of a stream are


def test_the_size_of_a_frame_is_that_of_its_sequence():
    assert frames_of(still(640, 480) + frame()) == Frames(640 * 480, 640 * 480 * 3 // 2)
    assert frames_of(still(640, 480, deep=1) + frame()) == Frames(640 * 480, 640 * 480 * 3)
    assert frames_of(still(640, 480, grey=1) + frame()) == Frames(640 * 480, 640 * 480)
    assert frames_of(unit(2, b"") + still(640, 480) + unit(5, bytes(300)) + frame()).pixels == 640 * 480
    assert frames_of(still(64, 48) + frame() + still(640, 480) + frame() * 2).pixels == 64 * 48 + 2 * 640 * 480
    assert frames_of(still(64, 48)).pixels == 0
    assert frames_of(frame(), config=still(64, 48)).pixels == 64 * 48


def test_a_frame_with_a_size_of_its_own_is_as_large_as_it_may_say():
    assert frames_of(moving(64, 48) + frame()).pixels == 64 * 48
    assert frames_of(moving(64, 48) + frame(own_size=1)).pixels == 65536 * 65536
    assert frames_of(moving(64, 48, width_bits=6) + frame(own_size=1)).pixels == 64 * 65536
    again = unit(3, bits((1, 1), (0, 3), (0, 8)))  # a frame that is there already
    assert frames_of(moving(64, 48) + frame() + again).pixels == 64 * 48


def test_streams_that_end_too_early_or_say_no_size():
    with pytest.raises(ImageError, match="a frame of it has no size"):
        frames_of(frame() + still(64, 48))
    whole = still(64, 48) + frame()
    for end in range(1, len(whole)):
        if end != len(still(64, 48)):
            with pytest.raises((ImageError, struct.error, IndexError)):
                frames_of(whole[:end])
    with pytest.raises(struct.error):
        frames_of(b"\x0a" + b"\xff" * 9)


@pytest.mark.parametrize(
    ("options", "mode", "each"),
    [
        ({}, "RGB", 1.5),
        ({"subsampling": "4:4:4"}, "RGB", 3),
        ({"subsampling": "4:2:2"}, "RGB", 3),
        ({"subsampling": "4:0:0"}, "L", 1),
        ({"tile_rows": 1, "tile_cols": 1, "autotiling": False}, "RGB", 1.5),
        ({"codec": "aom", "advanced": {"film-grain-test": "1"}}, "RGB", 1.5),
    ],
)
def test_streams_that_libraries_write(options, mode, each):
    stream = found(encoded(CAT.convert(mode), "AVIF", **options), b"mdat")
    assert frames_of(stream) == Frames(160 * 120, int(160 * 120 * each))


# AVIF: what its boxes say of its streams


def test_avif_is_as_large_as_its_frames(strict):
    small = still(64, 48) + frame()
    assert avifs.plan(io.BytesIO(avif(small, sizes=[(64, 48)]))) == Plan(
        64, 48, working=3 * 64 * 48 * 3 // 4 + 8 * 64 * 48
    )
    for data in (
        avif(still(640, 480) + frame(), sizes=[(64, 48)]),
        avif(still(640, 480) + frame(), sizes=[(64, 48)], in_idat=True),
        avif(small + frame() * 4, sizes=[(64, 48)]),
        avif(small, still(640, 480) + frame(), sizes=[(64, 48)] * 2, references=[(b"auxl", 2, [1])]),
        avif(small, *[small] * 4, sizes=[(64, 48)] * 6, references=[(b"dimg", 6, [1, 2, 3, 4, 5])], main=6),
        avif(frame(), sizes=[(64, 48)], configs=[still(640, 480)]),
    ):
        with pytest.raises(ImageError, match="out of proportion: 64 x 48 pixels are made of"):
            open_image(data)


def test_avif_of_tiles_and_of_more_bits(strict):
    tile = still(64, 48) + frame()
    tiles = [(b"dimg", 5, [1, 2, 3, 4])]
    made = avifs.plan(io.BytesIO(avif(*[tile] * 4, sizes=[(64, 48)] * 4 + [(128, 96)], references=tiles, main=5)))
    assert made.working == 4 * 64 * 48 * 9 // 4 + 8 * 128 * 96
    kinds = [b"av01", b"av01", b"sato"]  # of the first two together is made what libavif prefers
    sizes, references = [(64, 48)] * 3, [(b"dimg", 3, [1, 2])]
    deep = avifs.plan(io.BytesIO(avif(tile, tile, sizes=sizes, references=references, kinds=kinds)))
    assert deep.working == 2 * 64 * 48 * 9 // 4 + 8 * 64 * 48
    kinds[2] = b"tmap"  # of which it does not take the second one
    assert avifs.plan(io.BytesIO(avif(tile, b"?", sizes=sizes, references=references, kinds=kinds))).working
    with pytest.raises(ImageError, match="nested too deeply"):
        open_image(avif(tile, sizes=[(64, 48)], references=[(b"dimg", 1, [1])]))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_real_avif_is_planned_as_it_is_read(mode):
    image = CAT.convert(mode)
    image.putpixel((3, 3), (1, 2, 3, 4)[: len(mode)])
    for data in (encoded(image, "AVIF"), encoded(image, "AVIF", save_all=True, append_images=[image.rotate(90)])):
        made, planned = decode._planned(decode._source(io.BytesIO(data)), 0, decode.MAX_PIXELS)
        assert (made.width, made.height, made.clear) == (160, 120, mode == "RGBA")
        opened, _, cost = decode._opened(decode._source(io.BytesIO(data)), 0, decode.MAX_PIXELS, made)
        assert opened.size == (160, 120)
        assert planned == cost or mode == "L"  # which is taken to RGB, for which it is opened again
        assert open_image(data).size == (160, 120)


def test_avif_that_says_that_it_is_small(strict):
    for data in (
        with_sizes(encoded(CAT, "AVIF"), 64, 48),
        with_frames(encoded(CAT, "AVIF"), 5),
        film(CAT, (64, 48)),
    ):
        with pytest.raises(ImageError, match=r"out of proportion: (64 x 48|160 x 120) pixels are made of"):
            open_image(data)
    assert open_image(with_frames(encoded(CAT, "AVIF"), 4)).size == (160, 120)


def test_what_libavif_takes_for_lies_counts(monkeypatch):
    data = with_sizes(encoded(CAT, "AVIF", subsampling="4:4:4"), 64, 48)
    frames = 3 * 160 * 120 * 3 // 2
    expected = 4 * 64 * 48 + frames + 8 * 64 * 48 + 2 * len(data) + 4 * 64 * 48 + len(data)
    assert asked_room(monkeypatch, data) == expected


def test_avif_of_very_many_images_or_frames(monkeypatch):
    small = still(64, 48) + frame()
    data = avif(small, sizes=[(64, 48)], references=[(b"cdsc", n, [1]) for n in range(2, 40)])
    assert avifs.plan(io.BytesIO(data)).width == 64
    monkeypatch.setattr(avifs, "_MOST_ITEMS", 30)
    with pytest.raises(ImageError, match="too many images: over 30"):
        avifs.plan(io.BytesIO(data))
    monkeypatch.setattr(avifs, "PARTS", 1)
    with pytest.raises(ImageError, match="too many frames: over 1"):
        open_image(encoded(CAT, "AVIF", save_all=True, append_images=[CAT.rotate(90)]))


def test_references_are_as_many_as_their_box_holds():
    data = avif(still(64, 48) + frame(), sizes=[(64, 48)], references=[(b"dimg", 7, [8, 9])])
    at = data.index(b"dimg") + 6
    for count in (0, 1, 3, 60_000):
        with pytest.raises(ImageError, match="damaged image"):
            avifs.plan(io.BytesIO(data[:at] + struct.pack(">H", count) + data[at + 2 :]))


def test_any_byte_of_avif_and_webp_may_be_wrong():
    rng = np.random.default_rng(0)
    clear = picture().convert("RGBA")
    seeds = [encoded(picture(), "AVIF"), encoded(clear, "AVIF"), encoded(clear, "WEBP"), film(picture(), (64, 48))]
    for data in seeds:
        for _ in range(60):
            bad = bytearray(data)
            for at in rng.integers(0, min(len(bad), 900), 3):
                bad[at] = rng.integers(256)
            try:
                assert open_image(bytes(bad)).mode == "RGB"
            except ImageError as error:
                assert len(error.message) < 200


# HEIC


def alpha_of_no_size(main, mask):
    """A HEIC whose mask does not say how large it is, though its stream does."""
    small, large = heic(main), heic(mask)
    streams = found(small, b"mdat"), found(large, b"mdat")
    listed = [
        box(b"hvcC", found(small, b"hvcC")),
        box(b"ispe", struct.pack(">III", 0, *main.size)),
        box(b"hvcC", found(large, b"hvcC")),
        box(b"auxC", bytes(4), b"urn:mpeg:hevc:2015:auxid:1\0"),
    ]
    owned = struct.pack(">HB2B", 1, 2, 0x81, 2), struct.pack(">HB2B", 2, 2, 0x83, 0x84)
    infe = [box(b"infe", struct.pack(">IHH4sx", 2 << 24, one, 0, b"hvc1")) for one in (1, 2)]

    def meta(place):
        starts = (place, place + len(streams[0]))
        places = [
            struct.pack(">HHHHII", one + 1, 0, 0, 1, starts[one], len(stream)) for one, stream in enumerate(streams)
        ]
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", struct.pack(">II4s12xx", 0, 0, b"pict")),
            box(b"pitm", struct.pack(">IH", 0, 1)),
            box(b"iinf", struct.pack(">IH", 0, 2), *infe),
            box(b"iloc", struct.pack(">IBBH", 1 << 24, 0x44, 0, 2), *places),
            box(b"iref", bytes(4), box(b"auxl", struct.pack(">HHH", 2, 1, 1))),
            box(b"iprp", box(b"ipco", *listed), box(b"ipma", struct.pack(">II", 0, 2), *owned)),
        )

    ftyp = box(b"ftyp", b"heic\0\0\0\0mif1heic")
    return ftyp + meta(len(ftyp + meta(0)) + 8) + box(b"mdat", *streams)


def test_heic_whose_mask_says_no_size():
    with pytest.raises(ImageError, match="a part of it has no size"):
        open_image(alpha_of_no_size(CAT.resize((64, 64)), CAT.convert("L")))


def test_heic_whose_stream_is_larger_than_it_says_is_not_decoded():
    import pillow_heif

    whole = pillow_heif.HeifImageFile(io.BytesIO(with_sizes(heic(CAT), 64, 64)))
    with pytest.raises((ValueError, OSError, RuntimeError, SyntaxError)):
        whole.load()
    with pytest.raises(ImageError):
        open_image(with_sizes(grid(CAT.resize((256, 192)), 2, 2), 64, 64))


@pytest.mark.parametrize("data", [b"\xff\x0a" + bytes(100), b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(100)])
def test_jpeg_xl_is_not_read(data):
    with pytest.raises(ImageError, match="not an image"):
        open_image(data)


# What is kept besides pixels


def with_texts(count, images, size=100):
    """The boxes of so many texts about so many images, all of which lie in the same place."""
    text, numbers = images + 1, range(1, images + 1)
    streams = [still(64, 64) + frame()] * images + [bytes(size)] * count
    about = [(b"cdsc", text + one, list(numbers)) for one in range(count)]
    kinds = [b"av01"] * images + [b"Exif"] * count
    return avif(*streams, sizes=[(64, 64)] * len(streams), references=about, kinds=kinds)


@pytest.mark.parametrize("read", [avifs.plan, heif.plan])
@pytest.mark.parametrize(("count", "images"), [(1, 1), (10, 1), (1, 10), (2, 5)])
def test_texts_count_as_often_as_they_are_read(monkeypatch, read, count, images):
    data = with_texts(count, images)
    assert read(io.BytesIO(data)).width == 64
    monkeypatch.setattr("outword.photos.headers.KEPT", 100 * count * images - 1)
    with pytest.raises(ImageError, match="too large: what it has besides pixels is over"):
        read(io.BytesIO(data))


@pytest.mark.parametrize("read", [avifs.plan, heif.plan])
def test_streams_that_share_their_bytes(monkeypatch, read):
    data = with_texts(1, 1, size=3000)
    place = data.index(struct.pack(">I", 3000), data.index(b"iloc"))
    liar = bytearray(data)
    struct.pack_into(">I", liar, place, 3900)
    read(io.BytesIO(liar))
    monkeypatch.setattr(boxes, "SHARED", 0)
    read(io.BytesIO(data))
    struct.pack_into(">I", liar, place, 1 << 20)
    with pytest.raises(ImageError, match=r"its streams come to 1,048,\d\d\d bytes, the file to 3,"):
        read(io.BytesIO(liar))


@pytest.mark.parametrize("read", [avifs.plan, heif.plan])
@pytest.mark.parametrize("name", [b"infe", b"iloc"])
def test_what_is_said_twice_of_an_image(read, name):
    data = bytearray(with_texts(1, 1))
    first, step = (data.index(name) + 8, 21) if name == b"infe" else (data.index(name) + 12, 16)
    data[first + step : first + step + 2] = data[first : first + 2]
    with pytest.raises(ImageError, match="it says twice what an image is"):
        read(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("name", [b"EXIF", b"ICCP", b"XMP "])
def test_what_pillow_copies_of_a_webp(monkeypatch, name):
    monkeypatch.setattr("outword.photos.headers.KEPT", 1000)
    one = encoded(CAT, "WEBP")[12:]
    assert open_image(webp((160, 120), one, chunk(name, bytes(1000)))).size == (160, 120)
    assert open_image(webp((160, 120), one, chunk(b"prVt", bytes(1001)))).size == (160, 120)
    with pytest.raises(ImageError, match="too large: what it has besides pixels is over 1,000 bytes"):
        open_image(webp((160, 120), one, chunk(name, bytes(1001))))


# Boxes: bounded in bytes and in steps


@pytest.mark.parametrize(("data", "read"), [(encoded(CAT, "AVIF"), avifs.plan), (heic(CAT), heif.plan)])
def test_boxes_are_bounded(data, read, monkeypatch):
    at = data.index(b"meta") - 4
    size = struct.unpack_from(">I", data, at)[0]

    def with_more(extra):
        return data[:at] + struct.pack(">I", size + len(extra)) + data[at + 4 : at + size] + extra + data[at + size :]

    with pytest.raises(ImageError, match=r"the box that describes its images has 1,04\d,\d+ bytes, over 1,048,576"):
        read(io.BytesIO(with_more(box(b"free", bytes(1 << 20)))))
    monkeypatch.setattr(boxes, "STEPS", 500)
    assert read(io.BytesIO(data)).width == 160
    many = box(b"free") * 500
    for bad in (with_more(many), data + many):
        with pytest.raises(ImageError, match="too many boxes: over 500 parts"):
            read(io.BytesIO(bad))
    assert read(io.BytesIO(data + b"\0\0\0\1trailer")).width == 160  # some cameras put something behind it
    with pytest.raises(ImageError, match="two boxes describe what is in it"):
        read(io.BytesIO(data + data[at : at + size]))


# WebP


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("RGB", {}),
        ("RGBA", {}),
        ("RGB", {"lossless": True}),
        ("RGBA", {"lossless": True}),
        ("RGB", {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}),
    ],
)
def test_real_webp_is_planned_as_it_is_read(mode, options):
    image = CAT.convert(mode)
    image.putpixel((3, 3), (1, 2, 3, 4)[: len(mode)])
    for data in (
        encoded(image, "WEBP", **options),
        encoded(image, "WEBP", save_all=True, append_images=[image.rotate(90)], **options),
    ):
        made, planned = decode._planned(decode._source(io.BytesIO(data)), 0, decode.MAX_PIXELS)
        opened, _, cost = decode._opened(decode._source(io.BytesIO(data)), 0, decode.MAX_PIXELS, made)
        assert (made.width, made.height) == opened.size == (160, 120)
        assert planned == cost


def test_webp_whose_frames_are_not_as_large_as_they_say(monkeypatch):
    monkeypatch.setattr("PIL.Image.core.new", lambda *_: pytest.fail("a canvas was made"))
    large = encoded(CAT, "WEBP", lossless=True)[12:]
    place = bytes(6) + b"\x3f\0\0" * 2 + bytes(4)
    for data in (
        webp((64, 64), chunk(b"ANIM", bytes(6)), chunk(b"ANMF", place + large), flags=2),
        webp((64, 64), large),
        webp((640, 480), large),
    ):
        with pytest.raises(ImageError, match="damaged"):
            open_image(data)


def test_webp_of_very_many_chunks(monkeypatch):
    monkeypatch.setattr(webps, "PARTS", 100)
    one = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)[12:]
    start = chunk(b"ANIM", bytes(6))
    assert open_image(webp((1, 1), start, chunk(b"ANMF", bytes(16) + one), flags=2)).size == (1, 1)
    many = chunk(b"prVt") * 100
    for data in (
        webp((1, 1), start, *[chunk(b"ANMF", bytes(16) + one)] * 60, flags=2),
        webp((1, 1), start, chunk(b"ANMF", bytes(16) + one + many), flags=2),
        webp((1, 1), start, chunk(b"ANMF", bytes(16) + one), many, flags=2),
    ):
        with pytest.raises(ImageError, match="too many chunks: over 100"):
            open_image(data)


# Room around the read


def sparse(path, data, size):
    """A file of some bytes and very many zeros, which take no room on a disk."""
    rest = size - len(data)
    if data[:4] == b"RIFF":
        data = data[:4] + struct.pack("<I", size - 8) + data[8:] + b"prVt" + struct.pack("<I", rest - 8)
    else:
        data += struct.pack(">I4s", rest, b"free")
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size)
    return path


FORMS = {"webp": encoded(CAT, "WEBP"), "avif": encoded(CAT, "AVIF"), "heic": heic(CAT)}


@pytest.mark.parametrize("form", FORMS)
def test_a_large_file_is_refused_before_it_is_read(form, tmp_path):
    path = sparse(tmp_path / f"a.{form}", FORMS[form], decode.MAX_BYTES + 1)
    tracemalloc.start()
    with pytest.raises(ImageError, match=f"too large: {decode.MAX_BYTES + 1} bytes is over {decode.MAX_BYTES}"):
        open_image(path)
    assert tracemalloc.get_traced_memory()[1] < MB
    tracemalloc.stop()


@pytest.mark.parametrize("form", FORMS)
def test_room_is_taken_before_a_file_is_read(form, tmp_path, monkeypatch):
    path = sparse(tmp_path / f"a.{form}", FORMS[form], 70 * MB)
    with pytest.raises(ImageError, match=r"too large: decoding it takes 1.. MB, over 136 MB"):
        monkeypatch.setattr(decode, "decoding", lambda: Budget(200 * MB))
        monkeypatch.setattr(decode, "_opened", lambda *_: pytest.fail("it was read"))
        open_image(path)


def test_large_files_are_read_one_at_a_time(tmp_path, monkeypatch):
    budget, reading, most = Budget(880 * MB), [], []
    monkeypatch.setattr(decode, "decoding", lambda: budget)
    opened = decode._opened

    def read(*given):
        reading.append(1)
        most.append(len(reading))
        result = opened(*given)
        reading.pop()
        return result

    monkeypatch.setattr(decode, "_opened", read)
    path = sparse(tmp_path / "a.avif", FORMS["avif"], 35 * MB)
    threads = [threading.Thread(target=open_image, args=(path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_more_room_is_taken_where_a_header_promised_less(monkeypatch):
    asked = []

    class Recorded(Budget):
        def room(self, cost):
            asked.append(cost)
            return super().room(cost)

    budget = Recorded(880 * MB)
    monkeypatch.setattr(decode, "decoding", lambda: budget)
    data = encoded(CAT.convert("L"), "AVIF")
    assert open_image(data).size == CAT.size
    assert len(asked) == 2 and asked[0] < asked[1]
    assert budget._small == 0
