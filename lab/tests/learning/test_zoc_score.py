"""ZOC's score, from the formula; the public checks are in test_detectors.py."""

import numpy as np
import pytest

from outword.detectors import ZOC, NegLabel
from outword.errors import InputError
from outword.testing import planted_world


def as_printed(images, labels, words, temperature):
    """The formula, an image at a time."""
    scores = []
    for x, named in zip(images, words, strict=True):
        mass = np.exp([x @ t / temperature for t in (*labels, *named)])
        scores.append(-sum(mass[len(labels) :]) / sum(mass))
    return np.array(scores)


def some_words(world, seed=0):
    rng = np.random.default_rng(seed)
    return [world.wild[rng.integers(len(world.wild), size=size)] for size in rng.integers(9, size=len(world.id_images))]


def test_by_hand():
    # e^h: labels 8 and 4, words 2 and 1 for the first image, none for the second: S = -3/15, 0
    t = 1 / np.log(16)

    def vector(mass):
        cos = np.log(mass) * t
        return [cos, np.sqrt(1 - cos**2)]

    detector = ZOC(temperature=t).fit(labels=[vector(8), vector(4)])
    found = detector.score([[1.0, 0.0]] * 2, words=[[vector(2), vector(1)], []])
    np.testing.assert_allclose(found, [-0.2, 0], rtol=1e-12)


def test_limits():
    detector = ZOC().fit(labels=[[1.0, 0.0]])
    image, same, far = [[0.6, 0.8]], [[1.0, 0.0]], [[-0.6, -0.8]]
    assert detector.score(image, words=[np.zeros((0, 2))]).tolist() == [0.0]
    assert not np.signbit(detector.score(image, words=[[]])[0])
    assert detector.score(image, words=[same]).tolist() == [-0.5]  # a word that is the label has half
    assert detector.score(image, words=[3 * same]) == pytest.approx(-0.75)
    assert detector.score(image, words=[far]) == pytest.approx(0)
    assert detector.score(image, words=[image]) == pytest.approx(-1, abs=1e-9)
    assert detector.score(np.zeros((0, 2))).shape == (0,)


def test_equals_the_formula_for_any_words():
    world = planted_world()
    words = some_words(world)
    found = ZOC(temperature=0.1).fit(world.labels).score(world.id_images, words=words)
    np.testing.assert_allclose(found, as_printed(world.id_images, world.labels, words, 0.1), rtol=1e-10)
    scaled = ZOC(temperature=0.1).fit(world.labels).score(world.id_images, words=[5 * some for some in words])
    np.testing.assert_allclose(scaled, found, rtol=1e-10)


def test_with_the_same_words_for_all_it_is_neglabel_with_one_group():
    world = planted_world()
    images = np.concatenate([world.id_images, world.ood_images])
    ours = ZOC(temperature=0.1).fit(world.labels).score(images, words=[world.wild] * len(images))
    theirs = NegLabel(temperature=0.1, n_groups=1).fit(world.labels, world.wild).score(images)
    np.testing.assert_allclose(ours, theirs - 1, rtol=1e-9)


def test_evidence_is_of_the_words_of_each_image():
    world = planted_world()
    words = some_words(world)
    detector = ZOC(temperature=0.1).fit(world.labels)
    scores, told = detector.begin(world.id_images, 40, 0.5, words=words)()
    np.testing.assert_array_equal(scores, detector.score(world.id_images, words=words))
    np.testing.assert_allclose(told.word_shares.sum(axis=1), -scores, atol=1e-12)
    np.testing.assert_allclose(told.label_shares.sum(axis=1), 1 + scores, atol=1e-12)
    for image, named, places, shares in zip(world.id_images, words, told.words, told.word_shares, strict=True):
        there = places >= 0
        assert sorted(places[there]) == list(range(len(named)))
        assert (shares[~there] == 0).all()
        assert (np.diff(named[places[there]] @ image) <= 1e-12).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (None, r"ZOC needs words per image, got none. hint: pass words="),
        ([[[1.0, 0.0]]], r"one array an image \(2\), got 1"),
        ([[[1.0]], []], r"words\[0\] must have 2 columns"),
        ([[], [[0.0, 0.0]]], r"words\[1\] .*zero"),
        ([[], [["a", "b"]]], r"words\[1\] .*numbers"),
    ],
)
def test_bad_words(words, message):
    with pytest.raises(InputError, match=message):
        ZOC().fit([[1.0, 0.0]]).score([[1.0, 0.0], [0.0, 1.0]], words=words)
