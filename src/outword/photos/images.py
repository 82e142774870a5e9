"""Images in: untrusted bytes to RGB pixels, the files behind a list of paths, and decoding ahead of the encoder."""

from __future__ import annotations

import glob
import heapq
import importlib
import io
import os
import re
import stat
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin
from PIL.ImageFile import ImageFile

from outword.errors import ImageError, InputError, LargeImageError, OutwordError
from outword.photos.budget import SMALL, decoding
from outword.photos.headers import check_parts, check_proportion, check_scans, coefficients, decoding_cost

ImageLike: TypeAlias = "str | os.PathLike[str] | bytes | Image.Image | NDArray[np.uint8]"
Entry: TypeAlias = tuple[str, bool]  # a name in a folder, and whether it is a folder
Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_PIXELS = 178_956_970
"""An image with more pixels than this is refused: 512 MiB as 8-bit RGB."""

MAX_BYTES = 320 << 20
"""A file larger than this is not read whole into memory; 100 megapixels of 8-bit RGB have 286 MiB."""

LARGE = 16 << 20
"""Pixels from which on an image is taken to RGB in bands, and a decode takes a good part of a second."""

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"}
    | {".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".avif", ".heic", ".heif"}
)
"""What is taken from a folder. HEIC is here to get an error row: a folder of phone photos must not look empty."""

NAMES = 200_000  # of a folder that are in memory
PARTS = 256  # of a glob pattern, between slashes
ANY_DEPTH = 2  # "**" in a glob pattern: each goes through all folders below each folder that the one before it found
ROOM = 48 << 20  # bytes of photos that wait to be decoded, or one photo
BAND = 4 << 20  # pixels that are taken to RGB at a time
HEAD = 1024  # bytes by which a file is told; the whole head of a PPM must be among them, comments too
_READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM and AVIF are read"
_PLUGINS = [  # how a file begins, and the Pillow class that reads it; nothing else is ever tried
    (re.compile(rb"\xff\xd8\xff"), "outword.photos.images", "_Jpeg"),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "PIL.PngImagePlugin", "PngImageFile"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "PIL.WebPImagePlugin", "WebPImageFile"),
    (re.compile(rb"GIF8[79]a"), "PIL.GifImagePlugin", "GifImageFile"),
    (re.compile(rb"BM"), "PIL.BmpImagePlugin", "BmpImageFile"),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), "outword.photos.tiff", "Tiff"),
    (re.compile(rb"P[4-6f](\s+(#[^\n]*\n\s*)*[-+.\d]+){2,3}\s"), "PIL.PpmImagePlugin", "PpmImageFile"),
    (re.compile(rb"....ftyp(avi[fs]|mif1|msf1)", re.DOTALL), "PIL.AvifImagePlugin", "AvifImageFile"),
]
_REFUSED = [  # formats that people do have, and that are not read
    (re.compile(rb"....ftyphe", re.DOTALL), "HEIC"),
    (re.compile(rb"P[1-3]\s"), "PPM in plain text"),  # Pillow takes hours for some megabytes of it
    (re.compile(rb"%PDF"), "PDF"),
    (re.compile(rb"%!PS|\xc5\xd0\xd3\xc6"), "PostScript"),
    (re.compile(rb"8BPS"), "Photoshop"),
    (re.compile(rb"\s*<svg|\s*<\?xml"), "SVG or XML"),
]
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class Blob(os.PathLike[str]):
    """An image file in memory under the name that it has in its archive; it goes wherever a path goes.

    Attributes:
        name: only ever a name; nothing is opened by it.
        data: the content of the file, or what is wrong with it.
    """

    name: str
    data: bytes | ImageError = field(repr=False)

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


class _Jpeg(JpegImagePlugin.JpegImageFile):
    """Pillow's JPEG reader, less its look for a resolution in EXIF, which warns wherever EXIF is odd."""

    def _read_dpi_from_exif(self) -> None:
        pass


