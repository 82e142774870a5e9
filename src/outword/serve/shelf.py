"""The detectors of a service: the one that it was started with, and a bounded number that clients had made."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from outword.artifact import finite
from outword.files import sha256_bytes
from outword.pipeline import Detector
from outword.serve.limits import FITS, Limits
from outword.serve.refusals import Refusal, busy, too_large

A_NUMBER = 18  # bytes: float16 as it is saved, float64 and float32 to score with, float32 to explain with


def key_of(detector: Detector) -> str:
    """The id of a detector: equal labels, made in the same way and with the same threshold, have the same."""
    calibration = finite(asdict(detector.calibration_)) if detector.calibration_ else None
    return sha256_bytes(json.dumps([detector.labels, detector.card, calibration]).encode())[:16]


def footprint(detector: Detector) -> int:
    """About how many bytes of memory a detector takes, besides the encoder."""
    return A_NUMBER * int(detector.vectors.labels_.shape[1]) * (len(detector.labels) + len(detector.wild))


class Shelf:
    """Detectors by id. The least recently used goes first; the first one, `own`, always stays."""

    def __init__(self, own: Detector, limits: Limits) -> None:
        self.own, self.own_id = own, key_of(own)
        self._limits = limits
        self._made: OrderedDict[str, Detector] = OrderedDict()
        self._making: dict[str, asyncio.Task[str]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="outword-fit")

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

    async def make(self, labels: Mapping[str, str]) -> tuple[str, Detector]:
        """The detector of labels; those who ask for the same labels at the same time wait for one fit together.

        A fit goes on when who asked for it goes away: the next to ask finds it made.
        """
        wanted = sha256_bytes(json.dumps(list(labels.items())).encode())
        if wanted not in self._making:
            if len(self._making) >= FITS:
                raise busy(f"{FITS} label lists are being fitted already")
            task = self._making[wanted] = asyncio.create_task(self._fit(labels))
            task.add_done_callback(lambda done: self._made_or_not(wanted, done))
        try:
            key = await asyncio.wait_for(asyncio.shield(self._making[wanted]), self._limits.seconds)
        except asyncio.TimeoutError:
            raise busy("the detector is still being made", 10) from None
        return self.get(key)

    def _made_or_not(self, wanted: str, done: asyncio.Task[str]) -> None:
        del self._making[wanted]
        if not done.cancelled():
            done.exception()  # who asked may have gone; else asyncio would complain that nobody looked

    async def _fit(self, labels: Mapping[str, str]) -> str:
        fitted = await asyncio.get_running_loop().run_in_executor(self._thread, self.own.relabel, labels)
        key = key_of(fitted)
        if footprint(fitted) > self._limits.detector_bytes:
            raise too_large(f"a detector of {footprint(fitted):,} bytes", self._limits.detector_bytes, "fewer labels")
        if key != self.own_id and key not in self._made:
            self._made[key] = fitted
            while len(self._made) > self._limits.detectors or self.bytes > self._limits.detector_bytes:
                self._made.popitem(last=False)
        return key

    @property
    def bytes(self) -> int:
        """About how many bytes the made detectors take."""
        return sum(footprint(detector) for detector in self._made.values())

    def close(self) -> None:
        """End the thread; a fit that nobody waits for any more is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)
