"""What a method needs, and what its parameters may be, declared once: `fit`, the command line and the docs read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from outword.base.checks import number

T = TypeVar("T")


def parameter(default: T, rule: Callable[..., None] = number, **bounds: Any) -> T:
    """A field of a method with its rule from `outword.base.checks`: `rule(name, value, **bounds)` raises."""
    return field(default=default, metadata={"rule": partial(rule, **bounds)})


class Need(Enum):
    """One kind of input; the value is what lists call it."""

    LABELS = "labels"
    WILD = "wild words"
    ID_IMAGES = "ID images"
    ID_LABELS = "ID image labels"
    HEAD = "head"
    PATCHES = "patches"
    PIXELS = "pixels"

    @property
    def about(self) -> str:
        """One line for the docs."""
        return _ABOUT[self]


_ABOUT = {
    Need.LABELS: "the vectors of the class names",
    Need.WILD: "words that compete with the labels, from a corpus",
    Need.ID_IMAGES: "photos that show the classes, in folders, archives, lists or stores (`--id-images`)",
    Need.ID_LABELS: "which photo shows which class: sub-folders named after the labels",
    Need.HEAD: "logits of a linear head: the labels themselves, or with `--set head=probe` a linear probe on ID images",
    Need.PATCHES: "a vector for each part of an image: the CLIP models of open_clip and transformers have them",
    Need.PIXELS: "gradients from the score back to the pixels: encoders that run on torch have them",
}
