"""A folder of vectors as an encoder: texts are looked up by name, and there is no image tower.

lab/docs/vectors.md has the layout of the folder.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.base.checks import number
from outword.base.files import parse_json, read_small, sha256_bytes, sha256_file
from outword.base.records import read_record
from outword.encoders.base import Coverage, Encoder, Pixels, Vectors, in_short
from outword.errors import InputError
from outword.maths.imagined import Sight
from outword.maths.numerics import all_finite, check_directions, unit_rows
from outword.words.corpora import CORPORA, Corpus, make_corpus
from outword.words.forms import normalise, squeeze
from outword.words.nouns import nouns

PREFIX = "vectors:"
LAYOUT = "lab/docs/vectors.md"
TEXTS, CARD, WNIDS, NAMES = "text_", "encoder.json", "_wnids.json", "_classnames.json"
FEWEST = 20  # names that two lists share, from which on the difference of their prompts is known
LARGEST = 4 << 30  # bytes of the arrays of a file
SMALL = 16 << 20  # bytes of a JSON file
Classes = NDArray[np.int64]


@dataclass(frozen=True)
class FolderCard:
    """What `encoder.json` says, if it is there."""

    temperature: float = 0.01  # CLIP's
    sight: Sight | None = None  # how it sees (docs/imagined.md); that of its family by default
    source: str = "a folder of vectors"
    licence: str = "unknown"


@dataclass(frozen=True, eq=False)
class VectorSet:
    """Photos of a set as vectors, (n_photos, dim), with the class number of each; -1 where nobody gave one.

    `shows` has what each class is called, one or more names of it; nothing where nobody said.
    """

    name: str
    vectors: Vectors = field(repr=False)
    classes: Classes = field(repr=False)
    shows: tuple[tuple[str, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class TextList:
    """Texts as vectors, (n_texts, dim), with the names that each has, its own first."""

    file: str
    names: tuple[tuple[str, ...], ...]
    vectors: Vectors = field(repr=False)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each text by its own name, as names are compared."""
        found: dict[str, int] = {}
        for row, names in enumerate(self.names):
            found.setdefault(squeeze(names[0]), row)
        return found


