"""What `fit` is given, checked: rows of vectors, the classes of images, negatives, and which label each row belongs to.

Messages call the method by its name.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.errors import InputError
from outword.maths.methods.needs import Need
from outword.maths.numerics import matrix

Classes = NDArray[np.int64]


def given_rows(
    method: str, need: Need, name: str, values: ArrayLike | None, dim: int | None = None
) -> NDArray[np.floating]:
    """The rows of an input that must be there."""
    if values is None or np.size(values) == 0:
        raise InputError(f"{method} needs {need.value}, got none", hint=f"pass {name}= with at least one row")
    return matrix(values, name, dim)


def given_negatives(method: str, values: ArrayLike | None, labels: NDArray[np.floating]) -> NDArray[np.floating]:
    """Negatives (n_sets, n_rows, dim), as many vectors a set as there are rows of labels."""
    given = np.zeros(0) if values is None else np.asarray(values)
    sets = given[None] if given.ndim == 2 else given
    if sets.ndim != 3 or not len(sets) or sets.shape[1:] != labels.shape:
        n, dim = labels.shape
        got = "none" if values is None else given.shape
        raise InputError(
            f"{method} needs {Need.NEGATIVES.value} of shape (n_sets, {n}, {dim}), got {got}",
            hint="pass negatives= with a vector for each row of labels",
        )
    return matrix(sets.reshape(-1, sets.shape[2]), "negatives").reshape(sets.shape).copy()


def given_classes(method: str, image_labels: ArrayLike | None, n_images: int) -> Classes:
    """The class of each ID image, (n_images,)."""
    found = np.asarray([] if image_labels is None else image_labels)
    if found.shape != (n_images,) or found.dtype.kind not in "iu":
        got = "none" if image_labels is None else f"shape {found.shape}, dtype {found.dtype}"
        raise InputError(
            f"{method} needs {Need.ID_LABELS.value}: image_labels must be ({n_images},) integers, got {got}",
            hint="pass the class of each row of images",
        )
    return found.astype(np.int64)


def given_owners(owners: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Which label each row belongs to, as (n_rows,) integers that go from 0 to the last label without a gap."""
    found = np.asarray(owners)
    if found.shape != (n_rows,) or found.dtype.kind not in "iu":
        raise InputError(
            f"owners must be ({n_rows},) integers, got shape {found.shape}, dtype {found.dtype}",
            hint="one label for each row of labels",
        )
    found = found.astype(np.int64)
    steps = np.diff(found, prepend=-1)
    if not n_rows or steps[0] != 1 or steps.min() < 0 or steps.max() > 1:
        raise InputError(
            "owners must begin at 0, not decrease and leave out no label", hint="put the rows of a label side by side"
        )
    return found
