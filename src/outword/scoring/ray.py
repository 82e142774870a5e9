"""Scoring on Ray Data: readers on processors, ahead of scorers that load the encoder once; nothing else imports ray.

    plan -> read -> score -> the driver, which writes
    one     tasks   actors

A row of the data set is a piece of the source after `plan`, a chunk of pixels after `read`, or of files where a GPU
decodes them, and the rows of that chunk after `score`: chunks are those of a local run, and so are their scores. The
driver lists the source, once, into a file that `plan` follows. All stages are generators that wait while the next one
is behind. Nothing is kept or sorted as a whole. A task or an actor that dies is run again by Ray; what it had done is
not written twice, since only the driver writes, and a chunk is the same whenever it is made.

Photos must have the same paths on all nodes (a shared file system, or a bucket), and so must an encoder that lies in a
folder. The detector goes along.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from outword.base.extras import missing
from outword.base.processors import usable_cpus
from outword.detector.detector import Detector
from outword.detector.judge import Said, judge_chunks
from outword.detector.loading import load
from outword.encoders.loader import Loader
from outword.encoders.packed import VARIABLE, decoder_on_nodes
from outword.encoders.reading import Chunk, gathered
from outword.encoders.torch.models import check_here
from outword.errors import InputError, OutwordError
from outword.maths.methods.needs import by_hand
from outword.scoring.parts import Begun, left_over
from outword.vectors.reader import read
from outword.vectors.source import Job, Source

try:
    import pyarrow as pa
    import ray
    from ray.data import ActorPoolStrategy, DataContext
except ImportError as error:
    raise missing("ray", error) from None

STORE = 256 << 20  # bytes of shared memory for each processor of a cluster that is started here
AGAIN = 10  # times that a task is tried again, or an actor started again, after its process has died
WAIT = 5.0  # seconds for a cluster to answer
SOON = 0.02  # seconds until the driver has listed more
FOLDER = "detector.outword"


@dataclass(frozen=True)
class Model:
    """A detector on its way to the nodes: its files, how `outword.load` is called there, and what decodes photos."""

    files: bytes
    options: Mapping[str, Any]
    decoder: str

    def load(self) -> Detector:
        """The detector; its encoder is loaded when it is first used."""
        os.environ[VARIABLE] = self.decoder
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(io.BytesIO(self.files)).extractall(folder)
            return load(Path(folder) / FOLDER, **self.options)


def score_source(
    detector: Detector, source: Source, progress: Begun, *, address: str | None = None, **options: Any
) -> Iterator[Said]:
    """Score what is left of a source, chunk by chunk in any order, on the cluster at `address` or one of its own.

    Options are those of `outword.load` that the detector was loaded with, if it was. Whether the encoder may be fetched
    is settled here, for all nodes.
    """
    if detector.scorer.sees_order:
        message = f"{detector.method} learns from the images that it scores, one after the other, and cannot be spread"
        raise InputError(message, hint="use --engine local")
    for need in by_hand(detector.scorer.wants()):
        message = f"{detector.method} needs {need.value}, which do not come along to other processes"
        raise InputError(message, hint="use --engine local")
    if source.has_photos and not options.get("trust_encoder") and not options.get("encoder"):
        check_here(detector.card.encoder.name)
    with _cluster(address), tempfile.TemporaryDirectory() as scratch:
        plan = Path(scratch) / "plan"
        threading.Thread(target=_write_plan, args=(plan, left_over(source.pieces(), progress)), daemon=True).start()
        model = Model(detector.zipped(FOLDER), {**options, "trust_encoder": True}, decoder_on_nodes())
        yield from _run(model, source, plan)


def _write_plan(plan: Path, jobs: Iterator[Job]) -> None:
    """Write what is left of the source, as it is listed, and then None, or what went wrong."""
    with plan.open("wb") as file:
        try:
            for job in jobs:
                pickle.dump(job, file)
                file.flush()
            pickle.dump(None, file)
        except Exception as error:  # to be raised where the plan is read
            pickle.dump(error, file)


def _run(model: Model, source: Source, plan: Path) -> Iterator[Said]:
    there = ray.put(model)
    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus, cpus = (int(resources.get(kind, 0)) for kind in ("GPU", "CPU"))
    usable = gpus if model.options.get("device") != "cpu" else 0
    loader, size, on_gpu = None, 0, False
    if source.has_photos:
        look = ray.remote(_look).options(num_gpus=min(usable, 1))
        loader, size, on_gpu = _unwrapped(lambda: ray.get(look.remote([there])))
    own = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    here = {f"node:{own}": 0.001}  # a resource that only this node has
    # A scorer keeps a GPU busy by itself (docs/scale.md), with two chunks at a time: one is decoded, or becomes rows,
    # while the other is encoded. On processors alone, each has a reader and a scorer, and the system gives time to the
    # one that is behind.
    scorers = usable if on_gpu else max(1, cpus)
    scoring = min(0.75, 0.5 * cpus / scorers) if on_gpu else 0.75
    reading = min(1.0, 0.5 * cpus) if on_gpu else 0.25
    data = (
        ray.data.from_items([{"plan": 0}])
        .map_batches(_Plan(plan), num_cpus=0, resources=here, **_ONE)
        .map_batches(
            _Read(loader, size, source, Path.cwd()),
            num_cpus=reading,
            # by default without end: a photo that kills its reader would do so for ever
            ray_remote_args_fn=lambda: {"max_retries": AGAIN},
            **_ONE,
        )
        .map_batches(
            _Score,
            fn_constructor_args=([there],),
            num_cpus=scoring,
            ray_remote_args_fn=lambda: {"max_restarts": AGAIN, "max_task_retries": AGAIN},
            num_gpus=1 if on_gpu else 0,
            max_concurrency=2 if on_gpu else 1,
            compute=ActorPoolStrategy(min_size=1, max_size=scorers, initial_size=scorers),
            **_ONE,
        )
    )
    rows = iter(data.iter_rows())
    while (row := _unwrapped(lambda: next(rows, None))) is not None:
        yield pickle.loads(row["scored"])


_ONE: Any = {"batch_size": 1, "batch_format": "pyarrow", "zero_copy_batch": True}


def _look(there: list[Any]) -> tuple[Loader, int, bool]:
    """How photos are read for the encoder, how many make a chunk, and whether it runs on a GPU, on a scorer's node."""
    encoder = ray.get(there[0]).load().encoder
    return encoder.loader.elsewhere(), encoder.chunk, getattr(getattr(encoder, "device", None), "type", "") == "cuda"


