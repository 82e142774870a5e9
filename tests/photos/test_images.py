import io
import itertools
import os
import struct
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, features

from helpers.bad_images import ORIENTATION, encoded, make_bad_images, picture, png_header, rotated_jpeg, truncated
from outword.errors import ImageError, InputError, ParameterError
from outword.photos.ahead import decode_ahead
from outword.photos.decode import MAX_PIXELS, open_image, thumbnail
from outword.photos.walk import find_images


def pixels(source, **options):
    image = open_image(source, **options)
    assert image.mode == "RGB"
    return np.asarray(image).astype(int)


# one image


def test_every_odd_file_works_or_says_why_not(tmp_path):
    for path, words in make_bad_images(tmp_path).items():
        if words is None:
            assert open_image(path).mode == "RGB", path
            assert open_image(path, min_side=16).mode == "RGB", path
        else:
            with pytest.raises(ImageError, match=words):
                open_image(path)


def test_all_kinds_of_source_give_the_same_pixels(tmp_path):
    image = picture()
    data = encoded(image, "PNG")
    (tmp_path / "a.png").write_bytes(data)
    for source in (data, tmp_path / "a.png", str(tmp_path / "a.png"), image, np.asarray(image)):
        np.testing.assert_array_equal(pixels(source), np.asarray(image))


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM", "WEBP", "JPEG", "AVIF"])
def test_formats(format):
    if format == "AVIF" and "avif" not in features.get_supported_modules():
        pytest.skip("this Pillow has no AVIF")
    options = {"lossless": True} if format == "WEBP" else {}
    close = {"JPEG": 20, "AVIF": 20}.get(format, 0)
    assert np.abs(pixels(encoded(picture(), format, **options)) - np.asarray(picture())).max() <= close


def test_sixteen_bits_are_scaled_not_clipped():
    ramp = np.array([[0, 257, 128 * 257, 65535]], np.uint16)
    short, long = Image.fromarray(ramp), Image.fromarray(ramp.astype(np.int32))
    pgm = b"P5 4 1 65535\n" + ramp.astype(">u2").tobytes()
    for source in (short, long, encoded(short, "PNG"), encoded(short, "TIFF"), encoded(long, "TIFF"), pgm):
        assert pixels(source)[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 128.0, 255.0], [0, 128, 255]),
        ([0.0, 257.0, 65535.0], [0, 1, 255]),
        ([-10.0, 0.0, 10.0], [0, 128, 255]),
        ([0.0, np.nan, 0.5, np.inf, -np.inf], [0, 0, 128, 255, 0]),
        ([-20.0, np.nan, 20.0, np.inf, -np.inf], [0, 0, 255, 255, 0]),
        ([-3e38, 0.0, 3e38], [0, 127, 255]),
        ([-1e-45, 0.0, 0.0], [0, 0, 0]),
        ([7.0e5, 7.0e5, 7.0e5], [0, 0, 0]),
    ],
)
def test_float_pixels(values, expected):
    image = Image.fromarray(np.array([values], np.float32))
    assert pixels(image)[0, :, 0].tolist() == expected
    assert pixels(encoded(image, "TIFF"))[0, :, 0].tolist() == expected


def test_pixels_without_a_number_are_no_image():
    for values in ([np.nan] * 3, [np.inf, -np.inf, np.nan]):
        with pytest.raises(ImageError, match="it has no finite pixels"):
            open_image(encoded(Image.fromarray(np.array([values], np.float32)), "TIFF"))


def test_big_integers_are_stretched():
    image = Image.fromarray(np.array([[-(2**20), 0, 2**20]], np.int32))
    assert pixels(image)[0, :, 0].tolist() == [0, 128, 255]


def test_transparency_is_white():
    clear, half, solid = (255, 0, 0, 0), (0, 0, 0, 128), (0, 0, 255, 255)
    image = Image.new("RGBA", (3, 1))
    for x, colour in enumerate((clear, half, solid)):
        image.putpixel((x, 0), colour)
    for source in (image, encoded(image, "PNG"), encoded(image, "WEBP", lossless=True, exact=True)):
        assert pixels(source)[0].tolist() == [[255, 255, 255], [127, 127, 127], [0, 0, 255]]
    grey = Image.new("LA", (1, 1), (10, 0))
    assert pixels(grey)[0, 0].tolist() == [255, 255, 255]


