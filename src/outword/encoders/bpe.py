"""CLIP's tokenizer in plain Python: lower case, split into words, each word into the pieces of byte-pair encoding.

A text is composed (NFC), its blanks are joined and its letters made small. It is split into contractions ('s, 't, 're,
've, 'm, 'll, 'd), runs of letters, single digits, and runs of anything else but blanks. A word is written in 256
printable characters, one a byte of its UTF-8, the last one marked as the end of the word; then the pair of neighbours
that comes first in the list of merges is joined, again and again, until no pair is in the list.

Equal to open_clip's `SimpleTokenizer` behind `tidy_text.lower`, and to the CLIP tokenizer of transformers,
but for characters that are newer than Python's Unicode tables and texts that spell out a special token.

Reference: Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

END_OF_WORD = "</w>"
BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_ONE_BLANK = re.compile(f"[{BLANKS}]+")
_CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
_RUNS = re.compile("L+|N|O+")


class Bpe:
    """Texts to token ids, from what a `tokenizer.json` of CLIP (see `is_clip`) in the layout of Hugging Face holds."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._ids: dict[str, int] = data["model"]["vocab"]
        merges = (tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in data["model"]["merges"])
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._special: dict[str, int] = {token["content"]: token["id"] for token in data["added_tokens"]}
        self._whole = re.compile("|".join(map(re.escape, (*self._special, *_CONTRACTIONS))))
        self.start, self.end = (data["post_processor"][key][1] for key in ("cls", "sep"))
        self._pieces = lru_cache(maxsize=1 << 16)(self._merged)

    def encode(self, text: str) -> list[int]:
        """Token ids of one text, with start and end, however long it is."""
        return [self.start, *(i for word in self._words(normal(text)) for i in self._pieces(word)), self.end]

    def _words(self, text: str) -> Iterator[str]:
        kinds = "".join(map(_kind, text))
        at = 0
        while at < len(text):
            found = self._whole.match(text, at) or _RUNS.match(kinds, at)
            if found:
                yield text[at : found.end()]
            at = found.end() if found else at + 1

    def _merged(self, word: str) -> list[int]:
        """The ids of one word."""
        if word in self._special:
            return [self._special[word]]
        parts = [BYTES[byte] for byte in word.encode("utf-8", errors="replace")]
        parts[-1] += END_OF_WORD
        while len(parts) > 1:
            first = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if first not in self._ranks:
                break
            parts = list(joined(parts, first))
        return [self._ids[part] for part in parts]


def is_clip(data: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` asks for exactly what this module does."""
    try:
        model, steps = data["model"], data["normalizer"]["normalizers"]
        split, to_bytes = data["pre_tokenizer"]["pretokenizers"]
        return bool(
            (model["type"], model["end_of_word_suffix"]) == ("BPE", END_OF_WORD)
            and [step["type"] for step in steps] == ["NFC", "Replace", "Lowercase"]
            and (split["type"], to_bytes["type"]) == ("Split", "ByteLevel")
            and split["pattern"]["Regex"].endswith(_PATTERN)
            and data["post_processor"]["type"] == "RobertaProcessing"
            and {char + mark for char in BYTES.values() for mark in ("", END_OF_WORD)} <= set(model["vocab"])
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def layout(vocab: Mapping[str, int], merges: list[tuple[str, str]], start: str, end: str) -> dict[str, Any]:
    """A `tokenizer.json` for CLIP's tokenizer, which the `tokenizers` library reads too."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    blanks = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
    special = "|".join(map(re.escape, (start, end)))
    split = {"type": "Split", "pattern": {"Regex": f"{special}|{_PATTERN}"}, "behavior": "Removed", "invert": True}
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    ends = {"type": "RobertaProcessing", "sep": [end, vocab[end]], "cls": [start, vocab[start]]}
    return {
        **{"version": "1.0", "truncation": None, "padding": None},
        "added_tokens": [{"id": vocab[token], "content": token, **flags} for token in (start, end)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, blanks, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, to_bytes]},
        "post_processor": {**ends, "trim_offsets": False, "add_prefix_space": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            **{"type": "BPE", "dropout": None, "unk_token": end, "continuing_subword_prefix": ""},
            **{"end_of_word_suffix": END_OF_WORD, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False},
            **{"vocab": dict(vocab), "merges": [list(pair) for pair in merges]},
        },
    }


def normal(text: str) -> str:
    """Composed, with single blanks, in lower case.

    >>> normal("Cafe\\u0301\\n\\tNoir")
    'café noir'
    """
    spaced = _ONE_BLANK.sub(" ", unicodedata.normalize("NFC", text))
    # Letter by letter: the lower case of a whole Greek word would end in another sigma.
    return "".join(char.lower() for char in spaced)


def joined(parts: list[str], pair: tuple[str, str]) -> Iterator[str]:
    """The same parts with each `pair` as one, from the left."""
    at = 0
    while at < len(parts):
        both = at + 1 < len(parts) and (parts[at], parts[at + 1]) == pair
        yield parts[at] + parts[at + 1] if both else parts[at]
        at += 2 if both else 1


@cache
def _kind(char: str) -> str:
    """L for a letter, N for a digit, a blank for blanks, O for others."""
    category = unicodedata.category(char)[0]
    return category if category in "LN" else " " if char in BLANKS else "O"


def _printable() -> dict[int, str]:
    """A character for each byte: its own where that is printable, else one from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    return {byte: chr(byte) for byte in plain} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


BYTES = _printable()
_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
