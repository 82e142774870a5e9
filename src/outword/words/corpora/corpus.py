"""What a corpus is: words with their kinds, read when they are first looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from outword.base.files import sha256_bytes
from outword.words.forms import fold, normalise

NOUN = "noun"
ADJECTIVE = "adj"
Pairs = tuple[tuple[str, str], ...]


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
