"""Image files that a folder from the internet might hold: damaged, hostile, and honest but large."""

from __future__ import annotations

import io
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageCms, PngImagePlugin

from perf.jpegs import PHOTOS

SIDE = 13_377  # pixels; its square is the largest canvas that is ever looked at
SCAN = 10_000  # pixels; its square is 100 megapixels
Make = Callable[[], bytes]


def encoded(image: Image.Image, form: str, **options) -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def photo(width: int = 320, height: int = 240) -> Image.Image:
    """A real photo."""
    with Image.open(sorted(PHOTOS.glob("*.jpg"))[0]) as image:
        return image.convert("RGB").resize((width, height))


def scan(side: int = SCAN, mode: str = "RGB") -> Image.Image:
    """A photo enlarged, with the noise of a sensor on it."""
    large = np.asarray(photo(800, 800).resize((side, side), Image.Resampling.BICUBIC)).copy()
    noise = np.random.default_rng(0).integers(-4, 5, (997, 991, 3), np.int8)  # tiles of it: that much chance takes long
    for top in range(0, side, 997):
        for left in range(0, side, 991):
            part = large[top : top + 997, left : left + 991]
            part[:] = np.clip(part.astype(np.int16) + noise[: part.shape[0], : part.shape[1]], 0, 255)
    return Image.fromarray(large).convert(mode)


# Damaged files that were held in memory with the errors about them


def cut_png(side: int = 4_900) -> bytes:
    """A PNG of 24 megapixels, cut off near its end."""
    data = encoded(Image.effect_mandelbrot((side, side), (-2, -2, 2, 2), 10).convert("RGB"), "PNG", compress_level=9)
    return data[: len(data) * 9 // 10]


def texts_png(count: int = 100, length: int = 900_000) -> bytes:
    """A PNG with long compressed texts, more than Pillow takes."""
    info = PngImagePlugin.PngInfo()
    for number in range(count):
        info.add_itxt(f"key{number}", "a" * length, zip=True)
    return encoded(photo(64, 48), "PNG", pnginfo=info)


# Files of few bytes that ask for gigabytes


def webp_giant(width: int = 16_383, height: int = 10_922) -> bytes:
    """An animated WebP of 90 bytes or so: a large canvas, a frame of one pixel."""
    frame = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)[12:]

    def three(number: int) -> bytes:
        return number.to_bytes(3, "little")

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    body = chunk(b"VP8X", b"\x02\0\0\0" + three(width - 1) + three(height - 1)) + chunk(b"ANIM", bytes(6))
    body += chunk(b"ANMF", three(0) * 4 + three(100) + b"\0" + frame)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def gif_giant(side: int = SIDE) -> bytes:
    """A GIF of 37 bytes: a large canvas, a frame of one pixel."""
    small = encoded(Image.new("P", (1, 1)), "GIF")
    return small[:6] + struct.pack("<HH", side, side) + small[10:]


def png_giant(side: int = SIDE, colour: int = 6, depth: int = 8) -> bytes:
    """A PNG of zeros: colour 6 is RGBA, 2 RGB, 0 grey."""
    row = 1 + side * {6: 4, 2: 3, 0: 1}[colour] * depth // 8

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zeros(row * side)) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """So many zeros, deflated."""
    squeeze, parts = zlib.compressobj(9), []
    for start in range(0, count, 1 << 20):
        parts.append(squeeze.compress(bytes(min(1 << 20, count - start))))
    return b"".join([*parts, squeeze.flush()])


def tiff(entries: list[tuple[int, int, int, int]], data: bytes = b"") -> bytes:
    """A TIFF of these tags (number, type, count, value or place), with data from byte 8 on."""
    place = 8 + len(data)
    tags = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    return b"II*\0" + struct.pack("<I", place) + data + struct.pack("<H", len(entries)) + tags + bytes(4)


def tiff_giant(side: int = SIDE) -> bytes:
    """A TIFF of 32-bit zeros, deflated, in one strip."""
    data = zeros(4 * side * side)
    entries = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 32), (259, 3, 1, 8), (262, 3, 1, 1), (339, 3, 1, 2)]
    entries += [(273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, side), (279, 4, 1, len(data))]
    return tiff(entries, data)


