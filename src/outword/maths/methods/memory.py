"""Image vectors remembered by label, and the proxies that they make."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from outword.maths.numerics import Array

PAGE_CELLS = 1 << 20  # numbers in a page: 8 MB
SMALLEST_SQUARE = 1e-12  # of a proxy's length, where its vectors cancel out; their largest weight is 1


class Memory:
    """At most `length` images for each label; there is room only for labels that have one, a page of them at a time.

    A label's slots hold its text vector, then its images; an empty slot has no weight in a proxy. The products of a
    label's slots are kept, so that the length of a proxy costs no pass over its vectors.
    """

    def __init__(self, length: int) -> None:
        self._n_slots = 1 + length
        self._pages: list[_Page] = []
        self._places: dict[int, tuple[_Page, int]] = {}

    def store(self, label: int, text: Array, image: Array, entropy: float) -> bool:
        """Keep an image, in place of the one with the largest entropy if there is no room; whether it was kept."""
        page, row = self._places.get(label) or self._new(label, text)
        slot = int(page.entropies[row].argmax())
        if entropy >= page.entropies[row, slot]:
            return False
        page.put(row, slot, image, entropy)
        return True

    def cosines(self, label: int, images: Array, beta: float) -> Array:
        """Cosine of each image with the proxy that a label has for it, (n_images,)."""
        page, row = self._places[label]
        return page.cosines(images, beta, slice(row, row + 1))[:, 0]

    def proxies(self, images: Array, beta: float) -> Iterator[tuple[list[int], Array]]:
        """For all labels that have images, page by page: the labels, and their `cosines`, (n_images, n_labels)."""
        for page in self._pages:
            yield page.labels, page.cosines(images, beta, slice(len(page.labels)))

    def _new(self, label: int, text: Array) -> tuple[_Page, int]:
        if not self._pages or len(self._pages[-1].labels) == len(self._pages[-1].entropies):
            n_labels = max(1, PAGE_CELLS // (self._n_slots * len(text)))
            self._pages.append(_Page(n_labels, self._n_slots, len(text)))
        page = self._pages[-1]
        row = len(page.labels)
        page.labels.append(label)
        page.put(row, 0, text, -np.inf)  # the text is never dropped
        self._places[label] = page, row
        return page, row


class _Page:
    """The slots of some labels."""

    def __init__(self, n_labels: int, n_slots: int, dim: int) -> None:
        self.labels: list[int] = []
        self.entropies = np.full((n_labels, n_slots), np.inf)
        self._vectors = np.empty((n_labels * n_slots, dim))  # in the order in which they came
        self._places = np.full((n_labels, n_slots), -1)  # of a slot among the vectors; -1 is an empty slot
        self._products = np.zeros((n_labels, n_slots, n_slots))
        self._used = 0

    def put(self, row: int, slot: int, vector: Array, entropy: float) -> None:
        if self._places[row, slot] < 0:
            self._places[row, slot] = self._used
            self._used += 1
        self._vectors[self._places[row, slot]] = vector
        filled = self._places[row] >= 0
        products = self._vectors[self._places[row, filled]] @ vector
        self._products[row, slot, filled] = self._products[row, filled, slot] = products
        self.entropies[row, slot] = entropy

    def cosines(self, images: Array, beta: float, rows: slice) -> Array:
        """`cos(x, sum_m w_m m)` with `w_m = e^{-beta (1 - cos(x, m))}`, (n_images, n_rows).

        The weights are divided by the largest of them, which changes no cosine: else all would vanish at a large beta.
        """
        places = self._places[rows]
        filled = places >= 0
        cos = np.full((*places.shape, len(images)), -1.0)  # row, slot, image; an empty slot is never the nearest
        cos[filled] = self._vectors[places[filled]] @ images.T
        w = np.exp(beta * (cos - cos.max(axis=1, keepdims=True)))
        w[~filled] = 0
        squares = (w * (self._products[rows] @ w)).sum(axis=1)
        return np.asarray(((w * cos).sum(axis=1) / np.sqrt(np.maximum(squares, SMALLEST_SQUARE))).T)
