"""The fast twins of `numerics`, one door for all backends: numpy, torch on the CPU and on CUDA, and Triton on CUDA.

`chosen` says which backend computes, `using` is a block with another one, and so is the variable OUTWORD_KERNELS
(docs/performance.md). Backends that need torch are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import number, whole_number
from outword.base.reports import Steps
from outword.errors import InputError
from outword.maths.kernels.choice import Choice, chosen, interpreted, using
from outword.maths.kernels.evidence import Evidence, owners_in
from outword.maths.numerics import UNIT_TOLERANCE, Array, matrix, unit_rows

BANKS = {"numpy": "numpy_blas", "triton": "triton_scoring"}  # modules by backend; all others have torch's

__all__ = ["Bank", "Choice", "chosen", "grouped_logsumexp", "make_bank", "neighbour_density", "using"]


class Bank(Protocol):
    """Text vectors in groups, ready to be scored against."""

    def log_masses(self, images: Any) -> Any:
        """Images (n_images, dim) to (n_images, n_groups): an array, or a tensor on the backend's device.

        A bank that was made with `peak` has one more column, the last: the largest logit of group 0.

        numpy wants unit rows. The others take rows of any length, as arrays or tensors, and normalise them; an image
        that is zero or not finite has NaN everywhere.
        """

    def evidence(self, images: Any, top: int) -> tuple[Any, Evidence]:
        """Log masses, and the `top` labels and words of each image, from one product; what is taken is the same."""


def grouped_logsumexp(
    images: ArrayLike,
    bank: ArrayLike,
    groups: ArrayLike | Sequence[ArrayLike | slice],
    *,
    temperature: float = 1.0,
    backend: str | None = None,
    precision: str | None = None,
) -> Array:
    """`log sum_{u in group} e^{cos(x, u) / temperature}` of each image x and each group of the bank's rows.

    Args:
        images: (n_images, dim); rows are normalised.
        bank: (n_columns, dim); rows are normalised.
        groups: (n_groups + 1,) offsets, where each run of rows begins and where the last one ends; or the rows of each
            group, as arrays of indices or slices.
        temperature: divisor of cosines.
        backend: see `chosen`.
        precision: see `chosen`.

    Returns:
        (n_images, n_groups) float64.

    >>> grouped_logsumexp([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0], [0, 1]]).round(4)
    array([[1.    , 1.3133]])
    """
    number("temperature", temperature, least=1e-6, hint="CLIP's is 0.01")
    vectors = unit_rows(bank, "bank", UNIT_TOLERANCE)
    order, offsets = _runs(groups, len(vectors))
    made = make_bank(vectors[order], offsets, temperature, chosen(backend, precision))
    x = unit_rows(matrix(images, "images", vectors.shape[1]), "images", UNIT_TOLERANCE)
    return to_numpy(made.log_masses(x)).astype(np.float64, copy=False)


def make_bank(
    vectors: Array,
    offsets: NDArray[np.integer],
    temperature: float,
    choice: Choice,
    first: int = 1,
    *,
    owners: NDArray[np.integer] | None = None,
    peak: bool = False,
) -> Bank:
    """A bank of the chosen backend.

    Args:
        vectors: (n_columns, dim) float64, unit rows; the members of a group are neighbours.
        offsets: (n_groups + 1,), where each group begins, and where the last one ends; no group is empty.
        temperature: divisor of cosines.
        choice: see `chosen`.
        first: the group with which the words begin, for evidence; group 0 are the labels, and groups between them
            take no part in it.
        owners: (n_rows,), which label each row of group 0 belongs to, for evidence; see `VectorDetector.fit`.
        peak: whether log masses come with the largest logit of the labels, from the same product.
    """
    options: dict[str, Any] = {"temperature": temperature, "precision": choice.precision, "first": first, "peak": peak}
    if choice.backend not in BANKS:
        options["device"] = choice.backend.removeprefix("torch-")
    module = import_module(f"outword.maths.kernels.{BANKS.get(choice.backend, 'torch_blas')}")
    made: Bank = module.Bank(vectors, offsets, owners=owners_in(owners), **options)
    return made


def neighbour_density(
    words: ArrayLike, alpha: int, *, backend: str | None = None, progress: Steps | None = None
) -> Array:
    """Sum of squared distances `2 - 2 cos` of each row to its `alpha` nearest other rows, exactly, (n_words,).

    No backend holds the T x T matrix, and all give the float64 sums to rounding.

    Args:
        words: (n_words, dim), any length but zero; with a backend of torch, a tensor is taken as it is.
        alpha: how many neighbours, less than n_words; self is not one of them.
        backend: see `chosen`.
        progress: called with (words done, words in all).

    >>> neighbour_density([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], 1)
    array([2., 2., 2.])
    """
    choice = chosen(backend)
    given = choice.backend != "numpy" and hasattr(words, "is_cuda")
    vectors: Any = words if given else matrix(words, "words")
    whole_number("alpha", alpha, hint="the paper's is 100")
    if alpha >= len(vectors):
        raise InputError(
            f"alpha must be less than the number of words ({len(vectors)}), got {alpha}",
            hint="lower alpha, or give more words",
        )
    if choice.backend == "numpy":
        from outword.maths.kernels import numpy_mining

        return numpy_mining.neighbour_density(vectors, alpha, progress=progress)
    from outword.maths.kernels import torch_blas

    device = "cpu" if choice.backend == "torch-cpu" or interpreted() else "cuda"
    return torch_blas.neighbour_density(vectors, alpha, device=device, progress=progress)


def to_numpy(values: Any) -> NDArray[Any]:
    """An array or a tensor of any device as an array of the same type."""
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


def on_their_way(values: Sequence[Any]) -> Callable[[], list[NDArray[Any]]]:
    """Begin to bring arrays, or tensors of one device, to the computer's memory; what is returned waits for them.

    So a device can go on with other work meanwhile, and other work that is begun later is not waited for.
    """
    if not getattr(values[0], "is_cuda", False):
        return lambda: list(map(to_numpy, values))
    from outword.maths.kernels.torch_blas import begin_copies

    return begin_copies(values)


def _runs(groups: Any, n_columns: int) -> tuple[NDArray[np.integer] | slice, NDArray[np.int64]]:
    """Rows in an order in which groups are runs, and where the runs begin and end."""
    if len(groups) and np.ndim(groups[0]) == 0 and not isinstance(groups[0], slice):
        offsets = np.asarray(groups)
        rise = offsets.dtype.kind in "iu" and bool((np.diff(offsets) > 0).all())
        if not rise or offsets[0] != 0 or offsets[-1] != n_columns:
            raise InputError(
                f"offsets must rise from 0 to the number of rows ({n_columns}), got {offsets.tolist()}",
                hint="no group may be empty; or give the rows of each group",
            )
        return slice(None), offsets
    rows = np.arange(n_columns)
    parts = [rows[group] if isinstance(group, slice) else np.asarray(group) for group in groups]
    whole = all(part.dtype.kind in "iu" and part.ndim == 1 and part.size for part in parts)
    if not parts or not whole or any(part.min() < 0 or part.max() >= n_columns for part in parts):
        raise InputError(
            f"groups must be one or more, none empty, of rows from 0 to {n_columns - 1}", hint="leave empty groups out"
        )
    return np.concatenate(parts), np.cumsum([0, *map(len, parts)])
