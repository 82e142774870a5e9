"""The names of what photos can show, as a corpus: ImageNet's classes, what lies above them, and other common things."""

from __future__ import annotations

from functools import cache

from outword.words.corpora.corpus import NOUN, Corpus, make_corpus
from outword.words.nouns import nouns

THINGS = "things"


@cache
def things() -> Corpus:
    """The names of `Nouns.visible`.

    >>> len(things()), "sea lion" in things().words
    (2019, True)
    """
    return make_corpus(THINGS, ((name, NOUN) for name in nouns().visible()))
