"""Texts as cells of CSV, and back.

All of it is UTF-8. A byte of a file name that is no text is written as `\\xe9`, and the backslash of a name that looks
like that itself as `\\x5c`, so that the name comes back as it was.

Numbers have six significant digits.

What a spreadsheet would take for a formula has a `'` before it: a cell, or what stands in a cell behind a semicolon, a
tab or a line break, which are separators to some, that begins with `=`, `+`, `-`, `@` (of any width), a tab or a line
break. What has such a `'` already gets one more. Raw CSV is without them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from functools import lru_cache

DIGITS = 6  # of a number in CSV
NUMBER = f"%.{DIGITS}g"
CLOSE = 10.0 ** (1 - DIGITS)  # two numbers with the same digits lie at most as far apart, in parts of themselves
_ODD_BYTE = re.compile(r"[\udc80-\udcff]|\\(?=x(?:5c|[89a-f][0-9a-f]))")
_WRITTEN_BYTE = re.compile(r"\\x(5c|[89a-f][0-9a-f])")
_START, _FORMULA = r"(?<![^;\t\r\n])", r"(?=[' ]*[=+\-@\t\r\n\0\uff1d\uff0b\uff0d\uff20])"
_BEFORE_FORMULA, _QUOTE = re.compile(_START + _FORMULA), re.compile(_START + "'" + _FORMULA)
_QUOTED = re.compile(r"[\"\r\n]")  # makes csv put quotes around a cell, as a comma does


def csv_text(text: str, *, raw: bool = False) -> str:
    """A text as a cell of CSV has it, before commas and quotes are looked after: UTF-8, and no formula unless raw.

    >>> csv_text("=cmd.jpg"), csv_text("=cmd.jpg", raw=True), csv_text("caf\\udce9.jpg")
    ("'=cmd.jpg", '=cmd.jpg', 'caf\\\\xe9.jpg')
    """
    return portable(text) if raw else _BEFORE_FORMULA.sub("'", portable(text))


_known_text = lru_cache(1 << 14)(csv_text)  # labels and the like come again and again


def csv_line(cells: Iterable[str | float | None], *, raw: bool = False) -> bytes:
    r"""Texts and numbers as a line of CSV; None is empty.

    >>> csv_line(["a, b.jpg", -0.5, "in", None, "=1"]).decode()
    '"a, b.jpg",-0.5,in,,\'=1\n'
    """
    return line_of([_csv_cell(cell, raw) for cell in cells])


def _csv_cell(cell: str | float | None, raw: bool) -> str:
    if cell is None:
        return ""
    return _known_text(cell, raw=raw) if isinstance(cell, str) else NUMBER % cell


def rounded_below(number: float, limit: float) -> float:
    """A number as CSV has it, but less than the limit as CSV has that: where both have the same digits, one less.

    >>> rounded_below(0.25, 0.5), rounded_below(1.2345699, 1.23457), rounded_below(-1.00000001, -1.0)
    (0.25, 1.23456, -1.00001)
    """
    if limit - number > CLOSE * abs(limit):  # as nearly always
        return number
    shown, most = NUMBER % number, NUMBER % limit
    if float(shown) < float(most):
        return number
    return float(Decimal(most).next_minus(Context(prec=DIGITS)))


def csv_cell(text: str) -> str:
    """What `csv_text` was given, not raw.

    >>> csv_cell(csv_text("=cmd.jpg"))
    '=cmd.jpg'
    """
    return restored(unquoted(text))


def unquoted(cell: str) -> str:
    """A cell without the `'` that `csv_text` put before what looks like a formula.

    >>> unquoted("'=cmd.jpg"), unquoted("'tis.jpg")
    ('=cmd.jpg', "'tis.jpg")
    """
    return _QUOTE.sub("", cell)


def portable(text: str) -> str:
    """A text with the bytes that are none written out; what cannot be a file name is made to fit."""
    if text.isascii() and "\\" not in text:  # as nearly all are
        return text
    written = _ODD_BYTE.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", text)
    return written.encode("utf-8", "backslashreplace").decode()


def restored(text: str) -> str:
    """What `portable` was given."""
    return _WRITTEN_BYTE.sub(lambda found: "\\" if found[1] == "5c" else chr(0xDC00 + int(found[1], 16)), text)


def line_of(cells: Sequence[str]) -> bytes:
    """A line of CSV.

    >>> line_of(["a, b.jpg", "", "in"])
    b'"a, b.jpg",,in\\n'
    """
    plain = ",".join(cells)
    if plain.count(",") == len(cells) - 1 and not _QUOTED.search(plain):  # as nearly all are
        return plain.encode() + b"\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)  # what is in the line end is quoted in cells
    return line.getvalue()[:-2].encode() + b"\n"
