"""How a detector is made: a method and a miner by name, with parameters that they have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

import numpy as np

from outword.detector.inputs import lacking
from outword.encoders import Encoder
from outword.errors import InputError, ParameterError, unknown
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.mining import MINERS, Miner
from outword.vectors.id_images import IdImages

_KINDS: dict[str, tuple[type, ...]] = {  # what a word of an annotation admits
    "float": (int, float, np.number),
    "int": (int, np.integer),
    "bool": (bool,),
    "str": (str,),
    "Literal": (str,),
}
_NAMES = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


def make_detector(method: str, temperature: float, params: Mapping[str, Any]) -> VectorDetector:
    """A method by name, at the encoder's temperature unless the method has its own.

    >>> make_detector("debiased", 0.04, {"tau": 0.4})
    Debiased(temperature=0.04, n_groups=100, seed=0, tau=0.4, sigma=0.0, policy='cap')
    """
    kind = DETECTORS[method]
    known = checked_params(method, kind, params, kind.in_pipeline, "outword list methods --long")
    takes = "temperature" in known and not kind.own_temperature
    made = kind(**{**({"temperature": temperature} if takes else {}), **kind.in_pipeline, **params})
    made.check()
    return made


def make_miner(miner: str, params: Mapping[str, Any]) -> Miner:
    """A miner by name.

    >>> make_miner("density", {"alpha": 10}).alpha
    10
    """
    kind = MINERS[miner]
    checked_params(miner, kind, params, {}, "outword list miners")
    return kind(**params)


def checked_params(
    name: str, kind: type[Any], params: Mapping[str, Any], defaults: Mapping[str, Any], see: str
) -> dict[str, Field[Any]]:
    """The fields of a method or miner; raises for a parameter that it does not have, or of the wrong type."""
    known = {field.name: field for field in fields(kind)}
    for key, value in params.items():
        if key not in known:
            raise unknown(f"parameter of {name}", key, known, see)
        if not _admits(known[key], value):
            default = defaults.get(key, known[key].default)
            raise ParameterError(
                f"{key} must be {_NAMES.get(type(default), 'of the kind of its default')}, got {value!r}",
                hint=f"for example {key}={default}",
            )
    return known


def _admits(field: Field[Any], value: object) -> bool:
    """Whether a value is of a kind that the field's annotation names; what is named by other words, of its default's.

    Words in quotes, such as those of a Literal, are for the method to check.
    """
    words = re.findall(r"\w+", str(field.type))
    kinds = tuple(kind for word in words for kind in _KINDS.get(word, ())) or (type(field.default),)
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def check_inputs(method: str, vectors: VectorDetector, encoder: Encoder, id_images: object, corpus: object) -> None:
    """Raise if an input is missing, or ID images are there and would not be looked at."""
    classes = not isinstance(id_images, IdImages) or id_images.classes is not None
    images = id_images is not None
    lack = lacking(method, vectors, encoder, images=images, classes=classes, corpus=corpus is not None)
    stray = id_images.stray if isinstance(id_images, IdImages) and Need.ID_LABELS in vectors.wants() else None
    if stray:
        raise InputError(f"{method} needs ID images with labels: {stray.message}", hint=stray.hint)
    if lack:
        raise lack
    if images and Need.ID_IMAGES not in vectors.wants():
        probe = ", or fit a head on them with --set head=probe" if "head" in vectors.params() else ""
        raise ParameterError(f"{method} does not look at ID images", hint=f"leave them out{probe}")
