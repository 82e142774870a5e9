"""From a name to the files of a model, wherever they are, and from the files to the model."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from outword.base.extras import require
from outword.encoders import hub
from outword.encoders.configs import AGAIN, PREPROCESSING, read_json
from outword.encoders.names import Parsed, canonical, parse
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.encoders.torch.towers import Model

CONFIG, OPEN_CLIP = "config.json", "open_clip_config.json"
VOCABULARY = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tokenizer.model")
WEIGHTS = {  # in the order in which the libraries themselves look for them
    "transformers": ("model.safetensors", "model-*-of-*.safetensors", "pytorch_model.bin", "pytorch_model-*-of-*.bin"),
    "open_clip": ("open_clip_model.safetensors", "open_clip_pytorch_model.bin"),
}


def files_of(parsed: Parsed) -> list[Path]:
    """The files of a model, fetched from the hub where they are not on this machine yet."""
    if parsed.library == "mini":
        from outword.encoders.mini.encoder import DATA

        return sorted(DATA.iterdir())
    if parsed.library == "onnx":
        from outword.encoders.onnx import layouts
        from outword.encoders.onnx.encoder import CARD, read_card

        what, precision = layouts.split(parsed.what)
        folder = Path(what)
        if not folder.is_dir() or (not (folder / CARD).is_file() and layouts.here(what, precision)):
            return layouts.fetched(what, precision).files()
        return [folder / name for name in (CARD, *read_card(folder)["files"])]
    if parsed.library == "open_clip":
        require("open_clip", f"open_clip:{parsed.what}")
        from outword.encoders.torch import open_clip

        place = open_clip.find(parsed)
        tokens = open_clip.vocabulary(parsed.what)
        return [place.weights, *(sorted(tokens.iterdir()) if tokens else [])]
    if parsed.library != "hf":
        return _files_of_another(parsed)
    folder, _ = _folder(parsed.what)
    small = {path for pattern in hub.SMALL for path in folder.glob(pattern)}
    if kind_of(folder) == "open_clip":
        require("open_clip", f"hf:{parsed.what}")
        from outword.encoders.torch import open_clip

        return sorted(small | {open_clip.in_folder(folder, "").weights})
    if not (weights := weights_of(folder)):
        raise InputError(f"{folder} has no weights ({WEIGHTS['transformers'][0]})", hint=AGAIN)
    return sorted(small | set(weights))


def _files_of_another(parsed: Parsed) -> list[Path]:
    """The files of an encoder of another package, where it says them."""
    from outword.encoders import get_encoder

    name = f"{parsed.library}:{parsed.what}" if parsed.what else parsed.library
    files = get_encoder(name).files()
    if not files:
        raise InputError(f"{parsed.library} looks after its own files", hint="see the package that brings it")
    return files


def check_here(name: str) -> None:
    """Raise unless the files of an encoder of the hub are on this machine."""
    parsed = parse(canonical(name))
    if parsed.library in ("open_clip", "hf", "onnx"):
        with hub.closed(name):
            files_of(parsed)


def model_of(parsed: Parsed) -> Model:
    """The model itself, with its weights, on the CPU."""
    from outword.encoders.torch import open_clip, transformers

    if parsed.library == "open_clip":
        return open_clip.load(open_clip.find(parsed))
    folder, source = _folder(parsed.what)
    if kind_of(folder) == "open_clip":
        return open_clip.load(open_clip.in_folder(folder, source))
    return transformers.load(folder, source)


def kind_of(folder: Path) -> str:
    """The library that a folder is for; its configuration tells."""
    if (folder / CONFIG).is_file() and "model_type" in read_json(folder / CONFIG):
        return "transformers"
    if (folder / OPEN_CLIP).is_file():
        return "open_clip"
    told = f"{folder} is no model: it has neither a {CONFIG} with a model_type nor an {OPEN_CLIP}"
    raise InputError(told, hint="name the folder that save_pretrained wrote, or that the hub keeps")


def weights_of(folder: Path) -> list[Path]:
    """The files with the weights: the one, or all parts that the index names. Empty where there are none."""
    for pattern in WEIGHTS[kind_of(folder)]:
        found = sorted(folder.glob(pattern))
        index = folder / f"{pattern.replace('-*-of-*', '')}.index.json"
        if found and "*" in pattern and index.is_file():
            parts = {folder / str(name) for name in read_json(index).get("weight_map", {}).values()}
            if absent := sorted(path.name for path in parts if not path.is_file()):
                raise InputError(f"{folder} has no {absent[0]}, which its index names", hint=AGAIN)
            return sorted(parts)
        if found:
            return found
    return []


def _missing(folder: Path) -> list[str]:
    """Patterns of what a folder of the hub's cache still lacks; a part that is absent brings all of its like."""
    kind, lacks = kind_of(folder), list[str]()
    for names in () if kind == "open_clip" else (PREPROCESSING, VOCABULARY):
        lacks += [] if any((folder / name).is_file() for name in names) else names
    with suppress(InputError):
        if weights_of(folder):
            return lacks
    return [*lacks, *WEIGHTS[kind]]


def _folder(what: str) -> tuple[Path, str]:
    """A folder that is here, or the snapshot of a repository; and what to call its source."""
    if Path(what).is_dir():
        return Path(what), "a local folder"
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", what):
        raise InputError(f"{what} is not a folder", hint="write hf:/path/to/folder, or hf:ORG/NAME for the hub")
    folder = hub.snapshot(what, _missing, by_hand(what))
    if not weights_of(folder):
        raise InputError(f"{what} on the hub has no weights ({WEIGHTS[kind_of(folder)][0]})", hint=by_hand(what))
    return folder, f"{what} on the hub"


def by_hand(repo: str) -> str:
    """How to bring a repository of the hub to a machine that cannot reach it."""
    fetch = f'run "hf download {repo} --local-dir FOLDER", copy FOLDER here'
    return f"where the hub can be reached, {fetch}, and say --encoder hf:/path/to/FOLDER"