def test_transparent_palette_and_transparent_colour_are_white(tmp_path):
    make_bad_images(tmp_path)
    found = pixels(tmp_path / "palette.png")
    assert found[0, 0].tolist() == [255, 255, 255]
    assert found[0, 63].tolist() == [0, 0, 255]
    keyed = encoded(Image.new("RGB", (2, 2), (1, 2, 3)), "PNG", transparency=(1, 2, 3))
    assert pixels(keyed)[0, 0].tolist() == [255, 255, 255]


def test_one_bit_and_cmyk_and_first_frame(tmp_path):
    make_bad_images(tmp_path)
    assert pixels(encoded(Image.new("1", (2, 2), 1), "PNG"))[0, 0].tolist() == [255, 255, 255]
    assert np.abs(pixels(tmp_path / "cmyk.jpg") - np.asarray(picture())).max() < 25
    assert pixels(tmp_path / "animated.gif")[0, 0].tolist() == [0, 255, 0]
    assert open_image(tmp_path / "narrow.png").size == (1, 30000)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP"])
def test_orientation_is_applied(orientation, format):
    image = picture(30, 20)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    options = {"lossless": True} if format == "WEBP" else {}
    turn = {2: "fliplr", 3: "rot180", 4: "flipud", 5: "transpose", 6: "rot270", 7: "transverse", 8: "rot90"}
    array = np.asarray(image)
    expected = {
        "fliplr": array[:, ::-1],
        "rot180": array[::-1, ::-1],
        "flipud": array[::-1],
        "transpose": array.swapaxes(0, 1),
        "rot270": np.rot90(array, 3),
        "transverse": np.rot90(array, 2).swapaxes(0, 1),
        "rot90": np.rot90(array),
    }.get(turn.get(orientation), array)
    np.testing.assert_array_equal(pixels(encoded(image, format, exif=exif, **options)), expected)


def test_an_opened_image_is_not_turned_twice():
    once = open_image(rotated_jpeg(picture()))
    assert once.size == (48, 64)
    assert open_image(once) is once
    pil = Image.open(io.BytesIO(rotated_jpeg(picture())))
    assert open_image(pil).size == (48, 64)
    assert pil.size == (64, 48)
    assert "exif" in pil.info


def test_odd_exif_is_no_reason_to_refuse():
    good = b"Exif\0\0II*\0\x08\0\0\0\x02\0" + struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)
    broken = good + struct.pack("<HHII", 0x010F, 2, 99999, 99999)
    for exif, size in ((broken, (48, 64)), (good[:20], (64, 48)), (b"Exif\0\0garbage", (64, 48))):
        data = encoded(picture(), "JPEG", exif=exif)
        assert open_image(data).size == size


def test_draft_is_close_to_the_full_decode():
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8)).resize((1600, 1200))
    data = encoded(noise, "JPEG", quality=90)
    full, draft = open_image(data), open_image(data, min_side=224)
    assert full.size == (1600, 1200)
    assert draft.size == (800, 600)
    small = [np.asarray(x.resize((299, 224), Image.Resampling.BICUBIC)).astype(int) for x in (full, draft)]
    assert np.abs(small[0] - small[1]).max() <= 4


@pytest.mark.parametrize("size", [(449, 448), (895, 5000), (448, 447), (896, 896), (30, 3000), (3585, 3584)])
def test_draft_keeps_twice_the_short_side(size):
    short = min(open_image(encoded(Image.new("RGB", size), "JPEG"), min_side=224).size)
    assert short >= min(448, *size)


# refusals


def test_too_many_pixels_are_refused_before_decoding():
    with pytest.raises(ImageError, match=f"too many pixels: 40000 x 40000 is over {MAX_PIXELS}"):
        open_image(png_header(40000, 40000))
    for source in (encoded(picture(), "PNG"), picture(), np.asarray(picture())):
        with pytest.raises(ImageError, match="too many pixels: 64 x 48 is over 3000"):
            open_image(source, max_pixels=3000)