def many_scans(scans: int = 99, side: int = 8_000) -> bytes:
    """A progressive JPEG whose last scan is there again and again."""
    jpeg = encoded(Image.new("RGB", (side, side), "teal"), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + jpeg[last:-2] * (scans - 9) + jpeg[-2:]


def hidden_scans(scans: int = 20_000, side: int = 1_600, behind: bytes = b"\xff\x01\xff\xff") -> bytes:
    """A progressive JPEG of many scans, each behind a marker without a length, as if one of 64 kB followed."""
    jpeg = encoded(Image.new("RGB", (side, side), "teal"), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:last] + (behind + jpeg[last:-2]) * scans + jpeg[-2:]


def tables_first(scans: int = 20_000) -> bytes:
    """The same behind a JPEG of tables only, whose end is not the end of the file."""
    return b"\xff\xd8\xff\xfe\0\2\xff\xd9" + hidden_scans(scans, behind=b"")


# Files of much that is no pixel, which Pillow reads whole, byte by byte, or again and again


def jpeg_fill(count: int = 30_000_000) -> bytes:
    """A JPEG with very many bytes FF among its pixels, which libjpeg reads again with each 64 kB that it is given."""
    jpeg = encoded(photo(64, 48), "JPEG")
    place = jpeg.index(b"\xff\xda") + 40
    return jpeg[:place] + b"\xff" * count + jpeg[place:]


def jpeg_exif(count: int = 1_000) -> bytes:
    """A JPEG of 64 MB of EXIF, which Pillow puts together segment by segment."""
    jpeg = encoded(photo(64, 48), "JPEG")
    return jpeg[:2] + (b"\xff\xe1\xff\xffExif\0\0" + bytes(0xFFFF - 8)) * count + jpeg[2:]


def jpeg_loose(count: int = 50_000_000) -> bytes:
    """A JPEG with zeros between its segments, which Pillow passes over one by one."""
    jpeg = encoded(photo(64, 48), "JPEG")
    return jpeg[:2] + b"\xff\xfe\0\2" + bytes(count) + jpeg[2:]


def png_exif(count: int = 300_000_000) -> bytes:
    """A PNG with EXIF of zeros."""
    png, data = encoded(photo(64, 48), "PNG"), b"eXIf" + bytes(count)
    return png[:33] + struct.pack(">I", count) + data + struct.pack(">I", zlib.crc32(data)) + png[33:]


def png_behind(count: int = 300_000_000) -> bytes:
    """A PNG with further pixels behind its pixels, which Pillow reads in one piece."""
    png = encoded(photo(64, 48), "PNG")
    return png[:-12] + struct.pack(">I", count) + b"IDAT" + bytes(count + 4) + png[-12:]


def gif_loose(count: int = 50_000_000) -> bytes:
    """A GIF with zeros before its frame, which Pillow passes over one by one."""
    small = encoded(Image.new("P", (1, 1)), "GIF")
    start = 13 + (3 << ((small[10] & 7) + 1))
    return small[:start] + bytes(count) + small[start:]


def gif_empty_first(count: int = 10_000_000) -> bytes:
    """A GIF with an extension whose first block is empty, behind which Pillow goes on."""
    small = encoded(Image.new("P", (1, 1)), "GIF")
    start = 13 + (3 << ((small[10] & 7) + 1))
    return small[:start] + b"!\xf9\0" + b"\x01a" * count + b"\0" + small[start:]


# Files that hold more than they say


def avif_liar(side: int = 8_000) -> bytes:
    """An AVIF that says that it has 64 x 64 pixels, and whose stream has more."""
    data = bytearray(encoded(Image.new("RGB", (side, side), "teal"), "AVIF", subsampling="4:4:4", speed=10))
    struct.pack_into(">II", data, data.index(b"ispe") + 8, 64, 64)
    return bytes(data)


def avif_frames(count: int = 200, side: int = 4_000) -> bytes:
    """An AVIF whose one frame is there again and again."""
    data = bytearray(encoded(Image.new("RGB", (side, side), "teal"), "AVIF", speed=10))
    start = data.index(b"mdat") + 4
    stream = bytes(data[start:])
    head = 2 + 2 + stream[3]  # two units, of which the first one is empty, come before the frame
    longer = stream + stream[head:] * (count - 1)
    length = data.index(struct.pack(">I", len(stream)), data.index(b"iloc"))
    struct.pack_into(">I", data, length, len(longer))
    struct.pack_into(">I", data, start - 8, 8 + len(longer))
    return bytes(data[:start]) + longer


def sparse_webps(folder: Path, count: int = 4, size: int = 319 << 20) -> None:
    """WebPs of one pixel and a chunk of very many zeros, which take no room on a disk."""
    small = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)[12:]
    head = b"WEBP" + webp_chunk(b"VP8X", bytes(10)) + small
    head = b"RIFF" + struct.pack("<I", size - 8) + head + b"prVt" + struct.pack("<I", size - 16 - len(head))
    for number in range(count):
        with (folder / f"{number}.webp").open("wb") as file:
            file.write(head)
            file.truncate(size)


