"""ZOC's score: the labels against words that somebody names for each image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outword.errors import InputError
from outword.maths.kernels.evidence import Evidence, largest
from outword.maths.methods.base import DETECTORS, Need, VectorDetector
from outword.maths.methods.requests import Inputs, ScoreRequest
from outword.maths.numerics import UNIT_TOLERANCE, Array, log_sum_exp, matrix, unit_rows
from outword_lab.learning.photo_words import named_inputs


@DETECTORS.register("zoc")
@dataclass
class ZOC(VectorDetector):
    """What the softmax leaves for the labels, beside words that were named for this image alone.

        S(x) = - sum_{w in W(x)} p_w,   p = softmax over y_1..y_K and W(x) of cos(x, .) / T
        W(x) = the words that somebody names for x, less the ID names

    This is ZOC's score with words of yours: a tagger's, a captioner's, a person's. In the paper they come from a
    text decoder that was trained on captions; no figure of the paper is claimed here. Labels and words are read in
    "This is a photo of a {}". An image without words scores 0, the most there is: all of the mass is on the labels.

    Args:
        temperature: the T above; ZOC's is 0.01, CLIP's own.

    Reference: Esmaeilpour et al., "Zero-Shot Out-of-Distribution Detection Based on the Pre-trained Model CLIP",
    AAAI 2022.

    >>> ZOC().fit(labels=[[1.0, 0.0]]).score([[0.6, 0.8], [0.6, 0.8]], words=[[[1.0, 0.0]], []])
    array([-0.5,  0. ])
    """

    temperature: float = 0.01
    summary = "mass that words named for each image leave to the labels: ZOC's score, your words"
    needs = (Need.LABELS, Need.WORDS)
    prompts = "zoc"

    def score_inputs(self, request: ScoreRequest) -> Inputs:
        """The photos that somebody has words for, with the vectors of these."""
        return named_inputs(request)

    def sample_inputs(self, images: Array, words: Array) -> Inputs:
        """What an eye would name beside the labels: the words nearest to each image, one to five of them."""
        nearest = np.argsort(-(images @ words.T), axis=1, kind="stable")
        return {"words": [words[order[: 1 + order[0] % 5]] for order in nearest]}

    def score(self, images: ArrayLike, *, words: Sequence[ArrayLike] | None = None, **more: Any) -> Array:
        """See `VectorDetector.score`; words are one array (n_words, dim) an image, in the space of the labels."""
        return self.begin(images, 0, self.temperature, words=words)()[0]

    def begin(
        self,
        images: ArrayLike,
        top: int,
        temperature: float,
        *,
        words: Sequence[ArrayLike] | None = None,
        **more: Any,
    ) -> Callable[[], tuple[Array, Evidence]]:
        """See `VectorDetector.begin`; the words of the evidence are places among those of the image, -1 for none."""
        x = self._unit_images(images)
        given = self._checked_words(words, len(x))
        log_p = self._for_each(x, lambda rows: log_sum_exp(rows @ self._y.T / self.temperature)[:, None], 1)[:, 0]
        scores, most = np.zeros(len(x)), np.full((len(x), top), -1)
        label_part, shares = np.ones(len(x)), np.zeros((len(x), top))
        for i, rows in enumerate(given):
            logits = self._word_logits(x[i], rows, i)
            if not len(logits):
                continue
            log_q = log_sum_exp(logits[None])[0]
            scores[i], label_part[i] = -_share(log_q, log_p[i]), _share(log_p[i], log_q)
            found = largest(logits[None], min(top, len(logits)))[0]
            most[i, : len(found)] = found
            shares[i, : len(found)] = np.exp(logits[found] - np.logaddexp(log_p[i], log_q))
        if not top:
            return lambda: (scores, Evidence.none(len(scores)))
        told = self.evidence(images, top, temperature)
        told = told._replace(label_shares=told.label_shares * label_part[:, None], words=most, word_shares=shares)
        return lambda: (scores, told)

    def _word_logits(self, image: Array, words: ArrayLike, place: int) -> Array:
        """Logits of the words of an image, (n_words,); sums of their own, so that no other image changes a bit."""
        if not np.size(words):
            return np.zeros(0)
        name = f"words[{place}]"
        rows = unit_rows(matrix(words, name, len(image)), name, UNIT_TOLERANCE)
        return np.asarray((rows * image).sum(axis=1) / self.temperature)

    def _checked_words(self, words: Sequence[ArrayLike] | None, n_images: int) -> Sequence[ArrayLike]:
        if words is None and n_images:
            raise InputError(
                f"{type(self).__name__} needs {Need.WORDS.value}, got none",
                hint="pass words=[...], one array (n_words, dim) an image",
            )
        found: Sequence[ArrayLike] = () if words is None else words
        if len(found) != n_images:
            raise InputError(
                f"words must be one array an image ({n_images}), got {len(found)}", hint="an image without words has []"
            )
        return found

    def _score(self, images: Array) -> Array:
        """Of images without words; `begin` has the others."""
        return np.zeros(len(images))


def _share(log_own: float, log_other: float) -> float:
    """What one mass is of two."""
    return float(np.exp(-np.logaddexp(0.0, log_other - log_own)))
