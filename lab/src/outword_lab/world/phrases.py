"""Phrases about the world: captions to train on, and a corpus of which it is known what is true of a label."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from outword_lab.world.scenes import FINE, THING, USUAL, Scenes
from outword_lab.world.things import COLOURS, FAMILIES, GROUNDS, SIZES, TEXTURES, UNSEEN_FAMILIES, seen, things

INSIDE = ("water", "night", "sky")  # grounds that things are in, not on
ANYTHING = "thing"
EMPTY = "empty scene"
# What captions are put into. They share their words with the templates of `outword.words.prompts`.
FRAMES = (
    *("{}", "a {}", "the {}", "a photo of a {}", "a photo of the {}", "the nice {}", "the nice {}.", "the good {}"),
    *("a good photo of a {}", "a good photo with the nice {}.", "a close-up photo of the nice {}.", "a photo of {}"),
    *("a nice photo of {}", "a close-up photo of {}", "a photo with the nice {}.", "this is a {} photo"),
)


@dataclass(frozen=True)
class Phrase:
    """What is said of a photo; what is not said is "". A head is a noun, a family, `ANYTHING` or `EMPTY`."""

    head: str
    size: str = ""
    colour: str = ""
    texture: str = ""
    ground: str = ""

    @property
    def text(self) -> str:
        """In words.

        >>> Phrase("hammer", colour="red", ground="sand").text, Phrase("", colour="red").text
        ('red hammer on sand', 'red')
        """
        where = f"{'in' if self.ground in INSIDE else 'on'} {self.ground}" if self.ground and self.head else self.ground
        return " ".join(filter(None, (self.size, self.colour, self.texture, self.head, where)))


@cache
def corpus() -> tuple[Phrase, ...]:
    """Every phrase that the world's corpus has: of nouns that a model knows, of families, and of looks alone.

    >>> len(corpus()), len({phrase.text for phrase in corpus()}) == len(corpus())
    (3418, True)
    """
    return tuple(_phrases())


def _phrases() -> Iterator[Phrase]:
    families = [family for family in FAMILIES if family not in UNSEEN_FAMILIES]
    for head in (*seen(), *families, ANYTHING):
        yield Phrase(head)
        yield from (Phrase(head, size=size) for size in SIZES)
        yield from (Phrase(head, colour=colour) for colour in COLOURS)
        yield from (Phrase(head, texture=texture) for texture in TEXTURES[1:])
        yield from (Phrase(head, ground=ground) for ground in GROUNDS)
        if head in things():
            yield from (Phrase(head, colour=colour, texture=texture) for colour in COLOURS for texture in TEXTURES[1:])
    yield from (Phrase("", colour=colour) for colour in COLOURS)
    yield from (Phrase("", texture=texture) for texture in TEXTURES[1:])
    yield from (Phrase("", ground=ground) for ground in GROUNDS)
    yield Phrase(EMPTY)
    yield from (Phrase(EMPTY, ground=ground) for ground in GROUNDS)


def is_positive(phrase: Phrase, labels: Collection[str]) -> bool:
    """Whether all that a phrase speaks of is of some labels, nouns or families: its head is one, or a kind of one.

    What may be of them and may not, such as "tool" where the label is "hammer", is no positive.

    >>> is_positive(Phrase("hammer", colour="red"), ["tool"]), is_positive(Phrase("tool"), ["hammer"])
    (True, False)
    """
    family = things()[phrase.head].family if phrase.head in things() else phrase.head
    return bool(phrase.head) and (phrase.head in labels or family in labels)


def share_of_positives(texts: Sequence[str], labels: Collection[str]) -> float:
    """The share of phrases of the corpus, by their texts, that are positives of some labels: the paper's tau, known.

    >>> round(share_of_positives([phrase.text for phrase in corpus()], ["hammer", "saw"]), 3)
    0.036
    """
    known = {phrase.text: phrase for phrase in corpus()}
    return float(np.mean([is_positive(known[text], labels) for text in texts]))


def captions(scenes: Scenes, seed: int | Sequence[int]) -> list[str]:
    """A caption for each scene, drawn by the seed: it names some of what there is to see, and rarely all of it."""
    rng, n = np.random.default_rng(seed), len(scenes)
    names, colours, grounds = [*things()], [*COLOURS], [*GROUNDS]
    chance = rng.random((n, 6)).tolist()
    frames = rng.integers(len(FRAMES), size=n).tolist()
    middle = sum(USUAL.radius) / 2 * FINE
    rows = zip(
        scenes.shape[:, THING].tolist(),
        *(array[:, THING].tolist() for array in (scenes.colour, scenes.texture, scenes.radius)),
        *(array.tolist() for array in (scenes.ground, scenes.gray)),
        strict=True,
    )
    told = []
    for (shape, colour, texture, radius, ground, gray), frame, likely in zip(rows, frames, chance, strict=True):
        where = grounds[ground] if likely[0] < 0.3 else ""
        if shape < 0:
            phrase = Phrase(EMPTY, ground=where)
        else:
            phrase = Phrase(
                _head(names[shape], likely[1]),
                size=SIZES[radius > middle] if likely[2] < 0.2 else "",
                colour=colours[colour] if likely[3] < 0.45 and not gray else "",
                texture=TEXTURES[texture] if likely[4] < 0.3 else "",
                ground=where,
            )
        told.append(FRAMES[frame].replace("{}", phrase.text))
    return told


def _head(name: str, likely: float) -> str:
    """A noun mostly, else its family, else anything at all."""
    return name if likely < 0.8 else things()[name].family if likely < 0.95 else ANYTHING
