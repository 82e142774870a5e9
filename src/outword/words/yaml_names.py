"""The class names of a `data.yaml`, as YOLO's data sets have it: that part of YAML, and nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from outword.errors import InputError

_NAMES = re.compile(r"^names[ \t]*:(.*)$", re.M)
_ITEM = re.compile(r"\s*-\s+(.*)")  # "- cat"
_PAIR = re.compile(r"\s*[\"']?(\d+)[\"']?\s*:\s+(.*)")  # "0: cat"
_INLINE = re.compile(  # a name, perhaps in quotes, and what ends it; bounded, as the file may be anybody's
    r"""\s{0,300}(?:\d{1,9}\s{0,9}:\s{0,9})?("(?:[^"\\]|\\.){0,300}"|'(?:[^']|''){0,300}'|[^,\[\]{}]{0,300}?)\s{0,300}([,\]}])"""
)
_ENDS = {"[": "]", "{": "}"}
HINT = 'write "names: [cat, dog]", or one class name a line into a text file'


def has_names(text: str) -> bool:
    """Whether a text has a line that begins with `names:`, and lines of a list or a mapping after it."""
    found = _NAMES.search(text)
    if found is None:
        return False
    after = f"{_without_comment(found[1])}\n{text[found.end() :].lstrip()}".lstrip()
    return after.startswith(("[", "{")) or any(pattern.match(after) for pattern in (_ITEM, _PAIR))


def names_of(text: str, where: str) -> list[tuple[str, str]]:
    """The names, each with its place; `InputError` where there are none, or they are written in another way.

    >>> names_of("nc: 2\\nnames: ['cat', dog]  # pets\\n", "data.yaml")
    [('1', 'cat'), ('2', 'dog')]
    >>> names_of("names:\\n  0: cat\\n  1: dog\\nnc: 2\\n", "data.yaml")
    [('0', 'cat'), ('1', 'dog')]
    """
    found = _NAMES.search(text)
    if found is None:
        raise InputError(f"{where} has no line that begins with names:", hint=HINT)
    rest = _without_comment(found[1])
    if rest[:1] in _ENDS:
        lines = [rest, *map(_without_comment, text[found.end() :].splitlines())]
        inside = _inline("\n".join(lines), where)
        names = [(str(place), name) for place, name in enumerate(inside, start=1)]
    elif rest:
        raise InputError(f"the names of {where} must be a list or a mapping, got {rest!r:.80}", hint=HINT)
    else:
        names = list(_block(text[found.end() :].splitlines(), where))
    if not names:
        raise InputError(f"there are no names behind names: in {where}", hint=HINT)
    return names


def _block(lines: list[str], where: str) -> Iterator[tuple[str, str]]:
    """The names of a list or a mapping with one of them a line; what is not indented ends it."""
    place = 0
    for line in lines:
        text = _without_comment(line)
        if not text:
            continue
        is_indented = line[:1].isspace()
        if item := _ITEM.fullmatch(text):
            place += 1
            yield str(place), _plain(item[1])
        elif is_indented and (pair := _PAIR.fullmatch(text)):
            yield pair[1], _plain(pair[2])
        elif is_indented:
            raise InputError(f"the names of {where} must be a list or a mapping, got {text!r:.80}", hint=HINT)
        else:
            return


def _inline(text: str, where: str) -> Iterator[str]:
    """The names of `[cat, dog]` or `{0: cat, 1: dog}`, which a text begins with; they may take several lines."""
    end, at = _ENDS[text[0]], 1
    while found := _INLINE.match(text, at):
        if name := _plain(found[1]):
            yield name
        if found[2] == end:
            return
        at = found.end()
    raise InputError(f"the names of {where} have no end: {end} is missing", hint=HINT)


def _plain(text: str) -> str:
    """A name without its quotes."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _without_comment(line: str) -> str:
    return re.sub(r"(?:^|\s)#.*", "", line).strip()
