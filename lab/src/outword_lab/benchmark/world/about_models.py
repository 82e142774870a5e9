"""How well each model sees the world: accuracy, the cone of its texts, the gap between texts and images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.maths.methods import MCM
from outword.maths.metrics import auroc
from outword.vectors.wild import encode_words
from outword.words.prompts import get_prompts
from outword_lab.benchmark.found import Found, percent
from outword_lab.benchmark.world.lab import OTHER, PROMPTS, STRANGE, encoded_set, shown_things, the_list

MODELS = ("world-s", "world-m", "world-m-96")
SHIFTS = ("v2", "sketch", "rendition", "adverse")


def models(encoders: Callable[[str], Encoder], store: Path, report: Report = quiet) -> Found:
    """Zero-shot accuracy among the 25 labels, as trained and shifted; cosines; MCM."""
    rows = [(name, *_figures(encoders(name), store, report)) for name in MODELS]
    return Found(
        "models",
        "How well do the models see?",
        (
            *("model", "accuracy", *(f"on {shift}" for shift in SHIFTS)),
            *("text-text cosine", "image-text cosine", "scale", "MCM, mean AUROC"),
        ),
        tuple(rows),
        (
            "Zero-shot accuracy in percent among the 25 labels of the tables, on photos as in training and on shifted "
            "ones. Mean cosines: texts lie in a cone, images elsewhere, as in CLIP. The world should be neither too "
            "easy nor too hard: for world-m, 70 to 90 % and 75 to 92 points of AUROC were wanted.",
        ),
    )


def _figures(encoder: Encoder, store: Path, report: Report) -> tuple[str, ...]:
    labels = the_list().labels
    texts = get_prompts(PROMPTS).render(labels, ["label"] * len(labels))
    y = encode_words(encoder, texts, report)
    accuracies = []
    for one in ("id", *SHIFTS):
        photos = encoded_set(encoder, one, store, report)
        named = np.array(labels)[(photos.vectors @ y.T).argmax(axis=1)]
        accuracies.append(percent(named == shown_things(photos)))
    inside = encoded_set(encoder, "id", store, report).vectors
    score = MCM().fit(labels=y).score
    ranks = [auroc(score(inside), score(encoded_set(encoder, one, store, report).vectors)) for one in (OTHER, *STRANGE)]
    pairs = y[np.newaxis] @ y.T
    off_diagonal = (pairs.sum() - len(y)) / (len(y) * (len(y) - 1))
    cosines = f"{off_diagonal:.2f}", f"{float((inside @ y.T).mean()):.2f}", f"{1 / encoder.temperature:.1f}"
    return *accuracies, *cosines, percent(ranks)
