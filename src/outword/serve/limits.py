"""What one client, and all of them together, may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass, fields

from outword import client
from outword.base.checks import number, whole_number

SMALL_BODY = 1 << 20  # bytes of a request that carries no images; it is read on the event loop, so it must be quick
HEAD_SECONDS = 10.0  # in which a connection must have sent the head of a request
FITS = 4  # label lists that are being fitted or wait for it
DOWNLOADS = 4  # detectors that are being downloaded
FEWEST_TOGETHER = 16  # images in a batch, where the encoder has no larger batch size


@dataclass(frozen=True)
class Limits(client.Limits):
    """Limits of a service; `outword serve --limit NAME=VALUE` sets one of them."""

    body_bytes: int = 32 << 20  # of a request
    images: int = 64  # of a request; embeddings too
    pixels: int = 64 << 20  # of an image, before it is decoded
    labels: int = 1000  # of a detector, with their other names and kinds
    seconds: float = 30.0  # to receive a request, to answer it, and for the client to read the answer
    queue: int = 128  # images that were accepted and not answered yet; more are refused with 503
    held_bytes: int = 256 << 20  # of all requests that are being received or answered
    requests: int = 1000  # at a time
    detectors: int = 8  # in memory, that clients had made
    detector_bytes: int = 1 << 30  # that these may take
    batch: int | None = None  # images that go through the encoder together; None: FEWEST_TOGETHER, or the encoder's
    wait_ms: float = 5.0  # how long an image waits for others on their way

    @property
    def patience(self) -> float:
        """Seconds after which no request is left: it is received, answered, and the answer is read."""
        return 3 * self.seconds

    def __post_init__(self) -> None:
        hint = "leave it out for the default"
        number("seconds", self.seconds, least=0.01, most=3600, hint=hint)
        number("wait_ms", self.wait_ms, least=0, most=1000, hint=hint)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("seconds", "wait_ms") and value is not None:
                whole_number(field.name, value, hint=hint)
        hint = "the largest request must fit where no other is"
        whole_number("queue", self.queue, least=self.images, hint=hint)
        whole_number("held_bytes", self.held_bytes, least=self.body_bytes, hint=hint)