def open_image(source: ImageLike, *, min_side: int = 0, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Give an image as upright 8-bit RGB, or raise `ImageError` with a short reason.

    Only well-known raster formats are read; what an image will cost is reckoned before any pixel is decoded (see
    `headers`), and a damaged or truncated file is refused. The first frame of an animation counts; transparency
    is laid on white; EXIF orientation is applied; 16-bit and float pixels are scaled to 8 bits (see `_to_eight_bits`).
    Thread-safe.

    Args:
        source: a path, a `Blob`, the bytes of an image file, a PIL image, or a uint8 array, RGB (height, width, 3) or
            grey (height, width).
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
    """What `use` makes of an image (see `open_image`), whose memory counts as taken until then.

    Args:
        source, min_side, max_pixels: see `open_image`.
        use: called with upright 8-bit RGB.
        large: False raises `LargeImageError` for a file that must wait for its turn, or that takes long.
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


def read_bytes(path: str | os.PathLike[str]) -> bytes:
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


def open_file(path: str | os.PathLike[str], buffer: int = -1) -> IO[bytes]:
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
    file: IO[bytes],
    use: Callable[[Image.Image], Result],
    min_side: int,
    max_pixels: int,
    *,
    large: bool,
    held: int = 0,
) -> Result:
    """Read the header, reckon what the rest will cost, and only then the pixels; `held` bytes are in memory already."""
    image, pixels, cost = _opened(file, min_side, max_pixels)
    if not large and (cost > SMALL or pixels > LARGE):
        raise LargeImageError(f"it has {pixels:,} pixels", hint="decode it apart from others")
    with decoding().room(cost + held):
        rgb = _finish(image, min_side, max_pixels)
        del image  # its pixels, where they were not RGB
        rgb.info = {}
        return use(rgb)


def _opened(file: IO[bytes], min_side: int, max_pixels: int) -> tuple[ImageFile, int, int]:
    """An image whose pixels are still to be decoded, how many its file has, and the bytes that decoding will take."""
    try:
        head = file.read(HEAD)
        reader = _reader(head)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        scans = check_parts(file, head)
        image = reader(file)
        _check_size(image, max_pixels)
        check_proportion(image, size)
        kept, pixels = 0, image.width * image.height
        if isinstance(image, _Jpeg):
            check_scans(image, scans, size)
            kept = coefficients(image) if scans > 1 else 0
            if min_side > 0:
                image.draft(None, (2 * min_side, 2 * min_side))
        return image, pixels, decoding_cost(image, size) + kept + _conversion_cost(image, min_side)
    except OutwordError:
        raise
    except Exception as error:  # hostile bytes make Pillow raise nearly anything
        raise _refusal(error) from error


def _reader(head: bytes) -> Callable[[IO[bytes]], ImageFile]:
    """Find the class that reads a file beginning with `head`."""
    if not head:
        raise ImageError("empty file")
    for pattern, module, name in _PLUGINS:
        if pattern.match(head):
            reader: Callable[[IO[bytes]], ImageFile] = getattr(importlib.import_module(module), name)
            return reader
    for pattern, name in _REFUSED:
        if pattern.match(head):
            raise ImageError(f"{name} is not read", hint="save it as JPEG or PNG first")
    raise ImageError("not an image", hint=_READABLE)


def _check_size(image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
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
    _check_size(image, max_pixels)
    try:
        image.load()
        turn = _TURNS.get(getattr(image, "orientation", 0) or _orientation(_exif(image)))
        rgb = _rgb(image, min_side)
        if turn is not None:
            rgb = rgb.transpose(turn)
    except OutwordError:
        raise
    except Exception as error:
        raise _refusal(error) from error
    if rgb is not image:
        rgb.info = {}  # else a second call would turn it again
    return rgb


def _rgb(image: Image.Image, min_side: int) -> Image.Image:
    """An image as RGB; a large one band by band, so that there is no second canvas, and reduced where it may be."""
    width, height = image.size
    factor = _factor(image, min_side)
    if _is_plain(image) and factor == 1:
        return image
    to_rgb = _plainly if not _is_deep(image) else _to_eight_bits(image)
    if width * height <= LARGE:
        return to_rgb(image)
    small = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    rows = max(1, BAND // (width * factor)) * factor
    for top in range(0, height, rows):
        band = to_rgb(image.crop((0, top, width, min(top + rows, height))))
        small.paste(band.reduce(factor) if factor > 1 else band, (0, top // factor))
    return small


def _factor(image: Image.Image, min_side: int) -> int:
    """By how much a large image is reduced while it is taken to RGB: its short side stays at 2 * `min_side` or more."""
    large = image.width * image.height > LARGE
    return max(1, min(image.size) // (2 * min_side)) if large and min_side > 0 else 1


def _conversion_cost(image: Image.Image, min_side: int) -> int:
    """Bytes that `_finish` takes for an image besides those of its own pixels: another canvas, or two to turn it."""
    if _factor(image, min_side) > 1:
        return 0
    return image.width * image.height * (4 if _is_plain(image) else 8)


def _plainly(image: Image.Image) -> Image.Image:
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(rgba, mask=rgba)
        return white
    return image.convert("RGB")


def _is_plain(image: Image.Image) -> bool:
    return image.mode == "RGB" and not image.has_transparency_data


def _is_deep(image: Image.Image) -> bool:
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _to_eight_bits(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """How integer or float grey pixels of an image, or of a part of it, become 8-bit RGB.

    16-bit pixels, and 32-bit integers that fit in 16 bits, run from 0 to 65535. Floats run from 0 to the first of 1,
    255 and 65535 that holds them all. Anything else is stretched from its least to its greatest value. What is not
    finite does not count for that: infinity is an end, NaN is black.
    """
    rows = max(1, BAND // image.width)
    parts = (
        _floats(image.crop((0, y, image.width, min(y + rows, image.height)))) for y in range(0, image.height, rows)
    )
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


def _orientation(exif: bytes) -> int:
    """Read the orientation, 1 to 8, from an EXIF block; 1 where there is none.

    Pillow's own reader goes through all tags and warns about odd ones; warnings cannot be silenced for one thread.
    """
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", exif, entry)
            if tag == 0x0112 and kind == 3:
                return int(value)
    except struct.error:
        pass
    return 1


def find_images(paths: Iterable[str | os.PathLike[str]], *, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path]:
    """Yield the files behind `paths`: files as given, folders recursively, glob patterns expanded.

    From a folder come the files with one of the suffixes, sorted, hidden ones left out; symlinked folders are not
    entered. A pattern is expanded only where no file has that very name; `**` stands for any depth. What cannot be used
    is yielded too, so that it becomes an error row: a missing path, a pattern without a match, a folder that cannot be
    listed, a folder named like an image. At most `NAMES` names of a folder are in memory, the rest is on disk.
    """
    for given in paths:
        for path in expand(Path(given)):
            yield from files_in(path, suffixes)


def expand(path: Path) -> Iterator[Path]:
    """Yield what a glob pattern matches, sorted within each folder; any other path, or one without a match, itself."""
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        yield path
        return
    matched = False
    for match in _expand(Path(path.anchor), glob_parts(path.parts[1 if path.anchor else 0 :])):
        matched = True
        yield match
    if not matched:
        yield path


def glob_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The parts of a glob pattern, without a `**` behind another, which adds nothing; too many are an `InputError`.

    >>> glob_parts(["a", "**", "**", "*.jpg"])
    ('a', '**', '*.jpg')
    """
    kept = tuple(part for before, part in pairwise(["", *parts]) if not before == part == "**")
    for what, count, most in (("parts", len(kept), PARTS), ('"**"', kept.count("**"), ANY_DEPTH)):
        if count > most:
            raise InputError(
                f"a glob pattern may have at most {most} {what}, got {count}",
                hint='"**" stands for any depth by itself',
            )
    return kept


def files_in(path: Path, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path]:
    """Yield a file as it is, a folder as the files in it with one of the suffixes."""
    if path.suffix.lower() in SUFFIXES or not is_folder(path):
        yield path
        return
    for folder, names in _tree(path):
        if names is None:
            yield folder
        else:
            yield from (folder / name for name, _ in names if _suffix(name) in suffixes)


def _expand(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield the paths under `base` that match the parts of a glob pattern, sorted within each folder."""
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        folders = (folder for folder, _ in _tree(base)) if rest else [base]
        for folder in folders:
            yield from _expand(folder, rest)
    elif glob.has_magic(head):
        for _, names in _tree(base, depth=1):
            for name, _ in names or []:
                if fnmatchcase(name, head):
                    yield from _expand(base / name, rest)
    elif os.path.lexists(base / head):
        yield from _expand(base / head, rest)


def _tree(top: Path, depth: int | None = None) -> Iterator[tuple[Path, Iterable[Entry] | None]]:
    """Yield each folder from `top` down with the sorted entries in it, or None where it cannot be listed.

    Hidden entries are left out; symlinked folders and folders named like an image are not entered.
    """
    level: list[tuple[Iterator[Path], _Entries]] = [(iter([top]), _Entries())]  # of each, the folders still to come
    try:
        while level:
            folder = next(level[-1][0], None)
            if folder is None:
                level.pop()[1].close()
                continue
            entries = _Entries()
            level.append((entries.folders(folder) if len(level) != depth else iter([]), entries))
            yield folder, entries if entries.read(folder) else None
    finally:
        for _, entries in level:
            entries.close()


def _suffix(name: str) -> str:
    return name[name.rfind(".") :].lower()  # `Path` takes many times as long


class _Entries:
    """The names in a folder, sorted, each with whether it is a folder; those over `NAMES` are in a temporary file."""

    def __init__(self) -> None:
        self._names: list[Entry] = []
        self._file: IO[bytes] | None = None
        self._runs: list[tuple[int, int]] = []  # where they begin and end in the file; each is sorted

    def __iter__(self) -> Iterator[Entry]:
        runs = [self._run(start, end) for start, end in self._runs]
        return heapq.merge(self._names, *runs) if runs else iter(self._names)

    def read(self, folder: Path) -> bool:
        """List a folder; False if that cannot be done."""
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    if entry.name[0] != ".":
                        self._names.append((entry.name, entry.is_dir(follow_symlinks=False)))
                    if len(self._names) >= NAMES:
                        self._spill()
        except OSError:
            self._names.clear()
            self._runs.clear()
            return False
        self._names.sort()
        return True

    def folders(self, folder: Path) -> Iterator[Path]:
        """The folders that are to be entered."""
        for name, is_folder in self:
            if is_folder and _suffix(name) not in SUFFIXES:
                yield folder / name

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file:
            self._file.close()

    def _spill(self) -> None:
        self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        lines = (os.fsencode(name) + b"/" * is_folder + b"\0" for name, is_folder in sorted(self._names))
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(b"".join(lines))
        self._runs.append((start, self._file.tell()))
        self._names.clear()

    def _run(self, start: int, end: int) -> Iterator[Entry]:
        rest = b""
        while start < end and self._file:
            self._file.seek(start)
            block = self._file.read(min(end - start, 1 << 16))
            start += len(block)
            *names, rest = (rest + block).split(b"\0")
            yield from ((os.fsdecode(name.rstrip(b"/")), name.endswith(b"/")) for name in names)


def is_folder(path: Path) -> bool:
    """Whether a path is that of a folder; one that cannot be looked at, or cannot be a path, is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def weight(item: object) -> int:
    """Bytes of a photo that is in memory before it is decoded."""
    return len(item.data) if isinstance(item, Blob) and isinstance(item.data, bytes) else 0


def decode_ahead(
    items: Iterable[Item],
    load: Callable[[Item], Result],
    *,
    workers: int,
    ahead: int,
    weigh: Callable[[Item], int] = weight,
) -> Iterator[tuple[Item, Result | OutwordError]]:
    """Run `load(item)` in threads ahead of the consumer and yield (item, result) in the order of `items`.

    An `OutwordError` is yielded in place of the result; any other exception ends the run. Items are taken from
    `items` only as results are consumed.

    Args:
        items: what to load; may be endless.
        load: called in a thread, so thread-safe.
        workers: number of threads, at least 1.
        ahead: the most items that are loading or loaded and not yet yielded, at least 1.
        weigh: bytes that an item takes; fewer items are ahead where they come to more than `ROOM`.
    """
    decoding()  # a budget that cannot be is no fault of the first image, nor of all of them
    pool = ThreadPoolExecutor(workers, thread_name_prefix="outword-decode")
    pending: deque[tuple[Item, Future[Result | OutwordError]]] = deque()
    held = 0
    try:
        for item in items:
            pending.append((item, pool.submit(_attempt, load, item)))
            held += weigh(item)
            del item  # its file need not be in memory while the next one is read
            while len(pending) >= ahead or (held > ROOM and pending):
                first, future = pending.popleft()
                held -= weigh(first)
                yield first, future.result()
                del first, future
        while pending:
            first, future = pending.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _attempt(load: Callable[[Item], Result], item: Item) -> Result | OutwordError:
    try:
        return load(item)
    except OutwordError as error:
        return error.bare()
