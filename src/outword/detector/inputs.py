"""What a method lacks, in one line each: the words for every input that `fit` may miss."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from outword.base.files import PathLike
from outword.detector.recipe import Recipe
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError, ParameterError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.methods.needs import by_hand, from_pixels
from outword.vectors.id_images import IdImages

if TYPE_CHECKING:
    from outword.detector.detector import Detector

_STORES = 'a store of "outword embed" will do too; in Python it is id_images='


def check_store(method: str, scorer: VectorDetector, store: PathLike) -> None:
    """Raise if a method looks at more of an image than its vector, since a store has nothing else."""
    for need in from_pixels(scorer.wants()):
        raise InputError(
            f"{method} needs {need.value}, and {os.fspath(store)} is a store, which has none",
            hint="name the photos themselves",
        )


def not_handed(method: str, wants: Iterable[Need], handed: Iterable[Need] = ()) -> InputError | None:
    """The first thing that somebody must hand over for each scored photo, and has not, as an error; None if all is."""
    for need in by_hand(wants):
        if need not in {*handed}:
            return InputError(f"{method} needs {need.value}: {need.how}", hint="see docs/corpora.md")
    return None


def check_handed(detector: Detector) -> None:
    """Raise if the method of a detector wants something of each scored photo that nobody has handed over."""
    wants = detector.in_force.wants()
    if by_hand(wants) and (lack := not_handed(detector.method, wants, detector.by_hand)):
        raise lack


def not_offered(method: str, asks: Iterable[Need], encoder: Encoder, without: str = "") -> InputError | None:
    """What a method asks of the encoder, and does not get; `without` says how the method can do without it."""
    for need in asks:
        if not need.is_offered(encoder):
            return InputError(need.lack.format(method=method, encoder=encoder.name), hint=without or need.hint)
    return None


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
    without = " ".join(f"--set {key}={value}" for key, value in DETECTORS[method].on_vectors.items())
    without = f"{without} scores features only" if without else ""
    if lack := not_offered(method, recipe.make_scorer().asks(), recipe.encoder, without):
        return lack
    if id_images is not None and Need.ID_IMAGES not in wants:
        probe = ", or fit a head on them with --set head=probe" if "head" in recipe.params else ""
        return ParameterError(f"{method} does not look at ID images", hint=f"leave them out{probe}")
    return None
