"""What the routes share: the detectors, the model's thread, threads that decode, limits and figures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from outword._version import __version__
from outword.base.prediction import Prediction, finite_or_none
from outword.base.processors import usable_cpus
from outword.client import Info, LabelOdds
from outword.detector.batches import is_refined, look
from outword.detector.detector import Detector
from outword.detector.judge import judge, judged_anew, takes_vectors
from outword.encoders.reading import Chunk, Photo, Span, gathered, read_photo
from outword.maths.kernels.threads import blas
from outword.maths.reference import ladder
from outword.photos.decode import Blob, LargeImageError
from outword.serve.batching import Batcher
from outword.serve.detector_cache import DetectorCache
from outword.serve.limits import FEWEST_TOGETHER, Limits
from outword.serve.pools import Pool
from outword.serve.refusals import Refusal, busy
from outword.words.kinds import has_unused_kinds

LOG = logging.getLogger("outword.serve")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DECODING = "decode images"  # what most images need; large ones have threads of their own
Vector = NDArray[np.float32]
T = TypeVar("T")


def no_thread(works: Iterable[str]) -> str:
    """What to say of work that no thread is left for."""
    return f"no thread is left to {' or '.join(sorted(works))}: each hangs at an image"


class Telemetry:
    """Figures of one service for Prometheus, and its log; neither ever holds an image, a name or a token."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        ours: dict[str, Any] = {"namespace": "outword", "registry": self.registry}
        self.requests = Counter("requests", "Requests.", ["path", "status"], **ours)
        about = "From the head of a request to its answer."
        self.seconds = Histogram("request_seconds", about, ["path"], buckets=SECONDS, **ours)
        self.images = Counter("images", "Images scored.", ["verdict"], **ours)
        about = "Images that went through the encoder together."
        self.batches = Histogram("batch_images", about, buckets=SIZES, **ours)
        self.queue = Gauge("queue_images", "Images that were accepted and are not answered yet.", **ours)
        self.held = Gauge("held_bytes", "Bytes of requests in memory.", **ours)
        self.detectors = Gauge("detectors", "Detectors in memory.", **ours)
        Gauge("info", "The version.", ["version"], **ours).labels(__version__).set(1)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is that of the route, not what the client sent."""
        method = method if method in METHODS else "other"
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)
        LOG.info("%s %s %d %.0f ms", method, path, status, 1000 * seconds)


class Service:
    """One detector and those made from it, being served."""

    def __init__(self, detector: Detector, limits: Limits) -> None:
        self.limits = limits
        self.detectors = DetectorCache(detector, limits)
        self.telemetry = Telemetry()
        self.batcher: Batcher[Job, Judged] = Batcher(
            self._judge,
            most=limits.batch or max(FEWEST_TOGETHER, detector.encoder.batch_size),
            wait=limits.wait_ms / 1000,
            queue=limits.queue,
            threads=detector.encoder.callers,
        )
        self._encoder = detector.encoder
        self._small = Pool(usable_cpus(), "outword-decode")
        self._large = Pool(max(1, usable_cpus() // 2), "outword-decode-large")
        self._readers = Pool(2, "outword-read")  # these never wait for an image
        self.telemetry.queue.set_function(lambda: self.batcher.on_their_way)
        self.telemetry.detectors.set_function(lambda: len(self.detectors))

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """Take requests within this block: the life of `app`."""
        async with self.batcher.running():
            with blas:  # its threads spin after each product, in the way of the encoder's and of decoding
                yield
        for pool in (self._small, self._large, self._readers):
            pool.close()

    def stuck(self) -> list[str]:
        """The work that no thread is left for: each has been at one image since long after its request was refused."""
        pools = {DECODING: self._small, "decode large images": self._large, "score": self.batcher.pool}
        return [work for work, pool in pools.items() if pool.is_stuck(self.limits.patience)]

    def refusal(self) -> Refusal | None:
        """Why no image is taken right now; None if one is. Small ones are taken while large ones are stuck."""
        if stuck := {DECODING, "score"}.intersection(self.stuck()):
            return busy(no_thread(stuck), 60)
        return self.batcher.refusal()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what takes milliseconds, away from the event loop."""
        return await self._readers.run(work)

    async def judged(
        self, detector: Detector, items: Sequence[Blob | Vector], top: int, *, fixed: bool = False
    ) -> list[Judged]:
        """What is said of images or vectors, in order; they refine an imagined threshold that is not `fixed`."""
        turns = asyncio.Semaphore(usable_cpus())  # of this request: others get theirs in between

        async def one(place: int, item: Blob | Vector) -> Judged:
            if not isinstance(item, Blob):
                photo = Photo(f"embeddings[{place}]", place)
                return await self.batcher.submit(Job(detector, top, photo, vector=item))
            async with turns:
                photo, loaded = await self._read(item, place)
            if photo.error:
                return Judged.failed(photo)
            return await self.batcher.submit(Job(detector, top, photo, loaded))

        with self.batcher.room(len(items)):
            found = list(await asyncio.gather(*map(one, range(len(items)), items)))
        if fixed or not (is_refined(detector) and detector.refines):
            return found
        return await self.in_thread(partial(refined, detector, found))

    async def _read(self, item: Blob, place: int) -> tuple[Photo, Any]:
        """An image, and what the loader made of it; large ones have threads of their own, so that others pass them."""
        read = partial(read_photo, self._encoder.loader, item, place, max_pixels=self.limits.pixels)
        photo, loaded = await self._small.run(partial(read, large=False))
        if isinstance(photo.error, LargeImageError):
            return await self._large.run(partial(read, large=True))
        return photo, loaded

    def _judge(self, jobs: Sequence[Job]) -> list[Judged]:
        self.telemetry.batches.observe(len(jobs))
        return judge_jobs(jobs)

    def info(self, key: str, detector: Detector) -> Info:
        """What is said of a detector."""
        known = detector.thresholds.counted_scores if detector.cut else None
        return Info(
            id=key,
            labels=tuple(detector.labels),
            typed=tuple(meaning.text for meaning in detector.card.meanings),
            kinds={meaning.label: meaning.kinds for meaning in detector.card.meanings if meaning.kinds},
            prompts=detector.card.label_prompts,
            coverage=detector.coverage,
            method=detector.method,
            encoder=detector.card.encoder.name,
            dim=self._encoder.dim,
            wild_words=len(detector.wild),
            threshold=finite_or_none(detector.threshold),
            basis=detector.basis,
            calibration=detector.how_cut if detector.cut else "",
            ladder=() if known is None else ladder(known),
            odds=label_odds(detector),
            takes_embeddings=takes_vectors(detector),
            limits=self.limits,
            kinds_off=kinds_off(detector),
        )


