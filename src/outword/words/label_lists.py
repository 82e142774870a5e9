"""Lists of labels as people have them: typed, in text files, tables, JSON, or as folders; what is guessed is said."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from outword.base.files import PathLike, parse_json, read_small
from outword.base.html import visible
from outword.base.reports import Say
from outword.errors import InputError
from outword.words.forms import squeeze
from outword.words.nouns import nouns
from outword.words.yaml_names import has_names, names_of

STDIN = "-"
LARGEST = 16 << 20  # bytes of a list; 50,000 labels of 200 characters have 10 MB
LINES = 1_000_000  # of a list, comments and repeats among them
TITLES = (  # of the column with the labels, without case and underscores, the likeliest first
    *("label", "labelname", "class", "classname", "category", "categoryname", "name"),
    *("labels", "classes", "categories", "names"),
)
JSON = ("[", "{")  # what it begins with
SHOWN = 8  # columns that a message names
_LIKE_A_PATH = re.compile(r"[/\\]|\.(txt|text|csv|tsv|jsonl?|lst|list|names|labels|md|ya?ml|xlsx?|outword|zip)$", re.I)
_COMMENT = re.compile(r"(?:^|\s)#.*")  # "crane#bird" and "C#" have none
_LINES = re.compile("\r\n?|\n")
_SEVERAL = re.compile("[,;]")  # what separates names that stand beside each other
_MARK = re.compile(r"[-*\u2022\u2013]\s+|\d+[.)]\s+")  # before a name in a list: "- elephant", "1. zebra"
_PLACE = re.compile(r"\d+:\s+")  # "0: person", as YOLO's files number classes; every line has one
_QUOTES = ('"', "'", "\u201c\u201d", "\u2018\u2019")
_NUMBER = re.compile(r"[-+]?[\d.,]+")
_WNID = re.compile(r"n\d{8}")
_CAMEL = re.compile(r"(?:[A-Z][a-z]+|[A-Z]{2,}(?=[A-Z][a-z]|$)){2,}")  # not iPhone, and nothing with digits
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z]+")


class Entry(NamedTuple):
    """A label of a list: where it stands, what is typed, and the prompt (a text) or kinds (a list) beside it."""

    place: str
    text: Any
    extra: Any = ""


class LabelList(NamedTuple):
    """What a list has, in order: where it is from, and what its places are called ("line", "entry", "folder")."""

    where: str
    unit: str
    entries: list[Entry]


def read_list(given: PathLike, column: str | None, say: Say) -> LabelList:
    """The entries of a list; `InputError` where there is none, or it cannot be read as one.

    Given is a file or a folder of class folders, "-" for standard input, or, as a text that is no path, the labels
    themselves. `column` is that of a table; one that is guessed is said.
    """
    if given == STDIN:
        if sys.stdin is None:
            raise InputError("standard input is closed", hint="name a file, or the labels themselves")
        if sys.stdin.isatty():
            say("class names, one a line; Ctrl-D ends the list")
        return _of_text(_text(sys.stdin.buffer, "standard input"), "standard input", "", column, say)
    if isinstance(given, str) and not os.path.exists(given):  # noqa: PTH110  # a text may be what no path can be
        return _typed(given, column, say)
    path = Path(given)
    if path.is_dir():
        return _of_folder(path)
    return _of_text(_text(path, str(path)), str(path), path.suffix.lower(), column, say)


def words_of(name: str) -> str:
    """What a class folder is about: WordNet's name of a wnid, with that as the sense; the words of a joined name.

    >>> [words_of(name) for name in ("n02084071", "space_shuttle", "SpaceShuttle", "USBCable", "sea-lion", "T-shirt")]
    ['dog#n02084071', 'space shuttle', 'space shuttle', 'USB cable', 'sea lion', 'T-shirt']
    """
    if (sense := nouns().by_wnid(name)) is not None:
        return f"{nouns().names(sense)[0]}#{name}"
    if _CAMEL.fullmatch(name):
        return " ".join(hump if hump.isupper() else hump.lower() for hump in _HUMP.findall(name))
    kebab = name.islower() and " " not in name and "-" not in nouns().spelled(name)
    return (name.replace("-", " ") if kebab else name).replace("_", " ")


def _typed(text: str, column: str | None, say: Say) -> LabelList:
    """The labels of an argument, as a file would have them; in a single line "track #5" is a name."""
    is_word = not any(sign in text for sign in (",", ";", ": ", "\n")) and not text.lstrip().startswith(JSON)
    if is_word and _LIKE_A_PATH.search(text.strip()):
        raise _missing(text)
    if "\n" not in text and not text.lstrip().startswith(JSON) and text.count(": ") > 1:
        raise InputError("a typed list takes one prompt, got several", hint="write a file, one NAME: PROMPT a line")
    return _of_text(text, "what was typed", "", column, say, comments="\n" in text)


def _missing(path: str) -> InputError:
    hint = f'check the path; a label of that name is typed with a comma behind it: "{path},"'
    return InputError(f"there is no label list {path}", hint=hint)


def _unreadable(where: str, why: object) -> InputError:
    return InputError(f"{where} cannot be read as text: {why}", hint="save it as UTF-8 text, one class name a line")


def _text(given: Path | IO[bytes], where: str) -> str:
    """What a file says."""
    try:
        data = read_small(given, LARGEST)
    except FileNotFoundError:
        raise _missing(where) from None
    except OSError as error:
        raise _unreadable(where, error) from None
    except ValueError:
        hint = "one class name a line, and nothing else, is enough"
        told = f"{where} is too large for a list of labels: over {LARGEST >> 20} MB"
        raise InputError(told, hint=hint) from None
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # as some editors and shells of Windows save
            return data.decode("utf-16")
        text = data.decode("utf-8-sig")
    except ValueError as error:
        raise _unreadable(where, error) from None
    if "\0" in text:
        raise _unreadable(where, "it has null bytes, as UTF-16 and files of programs have")
    return text


def _of_folder(folder: Path) -> LabelList:
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not names:
        hint = (
            f'name a folder of folders, one a class, or a file; a label of that name has a comma behind it: "{folder},"'
        )
        raise InputError(f"{folder} has no class folders in it", hint=hint)
    return LabelList(visible(str(folder)), "folder", [Entry(visible(name), words_of(name)) for name in names])


def _of_text(text: str, where: str, suffix: str, column: str | None, say: Say, *, comments: bool = True) -> LabelList:
    """What a text has: a table by its suffix or where a column is named, JSON by its suffix or its beginning, lines."""
    is_table = suffix in (".csv", ".tsv") or (not suffix and _has_header(text))
    if suffix in (".json", ".jsonl") or (not is_table and text.lstrip().startswith(JSON)):
        return _of_json(text, where, suffix == ".jsonl", column, say)
    if is_table or column is not None:
        return _of_table(text, where, suffix, column, say)
    if suffix in (".yaml", ".yml") or (not suffix and has_names(text)):
        names = names_of(text, where)
        return LabelList(where, "entry", [Entry(place, _by_wnid(name)) for place, name in names])
    if text.count("\n") + text.count("\r") > LINES:
        raise InputError(f"{where} has more than {LINES:,} lines", hint="a list has at most 50,000 labels")
    found = [(str(number), line) for number, line in enumerate(_LINES.split(text), start=1)]
    lines = [(number, _COMMENT.sub("", line) if comments else line) for number, line in found]
    lines = _unmarked([(number, line.strip()) for number, line in lines if line.strip()])
    if len(lines) == 1 and ": " not in lines[0][1]:
        return _of_cells(_SEVERAL.split(lines[0][1]), where)
    pairs = [(number, f"{line.rstrip(',;')} ".partition(": ")) for number, line in lines]
    entries = [Entry(number, _by_wnid(_unquoted(name.strip())), prompt.strip()) for number, (name, _, prompt) in pairs]
    return LabelList(where, "line", entries)


def _unmarked(lines: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Lines without the marks that lists have: "- elephant", "1. zebra"; and "0: person" where all are numbered so."""
    texts = [_MARK.sub("", text, count=1) if _MARK.match(text) else text for _, text in lines]
    if all(_PLACE.match(text) for text in texts):
        texts = [_PLACE.sub("", text, count=1) for text in texts]
    return [(number, text) for (number, _), text in zip(lines, texts, strict=True) if text]


