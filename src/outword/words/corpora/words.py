"""One rule for words: how they are cleaned, when two are the same, and when one is a label in disguise."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outword.base.files import sha256_bytes

NOUN = "noun"
ADJECTIVE = "adj"
INVISIBLE = ("\u00ad", "\u200b", "\ufeff")  # soft hyphen, zero-width space, byte order mark


@dataclass(frozen=True)
class Corpus:
    """Words to draw wild labels from, sorted and without duplicates; `kinds[i]` is "noun" or "adj".

    `fingerprint` is the sha256 of the words and their kinds: two corpora of equal content have the same one, whatever
    their names.
    """

    name: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]
    fingerprint: str

    def __len__(self) -> int:
        """How many words there are."""
        return len(self.words)


def clean(text: str) -> str:
    """Spell a word plainly: NFKC, no invisible characters, underscores to spaces, runs of white space to one space.

    >>> clean("  space_shuttle ")
    'space shuttle'
    """
    if not text.isascii():
        for character in INVISIBLE:
            text = text.replace(character, "")
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.replace("_", " ").split())


def fold(text: str) -> str:
    """Give the form in which words are compared: cleaned, and without upper and lower case.

    >>> fold("Space_Shuttle") == fold("space  shuttle")
    True
    """
    return _settle(clean(text))


def _settle(word: str) -> str:
    """Fold a clean word until nothing changes: for some letters, folding undoes the cleaning once or twice."""
    folded = word.casefold()
    while not folded.isascii() and (again := clean(folded).casefold()) != folded:
        folded = again
    return folded


def make_corpus(name: str, spelled: Iterable[tuple[str, str]]) -> Corpus:
    """Sort (word, kind) pairs by `fold` and leave out duplicates; the order of the pairs does not matter.

    Words that fold alike are one word: spelled as the greatest of them in code-point order, so that `china` wins over
    `China`, and a noun if any of them is a noun.
    """
    best: dict[str, tuple[str, str]] = {}
    for text, kind in spelled:
        word = clean(text)
        if not word:
            continue
        key = _settle(word)
        other = best.get(key)
        best[key] = (word, kind) if other is None else (max(word, other[0]), max(kind, other[1]))  # "noun" > "adj"
    pairs = [best[key] for key in sorted(best)]
    content = "".join(f"{kind}\t{word}\n" for word, kind in pairs)
    words, kinds = tuple(word for word, _ in pairs), tuple(kind for _, kind in pairs)
    return Corpus(name, words, kinds, sha256_bytes(content.encode("utf-8")))


def drop_labels(words: Sequence[str], labels: Iterable[str]) -> tuple[list[int], list[str]]:
    """Leave out the words that equal a label, and say which: (indices of the words kept, words dropped).

    Case, spaces, underscores and hyphens do not count, and neither does a plural ending of either of the two.

    >>> drop_labels(["cat", "Egg-cup", "foxes", "dog"], ["Cats", "egg_cup", "fox"])
    ([3], ['cat', 'Egg-cup', 'foxes'])
    """
    taken = {form for label in labels for form in _forms(label)}
    keep = [taken.isdisjoint(_forms(word)) for word in words]
    return [i for i, kept in enumerate(keep) if kept], [w for w, kept in zip(words, keep, strict=True) if not kept]


def _forms(text: str) -> set[str]:
    """Give the folded text and what it may be the plural of (cats: cat; foxes: fox; berries: berry; glass: nothing).

    A bare `es` is taken off only where English adds it (after s, x, z, ch, sh, o), so that `pines` is never `pin`.
    """
    form = fold(text.replace("-", " "))
    forms = {form}
    if len(form) > 3 and form.endswith("s") and not form.endswith("ss"):
        forms.add(form[:-1])
        if form.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
            forms.add(form[:-2])
        if form.endswith("ies"):
            forms.add(form[:-3] + "y")
    return forms