@dataclass(frozen=True)
class _Plan:
    """What is left of the source, a piece a row: read from what the driver lists; runs on its node."""

    plan: Path

    def __call__(self, _: pa.Table) -> Iterator[pa.Table]:
        while not self.plan.exists():
            time.sleep(SOON)
        with self.plan.open("rb") as file:
            while (job := _next(file)) is not None:
                if isinstance(job, Exception):
                    raise job
                yield pa.table({"job": [pickle.dumps(job)]})


def _next(file: IO[bytes]) -> Any:
    """The next thing that the driver writes, when it is there whole."""
    while True:
        at = file.tell()
        try:
            return pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            file.seek(at)
            time.sleep(SOON)


@dataclass(frozen=True)
class _Read:
    """The chunks of a piece, each a row."""

    loader: Loader | None
    size: int
    source: Source
    folder: Path

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        _enter(self.folder, self.source)
        job = pickle.loads(batch["job"][0].as_buffer())
        for chunk in read([job], self.loader, self.size, workers=1):
            buffers: list[pickle.PickleBuffer] = []  # arrays, which are not copied
            head = pickle.dumps(chunk, protocol=5, buffer_callback=buffers.append)
            arrays = pa.array([[buffer.raw() for buffer in buffers]], pa.list_(pa.large_binary()))
            yield pa.table({"chunk": pa.array([head], pa.large_binary()), "arrays": arrays})


class _Score:
    """An actor with the detector and its encoder."""

    def __init__(self, there: list[Any]) -> None:
        self._detector: Detector = ray.get(there[0]).load()

    def __call__(self, batch: pa.Table) -> pa.Table:
        arrays = [array.as_buffer() for array in batch["arrays"][0]]
        chunk: Chunk = pickle.loads(batch["chunk"][0].as_buffer(), buffers=arrays)
        if isinstance(chunk.values, list):
            chunk = gathered(chunk, self._detector.encoder.loader.gather)
        ((judged, rows),) = judge_chunks(self._detector, [chunk])
        return pa.table({"scored": [pickle.dumps((judged.with_values(()), rows))]})


def _enter(folder: Path, source: Source) -> None:
    """Work where the driver does, so that relative paths mean the same."""
    try:
        os.chdir(folder)
    except OSError as error:
        if source.is_relative:
            message = f"a node of the cluster has no folder {folder}, and the source has relative paths"
            raise InputError(message, hint="name the source by absolute paths that all nodes have") from error


def _unwrapped(call: Any) -> Any:
    """What `call` gives; an error of ours comes out of Ray's wrapping."""
    try:
        return call()
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OutwordError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is None:
            message = f"Ray gave up: {type(error).__name__}: {str(error).strip().splitlines()[-1]}"
            hint = "run the same command again; --engine local tells which photo it is"
            raise OutwordError(message, hint=hint) from error
        raise cause from None


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Be on a cluster: where this process is on one, there; at `address`; or one that lives as long as the block."""
    context = DataContext.get_current().copy()
    context.target_max_block_size = 1  # a row a block: that is what stages hand on
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what goes wrong is raised; the rest is talk
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if ray.is_initialized():
        with DataContext.current(context):
            yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    with _own_signals():
        _join(address) if address else _start()
    try:
        with DataContext.current(context):
            yield
    finally:
        ray.shutdown()


def _start() -> None:
    """Start a cluster of this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    room = max(2, usable_cpus()) * STORE
    with _hushed():
        ray.init(address="local", num_cpus=usable_cpus(), object_store_memory=room, include_dashboard=False, **_QUIET)


def _join(address: str) -> None:
    """Join the cluster at an address; Ray itself would wait for minutes where there is none."""
    host, _, port = address.rpartition(":")
    hint = 'is it running? see "ray status"; a cluster that asks for a token needs RAY_AUTH_MODE=token'
    try:
        if host and port.isdecimal() and "//" not in host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT).close()
        with _hushed():
            ray.init(address=address, **_QUIET)
    except (OSError, RuntimeError) as error:
        raise InputError(f"no Ray cluster can be joined at {address}: {error}", hint=hint) from error


_QUIET: Any = {"log_to_driver": False, "logging_level": logging.ERROR}


@contextmanager
def _own_signals() -> Iterator[None]:
    """A block in which, and after which, SIGTERM does what it did before: Ray takes it for itself, to exit with 15."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as stop:
        if stop.code == signal.SIGTERM and callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        if threading.current_thread() is threading.main_thread():  # elsewhere Ray leaves it alone
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _hushed() -> Iterator[None]:
    """A block in which nothing gets to stderr from below Python: Ray says there how loud it is."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
