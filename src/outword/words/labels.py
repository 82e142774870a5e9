"""Labels as people type them, in Python or in what `outword.words.label_lists` reads, checked before anything is done.

`crane` is a name; `crane#bird` says which crane; `sofa | couch` has two names; `pet > cat | hamster` has kinds, and
`animal > -dog` has all of its kinds but one.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outword.base.files import PathLike
from outword.base.reports import Say, quiet
from outword.base.wording import a_few
from outword.errors import InputError
from outword.words.forms import fold
from outword.words.label_lists import Entry, LabelList, read_list
from outword.words.nouns import nouns

__all__ = ["Given", "Label", "Labels", "TooManyLabels", "check_labels", "parse", "read_labels"]

FEWEST, MOST, LONGEST = 1, 50_000, 200  # labels, with their other names and kinds; characters of each
SHOWN = 4  # labels, and places of a label, that a note names
PLURALS = {"line": "lines", "entry": "entries", "folder": "folders"}
LATIN = 0x250  # characters below are Latin letters and signs
BROAD = ("animal", "plant", "vehicle", "furniture", "clothing", "food", "tool", "building", "fruit")  # examples
WITHOUT = "-"  # stands before a kind that is taken away
_NOT = re.compile(
    r"(not|no|without|non|everything but|anything but|everything except|other than)(?:\s+|(?<=n)-)(?:an?\s+|the\s+)?(.+)",
    re.I,
)
_ARROW = re.compile(r"(?:^|\s)>(?:\s|$)")  # "<b>" is a name, odd as it is


class TooManyLabels(InputError):
    """There are more labels, with their other names and kinds, than are taken."""


@dataclass(frozen=True)
class Label:
    """One label: `text` as typed, its `name`, `others` it goes by, a `hint` at its sense, `kinds` and `prompt` by hand.

    `without` are kinds that are taken away, with all that is below them.

    >>> label = parse("crane#bird | demoiselle > sandhill crane")
    >>> label.name, label.others, label.hint, label.kinds
    ('crane', ('demoiselle',), 'bird', ('sandhill crane',))
    >>> parse("animal > -dog").without
    ('dog',)
    """

    text: str
    name: str
    others: tuple[str, ...] = ()
    hint: str = ""
    kinds: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    prompt: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is called; the first is shown."""
        return (self.name, *self.others)

    @property
    def size(self) -> int:
        """As how many labels it counts: each of its names and kinds is a text that must be encoded and compared."""
        return len(self.names) + len(self.kinds)


class Labels(Mapping[str, Label]):
    """Labels by what is shown of them, in order: checked, and never changed after that."""

    def __init__(self, labels: Mapping[str, Label]) -> None:
        self._labels = dict(labels)

    def __getitem__(self, shown: str) -> Label:
        return self._labels[shown]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __repr__(self) -> str:
        return f"Labels({self._labels})"


Given = Iterable[str] | Mapping[str, str | Sequence[str] | Label]  # names; or names with a prompt, kinds, or all of it


def read_labels(given: PathLike, *, column: str | None = None, say: Say = quiet) -> Labels:
    """Labels by what is shown of them: from a file, a folder of class folders, "-" for standard input, or typed.

    A text that is no path has the labels themselves, with commas between them. docs/labels.md says what a file may be.
    What names the same class again, in another case or spelling, is merged: files are put together by hand, and
    nothing hangs on how many lines they have. What is guessed and merged goes to `say`, a line each.

    >>> list(read_labels("cat, dog"))
    ['cat', 'dog']
    """
    found = read_list(given, column, say)
    labels: list[Label] = []
    by_text: dict[Any, int] = {}  # a table of photos may name each class ten thousand times
    by_key: dict[tuple[str, str], int] = {}
    entries: list[list[Entry]] = []  # of each label
    for entry in found.entries:
        typed = (repr(entry.text), repr(entry.extra))
        if typed not in by_text:
            label = _entered(entry, found)
            place = by_key.setdefault(_key(label), len(labels))
            if place == len(labels):
                labels.append(label)
                entries.append([])
            elif replace(label, text="", name="") != replace(labels[place], text="", name=""):
                first = f"{labels[place].text!r} ({found.unit} {entries[place][0].place})"
                told = f"labels must differ, got {first} and {label.text!r} ({found.unit} {entry.place})"
                raise InputError(f"{told} in {found.where}", hint="write all that is to be said of it into one of them")
            by_text[typed] = place
        entries[by_text[typed]].append(entry)
    if merged := [(label, own) for label, own in zip(labels, entries, strict=True) if len(own) > 1]:
        say(_merged(merged, found))
    return _checked(labels, found.where, MOST)


