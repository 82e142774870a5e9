"""The heavy libraries, imported when they are needed; a missing one is one line: what to install."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from outword.errors import MissingExtraError

EXTRAS = {
    "torch": "clip",
    "open_clip": "clip",
    "transformers": "hf",
    "huggingface_hub": "hf",
    "onnx": "export",
    "onnxscript": "export",
    "tokenizers": "onnx",
    "openvino": "openvino",
}
_declared: list[Any] = []  # torch forgets a declaration when its Library object is gone


def need(module: str, what: str, extra: str | None = None) -> ModuleType:
    """Import one of these libraries for `what`, or say which extra brings it."""
    try:
        if module in ("open_clip", "transformers") and find_spec("torchvision"):
            _import_torchvision()
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {module}, which cannot be imported: {error}",
            hint=f'pip install "outword[{extra or EXTRAS[module]}]"',
        ) from None


def pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet, or an error that says how to get them."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("Parquet needs pyarrow", hint='pip install "outword[parquet]"') from None
    return pa, parquet


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Keep a library's notes on its own affairs to itself."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _import_torchvision() -> None:
    """Import torchvision even where its compiled operators do not load, beside a torch of another build.

    Both libraries import it for its image transforms. It then stops at its first operator that torch does not know; we
    use none of them, so that a declaration is enough.
    """
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        import torch

        _declared.append(torch.library.Library("torchvision", "FRAGMENT"))  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            _declared[-1].define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        import torchvision  # noqa: F401