class VectorFolder(Encoder):
    """The vectors of a folder: those of texts by name, and sets of photos; pixels are an error.

    What it has no text for is unknown to it. A template around a name changes nothing, so none is used.
    """

    prompts = "{}"
    min_side = 1
    batch_size = 1

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        if not self.folder.is_dir():
            raise InputError(f"a folder of vectors must be a folder, got {folder}", hint=f"see {LAYOUT}")
        self.name = f"{PREFIX}{self.folder}"
        card = _card(self.folder)
        self.temperature, self.sight = card.temperature, card.sight
        self.source, self.licence = card.source, card.licence
        lists = [_text_list(path) for path in sorted(self.folder.glob(f"{TEXTS}*.npz"))]
        if not lists:
            hint = f'it needs files {TEXTS}NAME.npz with "features" and "names", see {LAYOUT}'
            raise InputError(f"{self.folder} has no vectors of texts", hint=hint)
        self.dim = lists[0].vectors.shape[1]
        photos = [path for path in sorted(self.folder.glob("*.npz")) if not path.name.startswith(TEXTS)]
        self.sets = {path.stem: _photos(path) for path in photos}
        self.inside, self.wnids = self._inside()
        widths = {one.file: one.vectors.shape[1] for one in lists}
        widths |= {f"{name}.npz": one.vectors.shape[1] for name, one in self.sets.items()}
        for file, width in widths.items():
            if width != self.dim:
                told = f"all vectors of {self.folder} must have {self.dim} columns like those of {lists[0].file}"
                raise InputError(f"{told}, got {width} in {file}", hint="take those of one encoder")
        self.lists = self._aligned(lists)
        self.fingerprint = self._fingerprint()

    def _inside(self) -> tuple[str, tuple[str, ...]]:
        """The set whose classes stand for labels, and WordNet's number of each of its classes."""
        files = sorted(self.folder.glob(f"*{WNIDS}"))
        if len(files) != 1:
            hint = f"of the set whose photos show labels: a JSON list of WordNet's number of each class, see {LAYOUT}"
            raise InputError(f"{self.folder} must have one file SET{WNIDS}, got {len(files)}", hint=hint)
        name, wnids = files[0].name.removesuffix(WNIDS), _json(files[0])
        if not isinstance(wnids, list) or not all(isinstance(one, str) and _names(one) for one in wnids):
            hint = 'for example ["n02084071", "n02121620"]'
            raise InputError(f"{files[0]} must be a list of numbers of nouns in WordNet 3.0", hint=hint)
        if name not in self.sets:
            raise InputError(f"{files[0].name} is about {name}.npz, which is not there", hint=f"see {LAYOUT}")
        classes = self.sets[name].classes
        if classes.min() < 0 or classes.max() >= len(wnids):
            told = f"labels in {name}.npz must be from 0 to {len(wnids) - 1}, got {classes.min()} to {classes.max()}"
            raise InputError(told, hint=f"{files[0].name} has an entry for each class")
        return name, tuple(wnids)

    def _aligned(self, lists: Sequence[TextList]) -> list[TextList]:
        """The lists with one prompt: the one that names most classes first, the others moved by the mean difference."""
        wanted = [squeeze(_names(wnid)[0]) for wnid in self.wnids]
        first = max(lists, key=lambda one: sum(name in one.rows for name in wanted))
        others = [one for one in lists if one is not first]
        return [first, *(_moved(one, first) for one in others)]

    def _fingerprint(self) -> str:
        used = [*self.folder.glob("*.npz"), *self.folder.glob("*.json")]
        return sha256_bytes("\n".join(f"{path.name} {sha256_file(path)}" for path in sorted(used)).encode())

    @cached_property
    def _texts(self) -> dict[str, Vectors]:
        """The vector of each name: of the first text that it is the own name of, else of the first that lists it."""
        found: dict[str, Vectors] = {}
        for own in (True, False):
            for one in self.lists:
                for names, vector in zip(one.names, one.vectors, strict=True):
                    for name in names[:1] if own else names[1:]:
                        found.setdefault(squeeze(name), vector)
        return found

    @cached_property
    def corpus(self) -> Corpus:
        """The own names of all texts, as words; it goes by the name of the encoder."""
        return make_corpus(self.name, ((names[0], "noun") for one in self.lists for names in one.names))

    def knows_name(self, name: str) -> bool:
        """Whether there is a text for a name."""
        return squeeze(name) in self._texts

    def preprocess(self, image: Image.Image) -> Pixels:
        """It is an error to ask for pixels."""
        raise self._no_tower()

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """It is an error to bring pixels."""
        raise self._no_tower()

    def _no_tower(self) -> InputError:
        hint = f"measure it with: outword bench vectors {self.folder}"
        return InputError(f"{self.name} has vectors alone and cannot read photos", hint=hint)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """The vectors of names, (n, dim)."""
        if lost := [text for text in texts if not self.knows_name(text)]:
            raise InputError(f"{self.name} has no text for {lost[0]!r}", hint="ask for names that its files have")
        found = [self._texts[squeeze(text)] for text in texts]
        return np.stack(found) if found else np.zeros((0, self.dim), np.float32)

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """A name is known if there is a text for it."""
        return [Coverage(label, "known" if self.knows_name(label) else "unknown") for label in labels]

    def class_names(self) -> dict[str, int]:
        """The classes that can be a label, by their names: those with a text. Of two with one name the first counts."""
        found: dict[str, int] = {}
        taken: set[str] = set()
        for place, name in enumerate(self.all_class_names()):
            if self.knows_name(name) and squeeze(name) not in taken:
                found[name] = place
                taken.add(squeeze(name))
        return found

    def all_class_names(self) -> list[str]:
        """The name of each class, as WordNet has it."""
        return [_names(wnid)[0] for wnid in self.wnids]


def open_folder(name: str) -> VectorFolder:
    """The encoder called `vectors:FOLDER`; the names of its texts are a corpus of the same name."""
    encoder = VectorFolder(name.removeprefix(PREFIX))
    CORPORA.register(encoder.name, "the names of a folder of vectors")(lambda: encoder.corpus)
    return encoder


def _names(wnid: str) -> tuple[str, ...]:
    """What a sense is called; nothing where WordNet has no such number."""
    sense = nouns().by_wnid(wnid)
    return () if sense is None else nouns().names(sense)


def _moved(one: TextList, first: TextList) -> TextList:
    """A list moved by the mean difference to another, over the names that both have; as it is where these are few."""
    shared = [name for name in one.rows if name in first.rows]
    if len(shared) < FEWEST:
        return one
    own = one.vectors[[one.rows[name] for name in shared]]
    theirs = first.vectors[[first.rows[name] for name in shared]]
    moved = one.vectors + (theirs - own).mean(axis=0, dtype=np.float64)
    return TextList(one.file, one.names, unit_rows(moved).astype(np.float32))


