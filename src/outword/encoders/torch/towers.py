"""Any image-text model of torch as an encoder: device, precision, batches, and texts at their own length."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from outword.base.files import sha256_bytes
from outword.encoders.base import Encoder, Gradient, Pixels, Vectors, in_short, texts_of
from outword.encoders.loader import Loader
from outword.encoders.onnx.fuse import fuse_quick_gelu
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import TOGETHER, Ids, batches, warn_of_cuts
from outword.encoders.torch.decoders import choose
from outword.encoders.torch.image_tower import ImageTower
from outword.errors import InputError, ParameterError

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TEXTS = {"cpu": TOGETHER, "cuda": 1024}  # texts that go through the text tower together
IMAGES = {"cpu": 1, "cuda": 256}
GRADIENT = 1024.0  # length of what is propagated back, for its sign alone: in fp16 a small one would be lost on the way


@dataclass(frozen=True)
class Model:
    """What a library's model is made of; `outword.encoders.torch.open_clip` and `.transformers` build it."""

    module: torch.nn.Module  # the network, with weights, in evaluation mode
    image: Callable[[Tensor], Tensor]  # normalised pixels (n, 3, side, side) to features (n, dim)
    text: Callable[[Tensor], Tensor]  # token ids (n, length) to features (n, dim)
    # Normalised pixels to features (n, dim) and those of the patches (n, n_patches, dim), by the value path of the last
    # attention; None for towers that have none
    patches: Callable[[Tensor], tuple[Tensor, Tensor]] | None
    tokenize: Callable[[Sequence[str]], Ids]  # texts to ids (n, context), padded, and cut where they are too long
    count: Callable[[str], int]  # the number of tokens of a text before any cut
    tokenizer: Any  # the library's own, for export
    pad: int  # the id that fills a text up to the context
    # The id that ends a text, for a causal tower that reads its result there: what comes behind it can be left away.
    # None where that would change the result
    end: int | None
    preprocess: Preprocess  # how images are resized and cropped
    dim: int  # of the space that both towers share, as the temperature
    temperature: float
    digest: str  # sha256 of the weights, the architecture and the vocabulary
    licence: str  # of the weights, as the source
    source: str
    # Makes the image tower for a CUDA device, of the weights as they are when it is called; None for what is not CLIP's
    image_tower: Callable[[], ImageTower | None] = lambda: None


