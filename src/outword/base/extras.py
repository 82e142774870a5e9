"""The heavy libraries, imported when they are needed; a missing one is one line: what to install."""

from __future__ import annotations

import importlib
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from outword.errors import MissingExtraError

_NO_MEMORY = re.compile("failed to map segment|cannot allocate memory|bad.?alloc|AllocateRaw|failed to allocate", re.I)
EXTRAS = {  # by package: the extra that brings it, and what it is for
    "torch": ("clip", "an encoder of torch"),
    "open_clip": ("clip", "an encoder of open_clip"),
    "transformers": ("hf", "an encoder of transformers"),
    "huggingface_hub": ("hf", "the hub"),
    "onnx": ("export", "export"),
    "onnxscript": ("export", "export"),
    "tokenizers": ("onnx", "the tokenizer of an exported encoder"),
    "openvino": ("openvino", 'device "openvino"'),
    "pyarrow": ("parquet", "Parquet"),
    "fsspec": ("remote", "a URL"),
    "s3fs": ("s3", "s3://"),
    "scipy": ("fit", "fitting a linear head"),
    "matplotlib": ("bench", "a plot"),
    "sklearn": ("sklearn", "outword.sklearn"),
    "ray": ("ray", "--engine ray"),
    "simplejpeg": ("simplejpeg", "the decoder simplejpeg"),
    "pillow_heif": ("heif", "HEIC"),
    "rawpy": ("raw", "RAW"),
    **dict.fromkeys(("fastapi", "uvicorn", "python_multipart", "prometheus_client"), ("serve", "the service")),
}
_OF_LAB = {"lab": "", "bench": "[bench]"}  # extras that are the package outword-lab, with that extra of its own
_declared: list[Any] = []  # torch forgets a declaration when its Library object is gone


def require(module: str, what: str = "", extra: str = "") -> ModuleType:
    """Import a package of `EXTRAS`, or a part of one, or say that `what` needs it, and which `extra` brings it."""
    try:
        if module in ("open_clip", "transformers") and find_spec("torchvision"):
            _import_torchvision()
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, error, what, extra) from None


def lacking(module: str) -> MissingExtraError | None:
    """What `require` would raise for a package, where it may be done without; None if it is there."""
    try:
        require(module)
    except MissingExtraError as error:
        return error
    return None


def missing(module: str, error: ImportError, what: str = "", extra: str = "") -> MissingExtraError:
    """Say that a module cannot be imported, and which extra brings it; the arguments are those of `require`."""
    package = module.partition(".")[0]
    own, use = EXTRAS[package]
    told = f"{what or use} needs {package}, which cannot be imported: {error}"
    return MissingExtraError(told, hint=install(extra or own))


def install(extra: str) -> str:
    """The command that brings an extra, from where this package was installed: a clone, a file, a repository, an index.

    The installer says where that was in `direct_url.json` (PEP 610), and says nothing for an index.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and seldom needed

    try:
        origin = json.loads(distribution("outword").read_text("direct_url.json") or "{}")
        return f"pip install {_requirement(origin, extra)}"
    except (PackageNotFoundError, ValueError, LookupError, TypeError, AttributeError):
        return f'pip install "outword[{extra}]"'


def _requirement(origin: dict[str, Any], extra: str) -> str:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    url, of_lab = urlsplit(origin["url"]), _OF_LAB.get(extra)
    if version := origin.get("vcs_info"):
        place = f"{version['vcs']}+{origin['url']}@{version['commit_id']}"
        whole = f"outword[{extra}] @ {place}"
        return f'"{whole}"' if of_lab is None else f'"outword-lab{of_lab} @ {place}#subdirectory=lab"'
    path = Path(url2pathname(url.path))
    if url.scheme != "file" or not path.exists():
        raise KeyError(origin["url"])
    if of_lab is not None:
        return _in_clone(path, of_lab)
    if not path.is_dir():
        return f'"outword[{extra}] @ {origin["url"]}"'
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f'{editable}"{"." if path == Path.cwd() else path}[{extra}]"'


def _in_clone(path: Path, extra: str) -> str:
    """The lab of a clone, with an extra of its own or without."""
    if not (path / "lab").is_dir():
        raise KeyError(path)
    place = "./lab" if path == Path.cwd() else str(path / "lab")
    return f'"{place}{extra}"' if extra else place


def pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet, or an error that says how to get them."""
    return require("pyarrow"), require("pyarrow.parquet")


@contextmanager
def no_memory() -> Iterator[None]:
    """A block in which a library that lacks memory, and says so in its own way, raises `MemoryError`."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # each library has a class of its own
        if not lacks_memory(error):
            raise
        raise MemoryError(str(error)) from error


def lacks_memory(error: Exception) -> bool:
    """Whether an error of a library, or of the system that loads it, is that there is not enough memory.

    >>> lacks_memory(ImportError("x.so: failed to map segment from shared object")), lacks_memory(ValueError("x"))
    (True, False)
    """
    return isinstance(error, MemoryError) or bool(_NO_MEMORY.search(str(error)))


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
