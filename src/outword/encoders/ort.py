"""An onnxruntime session, set up so that it does not get in the way of decoding; and rows that do not feel a batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.processors import usable_cpus


def session(path: Path) -> Any:
    """An onnxruntime session with as many threads as `threads` says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    # Idle threads would spin and take the processor from decoding: 12 instead of 17 images a second on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


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
