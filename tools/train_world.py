"""Train the CLIP models of the small world (lab/docs/world.md), on one GPU, in minutes.

    python tools/train_world.py OUT [--seed 0] [--sizes s,m,m-96] [--steps 6000]

Each size becomes OUT/NAME.safetensors, fp16; what happened goes to OUT/train.jsonl, a line each: the seconds, the loss
as it went, accuracy and AUROC on sets that training never shows. Photos are rendered on the GPU, by the same code that
renders the benchmark's. `m-96` goes on from `m`, with a larger input, as CLIP's ViT-L/14@336 went on from ViT-L/14.
`tools/build_world.py` makes the folders of the package from these files.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from outword.encoders.bpe import Bpe
from outword.maths.metrics import auroc
from outword_lab.world.phrases import captions, corpus, is_positive
from outword_lab.world.render import render
from outword_lab.world.scenes import SIDE, Scenes, draw
from outword_lab.world.sets import world_sets
from outword_lab.world.things import ID_FAMILIES, seen, things
from world_models import CONTEXT, MEAN, SIZES, STD, make_model, tokenizer_layout

POOL = 400_000  # photos to train on, each with several captions
CAPTIONS = 4  # of each photo
EMPTY = 0.03  # share of photos without a thing
BATCH = 2048
PART = 4096  # photos that are rendered together
PEAK = 1e-3  # of the learning rate
SETS = ("other", "near", "far", "ground", "clutter", "shuffled")


class Log:
    """Lines of JSON, with the seconds since the start."""

    def __init__(self, path: Path) -> None:
        self._path, self._start = path, time.perf_counter()

    def __call__(self, **facts: Any) -> None:
        """Print a line, and keep it."""
        line = json.dumps({"seconds": round(time.perf_counter() - self._start, 1), **facts})
        print(line, flush=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def pool_scenes(seed: int) -> Iterator[Scenes]:
    """Scenes to train on, some at a time."""
    names = [*seen(), None]
    shares = np.array([things()[name].share for name in seen()], float)
    chances = [*(shares / shares.sum() * (1 - EMPTY)), EMPTY]
    for start in range(0, POOL, PART):
        drawn = np.random.default_rng([seed, 1, start]).choice(len(names), min(PART, POOL - start), p=chances)
        yield draw([names[i] for i in drawn], [seed, 2, start])


def rendered(scenes: Scenes, side: int) -> Tensor:
    """Pixels (n, 3, side, side), uint8, on the GPU."""
    return resized(render(scenes.map(lambda array: torch.as_tensor(array, device="cuda")), torch), side)


def resized(pixels: Tensor, side: int) -> Tensor:
    """(n, 96, 96, 3) to (n, 3, side, side) in bytes, as a photo that is resized before it goes in."""
    x = pixels.permute(0, 3, 1, 2)
    if side == SIDE:
        return x.contiguous()
    way = {"size": (side, side), "mode": "bicubic", "antialias": True}
    return functional.interpolate(x.float(), **way).round().clamp(0, 255).to(torch.uint8)


def tokenized(bpe: Bpe, texts: list[str]) -> Tensor:
    """Token ids (n, CONTEXT), padded with the end."""
    out = np.full((len(texts), CONTEXT), bpe.end, np.int64)
    for row, text in zip(out, texts, strict=True):
        ids = bpe.encode(text)
        row[: len(ids)] = ids
    return torch.as_tensor(out, device="cuda")


def normalised(pixels: Tensor) -> Tensor:
    """What the image tower reads."""
    mean, std = (torch.tensor(values, device="cuda").view(1, 3, 1, 1) for values in (MEAN, STD))
    return (pixels.float() / 255 - mean) / std


def train(name: str, model: Any, photos: Tensor, ids: Tensor, steps: int, seed: int, log: Log) -> None:
    """Symmetric cross-entropy over a batch, as CLIP has it."""
    torch.manual_seed(seed)
    wide = [p for p in model.parameters() if p.ndim > 1]
    narrow = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": wide, "weight_decay": 0.1}, {"params": narrow, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK, total_steps=steps, pct_start=0.05)
    target = torch.arange(BATCH, device="cuda")

    @torch.compile
    def loss_of(pixels: Tensor, texts: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            images = model.get_image_features(normalised(pixels)).pooler_output
            words = model.get_text_features(texts).pooler_output
        images, words = (functional.normalize(x.float(), dim=-1) for x in (images, words))
        logits = model.logit_scale.exp() * images @ words.T
        return (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2

    for step in range(steps):
        rows = torch.randint(len(photos), (BATCH,), device="cuda")
        texts = ids[rows, torch.randint(CAPTIONS, (BATCH,), device="cuda")]
        loss = loss_of(photos[rows], texts)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(max=math.log(100))
        if step % 500 == 0 or step == steps - 1:
            scale = round(model.logit_scale.exp().item(), 2)
            log(model=name, step=step, loss=round(loss.item(), 4), scale=scale)


@torch.no_grad()
def evaluate(name: str, model: Any, bpe: Bpe, side: int, log: Log) -> None:
    """Accuracy among the labels, cosines, and AUROC of simple scores, on sets that training never shows."""
    model.eval()

    def texts(words: list[str]) -> Tensor:
        found = model.get_text_features(tokenized(bpe, [f"a photo of a {word}" for word in words])).pooler_output
        return functional.normalize(found, dim=-1)

    def images(which: str) -> Tensor:
        one = world_sets()[which]
        pixels = render(one.scenes.map(lambda array: torch.as_tensor(array, device="cuda")), torch)
        if one.spoilt:
            spoilt = [one.spoilt(photo, number) for number, photo in enumerate(pixels.cpu().numpy())]
            pixels = torch.as_tensor(np.stack(spoilt), device="cuda")
        found = model.get_image_features(normalised(resized(pixels, side))).pooler_output
        return functional.normalize(found, dim=-1)

    labels, scale = list(seen(ID_FAMILIES)), model.logit_scale.exp()
    y, wild = texts(labels), texts([p.text for p in corpus() if not is_positive(p, labels)])
    inside = images("id")
    shown = torch.tensor([labels.index(thing) for thing in world_sets()["id"].shown], device="cuda")
    right = (inside @ y.T).argmax(1) == shown
    means = {"image-text": inside @ y.T, "text-text": y @ y.T, "image-image": inside @ inside.T}
    scores = {
        "mcm": lambda x: torch.softmax(x @ y.T, 1).amax(1),
        "maxlogit": lambda x: (x @ y.T).amax(1),
        "neglabel": lambda x: torch.logsumexp(scale * x @ y.T, 1) - torch.logsumexp(scale * x @ wild.T, 1),
    }
    found: dict[str, dict[str, float]] = {score: {} for score in scores}
    for one in SETS:
        outside = images(one)
        for score, of in scores.items():
            found[score][one] = round(100 * auroc(of(inside).cpu().numpy(), of(outside).cpu().numpy()), 2)
    for by_set in found.values():
        by_set["mean"] = round(sum(by_set[one] for one in SETS) / len(SETS), 2)
    shifts = {
        one: round(100 * _accuracy(images(one), y, labels, one), 2) for one in ("v2", "sketch", "rendition", "adverse")
    }
    rare = torch.tensor([things()[label].share == 1 for label in labels], device="cuda")[shown]
    log(
        model=name,
        accuracy=round(100 * right.float().mean().item(), 2),
        accuracy_of_rare=round(100 * right[rare].float().mean().item(), 2),
        accuracy_of_shifts=shifts,
        cosine={pair: round(values.mean().item(), 3) for pair, values in means.items()},
        scale=round(scale.item(), 2),
        auroc=found,
    )


def _accuracy(images: Tensor, y: Tensor, labels: list[str], which: str) -> float:
    shown = torch.tensor([labels.index(thing) for thing in world_sets()[which].shown], device="cuda")
    return ((images @ y.T).argmax(1) == shown).float().mean().item()


def enlarged(small: dict[str, Tensor], large: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model for another input size: the places of patches are interpolated."""
    key = "vision_model.embeddings.position_embedding.weight"
    first, rest = small[key][:1], small[key][1:]
    before, after = (math.isqrt(len(table[key]) - 1) for table in (small, large))
    grid = rest.T.reshape(1, -1, before, before)
    grid = functional.interpolate(grid, size=(after, after), mode="bicubic")
    moved = {k: v for k, v in small.items() if k in large and v.shape == large[k].shape}
    return {**large, **moved, key: torch.cat([first, grid.reshape(-1, after * after).T])}


