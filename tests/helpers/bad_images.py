"""A folder of hostile and odd image files, with what each must lead to."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

ORIENTATION = 0x0112


def picture(width=64, height=48):
    """A smooth RGB picture whose four corners all differ."""
    x, y = np.linspace(0, 255, width), np.linspace(0, 255, height)[:, None]
    red, green, blue = np.broadcast_arrays(x, y, 255 - (x + y) / 2)
    return Image.fromarray(np.rint(np.stack([red, green, blue], axis=-1)).astype(np.uint8))


def encoded(image, format, **options):
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def rotated_jpeg(image, orientation=6):
    """JPEG bytes with an EXIF orientation."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encoded(image, "JPEG", quality=95, exif=exif)


def png_header(width, height):
    """A tiny PNG that claims to be width x height pixels, 8-bit RGB."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")
    )


def truncated(format):
    """The first two thirds of an image file: the header is whole, some pixels are missing."""
    data = encoded(picture(320, 240), format)
    return data[: len(data) * 2 // 3]


def gray16():
    """A 16-bit PNG from black to white."""
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (48, 1))
    return encoded(Image.fromarray(ramp), "PNG")


def palette_with_transparency():
    """A two-colour palette PNG: the left half transparent, the right half blue."""
    image = Image.new("P", (64, 48), 0)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.paste(1, (32, 0, 64, 48))
    return encoded(image, "PNG", transparency=0)


def animated_gif():
    """A GIF whose first frame is green, its second red."""
    frames = [Image.new("RGB", (64, 48), colour) for colour in ("lime", "red")]
    return encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])


def good_files():
    """Name and bytes of odd files that must work."""
    jpeg, png = encoded(picture(), "JPEG"), encoded(picture(), "PNG")
    return {
        "png-named.jpg": png,
        "animated.gif": animated_gif(),
        "cmyk.jpg": encoded(picture().convert("CMYK"), "JPEG"),
        "gray16.png": gray16(),
        "palette.png": palette_with_transparency(),
        "rotated.jpg": rotated_jpeg(picture()),
        "narrow.png": encoded(Image.new("RGB", (1, 30000), "red"), "PNG"),
        "name with  spaces.jpg": jpeg,
        "ünïcödé 猫 🐈.jpg": jpeg,
        "new\nline.jpg": jpeg,
        "<img src=x onerror=alert(1)>.jpg": jpeg,
    }


def bad_files():
    """Name, bytes and expected words of files that must be refused."""
    return {
        "text.jpg": (b"this is not an image, whatever its name says\n", "not an image"),
        "truncated.jpg": (truncated("JPEG"), "truncated"),
        "truncated.png": (truncated("PNG"), "truncated"),
        "empty.png": (b"", "empty file"),
        "bomb.png": (png_header(60000, 60000), "too many pixels: 60000 x 60000"),
    }


def make_bad_images(folder):
    """Fill `folder`; returns path -> words of the expected error, or None where the file must work.

    The path of a missing file is among them. The permission-less file is left out where root would read it anyway.
    """
    folder = Path(folder)
    expected = {}
    for name, data in good_files().items():
        (folder / name).write_bytes(data)
        expected[folder / name] = None
    for name, (data, words) in bad_files().items():
        (folder / name).write_bytes(data)
        expected[folder / name] = words
    (folder / "x.jpg").mkdir()
    expected[folder / "x.jpg"] = "is a directory"
    expected[folder / "missing.jpg"] = "no such file"
    if os.geteuid() != 0:
        locked = folder / "locked.jpg"
        locked.write_bytes(encoded(picture(), "JPEG"))
        locked.chmod(0)
        expected[locked] = "permission denied"
    return expected