def label_odds(detector: Detector) -> tuple[LabelOdds, ...]:
    """What to expect of each label, why, and what to do about it."""
    return tuple(
        LabelOdds(one.label, one.odds.share, one.odds.word, one.odds.expected, one.why, one.next_step)
        for one in detector.labels_report
        if one.odds
    )


def kinds_off(detector: Detector) -> tuple[str, ...]:
    """The labels that the encoder does not know as such and whose kinds do not count, since it knows none of them."""
    if detector.card.kinds == "off":
        return ()
    strange = {label for label, flag in detector.coverage.items() if flag != "known"}
    meanings = [meaning for meaning in detector.card.meanings if meaning.label in strange]
    return tuple(meaning.label for meaning in meanings if has_unused_kinds(meaning))


@dataclass(frozen=True, eq=False)
class Job:
    """One image for one detector: what the encoder's loader made of it, or its vector where it was encoded before."""

    detector: Detector
    top: int
    photo: Photo
    loaded: Any = None  # as `Loader.gather` wants it
    vector: Vector | None = None


class Judged(NamedTuple):
    """An image with what is said of it, and the vector that was scored; None where it has an error."""

    photo: Photo
    record: Prediction
    vector: Vector | None = None

    @classmethod
    def failed(cls, photo: Photo) -> Judged:
        """That of an image that cannot be read."""
        return cls(photo, Prediction(photo.name, error=photo.reason))


def refined(detector: Detector, found: Sequence[Judged]) -> list[Judged]:
    """The images of one request under the imagined threshold that they refine; other requests do not matter."""
    vectors = [one.vector for one in found if one.vector is not None]
    if not vectors:
        return list(found)
    settled = look(detector, np.stack(vectors)).applied(detector)
    records = judged_anew(settled, [one.record for one in found])
    return [one._replace(record=record) for one, record in zip(found, records, strict=True)]


def judge_jobs(jobs: Sequence[Job]) -> list[Judged]:
    """What is said of a batch, in order: images are encoded at once, as the detectors share one encoder.

    An image may turn out to be damaged only here, where a device decodes it.
    """
    found: dict[Job, Judged] = {}
    encoded = _encoded([job for job in jobs if takes_vectors(job.detector)], found)
    for detector in {id(job.detector): job.detector for job in jobs}.values():
        own = [job for job in jobs if job.detector is detector and job not in found]
        if takes_vectors(detector):
            _judge(detector, own, np.stack([encoded[job] for job in own]) if own else (), found)
        else:
            _judge(detector, *_gathered(own, found), found)
    return [found[job] for job in jobs]


def _encoded(jobs: Sequence[Job], found: dict[Job, Judged]) -> dict[Job, Vector]:
    """The vectors of jobs; what cannot be read is added to `found`."""
    vectors = {job: job.vector for job in jobs if job.vector is not None}
    good, pixels = _gathered([job for job in jobs if job.vector is None], found)
    if good:
        vectors |= dict(zip(good, good[0].detector.encoder.encode_pixels(pixels), strict=True))
    return vectors


def _gathered(jobs: list[Job], found: dict[Job, Judged]) -> tuple[list[Job], Any]:
    """The jobs whose image is sound, with their pixels; those of the others are added to `found`."""
    if not jobs:
        return [], ()
    loaded = Chunk(Span(), [job.photo for job in jobs], [job.loaded for job in jobs])
    chunk = gathered(loaded, jobs[0].detector.encoder.loader.gather)
    photos = dict(zip(jobs, chunk.photos, strict=True))
    found |= {job: Judged.failed(photo) for job, photo in photos.items() if photo.error}
    return [job for job in jobs if photos[job].is_good], chunk.values


def _judge(detector: Detector, jobs: list[Job], images: Any, found: dict[Job, Judged]) -> None:
    """Judge images, pixels or vectors, for one detector; what is said of them is added to `found`."""
    if not jobs:
        return
    judged = judge(detector, images, max(job.top for job in jobs))
    for job, record, vector in zip(jobs, judged, judged.vectors, strict=True):
        shown = {name: getattr(record, name)[: job.top] for name in ("labels", "words", "looks_like")}
        own = replace(record, path=job.photo.name, notes=job.photo.look.notes, **shown)
        found[job] = Judged(job.photo, own, vector)
