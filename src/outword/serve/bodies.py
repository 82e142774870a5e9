"""What a client sent to be scored: images in a form or in JSON, or embeddings; all in memory, nothing by name."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from outword.photos.decode import Blob
from outword.serve.limits import Limits
from outword.serve.refusals import Refusal, invalid, not_json, too_large, wrong_type
from outword.serve.schemas import ScoreRequest
from outword.serve.service import Vector

Many = TypeVar("Many", bound=list[Any])
SLICE = 1 << 16  # bytes that are looked at in one go; other threads come in between
KEPT = 256  # characters of a string that stay in the JSON
SPACE = re.compile(rb"[ \t\r\n]+")
UNFINISHED = re.compile(  # a character at the end of a slice that may go on in the next one, in UTF-8 or as an escape
    rb"([\xc0-\xff][\x80-\xbf]{0,2}|(\\u[dD][89abAB]..)?(\\(u.{0,3})?)?)\Z", re.DOTALL
)


@dataclass
class _Part:
    disposition: bytes = b""  # the header with the names of the field and of the file
    data: bytearray = field(default_factory=bytearray)


def read_images(content_type: str, body: deque[bytes], limits: Limits, dim: int) -> list[Blob] | list[Vector]:
    """The images of a request, or its embeddings; a refusal says what is wrong. Runs in a thread: bodies are large.

    The pieces of the body are taken out as they are read, so that memory does not hold them twice.
    """
    kind, options = parse_options_header(content_type)
    if kind == b"multipart/form-data":
        whole = b"".join(body)
        body.clear()
        return _counted(_form(options.get(b"boundary", b""), whole, limits), limits)
    if kind == b"application/json":
        return _json(body, limits, dim)
    raise wrong_type(content_type, "multipart/form-data or application/json")


def _form(boundary: bytes, body: bytes, limits: Limits) -> list[Blob]:
    """The parts of the field `images`; other fields are passed over."""
    parts, ended = list[_Part](), list[bool]()
    name, value = bytearray(), bytearray()  # of a header, which may come in pieces

    def begin() -> None:
        if len(parts) > 2 * limits.images:  # before they are kept; other fields may be among them
            raise _too_many(len(parts), limits)
        parts.append(_Part())

    def end_header() -> None:
        if name.lower() == b"content-disposition":
            parts[-1].disposition = bytes(value)
        name.clear()
        value.clear()

    callbacks = {
        "on_part_begin": begin,
        "on_part_data": lambda data, start, end: parts[-1].data.extend(memoryview(data)[start:end]),
        "on_header_field": lambda data, start, end: name.extend(data[start:end]),
        "on_header_value": lambda data, start, end: value.extend(data[start:end]),
        "on_header_end": end_header,
        "on_end": lambda: ended.append(True),
    }
    try:
        MultipartParser(boundary, callbacks).write(body)  # type: ignore[arg-type]
    except FormParserError as error:
        raise _malformed(str(error)) from None
    if not boundary or not ended:
        raise _malformed("its last boundary is missing")
    named = [(parse_options_header(part.disposition)[1], part.data) for part in parts]
    files = [(options.get(b"filename", b""), data) for options, data in named if options.get(b"name") == b"images"]
    return [
        Blob(file.decode("utf-8", "replace")[:255] or f"images[{i}]", bytes(data))
        for i, (file, data) in enumerate(files)
    ]


def _json(body: deque[bytes], limits: Limits, dim: int) -> list[Blob] | list[Vector]:
    _check_values(body, limits, dim)
    try:
        short, strings = take_strings(body)
        given = ScoreRequest.model_validate_json(short)
    except ValidationError as error:
        raise invalid(error) from None
    except ValueError:
        raise not_json() from None
    if (given.images is None) == (given.embeddings is None):
        raise Refusal(422, "invalid", 'the body must have "images" or "embeddings"', "send one of the two")
    if given.embeddings is not None:
        return [_vector(row, i, dim) for i, row in enumerate(_counted(given.embeddings, limits))]
    images = _counted(given.images or [], limits)
    return [Blob(f"images[{i}]", _base64(strings[name], i)) for i, name in enumerate(images)]


def _check_values(body: Iterable[bytes], limits: Limits, dim: int) -> None:
    """Refuse more texts, lists or numbers than the largest request has, before objects are made of them."""
    most = {b'"': 2 * limits.images + 20, b"[": limits.images + 20, b",": limits.images * dim + 20}
    if any(sum(piece.count(sign) for piece in body) > number for sign, number in most.items()):
        raise too_large("the body has too many values", limits.images, "send several requests")


def _base64(decoded: bytes | None, place: int) -> bytes:
    if decoded is None:
        hint = "encode the bytes of the file, with nothing such as data: before them"
        raise Refusal(422, "invalid", f"images[{place}] is not base64", hint)
    return decoded


def _vector(row: list[float], place: int, dim: int) -> Vector:
    with np.errstate(over="ignore"):
        vector = np.asarray(row, dtype=np.float32)
    if len(vector) != dim or not np.isfinite(vector).all() or not vector.any():
        wrong = f"embeddings[{place}] must be {dim} finite numbers, not all 0"
        raise Refusal(422, "invalid", wrong, "take those that ?embeddings=true gives")
    return np.asarray(vector / np.linalg.norm(vector.astype(np.float64)), dtype=np.float32)


def _counted(many: Many, limits: Limits) -> Many:
    if not many:
        raise Refusal(422, "invalid", "there is nothing to score", 'the field is "images", or "embeddings" in JSON')
    if len(many) > limits.images:
        raise _too_many(len(many), limits)
    return many


def _too_many(count: int, limits: Limits) -> Refusal:
    return too_large(f"got {count:,} images", limits.images, "send several requests")


def _malformed(why: str) -> Refusal:
    return Refusal(400, "bad_request", f"the form cannot be read: {why}", 'curl -F "images=@photo.jpg" makes one')


def take_strings(body: deque[bytes]) -> tuple[bytes, dict[str, bytes | None]]:
    """The JSON with its long strings cut short, and what each string there is as base64; None where it is none.

    Strings are read slice by slice: whole, each would be copied often. The pieces of the body are taken out as they are
    read. A `ValueError` tells of a string that is not JSON; whatever
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
