"""`mini` on onnxruntime: batch size, threads and session options, alone, while decoding goes on, and on busy cores."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.processors import usable_cpus
from outword.encoders.mini.encoder import DATA, Mini
from outword.photos.ahead import decode_ahead
from perf.cores import one_core
from perf.jpegs import HEIGHT, WIDTH, write_jpegs
from perf.tables import Cell, Goal, Run, Table, times

IMAGES = 32
FILES, CHUNK = 64, 16  # decoded ahead, and encoded at once
ROUNDS = 4
TENTH = 1.1  # times: less is not told apart on a shared machine, nor worth a second way to run it
Encode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """A way to run the image tower; the default is how `outword.encoders.ort` and `mini` do it.

    Attributes:
        batch: images that go through together.
        apart: a thread for each processor takes batches of its own, and the session has one thread; otherwise batches
            follow one another, and the session has all processors.
        threads: of the session, where it is neither of these.
        spinning: threads of the session wait by asking again and again.
        entries: further entries of the session's configuration.
        options: further attributes of its options.
    """

    batch: int = 4
    apart: bool = True
    threads: int | None = None
    spinning: bool = False
    entries: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


NOTE = (
    "A session has as many threads as the process may use processors, or as OMP_NUM_THREADS says where that is less. "
    "The ratio is that of one thread to all."
)
NOW = "as it is"


def settings() -> dict[str, Setting]:
    """All that it is compared with."""
    import onnxruntime

    level = onnxruntime.GraphOptimizationLevel
    parallel = {"execution_mode": onnxruntime.ExecutionMode.ORT_PARALLEL}
    return {
        **{f"batches of {size}, one after the other": Setting(size, apart=False) for size in (1, 2, 4, 8, 16)},
        **{f"a batch of {size} for each core": Setting(size) for size in (1, 2, 8)},
        "batches of 4, one after the other, threads that spin": Setting(apart=False, spinning=True),
        "no change of layout (extended optimisations)": Setting(
            options={"graph_optimization_level": level.ORT_ENABLE_EXTENDED}
        ),
        "no memory arena": Setting(options={"enable_cpu_mem_arena": False}),
        "no memory pattern": Setting(options={"enable_mem_pattern": False}),
        "denormal numbers as zero": Setting(entries={"session.set_denormal_as_zero": "1"}),
        "independent nodes in parallel (inter-op)": Setting(options=parallel),
    }


def run(device: str) -> Iterator[Table]:
    """The tables of this section; `mini` runs on the CPU only."""
    if device != "cpu":
        return
    with tempfile.TemporaryDirectory() as scratch:
        mini, files = Mini(), write_jpegs(Path(scratch), FILES)
        pixels = np.stack([mini.loader(file) for file in files[:IMAGES]])
        yield by_setting(mini, files, pixels)
        yield crowded(mini, pixels)


def by_setting(mini: Mini, files: list[Path], pixels: np.ndarray) -> Table:
    """Each setting alone and while other threads decode."""
    ways = {NOW: mini.encode_pixels} | {name: encoder(mini, setting) for name, setting in settings().items()}
    alone = times({name: (lambda e=encode: e(pixels)) for name, encode in ways.items()}, ROUNDS)
    beside = times({name: (lambda e=encode: decoded(mini, files, e)) for name, encode in ways.items()}, ROUNDS)
    rows: list[dict[str, Cell]] = [
        {
            "": name,
            "images/s alone": 1e3 * IMAGES / alone[name],
            "ratio": alone[NOW] / alone[name],
            "images/s, decoding beside": 1e3 * FILES / beside[name],
            "ratio ": beside[NOW] / beside[name],
        }
        for name in ways
    ]
    best = min(beside, key=beside.__getitem__)
    reached = beside[NOW] / beside[best]
    return Table(
        f"mini on {usable_cpus()} cores: {IMAGES} images in memory, {FILES} JPEG files of {WIDTH} x {HEIGHT} pixels",
        rows,
        [
            Goal(
                f"no setting is {TENTH} times as quick, decoding beside",
                f"{best}: {reached:.2f} times",
                reached < TENTH,
            )
        ],
        "Vectors are the same. The ratio is that to the first row; above 1 is quicker.",
    )


def crowded(mini: Mini, pixels: np.ndarray) -> Table:
    """Threads of a session by the room that there is: one core, several callers of one encoder, several encoders."""
    cores = usable_cpus()
    parts, quarters = np.array_split(pixels, cores), np.array_split(pixels, 4)

    def row(title: str, count: int, make: Callable[[int], Run]) -> dict[str, Cell]:
        took = times({"all": make(cores), "one": make(1)}, ROUNDS)
        speed = {name: 1e3 * count / ms for name, ms in took.items()}
        ratio = speed["one"] / speed["all"]
        return {"": title, f"images/s, {cores} threads": speed["all"], "one thread": speed["one"], "ratio": ratio}

    def one(threads: int) -> Run:
        return partial(encoder(mini, Setting(apart=False, threads=threads)), parts[0])

    def callers(threads: int) -> Run:
        return partial(at_once, [encoder(mini, Setting(1, apart=False, threads=threads))] * len(quarters), quarters)

    def actors(threads: int) -> Run:
        return partial(at_once, [encoder(mini, Setting(apart=False, threads=threads)) for _ in parts], parts)

    with one_core():
        rows = [row("one core", len(parts[0]), one)]
    rows.append(row(f"{len(quarters)} callers of one encoder, an image at a time", len(pixels), callers))
    rows.append(row(f"{cores} encoders at once, as in {cores} actors", len(pixels), actors))
    return Table("mini where there is little room, by threads of a session", rows, note=NOTE)


def encoder(mini: Mini, setting: Setting) -> Encode:
    """Pixels to vectors by a setting."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = setting.threads or (1 if setting.apart else usable_cpus())
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(setting.spinning)))
    for key, value in setting.entries.items():
        options.add_session_config_entry(key, value)
    for key, value in setting.options.items():
        setattr(options, key, value)
    tower = onnxruntime.InferenceSession(DATA / "image.onnx", options, providers=["CPUExecutionProvider"])
    pool = ThreadPoolExecutor(usable_cpus()) if setting.apart else None

    def encode(pixels: np.ndarray) -> np.ndarray:
        parts = [pixels[start : start + setting.batch] for start in range(0, len(pixels), setting.batch)]
        vectors = (pool.map if pool else map)(lambda x: mini._head.images(tower.run(None, {"pixels": x})[0]), parts)
        return np.concatenate(list(vectors))

    return encode


def decoded(mini: Mini, files: list[Path], encode: Encode) -> None:
    """Files to vectors, some at a time, while threads decode those that follow."""
    ahead = (pixels for _, pixels in decode_ahead(files, mini.loader, workers=usable_cpus(), ahead=2 * CHUNK))
    while part := list(islice(ahead, CHUNK)):
        encode(np.stack(part))


def at_once(encoders: Sequence[Encode], parts: Sequence[np.ndarray]) -> None:
    """Each encoder on a part of its own, all at the same time."""
    with ThreadPoolExecutor(len(encoders)) as pool:
        list(pool.map(lambda encode, part: encode(part), encoders, parts))