def test_pillows_own_limit_neither_matters_nor_warns(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    for format in ("JPEG", "PNG", "BMP", "PPM"):
        assert open_image(encoded(picture(), format)).size == (64, 48)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    with pytest.raises(ImageError, match="too many pixels"):
        open_image(png_header(40000, 40000))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0", "PostScript is not read"),
        (b"%PDF-1.7", "PDF is not read"),
        (b"8BPS\0\1", "Photoshop is not read"),
        (b"<svg xmlns=''>", "SVG or XML is not read"),
        (b"\x89PNG\r\n\x1a\n", "damaged|truncated"),
        (b"BM", "damaged|truncated"),
        (b"<!doctype html>", "not an image"),
        (b"", "empty file"),
    ],
)
def test_other_formats_are_refused(head, words):
    with pytest.raises(ImageError, match=words):
        open_image(head)


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "file.jpg").write_bytes(b"x")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    for name, words in (
        ("pipe.jpg", "not a regular file"),
        ("file.jpg/inside.jpg", "no such file"),
        ("loop.jpg", "symbolic links"),
        ("n" * 300, "name too long"),
        ("null\0.jpg", "no such file"),
    ):
        with pytest.raises(ImageError, match=words):
            open_image(tmp_path / name)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "not enough memory"),
        (Image.DecompressionBombError(), "too many pixels"),
        (OSError(5, "Input/output error"), "input/output error"),
        (ModuleNotFoundError("No module named x"), "this Pillow cannot read the format"),
        (EOFError(), "truncated"),
        (ZeroDivisionError(), "damaged"),
        (RecursionError(), "damaged"),
    ],
)
def test_what_pillow_raises_becomes_a_reason(monkeypatch, error, words):
    def fail(self):
        raise error

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile._open", fail)
    with pytest.raises(ImageError, match=words):
        open_image(encoded(picture(), "PNG"))


def test_permission_errors_are_named(tmp_path, monkeypatch):
    (tmp_path / "a.jpg").write_bytes(encoded(picture(), "JPEG"))

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ImageError, match="permission denied"):
        open_image(tmp_path / "a.jpg")
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(ImageError, match="permission denied"):
        open_image(tmp_path)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((2, 4, 4, 3), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros(4, np.uint8),
    ],
)
def test_arrays_that_are_no_images(array):
    with pytest.raises(ImageError) as caught:
        open_image(array)
    assert str(array.shape) in caught.value.message
    assert str(array.dtype) in caught.value.message


def test_grey_read_only_and_strided_arrays():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    grey.setflags(write=False)
    assert pixels(grey)[:, :, 1].tolist() == grey.tolist()
    strided = np.asarray(picture())[::2, ::-1]
    np.testing.assert_array_equal(pixels(strided), strided)


def test_other_types_are_refused():
    with pytest.raises(InputError, match="got list"):
        open_image([picture()])
    with pytest.raises(ImageError, match="no pixels: 0 x 5"):
        open_image(Image.new("RGB", (0, 5)))


def test_a_pil_image_that_cannot_be_loaded_is_an_image_error():
    lazy = Image.open(io.BytesIO(truncated("JPEG")))
    with pytest.raises(ImageError, match="truncated"):
        open_image(lazy)


def test_threads_agree():
    sources = [rotated_jpeg(picture(80 + i, 60)) for i in range(8)] * 8
    expected = [open_image(source).tobytes() for source in sources]
    found = decode_ahead(sources, lambda source: open_image(source).tobytes(), workers=8, ahead=16)
    assert [data for _, data in found] == expected


# hostile bytes


SEEDS = [
    rotated_jpeg(picture(32, 24)),
    *(encoded(picture(32, 24), format) for format in ("PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM")),
    encoded(picture(32, 24), "TIFF", compression="tiff_lzw"),
    encoded(picture(32, 24), "JPEG", progressive=True),
]
FUZZ = settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def opens_or_is_refused(data):
    for min_side in (0, 4):
        try:
            image = open_image(data, min_side=min_side, max_pixels=1_000_000)
        except ImageError as error:
            assert 0 < len(error.message) < 100
        else:
            assert image.mode == "RGB"
            assert min(image.size) > 0


@FUZZ
@given(st.sampled_from([seed[:n] for seed in SEEDS for n in (0, 4, 12, 40)]), st.binary(max_size=200))
def test_random_bytes_are_refused(head, tail):
    opens_or_is_refused(head + tail)


@FUZZ
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=6)), min_size=1, max_size=6),
    st.floats(0, 1) | st.just(1.0),
)
def test_mutated_images_open_or_are_refused(seed, edits, keep):
    data = bytearray(seed)
    for position, change in edits:
        start = int(position * len(data))
        data[start : start + len(change)] = change
    opens_or_is_refused(bytes(data[: int(keep * len(data))]))


# thumbnails