def _unquoted(name: str) -> str:
    """A name without the quotes around it, if there are any.

    >>> _unquoted('"cat"'), _unquoted("rock 'n' roll"), _unquoted("'cat")
    ('cat', "rock 'n' roll", "'cat")
    """
    inside = name[1:-1].strip()
    quoted = any(name.startswith(pair[0]) and name.endswith(pair[-1]) for pair in _QUOTES)
    return inside if inside and quoted else name


def _has_header(text: str) -> bool:
    """Whether several lines begin with one that has the title of labels among others, as a table without a name has."""
    first, *rest = [line for line in _LINES.split(text) if line.strip()] or [""]
    cells = re.split("[,;\t]", first)
    return bool(rest) and len(cells) > 1 and any(squeeze(cell.strip().strip('"')) in TITLES for cell in cells)


def _of_cells(cells: Iterable[str], where: str) -> LabelList:
    """Labels that stand beside each other."""
    found = [(str(number), _unquoted(cell.strip())) for number, cell in enumerate(cells, start=1)]
    return LabelList(where, "entry", [Entry(number, _by_wnid(cell)) for number, cell in found if cell])


def _by_wnid(text: Any) -> Any:
    """The name of a wnid; what is no text is said later to be none."""
    return words_of(text) if isinstance(text, str) and _WNID.fullmatch(text) else text


