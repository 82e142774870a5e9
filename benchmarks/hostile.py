"""What hostile files cost: memory above an idle process, seconds, and what the row says; before and after on one page.

python benchmarks/hostile.py WORK                            (half an hour, Linux, 8 GB free in WORK)
python benchmarks/hostile.py WORK --only giants floods       (some parts)
python benchmarks/hostile.py WORK --src OLD/src --column before    (another version of outword, from its sources)

Figures are kept in benchmarks/results/hostile.json, a column each; the page is made of all that is there.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dangers import images as files
from dangers import kills as killing
from dangers import service as services
from dangers import sources as hostile_sources
from perf.jpegs import PHOTOS

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "hostile.json"
LABELS = ["tabby cat", "espresso", "space shuttle"]
Figures = dict[str, dict[str, object]]

# Scores each file alone after one of no account, so that "above idle" is above a process that has scored before.
EACH = """
import json, sys, time
from pathlib import Path
import outword
from outword.scoring.stream import open_source, score_source
detector = outword.load(sys.argv[1])
list(score_source(detector, open_source(detector, [sys.argv[2]])))
def memory(key):
    status = Path("/proc/self/status").read_text()
    return int(status.split(key + ":")[1].split()[0]) / 1000
for path in sys.stdin.read().splitlines():
    Path("/proc/self/clear_refs").write_text("5")
    idle, start = memory("VmRSS"), time.perf_counter()
    (row, _), = score_source(detector, open_source(detector, [path]))
    seconds = time.perf_counter() - start
    print(json.dumps([path, seconds, memory("VmHWM") - idle, row.error or row.verdict]), flush=True)
