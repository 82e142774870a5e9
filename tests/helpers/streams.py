"""AVIFs and WebPs that are not what they say, made of those that Pillow writes."""

import struct

from helpers.bad_images import encoded
from helpers.cameras import box


def found(data, name):
    """What the first box of a name has."""
    at = data.index(name)
    return data[at + 4 : at - 4 + struct.unpack_from(">I", data, at - 4)[0]]


def unit(kind, data):
    """A unit of an AV1 stream."""
    size = bytes([len(data) & 127 | 128, len(data) >> 7]) if len(data) > 127 else bytes([len(data)])
    return bytes([kind << 3 | 2]) + size + data


def bits(*pairs):
    """Numbers of so many bits each, as bytes."""
    text = "".join(f"{number:0{count}b}" for number, count in pairs)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


def still(width, height, deep=0, grey=0):
    """The header of a sequence of one picture."""
    size = [(15, 4), (15, 4), (width - 1, 16), (height - 1, 16)]
    return unit(1, bits((0, 3), (1, 1), (1, 1), (0, 5), *size, (0, 6), (deep, 1), (grey, 1), (0, 8)))


def moving(width, height, width_bits=16):
    """The header of a sequence of many pictures, whose frames may have sizes of their own."""
    start = [(0, 3), (0, 1), (0, 1), (0, 1), (0, 1), (0, 5), (0, 12), (0, 5)]
    size = [(width_bits - 1, 4), (15, 4), (width - 1, width_bits), (height - 1, 16)]
    tools = [(0, 1), (0, 3), (0, 4), (0, 1), (0, 1), (0, 1), (0, 3)]
    return unit(1, bits(*start, *size, *tools, (0, 1), (0, 1), (0, 8)))


def frame(own_size=0):
    """A frame that is shown, and whether it has a size of its own."""
    return unit(6, bits((0, 1), (0, 2), (1, 1), (0, 1), (own_size, 1), (0, 16)))


def avif(*streams, sizes, references=(), kinds=None, main=1, in_idat=False, configs=()):
    """An AVIF of streams, whose numbers begin with 1; images that are made of others come after them.

    `references` are (name, number, numbers of others); `sizes` are what the images say of themselves.
    """
    numbers = range(1, 1 + len(sizes))
    kinds = kinds or [b"av01"] * len(streams) + [b"grid"] * (len(sizes) - len(streams))
    infe = [
        box(b"infe", struct.pack(">IHH4sx", 2 << 24, one, 0, kind)) for one, kind in zip(numbers, kinds, strict=True)
    ]
    listed = [box(b"ispe", struct.pack(">III", 0, *size)) for size in sizes]
    listed += [box(b"av1C", b"\x81\0\0\0" + config) for config in configs or [b""]]
    owned = [struct.pack(">HBBB", one, 2, one, 0x80 | min(len(listed), len(sizes) + one)) for one in numbers]
    linked = [
        box(name, struct.pack(f">HH{len(others)}H", one, len(others), *others)) for name, one, others in references
    ]

    def meta(place):
        places = []
        for one, stream in enumerate(streams, 1):
            places.append(struct.pack(">HHHHII", one, int(in_idat), 0, 1, place, len(stream)))
            place += len(stream)
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", struct.pack(">II4s12xx", 0, 0, b"pict")),
            box(b"pitm", struct.pack(">IH", 0, main)),
            box(b"iinf", struct.pack(">IH", 0, len(infe)), *infe),
            box(b"iloc", struct.pack(">IBBH", 1 << 24, 0x44, 0, len(streams)), *places),
            box(b"iref", bytes(4), *linked),
            box(b"iprp", box(b"ipco", *listed), box(b"ipma", struct.pack(">II", 0, len(owned)), *owned)),
            *([box(b"idat", *streams)] if in_idat else []),
        )

    ftyp = box(b"ftyp", b"avif\0\0\0\0avifmif1miaf")
    if in_idat:
        return ftyp + meta(0)
    return ftyp + meta(len(ftyp + meta(0)) + 8) + box(b"mdat", *streams)


def with_frames(data, count):
    """An AVIF of Pillow's whose last frame is there so often."""
    made, start = bytearray(data), data.index(b"mdat") + 4
    stream, place = data[start:], 0
    while place < len(stream):
        at, size, shift = place + 1, 0, 0
        while True:
            size |= (stream[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if stream[at - 1] < 128:
                break
        last, place = place, at + size
    longer = stream + stream[last:] * (count - 1)
    length = made.index(struct.pack(">I", len(stream)), made.index(b"iloc"))
    struct.pack_into(">I", made, length, len(longer))
    struct.pack_into(">I", made, start - 8, 8 + len(longer))
    return bytes(made[:start]) + longer


def film(image, shown):
    """An animated AVIF of Pillow's that says that it is so large."""
    made = bytearray(encoded(image, "AVIF", save_all=True, append_images=[image.rotate(90)]))
    at = 0
    while (at := made.find(b"tkhd", at)) >= 0:
        at += 4
        struct.pack_into(">II", made, at + (88 if made[at] else 76), shown[0] << 16, shown[1] << 16)
    return bytes(made)


def webp(canvas, *chunks, flags=0):
    """A WebP of chunks, behind the one that says how large it is."""
    sides = b"".join((side - 1).to_bytes(3, "little") for side in canvas)
    body = chunk(b"VP8X", bytes([flags, 0, 0, 0]) + sides) + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def chunk(name, data=b""):
    """A chunk of a WebP."""
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
