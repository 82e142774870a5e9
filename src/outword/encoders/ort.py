"""An onnxruntime session, set up so that it does not get in the way of decoding; and rows that do not feel a batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from outword.base.extras import no_memory
from outword.base.processors import usable_cpus
from outword.maths.kernels.threads import parallel_for

Run = TypeVar("Run")


class ImageTower(Generic[Run]):
    """An image tower for processors: one image has all threads, and of several each has one.

    The operations of an image are too small to be shared by many threads (docs/performance.md, "By cores"). Vectors are
    the same bits either way. The weights are there twice where both ways are gone.

    Args:
        make: gives what runs the tower, with so many threads.
        n_threads: how many there are; by default `threads`.
    """

    def __init__(self, make: Callable[[int], Run], n_threads: int | None = None) -> None:
        self._make, self._threads = make, n_threads or threads()

    def each(self, work: Callable[[Run, slice], object], count: int, most: int) -> None:
        """Call `work(run, rows)` for at most so many of `count` rows at a time."""
        size = max(1, min(most, -(-count // self._threads)))
        run = self._shared if count <= 1 else self._single

        def part(start: int) -> None:
            work(run, slice(start, start + size))

        parallel_for(part, range(0, count, size), threads=lambda: self._threads)

    @cached_property
    def _shared(self) -> Run:
        return self._make(self._threads)

    @cached_property
    def _single(self) -> Run:
        return self._shared if self._threads == 1 else self._make(1)


class Session:
    """An onnxruntime session that says `MemoryError` where there is not enough memory, as numpy does."""

    def __init__(self, make: Callable[[], Any]) -> None:
        with no_memory():
            self._inner = make()

    def run(self, outputs: Any, inputs: Mapping[str, Any]) -> Any:
        """The outputs of that name, by default all, of inputs by name."""
        with no_memory():
            return self._inner.run(outputs, inputs)

    def get_inputs(self) -> Any:
        """What goes in: a name, a type and a shape of each."""
        return self._inner.get_inputs()

    def get_outputs(self) -> Any:
        """The same of what comes out."""
        return self._inner.get_outputs()

    def get_session_options(self) -> Any:
        """How it was set up."""
        return self._inner.get_session_options()


def session(path: Path, n_threads: int | None = None) -> Session:
    """An onnxruntime session with so many threads, by default as many as `threads` says."""
    with no_memory():
        import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads or threads()
    # Idle threads would spin and take the processor from decoding: 12 instead of 17 images a second on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return Session(lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]))


def never_alone(run: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]) -> NDArray[Any]:
    """`run(rows)`, a row of output for each; a single row goes in twice.

    onnxruntime has ways of its own for a single row (a product with a vector, a mean over all axes but the last), which
    round otherwise. Two rows and more go the same way.
    """
    return run(rows) if len(rows) != 1 else run(np.concatenate([rows, rows]))[:1]


def threads() -> int:
    """Threads of a session: the usable processors, or `OMP_NUM_THREADS` where that is less.

    onnxruntime does not look at that variable by itself. A Ray actor sets it to its share of the processors; with
    threads for all of them in each actor, they get in each other's way.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "4,2" where parallel regions nest
    return min(usable_cpus(), int(asked)) if asked.isdecimal() and int(asked) > 0 else usable_cpus()
