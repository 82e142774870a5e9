"""Which number should rank photos for a phrase: how many of the best 20 are right, and average precision.

    python benchmarks/find.py --photos STORE --users STORE

The stores are those of benchmarks/check.py. Phrases are the classes of what people sort, and broad names of ImageNet's
photos; each is looked for among all photos of both. "cosine" is that of photo and phrase; "share" the phrase's among
the names of what photos can show; "lead" the logit of the phrase less the mean of those names; "detector" the score of
a detector with the phrase as its only label, which `outword find` ranks by.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from check import sets
from common import table
from outword.detector.cached import fit_cached
from outword.encoders import Encoder, get_encoder
from outword.maths.numerics import Array
from outword.scoring.finding import TOP
from outword.vectors.names import name_vectors, rival_names
from outword.words.prompts import get_prompts


def rankings(phrase: str, images: Array, rivals: Array, encoder: Encoder) -> dict[str, Array]:
    """The numbers to rank photos by."""
    logits = images @ name_vectors(encoder, get_prompts(encoder.prompts), [phrase])[0] / encoder.temperature
    against = np.log(np.exp(rivals - rivals.max(axis=1, keepdims=True)).sum(axis=1)) + rivals.max(axis=1)
    detector, _ = fit_cached([phrase], encoder)
    return {
        "cosine": logits,
        "share": logits - np.logaddexp(logits, against),
        "lead": logits - rivals.mean(axis=1),
        "detector": detector.scorer.score(images),
    }


def quality(scores: Array, right: Array) -> tuple[float, float]:
    """The share of right photos among the best, of as many as there can be; and average precision."""
    ranked = right[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    return float(ranked[:TOP].sum() / min(TOP, ranked.sum())), float(precision[ranked].mean())


def main() -> None:
    """Print a row a set: the mean over its classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="the store of ImageNet's photos")
    parser.add_argument("--users", type=Path, required=True, help="the store of users' sets")
    given = parser.parse_args()
    encoder = get_encoder("mini")
    prompts = get_prompts(encoder.prompts)
    names = name_vectors(encoder, prompts, rival_names(encoder))
    rows = []
    for one in sets(given.photos, given.users, encoder):
        images = np.concatenate([one.images, one.others])
        rivals = images @ names.T / encoder.temperature
        found: dict[str, list[tuple[float, float]]] = {}
        for number, label in enumerate(one.labels):
            right = np.concatenate([one.classes == number, np.zeros(len(one.others), bool)])
            for name, scores in rankings(label, images, rivals, encoder).items() if right.any() else ():
                found.setdefault(name, []).append(quality(scores, right))
        rows.append([one.name, f"{len(one.labels)}", *(_cell(values) for values in found.values())])
    print(table(["set", "phrases", "cosine", "share", "lead", "detector"], rows))


def _cell(values: list[tuple[float, float]]) -> str:
    best, precision = np.mean(values, axis=0)
    return f"{100 * best:.0f} / {100 * precision:.0f}"


if __name__ == "__main__":
    main()
