"""Figures for Prometheus, and one line of log a request; neither ever holds an image, a name or a token."""

from __future__ import annotations

import logging
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from outword._version import __version__

LOG = logging.getLogger("outword.serve")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Telemetry:
    """Counters of one service, in a registry of its own."""

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