def webp_chunk(name: bytes, data: bytes = b"") -> bytes:
    """A chunk of a WebP."""
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def tiff_strips(width: int, rows: int, number: int, strip: bytes, compression: int, samples: int = 1) -> bytes:
    """A TIFF whose strips all lie in the same place."""
    entries = [(256, 4, 1, width), (257, 4, 1, rows * number), (259, 3, 1, compression), (277, 3, 1, samples)]
    entries += [(258, 3, 1, 8), (262, 3, 1, 2 if samples == 3 else 1), (278, 4, 1, rows)]
    data = strip + bytes(-len(strip) % 4)
    entries += [(273, 4, number, 8 + len(data)), (279, 4, number, 8 + len(data) + 4 * number)]
    return tiff(entries, data + struct.pack("<I", 8) * number + struct.pack("<I", len(strip)) * number)


def tiff_lzma(width: int = 4_000, rows: int = 292, number: int = 153) -> bytes:
    """A TIFF of 179 megapixels: strips in LZMA, the slowest to decode, that share 2 MB."""
    noise = np.random.default_rng(0).integers(0, 16, width * rows * 3, np.uint8)
    return tiff_strips(width, rows, number, lzma.compress(noise.tobytes(), lzma.FORMAT_XZ, preset=0), 34925, 3)


def tiff_scans(scans: int = 91, width: int = 4_000, rows: int = 1_000, number: int = 40) -> bytes:
    """A TIFF of 160 megapixels whose strips are JPEGs of so many scans."""
    jpeg = encoded(Image.new("L", (width, rows)), "JPEG", progressive=True)
    last = jpeg.rindex(b"\xff\xda")
    strip = jpeg[:last] + jpeg[last:-2] * (scans - jpeg.count(b"\xff\xda") + 1) + jpeg[-2:]
    return tiff_strips(width, rows, number, strip, 7) + bytes(width * rows * number // 500)


def tiff_tile(side: int = 20_000) -> bytes:
    """A TIFF of 16 x 16 pixels, in one tile of 400 megapixels."""
    data = zeros(3 * side * side)
    entries = [(256, 4, 1, 16), (257, 4, 1, 16), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 2), (277, 3, 1, 3)]
    return tiff([*entries, (322, 4, 1, side), (323, 4, 1, side), (324, 4, 1, 8), (325, 4, 1, len(data))], data)


def tiff_gap(length: int = 600_000_000) -> bytes:
    """A TIFF of two plain strips, so many bytes apart."""
    entries = [(256, 4, 1, 8), (257, 4, 1, 16), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (278, 4, 1, 8)]
    places = struct.pack("<IIII", 24, length, 64, 64)
    return tiff([*entries, (273, 4, 2, 8), (279, 4, 2, 16)], places + bytes(64)).ljust(length + 64, b"\0")