def _card(folder: Path) -> FolderCard:
    path = folder / CARD
    if not path.exists():
        return FolderCard()
    table = _json(path)
    if not isinstance(table, dict):
        raise InputError(f"{path} must be a table", hint='for example {"temperature": 0.01}')
    card = read_record(FolderCard, table, str(path), LAYOUT)
    number(f"temperature in {path}", card.temperature, least=1e-6, hint="CLIP's is 0.01")
    return card


def _json(path: Path) -> Any:
    try:
        return parse_json(read_small(path, SMALL))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {in_short(error)}", hint="correct it") from None


def _text_list(path: Path) -> TextList:
    arrays = _arrays(path, "names")
    vectors, names = _vectors(arrays, path), arrays["names"]
    if names.dtype.kind != "U" or names.shape != (len(vectors),):
        told = f"names in {path} must be {len(vectors)} texts, one a row of features"
        raise InputError(f"{told}, got shape {names.shape}, dtype {names.dtype}", hint=f"see {LAYOUT}")
    parts = [tuple(_parts(name)) for name in names.tolist()]
    if not all(parts):
        raise InputError(f"names in {path} must not be empty, row {parts.index(())} is", hint="name it, or drop it")
    return TextList(path.name, tuple(parts), vectors)


def _parts(text: str) -> Iterator[str]:
    """The names in a text, without the hints in brackets.

    >>> list(_parts("cab_(taxi)")), list(_parts("tench, Tinca tinca")), list(_parts("Picture/Frame"))
    (['cab'], ['tench', 'Tinca tinca'], ['Picture', 'Frame'])
    """
    for part in re.split(r"[,/]", re.sub(r"\([^)]*\)", " ", normalise(text))):
        if name := normalise(part):
            yield name


def _photos(path: Path) -> VectorSet:
    arrays = _arrays(path)
    vectors = _vectors(arrays, path)
    classes = arrays.get("labels", np.full(len(vectors), -1))
    if classes.dtype.kind not in "iu" or classes.shape != (len(vectors),):
        told = f"labels in {path} must be {len(vectors)} whole numbers, one a row of features"
        raise InputError(f"{told}, got shape {classes.shape}, dtype {classes.dtype}", hint=f"see {LAYOUT}")
    return VectorSet(path.stem, vectors, classes.astype(np.int64), _class_names(path, classes))


def _class_names(path: Path, classes: NDArray[np.integer[Any]]) -> tuple[tuple[str, ...], ...]:
    """What the classes of a set are called, if there is a file that says it."""
    file = path.with_name(f"{path.stem}{NAMES}")
    if not file.exists():
        return ()
    names = _json(file)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{file} must be a list of names", hint='for example ["abbey", "alley"]')
    if classes.min() < 0 or classes.max() >= len(names):
        told = f"labels in {path} must be from 0 to {len(names) - 1}, got {classes.min()} to {classes.max()}"
        raise InputError(told, hint=f"{file.name} has an entry for each class")
    return tuple(tuple(_parts(name)) for name in names)


def _arrays(path: Path, *needed: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file: "features", and those that are needed beside them."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise ValueError(f"its arrays have more than {LARGEST >> 30} GB")
        with np.load(path, allow_pickle=False) as opened:
            found = {name: opened[name] for name in opened.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        told = f"{path} cannot be read as arrays of numpy: {in_short(error)}"
        raise InputError(told, hint="write it with numpy.savez") from None
    for name in ("features", *needed):
        if name not in found:
            has = ", ".join(found) or "nothing"
            raise InputError(f"{path} must have the array {name}, got {has}", hint=f"see {LAYOUT}")
    return found


def _vectors(arrays: dict[str, NDArray[Any]], path: Path) -> Vectors:
    """The features of a file as unit rows, (n, dim) float32."""
    vectors, name = arrays["features"], f"features in {path}"
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.size:
        told = f"{name} must be a two-dimensional array of floats, one row at least"
        raise InputError(f"{told}, got shape {vectors.shape}, dtype {vectors.dtype}", hint=f"see {LAYOUT}")
    if not all_finite(vectors):
        raise InputError(f"{name} must be finite, got NaN or infinity", hint="drop the rows that are not finite")
    check_directions(vectors, name)
    return unit_rows(vectors).astype(np.float32)
