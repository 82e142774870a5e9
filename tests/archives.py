"""Archives of tiny photos for the tests."""

import io
import tarfile

import pyarrow as pa
import pyarrow.parquet
from PIL import Image

from bad_images import encoded


def photo(number):
    """The bytes of a small PNG; different numbers give different photos."""
    return encoded(Image.new("RGB", (8, 8), (number % 256, number // 256, 128)), "PNG")


def write_photos(folder, names):
    """Files with different photos."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo(number))


def write_tar(path, members, mode="w"):
    """A tar with members by name: the bytes of a file, or a TarInfo of something else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:
        for name, data in members.items():
            if isinstance(data, tarfile.TarInfo):
                tar.addfile(data)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def write_parquet(path, images, labels=None, rows=3):
    """A table as Hugging Face writes it: images are (bytes, path) or bytes alone; `rows` go into a group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    structs = [{"bytes": one[0], "path": one[1]} if isinstance(one, tuple) else one for one in images]
    columns = {"image": pa.array(structs)} | ({} if labels is None else {"label": pa.array(labels, pa.int64())})
    pa.parquet.write_table(pa.table(columns), path, row_group_size=rows)
