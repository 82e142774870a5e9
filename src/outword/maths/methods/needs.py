"""What a method needs, declared once: the command line, the docs and the error for a missing input read it."""

from __future__ import annotations

from enum import Enum


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
