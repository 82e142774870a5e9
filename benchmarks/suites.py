"""The suites of `outword bench` in the tables of docs/clip.md and of benchmark.md and world.md in lab/docs.

    python benchmarks/suites.py folder OUT --photos PATH
    python benchmarks/suites.py sweeps OUT --photos PATH
    python benchmarks/suites.py theorem2 OUT
    python benchmarks/suites.py world OUT
    python benchmarks/suites.py few-shot OUT
    python benchmarks/suites.py vectors OUT --vectors FOLDER

PATH is bench-mini, FOLDER what lab/docs/vectors.md says; the others need neither, and `world` leaves OUT/gallery.jpg,
too. OUT gets what `outword bench` leaves, report and plots included, and a run that was killed goes on there. Tables go
to stdout.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw

from bench_folder import link
from common import table
from outword_lab.world.sets import world_sets

FOLDERS = ["broad", "names", "scenes"]
SWEEPS = {
    "fig1-alpha-tau-sigma": ["alpha", "tau", "sigma"],
    "fig2-kappa-L": ["kappa", "L"],
    "sweep-B-K": ["B", "K"],
}
ANSWERS = ["models", "mining", "tau", "sigma", "losses", "score", "verdicts", "p-values"]
ON_CLIP = ["methods", "leads", "sets", "broad", "verdicts", "halves", "odds", "p-values", "mining"]
ON_CLIP += ["rivals", "tau", "sigma"]
COMPARED = ["grounded, all words", "debiased", "neglabel", "adaneg", "eoe", "mcm", "maxlogit", "energy"]
LEVEL = "0.05"
LENGTHS = ["200 names", "500 names"]
FIGURES = {"AUROC": "average_auroc", "FPR95": "average_fpr95_id"}
BEST = {"average_auroc": max, "average_fpr95_id": min}
Lines = list[dict[str, str]]


def bench(suite: str, out: Path, *options: object) -> None:
    """Run `outword bench`; its own table is not printed."""
    command = [sys.executable, "-m", "outword", "bench", suite, "-o", out, *options]
    subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, check=True)


def read(path: Path) -> Lines:
    """A table as `outword bench` writes it for machines."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown(line: dict[str, str], key: str) -> str:
    """A figure in percent, with its standard deviation where there are several seeds."""
    if not line.get(key):
        return "–"
    spread = line[f"{key}_sd"]
    return f"{100 * float(line[key]):.2f}" + (f" ± {100 * float(spread):.2f}" if spread else "")


def folder(out: Path, photos: Path, store: Path) -> Iterator[str]:
    """Every method on three lists of labels: the averages, and how far the first is ahead."""
    found: dict[str, Lines] = {}
    for kind in FOLDERS:
        if not (out / "roots" / kind).exists():
            link(photos, out / "roots" / kind, kind)
        bench("folder", out / kind, "--data", out / "roots" / kind, "--store", store)
        found[kind] = [line for line in read(out / kind / "tables/main.csv") if line["source"] == "measured"]
    methods = dict.fromkeys(line["method"] for lines in found.values() for line in lines)
    rows = [[name, *(cell for lines in found.values() for cell in averages(name, lines))] for name in methods]
    yield table(["method", *(f"{kind} {name}" for kind in FOLDERS for name in ("AUROC ↑", "FPR95 ↓"))], rows)
    rows = [[kind, *lead(line)] for kind in FOLDERS for line in read(out / kind / "tables/leads.csv")]
    yield table(["labels", "first", "before", "AUROC, points", "95 % interval, all pairs at once", "separable"], rows)


def lead(line: dict[str, str]) -> list[str]:
    """How far the first is ahead of another, in points."""
    points, low, high = (f"{100 * float(line[key]):.2f}" for key in ("points", "interval_low", "interval_high"))
    return [line["first"], line["before"], points, f"{low} to {high}", line["separable"]]


