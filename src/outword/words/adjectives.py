"""Which words are adjectives: those before a noun say how it looks, and do not change what it is."""

from __future__ import annotations

from functools import cache

from outword.words.corpora.wordnet import lemmas
from outword.words.forms import fold


def is_adjective(word: str) -> bool:
    """Whether WordNet has a word among the adjectives.

    >>> [is_adjective(word) for word in ("black", "Wooden", "dog")]
    [True, True, False]
    """
    return fold(word) in _adjectives()


@cache
def _adjectives() -> frozenset[str]:
    found = (lemma.word for lemma in lemmas() if any(meaning.kind == "adj" for meaning in lemma.meanings))
    return frozenset(map(fold, found))
