"""What the verbs `check`, `embed`, `export`, `find` and `reference` do, as functions: `outword.check` and others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from outword.base.checks import number, whole_number
from outword.base.extras import require
from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.encoders import Encoder, get_encoder
from outword.encoders.names import canonical, parse
from outword.errors import ParameterError
from outword.words.labels import Given, check_labels

if TYPE_CHECKING:
    from outword.scoring.checking import Checked
    from outword.scoring.finding import Matches
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


def check(
    folder: PathLike,
    *,
    encoder: str | Encoder = "mini",
    sure: float = 0.5,
    report: Report = quiet,
    say: Say = quiet,
) -> Checked:
    """The photos of class folders that seem to be in the wrong folder, the surest first.

    Args:
        folder: it has a folder for each class, whose name is the label.
        encoder: a name, or what `get_encoder` gave.
        sure: photos that seem to be of another class or of none are listed if that is at least so sure, 0 to 1.
        report: called with (task, done, total) during long work.
        say: gets remarks, such as how many photos lie in no class folder.

    Returns:
        The findings: each has `path`, `label`, `finding`, `suggestion`, `sure` and more; a photo has one at most.
        `counts` has the number of photos of each class, `share` is that of photos with a finding, and `write_page`
        shows them.
    """
    from outword.scoring import checking

    number("sure", sure, least=0, most=1, hint="0.5 is the default")
    return checking.check(folder, _encoder(encoder), sure=sure, report=report, say=say)


def find(
    phrases: str | Given,
    photos: Paths,
    *,
    encoder: str | Encoder = "mini",
    top: int = 20,
    column: str | None = None,
    report: Report = quiet,
    say: Say = quiet,
) -> Matches:
    """The photos that fit a phrase best, by how much better it fits them than names of other things do.

    It warns of a phrase that the encoder does not know as such.

    Args:
        phrases: one, or several, as `outword.fit` takes labels.
        photos: all that `outword.scoring.run` takes: files, folders, tars, tables, URLs, and stores of vectors, of
            which nothing is encoded again. Memory does not grow with their number.
        encoder: a name, or what `get_encoder` gave.
        top: how many photos of each phrase.
        column: of tables, the column with photos or paths; by default image, else path.
        report: called with (task, done, total) during long work.
        say: gets remarks, such as how many files are no photos.

    Returns:
        The matches, phrase by phrase and best first: each has `phrase`, `rank`, `path`, and `photo`, what is said of it
        (`outword.Prediction`). `paths` has their paths, `n_unreadable` counts the photos that could not be read, and
        `write_page` shows them.
    """
    from outword.scoring import finding
    from outword.vectors.source import find_source

    whole_number("top", top, hint="20 is the default")
    typed = check_labels([phrases] if isinstance(phrases, str) else phrases, where="the phrases")
    used = _encoder(encoder)
    source = find_source(_paths(photos), used, column=column)
    return finding.find(typed, source, used, top=top, report=report, say=say)


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