def averages(name: str, lines: Lines) -> Iterator[str]:
    """Both averages of a method on one list of labels; the best are bold."""
    own = next((line for line in lines if line["method"] == name), {})
    for key, best in BEST.items():
        told = shown(own, key)
        first = best(float(line[key]) for line in lines)
        yield f"**{told}**" if own and round(float(own[key]), 4) == round(first, 4) else told


def sweeps(out: Path, photos: Path, store: Path) -> Iterator[str]:
    """A table for each swept parameter: its values across, with the tau that was used."""
    if not (out / "roots/names").exists():
        link(photos, out / "roots/names", "names")
    for suite, parameters in SWEEPS.items():
        given = ["--folder", "--encoder", "mini", "--data", out / "roots/names", "--store", store]
        bench(suite, out / suite, *given)
        for parameter in parameters:
            yield swept(parameter, read(out / suite / f"tables/sweep-{parameter}.csv"))


def swept(parameter: str, lines: Lines) -> str:
    """The table of one parameter; where there are several methods, the figures of each."""
    values = list(dict.fromkeys(line[parameter] for line in lines))
    rows = []
    for method in dict.fromkeys(line.get("method", "") for line in lines):
        own = [line for line in lines if line.get("method", "") == method]
        used = "tau_used" in own[0]
        if used and (parameter != "tau" or any(float(line["tau"]) != float(line["tau_used"]) for line in own)):
            rows.append([f"{method} tau used".strip(), *(line["tau_used"] for line in own)])
        rows += [[f"{method} {name}".strip(), *(shown(line, key) for line in own)] for name, key in FIGURES.items()]
    return table([parameter, *values], rows)


def theorem2(out: Path) -> Iterator[str]:
    """The slopes of Theorem 2, scales across; and where the printed bound is broken."""
    bench("theorem2", out / "theorem2")
    lines = read(out / "theorem2/tables/slopes.csv")
    scales = list(dict.fromkeys(line["scale"] for line in lines))
    rows = []
    for setting, axis in dict.fromkeys((line["setting"], line["axis"]) for line in lines):
        own = [line for line in lines if (line["setting"], line["axis"]) == (setting, axis)]
        rows.append([f"{setting}, {'m = n' if axis == 'both' else axis}", *map(slope, own)])
    yield table(["vectors, against", *(f"κ = {scale}" for scale in scales)], rows)
    rows = [
        [*cells, f"{float(printed):.2f}", f"{float(corrected):.2f}"]
        for *cells, printed, corrected in (line.values() for line in read(out / "theorem2/tables/cases.csv"))
    ]
    yield table(["P− at cos", "κ", "m", "Λ", "δ / printed bound", "δ / corrected bound"], rows)


def slope(line: dict[str, str]) -> str:
    """A slope with its interval."""
    value, low, high = (f"{float(line[f'all_{end}']):.3f}".replace("-", "−") for end in ("slope", "low", "high"))
    return f"{value} ({low} to {high})"


def world(out: Path) -> Iterator[str]:
    """What the small world answers, and its tables in brief."""
    gallery(out / "gallery.jpg")
    bench("world", out / "world")
    for name in ANSWERS:
        header, *rows = rows_of(out / f"world/tables/answer-{name}.csv")
        yield table(header, rows)
    lines = read(out / "world/world-table1/tables/main.csv")
    sets = [key.removesuffix("_auroc") for key in lines[0] if key.endswith("_auroc")]
    header = ["method", *(f"{name.removeprefix('world-')}" for name in sets), "FPR95 ↓"]
    rows = [
        [line["method"], *(shown(line, f"{name}_auroc") for name in sets), shown(line, "average_fpr95_id")]
        for line in lines
        if line["source"] == "measured"
    ]
    yield table(header, rows)
    found: dict[str, dict[str, str]] = {}
    for number, axis in ((2, "encoder"), (3, "encoder"), (4, "corpus"), (5, "id")):
        for line in read(out / f"world/world-table{number}/tables/main.csv"):
            if line["source"] == "measured":
                column = line.get(axis, "world-m-96")
                found.setdefault(line["method"], {})[f"{number}: {column}"] = shown(line, "average_auroc")
    columns = sorted(dict.fromkeys(one for cells in found.values() for one in cells), key=lambda one: one[0])
    yield table(
        ["method", *columns], [[name, *(cells.get(one, "–") for one in columns)] for name, cells in found.items()]
    )
    for part, parameters in (("fig1", ["alpha", "tau", "sigma"]), ("fig2", ["kappa", "L"]), ("mining", ["L"])):
        for parameter in parameters:
            yield swept(parameter, read(out / f"world/world-{part}/tables/sweep-{parameter}.csv"))


