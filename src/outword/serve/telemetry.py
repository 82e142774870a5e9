"""Figures for Prometheus, and one line of log a request; neither ever holds an image, a name or a token."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

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
        self.requests = Counter("outword_requests", "Requests.", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "outword_request_seconds",
            "From the head of a request to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.images = Counter("outword_images", "Images scored.", ["verdict"], registry=self.registry)
        self.batches = Histogram(
            "outword_batch_images",
            "Images that went through the encoder together.",
            buckets=SIZES,
            registry=self.registry,
        )
        self.queue = Gauge(
            "outword_queue_images", "Images that were accepted and are not answered yet.", registry=self.registry
        )
        self.held = Gauge("outword_held_bytes", "Bytes of requests in memory.", registry=self.registry)
        self.detectors = Gauge("outword_detectors", "Detectors in memory.", registry=self.registry)
        Gauge("outword_info", "The version.", ["version"], registry=self.registry).labels(__version__).set(1)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is that of the route, not what the client sent."""
        method = method if method in METHODS else "other"
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)
        LOG.info("%s %s %d %.0f ms", method, path, status, 1000 * seconds)

    def text(self) -> bytes:
        """What `/metrics` answers."""
        return generate_latest(self.registry)
