"""JSON bodies are read slice by slice, and come to what they come to when they are read whole."""

import asyncio
import base64
import json
import tracemalloc
from collections import deque
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from outword.serve import bodies
from outword.serve.bodies import read_images
from outword.serve.gate import PIECE, Gate
from outword.serve.limits import Limits
from outword.serve.refusals import Refusal, invalid
from outword.serve.schemas import ScoreRequest
from outword.serve.service import Telemetry

LIMITS, DIM = Limits(images=3), 2
LONG = b"aGk " * 200
UNITS = [
    *(b"A", b"aGk=", b"/", b"+", b"=", b"-", b"%", b" ", b"\\n", b"\\t", b"\\/", b"\\f", b"\\u0041", b"\\u000b"),
    *(b"\\u00a0", "\u00a0".encode(), "\u3000".encode(), "é".encode(), "😀".encode(), b"\\ud83d\\ude00", b"\\u00e9"),
    *(b'\\"', b"\\\\", b"\\\\\\\\", b"\\ud83d", b"\\ude00", b"\\x", b"\\u12", b"\\", b"\n", b"\0", b"\x1f", b"\x7f"),
    *(b"\xff", b"\xc3", b"\x80", b"\xe2\x82", b"\xed\xa0\x80", b'"', LONG, b"A" * 256, b"A" * 257),
]
FRAMES = [b'{"images": ["%b"]}', b'{"images": ["aGk=", "%b"]}', b'{"images": "%b"}', b'{"%b": 1}', b'["%b"]', b"%b"]


def whole(body):
    """What a body is, the straightforward way."""
    if body.count(b'"') > 26 or body.count(b"[") > 23 or body.count(b",") > 26:
        return 413, "the body has too many values; the most is 3"
    try:
        given = ScoreRequest.model_validate_json(body)
    except ValidationError as error:
        refusal = invalid(error)
        return refusal.status, str(refusal)
    if (given.images is None) == (given.embeddings is None):
        return 422, 'the body must have "images" or "embeddings"'
    if not given.images:
        return 422, "there is nothing to score"
    if len(given.images) > 3:
        return 413, f"got {len(given.images)} images; the most is 3"
    try:
        return [base64.b64decode("".join(text.split()), validate=True) for text in given.images]
    except ValueError:
        return 422, "not base64"


def in_pieces(body, size):
    """What the service makes of it, when it comes in pieces."""
    pieces = deque(body[i : i + size] for i in range(0, len(body), size))
    try:
        images = read_images("application/json", pieces, LIMITS, DIM)
    except Refusal as refusal:
        return refusal.status, "not base64" if str(refusal).endswith("is not base64") else str(refusal)
    assert not pieces
    return [image.data for image in images]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xef\xbb\xbf{}",
        b'"',
        b'{"images": ["aGk=',
        b'{"images": ["aGk="]',
        b'{"images": ["aGk="]} 1',
        b'{"images": ["aGk="], "images": ["aGlo"]}',
        b'{"images": ["%b"], "images": ["%b"]}' % (LONG, b"aGk="),
        b'{"im\\u0061ges": ["aG\\u006b\\u003d"]}',
        b'{"%b": ["aGk="]}' % "".join(f"\\u{ord(sign):04x}" for sign in "images").encode(),
        b'{"images": ["%b"], "embeddings": null}' % LONG,
        b'{"images": null, "embeddings": null}',
        b'{"images": ["%b", "%b", "%b"]}' % (LONG, LONG, LONG + b"aGk="),
        b'{"images": ["%b", "aGk=", "aGk=", "aGk="]}' % LONG,
        b'{"images": ["%b", 1]}' % LONG,
        b'{"images": [["%b"]]}' % LONG,
        b'{"images": [{"%b": "%b"}]}' % (LONG, LONG),
        b'{"embeddings": [["%b"]]}' % LONG,
        b'{"embeddings": [[NaN, 1]]}',
        b'{"images": ["aGk="], "%b": "%b"}' % (LONG, LONG),
        b"{" + b",".join(b'"%b": 1' % LONG for _ in range(12)) + b"}",
        b"{" + b",".join(b'"%b%d": 1' % (LONG, i) for i in range(12)) + b"}",
        b'{"images"   :\t\r\n  [ \n "aGk=" ] }',
        b'{"images": ["aGk="\x0b]}',
        b'{"images": ["aGk=" "aGk="]}',
        b'{"images": [%b"aGk="]}' % (b"[" * 30),
        b'{"images": %b1%b}' % (b'{"a": ' * 10, b"}" * 10),
        b'{"images": ["YQ==", "YQ== ", "YQ= ="]}',
        b'{"images": ["%bYQ=="]}' % LONG,
        b'{"images": ["%bYQ==%b"]}' % (LONG, LONG),
        b'{"images": ["%bYQ="]}' % LONG,
        b'{"images": ["%bY"]}' % LONG,
        b'{"images": ["%b="]}' % LONG,
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_odd_bodies_are_what_they_are_when_read_whole(body, size):
    assert in_pieces(body, size) == whole(body)


def test_any_body_is_what_it_is_when_read_whole(monkeypatch):
    text = st.lists(st.sampled_from(UNITS), max_size=8).map(b"".join)

    @settings(max_examples=200, deadline=None)
    @given(text=text, more=text, frame=st.sampled_from(FRAMES), cut=st.integers(0, 12), size=st.integers(1, 40))
    def same(text, more, frame, cut, size):
        monkeypatch.setattr(bodies, "SLICE", size)
        body = frame % (text + more * cut)
        assert in_pieces(body, size + 3) == whole(body)
        assert in_pieces(body[:-cut], size + 3) == whole(body[:-cut])

    same()


@pytest.mark.parametrize("blank", [" ", "\n", "\u00a0", ""])
def test_memory_is_that_of_the_body_and_of_what_it_comes_to(blank):
    """Whole, blanks between characters took twenty times the body: an object for each word."""
    body = b'{"images": ["%b"]}' % (json.dumps("AA" + blank, ensure_ascii=False)[1:-1].encode() * 300_000)
    tracemalloc.start()
    try:
        pieces = deque(body[i : i + bodies.SLICE] for i in range(0, len(body), bodies.SLICE))
        images = read_images("application/json", pieces, LIMITS, DIM)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(image.data) for image in images] == [450_000]
    assert most < len(body) + (3 << 20)  # slices are dropped as bytes take their place; some room for one slice's words


def test_bodies_in_single_bytes_are_kept_in_large_pieces():
    """An object for each byte would take fifty times the body."""
    size, given = 3 * PIECE + 1, []

    async def drip(left=iter(range(size - 1, -1, -1))):  # noqa: B008
        return {"type": "http.request", "body": b"x", "more_body": next(left) > 0}

    async def app(scope, receive, send):
        while not given or given[-1]["more_body"]:
            given.append(await receive())

    async def send(message): ...

    scope = {"type": "http", "method": "POST", "path": "/v1/score", "headers": []}
    service = SimpleNamespace(limits=LIMITS, telemetry=Telemetry(), refusal=lambda: None)
    asyncio.run(Gate(app, service, None, local=False)(scope, drip, send))
    assert [len(message["body"]) for message in given] == [PIECE, PIECE, PIECE, 1]
