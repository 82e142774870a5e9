"""Images in: untrusted bytes to RGB pixels."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin
from PIL.ImageFile import ImageFile

from outword.base.extras import EXTRAS, lacking
from outword.base.files import PathLike, sha256_file
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.budget import SMALL, decoding
from outword.photos.formats import HEAD, format_of
from outword.photos.headers import (
    check_parts,
    check_proportion,
    check_scans,
    check_unpacked,
    coefficients,
    decoding_cost,
    is_raw,
    long_row,
    rows_cost,
    tiff_kept,
    whole_cost,
)
from outword.photos.plan import Plan

ImageLike: TypeAlias = "PathLike | bytes | Image.Image | NDArray[np.uint8]"
Result = TypeVar("Result")

MAX_PIXELS = 178_956_970
"""An image with more pixels than this is refused: 512 MiB as 8-bit RGB."""

MAX_BYTES = 320 << 20
"""A file larger than this is not read whole into memory; 100 megapixels of 8-bit RGB have 286 MiB."""

LARGE = 16 << 20
"""Pixels from which on an image is taken to RGB in bands, and a decode takes a good part of a second."""

ROOM = 48 << 20  # bytes of photos that wait to be decoded, or one photo
BAND = 4 << 20  # pixels that are taken to RGB at a time
_OWN = {  # readers in place of Pillow's
    "Jpeg": (__name__, "Jpeg"),
    "Png": ("outword.photos.png", "Png"),
    "Tiff": ("outword.photos.tiff", "Tiff"),
    "Heif": ("outword.photos.heif", "open_heif"),
    "Raw": ("outword.photos.raw", "Raw"),
}
_PACKAGES = {"Heif": "pillow_heif", "Raw": "rawpy"}  # that a format is read with
_PLANS = {  # of formats whose readers read all of a file to open it
    "WebP": "outword.photos.webp",
    "Avif": "outword.photos.avif",
    "Heif": "outword.photos.heif",
    "Raw": "outword.photos.raw",
}
_NO_PLAN = Plan()
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class LargeImageError(ImageError):
    """An image is large, and only small ones were wanted; raised before any of its pixels is decoded."""


@dataclass(frozen=True)
class Blob(os.PathLike[str]):
    """An image file in memory under the name that it has in its archive; it goes wherever a path goes."""

    name: str  # nothing is opened by it
    data: bytes | ImageError = field(repr=False)  # the content of the file, or what is wrong with it

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


class Jpeg(JpegImagePlugin.JpegImageFile):
    """Pillow's JPEG reader, less its look for a resolution in EXIF, which warns wherever EXIF is odd."""

    orientation = 0  # by which it is turned, where EXIF does not say
    _given = 0  # bytes that libjpeg has been given

    def _open(self) -> None:
        super()._open()
        self.app, self.applist = {}, []  # segments that nobody asks for; EXIF is in `info`

    def _read_dpi_from_exif(self) -> None:
        pass

    def load_read(self, read_bytes: int) -> bytes:
        """The next bytes for libjpeg; not those of a file without an end, nor of one that is filled with FF.

        Within a run of FF libjpeg asks for more until it ends, and then begins again where it began.
        """
        data = super().load_read(read_bytes)
        self._given += len(data)
        check_bytes(self._given)
        if len(data) == read_bytes and not data.strip(b"\xff"):
            raise ImageError("damaged image", hint="open it in a viewer and save it again")
        return data


