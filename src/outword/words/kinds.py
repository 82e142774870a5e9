"""What labels mean: which sense of WordNet's, by hand or by the company that they keep, and which kinds it has."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from outword.base.checks import one_of
from outword.errors import InputError, ParameterError
from outword.words.adjectives import is_adjective
from outword.words.forms import ARTICLES, fold, heads, numbers, spellings, squeeze
from outword.words.labels import Label
from outword.words.nouns import PERSON, PHYSICAL, Ints, nouns
from outword.words.suggest import suggestions

Kinds = Literal["all", "known", "off"]
Known = Callable[[Sequence[str]], Sequence[bool]]

ANIMAL, ARTIFACT = "n00015388", "n00021939"
# How likely a label means a sense, in points: what photos show, how the word is used, what the other labels are. Set by
# eye, so that ImageNet's names mostly mean what they mean there, and the cases of tests/words/test_kinds.py hold.
IN_PHOTOS = {  # for the nearest of these at or above a sense
    ANIMAL: 3,
    "n01459791": 0,  # fetus, which WordNet has among the animals: a baby is born
    "n02472293": 1,  # man, the species, likewise
    ARTIFACT: 2,
    "n03380867": 4,  # footwear: a shoe is no card case, though there is a bag beside it
    "n00021265": 2.5,  # food, to eat or to drink
    "n07555863": 2.5,  # food, solid
    "n13134947": 2.5,  # fruit
    "n00017222": 2.25,  # plant
    PHYSICAL: 1,  # persons, substances, parts of bodies, land
}
NOT_IN_PHOTOS = -1
WITH_KINDS = 0.25  # for a sense that has kinds
NAMED = 0.75  # for a sense that the word is the first name of
PER_DOUBLING = 0.3  # of the times that WordNet's concordance tags the word in that sense
OBSCURE = -0.75  # beside artifacts, for an animal that is none of these and has no uses: a scooter is no duck
PROPER = -2  # for a sense of which WordNet spells the word with a capital, typed without
SEEN = 0.5  # for a sense that is a class of ImageNet, or above one: people take photos of it
COMPANY = 15  # for all of the information shared with the nearest labels
USUAL_IN_PHOTOS = 2.5  # for the senses below, which people photograph though no count of uses says so
EVERYDAY = {
    "plant": "n00017222",  # no factory
    "baby": "n09827683",  # a human one, who is born
    "kid": "n09917593",  # no goat
    "bank": "n02787772",  # the building, no slope
    "helmet": "n03513137",  # of a cyclist, no armor
    "glasses": "n04272054",  # to look through
    "ring": "n04092609",  # to wear
    "sponge": "n14597758",  # to wash with
    "toilet": "n04446521",  # the fixture, no room
    "plate": "n03959485",  # the dish, no sheet of metal
    "bowl": "n02881193",
    "cup": "n03147509",  # no punch
    "corn": "n07731952",  # to eat
    "kiwi": "n07763629",  # to eat
    "moon": "n09358226",
    "monitor": "n03782190",  # the display, no lizard
}
CLEAR = 2  # points that a sense is ahead of the next
USUAL = 0.2  # of the uses of a word; a sense with less of them is read under another name
UNTAGGED = 0.5  # uses that are added to those of each sense, so that one without any counts a little
CERTAIN = 0.6  # of the uses of another name: then it says which sense is meant
TELLING = 0.5  # information; what tells more counts no more: two poultry meats are no nearer than two birds
VAGUE = 0.15  # information; what tells less does not count: that both are objects
OF_PERSONS = 0.7  # of a person's company: beside `king`, a `cat` is no gossip, though both communicate
FEWEST = 2  # labels that make a company; a single one tells half as much: a dog beside a chair is no andiron
NEAREST = 3  # of the other labels are a label's company
FITS = 0.25  # information that a hint must share with a sense: in "crane#machine" both are devices
SLIPS = 20  # names that suggestions are looked for: a long list of strange names is no list of slips
ROUNDS = 5  # of choosing senses by the senses that the others have chosen


@dataclass(frozen=True)
class Meaning:
    """What a label stands for.

    Attributes:
        label: what is shown of it.
        text: the label as typed.
        names: what it is called; the first is its name.
        sense: WordNet's number of its sense ("n02012849"), or "" where WordNet does not know it.
        gloss: what WordNet says of that sense, where there was a choice.
        n_senses: how many senses its name has.
        kinds: names of what lies below it, most common first; those given by hand as given.
        by_hand: whether the kinds were given by hand.
        suggestions: names that it may be a slip for, where WordNet does not know it.
        without: names of kinds that were taken away by hand, with all that is below them.
        read: what an encoder reads in place of the first name, where that mostly means something else.
        head: of a phrase with adjectives, such as "black cat", the noun that it stands on; else "".
    """

    label: str
    text: str
    names: tuple[str, ...]
    sense: str
    gloss: str
    n_senses: int
    kinds: tuple[str, ...]
    by_hand: bool
    suggestions: tuple[str, ...]
    without: tuple[str, ...] = ()
    read: str = ""
    head: str = ""


def understand(
    labels: Mapping[str, Label],
    kinds: Kinds = "all",
    known: Known | None = None,
    most: int = 1000,
    *,
    by_noun: bool = False,
) -> list[Meaning]:
    """Find what labels mean, and their kinds.

    A sense that was given by hand stands. Else it is the most frequent one, with things that a photo can show before
    all else, unless another one is clearly nearer to what the other labels mean. A kind belongs to the nearest label
    above it, and a name is a kind of one label only.

    Args:
        labels: what `check_labels` gave.
        kinds: "all" of WordNet's, those that are "known", or "off": none but those by hand.
        known: says of names whether they are known, for kinds="known".
        most: how many of WordNet's kinds a label has at most, the most common ones.
        by_noun: whether a phrase with adjectives ("black cat") has the sense and the kinds of its noun, for an encoder
            that sees no more of it.

    >>> from outword.words.labels import check_labels
    >>> crane, heron = understand(check_labels(["crane", "heron"]), "off")
    >>> crane.gloss
    'large long-necked wading bird of marshes and plains in many parts of the world'
    >>> understand(check_labels(["Poodles"]))[0].kinds
    ('toy poodle', 'miniature poodle', 'standard poodle', 'large poodle')
    """
    one_of("kinds", kinds, get_args(Kinds))
    if kinds == "known" and known is None:
        raise ParameterError('kinds="known" needs to be told what is known', hint='pass known=..., or kinds="all"')
    net = nouns()
    phrases = [phrase_head(label.name) for label in labels.values()]
    choices = [_choices(label, head, by_noun=by_noun) for label, head in zip(labels.values(), phrases, strict=True)]
    fixed = [by_hint(label) for label in labels.values()]
    senses = by_company(_left_open([*labels.values()], choices, fixed))
    strange = [shown for shown, sense in zip(labels, senses, strict=True) if sense is None]
    slips = {shown: _slips(labels[shown].name) for shown in strange[:SLIPS]}
    for label, sense in zip(labels.values(), senses, strict=True):
        _check_without(label, sense)
    apart = [bool(head) for head in phrases]
    found = _kinds_of([*labels.values()], _own_senses(senses, apart), kinds, known, most)
    return [
        Meaning(
            label=shown,
            text=label.text,
            names=_spelled(shown, label, None if head else sense),
            sense="" if sense is None else net.wnid(sense),
            gloss="" if sense is None or len(every) < 2 else net.gloss(sense),
            n_senses=len(every),
            kinds=below,
            by_hand=bool(label.kinds),
            suggestions=slips.get(shown, ()),
            without=label.without,
            read=_reading(label, sense, every, head),
            head=head,
        )
        for (shown, label), every, sense, below, head in zip(
            labels.items(), choices, senses, found, phrases, strict=True
        )
    ]


def is_clear(meaning: Meaning) -> bool:
    """Whether nobody would take a label for anything else, so that its sense need not be said.

    >>> from outword.words.labels import check_labels
    >>> [is_clear(meaning) for meaning in understand(check_labels(["dog", "crane", "dog#frump"]), "off")]
    [True, False, False]
    """
    names = [meaning.head] if meaning.head else meaning.names
    (best, most), *others = [*choices_of(names).items()] or [(-1, 0.0)]
    next_best = max((points for _, points in others), default=0.0)
    return nouns().by_wnid(meaning.sense) == best and most - next_best >= CLEAR


def in_plain_words(gloss: str) -> str:
    """The first part of a gloss, without what is in brackets.

    >>> in_plain_words("(botany) a living organism; one that stays")
    'a living organism'
    """
    return re.sub(r"\s*\([^()]*\)", "", gloss).partition(";")[0].strip() or gloss


def last_words(name: str) -> str:
    """The longest end of a phrase that WordNet knows; "" where it knows none, or the whole.

    >>> last_words("red sports car"), last_words("dog food bowl"), last_words("dog")
    ('sports car', 'bowl', '')
    """
    words = name.split()
    return next((end for start in range(1, len(words)) if nouns().senses(end := " ".join(words[start:]))), "")


def phrase_head(name: str) -> str:
    """The noun that a phrase with adjectives stands on: the longest end that WordNet knows; "" where there is none.

    What WordNet has under that very name is no such phrase (a hot dog), nor is a kind of the noun (a brown bear). What
    it has under the phrase beside other names, as the fisher, which is also called black cat, does not count.

    >>> [phrase_head(name) for name in ("black cat", "big old chairs", "hot dog", "brown bear", "dog food", "cat")]
    ['cat', 'chairs', '', '', '', '']
    """
    words, head = name.split(), last_words(name)
    before = words[: len(words) - len(head.split())]
    if not head or not all(is_adjective(word) for word in before):
        return ""
    return "" if any(_is_called(sense, name, head) for sense in nouns().senses(name)) else head


def _is_called(sense: int, phrase: str, head: str) -> bool:
    """Whether a sense is a thing that a phrase names: under its first name, or as a kind of what its noun means."""
    net = nouns()
    if net.is_instance(sense):
        return False
    first = squeeze(net.names(sense)[0]) in spellings(phrase)
    return first or not {*lineage(sense)}.isdisjoint(net.senses(head))


def _choices(label: Label, head: str, *, by_noun: bool) -> dict[int, float]:
    """The senses that a label may have; of a phrase with adjectives those of its noun, or none."""
    if not head or label.others or label.hint:
        return choices_of(label.names)
    return choices_of([head]) if by_noun else {}


def _left_open(
    labels: Sequence[Label], choices: Sequence[dict[int, float]], fixed: Sequence[int | None]
) -> list[dict[int, float]]:
    """The senses that each label may still have: one by hand, or all but those that a label of the same name has."""
    taken = {(fold(label.name), sense) for label, sense in zip(labels, fixed, strict=True) if sense is not None}
    found = []
    for label, every, hand in zip(labels, choices, fixed, strict=True):
        free = {sense: points for sense, points in every.items() if (fold(label.name), sense) not in taken}
        found.append((free or every) if hand is None else {hand: 0.0})
    return found


def _own_senses(senses: Sequence[int | None], are_phrases: Sequence[bool]) -> list[int | None]:
    """The senses that labels take their kinds from: a phrase has none of a noun that is another label's, too."""
    counts = Counter(senses)
    return [
        None if is_phrase and counts[sense] > 1 else sense for sense, is_phrase in zip(senses, are_phrases, strict=True)
    ]