def test_thumbnail():
    small = Image.open(io.BytesIO(thumbnail(picture(640, 480))))
    assert (small.format, small.size) == ("JPEG", (160, 120))
    assert np.abs(np.asarray(small).astype(int) - np.asarray(picture(160, 120))).max() < 20
    assert Image.open(io.BytesIO(thumbnail(picture(20, 10)))).size == (20, 10)
    assert Image.open(io.BytesIO(thumbnail(Image.new("RGB", (1, 30000)), side=96))).size == (1, 96)
    private = Image.open(io.BytesIO(encoded(picture(), "JPEG", comment=b"secret", exif=b"Exif\0\0secret")))
    assert b"secret" not in thumbnail(private)


# finding files


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_folders_are_searched_in_order(tmp_path):
    names = ["b.jpg", "a.PNG", "sub/deep/c.webp", "sub/a.gif", "notes.txt", ".hidden.jpg", ".git/d.jpg", "raw/e.heic"]
    touch(*(tmp_path / name for name in names))
    found = [str(path.relative_to(tmp_path)) for path in find_images([tmp_path])]
    assert found == ["a.PNG", "b.jpg", "raw/e.heic", "sub/a.gif", "sub/deep/c.webp"]
    assert list(find_images([str(tmp_path)])) == list(find_images([tmp_path]))


def test_files_are_yielded_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touch(Path("a.jpg"), Path("notes.txt"))
    given = ["a.jpg", "notes.txt", "a.jpg", "missing.jpg", "missing"]
    assert list(find_images(given)) == [Path(name) for name in given]


def test_odd_names_pass_through(tmp_path):
    odd = [" two  spaces .jpg", "猫.jpg", "new\nline.jpg", os.fsdecode(b"caf\xe9.jpg"), "[1].jpg", "what*?.jpg"]
    touch(*(tmp_path / name for name in odd))
    assert sorted(path.name for path in find_images([tmp_path])) == sorted(odd)
    assert [path.name for name in odd for path in find_images([tmp_path / name])] == odd
    assert list(find_images(["null\0.jpg"])) == [Path("null\0.jpg")]


def test_folders_that_become_error_rows(tmp_path, monkeypatch):
    (tmp_path / "x.jpg").mkdir()
    touch(tmp_path / "x.jpg" / "inside.jpg", tmp_path / "y.jpg")
    (tmp_path / "gone.jpg").symlink_to("nowhere.jpg")
    assert [path.name for path in find_images([tmp_path])] == ["gone.jpg", "x.jpg", "y.jpg"]
    assert list(find_images([tmp_path / "x.jpg"])) == [tmp_path / "x.jpg"]

    def refuse(folder):
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    assert list(find_images([tmp_path])) == [tmp_path]


def test_symlink_loops_end(tmp_path):
    touch(tmp_path / "a" / "photo.jpg")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "self").symlink_to(".")
    assert list(find_images([tmp_path])) == [tmp_path / "a" / "photo.jpg"]
    assert list(find_images([tmp_path / "**" / "*.jpg"])) == [tmp_path / "a" / "photo.jpg"]
    assert list(find_images([tmp_path / "a" / "self"])) == [tmp_path / "a" / "self" / "photo.jpg"]


def test_globs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touch(*(tmp_path / name for name in ("b1.jpg", "a1.jpg", "a1.png", "n/a2.jpg", "n/m/a3.jpg", ".h/a4.jpg", "t.txt")))

    def found(*patterns):
        return [str(path) for path in find_images(patterns)]

    assert found("*.jpg") == ["a1.jpg", "b1.jpg"]
    assert found("a?.*") == ["a1.jpg", "a1.png"]
    assert found("[ab]1.jpg") == ["a1.jpg", "b1.jpg"]
    assert found("**/a*.jpg") == ["a1.jpg", "n/a2.jpg", "n/m/a3.jpg"]
    assert found("*/m/*.jpg") == ["n/m/a3.jpg"]
    assert found("n/**") == ["n/a2.jpg", "n/m/a3.jpg"]
    assert found("*") == ["a1.jpg", "a1.png", "b1.jpg", "n/a2.jpg", "n/m/a3.jpg", "t.txt"]
    assert found("*.gif", "*/q/*.jpg") == ["*.gif", "*/q/*.jpg"]
    assert found(str(tmp_path / "n" / "*.jpg")) == [str(tmp_path / "n" / "a2.jpg")]
    touch(tmp_path / "[ab]1.jpg")
    assert found("[ab]1.jpg") == ["[ab]1.jpg"]


def test_a_very_deep_folder_and_a_very_long_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(60):
        Path("d" * 20).mkdir()
        os.chdir("d" * 20)
    touch(Path("a.jpg"))
    os.chdir(tmp_path)
    assert sum(1 for _ in find_images([tmp_path])) == 1
    assert list(find_images(["n" * 5000, "n" * 300 + "*"])) == [Path("n" * 5000), Path("n" * 300 + "*")]


