"""How the shared space of `mini` is made: from a classifier's weights, sentence vectors and WordNet; no image is used.

Everything takes the list of classes, so that `tools/eval_mini.py` can build the same space without some of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm as normal

from outword.encoders.mini.head import Head, unit
from outword.encoders.mini.lexicon import Lexicon, folded
from wordnet_db import Synset, WordNet

Array = NDArray[np.float32]

PHYSICAL = 1930  # WordNet's "physical entity"
RARE = 0.5  # added to the tag count of a sense, so that senses that were never tagged count a little
RIDGE = 0.3  # penalty of the ridge regression
FAR_ROW, FAR_DECAY = 0.1, 0.5  # weight in the ridge of a word one step below its node, and factor per further step
EVERY, WORD_SHARE = 16, 0.3  # the basis takes every 16th noun, with this weight (classes and parents have 1)


@dataclass(frozen=True)
class Classifier:
    """The last layer of the image tower, its classes as WordNet offsets, and the mean feature (`expected_feature`)."""

    weight: Array
    bias: Array
    classes: tuple[int, ...]
    mu: Array

    def without(self, held: Sequence[int]) -> Classifier:
        """The classifier without some of its rows."""
        keep = np.setdiff1d(np.arange(len(self.classes)), held)
        classes = tuple(self.classes[i] for i in keep)
        return replace(self, weight=self.weight[keep], bias=self.bias[keep], classes=classes)


def expected_feature(gamma: Array, beta: Array) -> Array:
    """Mean pooled feature without a photo: E[clip(z, 0, 6)] for z ~ N(beta, gamma^2), what the last BatchNorm says."""
    mean, sd = beta.astype(np.float64), np.abs(gamma.astype(np.float64))
    low, high = -mean / sd, (6 - mean) / sd
    inside = mean * (normal.cdf(high) - normal.cdf(low)) + sd * (normal.pdf(low) - normal.pdf(high))
    return (inside + 6 * normal.sf(high)).astype(np.float32)


class Nodes:
    """WordNet seen from a list of classes: the meanings at or above a class, parents before children."""

    def __init__(self, net: WordNet, classes: Sequence[int]) -> None:
        self.net = net
        self._above: dict[int, frozenset[int]] = {}
        self.classes = classes
        self.n_classes = Counter(node for c in classes for node in self.above(c))
        self.offsets = sorted(self.n_classes, key=lambda o: (len(self.above(o)), o))
        self.index = {offset: i for i, offset in enumerate(self.offsets)}

    def above(self, offset: int) -> frozenset[int]:
        """A meaning and all that it is a kind of."""
        if offset not in self._above:
            parents = (self.above(h) for h in self.net.synsets[offset].hypernyms)
            self._above[offset] = frozenset({offset}).union(*parents)
        return self._above[offset]

    @cached_property
    def kinds(self) -> Counter[int]:
        """How many meanings lie at or below each meaning."""
        return Counter(a for o, s in self.net.synsets.items() if not is_instance(s) for a in self.above(o))

    def nearest(self, offset: int) -> int | None:
        """The node among a meaning and all above it that has the fewest classes below."""
        nodes = [a for a in self.above(offset) if a in self.index]
        return min(nodes, key=lambda a: (self.n_classes[a], -len(self.above(a)), a), default=None)

    def steps(self, offset: int) -> int:
        """How many steps up the first node is."""
        if offset in self.index:
            return 0
        return 1 + min(self.steps(h) for h in self.net.synsets[offset].hypernyms)

    def ic(self, offset: int) -> float:
        """Intrinsic information content: 1 for a meaning without kinds, 0 for the root."""
        return 1 - math.log(self.kinds[offset]) / math.log(len(self.net.synsets))

    def nearness(self, offset: int, node: int) -> float:
        """Lin similarity of a meaning and the node above it: 2 IC(node) / (IC(meaning) + IC(node)); 1 for itself."""
        return 1.0 if offset == node else 2 * self.ic(node) / (self.ic(offset) + self.ic(node))


def is_instance(synset: Synset) -> bool:
    """A single thing with a name ("Paris"), not a kind of thing."""
    return bool(synset.instance_of) and not synset.hypernyms


def senses(nodes: Nodes, word: str) -> list[tuple[int, bool, float]]:
    """(node, is it the meaning itself, weight) of each sense of a WordNet noun, heaviest first.

    The weight is the share of tag count + .5, times the nearness of the node. Instances are left out, and where a word
    has physical senses (things that a photo can show), so are the others.
    """
    found = [(o, tags + RARE) for o, tags in nodes.net.senses[word] if not is_instance(nodes.net.synsets[o])]
    found = [(o, w) for o, w in found if PHYSICAL in nodes.above(o)] or found
    total = sum(w for _, w in found)
    rows = [(o, node, w / total) for o, w in found if (node := nodes.nearest(o)) is not None]
    weighed = [(nodes.index[node], o == node, share * nodes.nearness(o, node)) for o, node, share in rows]
    return sorted(weighed, key=lambda row: -row[2])


def lexicon_arrays(nodes: Nodes) -> dict[str, NDArray[np.generic]]:
    """The arrays of `mini.lexicon.Lexicon`. Spellings that fold to one key share the first one's senses."""
    words: dict[str, list[tuple[int, bool, float]]] = {}
    for word in sorted(nodes.net.senses):
        key, rows = " ".join(folded(word)), senses(nodes, word)
        if rows and key:
            words.setdefault(key, rows)
    flat = [row for rows in words.values() for row in rows]
    offsets = nodes.offsets
    edges = [(nodes.index[o], nodes.index[h]) for o in offsets for h in nodes.net.synsets[o].hypernyms]
    return {
        "words": _blob(words),
        "n_senses": np.array([len(rows) for rows in words.values()], np.uint8),
        "nodes": np.array([node for node, _, _ in flat], np.uint16),
        "exact": np.array([exact for _, exact, _ in flat], np.uint8),
        "weights": np.array([weight for _, _, weight in flat], np.float16),
        "node_names": _blob(nodes.net.synsets[o].lemmas[0] for o in offsets),
        "node_kinds": np.array([nodes.kinds[o] for o in offsets], np.int32),
        "edges": np.array(edges, np.uint16),
        "classes": np.array([nodes.index[c] for c in nodes.classes], np.uint16),
    }


