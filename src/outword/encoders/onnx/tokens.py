"""From the `tokenizer.json` of an exported encoder to padded token ids; CLIP's needs no library."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from outword.base.extras import require
from outword.encoders.bpe import Bpe
from outword.encoders.texts import Ids
from outword.encoders.tidy_text import CLEAN


@dataclass(frozen=True)
class Form:
    """How a text tower wants its texts."""

    tokenizer: Literal["clip", "tokenizers"]  # CLIP's own, in plain Python, or any other, with the library of that name
    context: int  # tokens in a row
    pad: int  # the id that fills a row
    end: int | None  # the id behind which a row may be cut; None where all of it is read
    clean: str | None  # how open_clip tidies a text first, a key of `tidy_text.CLEAN`; None for not at all
    zero: int | None  # an id that is set to 0 afterwards, as some models of open_clip want it


class Tokens:
    """Texts to ids (n, context), cut where they are too long, and the number of tokens before any cut."""

    def __init__(self, path: Path, form: Form) -> None:
        self.form = form
        self._clean: Callable[[str], str] = CLEAN[form.clean] if form.clean else str
        text = path.read_text(encoding="utf-8")
        self._whole, self._cut = (_clip if form.tokenizer == "clip" else _library)(text, form.context)

    def tokenize(self, texts: Sequence[str]) -> Ids:
        """Ids, int64 (n, context)."""
        out = np.full((len(texts), self.form.context), self.form.pad, np.int64)
        for row, text in zip(out, texts, strict=True):
            ids = self._cut(self._clean(text))
            row[: len(ids)] = ids
        if self.form.zero is not None:
            out[out == self.form.zero] = 0
        return out

    def count(self, text: str) -> int:
        """How many tokens the text has, start and end included."""
        return len(self._whole(self._clean(text)))


_Encode = Callable[[str], list[int]]


def _clip(text: str, context: int) -> tuple[_Encode, _Encode]:
    bpe = Bpe(json.loads(text))

    def cut(words: str) -> list[int]:
        ids = bpe.encode(words)
        return ids if len(ids) <= context else [*ids[: context - 1], bpe.end]

    return bpe.encode, cut


def _library(text: str, context: int) -> tuple[_Encode, _Encode]:
    library = require("tokenizers")
    whole, cut = library.Tokenizer.from_str(text), library.Tokenizer.from_str(text)
    for tokenizer in (whole, cut):
        tokenizer.no_padding()
        tokenizer.no_truncation()
    cut.enable_truncation(context)
    return lambda words: list(whole.encode(words).ids), lambda words: list(cut.encode(words).ids)
