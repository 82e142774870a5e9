"""What software made a figure: versions and commit."""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from outword._version import __version__

PACKAGES = ("numpy", "pillow", "onnxruntime", "safetensors", "torch", "open_clip_torch", "transformers", "scipy")


@cache
def versions() -> dict[str, str]:
    """Versions of what figures may hang on."""
    found = {"outword": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@cache
def commit() -> str:
    """The commit of outword's sources, with "+" where files differ from it; "" where they are not under git."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here.parent)) else "")
    except (OSError, subprocess.SubprocessError):
        return ""
