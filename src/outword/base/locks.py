"""Locks on folders, which the system takes away when a process ends, however that is; on Windows there are none."""

from __future__ import annotations

import os
from pathlib import Path

from outword.errors import InputError


def lock(folder: Path) -> int | None:
    """Hold a folder until `release`; `BlockingIOError` if another process does, None where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None  # a file system without locks
    return handle


def lock_output(folder: Path) -> int | None:
    """Keep other runs from writing to a folder until `release`; where the system can do that."""
    try:
        return lock(folder)
    except BlockingIOError:
        told = f"another run is writing to {folder}"
        raise InputError(told, hint="wait for it, or choose another folder") from None


def release(handle: int | None) -> None:
    """Give back what `lock` gave."""
    if handle is not None:
        os.close(handle)
