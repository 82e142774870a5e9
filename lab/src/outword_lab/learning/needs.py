"""What the methods of the lab need of an encoder beside what others do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outword.maths.methods.base import Need
from outword_lab.encoders.driven import find_text_tower


@dataclass(frozen=True)
class TowerNeed(Need):
    """That texts can be driven through the encoder from token embeddings on."""

    def is_offered(self, encoder: Any) -> bool:
        """Whether it has such a text tower."""
        return find_text_tower(encoder) is not None


PROMPTS = TowerNeed(
    "learned prompts",
    "tokens learned on ID images: the CLIP models of open_clip and transformers can",
    offer="prompts",
    lack="{method} learns prompts, and {encoder} cannot be driven from token embeddings",
    hint="the CLIP models of open_clip and transformers can: --encoder clip-vit-b-16",
)
NO_TOWER = Need(
    "tower that says no",
    "a second text tower, trained to say no: an encoder `clipn:FILE` has it",
    offer="no",
    lack="{method} needs an encoder that can say no, clipn:FILE: {encoder} cannot",
    hint='a checkpoint of CLIPN is such a file, or train one on captions of photos: "outword train-no"',
)
