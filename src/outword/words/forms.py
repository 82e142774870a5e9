"""One rule for words: how they are spelled, when two are the same, and what a plural is the plural of."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

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

SQUEEZED = b" -'"  # what does not count where words are compared: egg-cup, egg cup and eggcup are one
_SQUEEZED = str.maketrans("", "", SQUEEZED.decode() + "\u2019")
ARTICLES = ("a ", "an ", "the ")
PREPOSITIONS = {"at", "before", "behind", "by", "from", "in", "near", "of", "off", "on", "over", "under", "with"}

# British pieces of words, and the American ones. No rule would do: tour is not tor, and four is not for.
_BRITISH = """
aeroplane airplane, aluminium aluminum, anaesthe anesthe, arbour arbor, archaeolog archeolog, armour armor,
artefact artifact, behaviour behavior, calibre caliber, catalogue catalog, centre center, chequer checker,
colour color, cosy cozy, defence defense, doughnut donut, draught draft, encyclopaedia encyclopedia, favour favor,
fibre fiber, flavour flavor, foetus fetus, gaol jail, grey gray, haemo hemo, harbour harbor, honour honor,
humour humor, jewellery jewelry, jeweller jeweler, kerb curb, labour labor, licence license, litre liter,
lustre luster, manoeuvre maneuver, metre meter, mould mold, moult molt, moustache mustache, neighbour neighbor,
ochre ocher, odour odor, oesophag esophag, omelette omelet, orthopaedic orthopedic, paediatric pediatric,
parlour parlor, phial vial, plough plow, programme program, pyjama pajama, racquet racket, rumour rumor,
sabre saber, saviour savior, savour savor, sceptic skeptic, sceptre scepter, skilful skillful, spectre specter,
sulphur sulfur, theatre theater, traveller traveler, tumour tumor, tyre tire, vapour vapor, waggon wagon,
whisky whiskey, woollen woolen, yoghurt yogurt, isation ization, iser izer
"""
_PIECES = dict(pair.split() for pair in _BRITISH.split(","))
_TO_AMERICAN = re.compile("|".join(_PIECES)), _PIECES
_TO_BRITISH = re.compile("|".join(_PIECES.values())), {american: british for british, american in _PIECES.items()}


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
    if text.isascii():
        return " ".join(text.replace("_", " ").split()).lower()
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


def squeeze(text: str) -> str:
    """A word without case, accents, spaces, hyphens and apostrophes.

    >>> squeeze("Jack-o'-lantern"), squeeze("crêpe_pan")
    ('jackolantern', 'crepepan')
    """
    return _squeezed(fold(text))


def _squeezed(folded: str) -> str:
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return folded.translate(_SQUEEZED) or folded


def spellings(text: str) -> Iterator[str]:
    """The squeezed forms under which a word may be found, likeliest first: as it is, American, British; and singular.

    >>> list(spellings("Grey-hounds"))
    ['greyhounds', 'grayhounds', 'greyhound', 'grayhound']
    """
    seen = dict[str, None]()
    for form in numbers(text):
        seen |= dict.fromkeys((form, _respelled(form, *_TO_AMERICAN), _respelled(form, *_TO_BRITISH)))
    yield from seen


@lru_cache(maxsize=1 << 15)  # a fit asks several times about each of some ten thousand words
def numbers(text: str) -> tuple[str, ...]:
    """The squeezed form of a word, and what it may be the plural of; so without an article before it."""
    folded = fold(text)
    forms = [form := _squeezed(folded), *singulars(form)]
    if folded.startswith(ARTICLES):
        forms += [form := squeeze(folded.partition(" ")[2]), *singulars(form)]
    return tuple(forms)


def _respelled(form: str, pattern: re.Pattern[str], pieces: dict[str, str]) -> str:
    return pattern.sub(lambda found: pieces[found[0]], form)


def heads(phrase: str) -> Iterator[str]:
    """What a phrase of several words may be about: its end, without what a preposition adds; the longest first.

    One that begins with a preposition, as idioms do, is about nothing.

    >>> list(heads("red striped hammer on sand")), list(heads("hammer")), list(heads("off the hook"))
    (['red striped hammer', 'striped hammer', 'hammer'], [], [])
    """
    words = fold(phrase).split()
    if len(words) > 1 and words[0] not in PREPOSITIONS:
        end = next((place for place, word in enumerate(words) if place and word in PREPOSITIONS), len(words))
        yield from (" ".join(words[start:end]) for start in range(0 if end < len(words) else 1, end))


def drop_labels(words: Sequence[str], labels: Iterable[str]) -> tuple[list[int], list[str]]:
    """Leave out the words that equal a label, and say which: (indices of the words kept, words dropped).

    Case, articles, spaces, underscores and hyphens do not count, nor the plural of either of the two, nor whether a
    word is spelled as in Britain or in America.

    >>> drop_labels(["cat", "Egg-cup", "foxes", "color", "dog"], ["the Cats", "egg_cup", "fox", "colours"])
    ([4], ['cat', 'Egg-cup', 'foxes', 'color'])
    """
    taken = {
        form for label in labels for form in spellings(label)
    }  # both spellings of a label: one of a word is enough
    keep = [taken.isdisjoint(numbers(word)) for word in words]
    return [i for i, kept in enumerate(keep) if kept], [w for w, kept in zip(words, keep, strict=True) if not kept]
