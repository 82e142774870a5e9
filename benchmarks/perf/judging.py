"""Judging with words beside the encoder alone, in one process on a CUDA device: pixels in memory to finished rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from outword.detector.card import Card, EncoderCard, MethodCard
from outword.detector.detector import Detector
from outword.detector.judge import judge, judge_chunks
from outword.detectors import Debiased
from outword.encoders.base import Encoder, Pixels
from outword.encoders.reading import Chunk, Photo, Span
from outword.words.kinds import Meaning
from outword.words.prompts import get_prompts
from perf.tables import Goal, Table, times

MODELS = ["ViT-B-16", "ViT-L-14"]
LABELS, WORDS = 1000, 12_000
CHUNKS, ROUNDS = 8, 3
ENOUGH = 0.9
ROWS = "the same as rows, the next chunk begun before"


def run(device: str) -> Iterator[Table]:
    """A table of each model; none for the CPU."""
    if device == "cuda":
        for name in MODELS:
            yield judging(name)


def detector_of(encoder: Encoder) -> Detector:
    """A detector with labels and words at random."""
    rng = np.random.default_rng(0)
    scorer = Debiased(temperature=encoder.temperature, sigma=0.0).fit(
        rng.normal(size=(LABELS, encoder.dim)), rng.normal(size=(WORDS, encoder.dim))
    )
    labels, words = [f"label {n}" for n in range(LABELS)], [f"word {n}" for n in range(WORDS)]
    return Detector(scorer, labels, words, card_of(encoder, labels), encoder=lambda: encoder)


def card_of(encoder: Encoder, labels: list[str]) -> Card:
    """What is known of a detector that nobody fitted."""
    return Card(
        method=MethodCard("debiased", {}),
        encoder=EncoderCard(encoder.name, encoder.fingerprint, encoder.temperature),
        prompts=get_prompts(encoder.prompts),
        kinds="off",
        coverage={},
        fpr=None,
        meanings=tuple(Meaning(label, label, (), "", "", 0, (), False, ()) for label in labels),
    )


def chunk_of(pixels: Pixels) -> Chunk:
    """Pixels as the reader hands them on, with nothing wrong and nothing noted."""
    return Chunk(Span(), [Photo(f"shard.tar/{n:08d}.jpg", n) for n in range(len(pixels))], pixels)


def judging(name: str) -> Table:
    """Images a second of the encoder, of verdicts as arrays and of rows, chunk after chunk."""
    from perf.clip import towers, transformers_clip

    encoder = towers(transformers_clip(name))
    detector, rng = detector_of(encoder), np.random.default_rng(0)
    size = encoder.chunk
    pixels = rng.integers(256, size=(CHUNKS * size, 224, 224, 3), dtype=np.uint8)
    parts = np.split(pixels, CHUNKS)
    chunks = [chunk_of(part) for part in parts]
    vectors = [encoder.encode_on_device(part) for part in parts]
    took = times(
        {
            "encoder alone, all images in one call": lambda: encoder.encode_pixels(pixels),
            "encoder alone, chunk by chunk": lambda: [encoder.encode_pixels(part) for part in parts],
            "encoder and scores, chunk by chunk": lambda: [judge(detector, part, 0).scores for part in parts],
            "encoder, scores, labels and words, as arrays": lambda: [judge(detector, part).scores for part in parts],
            "the same as rows, chunk by chunk": lambda: [list(judge_chunks(detector, [chunk])) for chunk in chunks],
            ROWS: lambda: list(judge_chunks(detector, chunks)),
            "from vectors on the device to arrays": lambda: [judge(detector, part).scores for part in vectors],
        },
        ROUNDS,
    )
    first = next(iter(took.values()))
    rows = [{"": what, "images/s": 1e3 * len(pixels) / ms, "of the encoder": first / ms} for what, ms in took.items()]
    reached = first / took[ROWS]
    return Table(
        f"Judging with {name}: {LABELS:,} labels, {WORDS:,} words, chunks of {size:,} images, one process",
        rows,
        [Goal(f"rows at {ENOUGH:.0%} of the encoder's own rate or more", f"{reached:.0%}", reached >= ENOUGH)],
    )
