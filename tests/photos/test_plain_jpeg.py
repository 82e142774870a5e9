"""Which JPEGs a fast decoder may see."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from outword.photos import plain_jpeg as module
from outword.photos.plain_jpeg import PlainJpeg, plain_jpeg


def picture(width=60, height=40):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def jpeg(image=None, **options):
    buffer = io.BytesIO()
    (image or picture()).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


PLAIN = jpeg()


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        jpeg(subsampling=0),
        jpeg(subsampling=1),
        jpeg(picture().convert("L")),
        jpeg(restart_marker_rows=1),
        PLAIN + b"a film behind it",
    ],
    ids=["4:2:0", "4:4:4", "4:2:2", "grey", "restarts", "trailing"],
)
def test_plain(data):
    assert plain_jpeg(data) == PlainJpeg(60, 40, 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_how_it_is_turned(orientation):
    assert plain_jpeg(jpeg(exif=turned(orientation))) == PlainJpeg(60, 40, orientation)


def png():
    buffer = io.BytesIO()
    picture().save(buffer, "PNG")
    return buffer.getvalue()


def with_marker(marker, body):
    """A JPEG with one more segment at its beginning."""
    return PLAIN[:2] + bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body + PLAIN[2:]


ADOBE = b"Adobe\0\x64\0\0\0\0"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8\xff",
        png(),
        jpeg(progressive=True),
        jpeg(picture().convert("CMYK")),
        PLAIN[:-2],
        PLAIN[: len(PLAIN) // 2],
        jpeg(picture(31, 60)),
        jpeg(exif=turned(9)),
        with_marker(0xEE, ADOBE + b"\0"),
        with_marker(0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\0") + b"",
        PLAIN.replace(b"\xff\xc0", b"\xff\xc9"),  # arithmetic coding
        PLAIN.replace(b"\x01\x22\x00", b"\x52\x22\x00"),  # the first component is called R
        PLAIN.replace(b"\xff\xda\x00\x0c\x03", b"\xff\xda\x00\x0c\x01"),  # a scan of one component
        PLAIN[:2] + b"\xff\xe2\0\x02" * 100 + PLAIN[2:],
    ],
)
def test_not_plain(data):
    with_two = data.count(b"Exif") == 1 and plain_jpeg(data) == PlainJpeg(60, 40, 1)  # an empty EXIF turns nothing
    assert plain_jpeg(data) is None or with_two


def hidden(marker, length=b"\xff\xff"):
    """A plain JPEG behind a progressive one, which is passed over where `marker` is thought to have a length."""
    other = jpeg(progressive=True)[2:]
    if length == b"\xff\xff":
        other = other.ljust(0xFFFF - 2, b"\0")
    return PLAIN[:2] + bytes([0xFF, marker]) + length + other + PLAIN[2:]


@pytest.mark.parametrize("marker", [0x01, 0x02, 0xBF, 0xC8, *range(0xD0, 0xDA), 0xDC, 0xDE, 0xDF, 0xF0, 0xFD, 0xFF])
def test_nothing_hides_behind_a_marker_without_a_length(marker):
    assert plain_jpeg(hidden(0xFE)) == PlainJpeg(60, 40, 1)  # a comment has one
    assert plain_jpeg(hidden(marker)) is None


@pytest.mark.parametrize("length", [b"\0\0", b"\0\1"])
def test_a_length_that_is_shorter_than_itself(length):
    assert plain_jpeg(hidden(0xFE, length)) is None


def test_two_frames_and_a_scan_of_odd_length():
    frame = PLAIN.index(b"\xff\xc0")
    size = PLAIN[frame : frame + 19]
    assert plain_jpeg(PLAIN[:frame] + size + PLAIN[frame:]) is None
    assert plain_jpeg(PLAIN.replace(b"\xff\xda\x00\x0c", b"\xff\xda\x00\x0d")) is None


def test_which_of_two_orientations_counts_is_not_for_us_to_say():
    once = jpeg(exif=turned(6))
    start = once.index(b"\xff\xe1")
    length = int.from_bytes(once[start + 2 : start + 4], "big") + 2
    assert plain_jpeg(once[:start] + once[start : start + length] + once[start:]) is None


def test_adobe_with_the_usual_colours_is_plain():
    assert plain_jpeg(with_marker(0xEE, ADOBE + b"\1")) == PlainJpeg(60, 40, 1)


def test_large_ones_are_not(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 2399)
    assert plain_jpeg(PLAIN) is None
    monkeypatch.setattr(module, "LARGE", 2400)
    assert plain_jpeg(PLAIN)
    monkeypatch.setattr(module, "MOST_BYTES", len(PLAIN) - 1)
    assert plain_jpeg(PLAIN) is None


@given(st.binary(max_size=40), st.integers(0, 700), st.integers(0, 700))
def test_any_bytes_are_an_answer(noise, start, end):
    found = plain_jpeg(PLAIN[:start] + noise + PLAIN[end:])
    assert found is None or found.width * found.height > 0
