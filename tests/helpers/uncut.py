"""A detector that has no reference, and stores of vectors for it: nothing is encoded."""

import numpy as np

from outword.detector.detector import Detector
from outword.detector.imagining import cut_by_imagining
from outword.maths.imagined import Sight
from outword.vectors.shards import UNREADABLE, Shard
from outword.vectors.store import make_store


def uncut(detector):
    """The same detector as if its encoder had no reference, and nothing to imagine photos of."""
    names, encoder = detector.vocabulary, detector.encoder
    made = {"scorer": detector.scorer, "labels": detector.labels, "rows": detector.rows, "wild": detector.wild}
    return Detector(**made, card=detector.card, find_encoder=lambda: encoder, vocabulary=names)


def imagined(detector):
    """The same with a threshold from imagined photos."""
    return cut_by_imagining(uncut(detector), Sight(gain=0.3, noise=0.9, level=5.0, spread=1.0))


def write_store(folder, detector, n, like=0.2, seed=0):
    """A store of n vectors, a share of them near labels, the others near other names; and one row with an error."""
    rng = np.random.default_rng(seed)
    labels, names = detector.scorer.labels_, detector.vocabulary.vectors.astype(np.float32)
    near = [labels[i % len(labels)] if i < like * n else names[rng.integers(len(names))] for i in range(n)]
    rows = np.array(near) + rng.normal(0, 0.03, (n, labels.shape[1]))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    paths = [b"%d-%03d.jpg" % (seed, i) for i in range(n)]
    digests = [bytes([1 + seed]) * 30 + i.to_bytes(2, "big") for i in range(n)]
    bad = np.full((1, vectors.shape[1]), np.nan, np.float32)
    shard = Shard([*paths, b"bad.jpg"], [*digests, UNREADABLE], [*[""] * n, "empty file"], np.vstack([vectors, bad]))
    make_store(folder, detector.encoder).append(shard, "safetensors")
    return folder
