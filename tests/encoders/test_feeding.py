"""Photos to pixels beside a device: interpreted kernels, simplejpeg, and hardware that is played by Pillow."""

import ctypes
import io
from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from outword.base.extras import install  # noqa: E402
from outword.encoders import packed  # noqa: E402
from outword.encoders.loader import Loader  # noqa: E402
from outword.encoders.preprocess import Preprocess  # noqa: E402
from outword.encoders.torch import decoders, feeding, nvjpeg  # noqa: E402
from outword.encoders.torch.triton_resize import Photo, resize  # noqa: E402
from outword.errors import ImageError, ParameterError  # noqa: E402
from outword.photos.ahead import attempt  # noqa: E402
from outword.photos.decode import _TURNS, Blob  # noqa: E402
from outword.vectors.reader import read  # noqa: E402
from outword.vectors.source import Identity, find_source  # noqa: E402

SIDE = 16
CPU = torch.device("cpu") if not torch.cuda.is_available() else torch.device("cuda")
WAYS = {
    "bicubic": Preprocess(SIDE, SIDE, "bicubic", [0] * 3, [1] * 3),
    "bilinear": Preprocess(SIDE, SIDE + 3, "bilinear", [0] * 3, [1] * 3, "floor"),
}


def blocks(height, width, seed=0):
    """A photo with hard edges, where bicubic overshoots."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    return np.array(Image.fromarray(coarse).resize((width, height), Image.Resampling.NEAREST))


def jpeg(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_resize_is_pillows(way):
    shapes = [(24, 31), (40, 17), (SIDE, SIDE), (9, 13), (90, 20), (33, 33), (25, 60), (18, 19)]
    photos = [torch.from_numpy(blocks(*shape, seed)).to(CPU) for seed, shape in enumerate(shapes)]
    out = torch.zeros((10, SIDE, SIDE, 3), dtype=torch.uint8, device=CPU)
    places = {9 - turn: Photo(p.data_ptr(), *p.shape[:2], turn) for turn, p in enumerate(photos, start=1)}
    resize(places, way, out)
    for turn, photo in enumerate(photos, start=1):
        image = Image.fromarray(photo.cpu().numpy())
        wanted = way(image.transpose(_TURNS[turn]) if turn > 1 else image)
        np.testing.assert_allclose(out[9 - turn].cpu().numpy(), wanted, atol=1)  # 1 where a half is rounded
        assert (out[9 - turn].cpu().numpy() == wanted).mean() > 0.99
    assert not out[0].any()  # the other places are left alone
    assert not out[9].any()


def test_a_grey_photo_stays_what_it_is():
    photo = torch.full((50, 70, 3), 128, dtype=torch.uint8, device=CPU)
    out = torch.zeros((1, SIDE, SIDE, 3), dtype=torch.uint8, device=CPU)
    resize({0: Photo(photo.data_ptr(), 50, 70, 6)}, WAYS["bicubic"], out)
    assert (out == 128).all()


class Hardware:
    """Decodes as nvJPEG does: a whole batch or nothing, to addresses."""

    def __init__(self, refuses=()):
        self.refuses, self.batches = refuses, []

    def decode(self, files, places, pitches, stream):
        self.batches.append(len(files))
        if any(file in self.refuses for file in files):
            return False
        for file, place, pitch in zip(files, places.tolist(), pitches.tolist(), strict=True):
            rows = np.ascontiguousarray(Image.open(io.BytesIO(file)).convert("RGB"))
            assert pitch == rows.shape[1] * 3
            ctypes.memmove(place, rows.ctypes.data, rows.nbytes)
        return True


def loader_with(decoder, hardware=None):
    loader = feeding.device_loader(WAYS["bicubic"], decoder, torch.device("cpu"))
    if hardware:
        vars(loader)["_hardware"] = hardware
    return loader


def content(loaded):
    """What was loaded, to be compared: the message of an error, the bytes of pixels or of a file."""
    if isinstance(loaded, feeding.Unpacked):
        size = 3 * loaded.height * loaded.width
        return loaded[2:], loaded.block[loaded.offset : loaded.offset + size].numpy().tobytes()
    if isinstance(loaded, np.ndarray):
        return loaded.shape, loaded.tobytes()
    return loaded.message if isinstance(loaded, ImageError) else loaded


PHOTOS = {
    "plain": jpeg(blocks(40, 50)),
    "4:4:4": jpeg(blocks(40, 50, 1), subsampling=0),
    "grey": jpeg(blocks(40, 50, 2)[..., 0]),
    "turned": jpeg(blocks(40, 50, 3), exif=turned(6)),
    "large": jpeg(blocks(150, 160, 4)),
    "progressive": jpeg(blocks(40, 50, 5), progressive=True),
    "tiny": jpeg(blocks(9, 9)),
    "truncated": jpeg(blocks(40, 50, 6))[:-400],
    "empty": b"",
}


@pytest.mark.parametrize("decoder", ["simplejpeg", "nvjpeg"])
@pytest.mark.skipif(CPU.type == "cuda", reason="plays a device on the CPU")
def test_pixels_and_errors_are_those_of_pillow(decoder, tmp_path):
    if decoder == "simplejpeg":
        pytest.importorskip("simplejpeg")
    way, hardware = WAYS["bicubic"], Hardware()
    loader, plain = loader_with(decoder, hardware), Loader(WAYS["bicubic"], WAYS["bicubic"].min_side)
    (tmp_path / "photo.jpg").write_bytes(PHOTOS["plain"])
    more = {"path": tmp_path / "photo.jpg", "string": str(tmp_path / "photo.jpg"), "blob": Blob("b", PHOTOS["grey"])}
    more |= {
        "missing": tmp_path / "none.jpg",
        "folder": tmp_path,
        "array": blocks(40, 50),
        "lost": Blob("l", ImageError("gone")),
    }
    loaded = loader.load([*PHOTOS.values(), *more.values()])
    fast = {name for name, one in zip([*PHOTOS, *more], loaded, strict=True) if isinstance(one, tuple)}
    assert fast == {"plain", "4:4:4", "grey", "turned", "large", "path", "string", "blob"}
    for image, one in zip([*PHOTOS.values(), *more.values()], loaded, strict=True):
        alone = attempt(loader.load_one, image)  # as a service loads it
        assert content(alone) == content(one)
    good = [one for one in loaded if not isinstance(one, ImageError)]
    pixels, errors = loader.gather(good)
    assert errors == [None] * len(good)
    found = iter(pixels.numpy())
    for name, one in zip([*PHOTOS, *more], loaded, strict=True):
        image = (PHOTOS | more)[name]
        if isinstance(one, ImageError):
            with pytest.raises(ImageError) as told:
                plain(image)
            assert one.message == told.value.message
        elif name == "large" and decoder == "nvjpeg":  # decoded in full, where Pillow takes a half of it
            assert np.abs(next(found).astype(int) - way(Image.open(io.BytesIO(image)))).max() <= 1
        else:
            np.testing.assert_array_equal(next(found), plain(image), name)
    assert hardware.batches == ([8] if decoder == "nvjpeg" else [])


@pytest.mark.skipif(CPU.type == "cuda", reason="plays a device on the CPU")
def test_what_the_hardware_refuses_goes_through_pillow(monkeypatch):
    good = [jpeg(blocks(40, 50, seed)) for seed in range(6)]
    table = good[2].index(b"\xff\xc4") + 6
    damaged = good[2][:table] + b"\xff" * 6 + good[2][table + 6 :]  # a table that makes no sense
    hardware = Hardware(refuses=[good[1], damaged])
    loader = loader_with("nvjpeg", hardware)
    pixels, errors = loader.gather(loader.load([good[0], good[1], damaged, *good[3:]]))
    assert [error and error.message for error in errors] == [None, None, "damaged image", None, None, None]
    plain = Loader(WAYS["bicubic"], SIDE)
    np.testing.assert_array_equal(pixels.numpy(), np.stack([plain(file) for file in good[:2] + good[3:]]))
    assert hardware.batches[0] == 6
    assert hardware.batches.count(1) >= 2  # down to those that are to blame
    monkeypatch.setattr(packed, "PACKED", len(good[3]) - 1)
    assert isinstance(loader.load(good[3:4])[0], np.ndarray)  # too large to wait
    monkeypatch.setattr(packed, "PACKED", 1 << 20)
    monkeypatch.setattr(feeding, "ON_DEVICE", 3 * 40 * 50 * 2)
    hardware.batches.clear()
    again, _ = loader.gather(loader.load(good[3:]))
    assert hardware.batches == [2, 1]
    np.testing.assert_array_equal(again.numpy(), pixels[-3:].numpy())


@pytest.mark.skipif(CPU.type == "cuda", reason="plays a device on the CPU")
def test_chunks_are_the_same_whatever_decodes(tmp_path):
    for number, (name, data) in enumerate(PHOTOS.items()):
        (tmp_path / f"{number} {name.replace(':', '')}.jpg").write_bytes(data)
    (tmp_path / "a note.png").write_bytes(b"no image")

    def known(photo):
        return photo.name, photo.place, photo.digest

    def chunks(loader):
        source = find_source([tmp_path], Identity("", ""))
        return list(read(source.jobs(), loader, 4, hashed=True))

    ours, theirs = chunks(loader_with("nvjpeg", Hardware())), chunks(Loader(WAYS["bicubic"], 10**6))
    assert [len(chunk.photos) for chunk in ours] == [4, 4, 2]
    for one, other in zip(ours, theirs, strict=True):
        assert (one.span, one.unreadable) == (other.span, other.unreadable)
        assert [known(photo) for photo in one.photos] == [known(photo) for photo in other.photos]
        np.testing.assert_allclose(np.asarray(one.values), other.values, atol=1)


def test_a_photo_that_shows_its_damage_late_is_an_error_of_its_own(tmp_path):
    class Late(Loader):
        def gather(self, loaded):
            pixels, errors = super().gather(loaded)
            return pixels[1:], [ImageError("damaged image"), *errors[1:]]

    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(PHOTOS["plain"])
    source = find_source([tmp_path], Identity("", ""))
    (chunk,) = read(source.jobs(), Late(WAYS["bicubic"], SIDE), 8, hashed=True)
    assert chunk.unreadable == [(str(tmp_path / "0.jpg"), "damaged image")]
    assert len(chunk.values) == 2 and [photo.place for photo in chunk.good] == [1, 2]


def test_the_choice(monkeypatch):
    monkeypatch.delenv(decoders.VARIABLE, raising=False)
    there = {"triton", "simplejpeg"}
    monkeypatch.setattr(decoders, "find_spec", lambda name: name in there or None)
    monkeypatch.setattr(nvjpeg, "load", lambda: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    cuda = torch.device("cuda")
    assert (decoders.choose(torch.device("cpu")), decoders.choose(cuda)) == ("pillow", "simplejpeg")
    monkeypatch.setattr(nvjpeg, "load", lambda: Library(nvjpegCreateEx=[6]))  # no hardware for it
    assert decoders.choose(cuda) == "simplejpeg"
    monkeypatch.setattr(nvjpeg, "load", Library)
    assert decoders.choose(cuda) == "nvjpeg"
    there.remove("triton")
    assert decoders.choose(cuda) == "pillow"
    there.add("triton")
    for asked in decoders.DECODERS:
        monkeypatch.setenv(decoders.VARIABLE, asked)
        assert (decoders.choose(cuda), decoders.choose(torch.device("cpu"))) == (asked, "pillow")
    there.remove("simplejpeg")
    monkeypatch.setenv(decoders.VARIABLE, "simplejpeg")
    with pytest.raises(ParameterError, match="not installed, or has no hardware here") as told:
        decoders.choose(cuda)
    assert told.value.hint == f"{install('simplejpeg')}, or leave it out"
    monkeypatch.setenv(decoders.VARIABLE, "libjpeg")
    with pytest.raises(ParameterError, match="must be one of nvjpeg, simplejpeg, pillow"):
        decoders.choose(torch.device("cpu"))


class Library:
    """nvJPEG's functions; the k-th call of each answers with `statuses[name][k]`."""

    def __init__(self, **statuses):
        self.statuses, self.calls = statuses, []

    def __getattr__(self, name):
        def call(*given):
            self.calls.append((name, given))
            if name == "nvjpegDecodeBatched":
                self.images = (
                    np.ctypeslib.as_array((ctypes.c_uint64 * 16).from_address(given[4].value)).reshape(2, 8).tolist()
                )
            answers = self.statuses.get(name, [])
            return answers.pop(0) if answers else 0

        return call


