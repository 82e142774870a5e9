"""WordNet's nouns: what a word can mean, what a meaning is called, what lies above it and what below."""

from __future__ import annotations

import lzma
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from outword.words.forms import SQUEEZED, fold, spellings, squeeze

DATA = Path(str(files("outword"))) / "words" / "corpora" / "data"
NOUNS, GLOSSES = "nouns.safetensors", "glosses.safetensors"
BLOCK = 4096  # senses whose glosses are read together
PERSON = "n00007846"
PHYSICAL = "n00001930"  # "physical entity": what a photo can show

Ints = NDArray[np.integer[Any]]


class Nouns:
    """The nouns of WordNet 3.0, as arrays (tools/build_nouns.py says which); a sense is the row of a synset.

    >>> net = nouns()
    >>> dog = net.senses("Dogs")[0]
    >>> net.names(dog), net.wnid(dog)
    (('dog', 'domestic dog', 'Canis familiaris'), 'n02084071')
    >>> [net.names(sense)[0] for sense in net.above(dog)[:2]]
    ['canine', 'domestic animal']
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], folder: Path = DATA) -> None:
        self._folder = folder
        self._spelled = arrays["lemmas"].tobytes()
        self.keys = self._spelled.lower().translate(None, SQUEEZED)  # the lemmas, squeezed and sorted, a line each
        self._spelled_ends, self.key_ends = _ends(self._spelled), _ends(self.keys)
        self._senses, self._sense_ends = _three(arrays["senses"]), np.cumsum(arrays["n_senses"], dtype=np.int64)
        self._names, self._name_ends = _three(arrays["names"]), np.cumsum(arrays["n_names"], dtype=np.int64)
        self._parents, self._parent_ends = _three(arrays["parents"]), np.cumsum(arrays["n_parents"], dtype=np.int64)
        self._n_parents = arrays["n_parents"]
        self._is_instance = np.unpackbits(arrays["instance"], count=len(self._parents)).astype(bool)
        self._sense_tags = arrays["sense_tags"]
        self.information = arrays["information"] / 255  # (n_senses,), 0 for entity, 1 for what has nothing below it
        self._readable, self._readable_names = _three(arrays["readable"]), arrays["readable_names"]
        self._general = _three(arrays["general"])
        self.offsets: Ints = np.cumsum(arrays["steps"], dtype=np.int64)
        self._tags = np.bincount(self._senses, self._sense_tags, len(self.offsets)).astype(np.int64)

    def __len__(self) -> int:
        """How many senses there are."""
        return len(self.offsets)

    def senses(self, word: str) -> tuple[int, ...]:
        """What a word can mean, in WordNet's order of frequency; spelled as it is first, then as a plural.

        >>> [nouns().gloss(sense) for sense in nouns().senses("Grey wolves")]
        ['a wolf with a brindled grey coat living in forested northern regions of North America']
        """
        return tuple(self.uses(word))

    def uses(self, word: str) -> dict[int, int]:
        """What a word can mean, as `senses`, each with how often the concordance tags the word in it."""
        typed, found = fold(word), dict[int, int]()
        for key in spellings(word):
            for row in sorted(self._rows(key), key=lambda row: fold(self.lemma(row)) != typed):
                tags = _part(self._sense_tags, self._sense_ends, row)
                found = {**found, **dict(zip(self.lemma_senses(row), tags, strict=True)), **found}
        return found

    def spelled(self, word: str) -> str:
        """A word as WordNet spells it: without article and plural; as it is where WordNet does not know it.

        >>> [nouns().spelled(word) for word in ("Dogs", "a grey-hound", "glasses", "daschund")]
        ['dog', 'greyhound', 'glasses', 'daschund']
        """
        typed = fold(word)
        for key in spellings(word):
            rows = self._rows(key)
            if any(self.lemma_senses(row) for row in rows):
                return min(map(self.lemma, rows), key=lambda lemma: (fold(lemma) != typed, lemma != lemma.lower()))
        return word

    def is_proper(self, word: str) -> bool:
        """Whether a word with a capital is a thing of that name, and without it another one that photos show, too.

        >>> [nouns().is_proper(word) for word in ("Cardigan", "cardigan", "Cat", "Turkey")]
        [True, False, False, False]
        """
        if not word[:1].isupper() or not word.isascii():
            return False
        shown = [sense for sense in self.senses(word) if not self.is_instance(sense) and self._is_thing(sense)]
        with_capital = [word in self.names(sense) for sense in shown]
        without = [word.lower() in self.names(sense) for sense in shown]
        return any(with_capital) and any(without)

    def _is_thing(self, sense: int) -> bool:
        """Whether photos can show a sense, and it is no person."""
        above = {self.wnid(at) for at in self.above(sense)}
        return PHYSICAL in above and PERSON not in above

    def lemma(self, row: int) -> str:
        """A lemma as it is spelled, by its row in `keys`."""
        return _line(self._spelled, self._spelled_ends, row).decode()

    def lemma_senses(self, row: int) -> list[int]:
        """The senses of a lemma; none where it differs by case only from the one before."""
        return _part(self._senses, self._sense_ends, row)

    def names(self, sense: int) -> tuple[str, ...]:
        """What a sense is called; the first names it."""
        return tuple(self.lemma(row) for row in _part(self._names, self._name_ends, sense))

    def gloss(self, sense: int) -> str:
        """WordNet's definition of a sense."""
        block, place = divmod(sense, BLOCK)
        return _glosses(self._folder, block)[place]

    def tags(self, sense: int) -> int:
        """How often WordNet's concordance tags a sense."""
        return int(self._tags[sense])

    def wnid(self, sense: int) -> str:
        """WordNet's number of a sense, as ImageNet writes it."""
        return f"n{self.offsets[sense]:08}"

    def by_wnid(self, wnid: str) -> int | None:
        """The sense of a number, if there is one.

        >>> nouns().names(nouns().by_wnid("n02012849"))
        ('crane',)
        """
        number = int(wnid[1:]) if wnid[:1] == "n" and wnid[1:].isdecimal() and len(wnid) == 9 else -1
        row = int(np.searchsorted(self.offsets, number))
        return row if row < len(self) and self.offsets[row] == number else None

    def is_instance(self, sense: int) -> bool:
        """Whether a sense is one of its kind, such as a person or a place, rather than a kind."""
        end = self._parent_ends[sense]
        return bool(self._is_instance[end - self._n_parents[sense] : end].any())

    def above(self, sense: int) -> tuple[int, ...]:
        """All that a sense is a kind of, or an instance of, nearest first."""
        found, level = dict[int, None](), [sense]
        while level:
            level = [up for one in level for up in _part(self._parents, self._parent_ends, one) if up not in found]
            found |= dict.fromkeys(level)
        return tuple(found)

    def below(self, sense: int) -> tuple[int, ...]:
        """All kinds of a sense, most common first: by tags, then the nearest, then by offset. Instances are not."""
        owner, depth = self.spread([sense])
        rows = np.flatnonzero(owner == 0)
        return tuple(self.by_use(rows[rows != sense], depth).tolist())

    def by_use(self, senses: Ints, depth: Ints) -> Ints:
        """Sort senses: the most tagged first, then those with the smallest of `depth` (n_senses,), then by offset."""
        return senses[np.lexsort((senses, depth[senses], -self._tags[senses]))]

    def spread(self, senses: Sequence[int]) -> tuple[Ints, Ints]:
        """For all senses, which of `senses` is nearest at or above (its place, or -1), and how many steps above.

        Of two as near the first counts.
        """
        children, parents = self._edges
        owner, depth = np.full(len(self), -1), np.full(len(self), -1)
        for place, sense in reversed(list(enumerate(senses))):
            owner[sense], depth[sense] = place, 0
        level = 0
        while (found := (depth[parents] == level) & (owner[children] < 0)).any():
            level += 1
            nearest = np.full(len(self), len(senses))
            np.minimum.at(nearest, children[found], owner[parents[found]])
            new = np.flatnonzero(nearest < len(senses))
            owner[new], depth[new] = nearest[new], level
        return owner, depth

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:
        """Each kind with what it is a kind of, (n_edges,) and (n_edges,)."""
        children = np.repeat(np.arange(len(self)), self._n_parents)
        return children[~self._is_instance], self._parents[~self._is_instance]

    def keys_of(self, inside: NDArray[np.bool_]) -> set[str]:
        """The squeezed lemmas of the senses that are marked, `inside` (n_senses,)."""
        edges = np.repeat(inside, np.diff(self._name_ends, prepend=0))
        return {self._key(row).decode() for row in self._names[edges].tolist()}

    def readable(self) -> dict[str, int]:
        """Plain names that a photo may be said to look like, each with its sense.

        >>> names = nouns().readable()
        >>> "sea lion" in names, "dog" in names, "artifact" in names
        (True, True, False)
        """
        return dict(self._plain)

    @cached_property
    def _plain(self) -> dict[str, int]:
        pairs = zip(self._readable.tolist(), self._readable_names.tolist(), strict=True)
        return {self.names(sense)[place]: sense for sense, place in pairs}

    def visible(self) -> dict[str, int]:
        """Readable names, and those of all else that lies above ImageNet's classes, each with its sense.

        >>> "canine" in nouns().visible()
        True
        """
        return dict(self._seen)

    @cached_property
    def _seen(self) -> dict[str, int]:
        taken = set(map(squeeze, self._plain))
        named = {self.names(sense)[0]: sense for sense in self._general.tolist()}
        return self._plain | {name: sense for name, sense in named.items() if squeeze(name) not in taken}

    def _rows(self, key: str) -> list[int]:
        """The lemmas of a squeezed form."""
        wanted, n_lemmas = key.encode(), len(self.key_ends)
        row = bisect_left(range(n_lemmas), wanted, key=self._key)
        rows = []
        while row < n_lemmas and self._key(row) == wanted:
            rows.append(row)
            row += 1
        return rows

    def _key(self, row: int) -> bytes:
        return _line(self.keys, self.key_ends, row)


