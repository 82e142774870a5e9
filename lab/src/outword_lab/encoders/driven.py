"""Which encoders can be driven from token embeddings on: learned prompts and towers that say no need that."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from outword.encoders import Encoder
from outword.errors import ParameterError

if TYPE_CHECKING:
    from outword_lab.encoders.text_tower import TextTower

CAN = "the CLIP models of open_clip and transformers can"


def text_tower(encoder: Encoder) -> TextTower:
    """The text tower from token embeddings on, frozen, for what learns some of them; it runs on torch."""
    tower = find_text_tower(encoder)
    if tower is None:
        raise ParameterError(f"{encoder.name} cannot be driven from token embeddings", hint=CAN)
    return tower


def find_text_tower(encoder: Encoder) -> TextTower | None:
    """The same; None where an encoder has none.

    `Towers` have a `model`, which is looked for first, as torch takes its time to import. An encoder that stands on
    such a one names it, `driven_by`.
    """
    other = getattr(encoder, "driven_by", None)
    if other is not None:
        return find_text_tower(other)
    if not hasattr(encoder, "model") or find_spec("torch") is None:
        return None
    from outword.encoders.torch.towers import Towers
    from outword_lab.encoders.text_tower import make_text_tower

    return make_text_tower(encoder.model) if isinstance(encoder, Towers) else None
