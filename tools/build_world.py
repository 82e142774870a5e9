"""Make the folders of the small world's encoders from what `tools/train_world.py` left.

    python tools/build_world.py TRAINED

TRAINED has NAME.safetensors and train.jsonl. Each size becomes a folder of the package that is both a model of
transformers (`hf:FOLDER`) and its export to ONNX (`onnx:FOLDER`), with a card; the log of the training is kept beside.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from outword.base.extras import require
from outword.encoders import get_encoder
from outword.encoders.onnx.encoder import CARD
from outword.encoders.onnx.export import export
from outword.encoders.torch.models import CONFIG
from outword_lab.encoders.world import DATA
from world_models import CONTEXT, END, MEAN, SIZES, START, STD, make_model, tokenizer_layout

LICENCE = "apache-2.0"
SOURCE = "comes with outword: trained by tools/train_world.py (lab/docs/world.md)"


def build(name: str, trained: Path, folder: Path) -> None:
    """Write the folder of one size."""
    folder.mkdir(parents=True)
    layout, size = tokenizer_layout(), SIZES[name]
    config = make_model(name, layout).config
    config.architectures, config.dtype = ["CLIPModel"], "float16"
    _write(folder / CONFIG, json.loads(config.to_json_string()))
    shutil.copyfile(trained / f"{name}.safetensors", folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(layout, ensure_ascii=False), encoding="utf-8")
    special = {"bos_token": START, "eos_token": END, "pad_token": END, "unk_token": END}
    _write(
        folder / "tokenizer_config.json", {"tokenizer_class": "CLIPTokenizer", "model_max_length": CONTEXT, **special}
    )
    _rewrite_tokenizer(folder)
    _write(
        folder / "preprocessor_config.json",
        {
            **{"do_resize": True, "size": {"height": size.side, "width": size.side}, "resample": 3},
            **{"do_center_crop": False, "do_rescale": True, "do_normalize": True, "image_mean": MEAN, "image_std": STD},
        },
    )
    last = [json.loads(line) for line in (trained / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    measured = next(line for line in last if line.get("model") == name and "accuracy" in line)
    (folder / "README.md").write_text(_card(name, measured), encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        exported = Path(scratch) / "onnx"
        export(get_encoder(f"hf:{folder}", device="cpu", precision="fp32"), exported, precision="fp16", say=print)
        for path in exported.iterdir():
            shutil.copyfile(path, folder / path.name)
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    _write(folder / CARD, {**card, "name": f"world-{name}", "source": SOURCE})


def _rewrite_tokenizer(folder: Path) -> None:
    """Write the tokenizer as the export will, whose file takes its place: the fingerprint that it is of stays true."""
    inner = require("transformers").CLIPTokenizer.from_pretrained(folder).backend_tokenizer
    layout = {**json.loads(inner.to_str()), "truncation": None, "padding": None}
    (folder / "tokenizer.json").write_text(json.dumps(layout, ensure_ascii=False), encoding="utf-8")


def _card(name: str, measured: dict[str, object]) -> str:
    size = SIZES[name]
    return f"""---
license: {LICENCE}
---
# world-{name}

A CLIP of the small rendered world of outword, trained from scratch; **not CLIP**, and blind to everything that is not
in that world. Image tower: ViT, {size.layers} layers of {size.width}, patches of 8, input {size.side} x {size.side}.
Text tower: {size.text_layers} layers of {size.text_width}, {CONTEXT} tokens. Trained by `tools/train_world.py` on
photos and captions that it renders itself: no data of anyone's.

Zero-shot accuracy among the 25 labels of the benchmark: {measured["accuracy"]} %, on photos that training never showed
(`train.jsonl` beside this folder has the log). lab/docs/world.md tells what it is for.
"""


def _write(path: Path, values: object) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Build the sizes that were trained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trained", type=Path)
    trained = parser.parse_args().trained
    for name in SIZES:
        if (trained / f"{name}.safetensors").exists():
            shutil.rmtree(DATA / name, ignore_errors=True)
            build(name, trained, DATA / name)
    shutil.copyfile(trained / "train.jsonl", DATA / "train.jsonl")


if __name__ == "__main__":
    main()
