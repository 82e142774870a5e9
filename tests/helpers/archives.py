"""Archives of tiny photos for the tests."""

import io
import json
import tarfile

import pyarrow as pa
import pyarrow.parquet
from PIL import Image

from helpers.bad_images import encoded


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


def table_of(images, labels=None, column="image"):
    """A table as Hugging Face has it: images are (bytes, path), or bytes or a path alone."""
    structs = [{"bytes": one[0], "path": one[1]} if isinstance(one, tuple) else one for one in images]
    return pa.table({column: pa.array(structs)} | ({} if labels is None else {"label": pa.array(labels, pa.int64())}))


def write_parquet(path, images, labels=None, rows=3, column="image", **options):
    """A Parquet file of `table_of`; `rows` go into a group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(table_of(images, labels, column), path, row_group_size=rows, **options)


def write_arrow(path, images, labels=None, rows=3, column="image", writer=pa.ipc.new_stream):
    """An Arrow file of `table_of`; `rows` go into a batch."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table_of(images, labels, column)
    with writer(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=rows)


def write_dataset(folder, *shards, column="image"):
    """A folder as `datasets.Dataset.save_to_disk` leaves it, with an Arrow file for each list of images."""
    names = [f"data-{number:05}-of-{len(shards):05}.arrow" for number in range(len(shards))]
    for name, images in zip(names, shards, strict=True):
        write_arrow(folder / name, images, column=column)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {column: {"_type": "Image"}}}))
