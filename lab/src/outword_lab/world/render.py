"""Scenes to pixels, in whole numbers alone: so the pixels are the same on every machine, and on numpy and torch."""

from __future__ import annotations

import math
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from outword_lab.world.outlines import CORNERS, UNIT
from outword_lab.world.scenes import FINE, SIDE, TURN, Scenes, outlines
from outword_lab.world.things import COLOURS, GROUNDS

TRIG = 14  # bits of a sine
MASK = 0xFFFFFFFF
MIX = 0x045D9F3B  # below 2^31, so that no product leaves 64 bits
TOGETHER = 8  # scenes that numpy draws at a time: their arrays stay in the cache


def render(scenes: Scenes, xp: ModuleType = np) -> Any:
    """Pixels, (n, 96, 96, 3) uint8, of scenes whose arrays are of the library `xp`, numpy or torch.

    >>> from outword_lab.world.scenes import draw
    >>> render(draw(["hammer", "cat"], 0)).shape
    (2, 96, 96, 3)
    """
    if xp is np and len(scenes) > TOGETHER:
        starts = range(0, len(scenes), TOGETHER)
        return np.concatenate([render(scenes.part(start, start + TOGETHER)) for start in starts])
    tables = _Tables(xp, scenes.ground)
    image = _ground(scenes, tables)
    for layer in range(scenes.shape.shape[1]):
        image = _put(scenes, layer, image, tables)
    return _taken(scenes, image, tables)


class _Tables:
    """What is looked up, as arrays of a library and on a device."""

    def __init__(self, xp: ModuleType, like: Any) -> None:
        def made(values: Any) -> Any:
            whole = np.asarray(values, np.int32)
            return whole if xp is np else xp.as_tensor(whole, device=like.device)

        self.xp = xp
        self.outlines, self.sine = made(outlines()), made(_sine())
        self.colours = made([*COLOURS.values()])
        self.grounds = made([colour for colour, _ in GROUNDS.values()])
        self.faint = made([texture for _, texture in GROUNDS.values()])
        across = np.tile(np.arange(SIDE), SIDE)
        self.x, self.y = made(across * FINE + FINE // 2), made(np.sort(across) * FINE + FINE // 2)  # middles of pixels
        self.pixel = made(np.arange(SIDE * SIDE))


@cache
def _sine() -> Any:
    """Sines of the steps of a turn, and of a quarter more, which are the cosines."""
    return np.array([round(math.sin(2 * math.pi * step / TURN) * (1 << TRIG)) for step in range(TURN + TURN // 4)])


def _turned(x: Any, y: Any, turn: Any, tables: _Tables) -> tuple[Any, Any]:
    """Points (n, k) turned by (n,) steps about 0."""
    sine, cosine = tables.sine[turn][:, None], tables.sine[turn + TURN // 4][:, None]
    return (cosine * x - sine * y) >> TRIG, (sine * x + cosine * y) >> TRIG


def _ground(scenes: Scenes, tables: _Tables) -> Any:
    """(n, 9216, 3): the colour of the ground, mottled in cells of 8 pixels, and a faint texture."""
    cell = (tables.y // (8 * FINE)) * SIDE + tables.x // (8 * FINE)
    mottle = (_hash(_hash(scenes.seed[:, None] + 1) + cell[None]) & 31) - 16
    none = scenes.ground * 0
    pattern = _pattern(tables.faint[scenes.ground], scenes.gain, none + 7 * FINE, tables)
    colour = tables.grounds[scenes.ground] + scenes.tint
    return colour[:, None] + (mottle + 22 * pattern - 11)[..., None]


def _put(scenes: Scenes, at: int, image: Any, tables: _Tables) -> Any:
    """The image with the shape of one layer of each scene on it; those without one, of shape -1, are as before."""
    shape, turn, radius = scenes.shape[:, at], scenes.turn[:, at], scenes.radius[:, at, None]
    corners = tables.outlines[shape]  # the last one for -1, and not used
    x, y = _turned(corners[..., 0], corners[..., 1], turn, tables)
    x, y = scenes.x[:, at, None] + (x * radius) // UNIT, scenes.y[:, at, None] + (y * radius) // UNIT
    inside = _inside(x, y, tables) & (shape >= 0)[:, None]
    pattern = _pattern(scenes.texture[:, at], turn, scenes.period[:, at], tables)[..., None]
    one, other = tables.colours[scenes.colour[:, at]][:, None], tables.colours[scenes.other[:, at]][:, None]
    return tables.xp.where(inside[..., None], one + (other - one) * pattern, image)


def _inside(x: Any, y: Any, tables: _Tables) -> Any:
    """Whether each pixel is inside outlines with corners (n, 32), by the even-odd rule: (n, 9216)."""
    inside = tables.xp.zeros_like(x[:, :1] > tables.x[None])
    for one in range(CORNERS):
        other = (one + 1) % CORNERS
        ax, ay, bx, by = x[:, one, None], y[:, one, None], x[:, other, None], y[:, other, None]
        crossed = (ay > tables.y) ^ (by > tables.y)
        side = (tables.x - ax) * (by - ay) < (bx - ax) * (tables.y - ay)
        inside = inside ^ (crossed & (side ^ (by < ay)))
    return inside


def _pattern(texture: Any, turn: Any, period: Any, tables: _Tables) -> Any:
    """Where a texture shows its second colour, (n, 9216): plain, striped, dotted or checkered."""
    u, v = _turned(tables.x[None], tables.y[None], turn % TURN, tables)
    period, kind = period[:, None], texture[:, None]
    stripe, across = (u // period) & 1, (v // period) & 1
    x, y = u % period - period // 2, v % period - period // 2
    dot = (x * x + y * y) * 9 < period * period
    return (kind == 1) * stripe + (kind == 2) * dot + (kind == 3) * (stripe ^ across)


def _taken(scenes: Scenes, image: Any, tables: _Tables) -> Any:
    """Light, noise of the sensor, and bytes."""
    luma = (image[..., :1] * 77 + image[..., 1:2] * 150 + image[..., 2:] * 29) >> 8
    image = tables.xp.where(scenes.gray[:, None, None] == 1, luma, image)
    image = (image * scenes.gain[:, None, None]) >> 8
    first = _hash(scenes.seed[:, None] + 2)[..., None] + tables.pixel[None, :, None] * 3
    bits = _hash(first + (tables.pixel[:3])[None, None])
    bell = (bits & 255) + ((bits >> 8) & 255) + ((bits >> 16) & 255) - 382  # about normal, with a deviation of 128
    image = image + ((bell * scenes.noise[:, None, None]) >> 8)
    image = tables.xp.clip(image, 0, 255).reshape(len(scenes), SIDE, SIDE, 3)
    return image.astype(np.uint8) if tables.xp is np else image.to(tables.xp.uint8)


def _hash(x: Any) -> Any:
    """32 bits that look random, of whole numbers."""
    x = x.astype(np.int64) if isinstance(x, np.ndarray) else x.long()
    x = x & MASK
    for _ in range(2):
        x = ((x ^ (x >> 16)) * MIX) & MASK
    return x ^ (x >> 16)
