"""What more cores bring: encoding, scoring and mining on 1 to 16, each in a process of its own that is held on them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from perf.cpu import ALPHA, FEW_WORDS, LABELS, OFFSETS, corpus, texts_and_images
from perf.jpegs import HEIGHT, WIDTH, write_jpegs
from perf.tables import Cell, Goal, Table

CORES = (1, 2, 4, 8, 16)
AT = 8  # where the goal is
EFFICIENT = 0.8
IMAGES = 4000  # that are scored
SOME = 32  # images for each core that are encoded in a turn: more cores have more to do, and no less each
DISTINCT = 128  # JPEG files; more are further names of them
SPENT = 1.0  # seconds of turns, and at least two of them unless one takes long
LONG = 2.0
QUIET = 0.05  # share of the processors that others may take before a cell says more of them than of us
Work = Callable[[Path, int], tuple[float, Callable[[], object]]]


@dataclass(frozen=True)
class Measured:
    """What a process did a second, and of the time of its processors the shares that it and that others took.

    Without the last two, a machine that was busy looks like work that does not spread.
    """

    rate: float
    used: float
    others: float


def run(device: str) -> Iterator[Table]:
    """The table of the CPU; none for other devices, and none where a process cannot be held on some cores."""
    if device != "cpu" or not hasattr(os, "sched_setaffinity"):
        return
    cpus, physical = in_order()
    counts = [count for count in CORES if count <= len(cpus)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "files").mkdir()
        write_jpegs(folder / "files", SOME * counts[-1], distinct=DISTINCT)
        left_out = export_clip(folder / "clip")
        names = [name for name, work in WORKS.items() if not (left_out and work is clip_in_memory)]
        found = {name: [measured(name, cpus[:count], folder) for count in counts] for name in names}
    yield table(found, counts, f"{len(cpus)} usable processors on {physical} cores of the chip{left_out}")


def table(found: dict[str, list[Measured]], counts: list[int], machine: str) -> Table:
    """Rates by cores, and the share of an ideal rate that is reached; the goal where there are enough cores."""
    rows: list[dict[str, Cell]] = []
    goals = []
    for name, cells in found.items():
        by = dict(zip(counts, cells, strict=True))
        columns = {f"{count} core{'s'[: count - 1]}": cell.rate for count, cell in by.items()}
        most = by.get(AT, cells[-1])
        share = by[AT].rate / (AT * by[1].rate) if AT in by else None
        at = AT if AT in by else counts[-1]
        rows.append(
            {"a second": name, **columns, f"efficiency at {AT}": share}
            | {f"used at {at}": f"{most.used:.0%}", f"taken by others at {at}": f"{most.others:.0%}"}
        )
        if share is not None:
            busy = max(by[1].others, most.others)
            doubt = f", but others took {busy:.0%} of the processors" if busy > QUIET else ""
            goals.append(
                Goal(f"{name}: at least {EFFICIENT:.0%} at {AT} cores", f"{share:.0%}{doubt}", share >= EFFICIENT)
            )
    return Table(
        f"CPU by cores: encoding, {IMAGES:,} images x {OFFSETS[-1]:,} texts, mining of {FEW_WORDS:,} words",
        rows,
        goals,
        f"{machine}; those of different cores are taken first. Each cell is a process that was held on its processors "
        f"before anything was loaded. Encoding has {SOME} images for each core, scoring and mining always the same "
        f"work. Efficiency is the rate over {AT} times that of one core. Used is the share of the processors' time "
        f"that the process took; where others took more than {QUIET:.0%}, the row says more of them than of us.",
    )


def in_order() -> tuple[list[int], int]:
    """The usable processors, the first of each core of the chip before its siblings, and how many cores there are."""
    usable, firsts = sorted(os.sched_getaffinity(0)), set()
    for cpu in usable:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        text = path.read_text(encoding="utf-8").strip() if path.exists() else str(cpu)
        firsts.add(min(c for c in _listed(text) if c in usable))
    ordered = sorted(usable, key=lambda cpu: (cpu not in firsts, cpu))
    return ordered[: int(_quota(len(ordered)))], len(firsts)


def _listed(text: str) -> set[int]:
    """The numbers of a list as the kernel writes it: "0-1,8"."""
    ends = [part.split("-") for part in text.split(",")]
    return {cpu for part in ends for cpu in range(int(part[0]), int(part[-1]) + 1)}


def _quota(cpus: int) -> float:
    """Processors whose time a container has, which may be less than it sees."""
    path = Path("/sys/fs/cgroup/cpu.max")
    allowed, period = path.read_text(encoding="utf-8").split() if path.exists() else ("max", "1")
    return cpus if allowed == "max" else max(1.0, min(cpus, int(allowed) / int(period)))


def measured(name: str, cpus: list[int], folder: Path) -> Measured:
    """A work in a new process on these processors: libraries count them when they are loaded."""
    hold = f"import os; os.sched_setaffinity(0, {set(cpus)})"
    code = f"{hold}; from perf import many_cores; many_cores.measure({name!r})"
    here = Path(__file__).parent.parent
    command = [sys.executable, "-c", code, str(folder)]
    # the code of this process, also where PYTHONPATH is relative, or another outword is installed
    env = os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in sys.path)}
    done = subprocess.run(command, cwd=here, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found = Measured(**json.loads(done.stdout.splitlines()[-1]))
    print(f"{name}, {len(cpus)} cores: {found}", file=sys.stderr, flush=True)
    return found


def measure(name: str) -> None:
    """Print what a work does on the processors of this process; the folder is the first argument."""
    cpus = os.sched_getaffinity(0)
    count, work = WORKS[name](Path(sys.argv[1]), len(cpus))
    spent: list[float] = []
    all_before, own_before = _busy(cpus), time.process_time()
    while sum(spent) < SPENT or (len(spent) < 2 and sum(spent) < LONG):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    room = len(cpus) * sum(spent)
    own = time.process_time() - own_before
    others = max(0.0, _busy(cpus) - all_before - own)
    print(json.dumps(asdict(Measured(count / statistics.median(spent), own / room, others / room))))


def _busy(cpus: set[int]) -> float:
    """Seconds that these processors have worked so far, for anyone, with what a host took from a guest."""
    lines = [line.split() for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines()]
    ticks = {line[0]: list(map(int, line[1:9])) for line in lines if line[0].startswith("cpu")}
    worked = [
        sum(ticks[f"cpu{cpu}"]) - sum(ticks[f"cpu{cpu}"][3:5]) for cpu in cpus
    ]  # less idle, and waiting for disks
    return sum(worked) / os.sysconf("SC_CLK_TCK")


def mini_in_memory(folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    """`mini` on pixels."""
    from outword.encoders.mini.encoder import Mini

    mini = Mini()
    return _pixels_of(mini, folder, cores)


def mini_from_files(folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    """`mini` on JPEG files, decoded meanwhile."""
    from outword.encoders.mini.encoder import Mini

    mini, files = Mini(), sorted((folder / "files").iterdir())[: SOME * cores]
    mini.encode_images(files[: 4 * cores])
    return len(files), lambda: mini.encode_images(files)


def clip_in_memory(folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    """CLIP's image tower as `outword export --precision int8` writes it."""
    from outword.encoders import get_encoder

    return _pixels_of(get_encoder(f"onnx:{folder / 'clip'}"), folder, cores)


