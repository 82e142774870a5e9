"""The strings of a JSON body, taken out of it and read as base64 slice by slice: whole, each would be copied often."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections import deque
from collections.abc import Iterator

from pydantic_core import from_json

SLICE = 1 << 16  # bytes that are looked at in one go; other threads come in between
KEPT = 256  # characters of a string that stay in the JSON
SPACE = re.compile(rb"[ \t\r\n]+")
UNFINISHED = re.compile(  # a character at the end of a slice that may go on in the next one, in UTF-8 or as an escape
    rb"([\xc0-\xff][\x80-\xbf]{0,2}|(\\u[dD][89abAB]..)?(\\(u.{0,3})?)?)\Z", re.DOTALL
)


def take_strings(body: deque[bytes]) -> tuple[bytes, dict[str, bytes | None]]:
    """The JSON with its long strings cut short, and what each string there is as base64; None where it is none.

    The pieces of the body are taken out as they are read. A `ValueError` tells of a string that is not JSON; whatever
    else is wrong with the body is wrong with the short one too.
    """
    short, found = bytearray(), dict[str, bytes | None]()
    string: _String | None = None
    rest = b""
    for part in _slices(body):
        rest += part
        while rest:
            if string is None:
                outside, quote, rest = rest.partition(b'"')
                short += SPACE.sub(b" ", outside)
                string = _String() if quote else None
                continue
            end, closed = _end(rest)
            string.add(rest[:end])
            rest = rest[end + closed :]
            if not closed:
                break
            found[string.name] = string.decoded()
            short += json.dumps(string.name).encode()
            string = None
    if string is not None:
        raise ValueError("the last string does not end")
    return bytes(short), found


def _slices(body: deque[bytes]) -> Iterator[bytes]:
    while body:
        piece = body.popleft()
        for start in range(0, len(piece), SLICE):
            yield piece[start : start + SLICE]


def _end(rest: bytes) -> tuple[int, bool]:
    r"""How many bytes belong to the string that goes on in these, and whether it ends after them.

    >>> _end(rb'a\\", "b"'), _end(rb'a\"b'), _end(rb'a\ud83d\u')
    ((3, True), (4, False), (1, False))
    """
    plain = rest.replace(rb"\\", b"..").replace(rb"\"", b"..")  # a " that is left ends the string
    end = plain.find(b'"')
    if end >= 0:
        return end, True
    unfinished = UNFINISHED.search(plain, max(0, len(plain) - 11))
    return (unfinished.start() if unfinished else len(plain)), False


class _String:
    """A string of the JSON that comes bit by bit; only what it is as base64 is kept of it, and its beginning."""

    def __init__(self) -> None:
        self._head, self._length, self._digest = "", 0, hashlib.sha256()
        self._bytes: io.BytesIO | None = io.BytesIO()
        self._left = b""  # characters that are not decoded yet

    @property
    def name(self) -> str:
        """What stands for it in the JSON: itself, or if it is long, its beginning with a digest; none are alike."""
        return self._head if self._length <= KEPT else self._head + self._digest.hexdigest()

    def add(self, escaped: bytes) -> None:
        """Go on with whole characters as they stand in JSON."""
        text: str = from_json(b'"%b"' % escaped)
        self._head += text[: KEPT - len(self._head)]
        self._length += len(text)
        self._digest.update(text.encode())
        left = self._left + "".join(text.split()).encode()
        whole = max(0, len(left) - 5) // 4 * 4  # the last characters have rules of their own
        self._decode(left[:whole], last=False)
        self._left = left[whole:]

    def decoded(self) -> bytes | None:
        """The bytes that it is as base64, blanks left out, once it has ended; None if it is not base64."""
        self._decode(self._left, last=True)
        return None if self._bytes is None else self._bytes.getvalue()

    def _decode(self, data: bytes, *, last: bool) -> None:
        if self._bytes is None:
            return
        try:
            if b"=" in data and not last:
                raise ValueError("it ends before its end")
            self._bytes.write(base64.b64decode(data, validate=True))
        except ValueError:  # binascii.Error is one
            self._bytes = None
