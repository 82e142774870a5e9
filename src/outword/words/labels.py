"""Label lists: from a text file or a folder of class folders, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from outword.errors import InputError
from outword.words.forms import fold

FEWEST, MOST, LONGEST = 2, 50_000, 200


def read_labels(path: str | os.PathLike[str]) -> dict[str, str]:
    """Labels with their own prompt, if any, from a text file or a folder.

    A text file has one name a line, or `name: prompt text`; blank lines and a byte order mark are passed over. In a
    folder the names of the sub-folders are the labels, with underscores as spaces.
    """
    source = Path(path)
    if source.is_dir():
        names = sorted(p.name for p in source.iterdir() if p.is_dir() and not p.name.startswith("."))
        return check_labels([name.replace("_", " ") for name in names], where=str(source))
    try:
        lines = source.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise InputError(f"there is no label list {source}", hint="write one class name a line into it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{source} cannot be read as text: {error}", hint="save it as UTF-8 text") from None
    pairs = [f"{line.strip()} ".partition(": ") for line in lines if line.strip()]
    names = [name.strip() for name, _, _ in pairs]
    check_labels(names, where=str(source))
    return {name: prompt.strip() for name, (_, _, prompt) in zip(names, pairs, strict=True)}


def check_labels(
    labels: Iterable[str] | Mapping[str, str], *, where: str = "the list", most: int = MOST
) -> dict[str, str]:
    """Labels with their own prompt, if any, in the order given; refuses what cannot be told apart or is no name.

    >>> check_labels(["cat", " dog "])
    {'cat': '', 'dog': ''}
    """
    if isinstance(labels, str):
        raise InputError(f"labels must be a list of names, got the text {labels!r}", hint=f"write [{labels!r}, ...]")
    if not isinstance(labels, Iterable):
        raise InputError(f"labels must be a list of names, got {labels!r}", hint='write ["cat", "dog"]')
    names = list(labels)
    seen: dict[str, str] = {}
    for name in names:
        _check_name(name)
        if fold(name) in seen:
            raise InputError(f"labels must differ, got {seen[fold(name)]!r} and {name!r}", hint="remove one of them")
        seen[fold(name)] = name
    if not FEWEST <= len(names) <= most:
        hint = "add a class name, for example what it is confused with" if len(names) < FEWEST else "split the list"
        raise InputError(f"there must be {FEWEST} to {most:,} labels, got {len(names):,} in {where}", hint=hint)
    prompts = labels if isinstance(labels, Mapping) else {}
    return {name.strip(): (prompts.get(name) or "").strip() for name in names}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a label must be one line of printable text, got {name!r}", hint="remove or rename it")
    if len(name) > LONGEST:
        raise InputError(
            f"a label must have at most {LONGEST} characters, got {len(name)} ({name[:30]!r}...)", hint="shorten it"
        )
