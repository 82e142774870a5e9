"""What the scripts share that write a page of the docs from the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def keep(page: Path, text: str, script: str) -> int:
    """Write a page, or with `--check` on the command line say whether it is stale; gives the exit code."""
    parser = argparse.ArgumentParser(description=f"Write {page.name} from the package.")
    parser.add_argument("--check", action="store_true", help="exit 1 when the page is stale")
    if not parser.parse_args().check:
        page.write_text(text, encoding="utf-8")
        return 0
    stale = not page.exists() or page.read_text(encoding="utf-8") != text
    if stale:
        print(f"{page.name} is stale: run python tools/{script}", file=sys.stderr)
    return int(stale)
