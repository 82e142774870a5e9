"""A corpus from a text file, one word a line."""

from __future__ import annotations

import re
from pathlib import Path

from outword.errors import InputError
from outword.words.corpora.corpus import NOUN, Corpus, make_corpus
from outword.words.forms import normalise

MAX_CHARACTERS = 400
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tab and line ends
ENDS = re.compile(r"\r\n|\r|\n")


def read_corpus(path: Path) -> Corpus:
    """Read a UTF-8 text file, one word a line; every word counts as a noun.

    Lines end in LF, CRLF or CR. A byte order mark, blank lines and duplicates (see `make_corpus`) are left out.
    Refused, with the line number: invalid UTF-8, control characters, more than 400 characters a line; also refused: a
    file without a word.
    """
    text = _decode(path)
    lines = ENDS.split(text)
    if control := CONTROL.search(text):
        raise _bad(path, len(ENDS.findall(text, 0, control.start())) + 1, f"holds a control character ({control[0]!a})")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_CHARACTERS and len(normalise(line)) > MAX_CHARACTERS:
            raise _bad(path, number, f"is longer than {MAX_CHARACTERS} characters ({len(normalise(line))})")
    corpus = make_corpus(path.name, ((line, NOUN) for line in lines))
    if not corpus.size:
        raise InputError(f"the corpus file {path} holds no word", hint="write one word a line into it")
    return corpus


def _decode(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        hint = "give a text file that you may read, one word a line"
        raise InputError(f"the corpus file {path} cannot be read ({error.strerror})", hint=hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", errors="replace")
        raise _bad(path, len(ENDS.findall(before)) + 1, "is not valid UTF-8", "save the file as UTF-8") from error


def _bad(path: Path, line: int, rule: str, hint: str = "mend or remove that line; one word a line") -> InputError:
    return InputError(f"line {line} of the corpus file {path} {rule}", hint=hint)