"""


# The command line, which says at its end how much memory it took; the kernel's figure for a child is its parent's too.
COMMAND = """
import atexit, sys
from pathlib import Path
from outword.cli import main
status = Path("/proc/self/status")
atexit.register(lambda: Path(sys.argv.pop(1)).write_text(status.read_text().split("VmHWM:")[1].split()[0]))
main(sys.argv[2:])
"""


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30,) * 2)  # the machine is not to go down with what is measured


class Bench:
    """A version of outword, with a detector and a folder to work in.

    Args:
        work: for files of some gigabytes; what is there is used again.
        src: of the version that is measured.
    """

    def __init__(self, work: Path, src: Path) -> None:
        self.work = work
        self.env = {**os.environ, "PYTHONPATH": str(src), "OUTWORD_CACHE": str(work / "cache")}
        self.detector = work / "hostile.outword"
        labels = work / "labels.txt"
        labels.write_text("\n".join(LABELS))
        self.outword("fit", labels, "-o", self.detector)

    def run(self, arguments: Iterable[object], stdin: str = "", timeout: float | None = None) -> tuple[float, str]:
        """Run Python: seconds, and what it printed."""
        start = time.perf_counter()
        given = [sys.executable, *map(str, arguments)]
        how: dict[str, Any] = {"env": self.env, "input": stdin, "errors": "replace"}
        done = subprocess.run(
            given, check=False, timeout=timeout, preexec_fn=_bounded, capture_output=True, text=True, **how
        )
        return time.perf_counter() - start, done.stdout + done.stderr

    def outword(self, *arguments: object) -> tuple[float, float, str]:
        """Run the command: seconds, the most memory in MB, and what it printed."""
        told = self.work / "memory"
        told.write_text("0")
        seconds, text = self.run(["-c", COMMAND, told, *arguments])
        return seconds, int(told.read_text()) / 1000, text

    def folder(self, name: str, make: Callable[[Path], None]) -> Path:
        """A folder of files, made once."""
        folder = self.work / name
        if not folder.exists():
            fresh = self.work / f"{name}.new"
            fresh.mkdir(exist_ok=True)
            make(fresh)
            fresh.rename(folder)
        return folder

    def each(self, paths: Iterable[Path]) -> Iterator[tuple[str, float, float, str]]:
        """Of each file, scored alone: its name, seconds, MB above idle, and what its row says."""
        names = "\n".join(map(str, paths))
        _, text = self.run(["-c", EACH, self.detector, PHOTOS / "cat.jpg"], names)
        for line in text.splitlines():
            if line.startswith("["):
                path, seconds, above, told = json.loads(line)
                yield Path(path).name, seconds, above, told

    def score(self, paths: Iterable[Path], count: int) -> dict[str, object]:
        """`outword score` over all: seconds, MB above a run with one photo, rows."""
        out = self.work / "rows.csv"
        _, idle, _ = self.outword("score", self.detector, PHOTOS / "cat.jpg", "-o", out)
        seconds, most, text = self.outword("score", self.detector, *paths, "-o", out)
        with out.open(newline="", errors="replace") as file:
            rows = list(csv.DictReader(file))
        wrong = sum(bool(row["error"]) for row in rows)
        told = f"{len(rows):,} rows for {count:,} files, {wrong:,} errors; {most:,.0f} MB in all"
        return {"s": seconds, "MB": most - idle, "says": told if rows else text.strip()[-200:]}


def rows(bench: Bench) -> Figures:
    """Damaged files whose errors wait: they must not keep the images in memory."""

    def copies(data: bytes, count: int) -> Callable[[Path], None]:
        return lambda folder: [(folder / f"{i}.png").write_bytes(data) for i in range(count)] and None

    cut, texts = bench.folder("cut", copies(files.cut_png(), 40)), bench.folder("texts", copies(files.texts_png(), 60))
    four = bench.folder("four", copies(files.webp_giant(), 4))
    return {
        "40 PNGs of 24 megapixels, cut off": bench.score([cut], 40),
        "60 PNGs with a hundred long texts": bench.score([texts], 60),
        "four animated WebPs of 90 bytes": bench.score([four], 4),
    }


def mutations(bench: Bench, count: int = 10_000) -> Figures:
    """Damaged files of all formats in one run, and the slowest of them alone."""
    folder = bench.folder(f"mutations-{count}", lambda folder: files.mutations(count, folder))
    slowest = max(bench.each(sorted(folder.iterdir())), key=lambda found: found[1])
    return {
        f"{count:,} mutated files": bench.score([folder], count),
        "the slowest of them": {"s": slowest[1], "MB": slowest[2], "says": f"{slowest[0]}: {slowest[3]}"},
    }


def _singles(bench: Bench, name: str, made: Callable[[], Iterable[tuple[str, bytes]]]) -> Figures:
    """Files that are scored alone, each in a process of its own: one may end it."""
    suffixes = {b"\xff\xd8": "jpg", b"\x89P": "png", b"GI": "gif", b"RI": "webp", b"II": "tif", b"BM": "bmp"}
    suffixes[b"\0\0"] = "avif"

    def make(folder: Path) -> None:
        for title, data in made():
            (folder / f"{title}.{suffixes.get(data[:2], 'ppm')}").write_bytes(data)

    found: Figures = {}
    for path in sorted(bench.folder(name, make).iterdir()):
        _, seconds, above, told = next(bench.each([path]), ("", None, None, "died"))
        found[path.stem] = {"s": seconds, "MB": above, "says": told}
        print(path.stem, found[path.stem], file=sys.stderr)
    return found


def giants(bench: Bench) -> Figures:
    """Few bytes that ask for gigabytes."""
    found = _singles(bench, "giants", lambda: ((name, make()) for name, make in files.GIANTS.items()))
    sparse = bench.folder("sparse", files.sparse_webps)
    return {**found, "four WebPs of 319 MB, nearly empty": bench.score([sparse], 4)}


def floods(bench: Bench) -> Figures:
    """Very many parts, which Pillow walks one by one."""
    return _singles(bench, "floods", lambda: ((name, make()) for name, make in files.FLOODS.items()))


def filled(bench: Bench) -> Figures:
    """Much that is no pixel, which Pillow or libjpeg reads whole, byte by byte, or again and again."""
    return _singles(bench, "filled", lambda: ((name, make()) for name, make in files.FILLED.items()))


def honest(bench: Bench) -> Figures:
    """Scans of 100 megapixels, each alone and all of them in one run."""
    found = _singles(bench, "honest", files.scans)
    return {**found, "all of them": bench.score([bench.work / "honest"], len(found))}


def service(bench: Bench) -> Figures:
    """A service in the hands of hostile clients: memory, and the longest that somebody else waits meanwhile."""
    return services.measure(bench.env)


def sources(bench: Bench) -> Figures:
    """Archives, data sets and patterns, read to their end; at most half a minute each."""
    found: Figures = {}
    for case in hostile_sources.CASES:
        with tempfile.TemporaryDirectory(dir=bench.work) as folder:
            try:
                _, text = bench.run(["-c", hostile_sources.READ], case(Path(folder)), timeout=30)
                seconds, above, told = text.strip().split("\t")
                figures = {"s": float(seconds), "MB": float(above), "says": told.replace(folder, "WORK")}
            except subprocess.TimeoutExpired:
                figures = {"s": None, "MB": None, "says": "over 30 s"}
            except ValueError:
                figures = {"s": None, "MB": None, "says": f"died: {text.strip().splitlines()[-1][:100]}"}
        title = f"{case.__name__.partition('_')[0]}: {(case.__doc__ or '').splitlines()[0]}"
        found[title] = figures
        print(title, figures, file=sys.stderr)
    return found


def kills(bench: Bench) -> Figures:
    """Kill -9 at every step, while a file or a detector is replaced."""
    return killing.measure(bench.env)


PARTS: dict[str, Callable[[Bench], Figures]] = {
    part.__name__: part for part in (rows, giants, floods, filled, honest, mutations, service, sources, kills)
}


def page(kept: dict[str, dict[str, Figures]]) -> str:
    """A Markdown table a part: before, after."""
    text = []
    for name, part in PARTS.items():
        columns = {column: kept[column].get(name, {}) for column in ("before", "after") if column in kept}
        titles = list(dict.fromkeys(title for found in columns.values() for title in found))
        head = ["", *(f"{column}: {unit}" for column in columns for unit in ("s", "MB above idle", "says"))]
        lines = [head, ["---"] * len(head)]
        for title in titles:
            cells = [_cell(found.get(title, {}), unit) for found in columns.values() for unit in ("s", "MB", "says")]
            lines.append([title, *cells])
        if titles:
            table = [f"| {' | '.join(line)} |" for line in lines]
            text += [f"### {(part.__doc__ or '').splitlines()[0]}", "", *table, ""]
    return "\n".join(text)


def _cell(figures: dict[str, object], unit: str) -> str:
    value = figures.get(unit)
    if isinstance(value, float):
        return f"{value:.2f}" if unit == "s" else f"{value:,.0f}"
    return str(value).replace("|", "/") if value is not None else "-"


def main() -> None:
    """Measure, keep, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--src", type=Path, default=HERE.parent / "src")
    parser.add_argument("--column", choices=["before", "after"], default="after")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.work.resolve(), given.src.resolve())
    for name in given.only:
        found = PARTS[name](bench)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept.setdefault(given.column, {})[name] = found
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    print(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
