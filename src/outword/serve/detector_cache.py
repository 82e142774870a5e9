"""The detectors of a service: the one that it was started with, and a bounded number that clients had made."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from typing import TypeVar

from outword.base.files import sha256_bytes
from outword.detector.artifact import finite
from outword.detector.detector import Detector
from outword.serve.limits import FITS, Limits
from outword.serve.refusals import Refusal, busy, in_time, too_large
from outword.words.labels import Label

T = TypeVar("T")
A_NUMBER = 18  # bytes: float16 as it is saved, float64 and float32 to score with, float32 to explain with


def key_of(detector: Detector) -> str:
    """The id of a detector: equal labels, made in the same way and with the same threshold, have the same."""
    cut = finite(asdict(detector.cut)) if detector.cut else None
    return sha256_bytes(json.dumps([detector.labels, detector.card.as_json(), cut]).encode())[:16]


def footprint(detector: Detector) -> int:
    """About how many bytes of memory a detector takes, besides the encoder and the vocabulary, which all share."""
    return A_NUMBER * int(detector.scorer.labels_.shape[1]) * (len(detector.rows) + len(detector.wild))


class DetectorCache:
    """Detectors by id. The least recently used goes first; the first one, `own`, always stays."""

    def __init__(self, own: Detector, limits: Limits) -> None:
        self.own, self.own_id = own, key_of(own)
        self._limits = limits
        self._made: OrderedDict[str, Detector] = OrderedDict()
        self._keys: dict[str, str] = {}  # of labels to that of the detector made of them
        self._making: dict[str, asyncio.Task[str]] = {}
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        return 1 + len(self._made)

    def get(self, key: str | None) -> tuple[str, Detector]:
        """A detector by its id; the own one by None."""
        if key is None or key == self.own_id:
            return self.own_id, self.own
        if key not in self._made:
            hint = "make it again with POST /v1/detectors: the least recently used goes when there are too many"
            raise Refusal(404, "unknown_detector", "there is no detector of that id", hint)
        self._made.move_to_end(key)
        return key, self._made[key]

    async def make(self, labels: Mapping[str, Label]) -> tuple[str, Detector]:
        """The detector of labels: the one that is there, or a new one.

        Those who ask for the same labels at the same time wait for one fit together. A fit goes on when who asked for
        it goes away: the next to ask finds it made.
        """
        wanted = sha256_bytes(json.dumps([asdict(label) for label in labels.values()]).encode())
        if wanted in self._keys:
            return self.get(self._keys[wanted])
        if wanted not in self._making:
            if len(self._making) >= FITS:
                raise busy(f"{FITS} label lists are being fitted already")
            task = self._making[wanted] = asyncio.create_task(self._fit(wanted, labels))
            task.add_done_callback(lambda done: self._made_or_not(wanted, done))
        late = busy("the detector is still being made", 10)
        return self.get(await in_time(asyncio.shield(self._making[wanted]), self._limits.seconds, late))

    def _made_or_not(self, wanted: str, done: asyncio.Task[str]) -> None:
        del self._making[wanted]
        if not done.cancelled():
            done.exception()  # who asked may have gone; else asyncio would complain that nobody looked

    async def _fit(self, wanted: str, labels: Mapping[str, Label]) -> str:
        async with self._turn:
            fit = asyncio.ensure_future(in_daemon(partial(self.own.relabel, labels)))
            # One that takes longer goes on beside the next: the last of those that may wait still begins in time.
            await asyncio.wait([fit], timeout=self._limits.seconds / FITS)
        fitted = await fit
        key, most = key_of(fitted), self._limits.detector_bytes
        if footprint(fitted) > most:
            raise too_large(f"a detector of {footprint(fitted):,} bytes", most, "fewer labels")
        if key != self.own_id:
            self._made.setdefault(key, fitted)
            while len(self._made) > self._limits.detectors or sum(map(footprint, self._made.values())) > most:
                self._made.popitem(last=False)
        self._keys = {labels: made for labels, made in self._keys.items() if made in self._made} | {wanted: key}
        return key


async def in_daemon(work: Callable[[], T]) -> T:
    """Run what may take minutes in a thread that the end of the process does not wait for."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled: who waits may go away, the work goes on

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, name="outword-fit", daemon=True).start()
    return await asyncio.wrap_future(future)
