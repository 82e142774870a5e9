"""AdaNeg: labels and words learn what they look like from the images that pass by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, parameter
from outword.maths.methods.neglabel import NegLabel
from outword.maths.numerics import Array, grouped_log_sum_exp, negative_entropy

BLOCK = 256  # images whose logits are held at a time
TIE = 1e-9  # logits this close are equal: rounding must not choose between two labels of one name
PAGE_CELLS = 1 << 20  # numbers in a page: 8 MB
SMALLEST_SQUARE = 1e-12  # of a proxy's length, where its vectors cancel out; their largest weight is 1


@DETECTORS.register("adaneg")
@dataclass
class AdaNeg(NegLabel):
    """NegLabel with proxies that adapt to the test stream, plus a part of NegLabel itself.

        S(x)   = S_nl(v(x)) + weight S_nl(t)               S_nl(t) is NegLabel's score with the text vectors t
        v_c(x) = unit( sum_m e^{-beta (1 - cos(x, m))} m ),   m over t_c and the images in the memory of c

    Every label and every word c has a memory. An image x is stored before it is scored: with its nearest label if
    `S_nl > threshold + gap (1 - threshold)`, with its nearest word if `S_nl < threshold - gap threshold`, else
    nowhere. A full memory drops the image of the largest entropy (of the softmax over all labels, or all words).

    **A score depends on the images that were scored before**, and on their order: that is the method. The size of the
    batches does not matter. `reset` empties the memory; a saved detector starts with an empty one.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        n_groups: B of NegLabel; the published value is 5. Words that do not fill a group are dropped from the tail.
        seed: deals the words into groups, once, at `fit`.
        memory: images that a label or a word remembers, 1 to 1000; the published value is 10.
        threshold: middle between ID and OOD, in [0, 1]; the published value is 0.5.
        gap: how far from the middle an image must be to be stored, in [0, 1]; the published value is 0.5: above 0.75
            and below 0.25. At 1 nothing is stored, and the score is `(1 + weight)` times NegLabel's.
        beta: sharpness of the weights, 0 to 1000; the published value is 5.5. At 0 a proxy is the plain mean.
        weight: of NegLabel's own score, at least 0; the published value is 0.1.

    Reference: Zhang and Zhang, "AdaNeg: Adaptive Negative Proxy Guided OOD Detection with Vision-Language Models",
    NeurIPS 2024. The released code stores a whole batch before it scores it, counts the text vector as one of the ten,
    and cuts beta to a whole number.

    >>> detector = AdaNeg(temperature=0.1, n_groups=1).fit(labels=[[1.0, 0.0]], wild=[[0.0, 1.0]])
    >>> detector.score([[0.5, 0.5], [0.6, 0.8], [0.5, 0.5]]).round(3)    # the second is remembered as the wild word
    array([0.55 , 0.032, 0.118])
    """

    n_groups: int = 5
    memory: int = parameter(10, whole_number, most=1000, hint="gap=1 stores nothing")
    threshold: float = parameter(0.5, least=0, most=1, hint="the published value is 0.5")
    gap: float = parameter(0.5, least=0, most=1, hint="the published value is 0.5")
    beta: float = parameter(5.5, least=0, most=1000, hint="the published value is 5.5")
    weight: float = parameter(0.1, least=0, hint="the published value is 0.1")
    summary = "NegLabel with proxies that learn from the images scored so far"
    sees_order = True

    def reset(self) -> None:
        """Forget the images that were scored."""
        self._memory = Memory(self.memory)

    def _prepare(self) -> None:
        super()._prepare()
        self._columns = self._texts()
        self.default_threshold_ = None  # NegLabel's cut is not on this scale
        self.reset()

    def _score(self, images: Array) -> Array:
        blocks = range(0, len(images), BLOCK)
        return np.concatenate([self._stream(images[start : start + BLOCK]) for start in blocks])

    def _stream(self, images: Array) -> Array:
        """Scores of a block, as if its images came one by one."""
        logits = images @ self._columns.T / self.temperature
        text = self._combine(self._masses(logits))
        stored = list(self._stored(logits, text))
        for labels, cosines in self._memory.proxies(images, self.beta):
            logits[:, labels] = cosines / self.temperature
        for i, label, entropy in stored:
            if self._memory.store(label, self._columns[label], images[i], entropy):
                rest = images[i:]  # this image and those after it see the change
                logits[i:, label] = self._memory.cosines(label, rest, self.beta) / self.temperature
        return np.asarray(self._combine(self._masses(logits)) + self.weight * text)

    def _masses(self, logits: Array) -> Array:
        return grouped_log_sum_exp(logits, [slice(first, last) for first, last in pairwise(self._offsets)])

    def _stored(self, logits: Array, text: Array) -> Iterator[tuple[int, int, float]]:
        """The images to store, in order: (row, label or word, entropy)."""
        n_labels = len(self._y)
        inside = text > self.threshold + self.gap * (1 - self.threshold)
        outside = text < self.threshold - self.gap * self.threshold
        for i in np.flatnonzero(inside | outside):
            first, row = (0, logits[i, :n_labels]) if inside[i] else (n_labels, logits[i, n_labels:])
            nearest = first + int(np.argmax(row >= row.max() - TIE))
            yield int(i), nearest, round(-float(negative_entropy(row[None])[0]), 10)


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