def tiff_fax(rows: int = 40_000, length: int = 160_000) -> bytes:
    """A fax of noise, of whose rows nearly each has an error, which libtiff has a line for."""
    data = np.random.default_rng(0).integers(0, 256, length, np.uint8).tobytes()
    entries = [(256, 4, 1, 1_000), (257, 4, 1, rows), (258, 3, 1, 1), (259, 3, 1, 3), (262, 3, 1, 0), (277, 3, 1, 1)]
    return tiff([*entries, (273, 4, 1, 8), (278, 4, 1, rows), (279, 4, 1, length)], data)


# Files of many parts, which Pillow walks one by one


def jpeg_parts(count: int = 2_000_000) -> bytes:
    """A JPEG with empty comments."""
    jpeg = encoded(photo(64, 48), "JPEG")
    return jpeg[:2] + b"\xff\xfe\0\x02" * count + jpeg[2:]


def png_parts(count: int = 1_000_000) -> bytes:
    """A PNG with empty chunks."""
    png = encoded(photo(64, 48), "PNG")
    empty = struct.pack(">I4sI", 0, b"prVt", zlib.crc32(b"prVt"))
    return png[:33] + empty * count + png[33:]


def gif_parts(count: int = 10_000_000) -> bytes:
    """A GIF with a comment of very short blocks."""
    small = encoded(Image.new("P", (1, 1)), "GIF")
    start = 13 + (3 << ((small[10] & 7) + 1))
    return small[:start] + b"!\xfe" + b"\x01a" * count + b"\0" + small[start:]


def tiff_tags(count: int = 500, length: int = 8_000_000) -> bytes:
    """A TIFF whose tags all name the same bytes."""
    entries = [(256, 4, 1, 8), (257, 4, 1, 8), *((40_000 + i, 7, length, 8) for i in range(count))]
    return tiff(entries, bytes(length))


def tiff_pages(count: int = 300_000) -> bytes:
    """A TIFF of one small picture and very many empty pages."""
    data = encoded(photo(64, 48), "TIFF")
    (place,) = struct.unpack_from("<I", data, 4)
    (tags,) = struct.unpack_from("<H", data, place)
    after = place + 2 + 12 * tags
    page = struct.calcsize("<HI")
    chain = b"".join(struct.pack("<HI", 0, len(data) + page * (i + 1)) for i in range(count - 1)) + bytes(page)
    return data[:after] + struct.pack("<I", len(data)) + data[after + 4 :] + chain


def bmp_runs(side: int = 8_000) -> bytes:
    """A BMP in run lengths, two bytes a pixel."""
    head = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 0, 0, 0, 2, 0) + bytes(8)
    data = b"\x01\x01" * (side * side // 8)
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(data), 0, 0, 14 + len(head)) + head + data


def bmp_row(width: int = 60_000_000) -> bytes:
    """A BMP of one row, which Pillow put together from 64 kB at a time."""
    head = struct.pack("<IiiHHIIiiII", 40, width, 1, 1, 8, 0, 0, 0, 0, 2, 0) + bytes(8)
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + width, 0, 0, 14 + len(head)) + head + bytes(width)


def ppm_odd(side: int = 4_000) -> bytes:
    """A PPM whose greatest value is 100."""
    return f"P6 {side} {side} 100\n".encode() + bytes(3 * side * side)


def webp_parts(count: int = 2_000_000) -> bytes:
    """A WebP with empty chunks within its one frame."""
    one = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)[12:]
    frame = webp_chunk(b"ANMF", bytes(16) + one + webp_chunk(b"prVt") * count)
    body = webp_chunk(b"VP8X", b"\x02" + bytes(9)) + webp_chunk(b"ANIM", bytes(6)) + frame
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def heic_parts(count: int = 2_000_000) -> bytes:
    """A HEIC of empty boxes alone."""
    meta = bytes(4) + struct.pack(">I4s", 8, b"free") * count
    return b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + struct.pack(">I4s", 8 + len(meta), b"meta") + meta


