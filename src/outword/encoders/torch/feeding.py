"""Photos to pixels on a CUDA device, at the rate of the encoder there: plain JPEGs are decoded fast, and resized there.

Three decoders: "nvjpeg" decodes on the device, by the hardware that is there for JPEG; "simplejpeg" in threads, into
memory that the device copies from; "pillow" decodes and resizes on the CPU. What is not a plain JPEG
(`outword.photos.plain_jpeg`), and what a fast decoder refuses, goes through Pillow with any of them, so that its rules
and its words hold for all. Which decoder takes a photo is told from the photo alone, and never by its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from outword.base.extras import require
from outword.encoders.base import Pixels
from outword.encoders.loader import Loader
from outword.encoders.packed import PACKED, Packed, Packer
from outword.encoders.preprocess import Preprocess
from outword.encoders.torch import nvjpeg
from outword.encoders.torch.triton_resize import Photo, resize
from outword.errors import ImageError, OutwordError
from outword.photos.ahead import attempt
from outword.photos.decode import MAX_PIXELS, ImageLike
from outword.photos.plain_jpeg import MOST_BYTES, PlainJpeg

TOGETHER = 16  # photos that a thread reads in one go: threads that meet less often wait less for each other
MOST_ROWS = 2 << 20  # bytes of a photo as simplejpeg decodes it; of a larger one, which is very long, Pillow keeps less
ON_DEVICE = 1 << 30  # bytes of decoded photos on the device at a time


class Unpacked(NamedTuple):
    """A decoded photo: where it lies in a block that the device can copy from, shared with others."""

    block: Tensor
    offset: int
    height: int
    width: int
    orientation: int


Loaded = Pixels | Packed | Unpacked


@dataclass(frozen=True)
class DeviceLoader(Packer):
    """What loads photos for an encoder on a CUDA device; called with one image, it does what Pillow does."""

    preprocess: Preprocess
    device: torch.device = field(kw_only=True)

    def elsewhere(self) -> Loader:
        """Where the device decodes, what leaves plain JPEGs packed; else what loads by Pillow."""
        kind = Packer if self.decoder == "nvjpeg" else Loader
        return kind(self.preprocess, self.min_side, together=self.together)

    def load(self, images: Sequence[ImageLike]) -> list[Loaded | OutwordError]:
        """Each image as far as threads take it: packed, unpacked or, by Pillow, ready; or what is wrong with it."""
        if self.decoder == "simplejpeg":
            return self._unpacked(self._packed(images, MOST_BYTES))
        return super().load(images)

    def load_one(self, image: ImageLike, *, max_pixels: int = MAX_PIXELS, large: bool = True) -> Loaded:
        """One image as far as threads take it, or `ImageError`."""
        if self.decoder != "simplejpeg":
            return self._one_packed(image, PACKED, max_pixels, large)
        (found,) = self._unpacked([self._one_packed(image, MOST_BYTES, max_pixels, large)])
        if isinstance(found, OutwordError):
            raise found
        return found

    def gather(self, loaded: Sequence[Any]) -> tuple[Tensor, list[ImageError | None]]:
        """Pixels (n, side, side, 3) on the device of those that are good, and what is wrong with each."""
        values, side = list(loaded), self.preprocess.side
        with self._one_at_a_time, torch.inference_mode(), self._own_stream() as (stream, wait):
            pixels = torch.empty((len(values), side, side, 3), dtype=torch.uint8, device=self.device)
            for photos in self._on_device(values, stream):
                resize(photos, self.preprocess, pixels)
                wait()  # before they are let go
            ready = {at: value for at, value in enumerate(values) if isinstance(value, np.ndarray)}
            if ready:
                there = torch.from_numpy(np.stack(list(ready.values()))).to(self.device)
                pixels[torch.tensor(list(ready), device=self.device)] = there
            wait()
        errors = [value if isinstance(value, ImageError) else None for value in values]
        if any(errors):
            pixels = pixels[torch.tensor([at for at, error in enumerate(errors) if not error], device=self.device)]
        return pixels, errors

    def _unpacked(self, found: list[Loaded | OutwordError]) -> list[Loaded | OutwordError]:
        """The same with what is packed decoded, into one block."""
        sizes = {at: self._size(one.header) for at, one in enumerate(found) if isinstance(one, Packed)}
        ends = [0]
        for width, height in sizes.values():
            room = 3 * width * height
            ends.append(ends[-1] + (room if room <= MOST_ROWS else 0))
        block = torch.empty(ends[-1], dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        rows = block.numpy()
        for (at, (width, height)), start, end in zip(sizes.items(), ends, ends[1:], strict=False):
            packed = found[at]
            assert isinstance(packed, Packed)
            if start < end and _decode(packed, width, height, rows[start:end]):
                found[at] = Unpacked(block, start, height, width, packed.header.orientation)
            else:
                found[at] = attempt(self, packed.data)
        return found

    def _size(self, header: PlainJpeg) -> tuple[int, int]:
        """Width and height at which a JPEG is decoded: a half, a quarter or an eighth where Pillow takes that."""
        scale = min(header.width, header.height) // (2 * self.min_side)
        scale = next((by for by in (8, 4, 2) if scale >= by), 1)
        return -(-header.width // scale), -(-header.height // scale)

    def _on_device(self, values: list[Any], stream: int) -> Iterator[dict[int, Photo]]:
        """Photos that are decoded already, then those that are decoded now, some at a time, by their place.

        What the hardware refuses is loaded by Pillow, and takes its place in `values`.
        """
        blocks: dict[int, Tensor] = {}
        photos = dict[int, Photo]()
        for at, one in enumerate(values):
            if isinstance(one, Unpacked):
                if id(one.block) not in blocks:
                    blocks[id(one.block)] = one.block.to(self.device, non_blocking=True)
                start = blocks[id(one.block)].data_ptr() + one.offset
                photos[at] = Photo(start, one.height, one.width, one.orientation)
        if photos:
            yield photos
        for part in _parts(values):
            sizes = np.array([values[at].header[:2] for at in part], np.int64)  # width, height
            ends = np.cumsum(3 * sizes.prod(1))
            block = torch.empty(int(ends[-1]), dtype=torch.uint8, device=self.device)
            starts = block.data_ptr() + np.concatenate([[0], ends[:-1]])
            good = self._by_hardware([values[at].data for at in part], starts, 3 * sizes[:, 0], stream)
            photos = {}
            for at, start, is_good in zip(part, starts.tolist(), good, strict=True):
                data, (width, height, orientation) = values[at]
                if is_good:
                    photos[at] = Photo(start, height, width, orientation)
                else:
                    values[at] = attempt(self, data)
            if photos:
                yield photos

    def _by_hardware(
        self, files: list[bytes], places: NDArray[np.int64], pitches: NDArray[np.int64], stream: int
    ) -> list[bool]:
        """Which files went well; where a batch fails, its halves are tried, down to the files that are to blame."""
        if self._hardware.decode(files, places, pitches, stream):
            return [True] * len(files)
        if len(files) == 1:
            return [False]
        half = len(files) // 2
        parts = slice(0, half), slice(half, None)
        return [good for p in parts for good in self._by_hardware(files[p], places[p], pitches[p], stream)]

    @contextmanager
    def _own_stream(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """A block whose work is done beside that of the encoder: its handle, and what waits for it."""
        if self.device.type != "cuda":
            yield 0, lambda: None
            return
        with torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            yield self._stream.cuda_stream, self._stream.synchronize

    @cached_property
    def _stream(self) -> torch.cuda.Stream:
        return torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]

    @cached_property
    def _one_at_a_time(self) -> Lock:
        return Lock()

    @cached_property
    def _hardware(self) -> nvjpeg.Decoder:
        return nvjpeg.Decoder()


def device_loader(preprocess: Preprocess, decoder: str, device: torch.device) -> DeviceLoader:
    """What loads photos with a fast decoder."""
    return DeviceLoader(preprocess, preprocess.min_side, decoder, TOGETHER, True, device=device)


def _decode(packed: Packed, width: int, height: int, rows: NDArray[np.uint8]) -> bool:
    """Decode a JPEG into memory that is there; whether that went well."""
    smaller = {"min_width": width, "min_height": height} if width < packed.header.width else {}
    try:
        found = require("simplejpeg").decode_jpeg(packed.data, buffer=rows, **smaller)
    except ValueError:  # it is damaged, in a way that Pillow may overlook
        return False
    return bool(found.shape == (height, width, 3))


def _parts(values: Sequence[Any]) -> Iterator[list[int]]:
    """Places of photos that are still packed, as many at a time as there is room for on the device."""
    part, held = list[int](), 0
    for at, one in enumerate(values):
        if isinstance(one, Packed):
            size = 3 * one.header.width * one.header.height
            if part and held + size > ON_DEVICE:
                yield part
                part, held = [], 0
            part.append(at)
            held += size
    if part:
        yield part