def open_image(source: ImageLike, *, min_side: int = 0, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Give an image as upright 8-bit RGB, or raise `ImageError` with a short reason.

    Only well-known raster formats are read; what an image will cost is reckoned before any pixel is decoded (see
    `headers`), and a damaged or truncated file is refused. The first frame of an animation counts; transparency
    is laid on white; EXIF orientation is applied; 16-bit and float pixels are scaled to 8 bits (see `_to_eight_bits`).
    Thread-safe.

    Args:
        source: a path, a `Blob`, bytes, a PIL image, or a uint8 array, (height, width, 3) or grey (height, width).
        min_side: 0 decodes in full. Otherwise a JPEG, or an image of more than `LARGE` pixels, may be given at a
            fraction of its size, as long as its short side stays at 2 * `min_side` or more, which changes a later
            resize to `min_side` by hardly anything and takes less time and memory.
        max_pixels: refuse images with more pixels than this.
    """
    return with_image(source, lambda image: image, min_side=min_side, max_pixels=max_pixels)


def with_image(
    source: ImageLike,
    use: Callable[[Image.Image], Result],
    *,
    min_side: int = 0,
    max_pixels: int = MAX_PIXELS,
    large: bool = True,
) -> Result:
    """What `use` makes of the image that `open_image` would give, whose memory counts as taken until then.

    Not `large` raises `LargeImageError` for a file that must wait for its turn, or that takes long.
    """
    if isinstance(source, Image.Image):
        return use(_finish(source, min_side, max_pixels))
    if isinstance(source, np.ndarray):
        return use(_finish(_from_array(source), min_side, max_pixels))
    if isinstance(source, bytes | Blob):
        data = read_bytes(source) if isinstance(source, Blob) else source
        return _decode(io.BytesIO(data), use, min_side, max_pixels, large=large, held=len(data))
    if isinstance(source, str | os.PathLike):
        with open_file(source) as file:
            return _decode(file, use, min_side, max_pixels, large=large)
    raise InputError(
        f"an image must be a path, bytes, a PIL image or a uint8 array, got {type(source).__name__}",
        hint="give one image, not a list",
    )


def read_bytes(path: PathLike) -> bytes:
    """The content of an image file, for `open_image`, or `ImageError` with a short reason."""
    if isinstance(path, Blob):
        if isinstance(path.data, ImageError):
            raise path.data.bare()
        check_bytes(len(path.data))
        return path.data
    with open_file(path) as file:
        check_bytes(os.fstat(file.fileno()).st_size)
        try:
            return file.read()
        except (OSError, MemoryError) as error:
            raise _refusal(error) from error


def read_hashed(path: PathLike | bytes) -> tuple[bytes, bytes | PathLike]:
    """The sha256 of an image file, and its bytes; of a large one its path, since several threads do this at once."""
    if isinstance(path, bytes):
        return hashlib.sha256(path).digest(), path
    if not isinstance(path, Blob):
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size > ROOM:
                try:
                    return bytes.fromhex(sha256_file(Path(path))), path
                except OSError as error:
                    raise _refusal(error) from error
    data = read_bytes(path)
    return hashlib.sha256(data).digest(), data


def check_bytes(size: int) -> None:
    """Raise `ImageError` for a file that is too large to be read whole."""
    if size > MAX_BYTES:
        raise ImageError(f"too large: {size} bytes is over {MAX_BYTES}", hint="shrink it first")


def thumbnail(image: Image.Image, side: int = 160) -> bytes:
    """JPEG bytes of an RGB image, shrunk so that its long side is at most `side`; nothing but pixels goes along."""
    scale = min(1.0, side / max(image.size))
    width, height = (max(1, round(length * scale)) for length in image.size)
    small = image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0)
    small.info = {}
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def _from_array(array: NDArray[np.uint8]) -> Image.Image:
    grey = array.ndim == 2
    if array.dtype != np.uint8 or not (grey or (array.ndim == 3 and array.shape[2] == 3)) or array.size == 0:
        raise ImageError(
            f"an array must be uint8, (height, width, 3) or (height, width), got {array.dtype} of shape {array.shape}",
            hint="scale it to 0..255 and drop any alpha channel",
        )
    return Image.fromarray(array)


def open_file(path: PathLike, buffer: int = -1) -> IO[bytes]:
    """Open a regular file, or raise `ImageError`, which says in plain words why that cannot be done."""
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISREG(mode):  # a pipe would hang, a device never ends
            return Path(path).open("rb", buffer)
    except (FileNotFoundError, NotADirectoryError):
        raise ImageError("no such file") from None
    except PermissionError:
        raise ImageError("permission denied") from None
    except OSError as error:
        raise ImageError((error.strerror or "cannot be opened").lower()) from None
    except ValueError:
        raise ImageError("no such file", hint="the name holds a null character") from None
    if not stat.S_ISDIR(mode):
        raise ImageError("not a regular file", hint="save it to a file first")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ImageError("permission denied")
    raise ImageError("is a directory", hint="name the files in it, or rename it so that it does not look like an image")


def _decode(
    file: IO[bytes], use: Callable[[Image.Image], Result], min_side: int, max_pixels: int, *, large: bool, held: int = 0
) -> Result:
    """Read the header, reckon what the rest will cost, and only then the pixels; `held` bytes are in memory already."""
    source = _source(file)
    with ExitStack() as taken:
        if source.kind in _PLANS or _kept_tags(source):
            image = _opened_whole(source, min_side, max_pixels, taken, large=large, held=held)
        else:
            image, pixels, cost = _opened(source, min_side, max_pixels)
            _check_turn(pixels, cost, large)
            taken.enter_context(decoding().room(cost + held))
        rgb = _finish(image, min_side, max_pixels)
        del image  # its pixels, where they were not RGB
        rgb.info = {}
        return use(rgb)


def _check_turn(pixels: int, cost: int, large: bool) -> None:
    """Raise `LargeImageError` for a large image where only small ones are wanted."""
    if not large and (cost > SMALL or pixels > LARGE):
        raise LargeImageError(f"it has {pixels:,} pixels", hint="decode it apart from others")


class _Source(NamedTuple):
    """An open image file, the name of its format, and how many bytes it has."""

    file: IO[bytes]
    kind: str
    size: int


class _Opened(NamedTuple):
    """An image whose pixels are still to be decoded, how many its file has, and the bytes that decoding will take."""

    image: ImageFile
    pixels: int
    cost: int


@contextmanager
def _refusing() -> Iterator[None]:
    """A block in which all errors are an `ImageError`: hostile bytes make Pillow raise nearly anything."""
    try:
        yield
    except OutwordError:
        raise
    except Exception as error:
        raise _refusal(error) from error


def _source(file: IO[bytes]) -> _Source:
    """An open file with its format and size."""
    with _refusing():
        head = file.read(HEAD)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return _Source(file, _kind(file, head), size)


def _opened_whole(
    source: _Source, min_side: int, max_pixels: int, taken: ExitStack, *, large: bool, held: int
) -> ImageFile:
    """Open a file whose reader reads all of it to open it: room is taken before that, and `taken` gives it back.

    If it turns out to need more room than planned, what was read is dropped before this waits for more: others wait,
    too.
    """
    plan, planned = _planned(source, min_side, max_pixels)
    _check_turn(plan.width * plan.height, planned, large)
    taken.enter_context(decoding().room(planned + held))
    image, pixels, cost = _opened(source, min_side, max_pixels, plan)
    _check_turn(pixels, cost, large)
    if cost <= planned:
        return image
    del image
    taken.close()
    taken.enter_context(decoding().room(cost + held))
    return _opened(source, min_side, max_pixels, plan).image


def _planned(source: _Source, min_side: int, max_pixels: int) -> tuple[Plan, int]:
    """What the header of a file that will be read whole says of the image, and the bytes that it will take."""
    if kept := _kept_tags(source):
        return Plan(kept=kept), kept
    with _refusing():
        check_bytes(source.size)
        plan: Plan = importlib.import_module(_PLANS[source.kind]).plan(source.file)
        pixels = plan.width * plan.height
        if pixels:
            check_size(plan.width, plan.height, max_pixels)
            check_unpacked(plan.width, plan.height, pixels * plan.least, source.size)
        cost = whole_cost(pixels, source.kind, plan.working, source.size)
        return plan, cost + _conversion_cost((plan.width, plan.height), not plan.clear, min_side)


def _kept_tags(source: _Source) -> int:
    """Bytes that Pillow takes for the tags of a TIFF before it knows the image, where they are many; else 0."""
    if source.kind != "Tiff":
        return 0
    with _refusing():
        return tiff_kept(source.file)


def _opened(source: _Source, min_side: int, max_pixels: int, plan: Plan = _NO_PLAN) -> _Opened:
    """Read the header of an image by Pillow or a reader of ours, and reckon what the rest will cost."""
    file, kind, size = source
    with _refusing():
        scans = check_parts(file, kind)
        file.seek(0, os.SEEK_END)  # else what is buffered and what is read are both held while they are joined
        file.seek(0)
        image = _reader(kind)(file)
        check_size(*image.size, max_pixels)
        check_proportion(image, size)
        if kind == "Raw" and (preview := _preview(image, min_side, max_pixels)):
            return preview
        kept, pixels = _kept(image, size, scans), image.width * image.height
        if plan.working:
            image.working_bytes = max(plan.working, getattr(image, "working_bytes", 0))  # type: ignore[attr-defined]
        if kind in ("Jpeg", "Raw") and min_side > 0:
            image.draft(None, (2 * min_side, 2 * min_side))
        conversion = _conversion_cost(image.size, _is_plain(image), min_side)
        return _Opened(image, pixels, decoding_cost(image, size) + kept + plan.kept + conversion)


def _reader(kind: str) -> Callable[[IO[bytes]], ImageFile]:
    """What opens a file of a format."""
    module, name = _OWN.get(kind, (f"PIL.{kind}ImagePlugin", f"{kind}ImageFile"))
    reader: Callable[[IO[bytes]], ImageFile] = getattr(importlib.import_module(module), name)
    return reader


def _kept(image: ImageFile, size: int, scans: int) -> int:
    """Refuse an image that its format makes slow to decode; returns the bytes that are kept of it besides pixels."""
    if isinstance(image, Jpeg):
        check_scans(image, scans)
        return coefficients(image) if scans else 0
    if image.format == "TIFF":
        image.check(size)  # type: ignore[attr-defined]
    row = long_row(image)
    image.decodermaxblock = max(image.decodermaxblock, row)  # else it is put together from pieces, over and over
    return 2 * row


def _preview(image: Any, min_side: int, max_pixels: int) -> _Opened | None:
    """The same of the JPEG in a RAW file, where it can be read and is large enough; else None."""
    data = image.preview() if min_side > 0 else b""
    try:
        found, pixels, cost = _opened(_source(io.BytesIO(data)), min_side, max_pixels)
    except ImageError:
        return None
    if not isinstance(found, Jpeg) or min(found.size) < 2 * min_side:
        return None
    if exif_orientation(_exif(found)) == 1:
        found.orientation = image.orientation
    return _Opened(found, pixels, cost + len(data))


def _kind(file: IO[bytes], head: bytes) -> str:
    """The name of the format of a file, which is left at its beginning; one that needs an extra says which."""
    kind = format_of(head).name
    if kind == "Tiff" and is_raw(file):
        kind = "Raw"
    package = _PACKAGES.get(kind)
    if package and (lack := lacking(package)):
        raise ImageError(
            f"{EXTRAS[package][1]} is not read without an extra: {lack.hint}", hint="or save it as JPEG or PNG first"
        )
    return kind


def check_size(width: int, height: int, max_pixels: int) -> None:
    """Raise `ImageError` for an image without pixels, or with too many."""
    if width * height > max_pixels:
        raise ImageError(f"too many pixels: {width} x {height} is over {max_pixels}", hint="shrink it first")
    if width * height == 0:
        raise ImageError(f"no pixels: {width} x {height}")


def _refusal(error: Exception) -> ImageError:
    """Say in plain words what Pillow's exception means."""
    text = str(error).lower()
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return ImageError("too many pixels", hint="shrink it first")
    if isinstance(error, MemoryError):
        return ImageError("not enough memory to decode it", hint="shrink it first")
    if isinstance(error, ImportError) or "not installed" in text:
        return ImageError("this Pillow cannot read the format", hint="pip install --upgrade pillow")
    if isinstance(error, OSError) and error.strerror:
        return ImageError(error.strerror.lower())
    ended = isinstance(error.__cause__ or error, EOFError | IndexError | struct.error)
    if ended or re.search("truncat|not enough|end of file|incomplete|buffer overrun", text):
        return ImageError("truncated image", hint="fetch or copy the file again")
    return ImageError("damaged image", hint="open it in a viewer and save it again")


def _finish(image: Image.Image, min_side: int, max_pixels: int) -> Image.Image:
    """Upright RGB of an image whose pixels may still have to be decoded; the image itself is left as it is."""
    check_size(*image.size, max_pixels)
    with _refusing():
        image.load()
        turn = _TURNS.get(getattr(image, "orientation", 0) or exif_orientation(_exif(image)))
        rgb = _rgb(image, min_side)
        if turn is not None:
            rgb = rgb.transpose(turn)
    if rgb is not image:
        rgb.info = {}  # else a second call would turn it again
    return rgb


def _rgb(image: Image.Image, min_side: int) -> Image.Image:
    """An image as RGB; a large one band by band, so that there is no second canvas, and reduced where it may be."""
    width, height = image.size
    factor = _factor(image.size, min_side)
    if _is_plain(image) and factor == 1:
        return image
    deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    to_rgb = _to_eight_bits(image) if deep else _plainly
    if width * height <= LARGE:
        return to_rgb(image)
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    rows = max(1, BAND // (width * factor)) * factor
    for top in range(0, height, rows):
        band = to_rgb(image.crop((0, top, width, min(top + rows, height))))
        small.paste(band.reduce(factor) if factor > 1 else band, (0, top // factor))
    return small


def _factor(size: tuple[int, int], min_side: int) -> int:
    """By how much a large image is reduced while it is taken to RGB: its short side stays at 2 * `min_side` or more."""
    large = size[0] * size[1] > LARGE
    return max(1, min(size) // (2 * min_side)) if large and min_side > 0 else 1


def _conversion_cost(size: tuple[int, int], plain: bool, min_side: int) -> int:
    """Bytes that `_finish` takes for an image besides those of its own pixels: another canvas, or two to turn it."""
    if _factor(size, min_side) > 1:
        return 0
    return (4 * size[0] * size[1] + rows_cost(size)) * (1 if plain else 2)


def _plainly(image: Image.Image) -> Image.Image:
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(rgba, mask=rgba)
        return white
    return image.convert("RGB")


def _is_plain(image: Image.Image) -> bool:
    return image.mode == "RGB" and not image.has_transparency_data


def _to_eight_bits(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """How integer or float grey pixels of an image, or of a part of it, become 8-bit RGB.

    16-bit pixels, and 32-bit integers that fit in 16 bits, run from 0 to 65535. Floats run from 0 to the first of 1,
    255 and 65535 that holds them all. Anything else is stretched from its least to its greatest value. What is not
    finite does not count for that: infinity is an end, NaN is black.
    """
    rows = max(1, BAND // image.width)
    bands = ((0, y, image.width, min(y + rows, image.height)) for y in range(0, image.height, rows))
    parts = (_floats(image.crop(band)) for band in bands)
    finite = (part[np.isfinite(part)] for part in parts)
    ends = [(float(part.min()), float(part.max())) for part in finite if len(part)]
    if not ends:
        raise ImageError("it has no finite pixels", hint="write numbers into it")
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    for top in (1.0, 255.0, 65535.0) if image.mode == "F" else (65535.0,):
        if low >= 0 and high <= top:
            low, high = 0.0, top
            break

    def to_rgb(part: Image.Image) -> Image.Image:
        values = _floats(part)
        np.nan_to_num(values, copy=False, nan=low, posinf=high, neginf=low)
        values -= np.float32(low)
        values *= np.float32(255 / max(high - low, 1e-30))
        return Image.fromarray(np.rint(values, out=values).astype(np.uint8)).convert("RGB")

    return to_rgb


def _floats(image: Image.Image) -> NDArray[np.float32]:
    """Pixels (height, width), those that are finite so small that differences of them are, too."""
    values = np.array(image, dtype=np.float32)
    return np.clip(values, -1e30, 1e30, out=values, where=np.isfinite(values)) if image.mode == "F" else values


def _exif(image: Image.Image) -> bytes:
    """The EXIF block of an image, or b"". Pillow turns TIFF by itself and keeps no block for it."""
    exif = image.info.get("exif")
    if isinstance(exif, bytes):
        return exif
    raw = image.info.get("Raw profile type exif")  # how older tools keep EXIF in a PNG
    return bytes.fromhex("".join(raw.split("\n")[3:])) if isinstance(raw, str) else b""


def exif_orientation(exif: bytes) -> int:
    """Read the orientation, 1 to 8, from an EXIF block; 1 where there is none.

    Pillow's own reader goes through all tags and warns about odd ones; warnings cannot be silenced for one thread.
    """
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return 1
    with suppress(struct.error):
        (start,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", exif, entry)
            if tag == 0x0112 and kind == 3:
                return int(value)
    return 1
