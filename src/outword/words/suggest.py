"""Did you mean: the nouns that differ from a word by a slip or two of the keyboard."""

from __future__ import annotations

import numpy as np

from outword.words.forms import squeeze
from outword.words.nouns import nouns

FARTHEST = 2  # edits
PER_EDIT = 3  # letters that a word must have for each edit: short words are near to everything


def suggestions(word: str, most: int = 3) -> list[str]:
    """The nouns nearest to a word by Damerau-Levenshtein distance, the common ones first; none are farther than 2.

    >>> suggestions("daschund"), suggestions("helicoptor")
    (['dachshund'], ['helicopter'])
    """
    net, wanted = nouns(), squeeze(word)
    found: dict[str, tuple[int, int]] = {}
    for row in _similar(wanted.encode("ascii", "replace")):
        start = net.key_ends[row - 1] + 1 if row else 0
        key, senses = net.keys[start : net.key_ends[row]].decode(), net.lemma_senses(row)
        kinds = [sense for sense in senses if not net.is_instance(sense)]
        far = distance(wanted, key)
        if kinds and far <= min(FARTHEST, len(wanted) // PER_EDIT):
            found[net.lemma(row)] = far, -sum(net.tags(sense) for sense in kinds)
    return sorted(found, key=lambda lemma: (found[lemma], lemma))[:most]


def _similar(wanted: bytes) -> list[int]:
    """The lemmas of about this length that have all but two letters of it: what is farther need not be measured."""
    net = nouns()
    starts = np.concatenate([[0], net.key_ends[:-1] + 1])
    lengths = net.key_ends - starts
    rows = np.flatnonzero(np.abs(lengths - len(wanted)) <= FARTHEST)
    text, width = np.frombuffer(net.keys + bytes(len(wanted) + FARTHEST), np.uint8), np.arange(len(wanted) + FARTHEST)
    letters = text[starts[rows, None] + width]
    letters[width >= lengths[rows, None]] = 0
    shared = sum(np.minimum((letters == letter).sum(axis=1), wanted.count(letter)) for letter in set(wanted))
    return rows[np.maximum(lengths[rows], len(wanted)) - shared <= FARTHEST].tolist()  # type: ignore[no-any-return]


def distance(one: str, other: str) -> int:
    """Damerau-Levenshtein distance: how many letters to add, take away, change or swap with the next.

    What was swapped may be changed again, which is what makes "daschund" two from "dachshund".

    >>> distance("ca", "abc"), distance("daschund", "dachshund")
    (2, 2)
    """
    far = len(one) + len(other)
    table = {(i, j): max(i, j) for i in range(len(one) + 1) for j in (0,)} | {(0, j): j for j in range(len(other) + 1)}
    last_row: dict[str, int] = {}
    for i, a in enumerate(one, start=1):
        last_column = 0
        for j, b in enumerate(other, start=1):
            row, column = last_row.get(b, 0), last_column
            swapped = table[row - 1, column - 1] + (i - row) + (j - column) - 1 if row and column else far
            change = table[i - 1, j - 1] + (a != b)
            table[i, j] = min(change, table[i - 1, j] + 1, table[i, j - 1] + 1, swapped)
            last_column = j if a == b else last_column
        last_row[a] = i
    return table[len(one), len(other)]
