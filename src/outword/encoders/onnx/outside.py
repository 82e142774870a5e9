"""Which other files an ONNX file takes its weights from, read without loading it: they must lie beside it.

An ONNX file is a message of protobuf: fields with a number, and numbers, bytes or further messages in them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from outword.errors import InputError

_ENTRIES = 13  # the field of a tensor with the place of its weights
# by kind of message: its fields that are messages with tensors in them, and of which kind
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {_ENTRIES: "entry"},
    "entry": {},
}
DEEPEST = 64  # messages in messages
SMALLEST = 2  # bytes that a file has at least


def check_outside(path: Path) -> None:
    """Raise unless all that a file takes from other files lies in files of its own folder, named as such."""
    try:
        if path.stat().st_size < SMALLEST:
            raise ValueError("it is empty")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            places = set(_places(data, 0, len(data), "model", 0))
    except (ValueError, IndexError, OSError) as error:
        raise InputError(f"{path} is no ONNX file: {error}", hint="fetch or copy it again") from None
    for place in sorted(places):
        if (
            "/" in place
            or "\\" in place
            or place in ("", ".", "..")
            or "\0" in place
            or not (path.parent / place).is_file()
        ):
            told = f"{path} takes weights from {place!r}, which is no file beside it"
            raise InputError(told, hint="use another export, or fetch it again")


def _places(data: mmap.mmap, start: int, end: int, kind: str, depth: int) -> Iterator[str]:
    """The names of files in a message, at whatever depth."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    for field, begin, stop in _fields(data, start, end):
        inner = _INSIDE[kind].get(field)
        if inner == "entry":
            yield from _place(data, begin, stop)
        elif inner is not None:
            yield from _places(data, begin, stop, inner, depth + 1)


def _place(data: mmap.mmap, start: int, end: int) -> Iterator[str]:
    """The values of an entry that may be a place: all but whole numbers and hashes of other keys."""
    texts = [(field, data[begin:stop]) for field, begin, stop in _fields(data, start, end)]
    keys = {text for field, text in texts if field == 1}
    if keys - {b"offset", b"length", b"checksum"} or not keys:
        yield from (text.decode("utf-8", "replace") for field, text in texts if field == 2)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of each field of a message that has a length."""
    at = start
    while at < end:
        key, at = _number(data, at, end)
        wire = key & 7
        if wire == 0:
            _, at = _number(data, at, end)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        elif wire == 2:
            length, at = _number(data, at, end)
            if at + length > end:
                raise ValueError("it is cut off")
            yield key >> 3, at, at + length
            at += length
        else:
            raise ValueError("it has a field of no known kind")
    if at > end:
        raise ValueError("it is cut off")


def _number(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A whole number in 7 bits a byte, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
    raise ValueError("it is cut off")
