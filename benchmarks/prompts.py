"""How long prompts take to learn: on 2 cores with the small world's model, on a GPU in the shape of CLIP's ViT-B/16.

    python benchmarks/prompts.py cpu
    python benchmarks/prompts.py gpu

cpu: every method that learns prompts, with its own settings, for 10 and for 100 labels and 16 photos of each. gpu: CoOp
on the 1,000 names of ImageNet and 16 vectors of each, random weights; ours against a plain loop that pads every text
to 77 tokens, step for step the same learning.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import torch

from outword.base.extras import require
from outword.detector.fitting import prepare
from outword.detector.recipe import resolve
from outword.encoders import Encoder, get_encoder
from outword.encoders.preprocess import Preprocess
from outword.encoders.torch.towers import Towers
from outword.encoders.torch.transformers import from_parts
from outword.maths.methods import DETECTORS
from outword.vectors.id_images import IdImages
from outword_lab.benchmark.run.imagenet import classes
from outword_lab.learning.methods.coop import CoOp
from outword_lab.learning.needs import PROMPTS
from outword_lab.learning.prompts import Task, learn
from outword_lab.world.sets import WorldSet, world_sets
from outword_lab.world.things import COLOURS, seen
from perf.clip import MEAN, STD
from perf.tables import Table, markdown

SHOTS = 16
START, END, WORDS = 49406, 49407, 40000  # ids of CLIP's vocabulary, and how many of it are drawn


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    for table in on_cpu() if parser.parse_args().device == "cpu" else on_gpu():
        print(f"\n{markdown(table)}", flush=True)


def on_cpu() -> Iterator[Table]:
    """Every method, on photos of things and, for 100 labels, of things in colours."""
    encoder, things = get_encoder("world-m"), seen()[:10]
    plain = replace(world_sets()["train"], things=things)
    labels = {10: list(things), 100: [f"{colour} {thing}" for colour, thing in product([*COLOURS][:10], things)]}
    vectors = {10: encoder.encode_images(list(plain.photos()))}
    more: WorldSet = replace(plain, name="more", each=SHOTS * 10)  # what they show does not matter for the time
    vectors[100] = encoder.encode_images(list(more.photos()))
    rows = []
    for method in (name for name, kind in DETECTORS.items() if PROMPTS in kind.needs):
        if getattr(DETECTORS[method], "on_patches", False):
            continue
        row: dict[str, float | str] = {"": method}
        for count, names in labels.items():
            shown = np.repeat(np.arange(count), SHOTS)
            photos = IdImages(vectors[count], shown, dict.fromkeys(names, SHOTS), [])
            recipe = resolve(encoder, method, {}, corpus="world" if method == "lapt" else None)
            row[f"{count} labels, s"] = prepare(recipe, names, id_images=photos).seconds
        rows.append(row)
    yield Table(f"Seconds to learn, world-m, {SHOTS} photos a label, {torch.get_num_threads()} threads", rows)


class Tokens:
    """Stands in for CLIP's tokenizer: a word has a token for every five letters, which is right on average."""

    pad_token_id, eos_token_id, model_max_length, model_input_names = END, END, 77, ("input_ids",)

    def __call__(self, texts: list[str], **options: object) -> dict[str, np.ndarray]:
        """Ids of texts, filled up to 77."""
        ids = np.full((len(texts), 77), END)
        for row, text in enumerate(texts):
            words = text.replace(".", " .").replace("-", " - ").split()
            pieces = [hash((word, piece)) % WORDS for word in words for piece in range(max(1, round(len(word) / 5)))]
            ids[row, : len(pieces) + 1] = [START, *pieces]
        return {"input_ids": ids}


def clip_shaped(precision: str | None) -> Encoder:
    """Our encoder around a CLIP of transformers in the shape of ViT-B/16, random weights."""
    library = require("transformers", "this benchmark")
    texts = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8}
    texts |= {"vocab_size": 49408, "eos_token_id": END, "bos_token_id": START, "projection_dim": 512}
    small = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "projection_dim": 512}
    torch.manual_seed(0)
    module = library.CLIPModel(library.CLIPConfig(text_config=texts, vision_config=small, projection_dim=512)).eval()
    model = from_parts(module, Tokens(), Preprocess(224, 224, "bicubic", MEAN, STD), digest="")
    return Towers(model, name="benchmark", options={}, prompts="released", precision=precision)


