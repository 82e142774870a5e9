"""A service under attack: its memory above idle, and how long others wait meanwhile."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from dangers.images import cut_png, encoded, hidden_scans, scan
from perf.jpegs import PHOTOS

LABELS = PHOTOS.parent / "labels.txt"
JSON = "application/json"


def form(*images: bytes) -> tuple[bytes, str]:
    """A body of images, and its type."""
    head = b'--xYz\r\ncontent-disposition: form-data; name="images"; filename="a"\r\n\r\n'
    return b"".join(head + image + b"\r\n" for image in images) + b"--xYz--\r\n", "multipart/form-data; boundary=xYz"


def blank_body(size: int = 31_000_000) -> tuple[bytes, str]:
    """The JSON of one image whose base64 has a blank after every second character; it is no image."""
    return b'{"images": ["' + b"AA " * (size // 6 * 2) + b'"]}', JSON


def large_jpegs(count: int = 32) -> tuple[bytes, str]:
    """Photos of 48 megapixels in several scans, which take longest; of a smooth subject, so that a body holds them."""
    smooth = scan(800).resize((8000, 6000), Image.Resampling.BICUBIC)
    return form(*[encoded(smooth, "JPEG", quality=15, progressive=True, subsampling=0)] * count)


def status(pid: int, name: str) -> float:
    """Megabytes that the kernel tells of a process: VmRSS now, VmHWM at most so far."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) / 1000


@contextmanager
def serving(env: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A process of `outword serve` with the demo's labels: its id and its port."""
    command = [sys.executable, "-m", "outword", "serve", "--labels", str(LABELS), "--port", "0"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            yield running.pid, int(running.stdout.readline().strip().rpartition(":")[2])
        finally:
            running.terminate()


def asked(port: int, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> tuple[int, float]:
    """The status of a request, and the seconds that it took."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, {"content-type": kind} if body else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.monotonic() - began


def load(
    env: dict[str, str], body: tuple[bytes, str], clients: int, beside: Callable[[int], float]
) -> dict[str, object]:
    """What a service takes while `clients` send the same at once, and how long somebody else waits beside it."""
    with serving(env) as (pid, port):
        for _ in range(3):
            asked(port, "POST", "/v1/score", *form((PHOTOS / "cat.jpg").read_bytes()))
        idle, done, waits = status(pid, "VmRSS"), threading.Event(), [0.0]

        def watch() -> None:
            while not done.is_set():
                waits.append(beside(port))
                time.sleep(0.01)

        watcher = threading.Thread(target=watch)
        with ThreadPoolExecutor(clients) as pool:
            answers = [pool.submit(asked, port, "POST", "/v1/score", *body) for _ in range(clients)]
            time.sleep(0.5)  # until it has them in hand
            watcher.start()
            statuses = [answer.result()[0] for answer in answers]
        done.set()
        watcher.join()
        told = f"answers {json.dumps(statuses)}"
        return {"s": max(waits), "MB": status(pid, "VmHWM") - idle, "says": told}


def health(port: int) -> float:
    """Seconds that /healthz takes."""
    return asked(port, "GET", "/healthz")[1]


def cat(port: int) -> float:
    """Seconds that one small photo takes."""
    return asked(port, "POST", "/v1/score", *form((PHOTOS / "cat.jpg").read_bytes()))[1]


def measure(env: dict[str, str]) -> dict[str, dict[str, object]]:
    """Each attack with who waited how long beside it."""
    return {
        "four bodies of 31 MB, base64 with blanks; /healthz": load(env, blank_body(), 4, health),
        "40 cut PNGs of 24 megapixels in one request; /healthz": load(env, form(*[cut_png()] * 40), 1, health),
        "two requests of a JPEG of 20,000 hidden scans; cat.jpg": load(env, form(hidden_scans()), 2, cat),
        "three requests of 32 progressive JPEGs of 48 megapixels; cat.jpg": load(env, large_jpegs(), 3, cat),
    }