def avif_images(count: int = 40_000) -> bytes:
    """An AVIF in which very many images are named, and are not there."""
    data = encoded(photo(64, 48), "AVIF")
    at = data.index(b"iinf") - 4
    size, known = struct.unpack_from(">I", data, at)[0], struct.unpack_from(">H", data, at + 12)[0]
    named = (struct.pack(">I4sIHH4sx", 21, b"infe", 2 << 24, 1000 + number, 0, b"Exif") for number in range(count))
    more = b"".join(named)
    head = struct.pack(">I4sIH", size + len(more), b"iinf", 0, known + count)
    grown = data[:at] + head + data[at + len(head) : at + size] + more + data[at + size :]
    meta = data.index(b"meta") - 4
    whole = struct.unpack_from(">I", data, meta)[0] + len(more)
    return grown[:meta] + struct.pack(">I", whole) + grown[meta + 4 :]


FLOODS: dict[str, Make] = {
    "JPEG of 2,000,000 segments, 8 MB": jpeg_parts,
    "PNG of 1,000,000 chunks, 12 MB": png_parts,
    "GIF of 10,000,000 blocks, 20 MB": gif_parts,
    "TIFF of 500 tags over the same 8 MB": tiff_tags,
    "TIFF of 300,000 pages, 2 MB": tiff_pages,
    "BMP of 64 megapixels in runs, 16 MB": bmp_runs,
    "PPM of 16 megapixels up to 100, 48 MB": ppm_odd,
    "WebP of 2,000,000 chunks in a frame, 16 MB": webp_parts,
    "HEIC of 2,000,000 boxes, 16 MB": heic_parts,
    "AVIF of 40,000 images that are not there, 0.8 MB": avif_images,
    "BMP of one row, 60 MB": bmp_row,
    "TIFF, 40,000 damaged rows of a fax, 0.2 MB": tiff_fax,
}
GIANTS: dict[str, Make] = {
    "animated WebP of 90 bytes": webp_giant,
    "GIF of 37 bytes": gif_giant,
    "TIFF, 32 bit, 0.7 MB": tiff_giant,
    "PNG, RGBA, 0.7 MB": png_giant,
    "JPEG of 99 scans, 64 megapixels": many_scans,
    "JPEG of 20,000 scans behind FF 01, 0.3 MB": hidden_scans,
    "JPEG of 20,000 scans behind tables only, 0.3 MB": tables_first,
    "AVIF of 1 kB, 64 megapixels, that says 64 x 64": avif_liar,
    "AVIF of 200 frames of 16 megapixels in one, 0.1 MB": avif_frames,
    "TIFF, 153 strips in LZMA that share 2 MB": tiff_lzma,
    "TIFF, 40 strips in JPEG of 91 scans, 0.3 MB": tiff_scans,
    "TIFF of 16 x 16 pixels in a tile of 400 megapixels, 1.2 MB": tiff_tile,
    "TIFF, two strips 600 MB apart": tiff_gap,
}
FILLED: dict[str, Make] = {
    "JPEG filled with 30 MB of FF": jpeg_fill,
    "JPEG with 64 MB of EXIF": jpeg_exif,
    "JPEG with 50 MB between its segments": jpeg_loose,
    "PNG with 300 MB of EXIF": png_exif,
    "PNG with 300 MB behind its pixels": png_behind,
    "GIF with 50 MB before its frame": gif_loose,
    "GIF of 10,000,000 blocks behind an empty one, 20 MB": gif_empty_first,
}


def scans() -> Iterator[tuple[str, bytes]]:
    """Honest files of 100 megapixels, each made when it is asked for."""
    image = scan()
    yield "100 MP JPEG", encoded(image, "JPEG", quality=92)
    yield "100 MP JPEG, progressive, 4:4:4", encoded(image, "JPEG", quality=92, progressive=True, subsampling=0)
    yield "100 MP PNG", encoded(image, "PNG", compress_level=1)
    yield "100 MP TIFF, LZW", encoded(image, "TIFF", compression="tiff_lzw")
    yield "100 MP TIFF, plain", encoded(image, "TIFF")
    yield "100 MP TIFF, turned", encoded(image, "TIFF", tiffinfo={0x0112: 6})
    yield "100 MP PNG, RGBA", encoded(image.convert("RGBA"), "PNG", compress_level=1)
    grey = image.convert("L")
    del image
    deep = np.asarray(grey).astype(np.uint16) * 257
    yield "100 MP PNG, 16-bit grey", encoded(Image.fromarray(deep), "PNG", compress_level=1)
    del deep
    yield "100 MP TIFF, 1 bit, G4", encoded(grey.point(lambda v: 255 * (v > 127), "1"), "TIFF", compression="group4")