def _of_table(text: str, where: str, suffix: str, column: str | None, say: Say) -> LabelList:
    """The labels of a CSV file: those of a column; one row, or one column, needs no header."""
    head = next((line for line in _LINES.split(text) if line.strip() and not line.startswith("#")), "")
    delimiter = "\t" if suffix == ".tsv" else max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(str(reader.line_num), [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        hint = "check its quotes, or save one class name a line as a text file"
        raise InputError(f"{where} cannot be read as a table, line {reader.line_num}: {error}", hint=hint) from None
    rows = [(line, row) for line, row in rows if any(row) and not row[0].startswith("#")]
    if column is None and len(rows) == 1 and not any(squeeze(cell) in TITLES for cell in rows[0][1]):
        return _of_cells(rows[0][1], where)
    if column is None and all(len(list(filter(None, row))) == 1 for _, row in rows):
        cells = [(line, next(filter(None, row))) for line, row in rows]
        if cells and squeeze(cells[0][1]) in TITLES:
            say(f"{where}: its first line, {cells[0][1]!r}, is taken for a header")
            del cells[0]
        return LabelList(where, "line", [Entry(line, _by_wnid(cell)) for line, cell in cells])
    header = rows[0][1] if rows else []
    if column is None and any(_NUMBER.fullmatch(title) for title in header):
        hint = "add a line with the names of its columns, and name that of the labels: --label-column NAME"
        raise InputError(f"{where} has no header: its first line is {', '.join(header[:SHOWN])}", hint=hint)
    records = [(line, dict(zip(header, row, strict=False))) for line, row in rows[1:]]
    return LabelList(where, "line", _of_records(header, records, where, column, say))


def _of_records(
    titles: Sequence[str], records: Sequence[tuple[str, Mapping[str, Any]]], where: str, column: str | None, say: Say
) -> list[Entry]:
    """The labels in the column that was named, or that looks most like it."""
    found = column if column in titles else next((one for one in titles if squeeze(one) == squeeze(column or "")), None)
    shown = ", ".join(titles[:SHOWN]) + (f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else "")
    if column is not None and found is None:
        raise InputError(f'{where} has no column "{column}"', hint=f"it has {shown}")
    if column is None:
        texts = [one for one in titles if not records or any(_is_name(record.get(one)) for _, record in records)]
        titled = sorted((TITLES.index(squeeze(one)), one) for one in texts if squeeze(one) in TITLES)
        found = titled[0][1] if titled else texts[0] if len(texts) == 1 else None
        if found is None:
            hint = f"name it: --label-column {(texts or titles or ['NAME'])[-1]}"
            raise InputError(f"{where} has the columns {shown}, and none that is surely of labels", hint=hint)
        say(f"{where}: labels are taken from the column {found!r}; --label-column names another")
    assert found is not None
    pairs = ((place, record.get(found)) for place, record in records)
    return [Entry(place, _by_wnid(cell)) for place, cell in pairs if cell]


def _is_name(cell: Any) -> bool:
    return isinstance(cell, str) and bool(cell) and not _NUMBER.fullmatch(cell)


def _of_json(text: str, where: str, in_lines: bool, column: str | None, say: Say) -> LabelList:
    """The labels of a JSON list, of objects with names, or of an object with names, numbers, prompts or kinds."""
    try:
        lines = [(number, line) for number, line in enumerate(_LINES.split(text), start=1) if line.strip()]
        found = [parse_json(line) for _, line in lines] if in_lines else parse_json(text)
    except ValueError as error:
        hint = 'write ["cat", "dog"], or one class name a line into a text file'
        raise InputError(f"{where} cannot be read as JSON: {error}", hint=hint) from None
    if isinstance(found, dict) and len(found) == 1 and squeeze(next(iter(found))) in TITLES:
        found = next(iter(found.values()))  # {"labels": [...]}
    if isinstance(found, dict):
        return LabelList(where, "entry", _of_object(found))
    if not isinstance(found, list):
        raise InputError(f"{where} must be a list of labels, got {found!r:.80}", hint='write ["cat", "dog"]')
    unit, places = ("line", [str(number) for number, _ in lines]) if in_lines else ("entry", _numbers(found))
    if found and all(isinstance(one, dict) for one in found):
        titles = list(dict.fromkeys(title for one in found for title in one))
        return LabelList(where, unit, _of_records(titles, list(zip(places, found, strict=True)), where, column, say))
    return LabelList(where, unit, [Entry(place, _by_wnid(one)) for place, one in zip(places, found, strict=True)])


def _numbers(items: Sequence[Any]) -> list[str]:
    return [str(number) for number in range(1, len(items) + 1)]


def _of_object(found: Mapping[str, Any]) -> list[Entry]:
    """Labels with their numbers, either way round, as models have them; else with a prompt, kinds or nothing."""
    if found and all(key.isdecimal() for key in found):  # {"0": "tench"}, {"0": ["n01440764", "tench"]}
        names = (value[0] if isinstance(value, list) and value else value for value in found.values())
        return [Entry(key, _by_wnid(name)) for key, name in zip(found, names, strict=True)]
    if all(isinstance(value, int) for value in found.values()):  # {"tench": 0}
        found = dict.fromkeys(found)
    places = _numbers([*found])
    return [Entry(place, _by_wnid(key), found[key] or "") for place, key in zip(places, found, strict=True)]
