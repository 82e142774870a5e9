"""What a method lacks, in one line each: the words for every input that `fit` may miss."""

from __future__ import annotations

import os

from outword.encoders import Encoder
from outword.errors import InputError
from outword.maths.methods import Need, VectorDetector

_STORES = 'a store of "outword embed" will do too; in Python it is id_images='


def check_store(method: str, vectors: VectorDetector, store: str | os.PathLike[str] | None) -> None:
    """Raise if a method looks at more of an image than its vector, and there is a store, which has nothing else."""
    if store is None:
        return
    for need in (Need.PATCHES, Need.PIXELS):
        if need in vectors.wants():
            raise InputError(
                f"{method} needs {need.value}, and {os.fspath(store)} is a store, which has none",
                hint="name the photos themselves",
            )


def lacking(
    method: str, vectors: VectorDetector, encoder: Encoder, *, images: bool, classes: bool, corpus: bool
) -> InputError | None:
    """The first input that a method needs and does not have, as an error to raise or to show; None when all are there.

    Args:
        method: its name.
        vectors: the method with its parameters.
        encoder: what encodes the images.
        images: whether there are ID images.
        classes: whether it is known which label each of them shows.
        corpus: whether the user named a corpus.
    """
    wants = vectors.wants()
    if Need.ID_LABELS in wants and not (images and classes):
        return InputError(
            f"{method} needs ID images with labels: pass --id-images FOLDER (sub-folders are labels)", hint=_STORES
        )
    if Need.ID_IMAGES in wants and not images:
        return InputError(f"{method} needs ID images: pass --id-images FOLDER", hint=_STORES)
    if Need.WILD in wants and vectors.corpus == "" and not corpus:
        return InputError(
            f"{method} needs a word list of yours, one word a line: pass --corpus FILE, to compare --words FILE",
            hint="for example what your classes are confused with",
        )
    if Need.PATCHES in wants and "patches" not in encoder.offers:
        return InputError(
            f"{method} needs patches: {encoder.name} has none",
            hint="the CLIP models of open_clip and transformers have them: --encoder clip-vit-b-16",
        )
    if Need.PIXELS in wants and "pixels" not in encoder.offers:
        settings = " ".join(f"--set {key}={value}" for key, value in vectors.on_vectors.items())
        hint = f"{settings} scores features only" if settings else "choose an encoder that runs on torch"
        return InputError(f"{method} needs pixels: {encoder.name} gives no gradients", hint=hint)
    return None