# Mutations


def seeds() -> list[bytes]:
    """Small files of all formats and of odd kinds."""
    image, exif, profile = photo(), Image.Exif(), ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif[0x0112] = 6
    deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    text = PngImagePlugin.PngInfo()
    text.add_itxt("a", "b" * 5000, zip=True)
    text.add_text("c", "d" * 500)
    frames = [image, image.rotate(90, expand=False), image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    kinds = [
        (image, "JPEG", {"quality": 85, "exif": exif, "icc_profile": profile}),
        (image, "JPEG", {"progressive": True}),
        (image.convert("CMYK"), "JPEG", {}),
        (image.convert("L"), "JPEG", {}),
        (image, "PNG", {"pnginfo": text, "exif": exif, "icc_profile": profile}),
        (image.convert("RGBA"), "PNG", {}),
        (image.convert("P"), "PNG", {"transparency": 3}),
        (deep, "PNG", {}),
        (image, "PNG", {"save_all": True, "append_images": frames[1:]}),
        (image, "GIF", {"comment": b"c" * 700}),
        (image, "GIF", {"save_all": True, "append_images": frames[1:], "duration": 100}),
        (image, "WEBP", {"exif": exif, "icc_profile": profile}),
        (image, "WEBP", {"lossless": True}),
        (image, "WEBP", {"save_all": True, "append_images": frames[1:]}),
        (image, "TIFF", {"compression": "tiff_lzw", "exif": exif}),
        (image, "TIFF", {"compression": "tiff_adobe_deflate"}),
        (image, "TIFF", {"compression": "jpeg"}),
        (image, "TIFF", {"save_all": True, "append_images": frames[1:]}),
        (deep, "TIFF", {}),
        (image.convert("CMYK"), "TIFF", {}),
        (image.convert("1"), "TIFF", {"compression": "group4"}),
        (image, "BMP", {}),
        (image.convert("P"), "BMP", {}),
        (image, "PPM", {}),
        (deep, "PPM", {}),
        (image.convert("F"), "PPM", {}),
        (image, "AVIF", {"exif": exif}),
        (image, "AVIF", {"save_all": True, "append_images": frames[1:]}),
    ]
    return [encoded(made, form, **options) for made, form, options in kinds]


def mutated(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """A damaged copy: cut off, bytes changed, its header edited, a stretch removed, doubled, zeroed or from another."""
    found = bytearray(data)
    start, end = sorted(rng.integers(0, len(found), 2).tolist())
    match int(rng.integers(8)):
        case 0:
            del found[end:]
        case 1:
            for place in rng.integers(0, len(found), rng.integers(1, 20)):
                found[place] = int(rng.integers(256))
        case 2:
            for place in rng.integers(0, min(64, len(found)), rng.integers(1, 6)):
                found[place] = int(rng.integers(256))
        case 3:
            for place in rng.integers(0, min(1024, len(found) - 4), rng.integers(1, 4)):
                found[place : place + 4] = rng.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\1", b"\0\0\xff\xff"])
        case 4:
            del found[start : min(end, start + 4096)]
        case 5:
            found[start:start] = found[start : min(end, start + 4096)] * int(rng.integers(1, 50))
        case 6:
            found[start:end] = bytes(end - start)
        case _:
            found[start:] = other[start:]
    return bytes(found)


def mutations(count: int, folder: Path) -> None:
    """Write so many damaged files; the same ones each time."""
    rng, grown = np.random.default_rng(0), seeds()
    suffixes = {b"\xff\xd8": "jpg", b"\x89P": "png", b"GI": "gif", b"RI": "webp", b"II": "tif", b"BM": "bmp"}
    for number in range(count):
        data, other = (grown[i] for i in rng.integers(0, len(grown), 2))
        suffix = suffixes.get(data[:2], "avif" if data[4:8] == b"ftyp" else "ppm")
        (folder / f"{number:05}.{suffix}").write_bytes(mutated(data, other, rng))