def _reading(label: Label, sense: int | None, choices: Mapping[int, float], head: str) -> str:
    """What says a sense better than the name of the label, if anything does: "computer mouse", "kiwi fruit".

    The name itself is best where it mostly means that sense. Where another sense is as usual, a synonym that has the
    name in it is taken; where the sense is rare and was given by hand, any synonym that means it; and what stands
    after # is added to the name where there is no such synonym. A phrase that WordNet knows as something else (a black
    cat is a fisher there) is read as its noun, where it has the sense of that.
    """
    if sense is None:
        return ""
    if head:
        return nouns().spelled(head) if nouns().senses(label.name) else ""
    shares = _shares(label.name)
    share, most = shares.get(sense, 0.0), max(shares.values(), default=0.0)
    is_everyday = EVERYDAY.get(label.name) == nouns().wnid(sense)
    is_default = not label.hint and not is_everyday and sense == next(iter(choices))
    if len(shares) < 2 or (share >= most and (is_default or [*shares.values()].count(most) == 1)):
        return ""
    others = [name for name in nouns().names(sense) if name.islower() and squeeze(name) not in spellings(label.name)]
    certain = [name for name in others if _shares(name).get(sense, 0.0) > CERTAIN]
    forms = {squeeze(form) for form in spellings(label.name)}
    longer = [name for name in certain if not forms.isdisjoint(name.split())]
    if longer or (label.hint and certain and share < USUAL):
        return (longer or certain)[0]
    return f"{label.name} {label.hint}" if label.hint.isalpha() and share < most else ""


