"""Encoding a corpus: progress, and a run that was killed goes on where it was."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from outword.base.cache import cache_dir
from outword.encoders import get_encoder
from outword.errors import ParameterError
from outword.mining import Density
from outword.vectors import wild
from outword.words.corpora import get_corpus
from outword.words.prompts import get_prompts


class Counting:
    """An encoder that counts the texts it gets, and may stop at one of them."""

    def __init__(self, stop_at=10**9):
        self._inner = get_encoder("mini")
        self.fingerprint, self.text_fingerprint, self.dim = "c" * 64, None, self._inner.dim
        self.texts, self.stop_at = 0, stop_at

    def encode_texts(self, texts):
        self.texts += len(texts)
        if self.texts > self.stop_at:
            raise KeyboardInterrupt
        return self._inner.encode_texts(texts)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(wild, "CHUNK", 10)
    monkeypatch.setattr(wild, "PART", 40)
    path = tmp_path / "words.txt"
    path.write_text("\n".join(f"thing {i}" for i in range(130)))
    return get_corpus(path)


def test_an_interrupted_run_goes_on_where_it_was(corpus):
    prompts, seen = get_prompts("a photo of a {}"), []
    with pytest.raises(KeyboardInterrupt):
        wild.encoded_corpus(Counting(stop_at=95), corpus, prompts)
    rest = Counting()
    vectors = wild.encoded_corpus(rest, corpus, prompts, lambda *report: seen.append(report))
    assert rest.texts == 130 - 80  # two whole parts were kept
    assert seen[0] == ("words of words.txt", 90, 130)
    assert seen[-1] == ("words of words.txt", 130, 130)
    again = Counting()
    np.testing.assert_array_equal(wild.encoded_corpus(again, corpus, prompts), vectors)
    assert again.texts == 0
    whole = wild.encode_words(Counting(), prompts.render(corpus.words, corpus.kinds))
    np.testing.assert_allclose(vectors, whole, atol=1e-6)
    assert [path.suffix for path in (cache_dir() / "corpus").iterdir()] == [".safetensors"]


def test_a_damaged_part_is_made_again(corpus):
    prompts = get_prompts("a photo of a {}")
    with pytest.raises(KeyboardInterrupt):
        wild.encoded_corpus(Counting(stop_at=95), corpus, prompts)
    first = min((cache_dir() / "corpus").glob("*.part"))
    first.write_bytes(first.read_bytes()[:100])
    rest = Counting()
    assert len(wild.encoded_corpus(rest, corpus, prompts)) == 130
    assert rest.texts == 130 - 40


def test_a_shipped_ranking_needs_no_corpus():
    encoder, corpus = get_encoder("mini"), get_corpus("wordnet")
    unread = replace(corpus, read=lambda: pytest.fail("WordNet was read"))
    found = wild.mine(encoder, unread, get_prompts(encoder.prompts), Density(), np.zeros((0, encoder.dim)))
    assert len(found.words) == len(found.vectors) == len(set(found.words)) == 12_000
    assert set(found.words) <= set(corpus.words)


SCRIPT = """
import os, signal
from outword.vectors import wild
from outword.words.corpora import get_corpus
from outword.encoders import get_encoder
from outword.words.prompts import get_prompts
wild.CHUNK, wild.PART = 10, 40
def report(task, done, total):
    if done >= 90:
        os.kill(os.getpid(), signal.SIGKILL)
wild.encoded_corpus(get_encoder("mini"), get_corpus({path!r}), get_prompts("a photo of a {{}}"), report)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_goes_on_where_it_was(corpus, tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(path=str(tmp_path / "words.txt"))], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    seen = []
    prompts = get_prompts("a photo of a {}")
    wild.encoded_corpus(get_encoder("mini"), corpus, prompts, lambda *report: seen.append(report))
    assert seen[0] == ("words of words.txt", 90, 130)


def test_parts_are_smaller_where_words_have_many_sentences(corpus, monkeypatch):
    monkeypatch.setattr(wild, "PART", 80)
    with pytest.raises(KeyboardInterrupt):
        wild.encoded_corpus(Counting(stop_at=8 * 30), corpus, get_prompts("csp"))
    rest = Counting()
    wild.encoded_corpus(rest, corpus, get_prompts("csp"))
    assert rest.texts == 8 * (130 - 30)  # parts of ten words, three of which were kept


def test_one_ranking_serves_every_size(corpus, monkeypatch):
    encoder = Counting()
    wild.mine(encoder, corpus, get_prompts("mcm"), Density(alpha=2, size=4), np.zeros((0, 4)))
    fresh = Density(alpha=2, size=7).select(wild.encoded_corpus(encoder, corpus, get_prompts("mcm")))
    monkeypatch.setattr("outword.maths.mining.density.neighbour_density", lambda *a, **k: pytest.fail("ranked again"))
    again = wild.mine(encoder, corpus, get_prompts("mcm"), Density(alpha=2, size=7), np.zeros((0, 4)))
    assert again.words == tuple(corpus.words[i] for i in fresh)
    with pytest.raises(ParameterError, match="size must be"):
        wild.mine(encoder, corpus, get_prompts("mcm"), Density(alpha=2, size=0), np.zeros((0, 4)))