# decoding ahead


def test_order_is_kept_over_many_items():
    found = list(decode_ahead(range(10_000), lambda x: x * x, workers=4, ahead=32))
    assert found == [(x, x * x) for x in range(10_000)]


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_a_slow_consumer_bounds_what_is_in_flight(ahead):
    taken = itertools.count()
    started = []
    for done, (item, _) in enumerate(decode_ahead(taken, started.append, workers=4, ahead=ahead), start=1):
        time.sleep(0.002)
        assert item == done - 1
        assert len(started) <= done + ahead - 1
        if done == 100:
            break


def test_work_runs_ahead_of_the_consumer():
    both = threading.Barrier(2, timeout=20)
    assert len(list(decode_ahead(range(4), lambda _: both.wait(), workers=2, ahead=2))) == 4


def test_errors_are_values_and_bugs_are_raised():
    def load(item):
        if item == 2:
            raise ImageError("empty file")
        if item == 4:
            raise ZeroDivisionError
        return item

    run = decode_ahead(range(6), load, workers=2, ahead=3)
    assert [next(run) for _ in range(2)] == [(0, 0), (1, 1)]
    item, error = next(run)
    assert (item, str(error)) == (2, "empty file")
    assert next(run) == (3, 3)
    with pytest.raises(ZeroDivisionError):
        next(run)


def decoding_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("outword-decode")]


def test_an_error_that_waits_keeps_nothing_else_alive():
    """Up to 192 of them wait: with the frames that they came from they would keep as many canvases."""
    kept = []

    class Canvas:
        pass

    def load(_):
        canvas = Canvas()
        kept.append(weakref.ref(canvas))
        try:
            raise OSError("deep inside")
        except OSError as error:
            raise ImageError("damaged image", hint="save it again") from error

    ((_, error),) = decode_ahead([0], load, workers=1, ahead=1)
    assert str(error) == "damaged image. hint: save it again"
    assert kept[0]() is None
    assert error.__traceback__ is error.__cause__ is error.__context__ is None


def test_a_run_may_be_ended_in_one_of_its_own_threads():
    """The garbage collector does so where it finds a run that nobody holds any more."""
    may_end, ended = threading.Event(), []

    def load(item):
        if item:
            may_end.wait()
            run.close()
            ended.append(threading.current_thread())

    run = decode_ahead([0, 1], load, workers=1, ahead=2)
    next(run)
    may_end.set()
    deadline = time.monotonic() + 10
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    ended[0].join(10)
    assert not ended[0].is_alive() and list(run) == []


def test_threads_end_when_the_consumer_stops_early_or_the_source_fails():
    run = decode_ahead(itertools.count(), lambda x: x, workers=4, ahead=8)
    assert next(run) == (0, 0)
    assert decoding_threads()
    run.close()
    assert not decoding_threads()

    def broken():
        yield 1
        raise ParameterError("no more")

    with pytest.raises(ParameterError):
        list(decode_ahead(broken(), lambda x: x, workers=2, ahead=8))
    assert not decoding_threads()


def many_scans(times):
    """A progressive JPEG whose last scan is there so many times."""
    jpeg = encoded(picture(), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * times + jpeg[-2:]


def test_a_jpeg_of_very_many_scans_is_refused(tmp_path):
    assert open_image(many_scans(1)).size == picture().size
    for source in (many_scans(200), tmp_path / "slow.jpg"):
        (tmp_path / "slow.jpg").write_bytes(many_scans(200))
        with pytest.raises(ImageError, match="too many scans: 209 is over 32"):
            open_image(source)
    assert open_image(many_scans(20)).size == picture().size
    film = encoded(picture(), "JPEG") + b"\xff\xda" * 500  # what phones put behind a photo
    assert open_image(film).size == picture().size


def test_plain_text_and_endless_comments_are_no_image():
    """Pillow reads them byte by byte in Python: some megabytes take hours."""
    assert open_image(b"P6 # by hand\n# twice\n 2 1\n255\n" + bytes(range(6))).size == (2, 1)
    with pytest.raises(ImageError, match="PPM in plain text is not read"):
        open_image(b"P3\n1 1\n255\n" + b"#\n" * 1_000_000 + b"1 2 3")
    with pytest.raises(ImageError, match="not an image"):
        open_image(b"P6\n" + b"#\n" * 1_000_000 + b"1 1\n255\n123")