def on_gpu() -> Iterator[Table]:
    """CoOp on 1,000 names: seconds an epoch, and memory."""
    names = [name for _, name in classes()]
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((SHOTS * len(names), 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shown = np.repeat(np.arange(len(names)), SHOTS)
    photos = IdImages(vectors, shown, dict.fromkeys(names, SHOTS), [])
    task = Task([[name] for name in names], [], [photos])
    rows: list[dict[str, float | str]] = []
    for precision in ("bf16", "fp32"):
        encoder = clip_shaped(precision)
        plain, peak = plain_loop(encoder, names, vectors, shown, steps=50)
        rows.append({"": f"plain loop, 77 tokens, {precision}", "s an epoch": 500 * plain, "GB": peak / 1e9})
        own, peak = ours(encoder, task)
        rows.append({"": f"ours, {precision}", "s an epoch": own, "GB": peak / 1e9})
    first = float(rows[0]["s an epoch"])
    table = [{**row, "ratio": first / float(row["s an epoch"])} for row in rows]
    length = np.mean([(Tokens()([f"{name}."])["input_ids"] != END).sum() - 1 for name in names])
    note = f"{torch.cuda.get_device_name()}, torch {torch.__version__}; 16 tokens of context, {length:.1f} "
    yield Table(
        "CoOp, 1,000 labels x 16 vectors, batches of 32, ViT-B/16's text tower, random weights",
        table,
        note=f"{note}of a name and its full stop (CLIP's own tokenizer: 2.9). The plain loop is 50 steps, scaled.",
    )


def ours(encoder: Encoder, task: Task) -> tuple[float, float]:
    """Seconds an epoch, of one behind two others; and the most memory."""
    torch.cuda.reset_peak_memory_stats()
    ends: list[float] = []

    def report(name: str, done: int, total: int | None) -> None:
        if done % 500 == 0:
            torch.cuda.synchronize()
            ends.append(time.perf_counter())

    learn(CoOp(epochs=4), encoder, task, report)
    return ends[3] - ends[2], torch.cuda.max_memory_allocated()


def plain_loop(encoder, names, vectors, shown, steps):
    """CoOp as it is usually written: all texts at 77 tokens through the library's own layers; seconds a step."""
    module = encoder.model.module
    dtype, tower = next(module.parameters()).dtype, module.text_model
    ids = torch.from_numpy(encoder.model.tokenize([f"{'X ' * 16}{name}." for name in names])).cuda()
    ends, embedded = (ids == END).int().argmax(1), tower.embeddings.token_embedding(ids)
    mask = torch.full((77, 77), -torch.inf, device="cuda", dtype=dtype).triu(1)[None, None]
    context = (torch.randn(16, 512, device="cuda") * 0.02).requires_grad_()
    optimizer = torch.optim.SGD([context], lr=0.002, momentum=0.9, weight_decay=5e-4)
    x, y = torch.from_numpy(vectors).cuda(), torch.from_numpy(shown).cuda()
    torch.cuda.reset_peak_memory_stats()
    for step in range(steps + 5):
        if step == 5:
            torch.cuda.synchronize()
            began = time.perf_counter()
        rows = torch.randint(len(x), (32,), device="cuda")
        learned = context.to(dtype).expand(len(names), -1, -1)
        h = torch.cat([embedded[:, :1], learned, embedded[:, 17:]], 1) + tower.embeddings.position_embedding.weight
        for layer in tower.encoder.layers:
            out = layer(h, mask)
            h = out if isinstance(out, torch.Tensor) else out[0]
        pooled = tower.final_layer_norm(h)[torch.arange(len(h)), ends]
        texts = torch.nn.functional.normalize(module.text_projection(pooled).float(), dim=-1)
        loss = torch.nn.functional.cross_entropy(x[rows] @ texts.T / encoder.temperature, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps, torch.cuda.max_memory_allocated()


if __name__ == "__main__":
    main()
