"""Conjugated words: each adjective of a corpus joined to a broad noun, so that it names things ("fluffy scene")."""

from __future__ import annotations

import hashlib

from outword.errors import InputError
from outword.words.corpora.corpus import ADJECTIVE, Corpus, make_corpus

# The superclasses of Chen et al., "Conjugated Semantic Pool Improves OOD Detection with Pre-trained Vision-Language
# Models", NeurIPS 2024. The place in this list is part of the choice below: append, never insert.
SUPERCLASSES = (
    "environment", "space", "object", "scene", "place", "item", "area", "view", "thing", "pattern", "structure",
    "landscape", "vista", "creature",
)  # fmt: skip


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
