"""The sets that a benchmark is run on: what they are, how to get them by hand, and where they lie below a folder."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Literal

from outword.base.checks import unknown
from outword.base.files import PathLike
from outword.base.records import read_record
from outword.encoders import Encoder
from outword.errors import InputError
from outword.photos.sources import is_source, without_suffix
from outword.vectors.id_images import class_among, label_keys
from outword.vectors.source import Identity, Source, find_names, find_source
from outword.vectors.store import is_store
from outword.words.labels import Label, read_labels
from outword_lab.benchmark.run import imagenet
from outword_lab.benchmark.run.suite import FOLDER, SEE
from outword_lab.benchmark.toml import tomllib
from outword_lab.rendered import PREFIX
from outword_lab.world.sets import WorldSet, world_sets

Classes = Literal["imagenet", "folders", "files", ""]
Status = Literal["present", "missing", "incomplete"]

TRAIN = f"{FOLDER}-train"
WORLD = "world-"  # what the names of the world's sets begin with
BASES = ("", "images_largescale", "images_classic", "id_data", "ood_data")  # below ROOT, as OpenOOD and MOS have it
_NUMBERED = re.compile(r"[0-9]+\.")
_COUNTED = re.compile(r"_[0-9]+$")


@dataclass(frozen=True)
class DataSet:
    """A set as the catalogue has it.

    What tells the class of a photo (`classes`) is, for "imagenet", the nearest folder, a WordNet id or an index; for
    "folders", the name of the nearest folder; for "files", the name of the file, without its number; for "", nothing.
    """

    name: str  # short, as in suites
    title: str  # as in tables
    about: str  # what it shows, and who made it
    licence: str  # what the official page says, shortly; "not stated" where it says nothing
    source: str  # the official page
    get: str  # what to download by hand
    layout: str  # what the folder should look like
    folders: tuple[str, ...]  # places below ROOT, folders or archives or globs; the first that has photos is taken
    images: int  # how many there are; 0 where that is not known
    checksums: Mapping[str, str] = field(default_factory=dict)  # "md5:..." or "sha256:..." by archive
    classes: Classes = ""
    subset: int = 0  # its classes are those of ImageNet-10, -20 or -100, and its photos are those of imagenet-1k
    n_classes: int = 0  # how many there are; 0 where nothing is checked


@dataclass(frozen=True)
class OwnSet(DataSet):
    """A folder of the user's: `top` is its path; `labels` are the class names with their own prompts, if any."""

    top: str = ""
    labels: Mapping[str, Label] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The labels without their prompts."""
        return list(self.labels)

    @cached_property
    def keys(self) -> dict[str, int]:
        """Numbers of the labels, as `class_among` wants them."""
        return label_keys(self.names)


@dataclass(frozen=True)
class Found:
    """Where a set lies."""

    data_set: DataSet
    status: Status  # "incomplete": fewer images, or another number of classes, than there should be
    where: Path | None  # the folder or archive, None if there is none; of several files, the folder that has them
    count: int  # of image files, or of photos in archives
    advice: str  # what to do, or to know; "" if nothing
    paths: tuple[PathLike, ...] = ()  # what `outword.vectors.source.find_source` takes


@cache
def catalogue() -> dict[str, DataSet]:
    """The sets by name; an unknown key in the file is an error."""
    tables = tomllib.loads((files("outword_lab") / "benchmark" / "catalogue.toml").read_text(encoding="utf-8"))
    return {
        name: read_record(DataSet, {"name": name, **table}, f"{name} of the catalogue", SEE)
        for name, table in tables.items()
    }


@cache
def world_catalogue() -> dict[str, DataSet]:
    """The sets of the small rendered world by their names in suites, such as "world-near"; they need no folder."""
    return {f"{WORLD}{one.name}": _drawn(one) for one in world_sets().values()}


def _drawn(one: WorldSet) -> DataSet:
    return DataSet(
        name=f"{WORLD}{one.name}",
        title=one.name,
        about=one.about,
        licence="outword's own",
        source="lab/docs/world.md",
        get="nothing: it is drawn",
        layout=f"{PREFIX}{one.name}/<thing>/*.png",
        folders=(f"{PREFIX}{one.name}",),
        images=len(one),
        classes="folders",
    )


def find_set(root: PathLike | None, name: str) -> Found:
    """Look for a set below `root`; "folder" is the user's own ROOT/id and "folder-train" is ROOT/train.

    Those of `world_catalogue` lie nowhere, and are always found.
    """
    if name in world_catalogue():
        data_set = world_catalogue()[name]
        return Found(data_set, "present", None, data_set.images, "", data_set.folders)
    if root is None:
        raise InputError(f"the set {name} needs a folder with data sets, got none", hint="name the folder it is in")
    top = Path(root)
    if not top.is_dir():
        raise InputError(f"there is no folder {top}", hint="name the folder that has the sets in it")
    if name in (FOLDER, TRAIN):
        return _own_id(top, name)
    if name not in catalogue():
        raise unknown("set", name, [*catalogue(), *world_catalogue(), FOLDER], "outword data check ROOT")
    data_set = catalogue()[name]
    places = data_set.folders + (catalogue()["imagenet-1k"].folders if data_set.subset else ())
    notes: list[str] = []
    for place in places:
        for base in BASES:
            paths = tuple(path for path in _matches(top / base, Path(place).parts) if path.is_dir() or is_source(path))
            if paths:
                found = _counted(data_set, paths)
                if found.count:
                    return found
                notes.append(found.advice)
    return Found(data_set, "missing", None, 0, " ".join([*filter(None, notes), _how(data_set)]))


def folder_ood(root: PathLike) -> list[Found]:
    """The user's own OOD sets: the folders, archives, lists and stores of ROOT/ood, named by them.

    Where there are none, the list has one set that is missing, with what to do.
    """
    top = Path(root) / "ood"
    entries = sorted(path for path in top.iterdir() if path.name[0] != ".") if top.is_dir() else []
    sets = [path for path in entries if path.is_dir() or is_source(path)]
    plain = [path.name if path.is_dir() else without_suffix(path.name) for path in sets]
    names = [path.name if plain.count(short) > 1 else short for path, short in zip(sets, plain, strict=True)]
    found = [_own(_set_name(name), path) for name, path in zip(names, sets, strict=True)]
    return found or [_own("ood", top / "<set>")]


def _set_name(name: str) -> str:
    """What a folder's set is called: readable as text, and no word that stands for something else in results."""
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    return f"ood-{shown}-" if shown in (FOLDER, TRAIN, "average") or shown.endswith(".npy") else shown


