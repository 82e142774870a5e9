"""A service for tests: in a thread of this process, or as a process of its own; and one way to ask it."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from outword.serve import server
from outword.serve.app import create_app
from outword.serve.limits import Limits


@contextmanager
def in_thread(detector, limits=Limits(), token=None, *, local=True, around=lambda app: app):  # noqa: B008
    """The address of a service that runs until the block ends; `around` makes another application of its own."""
    bound, ready = server.bind("127.0.0.1", 0), threading.Event()
    made = server.Server(around(create_app(detector, limits, token, local=local)), limits, ready.set)
    thread = threading.Thread(target=made.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        assert ready.wait(30)
        yield server.address(bound)
    finally:
        made.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
        bound.close()


@contextmanager
def process(*arguments, env=None, stderr=subprocess.DEVNULL):
    """A process of `outword serve` on any free port, and its address."""
    command = [Path(sys.executable).parent / "outword", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, **(env or {})},
    ) as running:
        try:
            yield running, running.stdout.readline().strip()
        finally:
            running.terminate()
            try:
                running.wait(30)
            finally:
                running.kill()


def ask(address, method, path, body=None, headers=(), kind=None):
    """Status, headers and body of one request; an object goes as JSON."""
    if body is not None and not isinstance(body, bytes):
        body, kind = json.dumps(body).encode(), kind or "application/json"
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    try:
        connection.request(method, path, body, {**({"content-type": kind} if kind else {}), **dict(headers)})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def soon(true):
    """Whether something becomes true; it has half a minute."""
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


def form(*files, field="images"):
    """A multipart body of (name, bytes), and its type."""
    parts = b"".join(
        b'--xYz\r\ncontent-disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
        % (field.encode(), name.encode(), data)
        for name, data in files
    )
    return parts + b"--xYz--\r\n", "multipart/form-data; boundary=xYz"