def test_nvjpeg_is_given_a_batch_in_one_call(monkeypatch):
    library = Library(nvjpegDecodeBatched=[0, 4, 0])
    monkeypatch.setattr(nvjpeg, "load", lambda: library)
    decoder = nvjpeg.Decoder()
    places, pitches = np.array([1000, 2000]), np.array([30, 60])
    assert decoder.decode([b"ab", b"cde"], places, pitches, 7)
    _, (_, _, data, lengths, _, stream) = library.calls[-1]
    assert (list(data), list(lengths), stream.value) == ([b"ab", b"cde"], [2, 3], 7)
    assert library.images == [[1000, 0, 0, 0, 30, 0, 0, 0], [2000, 0, 0, 0, 60, 0, 0, 0]]
    assert not decoder.decode([b"ab", b"cde"], places, pitches, 7)
    assert decoder.decode([b"ab", b"cde"], places, pitches, 7)
    begun = [name for name, _ in library.calls].count("nvjpegDecodeBatchedInitialize")
    assert begun == 2  # once for the size, and once more behind what failed


def test_nvjpeg_that_cannot_be_used_says_so(monkeypatch):
    monkeypatch.setattr(nvjpeg, "load", lambda: None)
    with pytest.raises(OSError, match="cannot be loaded"):
        nvjpeg.Decoder()
    monkeypatch.setattr(nvjpeg, "load", lambda: Library(nvjpegCreateEx=[6]))
    with pytest.raises(OSError, match="status 6"):
        nvjpeg.Decoder()
