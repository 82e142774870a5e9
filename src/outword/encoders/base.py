"""What an encoder is: one unit vector per image, one per text, and a stated temperature."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.base.odds import MeasuredOdds
from outword.base.terms import Familiarity, familiarity, read_flag
from outword.encoders.loader import Loader
from outword.encoders.reading import read_photos
from outword.errors import InputError, ParameterError
from outword.maths.imagined import Sight
from outword.photos.decode import ImageLike

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from outword.encoders.onnx.traced import Graph, Traced

Vectors = NDArray[np.float32]
Pixels = NDArray[np.uint8]
Gradient = Callable[[NDArray[Any]], NDArray[np.floating]]


@dataclass(frozen=True)
class Coverage:
    """How well an encoder knows one label: `flag` is "known", "through <parent>", "head noun only" or "unknown"."""

    label: str
    flag: str

    @property
    def familiarity(self) -> Familiarity:
        """The same without the parent."""
        return familiarity(read_flag(self.flag))


class Encoder(ABC):
    """A dual encoder. Rows of its outputs are unit vectors; cosines over `temperature` are logits."""

    name: str  # what `get_encoder` was asked for
    options: Mapping[str, str] = {}  # what else it was asked for that changes its vectors: {"resize": "bilinear"}
    dim: int  # length of a vector
    temperature: float  # the divisor of cosines, h = cos / temperature
    prompts: str  # the template set (see `outword.words.prompts`) that it is used with by default
    fingerprint: str  # sha256 of the weights, the preprocessing and the tokens
    text_fingerprint: str | None = None  # what vectors of texts hang on, where other encoders have the same texts
    exported_from: str | None = None  # fingerprint of the encoder that this one is an export of, or adds a tower to
    licence: str  # of the weights, as the source
    source: str
    # RGB image to the pixels that the image tower reads, a method or a function; pure, thread-safe, and best without
    # the weights, since it is sent to other processes
    preprocess: Callable[[Image.Image], Pixels]
    min_side: int  # an image may be decoded smaller than it is, but no smaller than this (JPEG draft mode)
    batch_size: int  # how many images go through the image tower together
    decoder: str = "pillow"  # what decodes plain JPEGs for it: Pillow, or one that gives nearly the same pixels
    callers: int = 1  # threads that may encode pixels at the same time, where that is quicker than one after the other
    feels_batch: bool = False  # whether a vector may round otherwise in another batch, as on a GPU
    side: int = 0  # pixels of a side of what the image tower reads, where that is told
    knows: str = ""  # what alone it knows, in words, if that is little
    sight: Sight | None = None  # how it sees, measured (`outword.maths.imagined`), where it is of no known family
    odds: MeasuredOdds | None = None  # which share of a label's photos is in, measured, by how it knows the name
    own_reference: Path | None = None  # the file of its reference, where the package that brings it has one
    offers: tuple[str, ...] = ()  # what it gives besides vectors, "patches" and "pixels" (`Need.offer`)

    @abstractmethod
    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pixels (n, height, width, 3), any number of them, to unit vectors (n, dim)."""

    def image_graph(self, graph: Graph, pixels: Traced, *, resize: bool) -> Traced:
        """Unit vectors of bytes (n, height, width, 3), as operations of an ONNX graph; for `outword.bundle`.

        With `resize`, pixels are whole photos of any size; else they are what `preprocess` gives.
        """
        hint = f'export it ("outword export {self.name} -o DIR"), and name the export: --encoder onnx:DIR'
        raise ParameterError(f"{self.name} cannot be put into an ONNX graph", hint=hint)

    def encode_on_device(self, pixels: Pixels) -> Any:
        """The same, left where the encoder has them: a tensor on its device, or else an array."""
        return self.encode_pixels(pixels)

    @abstractmethod
    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, prompts included, to unit vectors (n, dim)."""

    def encode_patches(self, pixels: Pixels) -> tuple[Vectors, Vectors]:
        """Pixels to unit vectors (n, dim) and the unit vectors of their patches (n, n_patches, dim).

        A patch is seen by itself in the last step: it takes the value path of the last attention, as GL-MCM has it.
        """
        hint = "the CLIP models of open_clip and transformers have"
        raise ParameterError(f"{self.name} has no patch vectors", hint=hint)

    def encode_perturbed(self, pixels: Pixels, gradient: Gradient, epsilon: float) -> Vectors:
        """Pixels, each moved by epsilon (of 0..1) to the side that raises a score, to unit vectors (n, dim).

        `gradient` takes unit vectors (n, dim) to the gradient of the score by them, (n, dim).
        """
        hint = "encoders that run on torch do; or set epsilon=0 (--set epsilon=0)"
        raise ParameterError(f"{self.name} gives no gradients", hint=hint)

    def files(self) -> list[Path]:
        """Its files on this machine, which an encoder of another package may say."""
        return []

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """How well each label is known; empty when the encoder cannot tell."""
        return []

    @overload
    def encode_images(self, images: Iterable[ImageLike], *, patches: Literal[False] = False) -> Vectors: ...
    @overload
    def encode_images(self, images: Iterable[ImageLike], *, patches: Literal[True]) -> tuple[Vectors, Vectors]: ...
    def encode_images(self, images: Iterable[ImageLike], *, patches: bool = False) -> Vectors | tuple[Vectors, Vectors]:
        """Images (paths, bytes, PIL images, RGB arrays) to unit vectors (n, dim); threads decode ahead.

        With `patches`, also the vectors of their patches (n, n_patches, dim), for methods that look at parts.
        """
        if patches:
            pairs = [self.encode_patches(pixels) for pixels in self.pixel_chunks(images)]
            if not pairs:
                return np.zeros((0, self.dim), np.float32), np.zeros((0, 0, self.dim), np.float32)
            return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
        rows = [self.encode_pixels(pixels) for pixels in self.pixel_chunks(images)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dim), np.float32)

    @property
    def setting(self) -> str:
        """What it runs on here, in words."""
        device, precision = getattr(self, "device", "cpu"), getattr(self, "precision", "")
        return f"{self.name} on {device}{f' in {precision}' if precision else ''}, JPEGs decoded by {self.decoder}"

    @property
    def loader(self) -> Loader:
        """What makes pixels of images for this encoder, also in another process."""
        return Loader(self.preprocess, self.min_side)

    @property
    def chunk(self) -> int:
        """How many images are best handed to `encode_pixels` at once: some batches, so that the device never waits."""
        return max(64, 4 * self.batch_size)

    def pixel_chunks(self, images: Iterable[ImageLike]) -> Iterator[Pixels]:
        """The pixels of images, `chunk` at a time; the first that cannot be read ends it, and the error names it."""
        for chunk in read_photos(as_list(images), self.loader, self.chunk):
            if chunk.check().photos:
                yield chunk.values


def as_list(images: Iterable[ImageLike]) -> list[ImageLike]:
    """A list of images; a single one, or a file that is open, is a common slip."""
    # lines, or bytes, would be taken for images
    if hasattr(images, "read") or isinstance(images, bytearray | memoryview):
        hint = "pass its path, or its content as bytes: file.read()"
        raise InputError(f"an open file is no image, nor is a {type(images).__name__}", hint=hint)
    if is_one(images) or not isinstance(images, Iterable):
        raise InputError(f"images must be a list, got {type(images).__name__}", hint="write [image] for a single one")
    return list(images)


def is_one(images: ImageLike | Iterable[ImageLike]) -> TypeIs[ImageLike]:
    """Whether it is one image; an array is a list where it has four dimensions, or names or objects in it."""
    if isinstance(images, np.ndarray):
        return images.ndim == 0 or (images.ndim < 4 and images.dtype.kind not in "OU")
    return isinstance(images, str | bytes | os.PathLike | Image.Image)


def in_short(error: BaseException, most: int = 160) -> str:
    """What a library's error says, in one line."""
    return " ".join(str(error).split())[:most] or type(error).__name__


def texts_of(texts: Iterable[str]) -> list[str]:
    """A list of texts; a single one is a common slip."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list, got {type(texts).__name__}", hint="write [text] for a single one")
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise InputError(f"a text must be a string, got {text!r}", hint="decode or convert it first")
    return found