def _shares(name: str) -> dict[int, float]:
    """Which share of the uses of a name each sense has that a photo can show, by WordNet's concordance."""
    net = nouns()
    physical = net.by_wnid(PHYSICAL)
    uses = {sense: tags for sense, tags in net.uses(name).items() if not net.is_instance(sense)}
    exact = {sense: tags for sense, tags in uses.items() if squeeze(name) in map(squeeze, net.names(sense))}
    uses = exact or uses  # glasses are no glass
    shown = {sense: tags for sense, tags in uses.items() if physical in lineage(sense)} or uses
    total = sum(tags + UNTAGGED for tags in shown.values())
    return {sense: (tags + UNTAGGED) / total for sense, tags in shown.items()}


def _slips(name: str) -> tuple[str, ...]:
    """What a name that WordNet does not know may be a slip for; nothing where its end is known, as in "red car"."""
    words = name.split()
    known = any(nouns().senses(" ".join(words[start:])) for start in range(1, len(words)))
    return () if known else tuple(suggestions(name))


def _spelled(shown: str, label: Label, sense: int | None) -> tuple[str, ...]:
    """The names of a label as WordNet spells them in its sense; labels that share a name are told apart by their hints.

    So shoes are a `shoe`, though WordNet has another `shoes`, and a `cardigan` is no Cardigan, which is a dog.
    """
    first, *others = (_spelled_as(name, sense) for name in label.names)
    return (f"{first} {label.hint}" if shown != label.name and label.hint.isalpha() else first), *others


