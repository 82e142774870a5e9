"""The pictures of docs/performance.md that show what more cores bring, from the committed results.

python tools/build_plots.py docs/images
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def main() -> None:
    """Write both pictures into a folder."""
    folder = Path(sys.argv[1])
    rows = table("performance-cuda.json", "files to rows by cores")
    decoders = [name for name in rows[0] if name != "cores"]
    lines = {name: [(row["cores"], row[name]) for row in rows] for name in decoders}
    draw(folder / "files-by-cores.png", lines, "ViT-B/16, JPEG files to rows, images/s")
    rows = table("performance-cores.json", "CPU by cores")
    counts = {key: int(key.split()[0]) for key in rows[0] if key.endswith((" core", " cores"))}
    lines = {row["a second"]: [(n, row[key] / row["1 core"]) for key, n in counts.items()] for row in rows}
    draw(folder / "cpu-by-cores.png", lines, "times the rate of one core", ideal=True)


def table(file: str, title: str) -> list[dict[str, float]]:
    """The rows of the table with such a title."""
    tables = json.loads((RESULTS / file).read_text(encoding="utf-8"))["tables"]
    return next(one["rows"] for one in tables if title in one["title"])


def draw(path: Path, lines: dict[str, list[tuple[int, float]]], label: str, *, ideal: bool = False) -> None:
    """A line each, by the number of cores."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    cores = [n for n, _ in next(iter(lines.values()))]
    if ideal:
        axes.plot(cores, cores, color="0.7", linestyle=":", label="as many times as there are cores")
    axes.set(xscale="log", xlabel="cores", ylabel=label, ylim=(0, None))
    axes.set_xticks(cores, [str(n) for n in cores])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
