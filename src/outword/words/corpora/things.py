"""The names of what photos can show, as a corpus: ImageNet's classes, what lies above them, and everyday things."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from outword.words.corpora.corpus import NOUN, Corpus, make_corpus
from outword.words.nouns import nouns

THINGS = "things"
EVERYDAY = Path(str(files("outword"))) / "words" / "corpora" / "data" / "everyday.tsv"  # tools/build_everyday.py


@cache
def things() -> Corpus:
    """The names of `senses_of_things`.

    >>> {"sea lion", "paper plate"} <= set(things().words)
    True
    """
    return make_corpus(THINGS, ((name, NOUN) for name in senses_of_things()))


@cache
def senses_of_things() -> Mapping[str, int]:
    """The names of `Nouns.visible`, and of everyday things that are none of ImageNet's classes, each with its sense.

    >>> nouns().gloss(senses_of_things()["paper plate"])
    'a disposable plate made of cardboard'
    """
    lines = EVERYDAY.read_text(encoding="utf-8").splitlines()
    found = nouns().visible()
    for name, wnid in (line.split("\t") for line in lines):
        sense = nouns().by_wnid(wnid)
        assert sense is not None, f"{EVERYDAY.name} names a sense that is not in WordNet's nouns: {wnid}"
        found[name] = sense
    return MappingProxyType(found)