def vectors(out: Path, given: Path) -> Iterator[str]:
    """What a folder of vectors answers: some rows where methods are compared, and the odds of all lists together."""
    bench("vectors", out / "vectors", given)
    for name in ON_CLIP:
        header, *rows = rows_of(out / f"vectors/tables/answer-{name}.csv")
        if name == "leads":
            rows = [row for row in rows if row[0] in COMPARED]
        if name == "sets":
            rows = [row for row in rows if row[0] in LENGTHS and row[1] in ("grounded", *COMPARED)]
        if name == "p-values":
            rows = [row for row in rows if row[1].endswith(LEVEL)]
        if name == "odds":
            header, rows = header[1:], [row[1:] for row in rows if row[0] == "all"]
        yield table(header, rows)


def few_shot(out: Path) -> Iterator[str]:
    """Mean AUROC by shots, each with its interval."""
    bench("world-few-shot", out / "world-few-shot")
    lines = read(out / "world-few-shot/tables/shots.csv")
    keys = [key.removesuffix("_low") for key in lines[0] if key.endswith("_ci_low")]
    rows = [[line["method"], *(with_interval(line, key) for key in keys)] for line in lines]
    yield table(["method, shots", *(key.split("_")[1] for key in keys)], rows)


def with_interval(line: dict[str, str], key: str) -> str:
    """A figure in percent, and the interval that is called `key`."""
    if not line[f"{key}_low"]:
        return "–"
    mean, low, high = (
        f"{100 * float(line[one]):.2f}" for one in (key.removesuffix("_ci"), f"{key}_low", f"{key}_high")
    )
    return f"{mean} ({low} to {high})"


def rows_of(path: Path) -> list[list[str]]:
    """A table as it is, the header first."""
    with path.open(encoding="utf-8", newline="") as file:
        return [[cell.removeprefix("'") for cell in row] for row in csv.reader(file)]  # it keeps spreadsheets safe


def gallery(path: Path) -> None:
    """A picture of the world: ten photos of each set."""
    side, columns, margin = 72, 10, 84
    sets = world_sets()
    picture = Image.new("RGB", (margin + columns * side, len(sets) * side), "white")
    pen = ImageDraw.Draw(picture)
    for row, (name, one) in enumerate(sets.items()):
        pen.text((6, row * side + side // 2 - 6), name, fill="black")
        photos = list(one.photos())
        for column in range(columns):
            photo = Image.fromarray(photos[column * len(photos) // columns]).resize((side - 2, side - 2))
            picture.paste(photo, (margin + column * side, row * side + 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, quality=85)


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["folder", "sweeps", "theorem2", "world", "few-shot", "vectors"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--store", type=Path, help="where vectors are kept; in OUT by default")
    args = parser.parse_args()
    alone = {"theorem2": theorem2, "world": world, "few-shot": few_shot}
    if args.what in alone:
        found = alone[args.what](args.out)
    elif args.what == "vectors":
        if args.vectors is None:
            parser.error("vectors needs --vectors")
        found = vectors(args.out, args.vectors)
    elif args.photos is None:
        parser.error(f"{args.what} needs --photos")
    else:
        found = {"folder": folder, "sweeps": sweeps}[args.what](args.out, args.photos, args.store or args.out / "store")
    for one in found:
        print(one, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
