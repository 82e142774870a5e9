"""What `serve/server.py` builds on in uvicorn, some of it private: when it moves, these say so before clients do."""

import inspect
import re
import signal
import socket
import threading
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from packaging.specifiers import SpecifierSet
from uvicorn.protocols.http.h11_impl import H11Protocol

from outword.serve import server
from outword.serve.limits import Limits

ROOT = Path(__file__).resolve().parents[2]
MOVED = "uvicorn has changed: see that serve/server.py still works, then mend this test"


def test_the_installed_version_is_in_the_tested_range():
    tested = re.search(r'"uvicorn([^"]+)"', (ROOT / "pyproject.toml").read_text())[1]
    assert version("uvicorn") in SpecifierSet(tested), MOVED


@pytest.mark.parametrize(
    ("kind", "method", "parameters"),
    [
        (uvicorn.Server, "startup", ["sockets"]),
        (uvicorn.Server, "handle_exit", ["sig", "frame"]),
        (uvicorn.Server, "run", ["sockets"]),
        (H11Protocol, "connection_made", ["transport"]),
        (H11Protocol, "connection_lost", ["exc"]),
        (H11Protocol, "on_response_complete", []),
        (H11Protocol, "pause_writing", []),
        (H11Protocol, "resume_writing", []),
        (H11Protocol, "send_400_response", ["msg"]),
    ],
)
def test_what_is_overridden_is_there(kind, method, parameters):
    assert method in vars(kind), MOVED
    assert list(inspect.signature(vars(kind)[method]).parameters) == ["self", *parameters], MOVED


async def hello(scope, receive, send):
    if scope["type"] == "lifespan":
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def until(client, end=None):
    """What comes, up to its last bytes, or until the server hangs up."""
    said = b""
    while (end is None or not said.endswith(end)) and (piece := client.recv(1 << 16)):
        said += piece
    return said


def test_it_is_called_when_it_should_be(monkeypatch):
    """Two requests and something that is no HTTP on one connection; then the server is told to end."""
    seen, cycles = [], []

    def watch(name, look):
        real = getattr(server.Protocol, name)
        monkeypatch.setattr(
            server.Protocol, name, lambda self, *given: (seen.append((name, look(self))), real(self, *given))[1]
        )

    watch("on_response_complete", lambda self: cycles.append(self.cycle))
    watch("send_400_response", lambda self: self.transport.is_closing())
    watch("connection_lost", lambda self: (self in self.connections, self.loop.is_running()))
    bound, ready = server.bind("127.0.0.1", 0), threading.Event()
    made = server.Server(hello, Limits(seconds=5), ready.set)
    assert (made.server_state.tasks, made.should_exit, made.started) == (set(), False, False), MOVED
    assert made.config.backlog > 0, MOVED
    thread = threading.Thread(target=made.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        assert ready.wait(30), MOVED
        with socket.create_connection(bound.getsockname(), timeout=30) as client:
            for _ in range(2):
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert until(client, b"hi").startswith(b"HTTP/1.1 200"), MOVED
            client.sendall(b"what is this\r\n\r\n")
            assert until(client).startswith(b"HTTP/1.1 400"), MOVED
    finally:
        made.should_exit = True
        thread.join(30)
        bound.close()
    names = ["on_response_complete", "on_response_complete", "send_400_response", "connection_lost"]
    assert [name for name, _ in seen] == names, MOVED
    assert cycles[0] is not cycles[1], MOVED  # by which a request that was begun is told from one that is awaited
    assert (seen[2][1], seen[3][1]) == (False, (True, True)), MOVED


def test_signals_are_not_raised_again():
    """Those that uvicorn's `handle_exit` notes are raised when all is done."""
    made = server.Server(hello, Limits(), lambda: None)
    uvicorn.Server.handle_exit(made, signal.SIGTERM, None)
    assert made._captured_signals == [signal.SIGTERM], MOVED
    made.handle_exit(signal.SIGTERM, None)
    assert made._captured_signals == []
    assert "_captured_signals" in inspect.getsource(uvicorn.Server.capture_signals), MOVED
