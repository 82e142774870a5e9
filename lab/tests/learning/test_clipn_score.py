"""CLIPN: by hand, at its limits, as a reduction, and beside a slow reference."""

import math

import numpy as np
import pytest

from outword.detectors import CLIPN, MSP
from outword.errors import InputError, ParameterError
from outword.testing import planted_world


def slow(images, labels, negatives, temperature, rule):
    """S from the formula, a label at a time."""
    out = []
    for x in images:
        yes = [math.exp(float(np.dot(x, t)) / temperature) for t in labels]
        p = [
            np.mean([e / (e + math.exp(float(np.dot(x, n[k])) / temperature)) for n in negatives])
            for k, e in enumerate(yes)
        ]
        out.append(
            p[int(np.argmax(yes))] if rule == "ctw" else sum(e * q for e, q in zip(yes, p, strict=True)) / sum(yes)
        )
    return np.array(out)


def test_by_hand():
    # e^{s x.t} = 3 and 1, e^{s x.n} = 1 and 3: p = 3/4 and 1/4; softmax 3/4 and 1/4
    t = 1 / math.log(3)
    labels, negatives = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    for rule, expected in (("atd", 0.75 * 0.75 + 0.25 * 0.25), ("ctw", 0.75)):
        found = CLIPN(temperature=t, rule=rule).fit(labels, negatives=negatives).score([[1.0, 0.0]])
        assert found[0] == pytest.approx(expected)


@pytest.mark.parametrize("rule", ["atd", "ctw"])
def test_equals_the_formula(rule):
    world = planted_world()
    for negatives in (world.negatives[:1], world.negatives):
        found = CLIPN(temperature=0.05, rule=rule).fit(world.labels, negatives=negatives)
        for images in (world.id_images, world.ood_images):
            expected = slow(images, world.labels, negatives, 0.05, rule)
            np.testing.assert_allclose(found.score(images), expected, rtol=1e-9)


@pytest.mark.parametrize("rule", ["atd", "ctw"])
def test_limits(rule):
    world = planted_world()
    same = CLIPN(rule=rule).fit(world.labels, negatives=world.labels)
    np.testing.assert_allclose(same.score(world.ood_images), 0.5, rtol=1e-12)  # a tower that says the same
    assert same.default_threshold_ == 0.5
    x = world.labels[:1]  # a no that is far from the image weighs nothing
    far = CLIPN(temperature=1e-3, rule=rule).fit(world.labels, negatives=np.tile(-x, (len(world.labels), 1)))
    assert far.score(x)[0] == pytest.approx(1)


def test_reductions():
    world = planted_world()
    args = {"labels": world.labels, "negatives": world.negatives[0]}
    images = world.id_images
    # cold, the softmax is on the nearest label alone
    cold = [CLIPN(temperature=1e-4, rule=rule).fit(**args).score(images) for rule in ("atd", "ctw")]
    np.testing.assert_allclose(*cold, atol=1e-6)
    # one label whose no is the other label is MSP of the two, if the image is nearer to the first
    two = world.labels[:2]
    one = CLIPN(temperature=0.1).fit(two[:1], negatives=two[1:]).score(two[:1])
    np.testing.assert_allclose(one, MSP(temperature=0.1).fit(two).score(two[:1]))


def test_what_it_refuses():
    with pytest.raises(ParameterError, match="rule must be"):
        CLIPN(rule="mean").fit([[1.0, 0.0]], negatives=[[0.0, 1.0]])
    with pytest.raises(InputError, match="needs negatives"):
        CLIPN().fit([[1.0, 0.0]])
