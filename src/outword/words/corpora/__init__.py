"""The words that wild labels are drawn from: sets of WordNet's lemmas, or any text file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from outword.base.files import PathLike
from outword.base.registry import Registry
from outword.errors import InputError, ParameterError
from outword.words.corpora.corpus import Corpus, conjugate, make_corpus, read_corpus
from outword.words.corpora.things import THINGS, senses_of_things, things
from outword.words.corpora.wordnet import LEXFILES, SETS, named_corpus

__all__ = [
    "CORPORA",
    "LEXFILES",
    "THINGS",
    "Corpus",
    "get_corpus",
    "is_named",
    "make_corpus",
    "senses_of_things",
]

CONJUGATED = "conjugated:"
CORPORA: Registry[Callable[[], Corpus]] = Registry("corpus", "outword.corpora", "outword list corpora")
for _name, _set in SETS.items():
    CORPORA.register(_name, _set.about)(partial(named_corpus, _name))
CORPORA.register(THINGS, "names of what photos can show: the default where no mined words come with the encoder")(
    things
)


def get_corpus(name_or_path: PathLike, *, exclude_files: Iterable[str] | None = None) -> Corpus:
    """Give a named corpus (a key of `CORPORA`), or the words of a UTF-8 text file with one word a line.

    A name wins over a file of the same name; write `./wordnet` for the file. `conjugated:NAME` is the corpus NAME with
    its adjectives joined to broad nouns (see `conjugate`). One of WordNet's may leave out its lexicographer files (of
    `LEXFILES`); a word that is also filed elsewhere stays.

    >>> corpus = get_corpus("wordnet", exclude_files=["noun.plant"])
    >>> "raccoon" in corpus.words, "oak tree" in corpus.words
    (True, False)
    """
    if isinstance(exclude_files, str):
        hint = f'write exclude_files=["{exclude_files}"]'
        raise ParameterError(f"exclude_files must be a list of file names, got the text {exclude_files!r}", hint=hint)
    try:
        name = os.fspath(name_or_path)
    except TypeError:
        got, hint = type(name_or_path).__name__, "write one word a line into a file"
        raise InputError(f"a corpus must be a name or a text file, got {got}", hint=hint) from None
    if isinstance(name_or_path, str) and name.startswith(CONJUGATED):
        return conjugate(get_corpus(_unconjugated(name), exclude_files=exclude_files))
    if isinstance(name_or_path, str) and name in SETS:
        return named_corpus(name, exclude_files or ())
    if isinstance(name_or_path, str) and name in CORPORA:
        if exclude_files:
            hint = f"leave exclude_files out; it is for {', '.join(SETS)}"
            raise ParameterError(f"exclude_files is for WordNet's corpora, got it with {name}", hint=hint)
        return CORPORA[name]()
    path = Path(name)
    if not path.exists() and (path.suffix or os.sep in name):
        raise InputError(f"there is no corpus file {name}", hint="write one word a line into it")
    if not path.exists():
        raise CORPORA.unknown(name)
    if exclude_files:
        hint = "leave exclude_files out, or remove those words from the file"
        raise ParameterError(f"exclude_files is for named corpora, got it with the text file {path}", hint=hint)
    return read_corpus(path)


def is_named(name: str) -> bool:
    """Whether a corpus comes with this package or another, rather than from a text file.

    >>> is_named("conjugated:wordnet"), is_named("words.txt")
    (True, False)
    """
    return name.removeprefix(CONJUGATED) in CORPORA


CORPORA.register(
    f"{CONJUGATED}NAME", 'another of these, its adjectives joined to broad nouns ("fluffy scene"); CSP\'s pool'
)(partial(get_corpus, f"{CONJUGATED}wordnet"))


def _unconjugated(name: str) -> str:
    """The NAME of `conjugated:NAME`."""
    rest = name.removeprefix(CONJUGATED)
    if not rest or rest.startswith(CONJUGATED):
        hint = f"for example {CONJUGATED}wordnet"
        raise ParameterError(f'after "{CONJUGATED}" one corpus must be named, got "{name}"', hint=hint)
    return rest
