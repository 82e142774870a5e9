"""The service under load, next to a naive one and to the library without HTTP; docs/serving.md is made from it.

    python benchmarks/serve.py                                 (about 25 minutes)
    python benchmarks/serve.py --photos FOLDER --seconds 5 --minutes 1 -o serve.json

It starts `outword serve` and `baselines/naive_server.py` on 127.0.0.1, both with the embedded encoder and the labels of
the demo, and ends them when it ends. They take turns, several times, and so does the library; figures are medians.
Then the service gets twice the requests that it can answer, in turns with as many as it can, and for `--minutes`.
Clients run in a process of their own.
Tables go to stdout as Markdown, and into a JSON file. Memory and processor time are read from /proc, on Linux.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

import outword
from outword.base.files import whole_file
from outword.detector.detector import Detector
from outword.detector.judge import judge
from outword.encoders.base import Pixels
from outword.maths.kernels.threads import blas
from outword.photos.decode import Blob, open_image
from outword.photos.sources.base import Item, Piece
from outword.photos.walk import find_images
from outword.scoring.stream import score_jobs
from outword.vectors.source import Job
from outword.words.labels import read_labels
from perf.facts import circumstances
from perf.jpegs import PHOTOS
from perf.load import HOST, Plan, form
from perf.tables import Goal, Table, markdown, times

LABELS = PHOTOS.parent / "labels.txt"
CLIENTS = (1, 8, 64)
ROUNDS = 5
READY = 120  # seconds in which a server must be ready
SETTLE = 10.0  # seconds of overload that are not counted
FILLS = 4.0  # seconds in which a queue is full for certain
AHEAD = 2.0  # times the naive server, with the most clients
SHARE = 0.95  # of the images a second of the library
KEPT = 0.9  # of what it can answer, while it refuses as much again
FLAT = 1.05  # times the memory of the first minute


@dataclass(frozen=True)
class Server:
    """A server that runs: what it is called, its process, where it listens, and where and how it takes a photo."""

    name: str
    pid: int
    port: int
    path: str
    field: str

    def ask(self, photo: Blob) -> dict[str, Any]:
        """The answer about one photo."""
        lines, body = form(photo.name, photo.data, self.field)
        headers = dict(line.split(": ", 1) for line in lines.decode().splitlines())
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        connection.request("POST", self.path, body, headers)
        answer = json.load(connection.getresponse())
        connection.close()
        return answer

    def load(self, photos: Path, **plan: Any) -> dict[str, Any]:
        """What clients saw of it, its processor seconds a request, and processors busy with something else."""
        watch = self.watch()
        with loading(Plan(self.port, self.path, self.field, str(photos), **plan)) as clients:
            seen = json.loads(clients.communicate()[0])
        used, others = watch()
        return {**seen, "server": used / sum(seen["outcomes"].values()), "others": others}

    def watch(self) -> Callable[[], tuple[float, float]]:
        """A function that gives its processor seconds since now, and how many processors had something else to do."""
        began, used, mine, busy = time.monotonic(), self.used(), children(), busy_processors()

        def stop() -> tuple[float, float]:
            spent = self.used() - used
            others = busy_processors() - busy - spent - (children() - mine)
            return spent, max(0.0, others) / (time.monotonic() - began)

        return stop

    def used(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Megabytes in memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def busy_processors() -> float:
    """Seconds that the processors of this machine were busy, all together."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def children() -> float:
    """Processor seconds of the processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process that is ended with the block, in the end by force."""
    process = subprocess.Popen(
        [sys.executable, *command], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, **options
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
        finally:
            process.kill()  # does nothing to one that has ended
            process.wait()


@contextmanager
def serving(name: str, command: Sequence[str], path: str, field: str, log: Path) -> Iterator[Server]:
    """A server that is ready; what it says goes to a file."""
    with log.open("w") as talk, started(command, stderr=talk) as process:
        assert process.stdout
        late = threading.Timer(READY, process.kill)
        late.start()
        address = process.stdout.readline().strip()
        late.cancel()
        host, _, port = address.removeprefix("http://").rpartition(":")
        if host != HOST:
            raise SystemExit(f"{name} must listen on {HOST}, got {address!r}: {log.read_text()[-500:]}")
        yield Server(name, process.pid, int(port), path, field)


@contextmanager
def loading(plan: Plan) -> Iterator[subprocess.Popen[str]]:
    """Clients at work."""
    with started(["-m", "perf.load"], stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(json.dumps(asdict(plan)))
        process.stdin.close()
        process.stdin = None
        yield process


def check_same(servers: Sequence[Server], photos: Path) -> None:
    """Raise unless both servers say the same of every photo."""
    ours, naive = servers
    for path in find_images([photos]):
        photo = Blob(path.name, path.read_bytes())
        left, right = ours.ask(photo)["results"][0], naive.ask(photo)
        labels = [found["label"] for found in left["labels"]] == [label for label, _ in right["labels"]]
        if left["verdict"] != right["verdict"] or not labels or abs(left["score"] - right["score"]) > 1e-3:
            raise SystemExit(f"the servers disagree about {photo.name}: {left}, {right}")


@dataclass(frozen=True)
class InMemory(Piece):
    """The same photos again and again, from memory."""

    blobs: tuple[Blob, ...]

    @property
    def name(self) -> str:
        """Any."""
        return "memory"

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """Without end."""
        return cycle(self.blobs)

    def version(self) -> str:
        """Any."""
        return ""


def library(photos: Path, seconds: float) -> dict[str, Any]:
    """Images a second of the library, and processor milliseconds an image; runs in a process of its own."""
    detector = outword.fit(read_labels(LABELS))
    blobs, chunk = [Blob(path.name, path.read_bytes()) for path in find_images([photos])], detector.encoder.chunk
    jobs = score_jobs(detector, [Job(0, InMemory(tuple(blobs)))], photos=True)
    rows, done = (row for _, some in jobs for row in some), 0
    for _ in islice(rows, 2 * chunk):
        pass
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        done += sum(1 for _ in islice(rows, chunk))
    took, used = time.monotonic() - began, time.process_time() - used
    rows.close()
    return {"rate": done / took, "cpu": 1e3 * used / done, **parts(detector, blobs)}


def parts(detector: Detector, blobs: Sequence[Blob]) -> dict[str, Any]:
    """Images a second of the encoder alone, and milliseconds of each part for one image by itself."""
    encoder = detector.encoder

    def decode(blob: Blob) -> Pixels:
        return encoder.preprocess(open_image(blob, min_side=encoder.min_side))

    pixels = np.stack([decode(blob) for blob in islice(cycle(blobs), encoder.chunk)])
    vectors, turn = encoder.encode_pixels(pixels[:1]), cycle(blobs)
    runs = {
        "decode": lambda: decode(next(turn)),
        "encode": lambda: encoder.encode_pixels(pixels[:1]),
        "score": lambda: detector.scorer.score(vectors),
        "judge": lambda: judge(detector, vectors),
    }
    with blas:  # as the service does it
        ms, many = times(runs, rounds=36), times({"": lambda: encoder.encode_pixels(pixels)}, rounds=5)
    return {"encoder": 1e3 * encoder.chunk / many[""], "parts": ms}


def in_turns(servers: Sequence[Server], photos: Path, seconds: float) -> tuple[dict[Any, list[dict[str, Any]]], Any]:
    """What clients saw by server and number of clients, and what the library did; a value each round."""
    seen: dict[Any, list[dict[str, Any]]] = {(s.name, clients): [] for s in servers for clients in CLIENTS}
    alone = []
    for turn in range(ROUNDS):
        with started([str(Path(__file__).resolve()), "--library", str(photos), str(seconds)]) as process:
            alone.append(json.loads(process.communicate()[0]))
        for clients in CLIENTS:
            for server in servers if turn % 2 == 0 else servers[::-1]:
                found = server.load(photos, seconds=seconds, clients=clients)
                if set(found["outcomes"]) != {"200"}:
                    raise SystemExit(f"{server.name} with {clients} clients answered {found['outcomes']}")
                seen[server.name, clients].append(found)
                told = f"{found['rates']['200']:.1f}/s, p50 {found['ms']['200']['p50']:.0f} ms"
                print(f"round {turn + 1} of {ROUNDS}, {clients} clients, {server.name}: {told}", file=sys.stderr)
    return seen, alone


def closed_table(seen: dict[Any, list[dict[str, Any]]], names: Sequence[str]) -> Table:
    """Requests a second and percentiles by the number of clients, both servers."""
    rows = []
    for clients in CLIENTS:
        rates = {name: median(seen[name, clients], "rates", "200") for name in names}
        for name in names:
            found = seen[name, clients]
            rows.append(
                {
                    "clients": clients,
                    "server": name,
                    "requests/s": rates[name],
                    **{f"{p} ms": median(found, "ms", "200", p) for p in ("p50", "p95", "p99")},
                    "times the naive one": rates[name] / rates[names[1]],
                    "processor ms a request": 1e3 * median(found, "server"),
                    "clients' processor": f"{median(found, 'processors'):.1%}",
                    "others' processor": f"{median(found, 'others'):.0%}",
                }
            )
    ahead, (ours, naive) = rows[-2]["times the naive one"], (seen[name, CLIENTS[-1]] for name in names)
    by_round = [one["rates"]["200"] / other["rates"]["200"] for one, other in zip(ours, naive, strict=True)]
    return Table(
        "Closed loop: each client asks when it has its answer, one photo a request",
        rows,
        [
            Goal(
                f"at least {AHEAD:g} times the naive server at {CLIENTS[-1]} clients",
                f"{ahead:.2f} times; by round {min(by_round):.2f} to {max(by_round):.2f}",
                ahead >= AHEAD,
            )
        ],
        f"Medians of {ROUNDS} rounds; the servers took turns. The clients share the processors with the server. "
        "The last columns are what they took, and what other programs of this machine did; 100% is one processor.",
    )


def floor_table(alone: Sequence[dict[str, Any]], service: float) -> Table:
    """How close the service comes to the library without HTTP."""
    without = median(alone, "rate")
    rates = {
        "encoder alone": median(alone, "encoder"),
        "library, no HTTP": without,
        f"service, {CLIENTS[-1]} clients": service,
    }
    share = service / without
    return Table(
        "How close the service comes to the library",
        [{"": name, "images/s": rate, "of the library": f"{rate / without:.1%}"} for name, rate in rates.items()],
        [Goal(f"at least {SHARE:.0%} of the library", f"{share:.1%}", share >= SHARE)],
        "The library scores and explains the same files from memory with scoring.stream.score_jobs, in a process of "
        f"its own that took turns with the servers; {median(alone, 'cpu'):.1f} processor ms an image.",
    )


def parts_table(alone: Sequence[dict[str, Any]], single: float) -> Table:
    """What a single request takes."""
    found = {name: median(alone, "parts", name) for name in alone[0]["parts"]}
    rows = {**found, "HTTP, threads, waiting": single - sum(found.values()), "one request, p50": single}
    return Table(
        "One request at a time: where the time goes",
        [{"": name, "ms": ms} for name, ms in rows.items()],
        note="The parts were timed in the library, one image by itself; the last but one line is the rest.",
    )


def refusing(server: Server, photos: Path, seconds: float) -> Table:
    """What it answers while it refuses as much again, in turns with what it can answer: both see the same machine."""
    rows = []
    for turn in range(ROUNDS):
        full = server.load(photos, seconds=seconds, clients=CLIENTS[-1])
        twice = server.load(photos, seconds=seconds, rate=2 * full["rates"]["200"], settle=FILLS)
        share, of_each = twice["rates"].get("200", 0.0) / full["rates"]["200"], twice["outcomes"]
        print(f"refusing, round {turn + 1} of {ROUNDS}: {share:.1%}", file=sys.stderr)
        rows.append(
            {
                "round": turn + 1,
                f"answered/s, {CLIENTS[-1]} clients": full["rates"]["200"],
                "answered/s, twice that asked": twice["rates"].get("200", 0.0),
                "refused/s": twice["rates"].get("503", 0.0),
                "share": f"{share:.1%}",
                "processor ms an answer": 1e3 * full["server"],
                "while refusing": 1e3 * twice["server"] * sum(of_each.values()) / max(1, of_each.get("200", 0)),
            }
        )
    share = statistics.median(float(row["share"].rstrip("%")) / 100 for row in rows)
    return Table(
        "While it refuses: twice what it just answered, in turns",
        rows,
        [Goal(f"at least {KEPT:.0%} of what it can answer, in the median", f"{share:.1%}", share >= KEPT)],
        f"{FILLS:g} s in which the queue fills are not counted. Answers come in batches, so a rate has steps.",
    )


def overload(server: Server, photos: Path, capacity: float, minutes: float) -> Table:
    """Twice the requests that it can answer, for some minutes."""
    memory, began, watch = [], time.monotonic(), server.watch()
    plan = Plan(server.port, server.path, server.field, str(photos), 60 * minutes, rate=2 * capacity, settle=SETTLE)
    with loading(plan) as clients:
        while clients.poll() is None and time.monotonic() - began < 60 * minutes + 180:
            time.sleep(1)
            if SETTLE <= time.monotonic() - began <= SETTLE + 60 * minutes:
                memory.append(server.resident())
                if len(memory) % 60 == 0:
                    print(f"overload, {len(memory) // 60} min: {memory[-1]:.0f} MB", file=sys.stderr)
        seen = json.loads(clients.communicate(timeout=5)[0])
    seen["server"], seen["others"] = watch()
    return overload_table(seen, memory, capacity, minutes)


def overload_table(seen: dict[str, Any], memory: Sequence[float], capacity: float, minutes: float) -> Table:
    """Outcomes, times and memory under twice the capacity."""
    outcomes, answered = seen["outcomes"], seen["rates"].get("200", 0.0)
    others = {name: count for name, count in outcomes.items() if name not in ("200", "503")}
    slope = np.polyfit(np.arange(len(memory)) / 60, memory, 1)[0]
    minute = max(1, min(60, len(memory) // 3))
    first, last = statistics.median(memory[:minute]), statistics.median(memory[-minute:])
    rows = {
        "requests sent a second": sum(seen["rates"].values()),
        "answered with 200, in all": outcomes.get("200", 0),
        "refused with 503 and Retry-After, in all": outcomes.get("503", 0),
        "anything else": json.dumps(others) if others else 0,
        "answered a second, of the capacity": f"{answered / capacity:.1%}",
        "processor ms a request answered with 200": 1e3 * seen["server"] / max(1, outcomes.get("200", 0)),
        **{f"200: {name} ms": ms for name, ms in seen["ms"].get("200", {}).items()},
        **{f"503: {name} ms": ms for name, ms in seen["ms"].get("503", {}).items()},
        **{f"/healthz: {name} ms": ms for name, ms in seen["pulse"].items()},
        "memory, first minute, MB": first,
        "memory, last minute, MB": last,
        "memory, most, MB": max(memory),
        "memory, slope, MB a minute": float(slope),
        "clients' processor": f"{seen['processors']:.1%}",
        "others' processor": f"{seen['others']:.0%}",
    }
    return Table(
        f"Overload: twice the {capacity:.1f} requests/s that it can answer, at random times, for {minutes:g} minutes",
        [{"": name, "value": value} for name, value in rows.items()],
        [
            Goal("nothing but 200 and 503", f"{json.dumps(others) if others else 'nothing else'}", not others),
            Goal(
                f"memory of the last minute at most {FLAT} times the first",
                f"{last / first:.3f} times",
                last <= FLAT * first,
            ),
        ],
        f"What it can answer is the best round with {CLIENTS[-1]} clients. The first {SETTLE:g} s are not counted, but "
        "for the outcomes. Times run from when a request was due.",
    )


def median(found: Sequence[dict[str, Any]], *keys: str) -> float:
    """The median over rounds of a value deep within."""

    def inner(value: Any) -> float:
        for key in keys:
            value = value[key]
        return float(value)

    return statistics.median(map(inner, found))


def measure(photos: Path, seconds: float, minutes: float) -> Iterator[Table]:
    """The tables, as they are done."""
    naive = Path(__file__).parent / "baselines" / "naive_server.py"
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        serve, home = ["-m", "outword", "serve", "--labels", str(LABELS), "--port", "0"], Path(scratch)
        servers = [
            stack.enter_context(serving("outword serve", serve, "/v1/score", "images", home / "serve.log")),
            stack.enter_context(serving("naive", [str(naive), str(LABELS)], "/score", "image", home / "naive.log")),
        ]
        check_same(servers, photos)
        seen, alone = in_turns(servers, photos, seconds)
        yield closed_table(seen, [server.name for server in servers])
        most = seen[servers[0].name, CLIENTS[-1]]
        yield floor_table(alone, median(most, "rates", "200"))
        yield parts_table(alone, median(seen[servers[0].name, 1], "ms", "200", "p50"))
        yield refusing(servers[0], photos, seconds)
        yield overload(servers[0], photos, max(found["rates"]["200"] for found in most), minutes)


def main() -> None:
    """Measure, print, and write after each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=PHOTOS, help="a folder; the photos of the demo by default")
    parser.add_argument("--seconds", type=float, default=20, help="of each closed loop")
    parser.add_argument("--minutes", type=float, default=10, help="of overload")
    parser.add_argument("-o", "--output", type=Path, help="the JSON file")
    parser.add_argument("--library", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library:
        print(json.dumps(library(Path(args.library[0]), float(args.library[1]))))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    photos = args.photos.resolve()
    count = sum(1 for _ in find_images([photos]))
    folder = "" if args.photos == PHOTOS else "--photos FOLDER "
    options = f"{folder}--seconds {args.seconds:g} --minutes {args.minutes:g}"
    facts = {"command": f"python benchmarks/serve.py {options}", "photos": count, **circumstances("cpu")}
    print(
        f"{facts['command']}\n\n{facts['date']}, {facts['machine']}, {facts['versions']}, {count} photos\n", flush=True
    )
    tables = []
    for table in measure(photos, args.seconds, args.minutes):
        print(markdown(table) + "\n", flush=True)
        tables.append(asdict(table))
        if args.output:
            with whole_file(args.output) as file:
                file.write_text(json.dumps({**facts, "tables": tables}, indent=1) + "\n", encoding="utf-8")
    missed = [goal["aim"] for table in tables for goal in table["goals"] if not goal["met"]]
    print(f"goals missed: {'; '.join(missed) or 'none'}", file=sys.stderr)


if __name__ == "__main__":
    main()
