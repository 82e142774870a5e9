"""What there is in the world: nouns in families, colours, textures, grounds; and what a model of it is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

FAMILIES = {  # WordNet has each noun below its family; the fifth is rare, and the last is never seen in training
    "animal": ("fish", "bird", "cat", "rabbit", "snail", "turtle"),
    "tool": ("hammer", "wrench", "saw", "shovel", "screwdriver", "rake"),
    "vehicle": ("car", "sailboat", "airplane", "truck", "rocket", "sled"),
    "fruit": ("apple", "banana", "cherry", "strawberry", "pineapple", "pear"),
    "polygon": ("triangle", "square", "pentagon", "hexagon", "trapezoid", "octagon"),
    "building": ("house", "church", "skyscraper", "temple", "pagoda", "barn"),
    "container": ("bottle", "vase", "goblet", "bowl", "teapot", "jug"),
    "clothing": ("shirt", "dress", "sock", "hat", "skirt", "glove"),
    "musical instrument": ("guitar", "drum", "harp", "flute", "piano", "lyre"),
    "plant": ("cactus", "pine", "tulip", "clover", "sunflower", "palm"),
    "furniture": ("chair", "table", "bed", "sofa", "desk", "wardrobe"),
    "weapon": ("sword", "bow", "arrow", "spear", "cannon", "mace"),
}
ID_FAMILIES = ("animal", "tool", "vehicle", "fruit", "polygon")  # whose kinds are the labels of the benchmark
UNSEEN_FAMILIES = ("furniture", "weapon")  # never in training, neither as pictures nor as words
RARE = 4  # the place in a family of the noun that is seen `RARITY` times less often
RARITY = 6
UNSEEN = 5  # the place of the noun that is not in training

COLOURS = {
    "red": (214, 32, 32),
    "green": (34, 160, 44),
    "blue": (32, 58, 210),
    "yellow": (240, 214, 36),
    "purple": (126, 34, 150),
    "orange": (240, 128, 20),
    "pink": (240, 130, 178),
    "brown": (118, 66, 28),
    "white": (240, 240, 240),
    "black": (20, 20, 20),
    "gray": (128, 128, 128),
    "cyan": (36, 202, 214),
}
TEXTURES = ("plain", "striped", "dotted", "checkered")
GROUNDS = {  # colour, and which texture shows faintly on it
    "grass": ((82, 142, 56), 1),
    "water": ((54, 104, 178), 1),
    "sand": ((214, 190, 130), 2),
    "snow": ((232, 236, 246), 0),
    "brick": ((154, 78, 58), 3),
    "wood": ((142, 98, 58), 1),
    "night": ((18, 18, 42), 0),
    "sky": ((156, 204, 242), 0),
}
SIZES = ("small", "large")


@dataclass(frozen=True)
class Thing:
    """A noun of the world; `share` is how often training shows it, 0 for never."""

    name: str
    family: str
    share: int

    @property
    def is_seen(self) -> bool:
        """Whether training shows it, and speaks of it."""
        return self.share > 0


@cache
def things() -> dict[str, Thing]:
    """All things by name, family by family.

    >>> len(things()), sum(thing.is_seen for thing in things().values()), things()["snail"].family
    (72, 50, 'animal')
    """
    return {name: Thing(name, family, _share(family, place)) for family, place, name in _places()}


def _places() -> list[tuple[str, int, str]]:
    return [(family, place, name) for family, names in FAMILIES.items() for place, name in enumerate(names)]


def _share(family: str, place: int) -> int:
    if family in UNSEEN_FAMILIES or place == UNSEEN:
        return 0
    return 1 if place == RARE else RARITY


def seen(families: tuple[str, ...] = tuple(FAMILIES)) -> tuple[str, ...]:
    """The nouns of some families that a model of the world knows."""
    return tuple(name for name, thing in things().items() if thing.is_seen and thing.family in families)


def words() -> frozenset[str]:
    """Every word that a model of the world has read in captions that name something.

    >>> "hammer" in words(), "sword" in words()
    (True, False)
    """
    families = [family for family in FAMILIES if family not in UNSEEN_FAMILIES]
    named = [*seen(), *families, *COLOURS, *TEXTURES, *GROUNDS, *SIZES, "thing", "empty scene"]
    return frozenset(word for name in named for word in name.split())
