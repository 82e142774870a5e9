"""Which files are photos: by how they are called, and by how they begin."""

from __future__ import annotations

import re
from typing import NamedTuple

from outword.errors import ImageError

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"}
    | {".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".avif", ".heic", ".heif"}
    | {".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf"}
)
"""What is taken from a folder. HEIC and RAW are here whether or not they can be read, to get at least an error row: a
folder of photos from a phone or a camera must not look empty."""

HEAD = 1024  # bytes by which a file is told; the whole head of a PPM must be among them, comments too
_READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM and AVIF are read, HEIC and RAW with extras"
_HEIF = re.compile(rb"....ftyp(he[iv][cmsx]|m[is]f1.{4}((?!avi[fs]).{4}){,15}?hei[cx])", re.DOTALL)
_RAW = re.compile(rb"....ftypcrx |II\*\0....CR\x02|IIR[OS]|MMOR|IIU\0|FUJIFILMCCD-RAW", re.DOTALL)


class Format(NamedTuple):
    """A kind of image file that is read: its name as Pillow's modules have it, how it begins, and a suffix for it."""

    name: str
    start: re.Pattern[bytes]
    suffix: str


FORMATS = (  # nothing else is ever tried
    Format("Jpeg", re.compile(rb"\xff\xd8\xff"), ".jpg"),
    Format("Png", re.compile(rb"\x89PNG\r\n\x1a\n"), ".png"),
    Format("WebP", re.compile(rb"RIFF....WEBP", re.DOTALL), ".webp"),
    Format("Gif", re.compile(rb"GIF8[79]a"), ".gif"),
    Format("Bmp", re.compile(rb"BM"), ".bmp"),
    Format("Raw", _RAW, ".raw"),  # and some TIFF
    Format("Tiff", re.compile(rb"II[*+]\0|MM\0[*+]"), ".tif"),
    Format("Ppm", re.compile(rb"P[4-6f](\s+(#[^\n]*\n\s*)*[-+.\d]+){2,3}\s"), ".ppm"),
    Format("Heif", _HEIF, ".heic"),
    Format("Avif", re.compile(rb"....ftyp(avi[fs]|mif1|msf1)", re.DOTALL), ".avif"),
)
_REFUSED = [  # formats that people do have, and that are not read
    (re.compile(rb"P[1-3]\s"), "PPM in plain text"),  # Pillow takes hours for some megabytes of it
    (re.compile(rb"%PDF"), "PDF"),
    (re.compile(rb"%!PS|\xc5\xd0\xd3\xc6"), "PostScript"),
    (re.compile(rb"8BPS"), "Photoshop"),
    (re.compile(rb"\s*<svg|\s*<\?xml"), "SVG or XML"),
]


def format_of(head: bytes) -> Format:
    """The format of a file by its first `HEAD` bytes; `ImageError` if it is none that is read."""
    if not head:
        raise ImageError("empty file")
    for found in FORMATS:
        if found.start.match(head):
            return found
    for pattern, name in _REFUSED:
        if pattern.match(head):
            raise ImageError(f"{name} is not read", hint="save it as JPEG or PNG first")
    raise ImageError("not an image", hint=_READABLE)
