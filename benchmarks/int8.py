"""What `mini`, whose image tower computes in 8-bit integers, gains and loses against `mini-float`: does it ship?

    python benchmarks/int8.py [--draws 20] [--tower FILE --photos PATH]

Images a second of both; then the lists of labels of `verdicts.py` with the default method: AUROC, and whether a photo
gets the same verdict and the same name. Photos are those of bench-mini, as vectors (the references that come with both
encoders): none of them set a range of the tower, which was made from photos of the demo. Each encoder's cut is made
from its own vectors of one half of the photos, and verdicts are compared on the other half, then the other way round.
With --tower another image tower takes the place of mini's, such as `tools/mini_int8.py` writes, and PATH is bench-mini.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from outword.base.processors import usable_cpus
from outword.detector.cuts import cut_by_reference
from outword.detector.recipe import METHOD
from outword.encoders import get_encoder
from outword.encoders.mini.encoder import Mini
from outword.maths.numerics import Array
from outword.photos.walk import find_images
from outword_lab.encoders.bench_mini import bench_mini
from perf.encoder import FILES, IMAGES, ROUNDS, decoded
from perf.jpegs import write_jpegs
from perf.tables import Goal, Table, markdown, times
from verdicts import SETS, Photos, lists, make_task, ranked, read_photos

MEAN, LIST, SAME, SPEED = -0.05, -0.3, 99.0, 1.3  # points of AUROC, points of a list, % of the verdicts, times


@dataclass(frozen=True)
class Change:
    """What becomes of a list: AUROC in float, its change, and how many verdicts and names are the same, all in %."""

    auroc: float
    points: float
    verdicts: float
    names: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tower", type=Path)
    parser.add_argument("--photos", type=Path)
    args = parser.parse_args()
    mini = Mini()
    if args.tower:
        mini._image_file = args.tower
    vectors = encoded(mini, args.photos) if args.tower else bench_mini(mini).vectors
    with tempfile.TemporaryDirectory() as scratch:
        fast = speed({"mini-float": get_encoder("mini-float"), "mini": mini}, write_jpegs(Path(scratch), FILES))
    print(markdown(fast), flush=True)
    print(f"\n{markdown(accuracy(vectors.astype(np.float16), args.draws))}")


def encoded(mini: Mini, root: Path) -> Array:
    """Vectors of bench-mini in the order of the reference, that of the files' sha256."""
    files = [file for name in SETS for file in find_images([root / name])]
    return mini.encode_images(sorted(files, key=lambda file: hashlib.sha256(Path(file).read_bytes()).digest()))


def speed(towers: dict[str, Mini], files: list[Path]) -> Table:
    """Images a second, alone and while other threads decode."""
    pixels = np.stack([towers["mini"].loader(file) for file in files[:IMAGES]])
    alone = times({name: (lambda m=m: m.encode_pixels(pixels)) for name, m in towers.items()}, ROUNDS)
    beside = times({name: (lambda m=m: decoded(m, files, m.encode_pixels)) for name, m in towers.items()}, ROUNDS)
    rows = [
        {
            "": name,
            "images/s alone": 1e3 * IMAGES / alone[name],
            "ratio": alone["mini-float"] / alone[name],
            "images/s, decoding beside": 1e3 * FILES / beside[name],
            "ratio ": beside["mini-float"] / beside[name],
        }
        for name in towers
    ]
    gain = beside["mini-float"] / beside["mini"]
    goal = Goal(f"at least {SPEED} times with decoding beside", f"{gain:.2f} times", gain >= SPEED)
    return Table(f"Both encoders on {usable_cpus()} cores", rows, [goal])


def accuracy(vectors: Array, draws: int) -> Table:
    """Lists of `verdicts.py` with vectors of photos by `mini`, (n, dim) float16, against those by `mini-float`."""
    photos, found = read_photos("mini-float"), dict[str, list[Change]]()
    with ProcessPoolExecutor(usable_cpus()) as pool:
        some = lists(photos, draws, ("broad", "exact", "scenes"))
        for begun in [pool.submit(compared, *one, vectors) for one in some]:
            name, change = begun.result()
            found.setdefault(name, []).append(change)
    means = {name: _mean(changes) for name, changes in found.items()}
    rows = [
        {
            "labels": name,
            "AUROC, mini-float": f"{of.auroc:.2f}",
            "mini": f"{of.auroc + of.points:.2f}",
            "points": f"{of.points:+.2f}",
            "same verdict, %": f"{of.verdicts:.2f}",
            "same name, %": f"{of.names:.2f}",
        }
        for name, of in means.items()
    ]
    mean = _mean([*means.values()])
    worst = min(means, key=lambda name: means[name].points)
    least = min(means, key=lambda name: means[name].verdicts)
    goals = [
        Goal(f"mean AUROC falls by at most {-MEAN}", f"{mean.points:+.3f}", mean.points >= MEAN),
        Goal(f"no list by more than {-LIST}", f"{means[worst].points:+.2f} ({worst})", means[worst].points >= LIST),
        Goal(
            f"verdicts agree in {SAME:g} %",
            f"{mean.verdicts:.2f} %, least {means[least].verdicts:.2f} % ({least}); names {mean.names:.2f} %",
            mean.verdicts >= SAME,
        ),
    ]
    note = f"Names are those of photos that are in with both. Exact names: means over {draws} draws."
    return Table(f"{METHOD} with either image tower, {len(photos.half)} photos", rows, goals, note)


def compared(name: str, labels: list[str], own: Array | None, vectors: Array) -> tuple[str, Change]:
    """A list with both encoders' vectors."""
    photos = read_photos("mini-float")
    both = [photos, replace(photos, reference=replace(photos.reference, vectors=vectors))]
    tasks = [make_task(one, labels, METHOD, own) for one in both]
    counted = tasks[0].inside | tasks[0].outside
    ranks = [100 * ranked(task, one) for task, one in zip(tasks, both, strict=True)]
    inside = [_verdicts(task, one)[counted] for task, one in zip(tasks, both, strict=True)]
    same, named = inside[0] == inside[1], [_names(task, one)[counted] for task, one in zip(tasks, both, strict=True)]
    agreed = (named[0] == named[1])[inside[0] & inside[1]]
    return name, Change(
        ranks[0], ranks[1] - ranks[0], 100 * same.mean(), 100 * agreed.mean() if len(agreed) else np.nan
    )


def _verdicts(task, photos: Photos) -> Array:
    """Whether a photo is in, by a cut from the other half."""
    found = np.zeros(len(photos.half), bool)
    for given in (photos.half, ~photos.half):
        found[~given] = task.scores[~given] >= cut_by_reference(task.detector, photos.part(given)).threshold
    return found


def _names(task, photos: Photos) -> Array:
    """The nearest label of a photo."""
    detector, vectors = task.detector, photos.reference.vectors.astype(np.float32)
    return detector.scorer.evidence(vectors, 1, detector.encoder.temperature).labels[:, 0]


def _mean(changes: Sequence[Change]) -> Change:
    return Change(*np.nanmean([[*vars(one).values()] for one in changes], axis=0).tolist())


if __name__ == "__main__":
    main()
