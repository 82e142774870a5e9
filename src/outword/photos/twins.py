"""The same photo twice, in any number of photos: what is known of those before lies in a temporary file."""

from __future__ import annotations

import sqlite3
import warnings
from types import TracebackType

import numpy as np

from outword.photos.quality import Fingerprint

SAME_AS = "the same as "  # how the note begins that names the earlier photo
DIFFERENT = 4  # bits of a fingerprint in which photos differ that are not the same
OTHER_COLOUR = 24  # of 255: a mean colour of a square that differs by more is of another photo (docs/notes.md)
_BANDS = DIFFERENT  # so one band at least of photos that are the same is the same
_TRIED = 64  # photos that share a band and are compared: the frames of a film share one with thousands
_TABLES = """
pragma journal_mode = off;
pragma synchronous = off;
create table photos (place integer primary key, bits blob, colours blob, name blob);
create table bands (band integer, place integer, primary key (band, place)) without rowid;
"""


class Twins:
    """Photos that were seen; `with Twins() as twins`. Which is the same as which hangs on their order alone.

    Memory stays flat. Each takes some 550 bytes in a temporary file. Where there is no room for that on the disk, there
    is a warning, and no photo is told to be the same as another from then on.
    """

    def __init__(self) -> None:
        self._known = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._known.executescript(_TABLES)
        self._is_full = False

    def __enter__(self) -> Twins:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._known.close()

    def first(self, name: str, fingerprint: Fingerprint | None) -> str | None:
        """The name of the first photo that was the same as this one; None for a new one, which is kept in mind."""
        if fingerprint is None or self._is_full:
            return None
        try:
            return self._first(name, fingerprint)
        except sqlite3.Error as error:
            self._is_full = True
            warnings.warn(f"the same photos are not looked for any more: {error}", stacklevel=2)
            return None

    def note(self, name: str, fingerprint: Fingerprint | None) -> list[str]:
        """The same as a note, or none: ["the same as cat.jpg"]."""
        known = self.first(name, fingerprint)
        return [] if known is None else [SAME_AS + known]

    def _first(self, name: str, fingerprint: Fingerprint) -> str | None:
        found: dict[int, bytes] = {}
        for band in _bands(fingerprint.bits):
            query = "select place, bits from bands join photos using (place) where band = ? order by place limit"
            found |= self._known.execute(f"{query} {_TRIED}", [band])
        for place, bits in sorted(found.items()):
            if (fingerprint.bits ^ int.from_bytes(bits, "big")).bit_count() < DIFFERENT:
                ((colours, known),) = self._known.execute("select colours, name from photos where place = ?", [place])
                if _alike(fingerprint.colours, colours):
                    return str(known, "utf-8", "surrogatepass")
        row = [fingerprint.bits.to_bytes(16, "big"), fingerprint.colours, name.encode("utf-8", "surrogatepass")]
        new = self._known.execute("insert into photos (bits, colours, name) values (?, ?, ?)", row).lastrowid
        self._known.executemany("insert into bands values (?, ?)", ((band, new) for band in _bands(fingerprint.bits)))
        return None


def _alike(colours: bytes, others: bytes) -> bool:
    one, other = (np.frombuffer(part, np.uint8).astype(np.int16) for part in (colours, others))
    return bool(np.abs(one - other).max() <= OTHER_COLOUR)


def _bands(bits: int) -> list[int]:
    """Every fourth bit, from the first, second, third or fourth on, with which it is: numbers of 34 bits."""
    digits = f"{bits:0128b}"
    return [int(digits[start::_BANDS], 2) << 2 | start for start in range(_BANDS)]