class Towers(Encoder):
    """A model of torch: images in batches on the device, texts sorted by length and cut behind their end.

    When `batch_size` images do not fit on CUDA or MPS together, half of them are tried, and so on. On the CPU each goes
    through alone, so that a vector never feels its batch. See `get_encoder` for the device and the precision.
    """

    def __init__(
        self,
        model: Model,
        *,
        name: str,
        options: Mapping[str, str],
        prompts: str,
        device: str | None = None,
        precision: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.model = model
        self.name, self.options, self.prompts = name, options, prompts
        self.device = pick_device(device)
        self.precision = precision or ("fp16" if self.device.type == "cuda" else "fp32")
        if self.precision not in PRECISIONS:
            raise ParameterError(f"precision must be fp32, fp16 or bf16, got {precision!r}", hint="leave it out")
        self.batch_size = batch_size or IMAGES.get(self.device.type, 8)
        self.feels_batch = self.device.type != "cpu"
        self.dim, self.temperature = model.dim, model.temperature
        self.offers = ("patches", "pixels") if model.patches else ("pixels",)
        self.licence, self.source = model.licence, model.source
        self.preprocess, self.min_side = model.preprocess, model.preprocess.min_side
        known = [model.digest, asdict(model.preprocess)]
        self.fingerprint = sha256_bytes(json.dumps(known, sort_keys=True).encode())
        fuse_quick_gelu(model.module)
        model.module.to(self.device, PRECISIONS[self.precision]).eval().requires_grad_(False)
        self._copies = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.decoder = choose(self.device)
        quick = self.device.type == "cuda" and self.precision != "fp32" and find_spec("triton") is not None
        self._image_tower = model.image_tower() if quick else None
        self._scale, self._shift = (torch.tensor(row, device=self.device) for row in model.preprocess.affine)

    @cached_property
    def loader(self) -> Loader:
        """What makes pixels of images; beside a CUDA device, on it."""
        if self.decoder == "pillow":
            return super().loader
        from outword.encoders.torch.feeding import device_loader

        return device_loader(self.model.preprocess, self.decoder, self.device)

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pixels (n, side, side, 3) to unit vectors (n, dim)."""
        return self.encode_on_device(pixels).cpu().numpy()

    def encode_on_device(self, pixels: Pixels) -> Tensor:
        """The same as a tensor, which need not be ready yet: the device is not waited for."""
        if not len(pixels):
            return torch.zeros((0, self.dim), device=self.device)
        tower = self._image_tower
        if tower is None:
            return self._in_batches(pixels, lambda x: (unit(self.model.image(self._normalised(x))),))[0]
        return self._in_batches(pixels, lambda x: (unit(tower(x, self._scale, self._shift)),))[0]

    def encode_patches(self, pixels: Pixels) -> tuple[Vectors, Vectors]:
        """Pixels to unit vectors (n, dim) and those of their patches (n, n_patches, dim)."""
        patches = self.model.patches
        if patches is None:
            return super().encode_patches(pixels)
        if not len(pixels):
            return np.zeros((0, self.dim), np.float32), np.zeros((0, 0, self.dim), np.float32)
        vectors, parts = self._in_batches(pixels, lambda x: tuple(unit(y) for y in patches(self._normalised(x))))
        return vectors.cpu().numpy(), parts.cpu().numpy()

    def encode_perturbed(self, pixels: Pixels, gradient: Gradient, epsilon: float) -> Vectors:
        """Pixels (n, side, side, 3), each moved uphill by epsilon (of 0..1), to unit vectors (n, dim)."""
        if not len(pixels):
            return np.zeros((0, self.dim), np.float32)
        step = 255 * epsilon * self._scale[:, None, None]  # the model reads pixels over their deviation

        def run(bytes_: Tensor) -> tuple[Tensor]:
            x = self._normalised(bytes_)
            moved = x + step.to(x.dtype) * self._uphill(x, gradient)
            return (unit(self.model.image(moved)),)

        return self._in_batches(pixels, run)[0].cpu().numpy()

    def _uphill(self, x: Tensor, gradient: Gradient) -> Tensor:
        """The sign, for each normalised pixel, of the gradient of the score."""
        with torch.inference_mode(False), torch.enable_grad():
            x = x.clone().requires_grad_()
            vectors = unit(self.model.image(x))
            given = torch.from_numpy(np.asarray(gradient(vectors.detach().cpu().numpy()), np.float32))
            scaled = GRADIENT * unit(given).to(vectors.device)
            return torch.autograd.grad(vectors, x, scaled)[0].sign()

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, prompts included, to unit vectors (n, dim); what does not fit the context is cut, with a warning."""
        texts = texts_of(texts)
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        ids = self.model.tokenize(texts)
        warn_of_cuts(self.name, texts, ids, self.model.pad, self.model.count)
        out = torch.empty((len(texts), self.dim), device=self.device)
        size = TEXTS.get(self.device.type, 64)
        for rows, length in batches(ids, self.model.end, size, fill=not self.feels_batch):
            part = torch.from_numpy(ids[rows, :length]).to(self.device)
            out[torch.from_numpy(rows)] = unit(self.model.text(part))
        return out.cpu().numpy()

    @torch.inference_mode()
    def _in_batches(self, pixels: Pixels | Tensor, run: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Run bytes through in batches; the device is not waited for. Out of memory halves the batch."""
        results: list[tuple[Tensor, ...]] = []
        start = 0
        while start < len(pixels):
            part = pixels[start : start + (self.batch_size if self.feels_batch else 1)]
            try:
                with _exact_convolutions():
                    results.append(run(self._moved(part)))
            except torch.OutOfMemoryError:
                if len(part) == 1:
                    told = f"{self.device} has not enough memory for one image with {self.name}"
                    raise ParameterError(told, hint="free some, or choose another device") from None
                self.batch_size = len(part) // 2
                continue
            start += len(part)
        return tuple(torch.cat(column) for column in zip(*results, strict=True))

    def _normalised(self, x: Tensor) -> Tensor:
        """Bytes on the device to normalised floats (n, 3, side, side)."""
        return (x * self._scale + self._shift).to(PRECISIONS[self.precision]).permute(0, 3, 1, 2)

    def _moved(self, pixels: Pixels | Tensor) -> Tensor:
        """To the device; on CUDA from pinned memory and beside the work in hand, so that this does not wait for it."""
        x = pixels if isinstance(pixels, Tensor) else torch.from_numpy(np.ascontiguousarray(pixels))
        if self._copies is None:
            return x.to(self.device)
        if x.is_cuda:  # a loader's, made on a stream of its own
            x.record_stream(torch.cuda.current_stream(self.device))
            return x
        with torch.cuda.stream(self._copies):
            moved = x.pin_memory().to(self.device, non_blocking=True)
        current = torch.cuda.current_stream(self.device)
        current.wait_stream(self._copies)
        moved.record_stream(current)
        return moved


@torch.inference_mode()
def check_towers(model: Model, name: str) -> None:
    """Run one grey image and one text through, so that parts that do not fit together are said when it is loaded."""
    side = model.preprocess.side
    try:
        found = [model.image(torch.zeros((1, 3, side, side))), model.text(torch.from_numpy(model.tokenize(["a"])))]
        shapes = [list(rows.shape) for rows in found]
    except Exception as error:  # whatever a network says to an input that it was not made for
        hint = "check its configuration and preprocessing"
        raise InputError(f"{name} does not run: {in_short(error)}", hint=hint) from None
    if shapes != [[1, model.dim]] * 2 or not all(torch.isfinite(rows).all() for rows in found):
        told = f"{name} turns an image into {shapes[0]} and a text into {shapes[1]}, not both into [1, {model.dim}]"
        raise InputError(told, hint="both towers must project into one space")


def features(out: Any) -> Tensor:
    """What a tower gives of its features: a tensor, the first of a tuple, or a part of transformers' output."""
    found: Tensor = out if isinstance(out, Tensor) else out[0] if isinstance(out, tuple) else out.pooler_output
    return found


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1 in float32, whatever the precision of the model."""
    return torch.nn.functional.normalize(rows.float(), dim=-1)


def _exact_convolutions() -> AbstractContextManager[None]:
    """fp32 is fp32 in convolutions too, where torch takes TF32 by default; the user's other settings stay."""
    cudnn = torch.backends.cudnn
    return cudnn.flags(cudnn.enabled, cudnn.benchmark, deterministic=cudnn.deterministic, allow_tf32=False)


def pick_device(name: str | None) -> torch.device:
    """The device called `name`; CUDA where there is some, else the CPU, by default."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps"):
            raise ValueError("it is none of cpu, cuda and mps")
        torch.empty(1, device=device)
    except Exception as error:  # each backend has a class of its own for what is wrong with it
        told = f"device {name!r} cannot be used: {in_short(error, 100)}"
        raise ParameterError(told, hint="leave it out, or say cpu or cuda") from None
    return device