def _spelled_as(name: str, sense: int | None) -> str:
    """A name as WordNet spells it in a sense, or else in any."""
    found = [] if sense is None else [own for own in nouns().names(sense) if squeeze(own) in spellings(name)]
    exact = [own for own in found if squeeze(own) == squeeze(name)]
    return (exact or found or [nouns().spelled(name)])[0]


def choices_of(names: Sequence[str]) -> dict[int, float]:
    """The senses that a label with these names may have, the likeliest first, with their points.

    What only has that name of its own (Crane, a poet) counts where there is nothing else. Senses that all names share
    go before those of the first name alone.
    """
    net = nouns()
    name, uses = next(((name, found) for name in names if (found := net.uses(name))), ("", {}))
    shared = [sense for sense in uses if all(sense in net.uses(other) for other in names)] or [*uses]
    kinds = [sense for sense in shared if not net.is_instance(sense)] or shared
    points = {sense: _points(sense, name, uses[sense]) for sense in kinds}
    if any(_sort_of(sense) == ARTIFACT for sense in kinds):
        obscure = [s for s in kinds if _sort_of(s) == ANIMAL and not uses[s] and s not in _photographed()]
        points |= {sense: points[sense] + OBSCURE for sense in obscure}
    return dict(sorted(points.items(), key=lambda pair: -pair[1]))


def _sort_of(sense: int) -> str:
    """The nearest of `IN_PHOTOS` at or above a sense; "" where there is none."""
    return next((wnid for at in lineage(sense) if (wnid := nouns().wnid(at)) in IN_PHOTOS), "")


def _points(sense: int, word: str, tags: int) -> float:
    """How likely a word means a sense, its company apart."""
    net, first = nouns(), nouns().names(sense)[0]
    seen = IN_PHOTOS.get(_sort_of(sense), NOT_IN_PHOTOS)
    named = squeeze(first) in spellings(word) and (first.islower() or not word.islower())
    has_kinds = bool(net.information[sense] < 1)
    is_everyday = net.wnid(sense) in {EVERYDAY.get(form) for form in spellings(word)}
    is_photographed = SEEN * (sense in _photographed()) + USUAL_IN_PHOTOS * is_everyday
    is_proper = word.islower() and not any(own.islower() for own in net.names(sense) if squeeze(own) in spellings(word))
    seen += PROPER * is_proper
    return seen + NAMED * named + WITH_KINDS * has_kinds + PER_DOUBLING * math.log2(1 + tags) + is_photographed


@cache
def _photographed() -> frozenset[int]:
    """ImageNet's classes and what lies above them."""
    return frozenset(nouns().visible().values())


