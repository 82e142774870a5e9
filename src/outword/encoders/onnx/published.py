"""An encoder of ONNX files that others published, in any layout that `layouts` knows: onnxruntime and numpy, no torch.

Their towers read floats, (n, 3, side, side), and ids, and give features by many names; here bytes and texts go in and
unit vectors come out, as of an export of our own. CLIP's tokens are made here; others need the extra `onnx`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.files import sha256_file
from outword.encoders import bpe, hub
from outword.encoders.base import Vectors, in_short
from outword.encoders.configs import AGAIN, of_open_clip, read_json, read_preprocess
from outword.encoders.onnx.encoder import IMAGE, LARGEST, TEXT, TOKENIZER, OnnxEncoder, fingerprint
from outword.encoders.onnx.layouts import Facts, Found, fill, weights_beside
from outword.encoders.onnx.outside import check_outside
from outword.encoders.onnx.tokens import Form
from outword.encoders.ort import Session, session
from outword.encoders.preprocess import Interpolation, Preprocess
from outword.errors import ArtifactError, InputError, OutwordError

# names that towers give their result, the projected ones first: what is pooled is not in the shared space in CLIP
IMAGES = ("image_embeds", "image_embeddings", "unnorm_image_features", "embedding", "pooler_output")
TEXTS = ("text_embeds", "text_embeddings", "unnorm_text_features", "embedding", "pooler_output")
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_Run = Callable[[NDArray[Any]], Vectors]


class PublishedEncoder(OnnxEncoder):
    """Both towers of a published export; `resize` is how images are resized, by default as it says itself."""

    _again = AGAIN

    def __init__(
        self, found: Found, *, name: str, batch_size: int | None = None, resize: Interpolation | None = None
    ) -> None:
        self._found = found
        self._paths = {IMAGE: found.image, TEXT: found.text, TOKENIZER: found.tokenizer}
        for file, tower in ((IMAGE, found.image), (TEXT, found.text)):
            self._paths |= {f"{file}{path.name[len(tower.name) :]}": path for path in weights_beside(tower)}
        self._openvino, self.precision = False, found.precision
        # where numbers are rounded by the largest of all in a batch, texts would feel their neighbours
        self._texts_together = 1 if found.precision == "int8" else type(self)._texts_together
        self.card = _card(found, resize, self._paths)
        self._adopt(self.card, name, batch_size)
        self.options = {"resize": resize} if resize else {}

    def files(self) -> list[Path]:
        """Its files on this machine."""
        return self._found.files()

    def _check(self, file: str) -> None:
        if hub.checked_sha256(self._paths[file]) != self.card["files"][file]["sha256"]:
            raise ArtifactError(f"{self._paths[file]} has changed since it was loaded", hint="load the encoder again")

    def _tower(self, file: str, shape: Sequence[int | None], n_threads: int | None = None) -> _Run:
        """A function from pixels, or ids, to unit vectors."""
        for name in self._paths:
            if name.startswith(file):  # the tower, and weights beside it
                self._check(name)
        path = self._paths[file]
        check_outside(path)
        try:
            loaded = session(path, n_threads)
        except (OutwordError, MemoryError):
            raise
        except Exception as error:  # onnxruntime has a class of its own for each kind of damage
            reason = str(error).replace(str(path), path.name)  # said once is enough
            raise ArtifactError(f"{path} cannot be loaded: {reason[:200]}", hint=AGAIN) from None
        feed, output = (_pixels(self, loaded), IMAGES) if file == IMAGE else (_ids(self._form, loaded, path), TEXTS)
        wanted = _output(loaded, output, path)

        def run(rows: NDArray[Any]) -> Vectors:
            inputs = feed(rows)
            alone = _fixed(loaded.get_inputs()[0].shape[0]) == 1
            parts = [slice(at, at + 1) for at in range(len(rows))] if alone else [slice(None)]
            try:
                some = [loaded.run([wanted], {key: one[part] for key, one in inputs.items()})[0] for part in parts]
            except MemoryError:
                raise
            except Exception as error:
                raise ArtifactError(f"{path} cannot be run: {in_short(error, 200)}", hint=AGAIN) from None
            return self._unit(np.concatenate(some), path)

        return run

    def _unit(self, rows: NDArray[Any], path: Path) -> Vectors:
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            told = f"{path} gives features of shape {rows.shape[1:]}, and its configuration says {self.dim} numbers"
            raise ArtifactError(told, hint="use another export")
        rows = rows.astype(np.float32)
        unit: Vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
        return unit


def _pixels(encoder: OnnxEncoder, loaded: Session) -> Callable[[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Bytes (n, side, side, 3) as the image tower wants them."""
    name = loaded.get_inputs()[0].name
    half = loaded.get_inputs()[0].type == "tensor(float16)"
    scale, shift = (np.array(numbers, np.float32) for numbers in encoder.preprocess.affine)

    def feed(pixels: NDArray[Any]) -> dict[str, NDArray[Any]]:
        floats = np.ascontiguousarray((pixels.astype(np.float32) * scale + shift).transpose(0, 3, 1, 2))
        return {name: floats.astype(np.float16) if half else floats}

    return feed


