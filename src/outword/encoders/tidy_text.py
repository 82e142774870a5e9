"""How open_clip tidies a text before its tokenizer reads it, with the standard library alone.

open_clip first runs `ftfy.fix_text`. What that does to sound text is done here too: entities are resolved, quotation
marks straightened, ligatures and wide or narrow forms replaced, control characters dropped, and the rest composed
(NFC). What it does to broken text is left out: it guesses back what was decoded with a wrong encoding ("Ã©" for "é"),
drops the escape sequences of terminals, and knows a few capital entities ("&EACUTE;").
"""

from __future__ import annotations

import html
import string
import unicodedata
from collections.abc import Callable

_LIGATURES = {  # of Latin letters; U+FB05 comes apart into a long s
    char: unicodedata.normalize("NFKC", char) for char in "ĲĳǱǲǳǄǅǆǇǈǉǊǋǌﬀﬁﬂﬃﬄﬆ"
} | {"ŉ": "'n", "ﬅ": "ſt"}
_WIDTHS = {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in (0x3000, *range(0xFF01, 0xFFF0))}
_QUOTES = {**dict.fromkeys("\u02bc\u2018\u2019\u201a\u201b", "'"), **dict.fromkeys("\u201c\u201d\u201e\u201f", '"')}
_BREAKS = dict.fromkeys("\r\u2028\u2029", "\n")
_CONTROLS = dict.fromkeys([*range(9), 0x0B, *range(0x0E, 0x20), 0x7F, *range(0x206A, 0x2070), 0xFEFF], "")
_ANNOTATIONS = dict.fromkeys(range(0xFFF9, 0xFFFD), "")
_SURROGATES = {chr(code): "\ufffd" for code in range(0xD800, 0xE000)}
_C1 = {  # control characters of Latin-1, read as what Windows has in their place, where it has anything
    code: bytes([code]).decode("windows-1252", errors="ignore") or chr(code) for code in range(0x80, 0xA0)
}
_FIXES = [
    _C1,
    str.maketrans(_SURROGATES | _LIGATURES | _WIDTHS),
    str.maketrans(_QUOTES | _BREAKS) | _CONTROLS | _ANNOTATIONS,
]
_NO_PUNCTUATION = str.maketrans("_", " ", string.punctuation.replace("_", ""))


def tidy(text: str) -> str:
    """Entities resolved, odd characters replaced by plain ones, runs of blanks by one.

    >>> tidy("  It’s a &quot;ﬁne&quot; Ｃａｆｅ\\u0301 ")
    'It\\'s a "fine" Café'
    """
    if "<" not in text:  # ftfy leaves markup alone
        text = html.unescape(text)
    for fix in _FIXES:
        text = text.translate(fix)
    text = unicodedata.normalize("NFC", text)
    return " ".join(html.unescape(html.unescape(text)).split())


def lower(text: str) -> str:
    """For CLIP's own tokenizer."""
    return tidy(text).lower()


def canonicalize(text: str) -> str:
    """For SigLIP: small letters, no punctuation.

    >>> canonicalize("Ice-cream, well_made!")
    'icecream well made'
    """
    return " ".join(tidy(text).translate(_NO_PUNCTUATION).lower().split())


CLEAN: dict[str, Callable[[str], str]] = {"whitespace": tidy, "lower": lower, "canonicalize": canonicalize}
