"""AV1, which AVIF is made of: how large the frames of a stream are, by its headers.

The boxes around a stream say how large its image is, but a decoder makes the frames as large as the stream says, and
scales them afterwards.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from outword.photos.boxes import damaged

MOST = 512  # bytes of a header that are read; those of real files have some 15
_SEQUENCE, _FRAME_HEADER, _FRAME = 1, 3, 6  # kinds of units
_PLANES = {0: 1.5, 1: 3.0, 2: 3.0}  # samples of a pixel at most, by profile
_CHOSEN = 2  # each frame says for itself
_KEY, _SWITCH = 0, 3  # kinds of frames
Read = Callable[[int, int], bytes]


class Frames(NamedTuple):
    """The frames of a stream, all together: how many pixels they have, and how many bytes."""

    pixels: int = 0
    bytes: int = 0


class Sequence(NamedTuple):
    """What all frames of a stream have in common."""

    width: int
    height: int
    widest: tuple[int, int]  # that a frame may say it is
    pixel_bytes: float
    still: bool  # one frame, as large as this says
    screen: int
    integers: int
    id_bits: int
    time_bits: int


def frames_of(read: Read, length: int, step: Callable[[], None], config: bytes = b"") -> Frames:
    """The frames of a stream of `length` bytes, where `read(at, count)` gives some of them; each unit is a `step`.

    `config` holds units that a decoder may read first.
    """
    sequence = None
    for kind, start in _units(lambda at, count: config[at : at + count], len(config), step):
        if kind == _SEQUENCE:
            sequence = _sequence(_Bits(start))
    pixels, size = 0, 0
    for kind, start in _units(read, length, step):
        if kind == _SEQUENCE:
            sequence = _sequence(_Bits(start))
        elif kind in (_FRAME, _FRAME_HEADER):
            if sequence is None:
                raise damaged("a frame of it has no size")
            frame = _frame_pixels(_Bits(start), sequence)
            pixels += frame
            size += int(frame * sequence.pixel_bytes)
    return Frames(pixels, size)


class _Bits:
    """Numbers of some bits each, the highest first."""

    def __init__(self, data: bytes) -> None:
        self._number = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def read(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise struct.error("a header ends too early")
        return self._number >> self._left & ((1 << count) - 1)

    def skip_unary(self) -> None:
        """A number that begins with as many zeros as it has bits behind its first one."""
        zeros = 0
        while not self.read(1):
            zeros += 1
        self.read(zeros)


def _units(read: Read, length: int, step: Callable[[], None]) -> Iterator[tuple[int, bytes]]:
    """The kinds of the units of a stream, and how each begins."""
    at = 0
    while at < length:
        step()
        head = read(at, 10)
        if not head:
            raise EOFError
        kind, extended, sized = head[0] >> 3 & 15, head[0] >> 2 & 1, head[0] >> 1 & 1
        at += 1 + extended
        size = length - at
        if sized:
            size, used = _leb128(head[1 + extended :])
            at += used
        if size < 0 or at + size > length:
            raise damaged()
        yield kind, read(at, min(size, MOST))
        at += size


def _leb128(data: bytes) -> tuple[int, int]:
    """A number in bytes of seven bits, the lowest first, and how many bytes it has."""
    number = 0
    for place, byte in enumerate(data[:8]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, place + 1
    raise struct.error("a length has no end")


def _sequence(bits: _Bits) -> Sequence:
    """The header of a sequence."""
    profile, _, still = bits.read(3), bits.read(1), bool(bits.read(1))
    time_bits = 0
    if still:
        bits.read(5)
    else:
        time_bits = _read_timing(bits)
    width_bits, height_bits = 1 + bits.read(4), 1 + bits.read(4)
    width, height = 1 + bits.read(width_bits), 1 + bits.read(height_bits)
    id_bits = 0
    if not still and bits.read(1):
        id_bits = bits.read(4) + bits.read(3) + 3
    bits.read(3)  # tools within a frame
    screen, integers = (_CHOSEN, _CHOSEN) if still else _read_tools(bits)
    bits.read(3)  # filters
    deep = bits.read(1)
    if profile == 2 and deep:
        bits.read(1)
    grey = profile != 1 and bits.read(1)
    planes = 1.0 if grey else _PLANES.get(profile, 3.0)
    widest = (1 << width_bits, 1 << height_bits)
    return Sequence(width, height, widest, (1 + deep) * planes, still, screen, integers, id_bits, time_bits)


def _read_timing(bits: _Bits) -> int:
    """Read about time and the points of operation; returns how many bits a frame spends on its time."""
    delay_bits = time_bits = 0
    if bits.read(1):
        bits.read(64)
        regular = bits.read(1)
        if regular:
            bits.skip_unary()
        if bits.read(1):
            delay_bits = 1 + bits.read(5)
            bits.read(37)
            time_bits = 0 if regular else 1 + bits.read(5)
            if regular:
                bits.read(5)
    delays = bits.read(1)
    for _ in range(1 + bits.read(5)):
        bits.read(12)
        if bits.read(5) > 7:
            bits.read(1)
        if delay_bits and bits.read(1):
            bits.read(2 * delay_bits + 1)
        if delays and bits.read(1):
            bits.read(4)
    return time_bits


def _read_tools(bits: _Bits) -> tuple[int, int]:
    """Read how frames depend on others; returns what is said of screens, and of motion in whole pixels."""
    bits.read(4)
    ordered = bits.read(1)
    if ordered:
        bits.read(2)
    screen = _CHOSEN if bits.read(1) else bits.read(1)
    integers = _CHOSEN
    if screen and not bits.read(1):
        integers = bits.read(1)
    if ordered:
        bits.read(3)
    return screen, integers


def _frame_pixels(bits: _Bits, sequence: Sequence) -> int:
    """How many pixels a frame has at most; 0 where one is shown that is there already."""
    usual = sequence.width * sequence.height
    if sequence.still:
        return usual
    if bits.read(1):
        return 0
    kind, shown = bits.read(2), bits.read(1)
    if shown:
        bits.read(sequence.time_bits)
    else:
        bits.read(1)
    if kind != _SWITCH and not (kind == _KEY and shown):
        bits.read(1)
    bits.read(1)
    screen = bits.read(1) if sequence.screen == _CHOSEN else sequence.screen
    if screen and sequence.integers == _CHOSEN:
        bits.read(1)
    bits.read(sequence.id_bits)
    if kind == _SWITCH or bits.read(1):  # it has a size of its own, or that of another
        return max(usual, sequence.widest[0] * sequence.widest[1])
    return usual
