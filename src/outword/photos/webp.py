"""The memory that a WebP will take, estimated from its first bytes before it is read whole."""

from __future__ import annotations

import struct
from typing import IO

from outword.errors import ImageError
from outword.photos.headers import PARTS, check_kept
from outword.photos.plan import Plan

_HEAD = 30  # bytes that say how large it is
_CLEAR = 16  # a flag
_FRAME_HEAD = 16  # bytes of a frame before its chunks
_BYTES = 3  # of a pixel
_KEPT = frozenset({b"ICCP", b"EXIF", b"XMP "})  # of which Pillow makes copies


def plan(file: IO[bytes]) -> Plan:
    """The size of the canvas: libwebp refuses frames that are not within it, or that are larger than they say."""
    _check_chunks(file)
    file.seek(0)
    head = file.read(_HEAD)
    kind = head[12:16]
    if kind == b"VP8X" and len(head) == _HEAD:
        width, height = (1 + int.from_bytes(head[at : at + 3], "little") for at in (24, 27))
        return Plan(width, height, bool(head[20] & _CLEAR), _BYTES)
    if kind == b"VP8L":
        (packed,) = struct.unpack_from("<I", head, 21)
        return Plan(1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF), bool(packed >> 28 & 1), _BYTES)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return Plan(width & 0x3FFF, height & 0x3FFF, least=_BYTES)
    raise ImageError("damaged image", hint="fetch or copy the file again")


def _check_chunks(file: IO[bytes]) -> None:
    """Chunks have a name, a length and data, and those of frames others in them; libwebp keeps a list of them all."""
    end = file.seek(0, 2)
    at, kept = 12, 0
    for _ in range(PARTS):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        length = int.from_bytes(head[4:], "little")
        if head[:4] in _KEPT:
            kept += min(length, end - at)
            check_kept(kept)
        at += 8 + (_FRAME_HEAD if head[:4] == b"ANMF" else length + (length & 1))
        if at >= end:
            return
    raise ImageError(f"too many chunks: over {PARTS:,}", hint="open it in a viewer and save it again")
