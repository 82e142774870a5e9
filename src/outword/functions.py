"""What the verbs `embed`, `reference` and `export` do, as functions: `outword.embed` and the others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from outword.base.extras import require
from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.encoders import Encoder, get_encoder
from outword.encoders.names import canonical, parse
from outword.errors import ParameterError

if TYPE_CHECKING:
    from outword.vectors.reference import Made
    from outword.vectors.store import Store

Paths = PathLike | Iterable[PathLike]


def embed(
    photos: Paths,
    store: PathLike,
    *,
    encoder: str | Encoder = "mini",
    kind: Literal["safetensors", "parquet"] = "safetensors",
    column: str | None = None,
    report: Report = quiet,
) -> Store:
    """Add the vectors of photos to a store on disk, which is made if need be; what it has is not encoded again.

    Args:
        photos: all that `outword.scoring.run` takes: files, folders, tars, tables, URLs.
        store: the folder; "outword score" and the other verbs take it wherever they take photos.
        encoder: a name, or what `get_encoder` gave.
        kind: the format of new shards.
        column: of tables, the column with photos or paths; by default image, else path.
        report: called with (task, done, total) during long work.

    Returns:
        The store. Its `rows()` are pairs of a path and a vector, or an `ImageError` where the photo cannot be read,
        sorted by path, of this run and of earlier ones.
    """
    from outword.vectors import embed as vectors_embed
    from outword.vectors.source import find_source
    from outword.vectors.store import open_store

    used = _encoder(encoder)
    source = find_source(_paths(photos), used, column=column)
    vectors_embed.embed(
        used, source.items(), store, kind=kind, report=lambda done: report("embed", done, source.total())
    )
    return open_store(store, used.fingerprint, used.name)


def reference(
    photos: Paths, *, encoder: str | Encoder = "mini", column: str | None = None, report: Report = quiet
) -> Made:
    """Make the reference of an encoder from ordinary photos, and keep it in the cache, where `outword.fit` finds it.

    From a reference, a fit knows what photos that show none of the classes score, and puts the threshold there.

    Args:
        photos: 100 different ones at least, some thousands are good; all that `outword.scoring.run` takes. They may
            show anything, and nobody needs to say what. Only their vectors are kept.
        encoder: a name, or what `get_encoder` gave.
        column: of tables, the column with photos or paths; by default image, else path.
        report: called with (task, done, total) during long work.

    Returns:
        The `reference`, and how many photos were read (`n_read`), repeated (`n_repeats`) or unreadable.
    """
    from outword.vectors.reference import keep_reference, make_reference

    used = _encoder(encoder)
    made = make_reference(used, _paths(photos), column=column, report=report)
    keep_reference(used, made.reference)
    return made


def export(
    encoder: str | Encoder,
    folder: PathLike,
    *,
    precision: Literal["fp32", "fp16", "int8"] = "fp32",
    resize: Literal["bicubic", "bilinear"] | None = None,
    force: bool = False,
    say: Say = quiet,
) -> dict[str, Any]:
    """Write an encoder of torch to a folder that runs without torch, as the encoder "onnx:FOLDER".

    Args:
        encoder: a name of open_clip's or transformers' models, or what `get_encoder` gave for one on the CPU in fp32.
        folder: a new folder, or that of an earlier export, which is replaced.
        precision: "fp16" halves the size; "int8" is under a third of it, and quicker.
        resize: how images are resized; by default as the model's configuration says. For an encoder by name only.
        force: keep the folder even if vectors come out far from the original's, at a cosine below 0.99.
        say: called with a line for each step.

    Returns:
        The folder's card: among others `files`, and by tower the `cosine` to the original.
    """
    library = parse(canonical(encoder)).library if isinstance(encoder, str) else "open_clip"
    if library not in ("open_clip", "hf"):
        raise _not_exported(str(encoder))
    for module in ("torch", "onnx", "onnxscript"):
        require(module, "export", "hf,export" if library == "hf" else "clip,export")
    from outword.encoders.onnx import export as onnx_export
    from outword.encoders.torch.towers import Towers

    onnx_export.check_target(folder)
    if isinstance(encoder, str):
        encoder = get_encoder(encoder, resize=resize, device="cpu", precision="fp32")
    if not isinstance(encoder, Towers):
        raise _not_exported(encoder.name)
    return onnx_export.export(encoder, folder, precision=precision, force=force, say=say)


def _not_exported(name: str) -> ParameterError:
    return ParameterError(f"{name} is used as it is", hint="export an encoder of open_clip or transformers")


def _encoder(given: str | Encoder) -> Encoder:
    return given if isinstance(given, Encoder) else get_encoder(given)


def _paths(given: Paths) -> list[PathLike]:
    """One path or several, as a list."""
    return [given] if isinstance(given, str | os.PathLike) else list(given)
