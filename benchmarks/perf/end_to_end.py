"""`outword score` on many JPEG files with `mini`: what the encoder takes of the time, memory, cost a file.

    cd benchmarks
    python -m perf.end_to_end [--files 1000 10000 100000] [--photos FOLDER] [--plot cost.png] [-o cost.json]

The files are cuttings of photos, of 500 x 375 pixels; by default of those that come with outword. Each size runs in a
process of its own, the command as it is, with clocks around its parts. 100,000 files take half an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

from outword.base.files import whole_file
from outword.base.processors import usable_cpus
from perf.cores import peak_mb
from perf.facts import circumstances
from perf.jpegs import HEIGHT, PHOTOS, WIDTH, write_jpegs
from perf.start_up import save_detector
from perf.tables import Goal, Table, markdown

FILES = (1_000, 10_000)
LABELS = (10, 1_000)  # the first for all sizes; both for the parts, on the smallest
BUSY = 0.9
FLAT = 1.1  # times the memory of the smallest run
LINEAR = 1.1  # times the cost of a file in the smallest run
PARTS = ("encoder", "judging", "waiting for pixels")


def run(device: str) -> Iterator[Table]:
    """The tables of this section; `mini` runs on the CPU only."""
    if device == "cpu":
        *_, cost = measure(FILES, PHOTOS)
        yield from cost


def measure(files: Sequence[int], photos: Path) -> Iterator[list[Table]]:
    """The tables after each size, so that what was measured is kept when a long run is stopped."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        few, many = (save_detector(home / f"{count}.outword", count) for count in LABELS)
        done: list[dict[str, Any]] = []
        for count in sorted(files):
            folder = home / str(count)
            folder.mkdir()
            sizes = [path.stat().st_size for path in write_jpegs(folder, count, photos)]
            done.append({**observed(few, folder), "bytes": statistics.mean(sizes)})
            if len(done) == 1:
                parts = parts_table(dict(zip(LABELS, (done[0], observed(many, folder)), strict=True)))
            yield [cost_table(done), parts]


def observed(detector: Path, folder: Path) -> dict[str, Any]:
    """What `watch` sees in a process of its own, with the seconds of the whole process."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "perf.end_to_end", "--watch", str(detector), str(folder)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    return {**json.loads(done.stdout), "process": time.perf_counter() - began}


def watch(detector: str, folder: str) -> dict[str, Any]:
    """Run `outword score` in this process; seconds of its parts, from the second chunk on and in all.

    The first chunk loads what is loaded when it is needed: all that comes before the second is start-up.
    """
    from outword.cli import main as outword
    from outword.detector import judge as judging
    from outword.encoders import reading
    from outword.encoders.mini.encoder import Mini

    spent = dict.fromkeys(PARTS, 0.0)
    before, since, chunks = dict(spent), 0.0, []

    def clocked(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - began

        return call

    def encode(self: Mini, pixels: Any) -> Any:
        nonlocal before, since
        if len(chunks) == 1:
            before, since = dict(spent), time.perf_counter()
        chunks.append(len(pixels))
        return encode_clocked(self, pixels)

    def ahead(*args: Any, **options: Any) -> Any:
        step = clocked("waiting for pixels", decode_ahead(*args, **options).__next__)
        while True:
            try:
                yield step()
            except StopIteration:
                return

    encode_clocked, decode_ahead = clocked("encoder", Mini.encode_pixels), reading.decode_ahead
    Mini.encode_pixels, reading.decode_ahead = encode, ahead  # type: ignore[method-assign,assignment]
    judging.judge = clocked("judging", judging.judge)
    with tempfile.TemporaryDirectory() as scratch:
        outword(["score", detector, folder, "-o", f"{scratch}/rows.csv"], standalone_mode=False)
        rows = Path(f"{scratch}/rows.csv").read_text(encoding="utf-8").count("\n") - 1
    usage = resource.getrusage(resource.RUSAGE_SELF)
    parts = {part: spent[part] - before[part] for part in PARTS}
    parts["judging"] -= parts["encoder"]  # which is called from there
    return {
        "files": rows,
        "later": sum(chunks[1:]),
        "wall": time.perf_counter() - since,
        "parts": parts,
        "encoder in all": spent["encoder"],
        "processors": usage.ru_utime + usage.ru_stime,
        "peak": peak_mb(),
    }


def cost_table(done: Sequence[dict[str, Any]]) -> Table:
    """Cost, the encoder's share and memory by the number of files."""
    rows = [
        {
            "files": run["files"],
            "s": run["process"],
            "files/s": run["files"] / run["process"],
            "ms a file": 1e3 * run["process"] / run["files"],
            "encoder, of the time after start-up": f"{run['parts']['encoder'] / run['wall']:.1%}",
            "encoder, of the whole process": f"{run['encoder in all'] / run['process']:.1%}",
            "processors busy": f"{run['processors'] / run['process'] / usable_cpus():.1%}",
            "peak MB": run["peak"],
        }
        for run in done
    ]
    least, most = done[0], done[-1]
    busy = most["encoder in all"] / most["process"]
    memory = most["peak"] / least["peak"]
    cost = most["process"] / most["files"] / (least["process"] / least["files"])
    sizes = f"{least['files']:,} to {most['files']:,} files"
    goals = [Goal(f"the encoder is busy for {BUSY:.0%} of the wall time or more", f"{busy:.1%}", busy >= BUSY)]
    if len(done) > 1:
        goals += [
            Goal(f"memory at most {FLAT} times, {sizes}", f"{memory:.2f} times", memory <= FLAT),
            Goal(f"cost of a file at most {LINEAR} times, {sizes}", f"{cost:.2f} times", cost <= LINEAR),
        ]
    return Table(
        f"outword score, JPEG files of {WIDTH} x {HEIGHT} pixels, {most['bytes'] / 1e3:.0f} KB each",
        rows,
        goals,
        "Busy: time inside the encoder's calls; other threads decode meanwhile. Start-up ends with the first chunk. "
        "Files beyond 10,000 are hard links to the first; all are in the page cache.",
    )


