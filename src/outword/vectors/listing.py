"""A listing that is made once and read many times: a thread goes on, and what it finds waits in a temporary file."""

from __future__ import annotations

import pickle
import struct
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")

IN_MEMORY = 16 << 20  # bytes of a listing; a longer one is on disk
_LENGTH = struct.Struct("<Q")


class Listing(Generic[Value]):
    """The values of an iterator, which a thread takes from it once; any number of readers may follow it.

    Iterating waits for the thread where it is behind, and raises what the iterator raised, at the same place. The file
    has no name, so that nobody else writes to it, and it is gone with the process. The thread ends when the listing is
    not used any more. Values can be pickled; each comes with how many items it stands for, None where nobody knows.
    """

    def __init__(self, values: Iterator[tuple[Value, int | None]]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # open as long as this is there
        weakref.finalize(self, self._file.close)
        self._changed = threading.Condition()
        self._size = self._values = 0  # bytes and values that are written
        self._items: int | None = 0
        self._ended = False
        self._error: BaseException | None = None
        threading.Thread(target=_fill, args=(weakref.ref(self), values), name="outword-listing", daemon=True).start()

    def __iter__(self) -> Iterator[Value]:
        at = 0
        while (record := self._record(at)) is not None:
            at += _LENGTH.size + len(record)
            yield pickle.loads(record)

    def wait(self) -> int:
        """The number of values, when all are there; raises what the iterator raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
        if self._error is not None:
            raise self._error
        return self._values

    def total(self) -> int | None:
        """The number of items, once all values are there, and where it is known; else None."""
        return self._items if self._ended and self._error is None else None

    def add(self, value: Value, items: int | None) -> None:
        """Write a value behind the others."""
        record = pickle.dumps(value)
        with self._changed:
            self._file.seek(self._size)
            self._file.write(_LENGTH.pack(len(record)) + record)
            self._size += _LENGTH.size + len(record)
            self._values += 1
            self._items = None if self._items is None or items is None else self._items + items
            self._changed.notify_all()

    def end(self, error: BaseException | None) -> None:
        """Say that no more values come, and why, if it is not that there are none."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _record(self, at: int) -> bytes | None:
        """The record at a place, when it is there; None behind the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._size > at or self._ended)
            if self._size > at:
                self._file.seek(at)
                return self._file.read(_LENGTH.unpack(self._file.read(_LENGTH.size))[0])
        self.wait()
        return None


def _fill(where: weakref.ref[Listing[Value]], values: Iterator[tuple[Value, int | None]]) -> None:
    """Write values to a listing as long as anyone has it."""
    error: BaseException | None = None
    try:
        for value, items in values:
            listing = where()
            if listing is None:
                return
            listing.add(value, items)
            del listing
    except BaseException as raised:
        error = raised
    if listing := where():
        listing.end(error)
