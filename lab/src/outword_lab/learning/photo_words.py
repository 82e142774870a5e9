"""Words per photo, for the methods that want some: where they come from, which of them count, and their vectors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from outword.base.files import PathLike, parse_json, read_lines
from outword.encoders.base import Pixels, Vectors
from outword.errors import ImageError, InputError
from outword.maths.kernels import to_numpy
from outword.maths.methods import Need
from outword.maths.methods.requests import Inputs, ScoreRequest
from outword.vectors.wild import encode_words
from outword.words.forms import fold, normalise
from outword.words.prompts import Prompts

KEPT = 50_000  # words whose vectors stay in memory: 100 MB at 512 numbers each


@dataclass(frozen=True, eq=False)
class Photo:
    """One photo that words are asked for.

    Attributes:
        name: its path, as the run was given it, or its place in a list, such as `photos[3]`; "" where it has none.
        pixels: (height, width, 3) uint8, as the encoder reads them; None where the vector came from a store.
        vector: (dim,) float32, the encoder's.
    """

    name: str
    pixels: Pixels | None
    vector: Vectors


_HALF = re.compile(r"[\ud800-\udfff]")  # of a pair: no text that a tokenizer takes
Named = Sequence[str] | ImageError  # the words of a photo, or why there are none: its row has that error
WordSource = Callable[[list[Photo]], Sequence[Named]]


class WordsFile:
    """Words by photo, from a file; a `WordSource`. A photo is found by its path, or by what its path ends in."""

    def __init__(self, path: Path, words: dict[str, tuple[str, ...]], fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self._words = words
        self._by_name: dict[str, list[str]] = {}  # file name to the paths that end in it
        for name in words:
            self._by_name.setdefault(_last(name), []).append(name)

    def __call__(self, photos: Iterable[Photo]) -> list[Named]:
        """The words of each photo; an error for one that the file does not have."""
        return [self._of(photo.name) for photo in photos]

    def _of(self, name: str) -> Named:
        like = [one for one in self._by_name.get(_last(name), ()) if f"/{_slashes(name)}".endswith(f"/{_slashes(one)}")]
        if name in self._words or like:
            return self._words[name if name in self._words else max(like, key=len)]
        return ImageError(f"no words for it in {self.path}", hint="add a line for it, with an empty list if need be")


def read_words_per_image(path: PathLike) -> WordsFile:
    """Words per image from JSON lines, `{"path": "a.jpg", "words": ["dog", "grass"]}` each, for `Detector.with_words`.

    Instead of `path`, `image` will do. A photo is looked up by its path as it is scored, else by what that ends in, so
    that `cat/1.jpg` stands for `photos/cat/1.jpg`, and not for `dog/1.jpg`.
    """
    file = Path(path)
    digest = hashlib.sha256()
    found: dict[str, tuple[str, ...]] = {}
    try:
        for number, line in enumerate(read_lines(file), start=1):
            digest.update(line)
            if line.strip():
                name, words = _parsed(line.removesuffix(b"\n"), f"{file}, line {number}")
                if name in found:
                    raise InputError(f"{file}, line {number}: {name!r} was there before", hint="leave one of them out")
                found[name] = words
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}", hint="check the path") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{file} cannot be read: {error}", hint="write a photo a line") from None
    return WordsFile(file, found, digest.hexdigest())


def _parsed(line: bytes, where: str) -> tuple[str, tuple[str, ...]]:
    hint = 'a line is {"path": "a.jpg", "words": ["dog", "grass"]}'
    try:
        table = parse_json(line.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{where} is no JSON: {error}", hint=hint) from None
    name = table.get("path", table.get("image")) if isinstance(table, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} must name its photo, as path or image", hint=hint)
    words = table.get("words")
    if not isinstance(words, list) or not all(map(_is_text, words)):
        raise InputError(f"{where} must have words, a list of texts", hint=hint)
    return name, tuple(map(intern, words))


def _is_text(word: Any) -> bool:
    return isinstance(word, str) and (word.isascii() or not _HALF.search(word))


def _slashes(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./").rstrip("/")


def _last(name: str) -> str:
    return _slashes(name).rpartition("/")[2]


def ask(source: WordSource, photos: list[Photo], id_names: Iterable[str]) -> list[list[str] | ImageError]:
    """The words of each photo, each once, less the ID names; how they are spelled counts no more than for labels."""
    answers = source(photos)
    if isinstance(answers, str) or not isinstance(answers, Sequence) or len(answers) != len(photos):
        got = f"{len(answers)} of them" if isinstance(answers, Sequence) else type(answers).__name__
        raise InputError(f"words must come as one list a photo ({len(photos)}), got {got}", hint="see with_words")
    taken = set(map(fold, id_names))
    return [answer if isinstance(answer, ImageError) else _counted(answer, taken) for answer in answers]


def named_inputs(request: ScoreRequest) -> Inputs:
    """What a method scores that wants words per image: the photos with words, the words and their vectors.

    A photo that nobody has words for is an error.
    """
    vectors = to_numpy(request.vectors)
    pixels = [None] * len(vectors) if request.pixels is None else request.pixels
    photos = [Photo(*one) for one in zip(request.names, pixels, vectors, strict=True)]
    answers = ask(request.by_hand[Need.WORDS], photos, {*request.labels, *request.rows})
    errors = [_why(answer) if isinstance(answer, ImageError) else None for answer in answers]
    words = [answer for answer in answers if not isinstance(answer, ImageError)]
    if "words" not in request.memo:
        request.memo["words"] = WordVectors(request.encoder, request.find_prompts())
    return {
        "images": vectors[[error is None for error in errors]],
        "words": request.memo["words"](words),
        "named": words,
        "errors": errors,
    }


def _why(answer: ImageError) -> ImageError:
    return answer if answer.message else ImageError("no words for it", hint=answer.hint)


def _counted(words: Any, taken: set[str]) -> list[str]:
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise InputError(f"the words of a photo must be a list, got {words!r}", hint='write ["dog"] for a single one')
    kept: dict[str, str] = {}
    for word in words:
        if not _is_text(word):
            raise InputError(f"a word must be a text, got {word!r}", hint="convert it first")
        if (folded := fold(word)) and folded not in taken:
            kept.setdefault(folded, normalise(word))
    return list(kept.values())


class WordVectors:
    """Vectors of words in the prompts of labels; each is encoded once, as long as it is among the latest `KEPT`."""

    def __init__(self, encoder: Any, prompts: Prompts, kept: int = KEPT) -> None:
        self._encoder, self._prompts, self._kept = encoder, prompts, kept
        self._known: dict[str, Vectors] = {}  # the latest last

    def __call__(self, words: Sequence[Sequence[str]]) -> Rows:
        """The vectors of the words of each photo."""
        distinct = {word: place for place, word in enumerate(dict.fromkeys(word for some in words for word in some))}
        new = [word for word in distinct if word not in self._known]
        encoded = encode_words(self._encoder, self._prompts.render(new, ["label"] * len(new)))
        fresh = dict(zip(new, encoded, strict=True))
        found = {word: fresh[word] if word in fresh else self._known.pop(word) for word in distinct}
        self._known |= found
        for word in list(self._known)[: -self._kept or None]:
            del self._known[word]
        matrix = np.stack([*found.values()]) if found else np.zeros((0, self._encoder.dim), np.float32)
        return Rows(matrix, [np.array([distinct[word] for word in some], np.int64) for some in words])


class Rows(Sequence[Vectors]):
    """Arrays (n_words, dim), each made of the rows of one matrix when it is asked for: photos share most words."""

    def __init__(self, matrix: Vectors, places: list[NDArray[np.int64]]) -> None:
        self._matrix, self._places = matrix, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Vectors: ...
    @overload
    def __getitem__(self, place: slice) -> Rows: ...
    def __getitem__(self, place: int | slice) -> Vectors | Rows:
        if isinstance(place, slice):
            return Rows(self._matrix, self._places[place])
        return self._matrix[self._places[place]]

    def __iter__(self) -> Iterator[Vectors]:
        return (self._matrix[places] for places in self._places)
