"""Many small JPEGs in tars and in Parquet, and an encoder so small that it does not hide what surrounds it."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import outword
from outword.photos.decode import open_image
from outword.photos.walk import find_images

PHOTOS = Path(outword.__file__).parent / "demo" / "photos"
SIDE = (96, 72)
A_TAR, A_TABLE, A_GROUP = 5000, 10_000, 1000
BROKEN = 9973  # every so many photos one is cut off
LABELS = ["tabby cat", "espresso", "space shuttle", "acoustic guitar", "sunflower"]


def jpegs(count: int) -> Iterator[bytes]:
    """Cuttings of the demo's photos, each from another place; some are broken."""
    rng = np.random.default_rng(0)
    photos = [open_image(path).resize((400, 300)) for path in find_images([PHOTOS])]
    for number in range(count):
        left, top = int(rng.integers(400 - SIDE[0])), int(rng.integers(300 - SIDE[1]))
        buffer = io.BytesIO()
        photos[number % len(photos)].crop((left, top, left + SIDE[0], top + SIDE[1])).save(buffer, "JPEG", quality=85)
        data = buffer.getvalue()
        yield data[: len(data) // 3] if number % BROKEN == BROKEN - 1 else data


def write_tars(folder: Path, count: int) -> None:
    """The photos as WebDataset has them, with a text beside each."""
    folder.mkdir(parents=True)
    photos = enumerate(jpegs(count))
    for shard in range(-(-count // A_TAR)):
        with tarfile.open(folder / f"{shard:06d}.tar", "w") as tar:
            for number, data in islice(photos, A_TAR):
                for suffix, content in (("jpg", data), ("txt", b"a caption")):
                    info = tarfile.TarInfo(f"{number:08d}.{suffix}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))


def write_tables(folder: Path, count: int) -> None:
    """The photos as Hugging Face has them."""
    folder.mkdir(parents=True)
    photos = enumerate(jpegs(count))
    for shard in range(-(-count // A_TABLE)):
        rows = [{"bytes": data, "path": f"{number:08d}.jpg"} for number, data in islice(photos, A_TABLE)]
        table = pa.table({"image": pa.array(rows)})
        parquet.write_table(table, folder / f"{shard:06d}.parquet", row_group_size=A_GROUP, compression="none")


def write_encoder(folder: Path) -> str:
    """A CLIP of two layers with random weights, exported to ONNX; gives its name."""
    import torch
    from safetensors.torch import save_file

    from outword.base.extras import require
    from outword.encoders import get_encoder
    from outword.encoders.onnx.export import export

    open_clip = require("open_clip", "the benchmark")
    model = {
        "embed_dim": 64,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
    }
    (folder / "hub").mkdir(parents=True)
    (folder / "hub" / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": {}}))
    torch.manual_seed(0)
    weights = {name: value.contiguous() for name, value in open_clip.CLIP(**model).state_dict().items()}
    save_file(weights, folder / "hub" / "open_clip_model.safetensors")
    export(get_encoder(f"hf:{folder / 'hub'}", device="cpu"), folder / "onnx", force=True)
    return f"onnx:{folder / 'onnx'}"
