"""The named corpora, all drawn from the packaged list of WordNet 3.0's noun and adjective lemmas."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from outword.base.checks import unknown
from outword.errors import ParameterError
from outword.words.corpora.corpus import ADJECTIVE, NOUN, Corpus, make_corpus

LEXFILES = (
    "adj.all", "adj.pert", "adj.ppl", "noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute",
    "noun.body", "noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group",
    "noun.location", "noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant", "noun.possession",
    "noun.process", "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
)  # fmt: skip

# The default corpus: what a photo can show, and how it can look. The one place that decides it.
WORDNET_FILES = (
    "adj.all", "adj.ppl", "noun.animal", "noun.artifact", "noun.body", "noun.food", "noun.object", "noun.phenomenon",
    "noun.plant", "noun.substance",
)  # fmt: skip

# NegLabel's folder holds 27 of the 29 files (animal and food are missing); this paper's code leaves out four more.
NEGLABEL_MISSING = ("noun.animal", "noun.food")
NEGLABEL_EXCLUDED = ("adj.pert", "noun.group", "noun.person", "noun.quantity")
NEGLABEL_FILES = tuple(f for f in LEXFILES if f not in NEGLABEL_MISSING + NEGLABEL_EXCLUDED)

POS_SEED = 0


class Meaning(NamedTuple):
    """One lexicographer file of a lemma; `first`: it names a synset there; `instance`: only as a proper name."""

    file: str
    first: bool
    instance: bool

    @property
    def kind(self) -> str:
        """The kind of word that the file holds: "noun" or "adj"."""
        return self.file.partition(".")[0]


class Lemma(NamedTuple):
    """One row of the packaged list; `tags`: how often WordNet's concordance uses it, by kind of word."""

    word: str
    meanings: tuple[Meaning, ...]
    tags: dict[str, int]


class NamedSet(NamedTuple):
    """A named corpus: which files it draws on, which of their lemmas it takes, and what comes of it (tests compare)."""

    about: str
    files: tuple[str, ...]
    takes: Callable[[Lemma, Meaning], bool]
    size: int = 0
    fingerprint: str = ""
    sampled: bool = False  # whether these are all the words that there are, or `size` of them


def _plain_name(lemma: Lemma, meaning: Meaning) -> bool:
    """One lower-case word that names a meaning: no synonyms, no proper names, no scientific ones."""
    return meaning.first and not meaning.instance and _single_word(lemma, meaning) and lemma.word[0].islower()


def _single_word(lemma: Lemma, meaning: Meaning) -> bool:
    return " " not in lemma.word


SETS = {
    "wordnet": NamedSet(
        about="WordNet 3.0: visible things and adjectives, one plain word a meaning (default)",
        files=WORDNET_FILES,
        takes=_plain_name,
        size=23_681,
        fingerprint="5d327fce672d0bc4a912d8f548725af03a7c72f18affbb2167d20549968de55c",
    ),
    "wordnet-neglabel": NamedSet(
        about="WordNet 3.0: the literature's 23 files, the first lemma of each synset",
        files=NEGLABEL_FILES,
        takes=lambda lemma, meaning: meaning.first,
        size=57_493,
        fingerprint="f6ceed957032230490ff5a173d756c8bc2b57cb2555d3603d3f2b1768e9fbc00",
    ),
    "common": NamedSet(
        about="WordNet 3.0: words that its concordance tags at least once, no proper names",
        files=LEXFILES,
        takes=lambda lemma, meaning: lemma.tags[meaning.kind] > 0 and not meaning.instance,
        size=16_523,
        fingerprint="c3b8911e1eca743bc25a067be4495a6688aabdf2eed1b1524470173a0a953b44",
    ),
    "pos": NamedSet(
        about="WordNet 3.0: 70,000 single nouns and adjectives, sampled by seed",
        files=LEXFILES,
        takes=_single_word,
        size=70_000,
        fingerprint="406fdd1fc92778ee285ca276682f8ac12fe85d25589f67f9d416ec7ae200c7c9",
        sampled=True,
    ),
}


def named_corpus(name: str, exclude_files: Iterable[str] = ()) -> Corpus:
    """Build a named corpus without the lexicographer files of `exclude_files`.

    A word that is also filed elsewhere stays: `crane` without `noun.animal` is still in `noun.artifact`.
    """
    excluded = frozenset(exclude_files)
    for file in sorted(excluded.difference(LEXFILES)):
        raise unknown("lexicographer file in exclude_files", file, LEXFILES, "docs/corpora.md")
    return _build(name, excluded) if excluded else _whole(name)


@cache
def _whole(name: str) -> Corpus:
    """A corpus that is read when its words are first looked at: WordNet takes a second."""
    return Corpus(name, SETS[name].fingerprint, SETS[name].size, lambda: _build(name, frozenset()).read())


@cache
def _build(name: str, excluded: frozenset[str]) -> Corpus:
    chosen = SETS[name]
    corpus = make_corpus(name, spelled(chosen, frozenset(chosen.files) - excluded))
    if chosen.sampled:
        corpus = make_corpus(name, sorted(corpus.read(), key=_rank)[: chosen.size])
    if not corpus.size:
        hint = f"exclude fewer; it draws on {', '.join(chosen.files)}"
        raise ParameterError(f'exclude_files leaves no word of corpus "{name}"', hint=hint)
    return corpus


def spelled(chosen: NamedSet, files: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Give the (word, kind) pairs that a set takes from these files."""
    for lemma in lemmas():
        kinds = {m.kind for m in lemma.meanings if m.file in files and chosen.takes(lemma, m)}
        if kinds:
            yield lemma.word, NOUN if NOUN in kinds else ADJECTIVE


def _rank(pair: tuple[str, str]) -> bytes:
    """The sha256 of seed and word; a sample has those with the smallest, the same on every machine."""
    return hashlib.sha256(f"{POS_SEED}\t{pair[0]}".encode()).digest()


@cache
def lemmas() -> tuple[Lemma, ...]:
    """Read the packaged list (its format: tools/build_corpora.py)."""
    packed = resources.files("outword.words.corpora").joinpath("data/wordnet.tsv.gz").read_bytes()
    return tuple(_lemma(line) for line in gzip.decompress(packed).decode("utf-8").splitlines())


def _lemma(line: str) -> Lemma:
    word, files, nouns, adjectives = line.split("\t")
    return Lemma(word, tuple(map(_meaning, files.split(","))), {NOUN: int(nouns), ADJECTIVE: int(adjectives)})


@cache
def _meaning(text: str) -> Meaning:
    return Meaning(text.rstrip("!~"), "!" in text, "~" in text)
