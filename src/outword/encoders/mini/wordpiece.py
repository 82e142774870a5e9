"""BERT's uncased tokenisation, the rules of the text tower's training, in plain Python.

A text is cleaned (control characters out, CJK characters set apart, accents off, lower case), split at blanks and
punctuation, and each word is cut greedily into the longest pieces of the vocabulary; pieces inside a word start with
"##". A word that cannot be cut, or has more than 100 characters, is "[UNK]". Text such as "[SEP]" is treated as text.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Sequence

MAX_WORD = 100  # characters
CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
       (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip


class WordPiece:
    """Texts to token ids, `[CLS]` first and `[SEP]` last, at most `max_tokens` with both."""

    def __init__(self, vocab: Sequence[str], max_tokens: int) -> None:
        self.ids = {piece: i for i, piece in enumerate(vocab)}
        self.max_tokens = max_tokens

    def encode(self, text: str) -> list[int]:
        """Token ids of one text.

        >>> WordPiece(["[CLS]", "[SEP]", "[UNK]", "cat", "##s"], max_tokens=8).encode("Cats!")
        [0, 3, 4, 2, 1]
        """
        pieces = [self.ids[p] for word in words(text) for p in self._pieces(word)]
        return [self.ids["[CLS]"], *pieces[: self.max_tokens - 2], self.ids["[SEP]"]]

    def _pieces(self, word: str) -> list[str]:
        """The longest piece that the word begins with, then the longest of what is left, and so on."""
        if len(word) > MAX_WORD:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def words(text: str) -> Iterator[str]:
    """Lower-case words without accents; a punctuation mark is a word."""
    if text.isascii():
        return iter(text.translate(_ASCII).lower().split())
    spaced = "".join(map(_clean, text))
    bare = (c for c in unicodedata.normalize("NFD", spaced) if unicodedata.category(c) != "Mn")
    # Letter by letter: the lower case of a whole Greek word would end in another sigma.
    lower = "".join(c.lower() for c in bare)
    return iter("".join(f" {c} " if _is_punctuation(c) else c for c in lower).split())


def _clean(char: str) -> str:
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char)[0] == "C":
        return ""
    if char.isspace():
        return " "
    return f" {char} " if any(low <= ord(char) <= high for low, high in CJK) else char


def _is_punctuation(char: str) -> bool:
    """Unicode's punctuation, and every ASCII mark that is no letter, digit or blank (such as $ and +)."""
    return unicodedata.category(char)[0] == "P" or char in string.punctuation


def _spaced(char: str) -> str:
    clean = _clean(char)
    return f" {clean} " if clean and _is_punctuation(clean) else clean


_ASCII = {code: _spaced(chr(code)) for code in range(128)}  # the same rules, at once for a whole text
