"""CSP: NegLabel's score on a conjugated pool of words."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.neglabel import NegLabel


@DETECTORS.register("csp")
@dataclass
class CSP(NegLabel):
    """NegLabel whose adjectives are joined to broad nouns: "fluffy" becomes "fluffy scene".

        S(x) = 1/B sum_b P / (P + sum_{u in G_b} e^{h(x, u)}),   P = sum_i e^{h(x, y_i)},   h = cos / temperature

    The score is NegLabel's; the words are not. They come from the corpus `conjugated:wordnet`, the miner `conjugated`
    and the prompts `csp`, eight templates a noun and four an adjective, averaged. Each of the three can be chosen
    alone, for any method.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        n_groups: B; the published value is 100. Words that do not fill a group are dropped from the tail.
        seed: deals the words into groups, once, at `fit`.

    Reference: Chen et al., "Conjugated Semantic Pool Improves OOD Detection with Pre-trained Vision-Language Models",
    NeurIPS 2024.

    >>> y, u = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> CSP(temperature=1.0, n_groups=1).fit(labels=y, wild=u).score([[0.6, 0.8], [1.0, 0.0]]).round(4)
    array([0.4502, 0.7311])
    """

    summary = "NegLabel's score on conjugated words: adjectives joined to broad nouns"
    miner = "conjugated"
    corpus = "conjugated:wordnet"
    prompts = "csp"
    in_graph = True