def parts_table(by_labels: dict[int, dict[str, Any]]) -> Table:
    """Milliseconds of each part for an image."""
    columns = {f"{labels:,} labels": run for labels, run in by_labels.items()}

    def rest(run: dict[str, Any]) -> float:
        return float(run["wall"] - sum(run["parts"].values()))

    rows = [
        {"ms an image": part, **{c: 1e3 * run["parts"][part] / run["later"] for c, run in columns.items()}}
        for part in PARTS
    ]
    rows.append(
        {"ms an image": "rows, writing, progress", **{c: 1e3 * rest(r) / r["later"] for c, r in columns.items()}}
    )
    count = next(iter(by_labels.values()))["files"]
    return Table(f"outword score: where the time goes, {count:,} files, 12,000 wild words", rows)


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Seconds and memory by the number of files, both on logarithmic axes."""
    from outword.base.extras import require
    from outword_lab.benchmark.show.picture import STYLE

    matplotlib, plt = require("matplotlib"), require("matplotlib.pyplot")
    files, seconds, peak = ([row[name] for row in rows] for name in ("files", "s", "peak MB"))
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
        left.plot(files, [seconds[-1] / files[-1] * count for count in files], "--", color="0.6", label="linear")
        left.plot(files, seconds, "o-", color="#0072b2", label="outword score")
        left.set(xscale="log", yscale="log", xlabel="files", ylabel="seconds, whole process")
        left.legend()
        right.plot(files, peak, "s-", color="#d55e00")
        right.set(xscale="log", yscale="log", xlabel="files", ylabel="peak memory, MB", ylim=(100, 10_000))
        for axes in (left, right):
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,.0f}")
                axis.set_minor_formatter("")
            axes.grid(color="0.9", linewidth=0.6)
            axes.set_axisbelow(True)
        with whole_file(path) as temporary:
            figure.savefig(temporary, format="png", dpi=160)
        plt.close(figure)


def main() -> None:
    """Measure, print, and write after each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=FILES, help="a thousand or more")
    parser.add_argument("--photos", type=Path, default=PHOTOS)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--watch", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.watch:
        print(json.dumps(watch(*args.watch)))
        return
    tables: list[Table] = []
    for tables in measure(args.files, args.photos):
        if args.output:
            with whole_file(args.output) as temporary:
                facts = {**circumstances("cpu"), "tables": [asdict(table) for table in tables]}
                temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        if args.plot:
            plot(tables[0].rows, args.plot)
        print(f"{tables[0].rows[-1]['files']:,} files done", file=sys.stderr)
    print("\n\n".join(markdown(table) for table in tables))


if __name__ == "__main__":
    main()
