"""Read WordNet 3.0's own database files (Debian package `wordnet-base`); used by the build scripts only."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

# Lexicographer files by number: lexnames(5WN) of WordNet 3.0. Only nouns and adjectives are used here.
LEXNAMES = {
    0: "adj.all", 1: "adj.pert", 3: "noun.Tops", 4: "noun.act", 5: "noun.animal", 6: "noun.artifact",
    7: "noun.attribute", 8: "noun.body", 9: "noun.cognition", 10: "noun.communication", 11: "noun.event",
    12: "noun.feeling", 13: "noun.food", 14: "noun.group", 15: "noun.location", 16: "noun.motive",
    17: "noun.object", 18: "noun.person", 19: "noun.phenomenon", 20: "noun.plant", 21: "noun.possession",
    22: "noun.process", 23: "noun.quantity", 24: "noun.relation", 25: "noun.shape", 26: "noun.state",
    27: "noun.substance", 28: "noun.time", 44: "adj.ppl",
}  # fmt: skip


@dataclass(frozen=True)
class Synset:
    """One meaning: its lemmas as printed, where it is filed, and what it is a kind (or an instance) of."""

    offset: int
    lexfile: str
    lemmas: tuple[str, ...]
    hypernyms: tuple[int, ...]
    instance_of: tuple[int, ...]
    gloss: str


@dataclass
class WordNet:
    """The synsets of one part of speech, and for each lower-case lemma its senses as (offset, tag count)."""

    synsets: dict[int, Synset] = field(default_factory=dict)
    senses: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def read_wordnet(folder: Path, pos: str) -> WordNet:
    """Read `data.POS`, `index.POS` and `cntlist.rev`; pos is "noun" or "adj"; lemmas carry spaces, not underscores."""
    net = WordNet()
    for line in _records(folder / f"data.{pos}"):
        head, _, gloss = line.partition(" | ")
        net.synsets[int(line[:8])] = _synset(head.split(), gloss.strip())
    counts = _tag_counts(folder / "cntlist.rev")
    for line in _records(folder / f"index.{pos}"):
        part = line.split()
        n_senses = int(part[2])
        lemma, offsets = part[0], [int(p) for p in part[-n_senses:]]
        tags = counts[(lemma, pos)]
        net.senses[lemma.replace("_", " ")] = [(o, tags.get(rank, 0)) for rank, o in enumerate(offsets, start=1)]
    return net


def _records(path: Path) -> list[str]:
    lines = path.read_text(encoding="latin-1").splitlines()
    return [line for line in lines if not line.startswith("  ")]  # the licence is indented by two spaces


def _synset(part: list[str], gloss: str) -> Synset:
    n_words = int(part[3], 16)
    lemmas = tuple(_clean(part[4 + 2 * i]) for i in range(n_words))
    at = 4 + 2 * n_words
    pointers = [part[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(part[at]))]
    kinds: dict[str, list[int]] = defaultdict(list)
    for symbol, target, _, _ in pointers:
        kinds[symbol].append(int(target))
    return Synset(int(part[0]), LEXNAMES[int(part[1])], lemmas, tuple(kinds["@"]), tuple(kinds["@i"]), gloss)


def _clean(lemma: str) -> str:
    """`galore(ip)` -> `galore`: adjectives carry a syntactic marker in the data file."""
    return lemma.partition("(")[0].replace("_", " ")


def _tag_counts(path: Path) -> dict[tuple[str, str], dict[int, int]]:
    """(lemma, pos) -> {sense number: how often it was tagged in the semantic concordance}."""
    names = {"1": "noun", "3": "adj", "5": "adj"}
    counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for line in path.read_text(encoding="latin-1").splitlines():
        key, number, count = line.split()
        lemma, _, lex_sense = key.partition("%")
        if lex_sense[0] in names:
            counts[(lemma, names[lex_sense[0]])][int(number)] = int(count)
    return counts
