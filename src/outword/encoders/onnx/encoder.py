"""An exported encoder, `onnx:DIR`: onnxruntime (or openvino) and numpy; no torch.

DIR/
  card.json         what it is: where it comes from, what it reads, how near it is to the original, sha256 of the rest
  image.onnx        pixels, uint8 (n, side, side, 3), to unit vectors (n, dim)
  text.onnx         token ids, int64 (n, length), to unit vectors (n, dim)
  tokenizer.json    the vocabulary
  *.onnx.data       the weights of a tower of 2 GB or more

`outword.encoders.onnx.export` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outword.base.extras import require
from outword.base.files import parse_json, sha256_bytes, sha256_file
from outword.base.processors import usable_cpus
from outword.base.records import mistyped
from outword.encoders.base import Encoder, Pixels, Vectors, in_short, texts_of
from outword.encoders.onnx.tokens import Form, Tokens
from outword.encoders.ort import ImageTower, session
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import TOGETHER, batches, warn_of_cuts
from outword.encoders.tidy_text import CLEAN
from outword.errors import ArtifactError, OutwordError, ParameterError

if TYPE_CHECKING:
    from outword.encoders.onnx.traced import Graph, Traced

SCHEMA = 1
CARD, IMAGE, TEXT, TOKENIZER = "card.json", "image.onnx", "text.onnx", "tokenizer.json"
NAMES = {CARD, IMAGE, TEXT, TOKENIZER, f"{IMAGE}.data", f"{TEXT}.data"}
_AGAIN = 'export it again with "outword export"'
_Run = Callable[[NDArray[Any]], Vectors]


class OnnxEncoder(Encoder):
    """Both towers from a folder that `outword export` wrote; each is checked and loaded when it is first needed.

    The device is "cpu" for onnxruntime, the default, or "openvino", which is an extra. The precision is the folder's;
    or "bf16" on openvino, where the processor has it: quicker, and further from the original than the card says.
    """

    preprocess: Preprocess
    _paths: dict[str, Path]
    _texts_together: int = TOGETHER
    _again = _AGAIN

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        device: str | None = None,
        precision: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._folder = folder
        self.card = read_card(folder)
        self._paths = {file: folder / file for file in self.card["files"]}
        if device not in (None, "cpu", "openvino"):
            raise ParameterError(f"an exported encoder runs on cpu or openvino, got {device!r}", hint="leave it out")
        self._openvino = device == "openvino"
        self.precision: str = precision or self.card["precision"]
        if precision not in (None, self.card["precision"]) and (precision, device) != ("bf16", "openvino"):
            told = f"{folder} was exported in {self.card['precision']}, got precision {precision!r}"
            raise ParameterError(told, hint=f"leave it out, or {_AGAIN}")
        self._adopt(self.card, name, batch_size)
        if self.precision == "bf16":  # so much coarser that its vectors are kept apart
            self.fingerprint = sha256_bytes(f"{self.fingerprint} bf16".encode())

    def _adopt(self, card: Mapping[str, Any], name: str, batch_size: int | None) -> None:
        """Be what a card says."""
        self.name, self.batch_size = name, batch_size or 1  # each image goes through alone, whatever the batch
        self.dim, self.temperature, self.prompts = (card[key] for key in ("dim", "temperature", "prompts"))
        self.licence, self.source = card["licence"], card["source"]
        self.fingerprint, self.exported_from = card["fingerprint"], card["exported_from"]
        self.preprocess = Preprocess(**card["preprocess"])
        self.min_side = self.preprocess.min_side
        self._form = Form(**card["text"])

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pixels (n, side, side, 3) to unit vectors (n, dim)."""
        out = np.empty((len(pixels), self.dim), np.float32)

        def encode(run: _Run, rows: slice) -> None:
            out[rows] = run(pixels[rows])

        self._image_tower.each(encode, len(pixels), 1)  # one by one: no slower on a CPU, and never feels its batch
        return out

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, prompts included, to unit vectors (n, dim); what does not fit the context is cut, with a warning."""
        texts = texts_of(texts)
        out = np.empty((len(texts), self.dim), np.float32)
        ids = self._tokens.tokenize(texts)
        warn_of_cuts(self.name, texts, ids, self._form.pad, self._tokens.count)
        for rows, length in batches(ids, self._form.end, self._texts_together):
            out[rows] = self._text_tower(ids[rows, :length])
        return out

    def image_graph(self, graph: Graph, pixels: Traced, *, resize: bool) -> Traced:
        """Unit vectors of bytes, as operations of an ONNX graph; see `Encoder.image_graph`."""
        from outword.encoders.onnx.lower import image_tower
        from outword.encoders.onnx.resizing import resized

        for name in (IMAGE, f"{IMAGE}.data"):
            if name in self.card["files"]:
                self._check(name)
        given = self.preprocess
        x = resized(graph, pixels, given.side, given.interpolation, given.box) if resize else pixels
        return graph.include(image_tower(self._folder / IMAGE, graph.precision), x)

    @cached_property
    def _image_tower(self) -> ImageTower[_Run]:
        shape = [self.preprocess.side, self.preprocess.side, 3]
        if self._openvino:  # has threads of its own, and one image after the other
            return ImageTower(lambda _: self._tower(IMAGE, shape), n_threads=1)
        return ImageTower(lambda n_threads: self._tower(IMAGE, shape, n_threads))

    @cached_property
    def _text_tower(self) -> _Run:
        return self._tower(TEXT, [self._form.context] if self._form.end is None else [None])

    @cached_property
    def _tokens(self) -> Tokens:
        self._check(TOKENIZER)
        try:
            return Tokens(self._paths[TOKENIZER], self._form)
        except OutwordError:
            raise
        except Exception as error:  # the tokenizers library raises nothing narrower
            raise ArtifactError(f"{self._paths[TOKENIZER]} cannot be read: {error!r}", hint=self._again) from None

    def _tower(self, file: str, shape: Sequence[int | None], n_threads: int | None = None) -> _Run:
        """A function from a batch of inputs to vectors; `shape` is that of one input, None for any length."""
        for name in (file, f"{file}.data"):
            if name in self.card["files"]:
                self._check(name)
        path = self._paths[file]
        try:
            found, run = _in_openvino(path, self.precision) if self._openvino else _in_onnxruntime(path, n_threads)
        except (OutwordError, MemoryError):
            raise
        except Exception as error:  # onnxruntime has a class of its own for each kind of damage
            raise ArtifactError(f"{path} cannot be loaded: {in_short(error, 200)}", hint=_AGAIN) from None
        if found != [list(shape), [self.dim]]:
            told = f"{path} turns {found[0]} into {found[1]}, the card says {list(shape)} into {[self.dim]}"
            raise ArtifactError(told, hint=_AGAIN)
        return run

    def _check(self, file: str) -> None:
        """A file is read as a whole once it is needed, which is when its sha256 costs next to nothing."""
        if sha256_file(self._paths[file]) != self.card["files"][file]["sha256"]:
            raise ArtifactError(f"{self._paths[file]} has changed since it was exported", hint=self._again)


def fingerprint(card: Mapping[str, Any]) -> str:
    """sha256 of all that decides about vectors and scores: files, preprocessing, tokens, temperature."""
    parts = [card["files"], card["preprocess"], card["text"], card["temperature"]]
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode())


def _in_onnxruntime(path: Path, n_threads: int | None) -> tuple[list[Any], _Run]:
    run = session(path, n_threads)
    (given,), (got,) = run.get_inputs(), run.get_outputs()
    shapes = [[size if isinstance(size, int) else None for size in end.shape[1:]] for end in (given, got)]
    return shapes, lambda x: np.asarray(run.run(None, {given.name: x})[0])


def _in_openvino(path: Path, precision: str) -> tuple[list[Any], _Run]:
    library = require("openvino")
    settings = {  # its own default is bf16 where the processor has it
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        "INFERENCE_NUM_THREADS": usable_cpus(),
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = library.Core().compile_model(path, "CPU", settings)
    shapes = [
        [size.get_length() if size.is_static else None for size in list(end.partial_shape)[1:]]
        for end in (model.inputs[0], model.outputs[0])
    ]

    return shapes, lambda x: model.create_infer_request().infer([np.ascontiguousarray(x)])[0].copy()


_KINDS: dict[str, Any] = {
    **{"schema": int, "dim": int, "temperature": float, "options": dict},
    **dict.fromkeys(("name", "exported_from", "fingerprint", "prompts", "precision", "licence", "source"), str),
    "preprocess": {"side": int, "short": int, "interpolation": str, "mean": [float], "std": [float], "crop": str},
    "text": {
        **{"tokenizer": str, "context": int, "pad": int},
        **{"end": (int, None), "clean": (str, None), "zero": (int, None)},
    },
    "files": {str: {"sha256": str, "bytes": int}},
}
LARGEST = 1 << 16  # dimensions of a vector, and tokens of a text


def read_card(folder: Path) -> dict[str, Any]:
    """The card of an exported encoder; whatever is wrong with it, or with the size of a file, is one line."""
    if not folder.is_dir():
        raise ArtifactError(f"there is no folder {folder}", hint="if it was moved, say --encoder onnx:/its/new/place")
    if not (folder / CARD).is_file():
        raise ArtifactError(f"{folder} is not an exported encoder: it has no {CARD}", hint='make one: "outword export"')
    try:
        card = parse_json((folder / CARD).read_bytes())
        schema = card["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{folder / CARD} cannot be read: {error!r}", hint=_AGAIN) from None
    if type(schema) is int and schema > SCHEMA:
        raise ArtifactError(f"{folder} has schema {schema}, newer than {SCHEMA}", hint="upgrade outword")
    if problem := _problem(card):
        raise ArtifactError(f"{folder / CARD} is not valid: {problem}", hint=_AGAIN)
    for name, wanted in card["files"].items():
        if not (folder / name).is_file():
            raise ArtifactError(f"{folder} has no {name}", hint=_AGAIN)
        if (folder / name).stat().st_size != wanted["bytes"]:
            raise ArtifactError(f"{folder / name} has changed since it was exported", hint=_AGAIN)
    return dict(card)


def _problem(card: dict[str, Any]) -> str:
    """The first thing that is wrong with a card, or nothing."""
    if wrong := mistyped(card, _KINDS):
        return wrong
    given, text, files = card["preprocess"], card["text"], card["files"]
    if any(set(card[part]) != set(_KINDS[part]) for part in ("preprocess", "text")):
        return "preprocess or text has an unknown entry"
    if (len(given["mean"]), len(given["std"])) != (3, 3):
        return "mean and std must be three numbers each"
    if not (0 < given["side"] <= 8192 and 0 <= given["short"] <= 8192 and 1 < text["context"] <= LARGEST):
        return "a size is out of range"
    if 0 < given["short"] < given["side"] or given["interpolation"] not in ("bicubic", "bilinear"):
        return "the preprocessing is unknown"
    if given["crop"] not in ("round", "floor"):
        return "the crop is unknown"
    if text["tokenizer"] not in ("clip", "tokenizers") or text["clean"] not in (None, *CLEAN):
        return "the tokenizer is unknown"
    if card["temperature"] <= 0 or not 1 <= card["dim"] <= LARGEST:
        return f"temperature must be above 0, and dim between 1 and {LARGEST}"
    if not {IMAGE, TEXT, TOKENIZER} <= set(files) <= NAMES - {CARD}:
        return f"files are {', '.join(sorted(files))}"
    return "" if fingerprint(card) == card["fingerprint"] else "it has changed since it was exported"