def _blob(lines: object) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode(), np.uint8)  # type: ignore[call-overload]


def ridge(nodes: Nodes, W: Array, E_mean: Array, sentence: Mapping[str, Array]) -> Array:
    """A: from the centred sentence vector of a word to the mean weight vector of the classes below its nearest node.

    Rows are all word senses; a row's weight is 1 at a node, .1 one step below, half of that for each further step,
    divided by the number of senses of the word.
    """
    below = np.zeros((len(nodes.offsets), len(nodes.classes)), np.float32)
    for i, c in enumerate(nodes.classes):
        below[[nodes.index[a] for a in nodes.above(c)], i] = 1
    target = below @ W / below.sum(axis=1, keepdims=True)
    rows = [
        (word, nodes.index[node], (1 if node == o else FAR_ROW * FAR_DECAY ** (nodes.steps(o) - 1)) / len(found))
        for word, found in sorted(nodes.net.senses.items())
        for o, _ in found
        if not is_instance(nodes.net.synsets[o]) and (node := nodes.nearest(o)) is not None
    ]
    X = np.stack([sentence[word] for word, _, _ in rows]) - E_mean
    weighted = X.T * np.array([weight for _, _, weight in rows], np.float32)
    Y = target[[node for _, node, _ in rows]]
    return np.linalg.solve(weighted @ X + RIDGE * np.eye(X.shape[1]), weighted @ Y).astype(np.float32)


def make_head(nodes: Nodes, lexicon: Lexicon, classifier: Classifier, sentence: Mapping[str, Array]) -> Head:
    """The head with no change of basis yet (`B` is empty); `sentence` holds E for every noun of WordNet."""
    names = [nodes.net.synsets[c].lemmas[0].lower() for c in classifier.classes]
    E = np.stack([sentence[name] for name in names])
    E_mean = E.mean(axis=0)
    W = classifier.weight - classifier.weight.mean(axis=0)
    v = lexicon.taxonomy.v[lexicon.classes]
    A = ridge(nodes, W, E_mean, sentence)
    return Head(W, classifier.bias, classifier.mu, unit(E - E_mean), E_mean, A, v, np.zeros((0, 0), np.float32))


def basis(head: Head, lexicon: Lexicon, nodes: Nodes, sentence: Mapping[str, Array], size: int) -> Array:
    """The `size` leading right singular vectors of the texts: names of classes and parents, and (lighter) of words."""

    def texts(words: Sequence[str]) -> Array:
        return head.whole_texts(np.stack([sentence[w] for w in words]), np.stack([lexicon.vector(w) for w in words]))

    own = [nodes.net.synsets[o].lemmas[0].lower() for o in nodes.offsets]
    rows = np.concatenate([texts(own), WORD_SHARE * texts(sorted(nodes.net.senses)[::EVERY])])
    scatter = rows.astype(np.float64).T @ rows.astype(np.float64)
    _, vectors = np.linalg.eigh(scatter)
    leading = vectors[:, ::-1][:, :size]
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(size)])
    return (leading * signs).astype(np.float32)
