"""The server process: a socket of our own, patience that ends, and a shutdown that finishes what was accepted."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import signal
import socket
from collections.abc import Callable
from functools import cache
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from outword.base.ending import note_signal
from outword.errors import InputError
from outword.serve.gate import HEADERS
from outword.serve.limits import HEAD_SECONDS, Limits
from outword.serve.refusals import Refusal
from outword.serve.service import LOG

CONNECTIONS = 10_000
SPARE = 100  # file descriptors that are not for connections


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 is any free one. Nobody is let in before a server listens."""
    made = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
    except OSError as error:
        if made:
            made.close()
        hint = "choose another --port (0: any free one), or another --host"
        raise InputError(f"{host} port {port} cannot be used: {_reason(error)}", hint=hint) from None
    return made


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


@cache
def most_connections() -> int:
    """As many as there may be files open, at most `CONNECTIONS`; that limit is raised first, where it is lower."""
    try:
        import resource
    except ImportError:  # not on this system
        return SPARE
    allowed, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + SPARE
    if 0 <= allowed < wanted:  # below 0 there is no limit
        allowed = wanted if hard < 0 else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, min(wanted, allowed if allowed >= 0 else wanted) - SPARE)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("::1"), is_local("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address(bound: socket.socket) -> str:
    """What to type into a browser."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """A server whose `run(sockets=[bound])` goes on until a signal; `ready` is called when requests are taken.

    A signal is the usual way to stop it, and no failure.
    """

    def __init__(self, app: FastAPI, limits: Limits, ready: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=math.ceil(limits.patience),
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        try:
            for bound in sockets or []:
                bound.listen(self.config.backlog)
        except OSError as error:  # another process bound the port too, and was quicker to listen
            raise InputError(f"the port cannot be used: {_reason(error)}", hint="choose another --port") from None
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Say what is waited for; who presses Ctrl-C twice is not told of what is lost."""
        note_signal()
        count, again = len(self.server_state.tasks), "; Ctrl-C again drops them" if sig == signal.SIGINT else ""
        if self.should_exit and sig == signal.SIGINT:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        elif count:
            LOG.info("finishing what was accepted, %d requests%s", count, again)
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # which uvicorn would raise again when all is done


class Protocol(H11Protocol):
    """HTTP/1.1 whose clients must begin: a connection without a request is closed after `HEAD_SECONDS`.

    That holds for a new connection, and for one whose last answer is out, whatever else of a body still comes.
    """

    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request; where there would soon be no file descriptor left, nobody is let in."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.abort()
        self._await_request(None)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        last = self.cycle  # the next one may have come with it, and begins now
        super().on_response_complete()
        self._await_request(last)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        for timer in (self._timer, self._stuck):
            if timer:
                timer.cancel()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._stuck = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        if self._stuck:
            self._stuck.cancel()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP in the common shape, and hang up."""
        answer = Refusal(400, "bad_request", msg, "speak HTTP/1.1", {"Connection": "close"}).response()
        lines = [b"%s: %s\r\n" % pair for pair in [*answer.raw_headers, *HEADERS]]
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + b"".join(lines) + b"\r\n" + bytes(answer.body))
        self.transport.close()

    def _await_request(self, last: object) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up, last)

    def _give_up(self, last: object) -> None:
        if self.cycle is last:
            self.transport.close()  # which waits until all is sent; a client that reads nothing is not waited for
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
