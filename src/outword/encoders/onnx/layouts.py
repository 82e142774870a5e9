"""Where published ONNX exports keep what an encoder needs: the one place that knows their layouts.

A layout is a table of paths: {sub} is a folder for one of several models, {precision} how a file's name ends. The
towers may lie in two repositories, one each. What is not said in the files, such as the temperature, is in `FACTS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outword.encoders import bpe, download, hub
from outword.encoders.configs import read_json
from outword.errors import ArtifactError, InputError

SUFFIXES = {"int8": ("_quantized", "_int8"), "fp32": ("",), "fp16": ("_fp16",)}  # the first choice on a CPU first
CARD = "README.md"
OWN = "card.json"  # of what `outword export` wrote


@dataclass(frozen=True)
class Layout:
    """Paths of one kind of repository; where there are several, the first that is there counts."""

    image: str
    text: str
    tokenizer: str
    image_way: tuple[str, ...]  # how images are prepared
    text_way: str  # which token fills a row
    config: tuple[str, ...]


LAYOUTS = (
    Layout(  # of transformers.js
        "onnx/{sub}vision_model{precision}.onnx",
        "onnx/{sub}text_model{precision}.onnx",
        "tokenizer.json",
        ("onnx/{sub}preprocessor_config.json", "preprocessor_config.json"),
        "tokenizer_config.json",
        ("onnx/{sub}config.json", "config.json"),
    ),
    Layout(  # of immich
        "visual/model{precision}.onnx",
        "textual/model{precision}.onnx",
        "textual/tokenizer.json",
        ("visual/preprocess_cfg.json",),
        "textual/tokenizer_config.json",
        ("config.json",),
    ),
    *(
        Layout(  # a repository for each tower
            f"{folder}model{{precision}}.onnx",
            f"{folder}model{{precision}}.onnx",
            "tokenizer.json",
            ("preprocessor_config.json",),
            "tokenizer_config.json",
            ("config.json",),
        )
        for folder in ("onnx/", "")
    ),
)


@dataclass(frozen=True)
class Facts:
    """What is known of a published export beside its files."""

    temperature: float
    causal: bool = True  # whether a text may be cut behind its end
    clean: str | None = None


FACTS = {  # by repository, with its folder; for others what the kind of model says
    **{f"plhery/mobileclip2-onnx/{size}": Facts(0.01, causal=False) for size in ("s0", "s2")},
    "onnx-community/siglip2-base-patch16-224-ONNX": Facts(1 / 112.67, causal=False, clean="canonicalize"),
}


@dataclass(frozen=True)
class Place:
    """A folder on this machine, or a repository of the hub, and the folder of one of several models in it."""

    folder: Path | None
    repo: str = ""
    sub: str = ""

    def local(self) -> Path | None:
        """Where its files are on this machine, as far as they are."""
        return self.folder or download.snapshot(self.repo)


@dataclass(frozen=True)
class Found:
    """The files of an encoder, on this machine."""

    image: Path
    text: Path
    tokenizer: Path
    image_way: Path
    text_way: Path | None
    config: Path
    precision: str
    facts: Facts | None
    own: Path | None = None  # the folder, where it is an export of ours

    def files(self) -> list[Path]:
        """All of them, with weights that lie beside a tower."""
        if self.own is not None:
            return [self.own / name for name in (OWN, *read_json(self.own / OWN).get("files", {}))]
        small = [self.tokenizer, self.image_way, *([self.text_way] if self.text_way else []), self.config]
        towers = [path for tower in (self.image, self.text) for path in (tower, *weights_beside(tower))]
        return list(dict.fromkeys([*towers, *small]))

    @property
    def licence(self) -> str:
        """What the repository's own page says."""
        return hub.licence(next((top / CARD for top in self.image.parents[:3] if (top / CARD).is_file()), None))


def weights_beside(tower: Path) -> list[Path]:
    """The files with weights of a tower that are too many for one file."""
    return sorted(path for mark in "_." for path in tower.parent.glob(f"{tower.name}{mark}data*"))


def split(what: str) -> tuple[str, str | None]:
    """What is behind "onnx:", and the precision that it ends in, if it does.

    >>> split("Xenova/clip-vit-base-patch32@fp32"), split("ORG/NAME")
    (('Xenova/clip-vit-base-patch32', 'fp32'), ('ORG/NAME', None))
    """
    place, at, precision = what.rpartition("@")
    return (place, precision) if at and precision in SUFFIXES and not Path(what).exists() else (what, None)


def places(what: str) -> list[Place]:
    """The one place with both towers, or one for images and one for texts, "A+B"."""
    if Path(what).is_dir():
        return [Place(Path(what))]
    return [_place(part) for part in what.split("+", 1)]


def _place(part: str) -> Place:
    if Path(part).is_dir():
        return Place(Path(part))
    org, _, rest = part.partition("/")
    name, _, sub = rest.partition("/")
    if not download.is_repo(f"{org}/{name}") or "/" in sub or Path(part).is_absolute():
        hint = "if it was moved, say --encoder onnx:/its/new/place; onnx:ORG/NAME is a repository of the hub"
        raise ArtifactError(f"there is no folder {part}", hint=hint)
    return Place(None, f"{org}/{name}", f"{sub}/" if sub else "")


def here(what: str, precision: str | None) -> Found | None:
    """What is on this machine, where it is whole; nothing is asked of the hub."""
    found = places(what)
    folders = [place.local() for place in found]
    if any(folder is None for folder in folders):
        return None
    known = [folder for folder in folders if folder is not None]
    chosen = _choose([_names(folder) for folder in known], found, precision)
    return _found(chosen, known, found) if chosen else None


