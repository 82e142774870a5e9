"""The corpora of the small rendered world (`outword_lab.world`), of which it is known what each phrase is true of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from outword.words.corpora import CORPORA
from outword.words.corpora.corpus import ADJECTIVE, NOUN, Corpus, make_corpus

if TYPE_CHECKING:
    from outword_lab.world.phrases import Phrase


class WorldWords(NamedTuple):
    """Which of the world's phrases a corpus takes."""

    about: str
    takes: Callable[[Phrase], bool]


def _names_a_thing(phrase: Phrase) -> bool:
    """Whether a phrase has a noun or a family in it."""
    from outword_lab.world.phrases import ANYTHING, EMPTY

    return phrase.head not in ("", ANYTHING, EMPTY)


def _is_bare(phrase: Phrase) -> bool:
    return phrase.text == phrase.head


WORLD = {
    "world": WorldWords("the rendered world: all phrases about it, of things, families and looks", lambda phrase: True),
    "world-nouns": WorldWords(
        "the rendered world: bare nouns and families", lambda phrase: _names_a_thing(phrase) and _is_bare(phrase)
    ),
    "world-looks": WorldWords(
        'the rendered world: colours, textures, grounds, "red thing", "empty scene"; no noun of a thing',
        lambda phrase: not _names_a_thing(phrase),
    ),
}


@cache
def world_corpus(name: str) -> Corpus:
    """A corpus of `WORLD`; bare colours and textures count as adjectives.

    >>> len(world_corpus("world")), len(world_corpus("world-nouns")), len(world_corpus("world-looks"))
    (3418, 60, 58)
    """
    from outword_lab.world.phrases import corpus

    pairs = ((phrase.text, _kind(phrase)) for phrase in corpus() if WORLD[name].takes(phrase))
    return make_corpus(name, pairs)


def _kind(phrase: Phrase) -> str:
    return ADJECTIVE if phrase.text in (phrase.colour, phrase.texture) else NOUN


for _name, _words in WORLD.items():
    CORPORA.register(_name, _words.about)(partial(world_corpus, _name))
