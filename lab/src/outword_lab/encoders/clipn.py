"""A CLIP with a second text tower that says no: a checkpoint of CLIPN, or what `outword train-no` wrote of an encoder.

Reference: Wang et al., "CLIPN for Zero-Shot OOD Detection: Teaching CLIP to Say No", ICCV 2023.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from outword.base.extras import require
from outword.base.files import parse_json, sha256_bytes, sha256_file
from outword.base.records import mistyped
from outword.encoders.base import Coverage, Encoder, Gradient, Pixels, Vectors, in_short, texts_of
from outword.encoders.configs import AGAIN
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import batches
from outword.encoders.torch.open_clip import from_parts, in_torch_file, only_weights
from outword.encoders.torch.towers import TEXTS, Model, Towers, check_towers
from outword.errors import InputError
from outword_lab.encoders.driven import text_tower
from outword_lab.encoders.text_tower import POSITIONS, PROJECTION, TOKENS, TextTower

if TYPE_CHECKING:
    from outword.encoders import Resize

FORMAT = "outword no 1"  # of what `outword train-no` writes; another one where the weights mean something else
PROMPTS = "prompt_no"  # (n, context, width), added to the embeddings of all tokens
HEAD = 64  # numbers a head, in all published models of CLIP
OWN = ("token_embedding_no", "positional_embedding_no", "transformer_no", "ln_final_no", "text_projection_no", PROMPTS)
WRONG = "name a checkpoint of CLIPN, or a file of outword train-no"
Weights = dict[str, Tensor]
Facts = dict[str, Any]
_FACTS = {"format": str, "encoder": str, "fingerprint": str, "options": {str: str}}


@dataclass(frozen=True)
class No:
    """The weights of a tower that says no, by the names of the tower that says yes, and its prompts."""

    weights: Mapping[str, Tensor]
    prompts: Tensor

    def tower(self, yes: TextTower) -> TextTower:
        """A tower that reads texts with the mean of the prompts, in float32, where the other one is.

        What is added to all tokens at a place can as well be added to the vector of that place.
        """
        mean = self.prompts.float().mean(dim=0)
        weights = {**self.weights, POSITIONS: self.weights[POSITIONS].float() + mean}
        return replace(yes, weights=weights).to(torch.float32, yes.device)


class SaysNo(Encoder):
    """An encoder with a second text tower; all else is the encoder's own."""

    def __init__(self, inner: Encoder, no: TextTower, *, name: str, fingerprint: str, source: str, path: Path) -> None:
        self.inner, self.name, self.fingerprint, self.source = inner, name, fingerprint, source
        self.dim, self.temperature, self.prompts = inner.dim, inner.temperature, inner.prompts
        self.options, self.licence, self.exported_from = inner.options, inner.licence, inner.fingerprint
        self.preprocess, self.min_side = inner.preprocess, inner.min_side
        self.feels_batch, self.offers = inner.feels_batch, (*inner.offers, "no")
        self._no, self._path = no, path

    def files(self) -> list[Path]:
        """The file that has the second tower."""
        return [self._path]

    @property
    def batch_size(self) -> int:  # type: ignore[override]  # it shrinks where memory is short
        """That of the encoder."""
        return self.inner.batch_size

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """See `Encoder`, as for the others below."""
        return self.inner.encode_pixels(pixels)

    def encode_on_device(self, pixels: Pixels) -> Any:
        """Vectors on the encoder's device."""
        return self.inner.encode_on_device(pixels)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the tower that says yes."""
        return self.inner.encode_texts(texts)

    def encode_patches(self, pixels: Pixels) -> tuple[Vectors, Vectors]:
        """Vectors of images and of their patches."""
        return self.inner.encode_patches(pixels)

    def encode_perturbed(self, pixels: Pixels, gradient: Gradient, epsilon: float) -> Vectors:
        """Vectors of images that were moved uphill."""
        return self.inner.encode_perturbed(pixels, gradient, epsilon)

    @property
    def driven_by(self) -> Encoder:
        """The encoder whose tower says yes (`outword_lab.encoders.driven`)."""
        return self.inner

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """What the encoder knows."""
        return self.inner.coverage(labels)

    @torch.inference_mode()
    def encode_no_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors (n, dim) of the tower that says no; texts are cut as for the other one, which warns of it.

        A vector may round otherwise among other texts, by some 1e-7, also on the CPU.
        """
        texts = texts_of(texts)
        out = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return out
        tower, ids = self._no, self._no.tokenize(texts)
        device = tower.device
        for rows, length in batches(ids, tower.end, TEXTS.get(device.type, 64), fill=not self.feels_batch):
            tokens = tower.embed(torch.from_numpy(ids[rows, :length]).to(device))
            ends = torch.full((len(rows),), length - 1, device=device)
            out[rows] = tower.read(tokens[0, :0], (tokens, ends)).cpu().numpy()
        return out


