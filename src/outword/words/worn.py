"""What people wear: an encoder that knows things, but not persons, sees of a person no more than that."""

from __future__ import annotations

from functools import cache

from outword.words.kinds import Meaning
from outword.words.nouns import PERSON, nouns

PERSONS = (PERSON, "n02472293")  # person and human: of a nurse clothes say too little
WORN = (
    "n03051540",  # clothing, with headdress, handwear and what disguises
    "n03380867",  # footwear
    "n03725035",  # mask that protects
    "n04272054",  # spectacles
    "n03597469",  # jewelry
)


def means_persons(meaning: Meaning) -> bool:
    """Whether a label stands for persons, whoever they are; one with kinds by hand stands for those.

    >>> from outword.words.kinds import understand
    >>> from outword.words.labels import check_labels
    >>> [means_persons(meaning) for meaning in understand(check_labels(["person", "nurse", "dog"]), "off")]
    [True, False, False]
    """
    return meaning.sense in PERSONS and not meaning.by_hand


def is_of_persons(meaning: Meaning) -> bool:
    """Whether a label stands for persons, or for some of them, such as nurses."""
    net, sense = nouns(), nouns().by_wnid(meaning.sense)
    return sense is not None and not {*PERSONS}.isdisjoint(net.wnid(at) for at in (sense, *net.above(sense)))


@cache
def worn_names() -> dict[str, int]:
    """The names of what people wear that photos can show, each with its sense.

    >>> "wig" in worn_names(), "running shoe" in worn_names(), "hammer" in worn_names()
    (True, True, False)
    """
    net = nouns()
    found = {sense for wnid in WORN for root in [net.by_wnid(wnid)] if root is not None for sense in net.below(root)}
    return {name: sense for name, sense in net.visible().items() if sense in found}