def by_hint(label: Label) -> int | None:
    """The sense that a label has by hand, if any: `crane#2`, `crane#n02012849` or `crane#bird`; raises if none fits.

    A word fits a sense that has it among the names above (the nearest first), else one with it in the gloss, else the
    one that it shares most with, if that is much.
    """
    net, hint = nouns(), label.hint
    if not hint:
        return None
    if (sense := net.by_wnid(hint)) is not None:
        return sense
    senses = net.senses(label.name)
    if hint.isdecimal() and 1 <= int(hint) <= len(senses):
        return senses[int(hint) - 1]
    fits = {sense: fit for sense in senses if (fit := _fit(hint, sense)) is not None}
    if not fits:
        raise _no_such_sense(label, senses)
    return min(fits, key=lambda sense: fits[sense])


def _fit(hint: str, sense: int) -> tuple[int, float] | None:
    """How well a hint fits a sense, the smaller the better; None if it does not."""
    net, forms = nouns(), set(spellings(hint))
    for steps, above in enumerate(lineage(sense)[1:]):
        if any(squeeze(name) in forms for name in net.names(above)):
            return 0, steps
    if any(not forms.isdisjoint(numbers(word)) for word in re.findall(r"[\w'-]+", net.gloss(sense))):
        return 1, 0
    shared = max((_shared(sense, other) for other in choices_of([hint])), default=0.0)
    return (2, -shared) if shared >= FITS and not net.is_instance(sense) else None


def _no_such_sense(label: Label, senses: Sequence[int]) -> InputError:
    net = nouns()
    if not senses:
        return InputError(f"WordNet does not know {label.name!r}, got the hint {label.hint!r}", hint="leave it out")
    told = "; ".join(f"{label.name}#{i} ({net.gloss(sense)})" for i, sense in enumerate(senses, start=1))
    return InputError(f"no sense of {label.name!r} fits the hint {label.hint!r}", hint=f"write one of {told}")


def by_company(choices: Sequence[Mapping[int, float]]) -> list[int | None]:
    """One of each label's senses, given with points: the one with most of them, and its company counts too.

    How near a sense is to another label is the information of the most telling thing above both, for the nearest of
    that label's senses; how near to its company, the mean over the nearest labels.
    """
    current: list[tuple[int, ...]] = [tuple(senses) for senses in choices]
    for _ in range(ROUNDS):
        labels_at: dict[int, int] = {}  # a bit for each label with a sense there or below
        for bit, senses in enumerate(current):
            for at in {at for sense in senses for at in lineage(sense)}:
                labels_at[at] = labels_at.get(at, 0) | 1 << bit
        before, current = current, [_best(senses, 1 << i, labels_at) for i, senses in enumerate(choices)]
        if current == before:
            break
    return [senses[0] if senses else None for senses in current]


def _best(senses: Mapping[int, float], own: int, labels_at: Mapping[int, int]) -> tuple[int, ...]:
    """The sense with most points among the other labels than `own`, if there is one."""
    if len(senses) < 2:
        return tuple(senses)
    return (max(senses, key=lambda sense: senses[sense] + COMPANY * _nearness(sense, own, labels_at)),)


def _nearness(sense: int, own: int, labels_at: Mapping[int, int]) -> float:
    """Mean information that a sense shares with the nearest labels."""
    information, seen, found = nouns().information, own, list[float]()
    for at in sorted(lineage(sense), key=lambda at: -information[at]):
        new = labels_at.get(at, 0) & ~seen
        found += [max(0.0, min(float(information[at]), TELLING) - VAGUE)] * new.bit_count()
        seen |= new
        if len(found) >= NEAREST:
            break
    weight = OF_PERSONS if nouns().by_wnid(PERSON) in lineage(sense) else 1
    return weight * sum(found[:NEAREST]) / max(FEWEST, len(found[:NEAREST]))


@cache
def lineage(sense: int) -> tuple[int, ...]:
    """A sense and all above it."""
    return sense, *nouns().above(sense)


def _shared(one: int, other: int) -> float:
    """The information of the most telling sense at or above both."""
    return max((float(nouns().information[at]) for at in {*lineage(one)} & {*lineage(other)}), default=0.0)


