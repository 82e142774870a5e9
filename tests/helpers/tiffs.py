"""TIFF files made tag by tag, as no program writes them."""

import struct

SIZES = {1: 1, 3: 2, 4: 4, 5: 8, 16: 8}


def tiff(tags, data=b"", big=False):
    """A TIFF of tags (number, type, values), in the order given, with `data` at the place that `START` says."""
    blob, entries = bytearray(data), []
    start = 16 if big else 8
    room, word = (8, "Q") if big else (4, "I")
    for number, kind, values in tags:
        packed = struct.pack("<" + {1: "B", 3: "H", 4: "I", 16: "Q"}[kind] * len(values), *values)
        if len(packed) > room:
            place = start + len(blob)
            blob += packed
            packed = struct.pack("<" + word, place)
        entries.append(struct.pack("<HH" + word, number, kind, len(values)) + packed.ljust(room, b"\0"))
    head = (
        b"II+\0" + struct.pack("<HHQ", 8, 0, start + len(blob)) if big else b"II*\0" + struct.pack("<I", 8 + len(blob))
    )
    count = struct.pack("<Q" if big else "<H", len(entries))
    return head + bytes(blob) + count + b"".join(entries) + bytes(room)


def strips(width, rows, count, compression, places, lengths, data, *, samples=1, more=(), big=False, tiles=False):
    """A TIFF of 8-bit pixels in so many strips of so many rows, or in one column of tiles; places are within `data`."""
    start = 16 if big else 8
    tags = [(256, 4, [width]), (257, 4, [rows * count]), (258, 3, [8] * samples), (259, 3, [compression])]
    tags += [(262, 3, [1 if samples == 1 else 2]), (277, 3, [samples])]
    shape = [(322, 4, [width]), (323, 4, [rows])] if tiles else [(278, 4, [rows])]
    where, how_long = (324, 325) if tiles else (273, 279)
    tags += [*shape, (where, 4, [start + place for place in places]), (how_long, 4, list(lengths))]
    changed = {tag[0] for tag in more}
    return tiff(sorted([tag for tag in tags if tag[0] not in changed] + list(more)), data, big)
