"""What is in a photo, as whole numbers: which things, where, how large, in which colours; drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from outword_lab.world.outlines import CLUTTER, outline
from outword_lab.world.things import COLOURS, GROUNDS, TEXTURES, things

SIDE = 96  # pixels a side of a photo
FINE = 16  # of these are a pixel: positions and scales are counted so
TURN = 256  # steps of a whole turn
BEHIND, FRONT = 3, 2  # most pieces of clutter behind the thing, and in front of it
THING = BEHIND  # the layer that has the thing


@dataclass(frozen=True)
class Look:
    """How photos are taken: ranges are from the least to the greatest, both included."""

    radius: tuple[int, int] = (14, 32)  # of a thing, in pixels
    off: int = 18  # how far its middle may lie from that of the photo, in pixels, on either axis
    turn: int = 16  # how far it may be turned, of `TURN`
    behind: tuple[int, int] = (0, BEHIND)  # pieces of clutter behind it
    front: tuple[int, int] = (0, FRONT)  # and in front of it
    clutter: tuple[int, int] = (4, 9)  # radius of these, in pixels
    gain: tuple[int, int] = (150, 300)  # of the light, 256 is one
    noise: tuple[int, int] = (8, 38)  # of the sensor, in levels
    gray: int = 10  # photos in a hundred that have no colours


USUAL = Look()


@dataclass(frozen=True, eq=False)
class Scenes:
    """Scenes as arrays of int32, (n,) or (n, layers), from the back to the front; a layer of shape -1 is empty.

    The arrays are numpy's, or tensors of torch.
    """

    shape: Any  # (n, layers), a row of `outlines`
    colour: Any  # (n, layers)
    other: Any  # (n, layers), the second colour of a texture
    texture: Any  # (n, layers)
    radius: Any  # (n, layers), in 1 / FINE of a pixel, as x, y and period are
    x: Any
    y: Any
    turn: Any
    period: Any  # of the texture
    ground: Any  # (n,)
    tint: Any  # (n, 3), what the ground's colour is off by
    gain: Any  # (n,)
    noise: Any  # (n,)
    gray: Any  # (n,), 1 for a photo without colours
    seed: Any  # (n,), of the noise

    def __len__(self) -> int:
        return len(self.ground)

    def part(self, start: int, stop: int) -> Scenes:
        """Some of the scenes."""
        return self.map(lambda array: array[start:stop])

    def map(self, change: Callable[[Any], Any]) -> Scenes:
        """The same with each array changed, such as moved to a device."""
        return Scenes(**{field.name: change(getattr(self, field.name)) for field in fields(self)})


@cache
def outlines() -> Any:
    """The outlines of all things and then of clutter, (n_shapes, 32, 2)."""
    return np.stack([outline(name) for name in (*things(), *CLUTTER)])


def draw(names: Sequence[str | None], seed: int | Sequence[int], look: Look = USUAL) -> Scenes:
    """Scenes with these things in them, None for none; what is drawn depends on the seed and their number alone.

    >>> draw(["hammer", None], 0).shape[:, THING].tolist()
    [6, -1]
    """
    rng, n, layers = np.random.default_rng(seed), len(names), BEHIND + 1 + FRONT
    numbers = {name: place for place, name in enumerate(things())}

    def whole(least: int, most: int, *shape: int) -> Any:
        return rng.integers(least, most + 1, size=(n, *shape), dtype=np.int32)

    shape = whole(len(numbers), len(numbers) + len(CLUTTER) - 1, layers)
    place = np.arange(layers)
    n_behind, n_front = whole(*look.behind, 1), whole(*look.front, 1)
    shape[(place < BEHIND - n_behind) | (place > THING + n_front)] = -1
    shape[:, THING] = [-1 if name is None else numbers[name] for name in names]
    radius = whole(look.clutter[0] * FINE, look.clutter[1] * FINE, layers)
    radius[:, THING] = whole(look.radius[0] * FINE, look.radius[1] * FINE)
    middle, off = SIDE * FINE // 2, look.off * FINE
    x, y = middle + whole(-off, off, layers), middle + whole(-off, off, layers)
    far = SIDE * FINE // 2  # what lies behind may lie anywhere, what is in front is near the thing
    x[:, :BEHIND], y[:, :BEHIND] = middle + whole(-far, far, BEHIND), middle + whole(-far, far, BEHIND)
    reach = radius[:, THING, None]
    for at in (x, y):
        at[:, THING + 1 :] = at[:, THING, None] + whole(-reach.max(), reach.max(), FRONT) * reach // reach.max()
    turn = whole(0, TURN - 1, layers)
    turn[:, THING] = whole(-look.turn, look.turn) % TURN
    colour = whole(0, len(COLOURS) - 1, layers)
    return Scenes(
        shape=shape,
        colour=colour,
        other=(colour + whole(1, len(COLOURS) - 1, layers)) % len(COLOURS),
        texture=whole(0, len(TEXTURES) - 1, layers),
        radius=radius,
        x=x,
        y=y,
        turn=turn,
        period=whole(5 * FINE, 10 * FINE, layers),
        ground=whole(0, len(GROUNDS) - 1),
        tint=whole(-20, 20, 3),
        gain=whole(*look.gain),
        noise=whole(*look.noise),
        gray=(whole(0, 99) < look.gray).astype(np.int32),
        seed=whole(0, 2**31 - 2),
    )