def is_kind(words: Sequence[str], meanings: Sequence[Meaning]) -> list[bool]:
    """Which words are a label, or a kind of one: by name (`are_named`), or because that is what they mainly mean.

    What a word mainly means is its most frequent sense in WordNet, proper names apart: "toy" is no dog.
    """
    by_name = are_named(words, [name for meaning in meanings for name in (*meaning.names, *meaning.kinds)])
    inside = _inside(meanings)
    known = nouns().keys_of(inside)

    def means(word: str) -> bool:
        return not known.isdisjoint(numbers(word)) and bool(inside[_main_sense(word)])

    return [named or means(word) for word, named in zip(words, by_name, strict=True)]


def are_named(words: Sequence[str], names: Iterable[str]) -> list[bool]:
    """Which words are one of some names, as `drop_labels` compares them, or a phrase about one, such as "red hammer".

    What WordNet knows as a whole is no such phrase: a sea lion is no lion. lab/docs/world.md has what phrases cost that
    are about a label and compete with it.

    >>> are_named(["Hammers", "red hammer", "hammer on sand", "sea lion"], ["hammer", "lion"])
    [True, True, True, False]
    """
    taken = {form for name in names for form in spellings(name)}
    initials = {form[:1] for form in taken}

    def may_be(word: str) -> bool:
        """False for most words, by their first letter, which a plural has too; `taken` has all spellings."""
        first = word[:1].lower()
        plain = word.isascii() and first.isalnum() and not word.lower().startswith(ARTICLES)
        return first in initials or not plain

    def is_about(phrase: str) -> bool:
        several = len(phrase.split()) > 1 or "_" in phrase or not phrase.isascii()  # most are one word, about nothing
        return several and any(not taken.isdisjoint(numbers(h)) for h in heads(phrase)) and not _is_lemma(phrase)

    return [(may_be(word) and not taken.isdisjoint(numbers(word))) or is_about(word) for word in words]


def _is_lemma(phrase: str) -> bool:
    """Whether WordNet has a phrase as it is, in as many words: a yellow hammer is no yellowhammer, which is a bird.

    >>> _is_lemma("sea-lion"), _is_lemma("yellow hammer")
    (True, False)
    """
    net, spelled = nouns(), fold(phrase).replace("-", " ")
    return any(fold(name).replace("-", " ") == spelled for sense in net.senses(phrase) for name in net.names(sense))


def _main_sense(word: str) -> int:
    """The most frequent sense of a word that WordNet knows, proper names apart."""
    net, senses = nouns(), nouns().senses(word)
    return next((sense for sense in senses if not net.is_instance(sense)), senses[0])


def are_below(wnids: Sequence[str], meanings: Sequence[Meaning]) -> list[bool]:
    """Which senses, by their numbers, are that of a label, or of a kind of one."""
    inside = _inside(meanings)
    rows = [nouns().by_wnid(wnid) for wnid in wnids]
    return [row is not None and bool(inside[row]) for row in rows]


def are_above(wnids: Sequence[str], meanings: Sequence[Meaning]) -> list[bool]:
    """Which senses, by their numbers, are what a label is a kind of."""
    net = nouns()
    own = [net.by_wnid(meaning.sense) for meaning in meanings]
    above = {net.wnid(up) for sense in own if sense is not None for up in net.above(sense)}
    return [wnid in above for wnid in wnids]


def _inside(meanings: Sequence[Meaning]) -> NDArray[np.bool_]:
    """Whether each sense is at or below that of a label (n_senses,); with kinds by hand, at or below these.

    What is at or below a kind that was taken away is not.
    """
    net = nouns()
    own = [net.by_wnid(meaning.sense) for meaning in meanings if meaning.sense]
    theirs = [sense for meaning in meanings if meaning.by_hand for sense in _senses_by_hand(meaning.kinds)]
    taking = [m for m in meanings if m.sense and not m.by_hand]
    counted = [net.by_wnid(meaning.sense) for meaning in taking]
    owner, _ = net.spread([root for root in (*counted, *theirs) if root is not None])
    inside: NDArray[np.bool_] = owner >= 0
    for place, (meaning, root) in enumerate(zip(taking, counted, strict=True)):
        if meaning.without:
            gone, _ = net.spread(_below(root, meaning.without))
            inside[(owner == place) & (gone >= 0)] = False
    inside[[sense for sense in own if sense is not None]] = True
    return inside


