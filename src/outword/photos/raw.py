"""RAW files of cameras, by rawpy, which is an extra: a module of its own, since few need it.

What is judged is the JPEG that the camera put into the file, where that is large enough, since it is quick and looks as
the camera wanted it; else the pixels of the sensor.
"""

from __future__ import annotations

from typing import IO, Any

from PIL import Image
from PIL.ImageFile import ImageFile

from outword.base.extras import require
from outword.errors import ImageError
from outword.photos.plan import Plan

_TURNED = {0: 1, 1: 2, 3: 3, 2: 4, 4: 5, 6: 6, 7: 7, 5: 8}  # how LibRaw and EXIF tell how a photo is to be turned
_SENSOR, _WORKING = 2, 11  # bytes that LibRaw takes for a pixel of the sensor, and for one of the result


def plan(file: IO[bytes]) -> Plan:
    """Nothing: only LibRaw knows the files of all cameras, and it reads one whole."""
    return Plan()


class Raw(ImageFile):
    """What a sensor saw, in full or, by `draft`, at half its size; `preview` is the camera's own JPEG."""

    format = "RAW"

    def _open(self) -> None:
        rawpy = require("rawpy")
        self._raw = rawpy.RawPy()
        self._half = False
        self._safely(self._raw.open_buffer, self.fp)
        sizes = self._raw.sizes
        self._mode, self._size, self.tile = "RGB", (sizes.raw_width, sizes.raw_height), []
        self._sensor: int = sizes.raw_width * sizes.raw_height
        self.orientation = _TURNED.get(sizes.flip, 1)

    @property
    def working_bytes(self) -> int:
        """Bytes that it takes to make the pixels, besides the result."""
        return _SENSOR * self._sensor + _WORKING * self.width * self.height

    def preview(self) -> bytes:
        """The JPEG in the file; b"" where there is none."""
        try:
            data = self._raw.extract_thumb().data
        except Exception:  # what there is may be damaged, or of a kind that nobody knows
            return b""
        return data if isinstance(data, bytes) and data.startswith(b"\xff\xd8\xff") else b""  # else plain pixels

    def draft(self, mode: str | None, size: tuple[int, int] | None) -> Any:
        """Half the size, where that is not smaller than what is asked for."""
        if size and self.width // 2 >= size[0] and self.height // 2 >= size[1]:
            self._half, self._size = True, (-(-self.width // 2), -(-self.height // 2))

    def load(self) -> Any:
        """Make the pixels, once."""
        if self._raw is not None:
            linear = require("rawpy").DemosaicAlgorithm.LINEAR
            options = {"half_size": self._half, "use_camera_wb": True, "user_flip": 0, "demosaic_algorithm": linear}
            pixels = self._safely(self._raw.postprocess, **options)
            self._raw.close()
            self._raw = None
            made = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
            self.im, self._size = made.im, made.size
        return super().load()

    @staticmethod
    def _safely(call: Any, *args: Any, **options: Any) -> Any:
        """What LibRaw gives; what it refuses is an `ImageError`."""
        rawpy = require("rawpy")
        try:
            return call(*args, **options)
        except rawpy.LibRawFileUnsupportedError:
            raise ImageError("RAW of a kind that is not read", hint="save it as DNG or JPEG first") from None
        except rawpy.LibRawIOError:
            raise EOFError from None
