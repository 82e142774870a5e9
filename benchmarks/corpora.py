"""Which words of WordNet should the default corpus hold? Candidate rules on bench-mini, mined by density and at random.

    python benchmarks/corpora.py PATH

Mean AUROC of `debiased` over the OOD sets, for 10, 100 (5 draws each) and 600 names.
The first run encodes 76,683 words.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from common import Bench, draw, read_bench, table
from outword.detectors import Debiased
from outword.mining import MINERS
from outword.vectors.wild import encoded_corpus
from outword.words.corpora import Corpus, make_corpus
from outword.words.corpora.wordnet import WORDNET_FILES, Lemma, Meaning, NamedSet, spelled
from outword.words.forms import drop_labels, fold
from outword.words.prompts import get_prompts


def lemmas(lemma: Lemma, meaning: Meaning) -> bool:
    """Every lemma but proper names."""
    return not meaning.instance


def names(lemma: Lemma, meaning: Meaning) -> bool:
    """The first lemma of each meaning."""
    return meaning.first and not meaning.instance


def plain_names(lemma: Lemma, meaning: Meaning) -> bool:
    """The same, in lower case: no scientific names."""
    return names(lemma, meaning) and lemma.word[0].islower()


def single_words(lemma: Lemma, meaning: Meaning) -> bool:
    """The same, one word each: what `wordnet` holds."""
    return plain_names(lemma, meaning) and " " not in lemma.word


RULES = {f.__doc__.split(":")[0].rstrip("."): f for f in (lemmas, names, plain_names, single_words) if f.__doc__}


def build(rule) -> Corpus:
    """The corpus of a rule, on the files of the default one."""
    return make_corpus("candidate", spelled(NamedSet("", WORDNET_FILES, rule), frozenset(WORDNET_FILES)))


def mean_auroc(bench: Bench, words: list[str], vectors: np.ndarray, n_labels: int, n_draws: int) -> float:
    """Mean AUROC over draws and OOD sets."""
    figures = []
    for seed in range(n_draws):
        task = draw(bench, n_labels, seed)
        kept, _ = drop_labels(words, task.names)
        detector = Debiased(temperature=bench.encoder.temperature, sigma=0.0).fit(task.labels, vectors[kept])
        figures.append([a for a, _ in task.figures(detector.score).values()])
    return 100 * float(np.mean(figures))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    bench = read_bench(parser.parse_args().path)
    everything = build(lemmas)
    vectors = encoded_corpus(bench.encoder, everything, get_prompts(bench.encoder.prompts))
    place = {fold(word): i for i, word in enumerate(everything.words)}
    rows = []
    for about, rule in RULES.items():
        candidate = np.array([place[fold(word)] for word in build(rule).words])
        for miner in ("density", "random"):
            chosen = candidate[MINERS[miner]().select(vectors[candidate])]
            words = [everything.words[i] for i in chosen]
            cells = [mean_auroc(bench, words, vectors[chosen], k, n) for k, n in ((10, 5), (100, 5), (600, 1))]
            rows.append([about, f"{len(candidate):,}", miner, *(f"{c:.2f}" for c in cells)])
            print(*rows[-1], file=sys.stderr, flush=True)
    print(table(["rule", "words", "miner", "K = 10", "K = 100", "K = 600"], rows))


if __name__ == "__main__":
    main()
