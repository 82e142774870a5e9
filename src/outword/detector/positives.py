"""What stands for the labels, names and kinds as rows, which label each belongs to, and the words that compete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from outword.base.reports import Report, quiet
from outword.base.terms import Familiarity, Flag, familiarity, is_known, read_flag
from outword.detector.recipe import Recipe
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import InputError
from outword.maths.methods import DETECTORS, Need
from outword.vectors.names import are_known, name_vectors, rival_names
from outword.vectors.names import coverage as coverage_of
from outword.vectors.wild import encode_words, mine
from outword.words.corpora import THINGS, is_named, senses_of_things
from outword.words.forms import fold
from outword.words.kinds import Kinds, Meaning, are_above, are_below, are_named, is_kind, understand
from outword.words.labels import Label
from outword.words.nouns import nouns
from outword.words.prompts import Prompts
from outword.words.worn import is_of_persons, means_persons, worn_names


@dataclass(frozen=True, eq=False)
class Positives:
    """Rows of names, (n_rows, dim) vectors, and the label of each; `owners` is None where every row is a label."""

    meanings: list[Meaning]
    rows: list[str]
    owners: NDArray[np.int64] | None
    vectors: Vectors


def label_coverage(encoder: Encoder, labels: Mapping[str, Label]) -> dict[str, Flag]:
    """How well the encoder knows each label, under its best known name or kind by hand; empty where it cannot tell."""
    meanings = _well_read(encoder, understand(labels, "off", by_noun=True))
    names = {meaning.label: _read_names(meaning) for meaning in meanings}
    told = coverage_of(encoder, [name for some in names.values() for name in some])
    flags = iter(read_flag(one.flag) for one in told)
    return {shown: min((next(flags) for _ in some), key=_rank) for shown, some in names.items()} if told else {}


def _well_read(encoder: Encoder, meanings: Sequence[Meaning]) -> list[Meaning]:
    """Labels that an encoder reads under another name only where it knows that as well as their own."""
    changed = [meaning for meaning in meanings if meaning.read]
    flags = [
        read_flag(one.flag) for one in coverage_of(encoder, [name for m in changed for name in (m.names[0], m.read)])
    ]
    worse = {
        meaning.label
        for meaning, own, other in zip(changed, flags[::2], flags[1::2], strict=False)
        if _rank(other) > _rank(own)
    }
    return [replace(meaning, read="") if meaning.label in worse else meaning for meaning in meanings]


def _rank(flag: Flag) -> int:
    return get_args(Familiarity).index(familiarity(flag))


def make_positives(
    recipe: Recipe, labels: Mapping[str, Label], coverage: Mapping[str, Flag], report: Report = quiet
) -> Positives:
    """Find what the labels mean, and encode their names and kinds.

    A method that learns the classes of ID images has one row a label, for all of its names.
    """
    meanings = understand(
        labels,
        kinds_in_use(recipe, coverage),
        lambda names: are_known(recipe.encoder, names),
        by_noun=bool(coverage),
    )
    meanings = _well_read(recipe.encoder, meanings)
    if recipe.kinds in ("auto", "known"):
        meanings = _with_what_is_worn(recipe.encoder, meanings, coverage)
    if Need.ID_LABELS in recipe.wants:
        sentences = row_sentences(recipe, labels, meanings)
        return Positives(meanings, list(labels), None, encode_words(recipe.encoder, sentences, report))
    named = [[*meaning.names, *meaning.kinds] for meaning in meanings]
    rows = [name for names in named for name in names]
    read = [name for meaning in meanings for name in _read_names(meaning)]
    vectors = name_vectors(recipe.encoder, recipe.prompts, read, report)
    first = np.cumsum([0, *map(len, named[:-1])])
    for place, label in zip(first, labels.values(), strict=True):
        if label.prompt:
            vectors[place] = encode_words(recipe.encoder, [[label.prompt]], report)[0]
    if len(rows) == len(meanings):
        return Positives(meanings, [meaning.label for meaning in meanings], None, vectors)
    return Positives(meanings, rows, np.repeat(np.arange(len(named)), [*map(len, named)]), vectors)


def _with_what_is_worn(encoder: Encoder, meanings: Sequence[Meaning], coverage: Mapping[str, Flag]) -> list[Meaning]:
    """Give a label of persons that the encoder does not know the names of what people wear as kinds.

    Else these names compete with it, and win on every photo of a person. Names that are about another label stay out;
    where several labels are of persons, clothes cannot tell them apart, and none gets any.
    """
    persons = [one for one in meanings if is_of_persons(one)]
    if len(persons) != 1 or not means_persons(persons[0]):
        return list(meanings)
    flag = coverage.get(persons[0].label)
    if flag is None or is_known(flag):
        return list(meanings)
    worn, others = worn_names(), [one for one in meanings if one is not persons[0]]
    kin = kin_of([*worn], [*worn.values()], others)
    known = are_known(encoder, [*worn])
    kinds = [name for name, is_kin, is_seen in zip(worn, kin, known, strict=True) if is_seen and not is_kin]
    own = replace(persons[0], kinds=tuple(dict.fromkeys([*persons[0].kinds, *kinds])))
    return [own if one is persons[0] else one for one in meanings]


def row_sentences(recipe: Recipe, labels: Mapping[str, Label], meanings: Sequence[Meaning]) -> list[list[str]]:
    """What the encoder reads of each row: names and kinds in all templates, or a label's own prompt for its name."""
    if Need.ID_LABELS in recipe.wants:
        return [_sentences(label, recipe.prompts) for label in labels.values()]
    found = []
    for meaning, label in zip(meanings, labels.values(), strict=True):
        names = _read_names(meaning)
        of_names = [list(texts) for texts in recipe.prompts.render(names, ["label"] * len(names))]
        found += [[label.prompt], *of_names[1:]] if label.prompt else of_names
    return found


