"""Photos in wrong folders, from vectors: against plain loops, and cases whose answer is known."""

import numpy as np
import pytest

from outword.maths import mislabelled
from outword.maths.mislabelled import Folders, evidence, most_likely_weights, outlying


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def world():
    """Four classes of 20 photos around directions of their own; names are the directions."""
    chance = np.random.default_rng(0)
    names = unit(chance.normal(size=(4, 32)))
    classes = np.repeat(np.arange(4), 20)
    return unit(names[classes] + 0.1 * chance.normal(size=(80, 32))), classes, names


def test_likeness_is_that_of_a_plain_loop(world):
    images, classes, names = world
    found = Folders.of(images, classes, names).likeness(images, classes)
    x, t = unit(images - images.mean(axis=0)), unit(names - names.mean(axis=0))
    for row in range(len(x)):
        for k in range(4):
            others = [x[i] for i in range(len(x)) if classes[i] == k and i != row]
            prototype = np.sum([t[k], *others], axis=0)
            assert found[row, k] == pytest.approx(x[row] @ prototype / np.linalg.norm(prototype))


@pytest.mark.parametrize("block", [1, 7])
def test_moved_photos_are_found_whatever_the_size_of_blocks(world, monkeypatch, block):
    images, classes, names = world
    moved = classes.copy()
    moved[[3, 45]] = [2, 0]
    logits = lambda some: 100 * some @ names.T  # noqa: E731
    whole = evidence(images, moved, names, logits)
    monkeypatch.setattr(mislabelled, "blocks", lambda n, width: (slice(i, i + block) for i in range(0, n, block)))
    parts = evidence(images, moved, names, logits)
    assert np.allclose(whole.odds, parts.odds) and (whole.nearest == parts.nearest).all()
    assert set(np.argsort(-whole.odds)[:2]) == {3, 45}
    assert whole.nearest[[3, 45]].tolist() == [0, 2]
    sure = whole.sure_of_other()
    assert sure[[3, 45]].min() > 0.7
    assert np.delete(sure, [3, 45]).max() < 0.1


def test_names_that_say_nothing_do_not_count(world):
    images, classes, names = world
    chance = np.random.default_rng(1)
    noise = chance.normal(size=(len(images), 4))
    rows = {image.tobytes(): row for row, image in enumerate(images)}
    known = evidence(
        images,
        classes,
        unit(chance.normal(size=names.shape)),
        lambda some: 1e-9 * noise[[rows[x.tobytes()] for x in some]],
    )
    assert known.weights[0] < 0.2 * known.weights[1]
    good = evidence(images, classes, names, lambda some: 100 * some @ names.T)
    assert good.weights[0] > 0.2 * good.weights[1]


def test_weights_are_the_top_of_the_likelihood():
    chance = np.random.default_rng(2)
    places = chance.integers(0, 3, 200)
    opinions = chance.normal(size=(200, 3, 2))
    opinions[np.arange(200), places] += [1.0, 0.5]

    def likelihood(at):
        logits = opinions @ at
        own = logits[np.arange(200), places]
        return (own - np.log(np.exp(logits).sum(axis=1))).mean() - mislabelled.PRIOR * (at**2).sum()

    found = most_likely_weights(opinions, places)
    for step in ([0.01, 0], [-0.01, 0], [0, 0.01], [0, -0.01]):
        assert likelihood(found) > likelihood(found + step)


def test_one_that_is_of_none_stands_out_and_few_photos_say_nothing(world):
    images, classes, names = world
    scores = (images @ names.T).max(axis=1)
    images = images.copy()
    images[5] = unit(-names.sum(axis=0, keepdims=True))[0]
    scores[5] = -1.0
    known = evidence(images, classes, names, lambda some: 100 * some @ names.T)
    assert known.sure_of_none(scores).argmax() == 5 and known.sure_of_none(scores)[5] > 0.9
    few = evidence(images[:6], classes[:6], names, lambda some: 100 * some @ names.T)
    assert not few.sure_of_none(scores[:6]).any()


def test_a_single_class_and_equal_photos_are_no_errors():
    images = np.tile(np.eye(3)[:1], (12, 1))
    known = evidence(images, np.zeros(12, int), np.eye(3)[:1], lambda some: some[:, :1])
    assert known.odds.tolist() == [0.0] * 12 and known.weights == (0.0, 0.0)
    assert not (known.sure_of_none(np.ones(12)) >= 0.5).any()
    assert outlying(np.ones(5)).tolist() == [0.0] * 5
