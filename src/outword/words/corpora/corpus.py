"""What a corpus is: words with their kinds; and how one comes from a text file, or from another, conjugated."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from outword.base.files import read_small, sha256_bytes
from outword.errors import InputError
from outword.words.forms import fold, normalise

NOUN = "noun"
ADJECTIVE = "adj"
Pairs = tuple[tuple[str, str], ...]
MAX_CHARACTERS = 400
LARGEST = 64 << 20  # bytes of a text file; all lemmas of WordNet are 2 MB
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tab and line ends
ENDS = re.compile(r"\r\n|\r|\n")

# The superclasses of Chen et al., "Conjugated Semantic Pool Improves OOD Detection with Pre-trained Vision-Language
# Models", NeurIPS 2024. The place in this list is part of the choice below: append, never insert.
SUPERCLASSES = (
    "environment", "space", "object", "scene", "place", "item", "area", "view", "thing", "pattern", "structure",
    "landscape", "vista", "creature",
)  # fmt: skip


@dataclass(frozen=True)
class Corpus:
    """Words to draw wild labels from, sorted and without duplicates; `kinds[i]` is "noun" or "adj".

    `fingerprint` is the sha256 of the words and their kinds: two corpora of equal content have the same one, whatever
    their names. It and `size` are known before `read` gives the (word, kind) pairs: a ranking that is kept needs none.
    """

    name: str
    fingerprint: str
    size: int
    read: Callable[[], Pairs] = field(repr=False, compare=False)

    def __len__(self) -> int:
        """How many words there are."""
        return self.size

    @cached_property
    def _pairs(self) -> Pairs:
        return self.read()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, sorted."""
        return tuple(word for word, _ in self._pairs)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each word."""
        return tuple(kind for _, kind in self._pairs)


def make_corpus(name: str, spelled: Iterable[tuple[str, str]]) -> Corpus:
    """Sort (word, kind) pairs by `fold` and leave out duplicates; the order of the pairs does not matter.

    Words that fold alike are one word: spelled as the greatest of them in code-point order, so that `china` wins over
    `China`, and a noun if any of them is a noun.

    >>> make_corpus("pets", [("dog", "noun"), ("China_dog", "noun"), ("Dog", "noun")]).words
    ('China dog', 'dog')
    """
    best: dict[str, tuple[str, str]] = {}
    for text, kind in spelled:
        if word := normalise(text):
            key = fold(word)
            other = best.get(key)
            best[key] = (word, kind) if other is None else (max(word, other[0]), max(kind, other[1]))  # "noun" > "adj"
    pairs = tuple(best[key] for key in sorted(best))
    content = "".join(f"{kind}\t{word}\n" for word, kind in pairs)
    return Corpus(name, sha256_bytes(content.encode("utf-8")), len(pairs), lambda: pairs)


def read_corpus(path: Path) -> Corpus:
    """Read a UTF-8 text file, one word a line; every word counts as a noun.

    Lines end in LF, CRLF or CR. A byte order mark, blank lines and duplicates (see `make_corpus`) are left out.
    Refused, with the line number: invalid UTF-8, control characters, more than 400 characters a line; also refused: a
    file without a word.
    """
    text = _decode(path)
    lines = ENDS.split(text)
    if control := CONTROL.search(text):
        raise _bad(path, len(ENDS.findall(text, 0, control.start())) + 1, f"holds a control character ({control[0]!a})")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_CHARACTERS and len(normalise(line)) > MAX_CHARACTERS:
            raise _bad(path, number, f"is longer than {MAX_CHARACTERS} characters ({len(normalise(line))})")
    corpus = make_corpus(path.name, ((line, NOUN) for line in lines))
    if not corpus.size:
        raise InputError(f"the corpus file {path} holds no word", hint="write one word a line into it")
    return corpus


def _decode(path: Path) -> str:
    try:
        data = read_small(path, LARGEST)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        hint = "give a text file that you may read, one word a line"
        raise InputError(f"the corpus file {path} cannot be read ({why})", hint=hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", errors="replace")
        raise _bad(path, len(ENDS.findall(before)) + 1, "is not valid UTF-8", "save the file as UTF-8") from error


def _bad(path: Path, line: int, rule: str, hint: str = "mend or remove that line; one word a line") -> InputError:
    return InputError(f"line {line} of the corpus file {path} {rule}", hint=hint)


def conjugate(corpus: Corpus) -> Corpus:
    """Join each adjective to a superclass; it stays an adjective, and nouns stay as they are.

    The authors draw the superclass at random. Here the sha256 of the word chooses it, so that every machine and every
    corpus gives the same pair.
    """
    if ADJECTIVE not in corpus.kinds:
        raise InputError(
            f"the corpus {corpus.name} holds no adjective to join to a noun; words of a text file count as nouns",
            hint=f"use {corpus.name} itself, or conjugate a named corpus",
        )
    joined = ((_joined(word) if kind == ADJECTIVE else word, kind) for word, kind in corpus.read())
    return make_corpus(f"conjugated:{corpus.name}", joined)


def _joined(word: str) -> str:
    """The word with its superclass.

    >>> _joined("fluffy")
    'fluffy scene'
    """
    chosen = int.from_bytes(hashlib.sha256(word.encode("utf-8")).digest(), "big") % len(SUPERCLASSES)
    return f"{word} {SUPERCLASSES[chosen]}"
