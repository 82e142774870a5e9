"""Some photos of the rendered world, drawn without the others."""

import numpy as np

from outword_lab.world.render import render
from outword_lab.world.sets import world_sets
from outword_lab.world.things import ID_FAMILIES, seen

LABELS = list(seen(ID_FAMILIES))
PROMPTED = [f"a photo of a {label}" for label in LABELS]


def every(step, name, start=0):
    """Every step-th photo of a set: pixels (n, 96, 96, 3), and what each shows."""
    photos = world_sets()[name]
    rows = np.arange(start, len(photos), step)
    pixels = render(photos.scenes.map(lambda array: array[rows]))
    if photos.spoilt:
        pixels = np.stack([photos.spoilt(one, row) for one, row in zip(pixels, rows.tolist(), strict=True)])
    return pixels, [photos.shown[row] for row in rows]


def rows_of_labels(shown):
    """Which of `LABELS` photos show, (n,)."""
    return np.array([LABELS.index(name) for name in shown])
