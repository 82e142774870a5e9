"""What one client, and all of them together, may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from outword import client
from outword.base.checks import whole_number

T = TypeVar("T")
SMALL_BODY = 1 << 20  # bytes of a request that carries no images; it is read on the event loop, so it must be quick
HEAD_SECONDS = 10.0  # in which a connection must have sent the head of a request
FITS = 4  # label lists that are being fitted or wait for it
DOWNLOADS = 4  # detectors that are being downloaded


def _limit(default: T, about: str) -> T:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True)
class Limits(client.Limits):
    """Limits of a service, with what `outword serve --help` says of each."""

    body_bytes: int = _limit(32 << 20, "Bytes of a request.")
    images: int = _limit(64, "Images of a request.")  # and embeddings
    pixels: int = _limit(64 << 20, "Pixels of an image.")  # before it is decoded
    labels: int = _limit(1000, "Labels of a detector, their names and kinds.")
    seconds: float = _limit(30.0, "To receive a request, and to answer it.")  # and for the client to read the answer
    queue: int = _limit(128, "Images that may wait; more are refused with 503.")  # accepted, but not answered yet
    held_bytes: int = _limit(256 << 20, "Bytes of all requests together.")  # those being received or answered
    requests: int = _limit(1000, "Requests at a time.")
    detectors: int = _limit(8, "Detectors in memory that clients had made.")
    detector_bytes: int = _limit(1 << 30, "Bytes that these may take.")
    batch: int = _limit(16, "Images, of several requests, that are handed to the encoder together.")
    wait_ms: float = _limit(5.0, "How long an image waits for others on their way.")

    @property
    def patience(self) -> float:
        """Seconds after which no request is left: it is received, answered, and the answer is read."""
        return 3 * self.seconds

    def __post_init__(self) -> None:
        hint = "the largest request must fit where no other is"
        whole_number("queue", self.queue, least=self.images, hint=hint)
        whole_number("held_bytes", self.held_bytes, least=self.body_bytes, hint=hint)
