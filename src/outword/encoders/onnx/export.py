"""A model of torch as a folder that runs without torch; see `outword.encoders.onnx.encoder` for what is in it.

Each tower is exported with its preparation and normalisation inside: bytes or token ids go in, unit vectors come out.
The folder is then read back and run beside torch on the same photos and texts; the cosines stand in the card.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from outword._version import __version__
from outword.base.extras import quiet_logs, require
from outword.base.files import PathLike, free_folder, sha256_file, whole_folder
from outword.base.reports import Say, quiet
from outword.encoders import bpe
from outword.encoders.base import Vectors, in_short
from outword.encoders.onnx import encoder as exported
from outword.encoders.onnx.encoder import CARD, IMAGE, TEXT, TOKENIZER
from outword.encoders.onnx.tokens import Form, Tokens
from outword.encoders.torch.towers import Model, Towers, unit
from outword.errors import ArtifactError, OutwordError, ParameterError
from outword.photos.decode import ImageLike
from outword.words.corpora import get_corpus
from outword.words.prompts import get_prompts

PRECISIONS = ("fp32", "fp16", "int8")
LEAST = 0.99  # cosine to the original, below which an export is refused
OPSET = 20


def export(
    encoder: Towers,
    path: PathLike,
    *,
    precision: str = "fp32",
    force: bool = False,
    say: Say = quiet,
) -> dict[str, Any]:
    """Write both towers, tokenizer and preprocessing to the folder `path`, and give its card.

    The encoder is on the CPU, in fp32. The folder is not there yet, or is an earlier export, which is replaced. In
    "fp16" weights are stored in half the space and computed with in fp32; in "int8" products are in integers (see
    `graph.quantize`). `force` writes it even if a cosine to the original is below 0.99.
    """
    if precision not in PRECISIONS:
        raise ParameterError(f"precision must be fp32, fp16 or int8, got {precision!r}", hint="leave it out for fp32")
    if (encoder.device.type, encoder.precision) != ("cpu", "fp32"):
        told = f"an encoder is exported from cpu in fp32, got {encoder.device} in {encoder.precision}"
        raise ParameterError(told, hint='get_encoder(name, device="cpu", precision="fp32")')
    require("onnx")
    require("onnxscript")
    from outword.encoders.onnx import graph

    target = check_target(path)
    with whole_folder(target) as folder:
        form = _write_tokenizer(encoder.model, folder / TOKENIZER)
        names = [TOKENIZER]
        for file, tower in ((IMAGE, _image_tower(encoder.model)), (TEXT, _text_tower(encoder.model))):
            say(f"writing {file}")
            model = graph.tidy(_traced(tower), tower.shape, encoder.dim)
            model = graph.quantize(model) if precision == "int8" else model
            names += graph.write(model if precision == "fp32" else graph.halve(model), folder / file)
        card = _card(encoder, form, precision)
        card["files"] = {n: {"sha256": sha256_file(folder / n), "bytes": (folder / n).stat().st_size} for n in names}
        card["fingerprint"] = exported.fingerprint(card)
        _write_card(folder, card)
        say("comparing with torch")
        card["cosine"] = _compare(encoder, exported.OnnxEncoder(folder, name=encoder.name))
        card["forced"] = _refuse(card["cosine"], precision, force)
        _write_card(folder, card)
    return exported.read_card(target)


def check_target(path: PathLike) -> Path:
    """Raise unless an encoder may be written to `path`: it is free, or holds an earlier export and nothing else."""
    what = "an exported encoder"
    target = free_folder(path, card=CARD, names=exported.NAMES, what=what)
    if target.exists() and '"exported_from"' not in (target / CARD).read_text(encoding="utf-8", errors="replace"):
        raise ArtifactError(f"{target} exists and is not {what}", hint="choose another name, or remove it")
    return target


def _card(encoder: Towers, form: Form, precision: str) -> dict[str, Any]:
    return {
        **{"schema": exported.SCHEMA, "outword": __version__, "name": encoder.name, "options": dict(encoder.options)},
        "exported_from": encoder.fingerprint,
        **{key: getattr(encoder, key) for key in ("licence", "source", "dim", "temperature", "prompts")},
        **{"precision": precision, "preprocess": asdict(encoder.model.preprocess), "text": asdict(form)},
    }


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


class _Tower(torch.nn.Module):
    """A tower, from its input, called `reads`, to unit vectors; in `shape`, that of the input, a name is any size."""

    def __init__(
        self, model: Model, run: Callable[[Tensor], Tensor], reads: str, shape: list[str | int], example: Tensor
    ) -> None:
        super().__init__()
        self.module, self.run = model.module, run  # the module for its weights
        self.reads, self.shape, self.example = reads, shape, example

    def forward(self, x: Tensor) -> Tensor:
        return unit(self.run(x))


def _image_tower(model: Model) -> _Tower:
    given = model.preprocess
    scale, shift = map(torch.tensor, given.affine)

    def run(pixels: Tensor) -> Tensor:
        return model.image((pixels.float() * scale + shift).permute(0, 3, 1, 2))

    shape = (given.side, given.side, 3)
    return _Tower(model, run, "pixels", ["n", *shape], torch.zeros((2, *shape), dtype=torch.uint8))


def _text_tower(model: Model) -> _Tower:
    """Of any length where what is behind the end does not count, else of the full context."""
    ids = torch.from_numpy(model.tokenize(["a cat", "a dog"]))
    if model.end is None:
        return _Tower(model, model.text, "ids", ["n", ids.shape[1]], ids)
    return _Tower(model, model.text, "ids", ["n", "length"], ids[:, :9])


def _traced(tower: _Tower) -> Any:
    """The tower as an ONNX graph."""
    axes = {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(tower.shape) if isinstance(size, str)}
    try:
        with quiet_logs(), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch's notes on its own future
            program = torch.onnx.export(
                tower.eval(),
                (tower.example,),
                dynamo=True,
                opset_version=OPSET,
                dynamic_shapes=(axes,),
                input_names=[tower.reads],
                output_names=["vectors"],
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        reason = in_short(error.__cause__ or error, 200)
        raise OutwordError(f"torch cannot export this model: {reason}", hint="use it with torch") from None
    assert program is not None
    return program.model_proto


def _write_tokenizer(model: Model, path: Path) -> Form:
    """Save the tokenizer in the layout of Hugging Face, and see that what is read back gives the same ids."""
    data, clean, zero = _tokenizer(model.tokenizer)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    kind: Any = "clip" if bpe.is_clip(data) else "tokenizers"
    form = Form(kind, model.tokenize([""]).shape[1], model.pad, model.end, clean, zero)
    texts = [*_ODD, *_texts("{}")]
    for text, wanted, got in zip(texts, model.tokenize(texts), Tokens(path, form).tokenize(texts), strict=True):
        if not np.array_equal(wanted, got):
            told = f"its tokens for {text[:40]!r} are {wanted[:12].tolist()}, of the copy {got[:12].tolist()}"
            raise OutwordError(f"the tokenizer cannot be exported: {told}", hint="use the model with torch")
    return form


_ODD = ["", "It’s a “Café”, R&amp;D!  #1 (x2)", "ΣΑΣ naïve 漢字 — 3.14", "word " * 300, "e\u0301_a-b"]


def _tokenizer(tokenizer: Any) -> tuple[dict[str, Any], str | None, int | None]:
    """The content of `tokenizer.json`, how texts are cleaned before, and the id that is set to 0, if any."""
    clean = getattr(getattr(tokenizer, "clean_fn", None), "__name__", "").removeprefix("_clean_") or None
    if hasattr(tokenizer, "bpe_ranks"):  # open_clip's own
        start, end = (tokenizer.decoder[token] for token in tokenizer.all_special_ids[:2])
        return bpe.layout(tokenizer.encoder, list(tokenizer.bpe_ranks), start, end), clean, None
    inner = getattr(tokenizer, "tokenizer", tokenizer)  # open_clip wraps those of transformers
    if inner is not tokenizer and clean is None:
        clean = "canonicalize"  # its wrapper for SigLIP
    if not hasattr(inner, "backend_tokenizer"):
        hint = "use the model with torch, or the same model from open_clip"
        raise OutwordError(f"a {type(inner).__name__} cannot be exported: it has no tokenizer.json", hint=hint)
    zero = inner.sep_token_id if getattr(tokenizer, "strip_sep_token", False) else None
    unset = {"truncation": None, "padding": None}  # of the last call
    return {**json.loads(inner.backend_tokenizer.to_str()), **unset}, clean, zero


def _compare(encoder: Towers, copy: exported.OnnxEncoder) -> dict[str, dict[str, float]]:
    """Cosines between the two on the demo's photos, on noise, and on class names in the encoder's own prompt."""
    images, texts = _images(), _texts(get_prompts(encoder.prompts).label[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a text that is cut is cut by both
        return {
            "image": _cosines(encoder.encode_images(images), copy.encode_images(images)),
            "text": _cosines(encoder.encode_texts(texts), copy.encode_texts(texts)),
        }


def _cosines(one: Vectors, other: Vectors) -> dict[str, float]:
    cosines = (one.astype(np.float64) * other).sum(axis=1)
    return {"min": round(float(cosines.min()), 6), "mean": round(float(cosines.mean()), 6), "n": len(cosines)}


def _images() -> list[ImageLike]:
    """Photos; then noise, a single colour, and a gradient."""
    photos = sorted(Path(str(files("outword"))).glob("demo/photos/*.jpg"))
    rng = np.random.default_rng(0)
    fine, coarse = (rng.integers(256, size=(side, side, 3), dtype=np.uint8) for side in (240, 12))
    ramp = np.linspace(0, 255, 240, dtype=np.uint8)
    flat = np.full((240, 240, 3), 128, np.uint8)
    slope = np.stack([*np.meshgrid(ramp, ramp), np.full((240, 240), 90, np.uint8)], axis=2)
    return [*photos, fine, Image.fromarray(coarse).resize((300, 200)), flat, slope]


def _texts(template: str) -> list[str]:
    """Class names in a prompt: the demo's, and words from all over WordNet."""
    labels = (Path(str(files("outword"))) / "demo" / "labels.txt").read_text(encoding="utf-8").split("\n")[:-1]
    words = get_corpus("wordnet").words
    return [template.replace("{}", name) for name in (*labels, *words[:: len(words) // 40])]


def _refuse(cosines: dict[str, dict[str, float]], precision: str, force: bool) -> bool:
    """Whether the export is too far from the original, and was asked for nevertheless."""
    tower = min(cosines, key=lambda name: cosines[name]["min"])
    least = cosines[tower]["min"]
    near = least >= LEAST
    if near or force:
        return not near
    told = f"in {precision} the {tower} tower comes out with a cosine of {least:.4f} to the original, below {LEAST}"
    raise OutwordError(told, hint="use a higher precision, or write it anyway with --force")