@cache
def nouns() -> Nouns:
    """The nouns that come with the package; read once."""
    return Nouns(load_file(DATA / NOUNS))


def gloss_filter() -> list[dict[str, int]]:
    """How a block of glosses is compressed: there is no header in the file that would say it."""
    return [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 20}]


@lru_cache(maxsize=32)
def _glosses(folder: Path, block: int) -> list[str]:
    arrays = load_file(folder / GLOSSES)
    end = int(arrays["n_bytes"][: block + 1].sum())
    data = arrays["blocks"][end - int(arrays["n_bytes"][block]) : end].tobytes()
    return lzma.decompress(data, lzma.FORMAT_RAW, filters=gloss_filter()).decode().split("\n")


def _three(numbers: NDArray[np.uint8]) -> Ints:
    """Numbers of three bytes (n, 3), lowest first, as integers (n,)."""
    wide = np.zeros((len(numbers), 4), np.uint8)
    wide[:, :3] = numbers
    return wide.view("<i4")[:, 0]


def _ends(lines: bytes) -> Ints:
    """Where each line of a text ends."""
    text = np.frombuffer(lines, np.uint8)
    return np.append(np.flatnonzero(text == ord("\n")), len(text))


def _line(lines: bytes, ends: Ints, row: int) -> bytes:
    return lines[ends[row - 1] + 1 if row else 0 : ends[row]]


def _part(numbers: Ints, ends: Ints, row: int) -> list[int]:
    return numbers[ends[row - 1] if row else 0 : ends[row]].tolist()  # type: ignore[no-any-return]
