"""What methods need: each kind of input with its name, a line on it, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Need(Enum):
    """One kind of input; the value is what lists call it, `about` one line for the docs.

    `offer` names what the encoder must offer for it (`outword.encoders.offers`), and `how` says how the user hands it
    over when photos are scored; both are "" for most. `of_photo` is whether it is something of each scored photo beside
    its vector.
    """

    about: str
    offer: str
    how: str
    of_photo: bool
    LABELS = "labels", "the vectors of the class names"
    WILD = "wild words", "words that compete with the labels, from a corpus"
    ID_IMAGES = "ID images", "photos that show the classes, in folders, archives, lists or stores (`--id-images`)"
    ID_LABELS = "ID image labels", "which photo shows which class: sub-folders named after the labels"
    HEAD = (
        "head",
        "logits of a linear head: the labels themselves, or with `--set head=probe` a linear probe on ID images",
    )
    PROMPTS = (
        "learned prompts",
        "tokens learned on ID images: the CLIP models of open_clip and transformers can",
        {"offer": "prompts"},
    )
    NEGATIVES = "negatives", "vectors that say no to each label: of learned prompts, or of a second text tower"
    NO_TOWER = (
        "tower that says no",
        "a second text tower, trained to say no: an encoder `clipn:FILE` has it",
        {"offer": "no"},
    )
    PATCHES = (
        "patches",
        "a vector for each part of an image: the CLIP models of open_clip and transformers have them",
        {"offer": "patches", "of_photo": True},
    )
    PIXELS = (
        "pixels",
        "gradients from the score back to the pixels: encoders that run on torch have them",
        {"offer": "pixels", "of_photo": True},
    )
    WORDS = (
        "words per image",
        "what somebody, or some model, names in each photo (`--words-per-image`)",
        {"how": "pass --words-per-image FILE, in Python detector.with_words(callable)", "of_photo": True},
    )

    def __new__(cls, value: str, about: str, more: dict[str, object] | None = None) -> Need:
        """The texts of each line above, and what else there is to say of it."""
        need = object.__new__(cls)
        need._value_, need.about = value, about
        facts = {"offer": "", "how": "", "of_photo": False, **(more or {})}
        for name, fact in facts.items():
            setattr(need, name, fact)
        return need


def of_photo(wants: Iterable[Need]) -> list[Need]:
    """What is needed of each scored photo beside its vector; where there is nothing, a store of vectors will do."""
    return [need for need in wants if need.of_photo]


def from_pixels(wants: Iterable[Need]) -> list[Need]:
    """What the encoder must make of the pixels of each scored photo beside, or in place of, its vector."""
    return [need for need in of_photo(wants) if need.offer]


def by_hand(wants: Iterable[Need]) -> list[Need]:
    """What somebody must hand over for each scored photo."""
    return [need for need in of_photo(wants) if need.how]