def archives(root: Path, data_set: DataSet) -> dict[Path, str]:
    """Checksums of the archives of a set that lie beside the places where it is looked for, by path."""
    places = {Path(place).parent.parts for place in data_set.folders}
    folders = {folder for place in places for base in BASES for folder in _matches(root / base, place)}
    paths = [(folder / name, checksum) for folder in sorted(folders) for name, checksum in data_set.checksums.items()]
    return {path: checksum for path, checksum in paths if path.is_file()}


def source_of(found: Found, encoder: Encoder | Identity) -> Source:
    """The photos of a set, those of its classes only for a subset of ImageNet, or its vectors, if it is a store."""
    data_set = found.data_set
    only = (lambda name: class_of(data_set, name) is not None) if data_set.subset else None
    return find_source(found.paths, encoder, only=only)


def class_of(data_set: DataSet, name: str) -> str | None:
    """The label that a photo shows, by its path or name; None where that is not told.

    >>> class_of(catalogue()["imagenet-v2"], "imagenet-v2/0/a.jpeg")
    'tench'
    >>> class_of(catalogue()["cub-200"], "images/001.Black_footed_Albatross/1.jpg")
    'Black footed Albatross'
    >>> class_of(catalogue()["pets"], "images/great_pyrenees_3.jpg")
    'great pyrenees'
    """
    path = PurePath(name)
    if isinstance(data_set, OwnSet):
        return _own_class(data_set, path.parent)
    nearest = path.parent.name
    if data_set.classes == "imagenet":
        wnid, label = imagenet.classes_by_key().get(nearest, ("", None))
        return None if data_set.subset and wnid not in imagenet.subset(data_set.subset) else label
    if data_set.classes == "folders":
        return _NUMBERED.sub("", nearest, count=1).replace("_", " ").strip() or None
    if data_set.classes == "files":
        return _COUNTED.sub("", path.stem).replace("_", " ").strip() or None
    return None


def labels_of(data_set: DataSet, names: Iterable[str]) -> dict[str, Label]:
    """The different labels of photos, by their paths or names, each with its own prompt, if it has one.

    Those of ImageNet come in the order of ILSVRC; all of them where no name tells a class. A set of the user's has the
    labels that it has, whatever the photos show. Others are sorted.
    """
    if isinstance(data_set, OwnSet):
        return dict(data_set.labels)
    if data_set.classes != "imagenet":
        return _plain(sorted(set(filter(None, (class_of(data_set, name) for name in names)))))
    every = frozenset(imagenet.subset(data_set.subset)) if data_set.subset else None
    known = imagenet.classes_by_key()
    shown = frozenset(known[key][0] for name in names if (key := PurePath(name).parent.name) in known)
    return _plain(imagenet.labels(shown & every if shown and every else shown or every))


def _plain(names: Iterable[str]) -> dict[str, Label]:
    """Names as labels, whatever characters are in them."""
    return {name: Label(name, name) for name in names}