def load(name: str, path: Path, **options: Any) -> Encoder:
    """The encoder `clipn:FILE`; options are those of `get_encoder`."""
    if not path.is_file():
        raise InputError(f"{path} is not a file", hint=WRONG)
    weights, facts = _read(path)
    no = _no(path, weights)
    inner = _beside(path, facts, options) if facts else _whole(name, path, weights, **options)
    yes = text_tower(inner)
    if lacking := yes.weights.keys() - no.weights.keys():
        raise InputError(f"{path} has no {_renamed(min(lacking))}", hint=AGAIN)
    if more := no.weights.keys() - yes.weights.keys():
        raise InputError(f"{path} has {_renamed(min(more))}, and the tower that says yes no {min(more)}", hint=AGAIN)
    for key, weight in yes.weights.items():
        _same_shape(path, _renamed(key), no.weights[key], weight.shape)
    _same_shape(path, PROMPTS, no.prompts, (len(no.prompts), yes.context, yes.width))
    return SaysNo(
        inner,
        no.tower(yes),
        name=name,
        fingerprint=sha256_bytes(json.dumps([inner.fingerprint, sha256_file(path)]).encode()),
        source=f"a local file, with {inner.name}" if facts else "a local file",
        path=path,
    )


def to_file(encoder: Encoder, weights: Mapping[str, Tensor], prompts: Tensor) -> tuple[Weights, Facts]:
    """What `outword train-no` writes: weights by the names of CLIPN's checkpoint, and whose tower they stand beside."""
    named = {_renamed(key): weight.detach().cpu().contiguous() for key, weight in weights.items()}
    facts = {"encoder": encoder.name, "fingerprint": encoder.fingerprint, "options": dict(encoder.options)}
    return {**named, PROMPTS: prompts.detach().cpu().contiguous()}, {"format": FORMAT, **facts}


def _renamed(key: str) -> str:
    """A weight's name in the tower that says no.

    >>> _renamed("transformer.resblocks.0.ln_1.weight"), _renamed("text_projection")
    ('transformer_no.resblocks.0.ln_1.weight', 'text_projection_no')
    """
    head, dot, rest = key.partition(".")
    return f"{head}_no{dot}{rest}"


def _read(path: Path) -> tuple[Weights, Facts]:
    """The weights of a file, and what it says of the encoder that they belong to; empty for a whole checkpoint."""
    facts: Facts = {}
    with only_weights(path):
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                found = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # it is no dictionary
                facts = parse_json((file.metadata() or {}).get("no", "{}"))
        else:
            found = in_torch_file(path)
    weights = {key.removeprefix("module."): weight for key, weight in found.items()}
    if not any(key.startswith(OWN) for key in weights):
        raise InputError(f"{path} has no weights of a tower that says no", hint=WRONG)
    if "visual.conv1.weight" in weights:
        return weights, {}
    if mistyped(facts, _FACTS, "it") or facts["format"] != FORMAT:
        raise InputError(f"{path} does not say which encoder it belongs to", hint=WRONG)
    return weights, facts


def _no(path: Path, weights: Weights) -> No:
    """The tower that says no, by the names of the other one."""
    if weights.get(PROMPTS, torch.zeros(())).ndim != 3 or not len(weights[PROMPTS]):
        raise InputError(f"{path} has no {PROMPTS} of shape (n, context, width)", hint=AGAIN)
    own = {key: weight for key, weight in weights.items() if key.startswith(OWN) and key != PROMPTS}
    return No({key.replace("_no", "", 1): weight for key, weight in own.items()}, weights[PROMPTS])


def _same_shape(path: Path, key: str, weight: Tensor, wanted: Sequence[int]) -> None:
    if tuple(weight.shape) != tuple(wanted):
        raise InputError(
            f"{key} in {path} has the shape {tuple(weight.shape)}, and the tower that says yes {tuple(wanted)}",
            hint="both towers must be of one model",
        )


