"""Shares of labels and wild words, against a slow twin that follows the definition word by word."""

import math
from functools import partial

import numpy as np
import pytest

from helpers.cards import a_card
from outword.detector import judge as module
from outword.detector.detector import Detector
from outword.detector.judge import FIRED
from outword.detectors import EOE, MCM, AdaNeg, NegLabel
from outword.testing import planted_world

judge = partial(module.judge, least=0.0)  # all words that are asked for, however small their share


def detector(vectors, temperature=0.05):
    """A detector around fitted vectors; labels are called y0, y1, ... and words u0, u1, ..."""
    wild = [] if vectors.wild_ is None else [f"u{i}" for i in range(len(vectors.wild_))]
    labels = [f"y{i}" for i in range(len(vectors.labels_))]
    made = {"scorer": vectors, "labels": labels, "rows": labels, "wild": wild}
    return Detector(**made, card=a_card(temperature=temperature), find_encoder=lambda: None)


def twin(labels, wild, groups, temperature, image):
    """Shares by name for one unit image: e^h over the mass of the group and the labels; a label's is the mean."""
    h = {f"y{i}": y @ image / temperature for i, y in enumerate(labels)}
    sums, words = [], []
    for group in groups:
        members = {f"u{i}": wild[i] @ image / temperature for i in group}
        top = max([*h.values(), *members.values()])
        sums.append((top, math.fsum(math.exp(v - top) for v in [*h.values(), *members.values()])))
        words += [(name, math.exp(v - sums[-1][0]) / sums[-1][1]) for name, v in members.items()]
    means = [(name, math.fsum(math.exp(v - top) / s for top, s in sums) / len(sums)) for name, v in h.items()]
    return [sorted(found, key=lambda pair: -pair[1]) for found in (means, words)]


def test_by_hand():
    labels, wild = [[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 1.0]]
    vectors = NegLabel(temperature=1 / math.log(2), n_groups=2).fit(labels, wild, groups=[[0, 1], [2, 3]])
    (found,) = judge(detector(vectors), np.array([[1.0, 0.0]]), top=4)  # e^h = 2^cos: P = 3, Q = 3/2 and 3
    assert found.labels == (("y0", pytest.approx(7 / 18)), ("y1", pytest.approx(7 / 36)))
    expected = {"u2": 2 / 6, "u1": 1 / 4.5, "u3": 1 / 6, "u0": 0.5 / 4.5}
    assert [name for name, _ in found.words] == list(expected)
    assert dict(found.words) == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [1.0, 0.05, 0.01])
@pytest.mark.parametrize("n_groups", [1, 7])
def test_as_the_slow_twin(temperature, n_groups):
    world = planted_world()
    vectors = NegLabel(temperature=temperature, n_groups=n_groups).fit(world.labels, world.wild)
    images = np.concatenate([world.id_images[:6], world.ood_images[:6]])
    for top in (1, 3, 20):
        for image, found in zip(images, judge(detector(vectors), images, top), strict=True):
            unit = image / np.linalg.norm(image)
            for told, true in zip(
                (found.labels, found.words),
                twin(world.labels, world.wild, vectors.groups_, temperature, unit),
                strict=True,
            ):
                assert [name for name, _ in told] == [name for name, _ in true[:top]]
                np.testing.assert_allclose([s for _, s in told], [s for _, s in true[:top]], atol=1e-12, rtol=1e-9)


def test_all_words_in_one_group_where_the_method_deals_none():
    world = planted_world()
    (found,) = judge(detector(EOE().fit(world.labels, world.wild[:9])), world.id_images[:1], top=9)
    labels, words = twin(world.labels, world.wild[:9], [range(9)], 0.05, world.id_images[0])  # the encoder's own
    assert dict(found.words) == pytest.approx(dict(words), abs=1e-6)
    assert found.labels[0] == pytest.approx(labels[0])


def test_without_words_the_labels_have_it_all():
    vectors = MCM().fit([[1.0, 0.0], [0.0, 1.0]])
    (found,) = judge(detector(vectors, 1 / math.log(3)), np.array([[1.0, 0.0]]))
    assert found.labels == (("y0", pytest.approx(0.75)), ("y1", pytest.approx(0.25)))
    assert found.words == ()


