"""What each decoder makes of photos, against Pillow: pixels, scores and verdicts, with models that know what they see.

    python benchmarks/decoders.py PHOTOS [--count 1200] [--cpu] [--only mini-float] [--detector mini-float=FILE]

PHOTOS is a folder of JPEGs, which `mini-float` and `mini` judge, with cuttings of the demo photos; those of the small
world are written as JPEGs of 200 pixels, and judged by `world-m`. All are given pixels that are made as CLIP's are, of
their own size: decoded, and resized beside or on the CUDA device. A detector that was fitted before can be given; else
one is fitted with ten broad labels, or with the world's. Without a device (--cpu), simplejpeg is compared alone, with
kernels that are interpreted: minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from perf.jpegs import write_jpegs
from perf.tables import Goal, Table, markdown

BROAD = "dog, bird, snake, insect, crustacean, vehicle, musical instrument, furniture, garment, vegetable"
CUTTINGS = 240
ENCODERS = ["mini-float", "mini", "world-m"]
MOST, AGREE = 1e-2, 0.999


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--count", type=int, default=1200, help="of the photos, and of those of the world")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="+", choices=ENCODERS, default=ENCODERS)
    parser.add_argument("--detector", action="append", default=[], metavar="ENCODER=FILE")
    args = parser.parse_args()
    if args.cpu:
        os.environ["TRITON_INTERPRET"] = "1"
    given = dict(one.split("=", 1) for one in args.detector)
    decoders = ("simplejpeg",) if args.cpu else ("simplejpeg", "nvjpeg")
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.only:
            files = of_world(args.count, Path(scratch)) if name == "world-m" else of_photos(args, Path(scratch))
            print(markdown(compared(name, files, given.get(name), decoders)), flush=True)


def of_photos(args: argparse.Namespace, scratch: Path) -> list[Path]:
    """Files of the folder, evenly spread over it, and cuttings of the demo's photos."""
    every = sorted(path for path in args.photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    folder = scratch / "cuttings"
    folder.mkdir(exist_ok=True)
    done = sorted(folder.iterdir())
    return [*every[:: max(1, len(every) // args.count)], *(done or write_jpegs(folder, min(CUTTINGS, args.count)))]


def of_world(count: int, scratch: Path) -> list[Path]:
    """Photos of the world, half of them of its labels, as JPEGs."""
    from outword_lab.world.sets import world_sets

    sets, files = world_sets(), []
    for kind in ("id", "other"):
        shown = islice(sets[kind].photos(), 0, None, max(1, 2 * len(sets[kind]) // count))
        for number, pixels in enumerate(shown):
            files.append(scratch / f"{kind}-{number}.jpg")
            Image.fromarray(np.asarray(pixels)).resize((200, 200)).save(files[-1], quality=90)
    return files


def compared(name: str, files: list[Path], detector: str | None, decoders: tuple[str, ...]) -> Table:
    """Pixels, scores and verdicts of each decoder beside Pillow's."""
    import torch

    import outword
    from outword.detector.judge import judge
    from outword.encoders import get_encoder
    from outword.encoders.loader import Loader
    from outword.encoders.preprocess import Preprocess
    from outword.encoders.torch.feeding import device_loader
    from outword_lab.world.sets import world_sets

    labels = BROAD.split(", ") if name != "world-m" else sorted(set(filter(None, world_sets()["id"].shown)))
    found = outword.load(detector) if detector else outword.fit(labels, encoder=name)
    encoder, device = get_encoder(name), torch.device("cpu" if decoders == ("simplejpeg",) else "cuda")
    way: Any = Preprocess(260, 292, "bicubic", [0] * 3, [1] * 3) if name != "world-m" else encoder.preprocess
    plain = Loader(way, way.min_side)
    want, threshold = np.stack([plain(file) for file in files]), found.threshold
    scores = judge(found, encoder.encode_pixels(want), 0).scores
    rows: list[dict[str, Any]] = []
    for decoder in decoders:
        loader = device_loader(way, decoder, device)
        pixels = np.concatenate(list(gathered(loader, files)))
        off = np.abs(pixels.astype(np.int16) - want)
        other = judge(found, encoder.encode_pixels(pixels), 0).scores
        changed, alike = np.abs(other - scores), (other >= threshold) == (scores >= threshold)
        rows.append(
            {
                "": decoder,
                "mean difference of pixels": float(off.mean()),
                "alike within 1": f"{(off <= 1).mean():.3%}",
                "at most": int(off.max()),
                "scores differ by, median": float(np.median(changed)),
                "99.9th percentile": float(np.quantile(changed, 0.999)),
                "verdicts agree": f"{alike.mean():.2%}",
            }
        )
        print(f"{name}, {decoder}: done", file=sys.stderr, flush=True)
    goals = [
        Goal(f"{row['']}: scores within {MOST} at the 99.9th percentile, verdicts alike in {AGREE:.1%}",
             f"{row['99.9th percentile']:.1e}, {row['verdicts agree']}",
             row["99.9th percentile"] < MOST and float(row["verdicts agree"].rstrip("%")) >= 100 * AGREE)
        for row in rows
    ]  # fmt: skip
    title = f"{name}: {len(files):,} JPEG files through each decoder, against Pillow, scores of {found.method}"
    return Table(title, rows, goals, f"Pixels of 0 to 255, resized; a score is a difference of logs; {device}.")


def gathered(loader, files: list[Path]) -> Iterator[np.ndarray]:
    """Pixels of files, some at a time."""
    for start in range(0, len(files), 256):
        pixels, errors = loader.gather(loader.load(files[start : start + 256]))
        assert not any(errors)
        yield pixels.cpu().numpy()


if __name__ == "__main__":
    main()
