"""Write constraints.txt and the two locks: the versions that tests and the service run with, and hashes of their files.

    .venv/bin/python tools/lock.py            (minutes; the network; Python 3.11 on Linux x86-64)

pip resolves pyproject.toml as if nothing were installed, and takes the newest; what constraints.txt says of torch and
Triton stays, since their builds differ by machine: edit it to move them. They have no hashes. All others have those of
every file of their version, so that a lock serves on other systems too, where their dependencies are the same.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from pip._internal.models.index import PyPI  # the address that pip has by default

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS, DEV, SERVE = (ROOT / name for name in ("constraints.txt", "requirements.lock", "requirements-serve.lock"))
BUILDS = {"torch", "triton"}  # differ by machine
OF_BUILDS = ("nvidia-", "cuda-")  # come with some builds of torch
BUILD_TOOLS = ("hatchling", "editables")  # make the package itself
LINK = re.compile(r"#sha256=([0-9a-f]{64})[^>]*>\s*([^<\s]+)\s*<")
WRITTEN = "# Written by tools/lock.py"


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--index", default=PyPI.simple_url, help="a package index; pip's own by default")
    index = parser.parse_args().index
    kept = [f"{name}=={version}" for name, (version, _) in locked(CONSTRAINTS).items() if name in BUILDS]
    versions = resolved(".[dev]", *BUILD_TOOLS, constraints=kept)
    pins = [f"{name}=={version}" for name, version in versions.items()]
    service = resolved(".[serve]", constraints=pins)
    with ThreadPoolExecutor(8) as pool:
        named = {name: version for name, version in versions.items() if name not in BUILDS}
        found = dict(zip(named, pool.map(partial(file_hashes, index), named.items()), strict=True))
    about = f"{WRITTEN}: what tests and development run with; the package itself takes what pyproject.toml says."
    CONSTRAINTS.write_text("\n".join([about, *pins, ""]))
    DEV.write_text(lock(f"{WRITTEN}: `make test` installs it.", named, found))
    SERVE.write_text(lock(f"{WRITTEN}: what the service needs, for the Dockerfile.", service, found))


def resolved(*requirements: str, constraints: Iterable[str]) -> dict[str, str]:
    """Versions by name of what pip would install where nothing is, without outword and what comes with builds."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(constraints))
        file.flush()
        command = "install --dry-run --quiet --ignore-installed --report - --constraint"
        pip = [sys.executable, "-m", "pip", *command.split(), file.name, *requirements]
        report = json.loads(subprocess.run(pip, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    found = {canonicalize_name(one["metadata"]["name"]): one["metadata"]["version"] for one in report["install"]}
    return {
        name: version.partition("+")[0]
        for name, version in sorted(found.items())
        if name != "outword" and not name.startswith(OF_BUILDS)
    }


def file_hashes(index: str, pin: tuple[str, str]) -> list[str]:
    """SHA-256 of every file of a version."""
    name, version = pin
    request = urllib.request.Request(f"{index}/{name}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        links = LINK.findall(answer.read().decode())
    found = sorted(digest for digest, file in links if _version(file) == Version(version))
    if not found:
        raise SystemExit(f"{index} has no file of {name} {version}")
    return found


def lock(about: str, versions: dict[str, str], hashes: dict[str, list[str]]) -> str:
    """The text of a lock; a line for each package, with the hashes of all its files."""
    lines = [
        " ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes[name])])
        for name, version in versions.items()
    ]
    return "\n".join([about, *lines, ""])


def locked(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Versions and hashes by name, of a lock or of constraints, which have no hashes."""
    lines = re.findall(r"^([\w.-]+)==(\S+)(.*)$", path.read_text(), re.MULTILINE)
    return {name: (version, re.findall("sha256:([0-9a-f]+)", rest)) for name, version, rest in lines}


def _version(file: str) -> Version | None:
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None  # of old times


if __name__ == "__main__":
    main()