def _matches(base: Path, parts: tuple[str, ...]) -> list[Path]:
    """What lies at a place below `base`, sorted; without a glob there is one at most, of the very name if it exists."""
    if not parts:
        return [base]
    try:
        names = sorted(path.name for path in base.iterdir())
    except OSError:
        return []
    found = [name for name in names if fnmatchcase(_alike(name), _alike(parts[0]))]
    if not glob.has_magic(parts[0]):
        found = [parts[0]] if parts[0] in found else found[:1]
    return [match for name in found for match in _matches(base / name, parts[1:])]


def _alike(name: str) -> str:
    return name.casefold().replace("_", "-")


def _counted(data_set: DataSet, paths: tuple[Path, ...]) -> Found:
    """A set at the place where it lies, with what is to be said of it."""
    count, seen, labels = 0, False, set()
    for name in find_names(paths):
        seen = True
        label = class_of(data_set, name) if data_set.subset or data_set.n_classes else None
        if not data_set.subset or label is not None:
            count += 1
            labels.add(label)
    where = paths[0] if len(paths) == 1 else paths[0].parent
    advice = _linked(where)
    status: Status = "present" if count else "missing"
    found = f"{count:,} images found, {data_set.images:,} expected"
    if seen and not count:
        advice.append(f"{where} does not tell the classes of its photos.")
    elif data_set.n_classes and len(labels) != data_set.n_classes:
        status = "incomplete"
        advice.append(f"{len(labels):,} classes found, {data_set.n_classes:,} expected. {_how(data_set)}")
    elif 0 < count < data_set.images:
        status = "incomplete"
        advice.append(f"{found}. {_how(data_set)}")
    elif data_set.images and count > data_set.images:
        advice.append(f"{found}: perhaps there is more than this set in it.")
    return Found(data_set, status, where, count, " ".join(advice), paths)


def _linked(where: Path) -> list[str]:
    """Say of a folder that links to folders are not entered, if it has some."""
    if not where.is_dir():
        return []
    with os.scandir(where) as entries:
        links = sum(entry.is_symlink() and Path(entry).is_dir() for entry in entries)  # entry.is_dir fails on a loop
    return [f"{links:,} symlinked folders in {where} are not entered: link {where.name} itself."] if links else []


def _how(data_set: DataSet) -> str:
    if isinstance(data_set, OwnSet):
        if is_source(data_set.top):
            return f"{data_set.top} cannot be read as an archive or a list, or holds no photo"
        return f"put photos into {data_set.layout}"
    return f"get: {data_set.get} ({data_set.source}). layout: {data_set.layout}."


def _own_id(root: Path, name: str) -> Found:
    """The user's ID photos, or those to fit on, with the labels of ROOT/labels.txt, else of the folders in ROOT/id."""
    inside, listed = _own_place(root, "id"), root / "labels.txt"
    top = inside if name == FOLDER else _own_place(root, "train")
    labels: Mapping[str, Label] = {}
    if listed.exists() or (inside.is_dir() and not is_store(inside)):
        try:
            labels = read_labels(listed if listed.exists() else inside)
        except InputError as error:
            advice = f"{error.message}. Put photos into {inside}/<class>/, or write the class names into {listed}"
            return Found(_own_set(name, top), "missing", None, 0, advice)
    return _own(name, top, labels)


def _own_place(root: Path, name: str) -> Path:
    """A folder of the user's, or else an archive, a list or a store that is called the same but for its suffix."""
    if (root / name).exists():
        return root / name
    return min((path for path in root.glob(f"{name}.*") if is_source(path) or is_store(path)), default=root / name)


def _own(name: str, top: Path, labels: Mapping[str, Label] | None = None) -> Found:
    data_set = _own_set(name, top, labels)
    found = _counted(data_set, (top,)) if top.exists() else Found(data_set, "missing", None, 0, "")
    return found if found.count else Found(data_set, "missing", None, 0, f"{found.advice} {_how(data_set)}".strip())


def _own_set(name: str, top: Path, labels: Mapping[str, Label] | None = None) -> OwnSet:
    title = {FOLDER: "id", TRAIN: "train"}.get(name, name)  # no OOD set has these names
    layout = f"{top}/{'*.jpg' if labels is None else '<class>/*.jpg'}"
    yours, place = ("photos of your own", "yours", "yours", "nothing"), os.fspath(top)
    return OwnSet(name, title, *yours, layout, folders=(place,), images=0, top=place, labels=dict(labels or {}))


def _own_class(data_set: OwnSet, folder: PurePath) -> str | None:
    """The nearest folder below the top with the name of a label."""
    below = PurePath(os.fspath(folder).removeprefix(data_set.top))
    number = class_among(below.parts[::-1], data_set.keys)
    return None if number is None else data_set.names[number]
