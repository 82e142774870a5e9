"""The arithmetic, slow and obvious, in float64: what every faster path is tested against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.errors import InputError

Array = NDArray[np.float64]

CELLS = 1 << 22  # of a matrix that is held at a time: 32 MB in float64
ROWS = 64  # that are made unit vectors at a time: they stay in the cache, and no other array of that size is made
UNIT_TOLERANCE = 1e-6  # what rounding to float32 leaves of a unit vector's norm


def matrix(values: ArrayLike, name: str, dim: int | None = None, *, finite: bool = True) -> NDArray[np.floating]:
    """`values` as a two-dimensional float array; `name` is what an error calls it.

    `finite=False` leaves it to the caller to see that there is no NaN or infinity.

    >>> matrix([[1, 2]], "labels").shape
    (1, 2)
    """
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        got = f"shape {array.shape}, dtype {array.dtype}"
        raise InputError(f"{name} must be a two-dimensional array of numbers, got {got}", hint="one row a vector")
    if dim is not None and array.shape[1] != dim:
        raise InputError(
            f"{name} must have {dim} columns like the labels, got {array.shape[1]}",
            hint="encode images, labels and words with the same encoder",
        )
    if finite and not all_finite(array):
        raise InputError(f"{name} must be finite, got NaN or infinity", hint="drop the rows that are not finite")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def all_finite(array: NDArray[Any]) -> bool:
    """Whether there is neither NaN nor infinity; numpy looks at float16 one number at a time.

    >>> all_finite(np.array([1, -2], np.float16)), all_finite(np.array([1, -np.inf], np.float16))
    (True, False)
    """
    if array.dtype == np.float16:
        return not ((array.view(np.uint16) & 0x7C00) == 0x7C00).any()  # all bits of the exponent
    return bool(np.isfinite(array).all())


def check_directions(values: NDArray[np.floating], name: str) -> None:
    """Raise if a row is zero, as `unit_rows` does, without making unit rows."""
    if not (there := values.any(axis=1)).all():
        row = int(np.argmin(there))
        raise InputError(f"{name} must have no zero row, row {row} is zero", hint="drop that row")


def unit_rows(values: ArrayLike, name: str = "vectors", tolerance: float = 0.0, out: Array | None = None) -> Array:
    """Rows divided by their length, in float64; rows within `tolerance` of length 1 are left as they are.

    They are put into `out`, in the order of C, where that is given.

    >>> unit_rows([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """
    array = matrix(values, name)
    found = np.empty(array.shape) if out is None else out  # sums over a row go another way in another order
    for start in range(0, len(array), ROWS):
        part = found[start : start + ROWS]
        part[...] = array[start : start + ROWS]
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        if (norms == 0).any():
            row = start + int(np.argmin(norms))
            raise InputError(f"{name} must have no zero row, row {row} is zero", hint="drop that row")
        norms[np.abs(norms - 1) <= tolerance] = 1.0
        part /= norms
    return found


def log_sum_exp(values: Array) -> Array:
    """`log sum exp` along the last axis, without overflow.

    >>> float(log_sum_exp(np.log([[1.0, 2.0, 3.0]]))[0])
    1.791759469228055
    """
    top = values.max(axis=-1, keepdims=True)
    found: Array = np.log(np.exp(values - top).sum(axis=-1)) + top[..., 0]
    return found


def largest_probability(logits: Array) -> Array:
    """The largest entry of each row's softmax.

    >>> largest_probability(np.log([[1.0, 3.0]])).round(4)
    array([0.75])
    """
    found: Array = np.exp(logits.max(axis=1) - log_sum_exp(logits))
    return found


def negative_entropy(logits: Array) -> Array:
    """`sum p log p` of the softmax of each row.

    >>> negative_entropy(np.log([[1.0, 1.0, 2.0]])).round(4)    # -(1/4 log 4 + 1/4 log 4 + 1/2 log 2)
    array([-1.0397])
    """
    log_p = logits - log_sum_exp(logits)[:, None]
    found: Array = (np.exp(log_p) * log_p).sum(axis=1)
    return found


def softmax(values: Array) -> Array:
    """`e^v / sum e^v` along the last axis, without overflow.

    >>> softmax(np.log([[1.0, 3.0]])).round(4)
    array([[0.25, 0.75]])
    """
    found: Array = np.exp(values - log_sum_exp(values)[..., None])
    return found


def grouped_log_sum_exp(logits: Array, groups: Sequence[NDArray[np.integer] | slice]) -> Array:
    """`log sum exp` of the columns of each group: (n_images, n_columns) to (n_images, n_groups)."""
    return np.stack([log_sum_exp(logits[:, columns]) for columns in groups], axis=1)


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, so many at a time that a matrix of them with `width` columns stays small.

    >>> list(blocks(5, CELLS // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, CELLS // max(1, width))
    return (slice(start, start + size) for start in range(0, n_rows, size))
