"""Memory that the service takes: after its start, with detectors that clients had made, with the largest images.

python benchmarks/serve_memory.py          (half a minute, Linux)
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from outword.client import Client
from outword.photos.walk import find_images
from outword.serve.limits import Limits
from perf.jpegs import PHOTOS
from perf.tables import Table, markdown
from serve import LABELS, serving

SIDE = 8192  # pixels; its square is the default limit
MODES = {"16-bit grey": "I;16", "transparent": "RGBA", "colour": "RGB"}


def png(mode: str) -> bytes:
    """A file of few bytes and as many pixels as are taken, but not so few that it is out of proportion."""
    buffer = io.BytesIO()
    image = Image.new(mode, (SIDE, SIDE))
    image.paste(Image.effect_noise((1024, 1024), 50).convert(mode), (0, 0))
    image.save(buffer, "PNG")
    return buffer.getvalue()


def status(pid: int, name: str) -> float:
    """Megabytes that the kernel tells of a process: VmRSS now, VmHWM at most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def measure() -> Iterator[dict[str, object]]:
    """A row for each state."""
    command = ["-m", "outword", "serve", "--labels", str(LABELS), "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving("outword serve", command, "", "", Path(scratch) / "serve.log") as server,
    ):
        client = Client(f"http://127.0.0.1:{server.port}")
        yield {"": "after the start", "MB": status(server.pid, "VmRSS")}
        photos = list(find_images([PHOTOS]))
        client.score(photos)
        yield {"": f"after {len(photos)} photos", "MB": status(server.pid, "VmRSS")}
        for i in range(Limits.detectors):
            client.score(photos[:1], detector=client.fit(["cat", f"thing {i}"]))
        yield {"": f"with {Limits.detectors} made detectors", "MB": status(server.pid, "VmRSS")}
        for name, mode in MODES.items():
            file = png(mode)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda one: client.score([one]), [file] * 4))
            told = f"at most, after 4 {name} PNG files of {SIDE}² pixels at once, {len(file) // 1000} kB each"
            yield {"": told, "MB": status(server.pid, "VmHWM")}


if __name__ == "__main__":
    print(markdown(Table("Memory of the service", list(measure()))))
