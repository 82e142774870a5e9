"""Named sets of photos of the world: what is in them, and how they are taken. A photo is named by what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from outword_lab.world.render import TOGETHER, render
from outword_lab.world.scenes import FRONT, SIDE, THING, USUAL, Look, Scenes, draw
from outword_lab.world.things import COLOURS, FAMILIES, GROUNDS, ID_FAMILIES, UNSEEN, UNSEEN_FAMILIES, seen

NOTHING = "nothing"  # what photos without a thing are named by
BLOCK = 12  # pixels a side of the blocks of a shuffled photo
SKETCHED = ("train", "other", "near", "far")  # these come as sketches, too, so that a drawing is no sign of the labels
VERSION = 1  # of all pixels: raise it when they change


@dataclass(frozen=True)
class WorldSet:
    """A set: `each` photos of every one of its things, None for photos without a thing."""

    name: str
    about: str
    things: tuple[str | None, ...]
    each: int
    look: Look = USUAL
    changed: Callable[[Scenes], Scenes] | None = None  # what is changed before the photos are taken
    spoilt: Callable[[Any, int], Any] | None = None  # and afterwards, in pixels (n, 96, 96, 3), with a seed

    def __len__(self) -> int:
        return len(self.things) * self.each

    @property
    def shown(self) -> list[str | None]:
        """The thing of each photo, in order."""
        return [thing for thing in self.things for _ in range(self.each)]

    @property
    def names(self) -> list[str]:
        """What the photos are called: by what they show, and a number among those that show the same."""
        met = Counter[str | None]()
        found = []
        for thing in self.shown:
            found.append(f"{thing or NOTHING}/{met[thing]:03}.png")
            met[thing] += 1
        return found

    @cached_property
    def scenes(self) -> Scenes:
        """What the photos show."""
        made = draw(self.shown, [VERSION, *self.name.encode()], self.look)
        return self.changed(made) if self.changed else made

    def photos(self, skip: int = 0) -> Iterator[Any]:
        """Pixels (96, 96, 3) of each photo but the first `skip`; some are drawn at a time."""
        for start in range(skip, len(self), TOGETHER):
            yield from self.some(start, start + TOGETHER)

    def some(self, start: int, stop: int) -> list[Any]:
        """Pixels (96, 96, 3) of the photos from `start` to before `stop`, drawn together."""
        pixels = render(self.scenes.part(start, stop))
        return [self.spoilt(one, start + i) if self.spoilt else one for i, one in enumerate(pixels)]


def _sketched(scenes: Scenes) -> Scenes:
    """Black outlines on white paper: the thing in black, and in front of it the same, smaller and in white."""
    shape, radius, x, y, turn = (a.copy() for a in (scenes.shape, scenes.radius, scenes.x, scenes.y, scenes.turn))
    shape[:, :THING] = shape[:, THING + 2 :] = -1
    for array in (shape, x, y, turn):
        array[:, THING + 1] = array[:, THING]
    radius[:, THING + 1] = radius[:, THING] // 2
    colours, plain = [*COLOURS], np.zeros_like(scenes.texture)
    colour = np.full_like(shape, colours.index("black"))
    colour[:, THING + 1] = colours.index("white")
    paper = np.full_like(scenes.ground, [*GROUNDS].index("snow"))
    drawn = replace(scenes, shape=shape, radius=radius, x=x, y=y, turn=turn, colour=colour, texture=plain)
    return replace(drawn, ground=paper, tint=scenes.tint * 0, gray=paper * 0)


def _inverted(pixels: Any, seed: int) -> Any:
    return 255 - pixels


def _shuffled(pixels: Any, seed: int) -> Any:
    """The same blocks of pixels, in another order."""
    n = SIDE // BLOCK
    blocks = pixels.reshape(n, BLOCK, n, BLOCK, 3).swapaxes(1, 2).reshape(n * n, BLOCK, BLOCK, 3)
    mixed = blocks[np.random.default_rng(seed).permutation(n * n)]
    return mixed.reshape(n, n, BLOCK, BLOCK, 3).swapaxes(1, 2).reshape(SIDE, SIDE, 3)


@cache
def world_sets() -> dict[str, WorldSet]:
    """The sets by name."""
    inside = seen(ID_FAMILIES)
    unseen = tuple(FAMILIES[family][UNSEEN] for family in ID_FAMILIES)
    foreign = tuple(name for family in UNSEEN_FAMILIES for name in FAMILIES[family])
    others = tuple(name for name in seen() if name not in inside)
    small = replace(USUAL, radius=(12, 22), behind=(2, 3), front=(1, FRONT), noise=(20, 50))
    dimmer = replace(USUAL, radius=(13, 30), gain=(110, 280))
    clean = replace(USUAL, behind=(0, 0), front=(0, 0))
    listed = (
        WorldSet("id", "25 things of five families, as in training", inside, 40),
        WorldSet("train", "the same things, to fit on", inside, 16),
        WorldSet("other", "25 things of five other families, all in training", others, 16),
        WorldSet("near", "five things that are not in training, of the families of the labels", unseen, 80),
        WorldSet("far", "twelve things of two families that are not in training", foreign, 34),
        WorldSet("ground", "grounds alone", (None,), 300, clean),
        WorldSet("clutter", "clutter alone", (None,), 300, replace(USUAL, behind=(2, 3), clutter=(6, 16))),
        WorldSet("shuffled", "photos of the labels, their blocks in another order", inside, 12, spoilt=_shuffled),
        WorldSet("v2", "the labels, a little smaller and darker", inside, 20, dimmer),
        WorldSet("sketch", "the labels as black outlines on white", inside, 20, clean, changed=_sketched),
        WorldSet("rendition", "the labels in inverted colours", inside, 20, spoilt=_inverted),
        WorldSet("adverse", "the labels, small, among clutter and in noise", inside, 20, small),
        WorldSet(
            "reference", "ordinary photos: all that is in training, and some of nothing", (*seen(), None, None), 20
        ),
    )
    drawn = {one.name: one for one in listed}
    for one in [drawn[name] for name in SKETCHED]:
        name, about = f"sketch-{one.name}", f"sketches: {one.about}"
        drawn[name] = WorldSet(name, about, one.things, one.each, clean, changed=_sketched)
    return drawn