def _entered(entry: Entry, found: LabelList) -> Label:
    try:
        return _label(entry.text, entry.extra)
    except InputError as error:
        raise InputError(f"{found.where}, {found.unit} {entry.place}: {error.message}", hint=error.hint) from None


def _merged(merged: Sequence[tuple[Label, Sequence[Entry]]], found: LabelList) -> str:
    """Say which labels were named more than once, and where."""
    told = []
    for label, own in merged:
        names = " = ".join(dict.fromkeys([label.text, *(str(one.text) for one in own)]))
        told.append(f"{names} ({PLURALS[found.unit]} {a_few([one.place for one in own], SHOWN)})")
    return f"{found.where}: what is named more than once is merged: {a_few(told, SHOWN, what='more labels')}"


def check_labels(labels: Given, *, where: str = "the list", most: int = MOST) -> Labels:
    """Labels by what is shown of them, in the order given; refuses what cannot be told apart or is no name.

    The first name is shown; where two labels share it, both are shown as typed. A mapping gives a label a prompt (a
    text) or kinds (a list); what this function gave may be given again.

    >>> list(check_labels(["cat", " crane#bird ", "crane#machine", "sofa | couch"]))
    ['cat', 'crane#bird', 'crane#machine', 'sofa']
    >>> check_labels({"pet": ["cat", "hamster"]})["pet"].kinds
    ('cat', 'hamster')
    """
    if isinstance(labels, Labels):
        return labels
    if isinstance(labels, str):
        write = f"write {re.split(', *', labels)}"
        hint = f"outword.read_labels({labels!r}) reads a file" if os.path.exists(labels) else write  # noqa: PTH110
        raise InputError(f"labels must be a list of names, got the text {labels!r}", hint=hint)
    if not isinstance(labels, Iterable):
        raise InputError(f"labels must be a list of names, got {labels!r}", hint='write ["cat", "dog"]')
    given = labels.items() if isinstance(labels, Mapping) else ((name, "") for name in labels)
    return _checked([_label(name, extra) for name, extra in given], where, most)


def parse(text: str) -> Label:
    """What a typed label says: `NAME#HINT | NAME ... > KIND | -KIND ...`, all but the first name optional."""
    text = _check_text(text).strip()
    _check_says_what_is_there(text)
    head, *tail = _ARROW.split(text, maxsplit=1)
    names, kinds = _parts(head, text), _parts(tail[0], text) if tail else ()
    name, mark, hint = names[0].partition("#")
    if not name or not hint or name != name.rstrip() or hint != hint.lstrip():
        name, hint = names[0], ""  # C# and "track #5" are names
    for other in (*names[1:], *kinds):
        if mark and "#" in other:
            raise InputError(f"only the first name of a label takes a hint, got {text!r}", hint=f"write {name}#{hint}")
    without = dict.fromkeys(kind.removeprefix(WITHOUT).strip() for kind in kinds if kind.startswith(WITHOUT))
    given = [kind for kind in kinds if not kind.startswith(WITHOUT)]
    left = tuple(kind for kind in given if kind not in without)
    if not all(without) or (given and not left):
        told = f"no kind is left in the label {text!r:.200}"
        raise InputError(told, hint='write "animal > -dog" for all kinds but one')
    return Label(text, name, names[1:], hint, left, () if given else tuple(without))


