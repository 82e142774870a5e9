"""What verbs that list photos share: a table on a terminal, CSV when piped or with -o, JSON lines, paths, a page."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import IO, Any

import click

from outword.base.cells import csv_line, line_of
from outword.base.files import check_outputs, whole_file
from outword.base.prediction import Cell, Prediction
from outword.cli.options import Option, together
from outword.cli.progress import print_table, say, show
from outword.errors import ParameterError

listing_options: Option = together(
    "listing",
    output=click.option(
        "-o", "--output", type=click.Path(), help="A file to write, .csv or .jsonl.  [default: stdout]"
    ),
    html=click.option("--html", type=click.Path(), help="Also write a page with thumbnails."),
    as_json=click.option("--json", "as_json", is_flag=True, default=None, help="Print JSON, a line for each photo."),
    paths=click.option("--paths", is_flag=True, default=None, help="Print paths alone, one a line."),
    null=click.option("-0", "null", is_flag=True, default=None, help="The same for xargs -0: a null after each path."),
)


class PathLines:
    """Writes the paths of photos, as they are on disk, each with a null or a line end behind it.

    A path that has a line break in it is no line, and is left out.
    """

    def __init__(self, file: IO[bytes], *, null: bool) -> None:
        self._file, self._end = file, b"\0" if null else b"\n"
        self._left_out = 0

    def __call__(self, record: Prediction) -> None:
        """Write the path of a photo."""
        self.write(record.path)

    def write(self, path: str) -> None:
        """Write a path."""
        line = os.fsencode(path)
        if self._end in line:
            self._left_out += 1
        else:
            self._file.write(line + self._end)

    def close(self) -> None:
        """Show what was written, and say which paths are not among it."""
        self._file.flush()
        if self._left_out:
            which = "1 path is left out, as it has a line break"
            if self._left_out > 1:
                which = f"{self._left_out:,} paths are left out, as they have line breaks"
            say(f"warning: {which}: use -0")


def put_listing(
    listing: Mapping[str, Any],
    *,
    rows: Sequence[Mapping[str, Any]],
    flat: Sequence[Mapping[str, Cell]],
    columns: Sequence[str],
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    paths: Iterable[str],
    write_page: Callable[[str], None],
    colours: Mapping[str, str],
) -> None:
    """Print or write what was found, as the options say.

    Args:
        listing: the options that were given.
        rows: for JSON.
        flat: the same as texts and numbers, for CSV.
        columns: of CSV, the keys of `flat`.
        titles: of the table for people.
        cells: the rows of that.
        paths: what --paths prints.
        write_page: writes the page.
        colours: of the words in the table that have one.
    """
    as_json, only_paths = "as_json" in listing, "paths" in listing or "null" in listing
    output = listing.get("output")
    if output is not None:
        kind = "jsonl" if as_json else _kind(output)
        lines = _path_lines(paths, null="null" in listing) if only_paths else _lines(kind, rows, flat, columns)
        with whole_file(Path(output)) as temporary:
            temporary.write_bytes(b"".join(lines))
    elif only_paths:
        _print(_path_lines(paths, null="null" in listing))
    elif as_json:
        _print(_lines("jsonl", rows, flat, columns))
    elif sys.stdout is not None and sys.stdout.isatty():
        print_table(titles, cells, colour=lambda title, cell: colours.get(cell))
    else:
        _print(_lines("csv", rows, flat, columns))
    if html := listing.get("html"):
        write_page(html)


def shown_path(path: str, given: Sequence[str]) -> str:
    """A path as tables show it: without the folder, if a single one was given that it lies in.

    >>> shown_path("train/cat/1.jpg", ["train/"]), shown_path("a/1.jpg", ["a", "b"])
    ('cat/1.jpg', 'a/1.jpg')
    """
    top = PurePath(given[0]) if len(given) == 1 else None
    found = PurePath(path)
    if top is None or found == top or not found.is_relative_to(top):
        return path
    return str(found.relative_to(top))


def check_listing(listing: Mapping[str, Any]) -> None:
    """Raise, before any work, if the options contradict each other or cannot be written to."""
    if "as_json" in listing and ("paths" in listing or "null" in listing):
        raise ParameterError("--json and --paths are two forms of the same list", hint="choose one of them")
    output = listing.get("output")
    check_outputs(output, listing.get("html"))
    if output is not None and not {"as_json", "paths", "null"} & {*listing}:
        _kind(output)


def _kind(output: str) -> str:
    """The form that the name of a file asks for."""
    suffix = Path(output).suffix.lower().lstrip(".")
    if suffix not in ("", "csv", "jsonl"):
        raise ParameterError(f'-o must end in .csv or .jsonl, got ".{suffix}"', hint="-o list.csv")
    return suffix or "csv"


def _lines(
    kind: str, rows: Iterable[Mapping[str, Any]], flat: Iterable[Mapping[str, Cell]], columns: Sequence[str]
) -> list[bytes]:
    """Rows as lines of CSV with a header, or of JSON."""
    if kind == "jsonl":
        return [json.dumps(row).encode() + b"\n" for row in rows]
    return [line_of(columns), *(csv_line(row[name] for name in columns) for row in flat)]


def _path_lines(paths: Iterable[str], *, null: bool) -> list[bytes]:
    """Paths as `PathLines` writes them."""
    written = io.BytesIO()
    lines = PathLines(written, null=null)
    for path in paths:
        lines.write(path)
    lines.close()
    return [written.getvalue()]


def _print(lines: Sequence[bytes]) -> None:
    """Print bytes to stdout; to a terminal with escapes for control characters."""
    if sys.stdout is not None and sys.stdout.isatty():
        show(b"".join(lines).decode("utf-8", "surrogateescape"), nl=False)
        return
    click.echo(b"".join(lines), nl=False)
