"""Take the picture of the page that the README shows: the service on the demo photos, in Chromium.

    python tools/build_screenshot.py        # writes docs/images/page.png

It needs Debian's chromium and chromium-driver, and outword[serve].
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "images" / "page.png"
SIZE = 1280, 900
MOST = 400_000  # bytes
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
]
READY = """
const pictures = document.querySelectorAll(".card .open img").length;
return pictures > 0 && pictures === document.querySelectorAll(".card").length;
"""


@contextmanager
def served() -> Iterator[str]:
    """The address of a service with the demo's labels."""
    code = "from outword.cli import main; main()"
    labels = ROOT / "src" / "outword" / "demo" / "labels.txt"
    command = [sys.executable, "-c", code, "serve", "--labels", str(labels), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def take(address: str) -> Image.Image:
    """The page at its first visit, when all photos are judged and pictured."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(address)
        WebDriverWait(driver, 60).until(lambda _: driver.execute_script(READY))
        return Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    finally:
        driver.quit()


def main() -> None:
    """Write the picture, in 256 colours, which are enough and take a third of the bytes."""
    with served() as address:
        picture = take(address)
    data = io.BytesIO()
    picture.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(data, "PNG", optimize=True)
    if len(data.getvalue()) > MOST:
        sys.exit(f"the picture takes {len(data.getvalue()):,} bytes, and {MOST:,} are the most")
    TARGET.write_bytes(data.getvalue())
    print(f"{TARGET.relative_to(ROOT)}: {len(data.getvalue()):,} bytes")


if __name__ == "__main__":
    main()
