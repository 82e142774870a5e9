"""A small client for the service that `outword serve` starts; it needs nothing but the standard library.

from outword.client import Client

client = Client("http://127.0.0.1:8000")
for result in client.score(["cat.jpg", "raccoon.jpg"]).results:
    print(result.path, result.verdict, result.label)
pets = client.fit(["tabby cat", "espresso"])  # labels of your own
client.score(["cat.jpg"], detector=pets)
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from outword.base.checks import number, whole_number
from outword.base.files import PathLike
from outword.base.prediction import FIELDS, Prediction
from outword.base.terms import Basis, Flag, OddsWord
from outword.errors import InputError, OutwordError, ParameterError

__all__ = ["Client", "Info", "LabelOdds", "Limits", "Result", "Scores", "ServiceError", "ThresholdInfo"]


class ServiceError(OutwordError):
    """The service refused, or did not answer.

    Attributes:
        code: the service's own, such as "too_large"; else "unreachable", "timeout", "redirect" or "bad_answer".
        status: the HTTP status; None if no answer came.
        retry_after: in how many seconds the service wants to be asked again; None if it does not say.
    """

    def __init__(
        self, message: str, *, hint: str = "", code: str = "", status: int | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.code, self.status, self.retry_after = code, status, retry_after


@dataclass(frozen=True)
class Limits:
    """The most that one request may hold."""

    body_bytes: int
    images: int
    pixels: int
    labels: int


@dataclass(frozen=True)
class LabelOdds:
    """What to expect of a label (`outword.base.odds.Odds`)."""

    label: str
    share: float = field(metadata={"description": "Of its photos that will be in."})
    word: OddsWord
    expected: str = field(metadata={"description": "The share in plain words."})
    why: str = field(default="", metadata={"description": "How the encoder knows the name, where not as such."})
    next_step: str = field(default="", metadata={"description": "What to do where most photos may be kept out."})


@dataclass(frozen=True)
class Info:
    """A detector of the service."""

    id: str
    labels: tuple[str, ...]
    typed: tuple[str, ...] = field(metadata={"description": "The labels as they were typed."})
    kinds: Mapping[str, Sequence[str]] = field(metadata={"description": "What each label stands for beside its name."})
    prompts: Mapping[str, str] = field(metadata={"description": "Of labels that have a prompt of their own."})
    coverage: Mapping[str, Flag] = field(metadata={"description": "How well the encoder knows each, if it can tell."})
    method: str
    encoder: str
    dim: int
    wild_words: int
    threshold: float | None = field(metadata={"description": "In from this score on; null if there is none."})
    basis: Basis = field(
        metadata={"description": "Of the threshold: calibrated, reference, imagined, batch or formula."}
    )
    calibration: str = field(metadata={"description": "How the threshold was found on photos, in words."})
    ladder: Sequence[tuple[float, float]] = field(
        metadata={"description": "p-values, falling, and the scores that have them; empty without a reference."}
    )
    takes_embeddings: bool
    limits: Limits
    odds: tuple[LabelOdds, ...] = field(
        default=(), metadata={"description": "What to expect of each label; empty if it is not known."}
    )
    kinds_off: tuple[str, ...] = field(
        default=(),
        metadata={"description": "Labels that stand for themselves alone, as the encoder knows none of their kinds."},
    )


@dataclass(frozen=True, kw_only=True)
class Result(Prediction):
    """One image, as in `outword.Prediction`; `embedding` is there if it was asked for."""

    embedding: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Scores:
    """The results of all images, in the order given."""

    detector: str
    threshold: float | None
    basis: Basis
    results: tuple[Result, ...]


@dataclass(frozen=True)
class ThresholdInfo:
    """The threshold that follows from marked photos."""

    threshold: float | None = field(metadata={"description": "In from this score on; null accepts everything."})
    method: str
    calibration: str = field(metadata={"description": "How it was found, in words."})
    tpr: float | None = field(metadata={"description": "Share of the photos of the classes that it accepts."})
    low: float = field(metadata={"description": "With 90 % confidence, the true share lies between `low` ..."})
    high: float = field(metadata={"description": "... and `high`."})
    mistakes: int = field(metadata={"description": "Marked photos on the wrong side."})
    warning: str


Which: TypeAlias = "str | Info | None"  # a detector by its id; None: the one that the service was started with
Image: TypeAlias = "PathLike | bytes"  # a path on this machine, or the content of an image file
_Answer = TypeVar("_Answer")
_JSON = "application/json"
_ODD = (ValueError, KeyError, TypeError, AttributeError)  # what reading an answer of another shape raises


class Client:
    """Asks the service at `url`. Each request is a connection of its own, so threads may share a client.

    Redirects are not followed and the proxies of the environment are not used: the token goes to this host only.

    Args:
        url: its address, such as "http://127.0.0.1:8000" or "https://example.org/outword".
        token: the service's bearer token, if it has one.
        timeout: seconds to wait for the connection and for each piece of the answer.
        retries: how often to ask again when the service is overloaded (503), each time after the seconds that it
            names; if it names more than `timeout`, the error is raised at once.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0, retries: int = 3) -> None:
        number("timeout", timeout, above=0, hint="60 seconds by default")
        whole_number("retries", retries, 0, hint="0 never asks again")
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise ParameterError("token must be plain ASCII without spaces", hint="is there a line end behind it?")
        self._connection, self._base = _address(url, timeout)
        self._url, self._timeout, self._retries = url, timeout, retries
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ready(self) -> bool:
        """Whether the service is up and ready to score; asks once."""
        try:
            self._once("/readyz")
        except ServiceError as error:
            if error.status is not None and error.status < 500:
                raise
            return False
        return True

    def detector(self, detector: Which = None) -> Info:
        """The detector that the service was started with, or another by its id."""
        return self._ask(_info, "/v1/detector" if detector is None else self._path(detector))

    def fit(self, labels: Iterable[str] | Mapping[str, str]) -> Info:
        """Have a detector made from class names, or from names with a prompt each ("" for none)."""
        if isinstance(labels, str):
            raise InputError(f"labels must be a list of names, got the text {labels!r}", hint="put it into a list")
        chosen = dict(labels) if isinstance(labels, Mapping) else list(labels)
        return self._ask(_info, "/v1/detectors", _json({"labels": chosen}))

    def score(
        self,
        images: Iterable[Image],
        *,
        detector: Which = None,
        embeddings: bool = False,
        top: int = 3,
        fixed: bool = False,
    ) -> Scores:
        """Score images in one request; `Info.limits` says how many it may hold.

        Args:
            images: paths on this machine, or the bytes of image files; at least one.
            detector: by default the one that the service was started with.
            embeddings: whether each result has its embedding.
            top: how many labels and words each result has.
            fixed: whether an imagined threshold stays as it is; else the images of the request refine it.
        """
        files = _read(images)
        path = _score_path(detector, embeddings=embeddings, top=top, fixed=fixed)
        return self._ask(partial(_scores, len(files)), path, *_form(files))

    def score_embeddings(
        self, rows: Iterable[Iterable[float]], *, detector: Which = None, top: int = 3, fixed: bool = False
    ) -> Scores:
        """Score embeddings of the detector's own encoder, one a row, in one request."""
        vectors = list(rows)
        path = _score_path(detector, top=top, fixed=fixed)
        return self._ask(partial(_scores, len(vectors)), path, _json({"embeddings": vectors}))

    def threshold(
        self, *, inside: Iterable[float] = (), outside: Iterable[float] = (), detector: Which = None
    ) -> ThresholdInfo:
        """The threshold that follows from the scores of photos marked as yours, and as not yours."""
        body = _json({"inside": list(inside), "outside": list(outside)})
        return self._ask(partial(_take, ThresholdInfo), self._path(detector, "/threshold"), body)

    def download(
        self,
        *,
        detector: Which = None,
        inside: Iterable[float] = (),
        outside: Iterable[float] = (),
        threshold: float | None = None,
    ) -> bytes:
        """The detector as a zip file, with the threshold that marks give, or one set by hand, if there is any."""
        given = {"inside": list(inside) or None, "outside": list(outside) or None, "threshold": threshold}
        body = _json({name: value for name, value in given.items() if value is not None})
        return self._send(self._path(detector, "/artifact"), body)

    def _path(self, detector: Which, what: str = "") -> str:
        return f"/v1/detectors/{quote(_id(self.detector() if detector is None else detector), safe='')}{what}"

    def _ask(self, read: Callable[[Any], _Answer], path: str, body: bytes | None = None, kind: str = _JSON) -> _Answer:
        answer = self._send(path, body, kind)
        try:
            return read(json.loads(answer))
        except _ODD as error:
            told, hint = f"{self._url} gave an answer that is not outword's", 'is it the address of "outword serve"?'
            raise ServiceError(told, hint=hint, code="bad_answer", status=200) from error

    def _send(self, path: str, body: bytes | None = None, kind: str = _JSON) -> bytes:
        """The answer to a request, which is sent again while the service is overloaded."""
        for _ in range(self._retries):
            try:
                return self._once(path, body, kind)
            except ServiceError as error:
                wait = 1 if error.retry_after is None else error.retry_after
                if error.status != 503 or wait > self._timeout:
                    raise
            time.sleep(wait)
        return self._once(path, body, kind)

    def _once(self, path: str, body: bytes | None = None, kind: str = _JSON) -> bytes:
        headers = self._headers | ({} if body is None else {"Content-Type": kind})
        connection = self._connection()
        try:
            connection.connect()
            with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse a body before it has read it all
                connection.request("GET" if body is None else "POST", self._base + path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        except TimeoutError as error:
            told = f"{self._url} did not answer within {self._timeout:g} s"
            raise ServiceError(told, hint="raise timeout, or send fewer images at a time", code="timeout") from error
        except (OSError, HTTPException) as error:
            told = f"{self._url} cannot be reached: {error}"
            raise ServiceError(told, hint='is "outword serve" running?', code="unreachable") from error
        finally:
            connection.close()
        if response.status // 100 != 2:
            raise _refusal(self._url, response, answer)
        return answer


def _address(url: str, timeout: float) -> tuple[Callable[[], HTTPConnection], str]:
    """What makes a connection to the host of `url`, and the path that all requests begin with."""
    hint = 'write it as in "http://127.0.0.1:8000"'
    if "@" in url.rpartition("://")[2].partition("/")[0]:  # first, so that no message shows a password
        raise ParameterError("url must hold no user and no password", hint="a token goes into token=")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        HTTPConnection(host, 80)  # opens nothing; refuses characters that no host has
    except (ValueError, HTTPException) as error:
        raise ParameterError(f"url must be an address, got {url!r} ({error})", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ParameterError(f"url must be http://HOST or https://HOST, with a port or a path, got {url!r}", hint=hint)
    base = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    if parts.scheme == "http":
        return partial(HTTPConnection, host, port or 80, timeout=timeout), base
    context = ssl.create_default_context()  # once: it reads all certificates of the system
    return partial(HTTPSConnection, host, port or 443, timeout=timeout, context=context), base


def _refusal(url: str, response: HTTPResponse, body: bytes) -> ServiceError:
    """The error that an answer tells of, in the service's shape or in that of whatever stands before it."""
    after = response.headers.get("Retry-After", "")
    make = partial(ServiceError, status=response.status, retry_after=int(after) if after.isdecimal() else None)
    if response.status // 100 == 3:
        told = f"{url} sends on to {response.headers.get('Location', 'another address')!r}"
        return make(told, hint="redirects are not followed: give the service's own address", code="redirect")
    try:
        error = json.loads(body)["error"]
        return make(str(error["message"]), hint=str(error.get("hint", "")), code=str(error["code"]))
    except _ODD:
        told = f"{url} answered {response.status}, and not as outword does"
        return make(told, hint="is there a proxy, or another service?", code="bad_answer")


def _id(detector: str | Info) -> str:
    return detector.id if isinstance(detector, Info) else detector


def _score_path(detector: Which, *, top: int, embeddings: bool = False, fixed: bool = False) -> str:
    asked = {} if detector is None else {"detector": _id(detector)}
    switches = {"embeddings": embeddings, "fixed": fixed}
    on = {name: "true" for name, value in switches.items() if value}
    return "/v1/score?" + urlencode({**asked, "top": top, **on})


def _json(body: Mapping[str, Any]) -> bytes:
    """JSON of text and finite numbers; arrays and their numbers are taken as lists and floats."""
    try:
        return json.dumps(body, allow_nan=False, default=lambda v: getattr(v, "tolist", partial(list, v))()).encode()
    except _ODD as error:
        told = f"{' and '.join(body)} cannot be sent: {error}"
        raise InputError(told, hint="give text or finite numbers, in lists") from None


def _read(images: Iterable[Image]) -> list[tuple[str, bytes]]:
    """The name and the content of each image."""
    if isinstance(images, str | bytes | os.PathLike):
        raise InputError("images must be a list of paths or bytes, got one of them", hint="put it into a list")
    files = []
    for i, image in enumerate(images):
        if isinstance(image, bytes):
            files.append((f"images[{i}]", image))
            continue
        try:
            files.append((Path(image).name, Path(image).read_bytes()))
        except (OSError, ValueError, TypeError) as error:  # ValueError: a null character in the name
            raise InputError(f"images[{i}] cannot be read: {image!r}: {error}", hint="check the path") from error
    if not files:
        raise InputError("images must hold at least one image, got none", hint="is the folder empty?")
    return files


def _form(files: Iterable[tuple[str, bytes]]) -> tuple[bytes, str]:
    """A form with the files in its field "images", and its content type."""
    boundary = secrets.token_hex(16)
    pieces = []
    for name, data in files:
        escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="images"; filename="{escaped}"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        pieces += [head.encode("utf-8", "replace"), data, b"\r\n"]
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"


def _take(kind: Callable[..., _Answer], answer: Mapping[str, Any], **made: Any) -> _Answer:
    """A `kind` of the fields of an answer, some of them made from it; those that only a newer service has are left."""
    return kind(**{name: made[name] if name in made else answer[name] for name in kind.__annotations__})


_NO_ADVICE = {"why": "", "next_step": ""}  # older services have none, and those before them no odds


def _info(answer: Mapping[str, Any]) -> Info:
    made = {
        "labels": tuple(answer["labels"]),
        "typed": tuple(answer["typed"]),
        "kinds": {label: tuple(kinds) for label, kinds in answer["kinds"].items()},
        "kinds_off": tuple(answer.get("kinds_off", ())),
        "ladder": tuple((p, score) for p, score in answer["ladder"]),
        "limits": _take(Limits, answer["limits"]),
        "odds": tuple(_take(LabelOdds, {**_NO_ADVICE, **one}) for one in answer.get("odds", ())),
    }
    return _take(Info, answer, **made)


def _scores(count: int, answer: Mapping[str, Any]) -> Scores:
    """The results of `count` images; with more or fewer it is unclear which is whose."""
    if len(answer["results"]) != count:
        raise ValueError(f"{count} results expected, got {len(answer['results'])}")
    return _take(Scores, answer, results=tuple(map(_result, answer["results"])))


def _result(answer: Mapping[str, Any]) -> Result:
    columns = {column.name: column.form.read(answer[column.name]) for column in FIELDS}
    vector = answer.get("embedding")
    return Result(**columns, embedding=None if vector is None else tuple(vector))
