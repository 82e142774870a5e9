"""The tokenizer in plain Python agrees with the `tokenizers` library."""

import string
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from outword.encoders.mini.encoder import DATA, MAX_TOKENS
from outword.encoders.mini.wordpiece import WordPiece
from outword.words.corpora import get_corpus

VOCAB = (DATA / "vocab.txt").read_text(encoding="utf-8").split("\n")
OURS = WordPiece(VOCAB, MAX_TOKENS)
ODD = [
    "", " ", "\t\n\r", "a photo of a tabby cat", "Crème brûlée", "naïve façade", "ΣΑΣ Ὀδυσσεύς", "İstanbul", "Straße ẞ",
    "ﬁne", "漢字と仮名", "한국어", "हिन्दी", "ไทย", "مرحبا", "\U0001f469\u200d\U0001f467 ok",
    "a\x00b\u200bc\ufeffd\xadx", "\ufffd", "x" * 100, "x" * 101, "é" * 101, "don't", "$5+3=8^2`~|<>", "a_b-c/d",
    "1,000.5", "“quoted”—dash…", "a\x0bb\x1fc\x85d", "\u2028\u00a0\u3000wide", "[CLS", "##ing", "𝔘𝔫𝔦", "cat " * 300,
]  # fmt: skip


@pytest.fixture(scope="module")
def theirs():
    ids = {piece: i for i, piece in enumerate(VOCAB)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


@pytest.mark.parametrize("text", ODD)
def test_odd_texts(theirs, text):
    assert OURS.encode(text) == theirs.encode(text).ids


def test_wordnet(theirs):
    words = list(get_corpus("wordnet").words)[::7]
    assert [OURS.encode(w) for w in words] == [e.ids for e in theirs.encode_batch(words)]


# The library carries its own, older Unicode tables: only characters whose category is that of Unicode 3.2 are compared.
OLD = "".join(
    c
    for c in map(chr, range(0x30000))
    if unicodedata.category(c) == unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs")
)


@settings(max_examples=500, deadline=None)
@given(st.text(st.one_of(st.sampled_from(OLD), st.sampled_from(string.printable)), max_size=60))
def test_any_text(theirs, text):
    assert OURS.encode(text) == theirs.encode(text).ids