def _beside(path: Path, facts: Facts, options: dict[str, Any]) -> Encoder:
    """The encoder that a file of `outword train-no` belongs to; only the file names it, so that it is not fetched."""
    from outword.encoders import get_encoder

    named, own = facts["encoder"], facts["options"]
    if named.startswith("clipn:") or own.keys() - {"resize"}:
        raise InputError(f"{path} belongs to {named}, which is no encoder for it", hint=WRONG)
    inner = get_encoder(named, **{**own, **options}, download=False)
    if inner.fingerprint != facts["fingerprint"]:
        raise InputError(
            f"{path} was trained with another {named} than the one here (another fingerprint)",
            hint="bring that encoder, resized as it was then, or train again",
        )
    return inner


def _whole(
    name: str,
    path: Path,
    weights: Weights,
    *,
    resize: Resize | None = None,
    precision: str | None = None,
    **options: Any,
) -> Encoder:
    """The encoder of a whole checkpoint of CLIPN, which is a CLIP of open_clip with GELU."""
    model = _model(path, {key: weight for key, weight in weights.items() if not key.startswith(OWN)})
    if resize:
        model = replace(model, preprocess=replace(model.preprocess, interpolation=resize))
    told = {"resize": resize} if resize else {}
    return Towers(model, name=name, options=told, prompts="released", precision=precision, **options)


def _model(path: Path, weights: Weights) -> Model:
    library = require("open_clip", f"clipn:{path}")
    config = _config(path, weights)
    text = config["text_cfg"]
    try:
        module = library.CLIP(**config)
        module.load_state_dict(weights)
    except Exception as error:  # shapes that do not fit together end in anything
        detail = in_short(error).removeprefix("Error(s) in loading state_dict for CLIP:").strip()
        raise InputError(f"{path} does not fit together: {detail}", hint=AGAIN) from None
    tokenizer = library.tokenizer.SimpleTokenizer(context_length=text["context_length"])
    if tokenizer.vocab_size != text["vocab_size"]:
        told = f"{path} has {text['vocab_size']} tokens, and CLIP's vocabulary {tokenizer.vocab_size}"
        raise InputError(told, hint=WRONG)
    side = config["vision_cfg"]["image_size"]
    way = Preprocess(side, side, "bicubic", library.OPENAI_DATASET_MEAN, library.OPENAI_DATASET_STD)
    digest = sha256_bytes(json.dumps([sha256_file(path), config], sort_keys=True).encode())
    facts = {"dim": config["embed_dim"], "digest": digest, "licence": "not stated", "source": "a local file"}
    model = from_parts(module.eval(), tokenizer, way, **facts)
    check_towers(model, str(path))
    return model


def _config(path: Path, weights: Weights) -> dict[str, Any]:
    """The architecture that the shapes of the weights tell; a head has 64 numbers."""
    needed = ("visual.conv1.weight", "visual.positional_embedding", TOKENS, POSITIONS, PROJECTION, "logit_scale")
    for key in (*needed, "visual.transformer.resblocks.0.mlp.c_fc.weight", "transformer.resblocks.0.mlp.c_fc.weight"):
        if key not in weights:
            raise InputError(f"{path} has no {key}", hint=WRONG)
    shapes = {key: tuple(weight.shape) for key, weight in weights.items()}
    try:
        width, _, patch, _ = shapes["visual.conv1.weight"]
        (places, _), (vocabulary, inside) = shapes["visual.positional_embedding"], shapes[TOKENS]
        (context, _), (_, dim) = shapes[POSITIONS], shapes[PROJECTION]
    except ValueError:
        raise InputError(f"{path} does not fit together: it is no ViT of CLIP", hint=WRONG) from None
    grid = math.isqrt(places - 1)
    if grid * grid != places - 1 or width % HEAD or inside % HEAD:
        told = f"widths of {width} and {inside}, {places - 1} patches; {HEAD} numbers are a head, and patches a square"
        raise InputError(f"{path} does not fit together: {told}", hint=WRONG)
    vision: dict[str, float] = {"image_size": grid * patch, "patch_size": patch, "width": width, "head_width": HEAD}
    text: dict[str, float] = {
        "context_length": context,
        "vocab_size": vocabulary,
        "width": inside,
        "heads": inside // HEAD,
    }
    towers = {"visual.transformer": vision, "transformer": text}
    for prefix, tower in towers.items():
        tower["layers"] = sum(key.startswith(f"{prefix}.resblocks.") and key.endswith(".ln_1.weight") for key in shapes)
        tower["mlp_ratio"] = shapes[f"{prefix}.resblocks.0.mlp.c_fc.weight"][0] / tower["width"]
    return {"embed_dim": dim, "vision_cfg": vision, "text_cfg": text}