def test_a_tiny_temperature_leaves_all_to_the_nearest():
    labels, wild = [[0.8, 0.6], [0.0, 1.0]], [[1.0, 0.0], [0.6, 0.8], [0.0, -1.0], [-1.0, 0.0]]
    vectors = NegLabel(temperature=1e-6, n_groups=2).fit(labels, wild, groups=[[0, 1], [2, 3]])
    (found,) = judge(detector(vectors), np.array([[1.0, 0.0]], np.float32), top=2)
    assert found.labels == (("y0", pytest.approx(0.5)), ("y1", 0.0))  # a word wins one group, a label the other
    assert found.words == (("u0", pytest.approx(1.0)), ("u1", 0.0))


def test_equal_shares_come_in_the_order_of_the_groups():
    groups = [[4, 1], [5, 0], [3, 2]]
    vectors = NegLabel(temperature=1.0, n_groups=3).fit([[1.0, 0.0]], [[0.0, 1.0]] * 6, groups=groups)
    (found,) = judge(detector(vectors), np.array([[1.0, 0.0]]), top=2)
    assert [name for name, _ in found.words] == ["u4", "u1"]


def test_order_is_kept_where_shares_vanish():
    def at(cosine):
        return [cosine, math.sqrt(1 - cosine**2)]

    cold = NegLabel(temperature=1e-3, n_groups=2)
    beaten = cold.fit([at(0.1), at(0.3)], [at(0.41), at(0.5), at(0.55), at(0.6)], groups=[[0, 1], [2, 3]])
    (found,) = judge(detector(beaten), np.array([[1.0, 0.0]], np.float32), top=2)
    assert [name for name, _ in found.labels] == ["y1", "y0"]
    sure = cold.fit([at(0.9)], [at(0.1), at(0.2), at(0.3), at(0.7)], groups=[[0, 1], [2, 3]])
    (found,) = judge(detector(sure), np.array([[1.0, 0.0]], np.float32), top=2)
    assert found.words == (("u3", pytest.approx(math.exp(-200))), ("u2", pytest.approx(0)))


def test_another_fit_has_other_groups():
    labels, wild = [[1.0, 0.0]], [[0.0, 1.0], [0.6, 0.8], [0.8, 0.6], [0.28, 0.96]]
    vectors = NegLabel(temperature=1.0).fit(labels, wild, groups=[[0, 1], [2, 3]])
    explained = detector(vectors)
    image = np.array([[0.0, 1.0]])
    judge(explained, image)
    vectors.fit(labels, wild, groups=[[3, 2], [1, 0]])
    assert list(judge(explained, image)) == list(judge(detector(vectors), image))


def test_verdicts_are_read_again_and_those_without_words_have_scores_alone():
    world = planted_world()
    judging = detector(NegLabel(temperature=0.05, n_groups=7).fit(world.labels, world.wild))
    found = judge(judging, world.ood_images[:5])
    assert list(found) == list(found)
    assert [one.score for one in found] == judging.scorer.score(world.ood_images[:5]).tolist()
    assert [f"{one.verdict} (uncalibrated)" for one in found] == [judging.verdict(score) for score in found.scores]
    np.testing.assert_array_equal(found.vectors, world.ood_images[:5])
    one = next(iter(found))
    assert (one.verdict, one.label, one.nearest) == ("out", "", one.labels[0][0])
    near = np.concatenate([world.ood_images, world.id_images])
    named = [one.words for one in module.judge(judging, near)]
    every = [one.words for one in judge(judging, near)]
    assert named == [tuple(pair for pair in words if pair[1] >= FIRED) for words in every] != every
    bare = judge(judging, world.ood_images[:5], 0)
    assert bare.scores.tolist() == found.scores.tolist()
    assert all(one.labels == one.words == () and not one.nearest for one in bare)


def test_scores_that_are_known_are_not_computed_again():
    world = planted_world()
    learner = AdaNeg(temperature=0.05, n_groups=7).fit(world.labels, world.wild)
    before = learner.score(world.id_images)
    learner.reset()
    found = judge(detector(learner), world.ood_images[:4], scores=np.arange(4.0))
    assert [one.score for one in found] == [0, 1, 2, 3]
    np.testing.assert_array_equal(learner.score(world.id_images), before)


def test_no_images_no_evidence():
    vectors = NegLabel(n_groups=2).fit(np.eye(3), np.eye(3)[:2])
    assert list(judge(detector(vectors), np.zeros((0, 3), np.float32))) == []
