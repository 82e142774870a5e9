"""Stands before everything else: who may ask, how much may come, how long it may take, and what every answer says."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outword.serve.limits import SMALL_BODY, Limits
from outword.serve.refusals import Refusal, busy, too_large

if TYPE_CHECKING:
    from outword.serve.telemetry import Telemetry

LOG = logging.getLogger("outword.serve")
LARGE = "/v1/score"  # the one path whose bodies hold images
GUARDED = ("/v1/", "/metrics")  # what needs the token
LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
LINGER = 2.0  # seconds in which who is refused may go on sending: a client that is cut off does not see the answer
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Disconnected(Exception):
    """The client went away before its request was whole."""


class Guard:
    """An ASGI application around another one; the body of a request is whole before that one hears of it.

    Args:
        app: what is guarded.
        limits: see `Limits`.
        token: what clients must show; None asks for none.
        telemetry: where requests are counted.
        full: whether images are to be refused right now; gives the refusal, or None.
        local: whether only this machine is to be answered; then a web site must not get in by a name of its own.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        token: str | None,
        telemetry: Telemetry,
        full: Callable[[], Refusal | None],
        local: bool,
    ) -> None:
        self.app, self.limits, self.telemetry, self.full, self.local = app, limits, telemetry, full, local
        self._token = None if token is None else token.encode()
        self._held = self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, until = time.monotonic(), 0, 0.0

        async def answer(message: Message) -> None:
            nonlocal status, until
            if message["type"] == "http.response.start":
                status, until = message["status"], time.monotonic() + self.limits.seconds
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await asyncio.wait_for(send(message), until - time.monotonic())  # who does not read is let go

        self._requests += 1
        try:
            await self._guarded(scope, receive, answer)
        except (Disconnected, asyncio.TimeoutError):
            status = status or 499
        except Exception:
            LOG.exception("a request failed")
            if status:  # half an answer cannot be taken back: the connection has to be cut
                raise
            await Refusal(500, "internal", "the service made a mistake", "its log says more").response()(
                scope, receive, answer
            )
        finally:
            self._requests -= 1
            route = scope.get("route")
            self.telemetry.answered(scope["method"], getattr(route, "path", "other"), status, time.monotonic() - began)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, held = Headers(scope=scope), [0]
        try:
            try:
                self._check(scope, headers)
                body = await self._body(scope["path"], headers, receive, held)
            except Refusal as refusal:
                await _refuse(refusal, headers, receive, send)
                return
            await self.app(scope, _given(body, receive), send)
        finally:
            self._hold(-held[0])

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse who may not ask, and what is not taken right now."""
        if self._requests > self.limits.requests:
            raise busy(f"{self._requests} requests are open, and {self.limits.requests} are the most")
        if self._token is None and self.local and not LOCAL.fullmatch(headers.get("host", "")):
            raise Refusal(403, "forbidden", "without a token, Host must be localhost", "set a token, and send it")
        if scope["method"] != "GET" and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refusal(403, "forbidden", "a page of another site may not ask this", "ask from a program")
        if self._token is not None and scope["path"].startswith(GUARDED):
            kind, _, shown = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), self._token):
                hint, ask = "send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
                raise Refusal(401, "unauthorized", "the token is missing or wrong", hint, ask)
        if scope["path"] == LARGE and (refusal := self.full()):
            raise refusal

    async def _body(self, path: str, headers: Headers, receive: Receive, held: list[int]) -> bytes:
        """The whole body, within its limits; `held[0]` counts what is in memory, also when it fails."""
        most = self.limits.body_bytes if path == LARGE else min(SMALL_BODY, self.limits.body_bytes)
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            raise _large_body(most)
        try:
            return await asyncio.wait_for(self._received(most, receive, held), self.limits.seconds)
        except asyncio.TimeoutError:
            message = f"the body did not come within {self.limits.seconds:g} s"
            raise Refusal(408, "timeout", message, "send less, or faster") from None

    async def _received(self, most: int, receive: Receive, held: list[int]) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > most:
                raise _large_body(most)
            if self._held + len(chunk) > self.limits.held_bytes:
                raise busy("too many bytes of other requests are in memory")
            held[0] += len(chunk)
            self._hold(len(chunk))
            body += chunk
            if not message.get("more_body", False):
                return bytes(body)

    def _hold(self, count: int) -> None:
        self._held += count
        self.telemetry.held.set(self._held)


async def _refuse(refusal: Refusal, headers: Headers, receive: Receive, send: Send) -> None:
    """Answer at once, and end the answer when the body has come, or has not for a while."""
    response = refusal.response()
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    if refusal.status != 408 and "expect" not in headers:  # who expects to be asked does not send
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_rest(receive), LINGER)
    await send({"type": "http.response.body", "body": b""})


async def _rest(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


def _large_body(most: int) -> Refusal:
    return too_large("the body has too many bytes", most, "send fewer images at once, or smaller ones")


def _given(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that is whole, then what the connection says."""
    waiting = [body]

    async def given() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return given
