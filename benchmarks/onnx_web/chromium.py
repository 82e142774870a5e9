"""What a bundle says of the demo photos in Chromium, beside what the detector says.

    npm install onnxruntime-web@1.30.0                 # in a folder of its own
    python benchmarks/onnx_web/chromium.py --web FOLDER

It serves page.html, onnxruntime-web, a bundle of `mini` and the demo photos from a folder, and drives a headless
Chromium by selenium. It fails if a verdict differs. Pixels are Chromium's, which decodes JPEG a little otherwise.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

import numpy as np
from selenium import webdriver

import outword

LABELS = ["cat", "dog", "coffee", "clock", "space shuttle"]
ASK = """
const [urls, done] = arguments;
judged("detector.onnx", urls).then(done, (error) => done(String(error)));
"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and does not talk."""

    extensions_map: ClassVar = {
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        "": "text/html",
    }

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def asked(folder: Path, names: list[str]) -> list[dict[str, object]] | str:
    """What the page in `folder` says of photos."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=os.fspath(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(300)
        driver.get(f"http://127.0.0.1:{server.server_port}/page.html")
        return driver.execute_async_script(ASK, names)
    finally:
        driver.quit()
        server.shutdown()


def main() -> None:
    """Print a line a photo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--web", type=Path, required=True)
    args = parser.parse_args()
    photos = sorted((Path(str(files("outword"))) / "demo" / "photos").glob("*.jpg"))
    detector = outword.fit(LABELS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for found in (args.web / "node_modules/onnxruntime-web/dist").glob("ort*wasm*"):
            shutil.copy(found, folder)
        for path in [Path(__file__).parent / "page.html", *photos]:
            shutil.copy(path, folder)
        outword.bundle(detector, folder / "detector.onnx", precision="int8")
        rows = asked(folder, [path.name for path in photos])
    if isinstance(rows, str):
        sys.exit(rows)
    wrong = 0
    for record, row in zip(detector.predict(photos), rows, strict=True):
        verdict = "in" if row["verdict"] else "out"
        wrong += verdict != record.verdict
        print(f"{Path(record.path).name:16} {record.verdict:3} {record.score:7.2f}   Chromium: {verdict:3}", end=" ")
        print(f"{row['score']:7.2f} {row['label']}")
    print(f"{np.median([row['ms'] for row in rows]):.0f} ms a photo, {wrong} verdicts differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
