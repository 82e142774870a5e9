"""What clipn does on the small world, with towers of our own training that say no, beside mcm and maxlogit.

    python benchmarks/clipn.py

Each tower is trained by the defaults of `outword train-no` on photos of things that world-m knows: the 400 of
`world:train` with four captions each, the same with the 1,040 of `world:reference`, or others that are drawn for it,
with one caption. AUROC of `world:id` against each set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

import outword
from common import table
from outword.encoders import Encoder, get_encoder
from outword.maths.numerics import unit_rows
from outword.metrics import auroc
from outword.vectors.reader import vectors_of
from outword.vectors.source import find_source
from outword_lab.learning.no_tower import Course, train_no
from outword_lab.world.phrases import captions
from outword_lab.world.render import render
from outword_lab.world.scenes import draw
from outword_lab.world.sets import world_sets
from outword_lab.world.things import seen

ENCODER, SETS, TOGETHER = "world-m", ("id", "near", "other"), 500
OF_SETS = {400: ("train",), 1_440: ("train", "reference")}  # photos that need not be drawn
RUNS = [(400, 10), (1_440, 10), (2_000, 10), (20_000, 10), (20_000, 50)]  # photos, epochs
Lines = Iterator[tuple[str, str]]  # an image and a text


def of_sets(sets: tuple[str, ...]) -> Lines:
    """The photos of sets of the world, four captions each."""
    for photos in (world_sets()[name] for name in sets):
        for seed in range(4):
            for name, text in zip(photos.names, captions(photos.scenes, seed), strict=True):
                yield f"world:{photos.name}/{name}", text


def drawn(n: int, folder: Path) -> Lines:
    """Photos that are drawn for it, one caption each; near and far things are not among them."""
    names = [*seen()]
    for start in range(0, n, TOGETHER):
        scenes = draw([names[i % len(names)] for i in range(TOGETHER)], [7, start])
        for i, (pixels, text) in enumerate(zip(render(scenes), captions(scenes, [8, start]), strict=True), start):
            Image.fromarray(pixels).save(folder / f"{i}.png", compress_level=1)
            yield f"{i}.png", text


def trained(encoder: Encoder, n: int, epochs: int, folder: Path) -> Encoder:
    """The encoder with a tower that was trained on so many photos."""
    file, out = folder / f"{n}.jsonl", folder / f"{n}-{epochs}.safetensors"
    if not file.exists():
        lines = of_sets(OF_SETS[n]) if n in OF_SETS else drawn(n, folder)
        file.write_text("".join(json.dumps({"image": image, "text": text}) + "\n" for image, text in lines))
    train_no(file, encoder, out, Course(epochs=epochs), tell=lambda line: print(n, line, file=sys.stderr))
    return get_encoder(f"clipn:{out}")


def main() -> None:
    """Print the table."""
    encoder, labels = get_encoder(ENCODER), list(world_sets()["id"].things)
    photos = {
        name: np.concatenate([some.values for some in vectors_of(encoder, find_source([f"world:{name}"], encoder))])
        for name in SETS
    }

    def row(title: str, method: str, used: Encoder, **params: str) -> list[str]:
        scorer = outword.fit(labels, encoder=used, method=method, **params).scorer
        inside, *outside = (scorer.score(vectors) for vectors in photos.values())
        texts = unit_rows(scorer.labels_ if scorer.negatives_ is None else scorer.negatives_[0])
        return [title, *(f"{100 * auroc(inside, scores):.2f}" for scores in outside), f"{(texts @ texts.T).mean():.3f}"]

    rows = [row(method, method, encoder) for method in ("mcm", "maxlogit")]
    with TemporaryDirectory() as folder:
        for n, epochs in RUNS:
            used = trained(encoder, n, epochs, Path(folder))
            for rule in ("atd", "ctw"):
                rows.append(row(f"clipn, {rule}, {n:,} photos, {epochs} epochs", "clipn", used, rule=rule))
    print(
        table(
            ["", *(f"world:{name}" for name in SETS[1:]), "mean cosine between labels: no (first two rows: yes)"], rows
        )
    )


if __name__ == "__main__":
    main()
