"""Clients of a service on this machine, in a process of their own: what they send is made beforehand.

    cd benchmarks
    echo '{"port": 8000, "path": "/v1/score", "field": "images", "photos": "FOLDER", "seconds": 5, "clients": 8}' |
        python -m perf.load

They send one photo a request over connections that stay open, to 127.0.0.1 and nowhere else. Clients that wait for an
answer before they ask again are a closed loop (`clients`); with `rate`, requests leave at random times, whatever the
service does, and their time runs from when they were due. The answer is JSON on stdout.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from outword.photos.walk import find_images

HOST = "127.0.0.1"
BOUNDARY = "----photo"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
PATIENCE = 60.0  # seconds for an answer
OPEN = 1000  # the most requests of an open loop that wait for an answer
IDLE = 2.0  # seconds after which a connection is not used again: servers close idle ones, some after 5
PULSE = 0.1  # seconds between two looks at /healthz


@dataclass(frozen=True)
class Plan:
    """What to send where, for how long; `settle` seconds come before and are not counted."""

    port: int
    path: str
    field: str
    photos: str
    seconds: float
    clients: int = 0
    rate: float = 0.0
    settle: float = 2.0


@dataclass
class Book:
    """Milliseconds by outcome: a status, or what happened instead; what ends before `since` is only counted."""

    since: float
    until: float
    all: Counter[str] = field(default_factory=Counter)
    ms: dict[str, list[float]] = field(default_factory=dict)
    pulse: list[float] = field(default_factory=list)

    def add(self, outcome: str, began: float) -> None:
        """Note how a request ended."""
        now = time.monotonic()
        self.all[outcome] += 1
        if self.since <= now <= self.until:
            self.ms.setdefault(outcome, []).append(1e3 * (now - began))


class Connection:
    """One that stays open; it is made anew when the service closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def ask(self, request: bytes) -> str:
        """Send a request; its status, or what happened instead."""
        try:
            return await asyncio.wait_for(self._ask(request), PATIENCE)
        except asyncio.TimeoutError:
            outcome = "timeout"
        except (OSError, asyncio.IncompleteReadError) as error:
            outcome = type(error).__name__
        self.close()
        return outcome

    async def _ask(self, request: bytes) -> str:
        if time.monotonic() - self._used > IDLE:
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = LENGTH.search(head)
        assert length, head
        await reader.readexactly(int(length[1]))
        if b"\r\nconnection: close" in head:
            self.close()
        self._used = time.monotonic()
        status = head[9:12].decode()
        return status if status != "503" or b"\r\nretry-after:" in head else "503 without Retry-After"

    def close(self) -> None:
        """Let go of it."""
        if self._streams:
            self._streams[1].close()
            self._streams = None


def form(name: str, data: bytes, field: str) -> tuple[bytes, bytes]:
    """The head lines and the body of a form with one file."""
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
    body = f"{part}Content-Type: image/jpeg\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    lines = f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n"
    return lines.encode(), body


def requests(plan: Plan) -> list[bytes]:
    """A request for each photo below the folder."""
    made = []
    for path in find_images([plan.photos]):
        lines, body = form(path.name, path.read_bytes(), plan.field)
        made.append(f"POST {plan.path} HTTP/1.1\r\nHost: {HOST}\r\n".encode() + lines + b"\r\n" + body)
    return made


async def closed(plan: Plan, sent: Sequence[bytes], book: Book) -> None:
    """Clients that ask, wait for the answer and ask again, each beginning with another photo."""

    async def client(number: int) -> None:
        connection, place = Connection(plan.port), number * len(sent) // plan.clients
        while (began := time.monotonic()) < book.until:
            book.add(await connection.ask(sent[place % len(sent)]), began)
            place += 1
        connection.close()

    await asyncio.gather(*map(client, range(plan.clients)))


async def opened(plan: Plan, sent: Sequence[bytes], book: Book) -> None:
    """Requests at random times, `rate` a second on average; a waiting one keeps none of the others back."""
    rng, idle, waiting = random.Random(0), [], set()

    async def one(request: bytes, due: float) -> None:
        connection = idle.pop() if idle else Connection(plan.port)
        book.add(await connection.ask(request), due)
        idle.append(connection)

    due, count = time.monotonic(), 0
    pulse = asyncio.create_task(look(plan, book))
    while due < book.until:
        await asyncio.sleep(due - time.monotonic())
        if len(waiting) < OPEN:
            task = asyncio.create_task(one(sent[count % len(sent)], due))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        else:
            book.add("not sent", due)
        due, count = due + rng.expovariate(plan.rate), count + 1
    await asyncio.gather(pulse, *waiting)
    for connection in idle:
        connection.close()


async def look(plan: Plan, book: Book) -> None:
    """How long /healthz takes: the service does nothing for it but to come by."""
    connection, request = Connection(plan.port), f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    while (began := time.monotonic()) < book.until:
        outcome = await connection.ask(request)
        if outcome != "200":
            book.all[f"/healthz {outcome}"] += 1
        if began >= book.since:
            book.pulse.append(1e3 * (time.monotonic() - began))
        await asyncio.sleep(PULSE)
    connection.close()


def spread(ms: Sequence[float]) -> dict[str, float]:
    """Percentiles; none of nothing."""
    if not ms:
        return {}
    p50, p95, p99 = np.percentile(ms, [50, 95, 99]).tolist()
    return {"p50": p50, "p95": p95, "p99": p99, "max": max(ms)}


def run(plan: Plan) -> dict[str, object]:
    """Outcomes in all; of the seconds that count, requests a second and percentiles by outcome; processor seconds."""
    sent = requests(plan)
    since = time.monotonic() + plan.settle
    book, used = Book(since, since + plan.seconds), time.process_time()
    asyncio.run((opened if plan.rate else closed)(plan, sent, book))
    return {
        "outcomes": dict(book.all),
        "rates": {outcome: len(ms) / plan.seconds for outcome, ms in book.ms.items()},
        "ms": {outcome: spread(ms) for outcome, ms in book.ms.items()},
        "pulse": spread(book.pulse),
        "processors": (time.process_time() - used) / (time.monotonic() - since + plan.settle),
    }


if __name__ == "__main__":
    print(json.dumps(run(Plan(**json.load(sys.stdin)))))
