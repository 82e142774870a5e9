"""One rule for words: how they are spelled, when two are the same, and what a plural is the plural of."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

INVISIBLE = ("\u00ad", "\u200b", "\ufeff")  # soft hyphen, zero-width space, byte order mark
ADDS_ES = ("ses", "xes", "zes", "ches", "shes", "oes")  # only here does English add more than an s: pines are no pin

# Endings of plurals that no rule gives, also in compounds (bookshelves, firemen). -ves stands word by word: knives are
# from knife, but caves are not from cafe. What only looks like a plural in -men stands for itself.
_IRREGULAR = """
calves calf, elves elf, halves half, hooves hoof, knives knife, leaves leaf, lives life, loaves loaf, scarves scarf,
selves self, sheaves sheaf, thieves thief, wharves wharf, wives wife, wolves wolf, dwarves dwarf,
men man, women woman, dolmen dolmen, limen limen, omen omen, children child,
oxen ox, feet foot, teeth tooth, geese goose, mice mouse, lice louse, dice die, people person,
alumni alumnus, bacilli bacillus, cacti cactus, fungi fungus, hippopotami hippopotamus, nuclei nucleus,
octopi octopus, radii radius, stimuli stimulus, gladioli gladiolus,
algae alga, amoebae amoeba, antennae antenna, larvae larva, nebulae nebula, pupae pupa, vertebrae vertebra,
aquaria aquarium, bacteria bacterium, crania cranium, ova ovum, phenomena phenomenon, spectra spectrum, strata stratum,
appendices appendix, codices codex, helices helix, matrices matrix, vertices vertex, vortices vortex,
analyses analysis, crises crisis, diagnoses diagnosis, oases oasis, prostheses prosthesis, theses thesis,
chateaux chateau, gateaux gateau, plateaux plateau, tableaux tableau, passersby passerby, quizzes quiz
"""
IRREGULAR = dict(pair.split() for pair in _IRREGULAR.split(","))
_ENDINGS = tuple(IRREGULAR)


def normalise(text: str) -> str:
    """Spell a word plainly: NFKC, no invisible characters, underscores to spaces, runs of white space to one space.

    >>> normalise("  space_shuttle ")
    'space shuttle'
    """
    if not text.isascii():
        for character in INVISIBLE:
            text = text.replace(character, "")
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.replace("_", " ").split())


def fold(text: str) -> str:
    """Give the form in which words are compared: normalised, and without upper and lower case.

    >>> fold("Space_Shuttle") == fold("space  shuttle")
    True
    """
    folded = normalise(text).casefold()
    while not folded.isascii() and (again := normalise(folded).casefold()) != folded:
        folded = again  # for some letters, folding undoes the normalising once or twice
    return folded


def singulars(word: str) -> Iterator[str]:
    """What a word in lower case may be the plural of, the likeliest first; its last word counts.

    >>> [list(singulars(word)) for word in ("cats", "bookshelves", "berries", "foxes", "glass")]
    [['cat'], ['bookshelf', 'bookshelve'], ['berry', 'berrie'], ['fox', 'foxe'], []]
    """
    if word.endswith(_ENDINGS):
        end = max(filter(word.endswith, _ENDINGS), key=len)
        yield word.removesuffix(end) + IRREGULAR[end]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        if word.endswith("ies"):
            yield word[:-3] + "y"
        if word.endswith(ADDS_ES):
            yield word[:-2]
        yield word[:-1]


def drop_labels(words: Sequence[str], labels: Iterable[str]) -> tuple[list[int], list[str]]:
    """Leave out the words that equal a label, and say which: (indices of the words kept, words dropped).

    Case, spaces, underscores and hyphens do not count, and neither does the plural of either of the two.

    >>> drop_labels(["cat", "Egg-cup", "foxes", "knife", "dog"], ["Cats", "egg_cup", "fox", "knives"])
    ([4], ['cat', 'Egg-cup', 'foxes', 'knife'])
    """
    taken = {form for label in labels for form in _forms(label)}
    keep = [taken.isdisjoint(_forms(word)) for word in words]
    return [i for i, kept in enumerate(keep) if kept], [w for w, kept in zip(words, keep, strict=True) if not kept]


def _forms(text: str) -> set[str]:
    """The folded text and what it may be the plural of."""
    form = fold(text.replace("-", " "))
    return {form, *singulars(form)}
