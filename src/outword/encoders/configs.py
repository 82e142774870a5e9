"""The configuration files that published models come with: tables in JSON, and how images are prepared."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outword.base.files import parse_json
from outword.encoders.preprocess import Preprocess
from outword.errors import InputError, ParameterError

AGAIN = "fetch or copy it again"
PREPROCESSING = ("processor_config.json", "preprocessor_config.json")  # of transformers


def read_json(path: Path) -> dict[str, Any]:
    """A table in a JSON file, or one line about what is wrong with it."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint=AGAIN) from None
    if not isinstance(found, dict):
        raise InputError(f"{path} should hold a table, got {type(found).__name__}", hint=AGAIN)
    return found


def read_preprocess(folder: Path) -> Preprocess:
    """The image part of `processor_config.json`, else `preprocessor_config.json`, in our words.

    What is not said there is as in CLIP's own processor. What cannot be followed is refused, so that nothing is done to
    images that the model was not trained with.
    """
    given = _processor(folder)
    size, cropped = given.get("size"), given.get("do_center_crop", "crop_size" in given)
    shortest = isinstance(size, int) or set(size or {}) == {"shortest_edge"}
    short, side = _side(size), _side(given.get("crop_size")) if cropped else _side(size)
    resample, rescale = given.get("resample", 3), given.get("rescale_factor", 1 / 255)
    filters = {2: "bilinear", 3: "bicubic"}
    steps = all(given.get(step, True) for step in ("do_resize", "do_rescale"))
    fits = short and side and (side <= short and cropped if shortest else side == short)
    if not (steps and fits and resample in filters and rescale and math.isclose(rescale, 1 / 255, rel_tol=1e-3)):
        hint = "a short side with a crop in the centre, or a square; bicubic or bilinear; rescaled by 1/255"
        raise ParameterError(f"the preprocessing in {folder} is not supported: {json.dumps(given)[:300]}", hint=hint)
    normal = given.get("do_normalize", True)
    mean, std = (given.get(key) if normal else [value] * 3 for key, value in (("image_mean", 0.0), ("image_std", 1.0)))
    return Preprocess(side, short if shortest else 0, filters[resample], mean, std, crop="floor")  # type: ignore[arg-type]


def _processor(folder: Path) -> dict[str, Any]:
    for name in PREPROCESSING:  # the newer file counts where there are both
        if (folder / name).is_file():
            found = read_json(folder / name)
            if name == PREPROCESSING[1]:
                return found
            if isinstance(found.get("image_processor"), dict):
                return dict(found["image_processor"])
    raise InputError(f"{folder} has no {PREPROCESSING[1]}", hint=AGAIN)


def _side(size: Any) -> int:
    """The side that a size means: 224, {"shortest_edge": 224} or {"height": 224, "width": 224}; 0 for others."""
    sides = set(size.values()) if isinstance(size, dict) else {size}
    known = not isinstance(size, dict) or set(size) in ({"shortest_edge"}, {"height", "width"})
    side = sides.pop() if len(sides) == 1 and known else 0
    return side if isinstance(side, int) and not isinstance(side, bool) and side > 0 else 0


def of_open_clip(given: Mapping[str, Any], whose: str) -> Preprocess:
    """open_clip's preprocessing dictionary in our words."""
    height, width = given["size"] if isinstance(given["size"], Sequence) else [given["size"]] * 2
    way, interpolation = given["resize_mode"], given["interpolation"]
    if height != width or way not in ("shortest", "squash") or interpolation not in ("bicubic", "bilinear"):
        told = f"{whose} wants images of {height} x {width}, resized {way} and {interpolation}"
        raise ParameterError(told, hint="squares, shortest or squash, bicubic or bilinear are supported")
    return Preprocess(width, 0 if way == "squash" else width, interpolation, given["mean"], given["std"])