def _ids(form: Form, loaded: Session, path: Path) -> Callable[[NDArray[Any]], dict[str, NDArray[Any]]]:
    """Ids as the text tower wants them: of its own type, filled up where its length is fixed, perhaps with a mask."""
    given = {one.name: one for one in loaded.get_inputs()}
    ids = next((given[name] for name in ("input_ids", "text", "ids") if name in given), None)
    ids = ids or (loaded.get_inputs()[0] if len(given) == 1 else None)
    if ids is None or ids.type not in _TYPES or given.keys() - {ids.name, "attention_mask"}:
        raise ArtifactError(f"{path} reads {', '.join(given)}, not ids alone", hint="use another export")
    length = _fixed(ids.shape[1]) if len(ids.shape) == 2 else None

    def feed(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        short = 0 if length is None else max(0, length - rows.shape[1])
        filled = np.pad(rows, ((0, 0), (0, short)), constant_values=form.pad).astype(_TYPES[ids.type])
        if "attention_mask" not in given:
            return {ids.name: filled}
        mask = np.ones_like(filled, _TYPES[given["attention_mask"].type])
        mask[:, rows.shape[1] :] = 0
        return {ids.name: filled, "attention_mask": mask}

    return feed


def _fixed(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _output(loaded: Session, names: Sequence[str], path: Path) -> str:
    """The output with the features."""
    given = [one.name for one in loaded.get_outputs()]
    found = next((name for name in names if name in given), given[0] if len(given) == 1 else None)
    if found is None:
        raise ArtifactError(f"{path} gives {', '.join(given)}, none of {', '.join(names)}", hint="use another export")
    return found


def _card(found: Found, resize: Interpolation | None, paths: Mapping[str, Path]) -> dict[str, Any]:
    """What an export of our own says in its card."""
    config = read_json(found.config)
    config = config["model_cfg"] if isinstance(config.get("model_cfg"), dict) else config
    preprocess = _preprocess(found)
    if resize:
        preprocess = replace(preprocess, interpolation=resize)
    facts = found.facts or _facts(config, found)
    files = {name: {"sha256": _identity(path), "bytes": path.stat().st_size} for name, path in paths.items()}
    card = {
        **{"exported_from": None, "licence": found.licence, "source": f"{_source(found)}, as ONNX"},
        **{"dim": _dim(config), "temperature": facts.temperature, "prompts": "released", "precision": found.precision},
        **{"preprocess": asdict(preprocess), "text": asdict(_form(config, facts, found)), "files": files},
    }
    return {**card, "fingerprint": fingerprint(card)}


def _identity(path: Path) -> str:
    """sha256 of a file; that in the cache of the hub has it as its name, and is checked when it is loaded."""
    blob = path.resolve()
    return blob.name if blob.parent.name == "blobs" and len(blob.name) == 64 else sha256_file(path)


def _source(found: Found) -> str:
    cached = [part.removeprefix("models--") for part in found.image.parts if part.startswith("models--")]
    return f"{cached[-1].replace('--', '/', 1)} on the hub" if cached else "a local folder"


def _preprocess(found: Found) -> Preprocess:
    if found.image_way.name != "preprocess_cfg.json":
        return read_preprocess(found.image_way.parent)
    given = {"resize_mode": "shortest", "interpolation": "bicubic", **read_json(found.image_way)}
    if lacks := {"size", "mean", "std"} - given.keys():
        raise InputError(f"{found.image_way} does not say {min(lacks)}", hint=AGAIN)
    return of_open_clip(given, str(found.image_way))


def _facts(config: Mapping[str, Any], found: Found) -> Facts:
    """By the kind of model: CLIPs end at a temperature of 0.01, of others it must be known."""
    texts = _texts(config)
    kind = str(config.get("model_type", ""))
    plain = not texts.get("no_causal_mask") and not texts.get("hf_model_name") and not texts.get("hf_tokenizer_name")
    if (kind.startswith("clip") or (not kind and "embed_dim" in config)) and plain:
        return Facts(0.01, clean="lower" if "embed_dim" in config else None)
    told = f"the temperature of {_source(found)} is not in its files, and it is no CLIP that has CLIP's own"
    raise InputError(told, hint='make a folder of the model with torch: "outword export"')


def _texts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    found = config.get("text_config", config.get("text_cfg", {}))
    return found if isinstance(found, dict) else {}


def _dim(config: Mapping[str, Any]) -> int:
    """Of a vector, as the configuration says, or as the kind of model has it where nothing is said."""
    texts, usual = _texts(config), 768 if "siglip" in str(config.get("model_type", "")) else 512
    hidden = texts.get("hidden_size") if usual == 768 else None
    for value in (config.get("embed_dim"), config.get("projection_dim"), texts.get("projection_dim"), hidden, usual):
        if type(value) is int and 1 <= value <= LARGEST:
            return value
    raise AssertionError


def _form(config: Mapping[str, Any], facts: Facts, found: Found) -> Form:
    """How its texts are made."""
    data, texts = read_json(found.tokenizer), _texts(config)
    ours = bpe.is_clip(data)
    context = next((texts[key] for key in ("context_length", "max_position_embeddings") if key in texts), None)
    context = context or (64 if "siglip" in str(config.get("model_type", "")) else 77)
    if type(context) is not int or not 1 < context <= LARGEST:
        raise InputError(f"{found.config} says a context of {context!r}", hint=AGAIN)
    clean = facts.clean if ours or facts.clean != "lower" else None
    if not ours:
        return Form("tokenizers", context, fill(found), None, clean, None)
    end = bpe.Bpe(data).end
    return Form("clip", context, 0, end if facts.causal else None, clean, None)
