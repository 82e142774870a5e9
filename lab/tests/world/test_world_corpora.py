"""The words of the world as corpora."""

import pytest

from outword.errors import ParameterError
from outword.words.corpora import CORPORA, get_corpus
from outword_lab.corpora import WORLD


def test_they_come_after_those_of_the_product():
    names = [name for name in CORPORA if not name.startswith("vectors:")]  # of folders that other tests measured
    assert [name for name in names if name in WORLD] == [*WORLD] == names[-len(WORLD) :]


def test_the_corpora_of_the_world():
    every, nouns, looks = (get_corpus(name) for name in ("world", "world-nouns", "world-looks"))
    assert {*nouns.words, *looks.words} < {*every.words}
    assert not {*nouns.words} & {*looks.words}
    assert {"hammer", "musical instrument"} < {*nouns.words} and set(nouns.kinds) == {"noun"}
    assert {"red", "striped", "sand", "red thing", "empty scene in water"} < {*looks.words}
    assert {word for word, kind in looks.read() if kind == "adj"} >= {"red", "dotted"}
    assert {kind for word, kind in every.read() if " " in word or word == "sand"} == {"noun"}
    with pytest.raises(ParameterError, match="exclude_files is for WordNet's corpora, got it with world"):
        get_corpus("world", exclude_files=["noun.plant"])