def _check_says_what_is_there(text: str) -> None:
    """Raise for a label that names what is not to be seen, such as "not a dog".

    >>> _check_says_what_is_there("no entry sign")  # a thing, which WordNet does not know as an entry sign
    """
    found = _NOT.fullmatch(text)
    if found is None or not nouns().senses(found[2]):
        return
    hint = (
        "photos of none of the labels are out anyway, so leave this label away; a class without some of its kinds is "
        f'written so: "{_broader(found[2])}"'
    )
    told = f"a label must say what is to be seen, got {text!r}: encoders do not understand {found[1].lower()!r}"
    raise InputError(told, hint=hint)


def is_in_latin(text: str) -> bool:
    """Whether a text is in letters of the Latin alphabet, which English names are.

    >>> [is_in_latin(text) for text in ("crêpe", "собака", "\N{DOG FACE}")]
    [True, False, False]
    """
    return all(ord(character) < LATIN for character in text if unicodedata.category(character)[0] in "LS")


def _broader(name: str) -> str:
    """A label that is broader than a name, without it."""
    net = nouns()
    above = [net.names(at)[0] for sense in net.senses(name)[:1] for at in net.above(sense)]
    found = next((one for one in above if one in BROAD), None)
    return "animal > -dog" if found is None else f"{found} > -{nouns().spelled(name)}"


def _label(name: object, extra: str | Sequence[str] | Label | None) -> Label:
    """One label of a list, and what a mapping says of it."""
    if isinstance(extra, Label):
        return extra
    label = parse(_check_text(name))
    if not extra:
        return label
    if isinstance(extra, str):
        return replace(label, prompt=extra.strip())
    if not isinstance(extra, Iterable) or isinstance(extra, Mapping):
        hint = 'write {"crane": "a crane, the bird", "pet": ["cat", "hamster"]}'
        raise InputError(f"a label takes a prompt or a list of kinds, got {extra!r:.100}", hint=hint)
    kinds = [_check_text(kind) for kind in extra]
    return parse(f"{label.text} {'|' if label.kinds or label.without else '>'} {' | '.join(kinds)}")


def _parts(text: str, whole: str) -> tuple[str, ...]:
    """The names between `|`."""
    parts = tuple(part.strip() for part in text.split("|"))
    if not all(parts):
        hint = 'write "sofa | couch" for two names, "pet > cat | hamster" for kinds'
        raise InputError(f"a name is missing in the label {whole!r}", hint=hint)
    for part in parts:
        if len(part) > LONGEST:
            got = f"got {len(part)} ({part[:30]!r}...)"
            raise InputError(f"a label must have at most {LONGEST} characters, {got}", hint="shorten it")
    return parts


def _checked(labels: list[Label], where: str, most: int) -> Labels:
    """Labels by what is shown of them."""
    count = sum(label.size for label in labels)
    if count > most:
        told = f"{len(labels):,}" if count == len(labels) else f"{len(labels):,} with {count:,} names and kinds"
        hint = "split the list" if count == len(labels) else "split the list, or leave some names and kinds away"
        raise TooManyLabels(f"there must be {FEWEST} to {most:,} labels, got {told} in {where}", hint=hint)
    if len(labels) < FEWEST:
        told = f"there must be {FEWEST} to {most:,} labels, got {len(labels)} in {where}"
        raise InputError(told, hint="add a class name")
    seen: dict[tuple[str, str], str] = {}
    for label in labels:
        key = _key(label)
        if key in seen:
            raise InputError(f"labels must differ, got {seen[key]!r} and {label.text!r}", hint="remove one of them")
        seen[key] = label.text
    called = Counter(name for name, _ in seen)
    named = [_key(label)[0] for label in labels]
    shown = [label.text if called[name] > 1 else label.name for name, label in zip(named, labels, strict=True)]
    return Labels(dict(zip(shown, labels, strict=True)))


def _key(label: Label) -> tuple[str, str]:
    """What tells a label from others: its name and its sense; case counts where it tells two things apart."""
    name = label.name if nouns().is_proper(label.name) else fold(nouns().spelled(label.name))
    return name, fold(label.hint)


def _check_text(given: object) -> str:
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise InputError(f"a label must be one line of printable text, got {given!r:.100}", hint="remove or rename it")
    return given
