"""What `mini` knows of words: WordNet 3.0, cut down to the part that lies at or above an ImageNet class.

A *node* is a WordNet meaning with ImageNet classes at or below it. The nouns of WordNet are kept with their meanings,
and each meaning with its nearest node: itself, or of those above it the one with the fewest classes below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from outword.base.terms import through
from outword.encoders.mini import wordpiece

KNOWN_SHARE = 0.5  # a node above more than half of all classes says little: "animal" is known, "artifact" is not
KNOWN_DENSITY = 0.01  # nor does one with few classes among many kinds: "person" has 3 classes and 6979 kinds
NEAR_KINDS = 300  # a nearest node with more kinds below it is too far up to tell what the thing looks like

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Sense:
    """One meaning of a word: its nearest node, whether it is that node itself, and its weight (`Lexicon.vectors`)."""

    node: int
    exact: bool
    weight: float


class Taxonomy:
    """The nodes as unit vectors whose cosines follow the information that they share.

    With IC(i) = -log(share of the classes at or below node i), node i owns one coordinate, of length
    sqrt(IC(i) - largest IC of its parents); `v[i]` holds the coordinates of i and of all nodes above it, scaled to 1.
    `edges` (n_edges, 2), child and parent, are sorted by child; a parent has a smaller number than its children.
    `classes` (n_classes,) is the node of each class.
    """

    def __init__(self, edges: NDArray[np.integer[Any]], classes: NDArray[np.integer[Any]], n_nodes: int) -> None:
        above = np.eye(n_nodes, dtype=bool)
        for child, parent in edges:
            above[child] |= above[parent]
        self.n_classes = above[classes].sum(axis=0)
        ic = -np.log(self.n_classes / len(classes))
        parent_ic = np.zeros(n_nodes)
        np.maximum.at(parent_ic, edges[:, 0], ic[edges[:, 1]])
        v = above * np.sqrt(np.maximum(ic - parent_ic, 0)).astype(np.float32)
        norms = np.linalg.norm(v, axis=1, keepdims=True)
        self.v = v / np.where(norms > 0, norms, 1)


class Lexicon:
    """Words, their meanings, and the flags that say how well a label is known."""

    def __init__(self, arrays: Arrays) -> None:
        self.names = _lines(arrays["node_names"])
        self.kinds = arrays["node_kinds"]
        self.classes = arrays["classes"]
        self.taxonomy = Taxonomy(arrays["edges"], self.classes, len(self.names))
        self._words = arrays["words"]
        self._starts = np.concatenate([[0], np.cumsum(arrays["n_senses"], dtype=np.int64)])
        self._nodes, self._exact, self._weights = arrays["nodes"], arrays["exact"], arrays["weights"]

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        """Read what `tools/build_mini.py` wrote."""
        return cls(load_file(path))

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each word; images ask for none."""
        return {word: row for row, word in enumerate(_lines(self._words))}

    def find(self, text: str) -> tuple[list[Sense], bool]:
        """Senses of the longest run of words at the end of `text` that is known, and whether that is all of it."""
        words = folded(text)
        for start in range(len(words)):
            for spelling in _spellings(" ".join(words[start:])):
                if (row := self._rows.get(spelling)) is not None:
                    return self._senses(row), start == 0
        return [], False

    def _senses(self, row: int) -> list[Sense]:
        at = range(self._starts[row], self._starts[row + 1])
        return [Sense(int(self._nodes[i]), bool(self._exact[i]), float(self._weights[i])) for i in at]

    def vector(self, text: str) -> NDArray[np.float32]:
        """Taxonomy vector of a text's last words: v(t) = (sum_s w_s) n(sum_s w_s v(node_s)) over their senses s; or 0.

        n(.) scales to length 1. The weights sum to at most 1, and to less the farther the nodes are from the word;
        `tools/mini_space.py` tells how they are found.
        """
        senses, _ = self.find(text)
        w = np.array([s.weight for s in senses], np.float32)
        v = w @ self.taxonomy.v[[s.node for s in senses]] if senses else np.zeros(len(self.names), np.float32)
        length = float(np.linalg.norm(v))
        return v * np.float32(w.sum() / length) if length > 0 else v

    @lru_cache(maxsize=1 << 14)  # noqa: B019  # there is one lexicon, and the same names are asked about again
    def flag(self, label: str) -> str:
        """How well a label is known: "known", "through <parent>", "head noun only" or "unknown".

        What counts is the main sense (or the best of several that weigh the same). It is *known* when it is a node,
        unless that node says too little; known *through* its nearest node when that is near. A word whose main sense is
        neither, but which also names an ImageNet class (volcano, library), is known for that. A label of which only the
        last words were found is as well known as those words, and no better: *head noun only*.
        """
        senses, whole = self.find(label)
        most = max((s.weight for s in senses), default=0.0)
        flags = [self._sense_flag(s) for s in senses if s.weight == most]
        best = min(flags, key=lambda flag: (flag == "unknown", flag != "known"), default="unknown")
        if best == "unknown" and any(s.exact and s.node in self.classes for s in senses):
            best = "known"
        return best if whole or best == "unknown" else "head noun only"

    def _sense_flag(self, sense: Sense) -> str:
        if not sense.exact:
            return through(self.names[sense.node]) if self.kinds[sense.node] <= NEAR_KINDS else "unknown"
        n_classes = self.taxonomy.n_classes[sense.node]
        telling = n_classes <= KNOWN_SHARE * len(self.classes) and n_classes >= KNOWN_DENSITY * self.kinds[sense.node]
        return "known" if telling else "unknown"


def folded(text: str) -> list[str]:
    """Lower-case words without accents; whatever is no letter or digit parts two words, in labels and in WordNet alike.

    >>> folded("Jack-o'-lantern_crêpe!")
    ['jack', 'o', 'lantern', 'crepe']
    """
    return [word for word in wordpiece.words(text) if word.isalnum()]


def _spellings(phrase: str) -> Iterator[str]:
    """The phrase, and what it may be the plural of.

    `outword.words.forms` knows more plurals; but these are part of the encoder as it was measured, and of its vectors.
    """
    yield phrase
    for ending, singular in (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("men", "man"), ("es", ""), ("s", "")):
        if phrase.endswith(ending):
            yield phrase.removesuffix(ending) + singular


def _lines(blob: NDArray[np.uint8]) -> list[str]:
    return blob.tobytes().decode().split("\n")
