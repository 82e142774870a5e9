"""A proxy before a real server that fails where it is told to: with an error, a body that breaks off, or a wait."""

import http.client
import time
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

DROPPED = ("content-length", "transfer-encoding", "connection")


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a port of this machine.

    Attributes:
        choose: what to do with a request, by its method and path, and by how often the same came before: a status such
            as 500 instead of an answer, "cut" for half of one, a float to wait that many seconds, or None.
        seen: how often each request came.
    """

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port, self.lock = port, Lock()
        self.expect()

    def expect(self, choose=lambda request, number: None):
        """Forget what was seen, and choose faults anew."""
        self.choose, self.seen = choose, Counter()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault(self, request):
        with self.lock:
            self.seen[request] += 1
            return self.choose(request, self.seen[request] - 1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        fault = self.server.fault(f"{self.command} {self.path}")
        if isinstance(fault, int):
            self.send(fault, {}, b"injected")
            return
        if isinstance(fault, float):
            time.sleep(fault)
        server = http.client.HTTPConnection("127.0.0.1", self.server.port)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.request(self.command, self.path, body, dict(self.headers))
        found = server.getresponse()
        headers, data = dict(found.getheaders()), found.read()
        server.close()
        self.send(found.status, headers, data, cut=fault == "cut")

    do_GET = do_HEAD = answer

    def send(self, status, headers, data, cut=False):
        length = headers.get("Content-Length", 0) if self.command == "HEAD" else len(data)
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in DROPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data[: len(data) // 2] if cut else data)
        self.close_connection = cut

    def log_message(self, *_):
        pass

    def handle(self):
        with suppress(ConnectionError):  # the client did not wait
            super().handle()


@contextmanager
def faulty(port):
    """A proxy before the server at a port."""
    with Proxy(port) as proxy:
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
