"""Files as phones and cameras write them, made here: HEIC by pillow-heif, DNG by hand."""

import io
import struct

import numpy as np
import pillow_heif

from helpers.bad_images import encoded

CODES = {1: "B", 2: "B", 3: "H", 4: "I", 5: "I", 10: "i"}  # of the types of TIFF; 5 and 10 are two numbers
MATRIX = [32405, -15371, -4985, -9693, 18760, 416, 556, -2040, 10572]  # from XYZ to sRGB, in ten-thousandths


def heic(image, **options):
    """An image as HEIC; `others` are images that lie beside it in the file."""
    file = pillow_heif.from_pillow(image)
    for other in options.pop("others", ()):
        file.add_from_pillow(other)
    buffer = io.BytesIO()
    file.save(buffer, **{"quality": 90, **options})
    return buffer.getvalue()


def box(name, *parts):
    """A box of a HEIC."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), name) + body


def with_sizes(data, width, height):
    """A HEIC that says that its images are so large."""
    made, at = bytearray(data), 0
    while (at := made.find(b"ispe", at)) >= 0:
        made[at + 8 : at + 16] = struct.pack(">II", width, height)
        at += 4
    return bytes(made)


def dng(pixels, *, orientation=1, preview=None, size=None, order="<"):
    """An uncompressed DNG of RGB pixels (height, width, 3), each with one colour, as a sensor has them.

    `preview` is a JPEG to put into it, and `size` what it says of its width and height.
    """
    height, width = pixels.shape[:2]
    light = 65535 * (pixels / 255.0) ** 2.2
    sensor = np.empty((height, width))
    for (y, x), colour in {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 2}.items():
        sensor[y::2, x::2] = light[y::2, x::2, colour]
    shown, data = size or (width, height), sensor.astype(f"{order}u2").tobytes()
    raw = {254: (4, [0]), 258: (3, [16]), 259: (3, [1]), 262: (3, [32803]), 277: (3, [1]), 33421: (3, [2, 2])}
    raw |= {256: (4, [shown[0]]), 257: (4, [shown[1]]), 278: (4, [shown[1]]), 33422: (1, [0, 1, 1, 2])}
    raw |= {50714: (4, [0]), 50717: (4, [65535])}
    about = {271: (2, b"Made\0"), 272: (2, b"Here\0"), 274: (3, [orientation]), 50706: (1, [1, 4, 0, 0])}
    about |= {50708: (2, b"Made Here\0"), 50778: (3, [21]), 50728: (5, [1, 1] * 3)}
    about |= {50721: (10, [number for entry in MATRIX for number in (entry, 10000)])}
    if preview is None:
        return _tiff([(raw | about, data)], order)
    small = {254: (4, [1]), 256: (4, [width]), 257: (4, [height]), 258: (3, [8] * 3), 259: (3, [7]), 262: (3, [6])}
    return _tiff([(small | {277: (3, [3]), 278: (4, [height])} | about, preview), (raw, data)], order)


def _tiff(images, order):
    """A TIFF of images, tags and data each; the second and later ones hang below the first."""
    lengths = [
        10 + 4 + 12 * (len(tags) + 2 + (place == 0 < len(images) - 1)) + 400 for place, (tags, _) in enumerate(images)
    ]
    starts = [8 + sum(lengths[:place]) for place in range(len(images))]
    end = 8 + sum(lengths)
    made = bytearray(end)
    struct.pack_into(f"{order}2sHI", made, 0, b"II" if order == "<" else b"MM", 42, 8)
    for place, (own, data) in enumerate(images):
        tags = own | {273: (4, [len(made)]), 279: (4, [len(data)])}
        if place == 0 and len(images) > 1:
            tags |= {330: (4, starts[1:])}
        made += data
        at, free = starts[place], starts[place] + 2 + 12 * len(tags) + 4
        struct.pack_into(f"{order}H", made, at, len(tags))
        for number, (tag, (kind, values)) in enumerate(sorted(tags.items())):
            body = b"".join(struct.pack(order + CODES[kind], value) for value in values)
            count = len(values) // (2 if kind in (5, 10) else 1)
            where = at + 2 + 12 * number
            struct.pack_into(f"{order}HHI", made, where, tag, kind, count)
            if len(body) <= 4:
                made[where + 8 : where + 8 + len(body)] = body
            else:
                struct.pack_into(f"{order}I", made, where + 8, free)
                made[free : free + len(body)] = body
                free += len(body)
        assert free <= at + lengths[place]
    return bytes(made)


def jpeg(image):
    """A preview, as cameras put it into their files."""
    return encoded(image, "JPEG", quality=90)


def _found(data, name):
    """What the first box of a name has."""
    at = data.index(name)
    return data[at + 4 : at - 4 + struct.unpack_from(">I", data, at - 4)[0]]


def grid(tile, rows, columns, size=None):
    """A HEIC as phones write it: an image of tiles, here of one in all places; `size` is what it says of itself."""
    alone = heic(tile)
    count, (width, height) = rows * columns, size or (columns * tile.width, rows * tile.height)
    tiles = range(2, 2 + count)
    infe = [
        box(b"infe", struct.pack(">IHH4sx", 2 << 24, item, 0, b"grid" if item == 1 else b"hvc1"))
        for item in (1, *tiles)
    ]
    sizes = [box(b"ispe", struct.pack(">III", 0, *pair)) for pair in (tile.size, (width, height))]
    owned = [struct.pack(">HB2B", item, 2, 0x81, 2) for item in tiles]  # from 1 on: how to decode it, and its size
    ipma = box(b"ipma", struct.pack(">II", 0, 1 + count), struct.pack(">HBB", 1, 1, 3), *owned)
    iprp = box(b"iprp", box(b"ipco", box(b"hvcC", _found(alone, b"hvcC")), *sizes), ipma)
    shape = struct.pack(">BBBBII", 0, 1, rows - 1, columns - 1, width, height)
    coded = _found(alone, b"mdat")

    def meta(place):
        own = struct.pack(">HHHHII", 1, 1, 0, 1, 0, len(shape))  # within the box idat
        others = [struct.pack(">HHHHII", item, 0, 0, 1, place, len(coded)) for item in tiles]
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", struct.pack(">II4s12xx", 0, 0, b"pict")),
            box(b"pitm", struct.pack(">IH", 0, 1)),
            box(b"iinf", struct.pack(">IH", 0, 1 + count), *infe),
            box(b"iloc", struct.pack(">IBBH", 1 << 24, 0x44, 0, 1 + count), own, *others),
            box(b"iref", bytes(4), box(b"dimg", struct.pack(f">HH{count}H", 1, count, *tiles))),
            iprp,
            box(b"idat", shape),
        )

    ftyp = box(b"ftyp", b"heic\0\0\0\0mif1heic")
    return ftyp + meta(len(ftyp + meta(0)) + 8) + box(b"mdat", coded)
