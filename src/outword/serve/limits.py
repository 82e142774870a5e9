"""What one client, and all of them together, may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass

from outword.base.checks import whole_number

SMALL_BODY = 1 << 20  # bytes of a request that carries no images; it is read on the event loop, so it must be quick
HEAD_SECONDS = 10.0  # in which a connection must have sent the head of a request
FITS = 4  # label lists that are being fitted or wait for it
DOWNLOADS = 4  # detectors that are being downloaded


@dataclass(frozen=True)
class Limits:
    """Limits of a service; all of them can be set on the command line.

    Attributes:
        body_bytes: of one request.
        images: of one request; the same number of embeddings.
        pixels: of one image, before it is decoded.
        labels: of one detector.
        seconds: in which a request must have been received, then answered, then read.
        queue: images that were accepted and are not answered yet; more are refused with 503.
        held_bytes: of the bodies of all requests that are being received or answered.
        requests: at a time.
        detectors: that are kept in memory, besides the one that the service was started with.
        detector_bytes: that these may take.
        batch: images that go through the encoder together.
        wait_ms: how long an image waits for others to share its batch, where others are on their way.
    """

    body_bytes: int = 32 << 20
    images: int = 64
    pixels: int = 64 << 20
    labels: int = 1000
    seconds: float = 30.0
    queue: int = 128
    held_bytes: int = 256 << 20
    requests: int = 1000
    detectors: int = 8
    detector_bytes: int = 1 << 30
    batch: int = 16
    wait_ms: float = 5.0

    def __post_init__(self) -> None:
        hint = "the largest request must fit where no other is"
        whole_number("queue", self.queue, least=self.images, hint=hint)
        whole_number("held_bytes", self.held_bytes, least=self.body_bytes, hint=hint)
