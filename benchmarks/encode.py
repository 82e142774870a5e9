"""How quickly CLIP encodes: texts and images on the CPU, images on a GPU; true shapes, random weights, one run.

    python benchmarks/encode.py cpu [ViT-B-32 ViT-B-16]
    python benchmarks/encode.py gpu [ViT-B-16 ViT-L-14]

cpu: open_clip's models; texts at their own length against texts padded to 77 tokens, and what `outword export` writes
against torch. gpu: transformers' models; ours in fp16 against a plain loop of the same library in fp32, as a share of
the measured peak of matrix products, and from JPEG files.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from common import table
from outword.corpora import get_corpus
from outword.encoders import Encoder, get_encoder
from outword.encoders.doors import need
from outword.encoders.preprocess import Preprocess
from outword.images import decode_ahead, open_image

PHOTOS = Path(__file__).parents[1] / "src" / "outword" / "demo" / "photos"
NAMES = [f"the nice {word}" for word in get_corpus("wordnet").words[::93]]
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SHAPES = {  # patch, width, layers, heads, dimension of the shared space
    "ViT-B-32": (32, 768, 12, 12, 512),
    "ViT-B-16": (16, 768, 12, 12, 512),
    "ViT-L-14": (14, 1024, 24, 16, 768),
}


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    names = args.models or (["ViT-B-32", "ViT-B-16"] if args.device == "cpu" else ["ViT-B-16", "ViT-L-14"])
    for name in names:
        on_cpu(name, args.rounds) if args.device == "cpu" else on_gpu(name, args.rounds)


def seconds(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each run; they take turns, so that a busy machine is as busy for all."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            if turn:  # the first round warms up
                spent[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in spent.items()}


def speeds(title: str, took: dict[str, float], count: int, unit: str) -> None:
    """Items a second, and the ratio to the first row."""
    first = next(iter(took.values()))
    rows = [[name, f"{count / t:,.1f}", f"{first / t:.2f}"] for name, t in took.items()]
    print(f"\n{title}\n\n{table(['', f'{unit}/s', 'ratio'], rows)}", flush=True)


# ---- CPU ----


def on_cpu(name: str, rounds: int) -> None:
    """Texts and images of one model of open_clip through torch and through what `outword export` writes."""
    library = need("open_clip", name)
    with tempfile.TemporaryDirectory() as scratch:
        torch.manual_seed(0)
        save_file(library.create_model(name).state_dict(), f"{scratch}/weights.safetensors")
        encoder = get_encoder(f"open_clip:{name}@{scratch}/weights.safetensors", device="cpu")
        exported = {kind: exported_encoder(encoder, Path(scratch), kind) for kind in ("fp32", "fp16", "int8")}
        others = {f"onnxruntime {kind}": other for kind, other in exported.items()}
        ids = torch.from_numpy(encoder.model.tokenize(NAMES))
        texts: dict[str, Callable[[], object]] = {
            "torch fp32, padded to 77": lambda: padded(encoder, ids),
            "torch fp32, own length": lambda: encoder.encode_texts(NAMES),
        }
        texts |= {f"{kind}, own length": (lambda e=other: e.encode_texts(NAMES)) for kind, other in others.items()}
        length = np.mean([encoder.model.count(text) for text in NAMES])
        speeds(f"{name}, {len(NAMES)} texts of {length:.1f} tokens", seconds(texts, rounds), len(NAMES), "texts")
        pixels = np.stack([encoder.preprocess(open_image(path)) for path in sorted(PHOTOS.glob("*.jpg"))[:16]])
        images: dict[str, Callable[[], object]] = {"torch fp32": lambda: encoder.encode_pixels(pixels)}
        images |= {kind: (lambda e=other: e.encode_pixels(pixels)) for kind, other in others.items()}
        speeds(f"{name}, {len(pixels)} images", seconds(images, rounds), len(pixels), "images")
        for kind, other in exported.items():
            size = sum(path.stat().st_size for path in (Path(scratch) / kind).iterdir())
            cosine = {tower: f"{found['min']:.5f}" for tower, found in other.card["cosine"].items()}
            print(f"\nonnxruntime {kind}: {size / 1e6:.0f} MB, least cosine to torch {cosine}", flush=True)


def exported_encoder(encoder: Encoder, scratch: Path, precision: str) -> Encoder:
    """The same encoder, exported."""
    from outword.encoders.export import export

    export(encoder, scratch / precision, precision=precision, force=True)
    return get_encoder(f"onnx:{scratch / precision}")


@torch.inference_mode()
def padded(encoder: Encoder, ids: torch.Tensor) -> np.ndarray:
    """What a plain loop does: every text at the full length of the context."""
    parts = [encoder.model.text(ids[start : start + 64]) for start in range(0, len(ids), 64)]
    return torch.cat(parts).numpy()


# ---- GPU ----


class NoTokenizer:
    """Stands in for a tokenizer: this benchmark is about images."""

    pad_token_id, eos_token_id, model_max_length, model_input_names = 0, 1, 77, ("input_ids",)


def on_gpu(name: str, rounds: int) -> None:
    """Images of one model of transformers, from memory and from JPEG files."""
    patch, width, layers, heads, dim = SHAPES[name]
    peak, plain_peak = matrix_peak(torch.float16), matrix_peak(torch.float32)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}; ", end="")
    print(f"matrix products {peak:.0f} TFLOP/s in fp16, {plain_peak:.0f} in fp32")
    count, operations = 4096, vit_operations(patch, width, layers)
    pixels = np.random.default_rng(0).integers(256, size=(count, 224, 224, 3), dtype=np.uint8)
    ready = normalised(pixels[:1024])
    module = clip(patch, width, layers, heads, dim)
    theirs = clip(patch, width, layers, heads, dim)
    theirs.load_state_dict(module.state_dict())
    theirs.cuda()
    encoder = towers(module)
    assert np.abs(plain_loop(theirs, ready, 64) - encoder.encode_pixels(pixels[:1024])).max() < 5e-3
    runs = {f"plain loop, fp32, batches of {size}": lambda s=size: plain_loop(theirs, ready, s) for size in (64, 256)}
    took = {run: t / len(ready) for run, t in seconds(runs, rounds).items()}
    took |= {"ours, fp16": seconds({"": lambda: encoder.encode_pixels(pixels)}, rounds)[""] / count}
    first = next(iter(took.values()))
    rows = [
        [
            run,
            f"{1 / t:,.0f}",
            f"{first / t:.1f}",
            f"{operations / t / 1e12:.0f}",
            f"{operations / t / 1e12 / peak:.0%}",
        ]
        for run, t in took.items()
    ]
    head = ["", "images/s", "ratio", "TFLOP/s", "of the fp16 peak"]
    print(f"\n{name}, {operations / 1e9:.1f} GFLOP an image, from memory\n\n{table(head, rows)}", flush=True)
    from_files(name, encoder)


def from_files(name: str, encoder: Encoder, count: int = 3000) -> None:
    """JPEG files of 500 x 375 pixels: decoding alone, encoding alone, and both."""
    with tempfile.TemporaryDirectory() as scratch:
        files = write_jpegs(Path(scratch), count)
        began = time.perf_counter()
        workers = os.cpu_count() or 1
        loaded = [x for _, x in decode_ahead(files, encoder._load, workers=workers, ahead=2048)]
        decoding = time.perf_counter() - began
        pixels = np.stack(loaded)
        encoding = seconds({"": lambda: encoder.encode_pixels(pixels)}, 2)[""]
        both = seconds({"": lambda: encoder.encode_images(files)}, 2)[""]
    speeds(
        f"{name}, {count:,} JPEG files of 500 x 375, {workers} threads",
        {"both": both, "decoding and resizing alone": decoding, "encoding alone": encoding},
        count,
        "images",
    )


def write_jpegs(folder: Path, count: int) -> list[Path]:
    """Cuttings of the demo photos, each at another place."""
    rng = np.random.default_rng(0)
    photos = [open_image(path).resize((650, 490)) for path in sorted(PHOTOS.glob("*.jpg"))]
    files = [folder / f"{i:05d}.jpg" for i in range(count)]
    for i, path in enumerate(files):
        left, top = rng.integers(150), rng.integers(115)
        photos[i % len(photos)].crop((left, top, left + 500, top + 375)).save(path, quality=90)
    return files


def matrix_peak(dtype: torch.dtype, n: int = 8192) -> float:
    """TFLOP/s of a large product of random matrices."""
    a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))

    def products() -> None:
        for _ in range(10):
            a @ b
        torch.cuda.synchronize()

    return 10 * 2 * n**3 / seconds({"": products}, 5)[""] / 1e12


def vit_operations(patch: int, width: int, layers: int, side: int = 224) -> float:
    """Floating-point operations of one image: patches, then projections (12 width^2) and attention of each block."""
    patches = (side // patch) ** 2
    tokens = patches + 1
    return 2 * (patches * 3 * patch**2 * width + layers * (12 * tokens * width**2 + 2 * tokens**2 * width))


def clip(patch: int, width: int, layers: int, heads: int, dim: int) -> torch.nn.Module:
    """A CLIP of transformers with an image tower of true shape."""
    library = need("transformers", "this benchmark")
    vision = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    vision |= {"num_attention_heads": heads, "patch_size": patch, "image_size": 224, "projection_dim": dim}
    config = library.CLIPConfig(text_config={"num_hidden_layers": 1}, vision_config=vision, projection_dim=dim)
    return library.CLIPModel(config).eval().requires_grad_(False)


def towers(module: torch.nn.Module) -> Encoder:
    """Our encoder around it, on the GPU as it is by default."""
    from outword.encoders.towers import Towers
    from outword.encoders.transformers import from_parts

    model = from_parts(module, NoTokenizer(), Preprocess(224, 224, "bicubic", MEAN, STD), digest="")
    return Towers(model, name="benchmark", options={}, prompts="released")


def normalised(pixels: np.ndarray) -> torch.Tensor:
    """Float pixels as an image processor gives them."""
    return ((torch.from_numpy(pixels) / 255 - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2).contiguous()


@torch.no_grad()
def plain_loop(module: torch.nn.Module, pixels: torch.Tensor, size: int) -> np.ndarray:
    """What the library's own example does, batch after batch."""
    parts = []
    for start in range(0, len(pixels), size):
        features = module.get_image_features(pixels[start : start + size].cuda()).pooler_output
        parts.append((features / features.norm(dim=-1, keepdim=True)).cpu())
    return torch.cat(parts).numpy()


if __name__ == "__main__":
    sys.exit(main())
