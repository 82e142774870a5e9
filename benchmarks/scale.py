"""Millions of images, in small: the same rows from tars and Parquet, here and on Ray, in what time and memory.

    python benchmarks/scale.py WORK [--images 100000] [--mini 2000] [--kills 3] [--part rates,kills,nodes,mini]

WORK is a folder for photos and results, some hundred megabytes; what is there is used again. Each run is a command
`outword score`, and all its processes are watched. The encoder is a CLIP of two layers with random weights, so that
reading, decoding, Ray and writing show; `mini` is the embedded one. Prints JSON; talk goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import outword
from outword.base.files import sha256_file
from perf.scale_data import LABELS, write_encoder, write_tables, write_tars

OUTWORD = [sys.executable, "-c", "from outword.cli import main; main()"]
EVERY = 0.25  # seconds between two looks at the memory


@dataclass
class Run:
    """A finished command: wall seconds, processor seconds of all processes, and peak memory of each kind of process."""

    code: int
    seconds: float
    cpu: float
    memory: dict[str, float]
    said: str
    struck: list[int]


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--mini", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--part", default="rates,kills,nodes,mini")
    args = parser.parse_args()
    work = args.work.resolve()
    prepare(work, args.images, args.mini)
    parts = {"rates": rates, "kills": kills, "nodes": nodes, "mini": mini}
    found = {name: parts[name](work, args) for name in args.part.split(",")}
    print(json.dumps({"images": args.images, "cpus": os.cpu_count(), **found}, indent=2))


def prepare(work: Path, images: int, few: int) -> None:
    """Photos, an encoder and detectors, where they are not there yet."""
    for name, write, count in (
        (f"tars-{images}", write_tars, images),
        (f"tables-{images}", write_tables, images),
        (f"tars-{few}", write_tars, few),
    ):
        if not (work / name).exists():
            write(work / "new" / name, count)
            (work / "new" / name).rename(work / name)
    if not (work / "tiny.outword").exists():
        words = work / "words.txt"
        words.write_text("".join(f"word{n}\n" for n in range(2000)))
        name = write_encoder(work / "encoder")
        outword.fit(LABELS, encoder=name, corpus=words, miner="all").save(work / "tiny.outword")
    if not (work / "mini.outword").exists():
        outword.fit(LABELS).save(work / "mini.outword")


def rates(work: Path, args: argparse.Namespace) -> list[dict[str, object]]:
    """Both sources on both engines, one after the other, and whether the files are the same."""
    rows = []
    for kind in ("tars", "tables"):
        source, files = sources(work, kind, args.images), {}
        for engine in ("local", "ray"):
            out = fresh(work / f"out-{kind}-{engine}")
            run = score(work / "tiny.outword", source, out, engine)
            files[engine] = digests(out)
            rows.append({"source": kind, "engine": engine, **figures(run, args.images)})
            say(rows[-1])
        rows[-1]["same files"] = files["local"] == files["ray"]
        rows[-1]["times local"] = round(rows[-1]["seconds"] / rows[-2]["seconds"], 2)
    return rows


def mini(work: Path, args: argparse.Namespace) -> list[dict[str, object]]:
    """The embedded encoder on fewer photos, where encoding takes the time."""
    rows, files = [], []
    for engine in ("local", "ray"):
        out = fresh(work / f"out-mini-{engine}")
        run = score(work / "mini.outword", sources(work, "tars", args.mini), out, engine)
        files.append(digests(out))
        rows.append({"engine": engine, **figures(run, args.mini)})
        say(rows[-1])
    rows[-1]["same files"] = files[0] == files[1]
    rows[-1]["times local"] = round(rows[-1]["seconds"] / rows[-2]["seconds"], 2)
    return rows


def kills(work: Path, args: argparse.Namespace) -> list[dict[str, object]]:
    """kill -9 of the driver, and of a scorer, at random points; the output afterwards against that of a quiet run.

    A run is killed so many seconds after it has written its next part.
    """
    source, rng, rows = sources(work, "tars", args.images), random.Random(0), []
    whole = reference(work, source)
    for engine, victim in (("local", "driver"), ("ray", "driver"), ("ray", "scorer")):
        out, after = fresh(work / "out-kills"), []
        for _ in range(args.kills):
            after.append(round(rng.uniform(0, 12), 1))
            run = score(work / "tiny.outword", source, out, engine, kill=(victim, after[-1]))
            assert run.struck, "the run ended before it was killed: take more images"
            assert run.code == (-signal.SIGKILL if victim == "driver" else 0), run.said
            if victim == "scorer":
                rows.append({"engine": engine, "killed": victim, "after": after, "same": digests(out) == whole})
                say(rows[-1])
                out, after = fresh(out), []
        if victim == "driver":
            begun = sum(1 for _ in out.glob("part-*"))
            run = score(work / "tiny.outword", source, out, engine)
            same = run.code == 0 and digests(out) == whole
            rows.append({"engine": engine, "killed": victim, "after": after, "parts before": begun, "same": same})
            say(rows[-1])
    return rows


def reference(work: Path, source: str) -> dict[str, str]:
    """The files of a quiet run here."""
    out = work / "out-tars-local"
    if not (out / "manifest.jsonl").exists():
        score(work / "tiny.outword", source, fresh(out), "local")
    return digests(out)


def nodes(work: Path, args: argparse.Namespace) -> dict[str, object]:
    """A cluster of two nodes of one processor each, joined by its address."""
    source = sources(work, "tars", args.images)
    whole = reference(work, source)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 256 << 20})
    cluster.add_node(num_cpus=1, object_store_memory=256 << 20)
    cluster.wait_for_nodes()
    try:
        out = fresh(work / "out-nodes")
        run = score(work / "tiny.outword", source, out, "ray", "--address", cluster.address)
    finally:
        cluster.shutdown()
    shown = {key: figures(run, args.images)[key] for key in ("seconds", "images a second")}
    found = {"nodes": 2, **shown, "same files": digests(out) == whole}
    say(found)
    return found


def score(detector: Path, source: str, out: Path, engine: str, *more: str, kill=None) -> Run:
    """Run the command, watch it, and kill (`driver` or `scorer`, so long after its next part) if asked to."""
    command = [*OUTWORD, "score", detector, source, "-o", f"{out}/", "--format", "parquet", "--engine", engine, *more]
    began, before = time.perf_counter(), os.times()
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    watch, struck = Watch(process.pid), []
    if kill:
        threading.Thread(target=strike, args=(watch, out, struck, *kill), daemon=True).start()
    _, said = process.communicate()
    after = os.times()
    watch.stop()
    cpu = watch.others + after.children_user + after.children_system - before.children_user - before.children_system
    return Run(process.returncode, time.perf_counter() - began, cpu, watch.peak, said, struck)


class Watch:
    """Peak memory by kind of process, of a process and all that come from it; and processor seconds of the others."""

    def __init__(self, top: int) -> None:
        self.top, self.peak, self.others = top, {}, 0.0
        self._took: dict[int, float] = {}
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def processes(self) -> dict[int, str]:
        """The process and its descendants, with what they are called."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                continue
            found[int(entry.name)] = (parent, command)
        mine = {self.top: "driver"}
        while more := {pid: name(cmd) for pid, (parent, cmd) in found.items() if parent in mine and pid not in mine}:
            mine.update(more)
        return mine

    def _run(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        while not self.ended.wait(EVERY):
            for pid, kind in self.processes().items():
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if "VmRSS:" in status:
                    megabytes = int(status.split("VmRSS:")[1].split()[0]) / 1024
                    self.peak[kind] = max(self.peak.get(kind, 0), round(megabytes))
                if pid != self.top:
                    self._took[pid] = (int(stat[11]) + int(stat[12])) / tick

    def stop(self) -> None:
        """Look no more."""
        self.ended.set()
        self._thread.join()
        self.others = sum(self._took.values())


def name(command: str) -> str:
    """What a process of Ray is, by its command."""
    for part, kind in (
        ("_Score", "scorer"),
        ("MapBatches", "reader or planner"),
        ("raylet", "raylet"),
        ("ray::", "other"),
    ):
        if part in command:
            return kind
    return "other"


def strike(watch: Watch, out: Path, struck: list[int], victim: str, seconds: float) -> None:
    """kill -9, so many seconds after the next part is there, if the run still goes on."""
    before = sum(1 for _ in out.glob("part-*"))
    while sum(1 for _ in out.glob("part-*")) <= before:
        if watch.ended.wait(0.1):
            return
    if watch.ended.wait(seconds):
        return
    for pid in [pid for pid, kind in watch.processes().items() if kind == victim][:1]:
        os.kill(pid, signal.SIGKILL)
        struck.append(pid)


def sources(work: Path, kind: str, images: int) -> str:
    """What `outword score` is given."""
    return f"{work}/{kind}-{images}/*.{'tar' if kind == 'tars' else 'parquet'}"


def fresh(folder: Path) -> Path:
    """A folder that is not there."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """sha256 of all files of an output, the manifest too."""
    return {file.name: sha256_file(file) for file in sorted(folder.iterdir())}


def figures(run: Run, images: int) -> dict[str, object]:
    """What a table shows of a run."""
    assert run.code == 0, run.said
    return {
        "seconds": round(run.seconds, 1),
        "images a second": round(images / run.seconds),
        "cpu seconds": round(run.cpu),
        "peak MB": dict(sorted(run.memory.items())),
    }


def say(found: object) -> None:
    """To stderr."""
    print(found, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
