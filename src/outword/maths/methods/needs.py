"""What methods need: each kind of input with its name, a line on it, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Need:
    """One kind of input. A method of another package that needs something else makes a `Need` of its own.

    Attributes:
        value: what lists call it.
        about: one line for the docs.
        offer: what the encoder must offer for it, one of its `offers`; "" for most.
        lack: the error where an encoder does not offer it, with the names of a method and of an encoder.
        hint: what to do then.
        version: the way in which it is made, for what is always made in one way: a detector that was made with it says
            so, since another way is another score.
        how: how the user hands it over when photos are scored; "" for most.
        of_photo: whether it is something of each scored photo beside its vector.
    """

    value: str
    about: str
    offer: str = ""
    lack: str = ""
    hint: str = ""
    version: str = ""
    how: str = ""
    of_photo: bool = False

    LABELS: ClassVar[Need]
    WILD: ClassVar[Need]
    ID_IMAGES: ClassVar[Need]
    ID_LABELS: ClassVar[Need]
    HEAD: ClassVar[Need]
    NEGATIVES: ClassVar[Need]
    PATCHES: ClassVar[Need]
    PIXELS: ClassVar[Need]
    WORDS: ClassVar[Need]

    def is_offered(self, encoder: Any) -> bool:
        """Whether an encoder offers it."""
        return not self.offer or self.offer in encoder.offers


Need.LABELS = Need("labels", "the vectors of the class names")
Need.WILD = Need("wild words", "words that compete with the labels, from a corpus")
Need.ID_IMAGES = Need(
    "ID images", "photos that show the classes, in folders, archives, lists or stores (`--id-images`)"
)
Need.ID_LABELS = Need("ID image labels", "which photo shows which class: sub-folders named after the labels")
Need.HEAD = Need(
    "head", "logits of a linear head: the labels themselves, or with `--set head=probe` a linear probe on ID images"
)
Need.NEGATIVES = Need("negatives", "vectors that say no to each label: of learned prompts, or of a second text tower")
Need.PATCHES = Need(
    "patches",
    "a vector for each part of an image: the CLIP models of open_clip and transformers have them",
    offer="patches",
    lack="{method} needs patches: {encoder} has none",
    hint="the CLIP models of open_clip and transformers have them: --encoder clip-vit-b-16",
    version="value path",
    of_photo=True,
)
Need.PIXELS = Need(
    "pixels",
    "gradients from the score back to the pixels: encoders that run on torch have them",
    offer="pixels",
    lack="{method} needs pixels: {encoder} gives no gradients",
    hint="choose an encoder that runs on torch",
    of_photo=True,
)
Need.WORDS = Need(
    "words per image",
    "what somebody, or some model, names in each photo (`--words-per-image`)",
    how="pass --words-per-image FILE, in Python detector.with_words(callable)",
    of_photo=True,
)
NEEDS = tuple(need for need in vars(Need).values() if isinstance(need, Need))


def of_photo(wants: Iterable[Need]) -> list[Need]:
    """What is needed of each scored photo beside its vector; where there is nothing, a store of vectors will do."""
    return [need for need in wants if need.of_photo]


def from_pixels(wants: Iterable[Need]) -> list[Need]:
    """What the encoder must make of the pixels of each scored photo beside, or in place of, its vector."""
    return [need for need in of_photo(wants) if need.offer]


def by_hand(wants: Iterable[Need]) -> list[Need]:
    """What somebody must hand over for each scored photo."""
    return [need for need in of_photo(wants) if need.how]


def versions(wants: Iterable[Need]) -> dict[str, str]:
    """How that is made which a method needs of the encoder, by what it offers, as cards have it."""
    return {need.offer: need.version for need in wants if need.version}
