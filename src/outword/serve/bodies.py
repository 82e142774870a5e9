"""What a client sent to be scored: images in a form or in JSON, or embeddings; all in memory, nothing by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from outword.photos.decode import Blob
from outword.serve.limits import Limits
from outword.serve.refusals import Refusal, invalid, not_json, too_large, wrong_type
from outword.serve.schemas import ScoreRequest
from outword.serve.scoring import Vector
from outword.serve.strings import take_strings

Many = TypeVar("Many", bound=list[Any])


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
