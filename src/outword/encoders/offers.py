"""What encoders may offer beside vectors of photos and texts, and what to say where it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from outword.encoders.base import Encoder
from outword.errors import InputError


@dataclass(frozen=True)
class Offer:
    """One line of the table: `lack` and `hint` are the error, with the names of a method and of an encoder.

    `version` names the way in which it is made, for what is always made in one way: a detector that was made with it
    says so, since another way is another score.
    """

    lack: str
    hint: str
    version: str = ""


OFFERS: Mapping[str, Offer] = {
    "patches": Offer(
        "{method} needs patches: {encoder} has none",
        "the CLIP models of open_clip and transformers have them: --encoder clip-vit-b-16",
        version="value path",
    ),
    "prompts": Offer(
        "{method} learns prompts, and {encoder} cannot be driven from token embeddings",
        "the CLIP models of open_clip and transformers can: --encoder clip-vit-b-16",
    ),
    "no": Offer(
        "{method} needs an encoder that can say no, clipn:FILE: {encoder} cannot",
        'a checkpoint of CLIPN is such a file, or train one on captions of photos: "outword train-no"',
    ),
    "pixels": Offer("{method} needs pixels: {encoder} gives no gradients", "choose an encoder that runs on torch"),
}


def not_offered(method: str, asks: Iterable[str], encoder: Encoder, without: str = "") -> InputError | None:
    """What a method asks of the encoder, and does not get; `without` says how the method can do without it."""
    asked = set(asks)
    for name, offer in OFFERS.items():
        if name in asked and name not in encoder.offers:
            return InputError(offer.lack.format(method=method, encoder=encoder.name), hint=without or offer.hint)
    return None


def versions(asks: Iterable[str]) -> dict[str, str]:
    """How that is made which a method asks of the encoder, by name, as cards have it."""
    return {name: OFFERS[name].version for name in asks if name in OFFERS and OFFERS[name].version}