def _pixels_of(encoder, folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    files = sorted((folder / "files").iterdir())[:SOME]
    pixels = np.concatenate([np.stack([encoder.loader(file) for file in files])] * cores)
    encoder.encode_pixels(pixels[:8])
    return len(pixels), lambda: encoder.encode_pixels(pixels)


def scoring(folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    """Debiased.score with its noise, in float64."""
    from outword.detectors import Debiased

    x, u = texts_and_images(IMAGES, OFFSETS[-1], 512)
    detector = Debiased(sigma=0.001).fit(labels=u[:LABELS], wild=u[2 * LABELS :])
    detector.score(x[:256])
    return IMAGES, lambda: detector.score(x)


def mining(folder: Path, cores: int) -> tuple[float, Callable[[], object]]:
    """Densities of words, exact in float64."""
    from outword.maths.kernels.numpy_mining import neighbour_density

    words = corpus(FEW_WORDS)
    neighbour_density(words[:2000], ALPHA)
    return FEW_WORDS, lambda: neighbour_density(words, ALPHA)


WORKS: dict[str, Work] = {
    "images of mini, pixels in memory": mini_in_memory,
    f"images of mini, JPEG files of {WIDTH} x {HEIGHT}": mini_from_files,
    "images of CLIP ViT-B-32 in int8, pixels in memory": clip_in_memory,
    "images scored, float64": scoring,
    "words mined": mining,
}


def export_clip(folder: Path) -> str:
    """A CLIP of true shape with random weights, in int8, made with transformers; or why there is none.

    Its texts are letters, since no vocabulary of CLIP's is at hand.
    """
    try:
        from perf.clip import exported, letters, towers, transformers_clip

        exported(towers(transformers_clip("ViT-B-32"), letters(), device="cpu"), folder, "int8")
    except Exception as error:  # an exporter of another version raises anything; the other rows do not need it
        return f"; no row for CLIP, which could not be exported here ({type(error).__name__}: {str(error)[:200]})"
    return ""
