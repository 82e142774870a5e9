"""From a name to the files of a model, wherever they are, and from the files to the model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from outword.encoders import hub
from outword.encoders.names import Parsed
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.encoders.towers import Model

WEIGHTS = {
    "transformers": ("model*.safetensors", "pytorch_model*.bin"),
    "open_clip": ("open_clip_model*.safetensors", "open_clip_pytorch_model*.bin"),
}


def files_of(parsed: Parsed) -> list[Path]:
    """The files of a model, fetched from the hub where they are not on this machine yet."""
    if parsed.library == "mini":
        from outword.encoders.mini import DATA

        return sorted(DATA.iterdir())
    if parsed.library == "onnx":
        return sorted(path for path in Path(parsed.what).glob("*") if path.is_file())
    if parsed.library == "open_clip":
        from outword.encoders import open_clip

        return [open_clip.find(parsed).weights, *open_clip.vocabulary(parsed.what)]
    folder, _ = _folder(parsed.what)
    patterns = [*hub.SMALL, *WEIGHTS[kind_of(folder)]]
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def model_of(parsed: Parsed) -> Model:
    """The model itself, with its weights, on the CPU."""
    from outword.encoders import open_clip, transformers

    if parsed.library == "open_clip":
        return open_clip.load(open_clip.find(parsed))
    folder, source = _folder(parsed.what)
    if kind_of(folder) == "open_clip":
        return open_clip.load(open_clip.in_folder(folder, source))
    return transformers.load(folder, source)


def kind_of(folder: Path) -> str:
    """The library that a folder is for; its configuration tells."""
    if (folder / "config.json").is_file():
        try:
            if "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8")):
                return "transformers"
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{folder / 'config.json'} cannot be read: {error}", hint="fetch or copy it again"
            ) from None
    if (folder / "open_clip_config.json").is_file():
        return "open_clip"
    raise InputError(
        f"{folder} is no model: it has neither a config.json with a model_type nor an open_clip_config.json",
        hint="name the folder that save_pretrained wrote, or that the hub keeps",
    )


def _folder(what: str) -> tuple[Path, str]:
    """A folder that is here, or the snapshot of a repository; and what to call its source."""
    if Path(what).is_dir():
        return Path(what), "a local folder"
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", what):
        raise InputError(f"{what} is not a folder", hint="write hf:/path/to/folder, or hf:ORG/NAME for the hub")
    instead = (
        f'where the hub can be reached, run "hf download {what} --local-dir FOLDER", copy FOLDER here, and say '
        f"--encoder hf:/path/to/FOLDER"
    )
    return hub.snapshot(what, lambda folder: WEIGHTS[kind_of(folder)], instead), f"{what} on the hub"
