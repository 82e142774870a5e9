"""Stands before everything else: who may ask, how much may come, how long it may take, and what every answer says."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outword.serve.limits import SMALL_BODY
from outword.serve.refusals import Refusal, busy, in_time, too_large
from outword.serve.service import LOG, Service

LARGE = "/v1/score"  # the one path whose bodies hold images
PLAIN = {LARGE, "/v1/detector", "/v1/detectors", "/metrics"}
GUARDED = ("/v1/", "/metrics")  # what needs the token
LOCAL = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
LINGER = 2.0  # seconds in which who is refused may go on sending: a client that is cut off does not see the answer
SLOWEST = 32 << 10  # bytes a second that a client must read of a long answer
PIECE = 1 << 16  # bytes of a body that are kept together, at least
POLICY = b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
HEADERS = [
    (b"content-security-policy", POLICY + b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Gone(Exception):
    """The client went away, or reads so slowly that it might as well have."""


@dataclass
class _Incoming:
    """A body on its way: how many of its bytes are in memory, and whether more are to come."""

    receive: Receive
    held: int = 0
    more: bool = True

    async def chunk(self) -> bytes:
        """The next piece."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        self.more = message.get("more_body", False)
        return bytes(message.get("body", b""))


class Gate:
    """An ASGI application around another one; the body of a request is whole before that one hears of it.

    Clients must show the `token`, if there is one. Where `local` says that only this machine is to be answered, a web
    site must not get in by a name of its own.
    """

    def __init__(self, app: ASGIApp, service: Service, token: str | None, *, local: bool) -> None:
        self.app, self.service, self.limits, self.local = app, service, service.limits, local
        self._token = None if token is None else token.encode()
        self._requests = 0  # that are open
        self._held = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, until, sent = time.monotonic(), 0, 0.0, 0

        async def answer(message: Message) -> None:
            nonlocal status, until, sent
            if message["type"] == "http.response.start":
                status, until = message["status"], time.monotonic() + self.limits.seconds
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            size = len(message.get("body", b""))
            until, sent = until + size / SLOWEST, sent + size
            if sent <= PIECE:  # it is handed over at once; a task and a timer would take longer
                await send(message)
                return
            try:
                await asyncio.wait_for(send(message), until - time.monotonic())
            except asyncio.TimeoutError:
                raise Gone from None

        self._requests += 1
        try:
            await self._guarded(scope, receive, answer)
        except Gone:
            status = status or 499
        except Exception:
            LOG.exception("a request failed")
            if status:  # half an answer cannot be taken back: the connection has to be cut
                raise
            refusal = Refusal(500, "internal", "the service made a mistake", "its log says more")
            await refusal.response()(scope, receive, answer)
        finally:
            self._requests -= 1
            self.service.telemetry.answered(scope["method"], _path(scope), status, time.monotonic() - began)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, incoming = Headers(scope=scope), _Incoming(receive)
        try:
            self._check_head(scope["method"], scope["path"], headers)
            body = await self._body(scope["path"], headers, incoming)
            await self.app(scope, _given(body, receive), send)  # which answers refusals of its own
        except Refusal as refusal:
            await _refuse(refusal, headers, incoming, send)
        finally:
            self._hold(-incoming.held)

    def _check_head(self, method: str, path: str, headers: Headers) -> None:
        """Refuse who may not ask, and what is not taken right now."""
        if self._requests > self.limits.requests and path != "/healthz":
            raise busy(f"{self._requests} requests are open, and {self.limits.requests} are the most")
        if self._token is None and self.local and not LOCAL.fullmatch(headers.get("host", "")):
            raise Refusal(403, "forbidden", "without a token, Host must be localhost", "set a token, and send it")
        if method != "GET" and _is_foreign(headers):
            raise Refusal(403, "forbidden", "a page of another site may not ask this", "ask from a program")
        if self._token is not None and path.startswith(GUARDED):
            kind, _, shown = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), self._token):
                hint, ask = "send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
                raise Refusal(401, "unauthorized", "the token is missing or wrong", hint, ask)
        if path == LARGE and (refusal := self.service.refusal()):
            raise refusal

    async def _body(self, path: str, headers: Headers, incoming: _Incoming) -> deque[bytes]:
        """The whole body, within its limits, in pieces: one of 32 MB would take long to copy, on the event loop."""
        most = self.limits.body_bytes if path == LARGE else min(SMALL_BODY, self.limits.body_bytes)
        declared = headers.get("content-length", "0")
        large = too_large("the body has too many bytes", most, "send fewer images at once, or smaller ones")
        if declared.isdecimal() and int(declared) > most:
            raise large
        seconds = self.limits.seconds
        late = Refusal(408, "timeout", f"the body did not come within {seconds:g} s", "send less, or faster")
        return await in_time(self._received(most, large, incoming), seconds, late)

    async def _received(self, most: int, large: Refusal, incoming: _Incoming) -> deque[bytes]:
        body, last = deque[bytes](), bytearray()
        while incoming.more:
            chunk = await incoming.chunk()
            if incoming.held + len(chunk) > most:
                raise large
            if self._held + len(chunk) > self.limits.held_bytes:
                raise busy("too many bytes of other requests are in memory")
            incoming.held += len(chunk)
            self._hold(len(chunk))
            last += chunk  # a chunk may be a single byte, and an object takes more
            if len(last) >= PIECE or not incoming.more:
                body.append(bytes(last))
                last.clear()
        return body

    def _hold(self, count: int) -> None:
        self._held += count
        self.service.telemetry.held.set(self._held)


async def _refuse(refusal: Refusal, headers: Headers, incoming: _Incoming, send: Send) -> None:
    """Answer at once, and end the answer when the body has come, or has not for a while."""
    response = refusal.response()
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    if refusal.status != 408 and "expect" not in headers:  # who expects to be asked does not send
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_rest(incoming), LINGER)
    await send({"type": "http.response.body", "body": b""})


async def _rest(incoming: _Incoming) -> None:
    while incoming.more:
        await incoming.chunk()


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site asks, as far as its browser says; a program says nothing of the kind.

    Browsers leave `Sec-Fetch-Site` out where neither TLS nor localhost is asked; then `Origin` must be what `Host` is.
    """
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    if not (origin := headers.get("origin")):
        return False
    scheme, _, name = origin.lower().partition("://")
    usual = {"http": ":80", "https": ":443"}.get(scheme, "")
    return name != headers.get("host", "").lower().removesuffix(usual)


def _path(scope: Scope) -> str:
    """The path of the route; what was refused before it was routed is told by the paths that have no variable."""
    found = getattr(scope.get("route"), "path", None) or scope["path"]
    return found if "route" in scope or found in PLAIN else "other"


def _given(body: deque[bytes], receive: Receive) -> Receive:
    """A `receive` that gives a body that is whole, and keeps nothing of it, then what the connection says."""

    async def given() -> Message:
        if body:
            return {"type": "http.request", "body": body.popleft(), "more_body": bool(body)}
        return await receive()

    return given