def _read_names(meaning: Meaning) -> list[str]:
    """The names and kinds of a label as an encoder reads them."""
    first, *others = meaning.names
    return [meaning.read or first, *others, *meaning.kinds]


def kinds_in_use(recipe: Recipe, coverage: Mapping[str, Flag]) -> Kinds:
    """Which kinds labels are given: "auto" is for the known ones where the encoder tells, else for all."""
    if recipe.kinds != "auto":
        return recipe.kinds
    return "known" if coverage else "all"


def _sentences(label: Label, prompts: Prompts) -> list[str]:
    """What the encoder reads of a label: its own prompt, or its names in all templates."""
    rendered = prompts.render(label.names, ["label"] * len(label.names))
    return [label.prompt] if label.prompt else [text for texts in rendered for text in texts]


@dataclass(frozen=True, eq=False)
class Competitors:
    """Wild words, best first, and their (n_words, dim) vectors; no words and None where the method wants none.

    `left_out` are mined words that are about a label; the fingerprint is that of all that the mined words depend on.
    """

    words: list[str]
    vectors: NDArray[np.float16] | None
    left_out: tuple[str, ...] = ()
    fingerprint: str = ""


def make_wild(recipe: Recipe, positives: Positives, report: Report = quiet) -> Competitors:
    """The words that compete with the labels.

    Words that equal a label or are phrases about one are, and where labels have kinds, words that are kinds of one.
    For a method that says so (`VectorDetector.rivals`) the names of what photos can show that are no kin of a label
    come first, and mined words fill up to as many as were mined. From the corpus of these names nothing is mined, and
    a word list of the user's is taken as it is.
    """
    if recipe.corpus is None:
        return Competitors([], None)
    if recipe.corpus.name == THINGS and DETECTORS[recipe.method].rivals:
        rivals = _rivals(recipe, positives)
        vectors = name_vectors(recipe.encoder, recipe.prompts, rivals, report).astype(np.float16)
        return Competitors(rivals, vectors, (), recipe.corpus.fingerprint)
    mined = mine(recipe.encoder, recipe.corpus, recipe.prompts, recipe.make_miner(), positives.vectors, report)
    kept, left_out = _dropped(recipe, positives, mined.words)
    compete = DETECTORS[recipe.method].rivals and is_named(recipe.corpus.name)
    rivals = _rivals(recipe, positives) if compete else []
    taken = set(map(fold, rivals))
    kept = [i for i in kept if fold(mined.words[i]) not in taken][: max(0, len(mined.words) - len(rivals))]
    if not rivals and not kept:
        raise InputError(
            f"{recipe.method} is left without words: the miner keeps {len(mined.words)} of {len(recipe.corpus)} in "
            f"{recipe.corpus.name}, and {len(left_out)} of them are about a label",
            hint="give a longer list, --miner all, or --keep-label-words",
        )
    vectors = mined.vectors[kept]
    if rivals:
        own = name_vectors(recipe.encoder, recipe.prompts, rivals, report).astype(np.float16)
        vectors = np.concatenate([own, vectors])
    words = [*rivals, *(mined.words[i] for i in kept)]
    return Competitors(words, vectors, tuple(left_out), mined.fingerprint)


def _dropped(recipe: Recipe, positives: Positives, words: Sequence[str]) -> tuple[list[int], list[str]]:
    """Indices of the words that are kept, and the words that are not."""
    if recipe.keep_label_words:
        return list(range(len(words))), []
    if positives.owners is None:
        kin = are_named(words, [name for meaning in positives.meanings for name in meaning.names])
    else:
        kin = is_kind(words, positives.meanings)
    return [i for i, left in enumerate(kin) if not left], [word for word, left in zip(words, kin, strict=True) if left]


def _rivals(recipe: Recipe, positives: Positives) -> list[str]:
    """The names of what photos can show that the encoder knows and that are no kin of a label."""
    senses = senses_of_things()
    names = rival_names(recipe.encoder)
    kin = kin_of(names, [senses[name] for name in names], positives.meanings)
    return [name for name, is_kin in zip(names, kin, strict=True) if not is_kin]


def kin_of(names: Sequence[str], senses: Sequence[int], meanings: Sequence[Meaning]) -> list[bool]:
    """Which names, of these senses, are a label's names, or a kind of one, or what a label is a kind of."""
    wnids = [nouns().wnid(sense) for sense in senses]
    related = is_kind(names, meanings), are_below(wnids, meanings), are_above(wnids, meanings)
    return [any(of_name) for of_name in zip(*related, strict=True)]
