"""What a method lacks, in one line each: the words for every input that `fit` may miss."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from outword.detector.recipe import Recipe
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError, ParameterError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.vectors.id_images import IdImages
from outword.vectors.photo_words import read_words_per_image

if TYPE_CHECKING:
    from outword.detector.detector import Detector

_STORES = 'a store of "outword embed" will do too; in Python it is id_images='


def check_store(method: str, scorer: VectorDetector, store: str | os.PathLike[str]) -> None:
    """Raise if a method looks at more of an image than its vector, since a store has nothing else."""
    for need in (Need.PATCHES, Need.PIXELS):
        if need in scorer.wants():
            raise InputError(
                f"{method} needs {need.value}, and {os.fspath(store)} is a store, which has none",
                hint="name the photos themselves",
            )


def no_words(method: str) -> InputError:
    """What to raise, or to show, where nobody names words for photos."""
    how = "pass --words-per-image FILE, in Python detector.with_words(callable)"
    return InputError(f"{method} needs {Need.WORDS.value}: {how}", hint="see docs/corpora.md")


def with_file(detector: Detector, path: str | os.PathLike[str] | None) -> Detector:
    """The detector with the words per image of a file, if one is named; an error for a method that wants none."""
    if path is None:
        return detector
    if Need.WORDS not in detector.scorer.wants():
        raise ParameterError(f"{detector.method} does not look at {Need.WORDS.value}", hint="leave them out")
    return detector.with_words(read_words_per_image(path))


def missing_inputs(recipe: Recipe, id_images: object = None, stray: InputError | None = None) -> OutwordError | None:
    """The first input that a recipe needs and does not have, as an error to raise or to show; None when all are there.

    ID images that would not be looked at are an error, too: `id_images` tells where they are, or what was read there
    (`IdImages`), and `stray` what is wrong with one that shows no label, if that is known before they are read.
    """
    method, wants = recipe.method, recipe.wants
    known = id_images if isinstance(id_images, IdImages) else None
    stray = known.stray if known else stray
    if Need.ID_LABELS in wants and stray:
        return InputError(f"{method} needs ID images with labels: {stray.message}", hint=stray.hint)
    if Need.ID_LABELS in wants and (id_images is None or (known and known.classes is None)):
        how = "pass --id-images FOLDER (sub-folders are labels)"
        return InputError(f"{method} needs ID images with labels: {how}", hint=_STORES)
    if Need.ID_IMAGES in wants and id_images is None:
        return InputError(f"{method} needs ID images: pass --id-images FOLDER", hint=_STORES)
    if Need.WILD in wants and recipe.corpus is None:
        return InputError(
            f"{method} needs a word list of yours, one word a line: pass --corpus FILE, to compare --words FILE",
            hint="for example what your classes are confused with",
        )
    if lack := _not_offered(method, wants, recipe.encoder):
        return lack
    if id_images is not None and Need.ID_IMAGES not in wants:
        probe = ", or fit a head on them with --set head=probe" if "head" in recipe.params else ""
        return ParameterError(f"{method} does not look at ID images", hint=f"leave them out{probe}")
    return None


def _not_offered(method: str, wants: tuple[Need, ...], encoder: Encoder) -> InputError | None:
    """What a method wants of the encoder, and does not get."""
    on_patches = Need.PATCHES in wants or getattr(DETECTORS[method], "on_patches", False)
    if on_patches and "patches" not in encoder.offers:
        return InputError(
            f"{method} needs patches: {encoder.name} has none",
            hint="the CLIP models of open_clip and transformers have them: --encoder clip-vit-b-16",
        )
    if Need.PROMPTS in wants and "prompts" not in encoder.offers:
        return InputError(
            f"{method} learns prompts, and {encoder.name} cannot be driven from token embeddings",
            hint="the CLIP models of open_clip and transformers can: --encoder clip-vit-b-16",
        )
    if Need.NO_TOWER in wants and "no" not in encoder.offers:
        return InputError(
            f"{method} needs an encoder that can say no, clipn:FILE: {encoder.name} cannot",
            hint='a checkpoint of CLIPN is such a file, or train one on captions of photos: "outword train-no"',
        )
    if Need.PIXELS in wants and "pixels" not in encoder.offers:
        settings = " ".join(f"--set {key}={value}" for key, value in DETECTORS[method].on_vectors.items())
        hint = f"{settings} scores features only" if settings else "choose an encoder that runs on torch"
        return InputError(f"{method} needs pixels: {encoder.name} gives no gradients", hint=hint)
    return None
