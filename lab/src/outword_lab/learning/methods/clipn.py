"""CLIPN: a text tower that says yes and one that says no compete for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from outword.base.checks import one_of
from outword.maths.methods.base import DETECTORS, Need, VectorDetector, parameter
from outword.maths.methods.requests import FitRequest, Inputs
from outword.maths.numerics import Array, softmax
from outword_lab.learning.needs import NO_TOWER


@DETECTORS.register("clipn")
@dataclass
class CLIPN(VectorDetector):
    """The probability that the image is of a label to which the second text tower does not say no.

        p_k(x) = e^{s x.t_k} / (e^{s x.t_k} + e^{s x.n_k}),   s = 1 / temperature
        atd:  S(x) = sum_k softmax(s x.t)_k p_k(x)          ctw:  S(x) = p_{k*}(x),   k* = argmax_k x.t_k

    t_k is what the text tower makes of label k, n_k what the tower that says no makes of the same words. The score is
    of no use unless that tower was trained to say no: an encoder `clipn:FILE` (lab/docs/clipn.md). At n_k = t_k, where a
    training begins, it is 1/2 for every image. Before calibration the cut is 1/2, where yes and no weigh the same; how
    good that is hangs on the training.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        rule: "atd", agreeing to differ, or "ctw", competing to win.

    Reference: Wang et al., "CLIPN for Zero-Shot OOD Detection: Teaching CLIP to Say No", ICCV 2023. Several sets of
    vectors that say no are ours: p_k is then the mean over them.

    >>> detector = CLIPN(temperature=0.1).fit(labels=[[1.0, 0.0]], negatives=[[0.0, 1.0]])
    >>> detector.score([[1.0, 0.0], [0.8, 0.6], [0.6, 0.6]]).round(4)    # cosines differ by 1, 0.2 and 0
    array([1.    , 0.8808, 0.5   ])
    """

    temperature: float = 0.01
    rule: Literal["atd", "ctw"] = parameter("atd", one_of, choices=("atd", "ctw"))
    summary = "share of yes against no, of a text tower that was trained to say no"
    needs = (Need.LABELS, Need.NEGATIVES, NO_TOWER)
    default_threshold_ = 0.5

    def fit_inputs(self, request: FitRequest) -> Inputs:
        """What the tower that says no makes of each row of the labels: it reads what the other one reads."""
        from outword.vectors.wild import encode_words

        no = request.encoder.encode_no_texts
        negatives = encode_words(request.encoder, request.sentences(), request.report, encode=no)
        return {"negatives": negatives}

    def _score(self, images: Array) -> Array:
        yes = images @ self._y.T / self.temperature
        no = images @ self._no.reshape(-1, images.shape[1]).T / self.temperature
        ahead = yes[:, None] - no.reshape(len(images), *self._no.shape[:2])  # (n_images, n_sets, n_labels)
        p = np.exp(-np.logaddexp(0, -ahead)).mean(axis=1)
        if self.rule == "ctw":
            return np.asarray(np.take_along_axis(p, yes.argmax(axis=1)[:, None], axis=1)[:, 0])
        return np.asarray((softmax(yes) * p).sum(axis=1))
