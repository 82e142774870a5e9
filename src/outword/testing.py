"""Public checks for detectors, miners and encoders: run them on your own, as the tests run them on ours.

from outword.testing import check_detector
check_detector(MyDetector())
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.encoders import Encoder
from outword.errors import OutwordError
from outword.maths.methods import Need, VectorDetector
from outword.maths.metrics import auroc
from outword.maths.mining import Miner
from outword.maths.numerics import Array, unit_rows

__all__ = ["World", "check_detector", "check_encoder", "check_miner", "planted_world"]

D = TypeVar("D", bound=VectorDetector)


class World(NamedTuple):
    """Vectors with a known truth: ID images lie near a label, OOD images near a wild word; rows are unit.

    `train` are further ID images, ten a label, to fit on, and `classes` says which label each of them is near. The
    `negatives`, two a label, are vectors that no image is near.
    """

    labels: Array
    wild: Array
    id_images: Array
    ood_images: Array
    train: Array
    classes: NDArray[np.int64]
    negatives: Array

    def changed(self, change: Callable[[Array], Array]) -> World:
        """The same world with a change made to all vectors."""
        labels, wild, id_images, ood_images, train = map(change, self[:5])
        return World(labels, wild, id_images, ood_images, train, self.classes, change(self.negatives))


def planted_world(n_labels: int = 30, n_wild: int = 600, n_images: int = 120, dim: int = 48, seed: int = 0) -> World:
    """A world in which every method should tell ID from OOD."""
    rng = np.random.default_rng(seed)
    labels, wild = (unit_rows(rng.standard_normal((n, dim))) for n in (n_labels, n_wild))

    def near(rows: Array) -> Array:
        return unit_rows(rows + 0.6 * unit_rows(rng.standard_normal(rows.shape)))

    inside, outside = (near(rows[rng.integers(len(rows), size=n_images)]) for rows in (labels, wild))
    classes = np.repeat(np.arange(n_labels), 10)
    train = near(labels[classes])
    negatives = unit_rows(rng.standard_normal((2 * n_labels, dim))).reshape(2, n_labels, dim)
    return World(labels, wild, inside, outside, train, classes, negatives)


def check_detector(detector: VectorDetector) -> None:
    """Check that a method keeps its promises, on vectors with a known truth; what it breaks is an `AssertionError`.

    Scores are finite float64, one an image, the same bits in any order and batch, from float32 too, at any temperature,
    after saving and loading, and after a second fit. Inputs stay as they are, chance comes from the seed alone, turning
    all vectors together changes nothing, and ID images score above OOD images (AUROC over 0.99).
    """
    for check in DETECTOR_CHECKS:
        check(copy.copy(detector))


def _check_shape_and_dtype(detector: VectorDetector) -> None:
    """Scores are float64, one an image, finite; no image gives no score."""
    world, fitted = _fitted(detector)
    scores = _scores(fitted, world, world.id_images)
    assert scores.shape == (len(world.id_images),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert fitted.score(world.id_images[:0]).shape == (0,)


def _check_order_and_batch(detector: VectorDetector) -> None:
    """An image's score depends on nothing but the image, to the last bit: neither on its neighbours nor on its place.

    For a method that learns from the images that it scores, it depends on those before it, and by no more than rounding
    on the batch.
    """
    world, fitted = _fitted(detector)
    images = world.id_images
    scores = _scores(fitted, world, images)
    fitted.reset()
    alone = np.concatenate([_scores(fitted, world, row[None], reset=False) for row in images])
    np.testing.assert_allclose(alone, scores, rtol=1e-10 if fitted.sees_order else 0)
    if not fitted.sees_order:
        rng = np.random.default_rng(0)
        for size in (2, 23, 24, 65):
            some = rng.choice(len(images), size)
            np.testing.assert_array_equal(_scores(fitted, world, images[some]), scores[some])
    if (learned := fitted.class_logits(images)) is not None:
        again = [fitted.class_logits(part) for part in (images[:1], images[1:3], images[3:])]
        np.testing.assert_array_equal(np.concatenate([logits for _, logits in filter(None, again)]), learned[1])


def _check_rotation(detector: VectorDetector) -> None:
    """Turning all vectors together changes nothing; noise, which has directions of its own, is switched off."""
    if detector.sees_axes:
        return
    if "sigma" in detector.params():
        detector = replace(detector, sigma=0.0)  # type: ignore[type-var]
    world = planted_world()
    q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((world.labels.shape[1],) * 2))
    turned = _id_scores(detector, world.changed(lambda part: part @ q))
    np.testing.assert_allclose(turned, _id_scores(detector, world), rtol=1e-7)


def _check_read_only_input(detector: VectorDetector) -> None:
    """Input arrays may be read-only, and are left as they are."""
    world = planted_world()
    for part in world:
        part.flags.writeable = False
    _id_scores(detector, world)


def _check_seeded(detector: VectorDetector) -> None:
    """The same seed gives the same scores; the global random generator is neither read nor written."""
    np.random.seed(1)  # noqa: NPY002
    first = _id_scores(detector, planted_world())
    drawn = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert drawn == np.random.random()  # noqa: NPY002
    np.testing.assert_array_equal(_id_scores(copy.copy(detector), planted_world()), first)


def _check_extreme_temperatures(detector: VectorDetector) -> None:
    """Scores stay finite at temperatures 1e-3 and 1, for images equal to a label, opposite to one, or a wild word."""
    if "temperature" not in detector.params():
        return
    for temperature in (1e-3, 1.0):
        world, fitted = _fitted(replace(detector, temperature=temperature))  # type: ignore[type-var]
        for images in (world.id_images, world.labels, -world.labels, world.wild):
            assert np.isfinite(_scores(fitted, world, images)).all()


def _check_save_and_load(detector: VectorDetector) -> None:
    """A detector restored from its parameters and arrays scores exactly as before."""
    world, fitted = _fitted(detector)
    restored = type(fitted)(**fitted.params()).restore(fitted.state())
    np.testing.assert_array_equal(_scores(restored, world, world.ood_images), _scores(fitted, world, world.ood_images))


def _check_float32(detector: VectorDetector) -> None:
    """Vectors in float32 give nearly the scores of float64."""
    world = planted_world()
    single = _id_scores(copy.copy(detector), world.changed(lambda part: part.astype(np.float32)))
    np.testing.assert_allclose(single, _id_scores(detector, world), rtol=1e-3, atol=1e-5)


def _check_refit(detector: VectorDetector) -> None:
    """Fitting again forgets the first fit; a fit that fails leaves nothing to score with."""
    other = planted_world(n_labels=20, seed=1)
    fresh = _id_scores(copy.copy(detector), other)
    _, again = _fitted(detector)
    np.testing.assert_array_equal(_id_scores(again, other), fresh)
    for attempt in (lambda: again.fit(np.zeros((2, 3, 4))), lambda: again.score(other.id_images)):
        with suppress(OutwordError):
            attempt()
            raise AssertionError("a fit that failed was passed over")


def _check_planted_world(detector: VectorDetector) -> None:
    """ID images score above OOD images: AUROC over 0.99, at a temperature and sizes that suit so small a world."""
    warm = {} if detector.own_temperature or "temperature" not in detector.params() else {"temperature": 0.1}
    detector = replace(detector, **detector.in_small_world, **warm)  # type: ignore[type-var]
    world, fitted = _fitted(detector)
    value = auroc(_scores(fitted, world, world.id_images), _scores(fitted, world, world.ood_images))
    assert value > 0.99, f"AUROC {value:.4f} in the planted world"


DETECTOR_CHECKS: list[Callable[[VectorDetector], None]] = [
    _check_shape_and_dtype,
    _check_order_and_batch,
    _check_rotation,
    _check_read_only_input,
    _check_seeded,
    _check_extreme_temperatures,
    _check_save_and_load,
    _check_float32,
    _check_refit,
    _check_planted_world,
]


def check_miner(miner: Miner) -> None:
    """Indices are valid, distinct and repeatable; input is left alone; float32 and read-only rows are welcome."""
    world = planted_world()
    words, labels = world.wild.astype(np.float32), world.labels
    words.flags.writeable = False
    adjectives = np.arange(len(words)) % 3 == 0
    chosen = miner.select(words, labels=labels, adjectives=adjectives)
    assert chosen.ndim == 1
    assert 0 < len(chosen) == len(np.unique(chosen))
    assert 0 <= chosen.min() <= chosen.max() < len(words)
    np.testing.assert_array_equal(miner.select(words, labels=labels, adjectives=adjectives), chosen)


def check_encoder(encoder: Encoder) -> None:
    """Unit float32 rows for images and texts; a result is the same bits in any batch, unless the encoder says no."""
    rng = np.random.default_rng(0)
    images = [Image.fromarray(rng.integers(256, size=(h, 90, 3), dtype=np.uint8)) for h in (60, 90, 140)]
    texts = ["a photo of a cat", "a", "an espresso in a very long sentence of many words"]
    _check_rows(encoder, encoder.encode_images, images)
    _check_rows(encoder, encoder.encode_texts, texts)
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, encoder.dim)
    assert encoder.temperature > 0
    assert len(encoder.fingerprint) == 64


def _check_rows(encoder: Encoder, encode: Callable[[list], NDArray[np.float32]], items: list) -> None:  # type: ignore[type-arg]
    rows = encode(items)
    assert rows.shape == (len(items), encoder.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    parts = np.concatenate([encode(items[-1:]), encode(items[:-1])])
    np.testing.assert_allclose(parts, np.roll(rows, 1, axis=0), rtol=0, atol=1e-5 if encoder.feels_batch else 0)


def _fitted(detector: D, world: World | None = None) -> tuple[World, D]:
    world = world or planted_world()
    given = {"images": world.train, "image_labels": world.classes}
    if Need.NEGATIVES in detector.wants():
        given["negatives"] = world.negatives
    return world, detector.fit(world.labels, world.wild, **given)


def _id_scores(detector: VectorDetector, world: World) -> Array:
    return _scores(_fitted(detector, world)[1], world, world.id_images)


def _scores(fitted: VectorDetector, world: World, images: Array, *, reset: bool = True) -> Array:
    """Scores from a fresh start, with what the method makes up beside the vectors."""
    if reset:
        fitted.reset()
    return fitted.score(images, **fitted.sample_inputs(images, world.wild))