def _below(sense: int | None, names: Sequence[str]) -> list[int]:
    """The senses of names that are kinds of a sense."""
    return [found for name in names for found in nouns().senses(name) if found != sense and sense in lineage(found)]


def _taken_away(sense: int | None, names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each sense goes with the kinds of these names, which were taken away from those of a sense (n_senses,).

    All below them does, whatever else it is a kind of, and so does what lies between them and the sense: a cat is a
    feline, so without cats the kinds of an animal are without felines as such.
    """
    net, away = nouns(), _below(sense, names)
    owner, _ = net.spread(away)
    gone: NDArray[np.bool_] = owner >= 0
    for kind in away:
        gone[[up for up in net.above(kind) if up != sense]] = True
    return gone


def _check_without(label: Label, sense: int | None) -> None:
    """Raise if a kind is taken away from a label that is none of its kinds."""
    for name in label.without:
        if not _below(sense, [name]):
            hint = f"take away a kind of it, or make the line {label.name!r}"
            raise InputError(f"{name!r} is no kind of {label.name!r}", hint=hint)


def _senses_by_hand(kinds: Sequence[str]) -> list[int]:
    """The senses of kinds given by hand, by the company that they keep."""
    return [sense for sense in by_company([choices_of([kind]) for kind in kinds]) if sense is not None]


def _roots_of(labels: Sequence[Label], senses: Sequence[int | None]) -> list[tuple[int, int]]:
    """The senses below which kinds of labels are, each with the place of its label."""
    roots = []
    for place, (label, sense) in enumerate(zip(labels, senses, strict=True)):
        own = _senses_by_hand(label.kinds) if label.kinds else [sense]
        roots += [(place, root) for root in own if root is not None]
    return roots


def _kinds_below(
    labels: Sequence[Label], senses: Sequence[int | None], roots: Sequence[tuple[int, int]]
) -> tuple[Ints, Ints]:
    """For all senses, the root that is nearest at or above, and how many steps; -1 steps for what was taken away."""
    owner, depth = nouns().spread([root for _, root in roots])
    labels_of = np.array([place for place, _ in roots], np.int64)
    for place, (label, sense) in enumerate(zip(labels, senses, strict=True)):
        if label.without:
            own = np.isin(owner, np.flatnonzero(labels_of == place))
            depth[own & _taken_away(sense, label.without)] = -1
    return owner, depth


def _kinds_of(
    labels: Sequence[Label], senses: Sequence[int | None], kinds: Kinds, known: Known | None, most: int
) -> list[tuple[str, ...]]:
    """The kinds of each label."""
    if kinds == "off":
        return [label.kinds for label in labels]
    net, taken = nouns(), {squeeze(name) for label in labels for name in (*label.names, *label.kinds)}
    roots = _roots_of(labels, senses)
    owner, depth = _kinds_below(labels, senses, roots)
    visible = net.visible()
    found: list[tuple[int, str, int]] = []
    for sense in net.by_use(np.flatnonzero(depth > 0), depth).tolist():
        place, name = roots[owner[sense]][0], net.names(sense)[0]
        seen = visible.get(name, sense)  # what a photo of that name shows: of a drum, no fish
        is_shown = owner[seen] == owner[sense] and depth[seen] >= 0
        if is_shown and not labels[place].kinds and (key := squeeze(name)) not in taken:
            taken.add(key)
            found.append((place, name, owner[sense]))
    if kinds == "known" and known is not None:
        are_known = known([name for _, name, _ in found])
        found = [one for one, is_known in zip(found, are_known, strict=True) if is_known]
    below: list[list[str]] = [list(label.kinds) for label in labels]
    for place, name, root in found:
        if len(below[place]) < most and owner[next(iter(choices_of([name])))] == root:  # a pillar is no person
            below[place].append(name)
    return [tuple(names if label.kinds else names[:most]) for label, names in zip(labels, below, strict=True)]


def has_unused_kinds(meaning: Meaning) -> bool:
    """Whether WordNet has kinds of a label, and none of them counts.

    >>> from outword.words.labels import check_labels
    >>> [has_unused_kinds(understand(check_labels(["bird"]), kinds)[0]) for kinds in ("all", "off")]
    [False, True]
    """
    if meaning.kinds or meaning.by_hand or not meaning.sense:
        return False
    sense = nouns().by_wnid(meaning.sense)
    return sense is not None and bool(nouns().information[sense] < 1)
