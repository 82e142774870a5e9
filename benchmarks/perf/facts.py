"""Where and with what a measurement was made."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ["outword", "numpy", "onnxruntime", "pillow", "threadpoolctl", "torch", "triton"]


def circumstances(device: str) -> dict[str, Any]:
    """Date, machine and versions."""
    versions = {"python": platform.python_version()} | {name: installed(name) for name in PACKAGES}
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": machine(device),
        "versions": {name: found for name, found in versions.items() if found},
    }


def machine(device: str) -> str:
    """The processor, and the GPU where it is asked for."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    cores = f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
    found = f"{next(iter(names), platform.processor())}, {cores}"
    if device == "cpu":
        return found
    return f"{device_name()}, {found}"


def device_name() -> str:
    """The GPU, where there is one."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def installed(name: str) -> str | None:
    """The version of a package, or None."""
    if name == "outword":
        from outword._version import __version__

        return __version__
    try:
        return version(name)
    except PackageNotFoundError:
        return None