def main() -> None:
    """Train what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--steps", type=int, default=6000)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    log = Log(args.out / "train.jsonl")
    layout = tokenizer_layout()
    bpe = Bpe(layout)
    log(torch=torch.__version__, device=torch.cuda.get_device_name(), seed=args.seed, steps=args.steps, photos=POOL)
    photos, ids = [], []
    for number, scenes in enumerate(pool_scenes(args.seed)):
        photos.append(rendered(scenes, SIDE))
        every = [tokenized(bpe, captions(scenes, [args.seed, 3, number, i])) for i in range(CAPTIONS)]
        ids.append(torch.stack(every, 1))
    whole, tokens = torch.cat(photos), torch.cat(ids)
    log(rendered=len(whole), captions=tokens.shape[0] * CAPTIONS)
    trained: dict[str, dict[str, Tensor]] = {}
    for name in args.sizes.split(","):
        size = SIZES[name]
        torch.manual_seed(args.seed)
        model = make_model(name, layout).cuda().train()
        steps = args.steps
        if size.begins_with:
            model.load_state_dict(enlarged(trained[size.begins_with], model.state_dict()))
            steps //= 3
        log(model=name, parameters=sum(p.numel() for p in model.parameters()))
        seen_at = torch.cat([resized(part.permute(0, 2, 3, 1), size.side) for part in whole.split(PART)])
        train(name, model, seen_at, tokens, steps, args.seed, log)
        trained[name] = {key: value.detach().clone() for key, value in model.state_dict().items()}
        floats = {key: value for key, value in trained[name].items() if value.is_floating_point()}
        kept = {key: value.half().cpu().contiguous() for key, value in floats.items()}
        save_file(kept, args.out / f"{name}.safetensors", metadata={"format": "pt"})
        model.load_state_dict(kept, strict=False)
        evaluate(name, model, bpe, size.side, log)


if __name__ == "__main__":
    main()
