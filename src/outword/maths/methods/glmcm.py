"""MCM of the whole image plus MCM of its best patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.errors import InputError
from outword.maths.kernels.rows import in_blocks
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.methods.mcm import MCM
from outword.maths.methods.requests import Inputs, ScoreRequest
from outword.maths.numerics import UNIT_TOLERANCE, Array, unit_rows


@DETECTORS.register("glmcm")
@dataclass
class GLMCM(MCM):
    """Global and local maximum concept matching: an ID object anywhere in the image counts.

        S(x) = max_i p_i(x) + weight max_{patches q of x} max_i p_i(q),   p(x) = softmax_i(cos(x, y_i) / T),   T = 1

    A patch q is what the encoder makes of one part of the image by the value path of its last attention (see
    docs/encoders.md): the part is seen by itself there, not through what all others say.

    Args:
        temperature: the T above; the published value is 1, whatever the encoder's own temperature is.
        weight: of the patches, at least 0; the published value is 1. At 0 the score is MCM's.

    Reference: Miyai et al., "GL-MCM: Global and Local Maximum Concept Matching for Zero-Shot Out-of-Distribution
    Detection", IJCV 2025, arXiv 2304.04521.

    >>> detector = GLMCM().fit(labels=[[1.0, 0.0], [1.0, 0.0]])
    >>> detector.score([[0.0, 1.0]], patches=[[[0.0, 1.0], [1.0, 0.0]]])    # 1/2 and 1/2
    array([1.])
    """

    weight: float = parameter(1.0, least=0, hint="the published value is 1")
    summary = "MCM of the image plus MCM of its best patch"
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS, Need.PATCHES)

    def score_inputs(self, request: ScoreRequest) -> Inputs:
        """The photos and their patches, encoded in one go."""
        if Need.PATCHES not in self.wants() or request.pixels is None:
            return super().score_inputs(request)
        images, patches = request.encoder.encode_patches(request.pixels)
        return {"images": images, "patches": patches}

    def sample_inputs(self, images: Array, words: Array) -> Inputs:
        """Each image and its opposite as patches."""
        return {"patches": np.stack([images, -images], axis=1)}

    def score(self, images: ArrayLike, *, patches: ArrayLike | None = None, **more: Any) -> Array:
        """See `VectorDetector.score`; patches (n_images, n_patches, dim) are in the space of the labels."""
        whole = super().score(images)
        if not self.weight:
            return whole
        parts = self._patches(patches, len(whole))
        rows = parts.reshape(-1, parts.shape[2])
        local = in_blocks(lambda q: self._score(unit_rows(q, "patches", UNIT_TOLERANCE)), rows, np.empty(len(rows)))
        return np.asarray(whole + self.weight * local.reshape(parts.shape[:2]).max(axis=1))

    def _patches(self, patches: ArrayLike | None, n_images: int) -> NDArray[np.floating]:
        dim = self.labels_.shape[1]
        if not n_images:
            return np.zeros((0, 1, dim))
        if patches is None:
            raise InputError(
                f"{type(self).__name__} needs {Need.PATCHES.value}, got none",
                hint="pass patches= (n_images, n_patches, dim), from an encoder that has them",
            )
        found = np.asarray(patches)
        if found.ndim != 3 or found.shape[::2] != (n_images, dim) or found.shape[1] == 0:
            raise InputError(
                f"patches must have the shape ({n_images}, n_patches, {dim}), got {found.shape}",
                hint="one row an image, at least one patch each, encoded like the labels",
            )
        return found
