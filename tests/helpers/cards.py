"""A card for detectors that are put together by hand."""

from dataclasses import replace

from outword.detector.card import Card, EncoderCard, MethodCard
from outword.words.kinds import Meaning
from outword.words.prompts import get_prompts


def a_card(method="any", parameters=(), *, encoder="none", fingerprint="0" * 64, temperature=0.05, **more):
    """A card that says no more than it must."""
    given = {"coverage": {}, "fpr": None, "meanings": (), "kinds": "off", "prompts": get_prompts("mini"), **more}
    made = EncoderCard(encoder, fingerprint, temperature)
    return Card(method=MethodCard(method, dict(parameters)), encoder=made, **given)


def a_meaning(*names, kinds=()):
    """What a label with these names was taken for; WordNet is not asked."""
    return Meaning(names[0], names[0], names, "", "", 1, kinds, by_hand=False, suggestions=())


def changed(card, part, **values):
    """The card with other values in one of its parts, such as "encoder"."""
    return replace(card, **{part: replace(getattr(card, part), **values)})