def fetched(what: str, precision: str | None) -> Found:
    """The same, fetched from the hub where it is not on this machine."""
    if (there := here(what, precision)) is not None:
        return there
    found = places(what)
    instead = f'where the hub can be reached, run "outword pull onnx:{what}", and copy its folder of HF_HOME here'
    if all(place.folder for place in found):
        raise _no_layout(what, precision, found)
    listings = [None if place.folder else download.listing(place.repo, instead) for place in found]
    names = [
        _names(place.folder or Path()) if listed is None else set(listed.files)
        for place, listed in zip(found, listings, strict=True)
    ]
    chosen = _choose(names, found, precision)
    if chosen is None:
        raise _no_layout(what, precision, found)
    folders = []
    for at, (place, listed) in enumerate(zip(found, listings, strict=True)):
        if listed is None:
            folders.append(place.local() or Path())
            continue
        folders.append(download.fetch(listed, _in_order(chosen, at, names[at]), instead))
    return _found(chosen, folders, found)


def _no_layout(what: str, precision: str | None, found: list[Place]) -> InputError:
    kind = f" in {precision}" if precision else ""
    looked = LAYOUTS[0].image.format(sub=found[0].sub, precision=SUFFIXES[precision or "fp32"][0])
    hint = f"known are {looked} with a text_model beside it, and visual/model.onnx with textual/model.onnx"
    return InputError(f"{what} has no ONNX export{kind} in a layout that is known", hint=hint)


@dataclass(frozen=True)
class _Chosen:
    files: Mapping[str, str]  # by role
    precision: str


def _choose(names: Sequence[Collection[str]], found: list[Place], precision: str | None) -> _Chosen | None:
    """The first layout that is complete, in the best precision that both towers have."""
    if len(names) == 1 and OWN in names[0]:
        return _Chosen({"own": OWN}, "")
    sub = found[0].sub
    for wanted in [precision] if precision else SUFFIXES:
        for layout in LAYOUTS if len(names) == 2 else LAYOUTS[:2]:
            for suffix in SUFFIXES[wanted]:
                files = dict(_roles(layout, names, sub, suffix))
                if {"image", "text", "tokenizer", "image_way", "config"} <= files.keys():
                    return _Chosen(files, wanted)
    return None


def _roles(layout: Layout, names: Sequence[Collection[str]], sub: str, suffix: str) -> Iterator[tuple[str, str]]:
    """The files of a layout that are there, by role."""
    of_image, of_text = names[0], names[-1]
    given: list[tuple[str, Collection[str], tuple[str, ...]]] = [
        ("image", of_image, (layout.image,)),
        ("text", of_text, (layout.text,)),
        ("tokenizer", of_text, (layout.tokenizer,)),
        ("image_way", of_image, layout.image_way),
        ("text_way", of_text, (layout.text_way,)),
        ("config", of_text, layout.config),
    ]
    for role, there, patterns in given:
        paths = [pattern.format(sub=sub, precision=suffix) for pattern in patterns]
        if (path := next((path for path in paths if path in there), None)) is not None:
            yield role, path


def _in_order(chosen: _Chosen, at: int, names: Collection[str]) -> list[str]:
    """What is fetched of one place: the towers last, so that where they are, all is."""
    if "own" in chosen.files:
        ours = ("tokenizer.json", "image.onnx.data", "text.onnx.data", "image.onnx", "text.onnx", OWN)
        return [name for name in ours if name in names]
    towers = [chosen.files[role] for role in ("image", "text")]
    small = [path for role, path in chosen.files.items() if role not in ("image", "text")]
    weights = [
        name for name in sorted(names) for tower in towers if name.startswith((f"{tower}_data", f"{tower}.data"))
    ]
    return [name for name in dict.fromkeys([CARD, *small, *weights, *towers]) if name in names]


def _found(chosen: _Chosen, folders: list[Path], found: list[Place]) -> Found:
    if "own" in chosen.files:
        nothing = folders[0] / OWN
        return Found(nothing, nothing, nothing, nothing, None, nothing, "", None, own=folders[0])
    of_image, of_text = folders[0], folders[-1]
    way = chosen.files.get("text_way")
    key = f"{found[0].repo}/{found[0].sub.rstrip('/')}".rstrip("/")
    return Found(
        image=of_image / chosen.files["image"],
        text=of_text / chosen.files["text"],
        tokenizer=of_text / chosen.files["tokenizer"],
        image_way=of_image / chosen.files["image_way"],
        text_way=of_text / way if way else None,
        config=of_text / chosen.files["config"],
        precision=chosen.precision,
        facts=FACTS.get(key),
    )


def _names(folder: Path) -> set[str]:
    """The files of a folder, as a repository would list them; a link to nothing is none."""
    depth = [path for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(pattern)]
    return {path.relative_to(folder).as_posix() for path in depth if path.is_file()}


def fill(found: Found) -> int:
    """The id of the token that fills a row, as the tokenizer's configuration names it."""
    token = read_json(found.text_way).get("pad_token") if found.text_way else None
    name = token.get("content") if isinstance(token, dict) else token
    data = read_json(found.tokenizer)
    added = {one.get("content"): one.get("id") for one in data.get("added_tokens", []) if isinstance(one, dict)}
    number = added.get(name, (data.get("model") or {}).get("vocab", {}))
    if isinstance(number, dict):
        number = number.get(name)
    return number if type(number) is int else 0


def has_our_tokens(found: Found) -> bool:
    """Whether its texts need no library: it has CLIP's tokenizer."""
    return bpe.is_clip(read_json(found.tokenizer))
