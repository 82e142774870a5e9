"""JPEGs decoded by the hardware of a CUDA device, through nvJPEG's C interface: a whole batch is one call.

One call matters: a library that goes back to Python for each image waits for Python's lock as often, and most of the
time of a run is lost there.

Reference: nvJPEG's documentation, "Batched Image Decoding" (https://docs.nvidia.com/cuda/nvjpeg).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HARDWARE = 3  # NVJPEG_BACKEND_HARDWARE: no other way for any image, whatever its batch
_INTERPOLATED = 32  # NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION: colours between samples as libjpeg has them
_RGBI = 5  # NVJPEG_OUTPUT_RGBI: (height, width, 3)


class Decoder:
    """Decodes batches on the device that is current; not to be used by two threads at once."""

    def __init__(self) -> None:
        library = load()
        if library is None:
            raise OSError("libnvjpeg cannot be loaded")
        self._library = library
        self._handle, self._state = ctypes.c_void_p(), ctypes.c_void_p()
        _check(library.nvjpegCreateEx(_HARDWARE, None, None, _INTERPOLATED, ctypes.byref(self._handle)))
        _check(library.nvjpegJpegStateCreate(self._handle, ctypes.byref(self._state)))
        self._size = 0

    def __del__(self) -> None:
        for free, what in (("nvjpegJpegStateDestroy", "_state"), ("nvjpegDestroy", "_handle")):
            if getattr(self, what, None):
                getattr(self._library, free)(getattr(self, what))

    def decode(
        self, files: Sequence[bytes], places: NDArray[np.int64], pitches: NDArray[np.int64], stream: int
    ) -> bool:
        """Decode files to addresses of the device, rows a pitch apart; whether all of them went well.

        It returns before the device is done: the files must be kept until then.
        """
        count = len(files)
        if count != self._size:
            _check(self._library.nvjpegDecodeBatchedInitialize(self._handle, self._state, count, 1, _RGBI))
            self._size = count
        images = np.zeros((count, 8), np.uint64)  # of each four addresses and four pitches, one a plane
        images[:, 0], images[:, 4] = places, pitches
        data = (ctypes.c_char_p * count)(*files)
        lengths = (ctypes.c_size_t * count)(*map(len, files))
        status: int = self._library.nvjpegDecodeBatched(
            self._handle, self._state, data, lengths, ctypes.c_void_p(images.ctypes.data), ctypes.c_void_p(stream)
        )
        if status:
            self._size = 0  # a batch that failed leaves the state as it may be
        return status == 0


@cache
def load() -> ctypes.CDLL | None:
    """The library: that of the package nvidia-nvjpeg, else that of the system; None where there is neither."""
    for name in [*_packaged(), "libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _packaged() -> Iterator[str]:
    found = find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        yield from sorted(map(str, Path(folder).glob("*/lib/libnvjpeg.so.*")), reverse=True)


def _check(status: int) -> None:
    if status:
        raise OSError(f"nvJPEG answers with status {status}")
