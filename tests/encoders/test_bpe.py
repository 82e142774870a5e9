"""CLIP's tokenizer in plain Python agrees with open_clip's and with that of transformers."""

import json
import string
import unicodedata

import ftfy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.tiny import open_clip, transformers
from outword.encoders.bpe import Bpe, is_clip, layout
from outword.encoders.tidy_text import canonicalize, lower, tidy
from outword.words.corpora import get_corpus

SIMPLE = open_clip.SimpleTokenizer()
START, END = "<start_of_text>", "<end_of_text>"
LAYOUT = layout(SIMPLE.encoder, list(SIMPLE.bpe_ranks), START, END)
OURS = Bpe(LAYOUT)
RENAMED = {START: "<|startoftext|>", END: "<|endoftext|>"}
ODD = [
    "", " ", "\t\n\r", "a photo of a cat", "Crème brûlée", "naïve façade", "Cafe\u0301", "ΣΑΣ Ὀδυσσεύς", "İstanbul",
    "Straße ẞ", "ﬁne ﬂuﬀ", "漢字と仮名", "한국어", "हिन्दी", "ไทย", "مرحبا", "\U0001f469\u200d\U0001f467 ok",
    "x" * 200, "don't we'll they've I'm he'd it's you're", "DON'T", "'tis 'S '", "$5+3=8^2`~|<>", "a_b-c/d", "!!!",
    "1,000.5 ½ ²", "—dash…", "\u00a0wide", "𝔘𝔫𝔦", "cat " * 300, "<b>bold</b>", "AT&T", "R&amp;D", "#hash @at",
]  # fmt: skip
FIXED = [  # by ftfy, which open_clip runs first
    "it’s “fine”", "Ｃａｆｅ ｶﾅ", "&lt;b&gt; &eacute; &#233; &amp;", "a\u200bb\ufeffc\x00d", "Ǆ Ĳ ŉ ﬅ", "x\x85y\x92",
]  # fmt: skip
# The libraries carry their own Unicode tables: only characters whose category is that of Unicode 3.2 are compared.
OLD = "".join(
    c
    for c in map(chr, range(0x30000))
    if unicodedata.category(c) == unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs")
)
TEXTS = st.text(st.one_of(st.sampled_from(OLD), st.sampled_from(string.printable), st.sampled_from("'sStdRE ")))


@pytest.fixture(scope="module")
def theirs():
    vocab = {RENAMED.get(piece, piece): i for piece, i in SIMPLE.encoder.items()}
    return transformers.CLIPTokenizer(vocab=vocab, merges=list(SIMPLE.bpe_ranks))


@pytest.fixture(scope="module")
def ours_of_theirs(theirs):
    data = json.loads(theirs.backend_tokenizer.to_str())
    assert is_clip(data)
    return Bpe(data)


def simple(text):
    return [SIMPLE.sot_token_id, *SIMPLE.encode(text), SIMPLE.eot_token_id]


def sound(text):
    """Whether ftfy finds nothing that was decoded with a wrong encoding."""
    return ftfy.fix_text(text) == ftfy.fix_text(text, fix_encoding=False)


def test_known_ids():
    assert OURS.encode(lower("a photo of a cat")) == [49406, 320, 1125, 539, 320, 2368, 49407]
    assert OURS.encode(lower("A Diagram!")) == [49406, 320, 22697, 256, 49407]
    assert OURS.encode("") == [49406, 49407]


@pytest.mark.parametrize("text", [*ODD, *FIXED])
def test_odd_texts(text, theirs, ours_of_theirs):
    assert OURS.encode(lower(text)) == simple(text)
    assert ours_of_theirs.encode(text) == theirs(text)["input_ids"]


def test_wordnet(theirs, ours_of_theirs):
    words = [f"the nice {word}" for word in get_corpus("wordnet").words[::23]]
    assert [OURS.encode(lower(word)) for word in words] == [simple(word) for word in words]
    assert [ours_of_theirs.encode(word) for word in words] == theirs(words)["input_ids"]


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_any_text_as_open_clip(text):
    assume(sound(text))
    assume("ſ" not in text and "\u0345" not in text)  # there a long s ends a contraction, and this mark is a letter
    assert OURS.encode(lower(text)) == simple(text)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_any_text_as_transformers(text, theirs, ours_of_theirs):
    assert ours_of_theirs.encode(text) == theirs(text)["input_ids"]


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_nothing_is_too_odd(text):
    ids = OURS.encode(lower(text))
    assert (ids[0], ids[-1]) == (OURS.start, OURS.end)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_cleaning_as_open_clip(text):
    assume(sound(text))
    assert tidy(text) == open_clip.tokenizer.get_clean_fn("whitespace")(text)
    assert canonicalize(text) == open_clip.tokenizer.get_clean_fn("canonicalize")(text)


def test_the_file_is_one_that_tokenizers_reads():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(LAYOUT))
    assert all(tokenizer.encode(lower(text)).ids == OURS.encode(lower(text)) for text in ODD)


@pytest.mark.parametrize(
    "change",
    [
        {"model": {**LAYOUT["model"], "end_of_word_suffix": None}},
        {"model": {**LAYOUT["model"], "vocab": {"a": 0}}},
        {"normalizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"post_processor": None},
    ],
)
def test_other_tokenizers_are_told_apart(change):
    assert is_clip(LAYOUT)
    assert not is_clip({**LAYOUT, **change})
