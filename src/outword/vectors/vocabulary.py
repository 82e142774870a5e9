"""What a photo looks like, in names that people read, apart from the words that decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.errors import InputError
from outword.maths.kernels import Bank, Choice, chosen, make_bank, on_their_way, to_numpy
from outword.maths.numerics import UNIT_TOLERANCE, unit_rows


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Readable names and their vectors, (n_names, dim) float16; detectors may share one, and with it its bank."""

    names: Sequence[str]
    vectors: NDArray[np.float16]
    _banks: dict[Choice, Bank] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.names) or len(self.vectors) != len(self.names):
            raise InputError(
                f"a vocabulary must have a row of vectors a name, got {len(self.names)} names and shape "
                f"{self.vectors.shape}",
                hint="one row a name, and one name at least",
            )

    def begin(self, images: Any, top: int) -> Callable[[], NDArray[np.int64]]:
        """Begin to name images (n_images, dim), an array or a tensor; what is returned waits for the `top` best names.

        They are places in `names`, (n_images, top), best first, ties in order: those with the largest cosines. What
        computes is `chosen`, so that images may lie on its device; an image has the same names in any company.
        """
        choice = chosen()
        hosted = choice.backend == "numpy"
        x = unit_rows(to_numpy(images), "images", UNIT_TOLERANCE) if hosted else images
        found = on_their_way(self._bank(choice).evidence(x, min(top, len(self.names)))[1][:1])
        return lambda: found()[0]

    def _bank(self, choice: Choice) -> Bank:
        if choice not in self._banks:  # at 1, as only the order of cosines counts
            self._banks[choice] = make_bank(unit_rows(self.vectors), np.array([0, len(self.names)]), 1.0, choice)
        return self._banks[choice]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_banks": {}}  # made again where they are needed, perhaps on another device
