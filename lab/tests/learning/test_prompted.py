"""Losses and scores of learned prompts: formulas done slowly, values by hand, limits, and reductions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import reference_prompts as slow
from outword.detectors import DETECTORS, FA, LAPT, LSN, MCM, SCT, CoOp, LoCoOp, NegLabel, NegPrompt
from outword.errors import ParameterError
from outword_lab.learning.methods.lapt import _partners
from outword_lab.learning.methods.prompted import Batch, Prompted

LEARNED = [name for name, kind in DETECTORS.items() if issubclass(kind, Prompted)]


def unit(*shape, seed):
    rows = np.random.default_rng(seed).standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def batch(n=5, labels=4, dim=6, patches=7, sets=3, words=5, seed=0):
    """Random unit vectors in float64; text vectors want gradients."""
    made = {
        "images": unit(n, dim, seed=[seed, 0]),
        "labels": unit(labels, dim, seed=[seed, 1]),
        "plain": unit(2, labels, dim, seed=[seed, 2]),
        "patches": unit(n, patches, dim, seed=[seed, 3]),
        "negatives": unit(sets, labels, dim, seed=[seed, 4]),
        "wild": unit(words, dim, seed=[seed, 5]),
    }
    tensors = {name: torch.from_numpy(rows) for name, rows in made.items()}
    for name in ("labels", "negatives", "wild"):
        tensors[name].requires_grad_()
    classes = torch.from_numpy(np.random.default_rng([seed, 6]).integers(labels, size=n))
    return Batch(classes=classes, scale=7.0, rng=np.random.default_rng(seed), **tensors)


def in_numpy(b):
    return b._replace(
        **{name: getattr(b, name).detach().numpy() for name in b._fields if torch.is_tensor(getattr(b, name))}
    )


CASES = {
    "coop": (CoOp().loss, slow.coop),
    "fa": (FA(competitor=0.5).loss, lambda b: slow.fa(b, 0.5)),
    "locoop": (LoCoOp(lam=0.7, share=0.5).loss, lambda b: slow.locoop(b, 0.7, 2)),
    "sct": (SCT(lam=0.7, share=0.25).loss, lambda b: slow.sct(b, 0.7, 1)),
    "negprompt": (NegPrompt(beta=0.3, gamma=0.2).negative_loss, lambda b: slow.negprompt(b, 0.3, 0.2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_loss_is_its_formula(name, seed):
    fast, reference = CASES[name]
    b = batch(seed=seed)
    assert fast(b).item() == pytest.approx(reference(in_numpy(b)), rel=1e-10)


@pytest.mark.parametrize("name", [*CASES, "lsn", "lapt"])
def test_gradients_of_a_loss_are_those_of_small_steps(name):
    losses = {"lsn": LSN().negative_loss, "lapt": LAPT().loss}
    loss, b = losses.get(name) or CASES[name][0], batch(n=4)

    def of_texts(labels, negatives, wild):
        fresh = np.random.default_rng(3)  # what is drawn must be the same each time
        return loss(b._replace(labels=labels, negatives=negatives, wild=wild, rng=fresh))

    assert torch.autograd.gradcheck(of_texts, (b.labels, b.negatives, b.wild))


def test_lsn_moves_each_set_as_its_own_loss_says():
    b = batch()
    LSN(lam=0.4).negative_loss(b).backward()
    for j in range(3):
        step = np.zeros((3, 4, 6))
        direction = np.random.default_rng(j).standard_normal((4, 6))
        step[j] = 1e-6 * direction
        given = in_numpy(b)
        up, down = (slow.lsn_negative(given._replace(negatives=given.negatives + s * step), 0.4, j) for s in (1, -1))
        assert (b.negatives.grad[j].numpy() * direction).sum() == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_lapt_is_three_cross_entropies():
    b = batch(n=5)._replace(classes=torch.tensor([0, 2, 4, 7, 3]))  # three photos of labels, two of words
    b = b._replace(plain=torch.from_numpy(unit(7, 9, 6, seed=8)))  # labels and words in seven templates
    found = LAPT(mixing=0.5).loss(b._replace(rng=np.random.default_rng(9))).item()
    rng = np.random.default_rng(9)
    templates, named_share = rng.integers(7, size=5), rng.random()
    words, labels = np.array([2, 3])[rng.integers(2, size=3)], np.array([0, 1, 4])[rng.integers(3, size=2)]
    partners, both_share = [words[0], words[1], labels[0], labels[1], words[2]], rng.random()
    expected = slow.lapt(in_numpy(b), 0.5, templates, named_share, partners, both_share)
    assert found == pytest.approx(expected, rel=1e-10)


def test_lapt_mixes_labels_and_words_in_any_order():
    for classes in ([0, 1, 2, 3, 4], [8, 7, 6, 5, 0], [5, 0, 6, 1, 7]):
        b = batch(n=5)._replace(classes=torch.tensor(classes), plain=torch.from_numpy(unit(7, 9, 6, seed=8)))
        partners = _partners(b)
        assert (np.array(classes)[partners.numpy()] >= 4).tolist() == [y < 4 for y in classes]
    of_labels = b._replace(classes=torch.tensor([0, 1, 2, 3, 3]))
    of_words = b._replace(classes=torch.tensor([4, 5, 6, 7, 8]))
    assert _partners(of_labels) is None and _partners(of_words) is None


def test_lapt_without_words_is_two_cross_entropies():
    b = batch(n=4)
    found = LAPT(mixing=0.5).loss(b._replace(rng=np.random.default_rng(9))).item()
    rng, given = np.random.default_rng(9), in_numpy(b)
    templates, share = rng.integers(2, size=4), rng.random()
    expected = 0.0
    for x, y, template in zip(given.images, given.classes, templates, strict=True):
        named = slow.unit(share * x + (1 - share) * given.plain[template][y])
        expected -= (slow.log_share(given, x, y) + 0.5 * slow.log_share(given, named, y)) / 4
    assert found == pytest.approx(expected, rel=1e-10)


def test_values_by_hand():
    x, t = torch.eye(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    b = Batch(x, torch.tensor([0, 1]), t, t[None], math.log(3.0), np.random.default_rng(0))
    assert CoOp().loss(b).item() == pytest.approx(math.log(4 / 3))  # e^{log 3} / (3 + 1)
    frozen = b._replace(negatives=t.flip(0)[None])
    assert FA(competitor=1.0).loss(frozen).item() == pytest.approx(math.log(8 / 3))  # 3 of (3 + 1) + (1 + 3)
    assert FA().loss(frozen).item() == pytest.approx(math.log(16 / 3))  # 3 of (3 + 1) + 3 (1 + 3), as released
    one_patch = b._replace(patches=x.flip(0)[:, None])  # each shows the other class: entropy of (3/4, 1/4)
    entropy = -(0.75 * math.log(0.75 + 1e-5) + 0.25 * math.log(0.25 + 1e-5))
    assert LoCoOp(lam=0.5, share=0.5).loss(one_patch).item() == pytest.approx(math.log(4 / 3) - 0.5 * entropy)
    # a share of 3/4: a quarter of the cross-entropy, and three quarters of the entropy
    weighted = 0.25 * math.log(4 / 3) - 0.5 * 0.75 * entropy
    assert SCT(lam=0.5, share=0.5).loss(one_patch).item() == pytest.approx(weighted, rel=1e-6)
    # two equal sets of negatives that fit: logits 20 and 0 in each, and a cosine of 1 between them
    twice = b._replace(negatives=t.flip(0).expand(2, 2, 2))
    assert LSN(lam=0.3).negative_loss(twice).item() == pytest.approx(2 * math.log1p(math.exp(-20)) + 0.3)
    word = b._replace(images=x[:1], classes=b.classes[:1], labels=t[:1], wild=t[1:])
    assert LAPT(mixing=0.0).loss(word).item() == pytest.approx(math.log(4 / 3))  # one label, one word
    # uniform over two negatives with logits log 3 and 0: -(log 3/4 + log 1/4) / 2, which are the labels themselves
    alone = NegPrompt(negatives=1, beta=1.0).negative_loss(b._replace(negatives=t[None])).item()
    assert alone == pytest.approx(-(math.log(3 / 4) + math.log(1 / 4)) / 2 - 1)


def test_without_their_own_part_losses_are_coops():
    b = batch()
    expected = CoOp().loss(b).item()
    assert LoCoOp(lam=0.0).loss(b).item() == FA(competitor=0.0).loss(b).item() == expected
    assert LSN().loss(b).item() == NegPrompt().loss(b).item() == expected
    far = b._replace(patches=b.images[:, None])  # patches that show the class are no outliers
    sure = far._replace(images=b.labels.detach()[b.classes], patches=b.labels.detach()[b.classes][:, None])
    assert LoCoOp(lam=1.0, share=0.25).loss(sure).item() == CoOp().loss(sure).item()


def test_the_softmax_of_a_softmax_is_asked_for():
    b = batch()
    shares = torch.softmax(7.0 * b.images @ b.labels.T, 1)
    expected = torch.nn.functional.cross_entropy(shares, b.classes).item()
    assert LSN(double_softmax=True).loss(b).item() == pytest.approx(expected)


def test_scores_reduce_to_others():
    y, no, u, x = (unit(*shape, seed=s) for s, shape in enumerate([(5, 8), (2, 5, 8), (40, 8), (9, 8)]))
    mcm = MCM().fit(labels=y).score(x)
    for name in ("coop", "locoop", "sct"):
        np.testing.assert_array_equal(DETECTORS[name](weight=0.0).fit(labels=y).score(x), mcm)
    np.testing.assert_array_equal(FA(competitor=0.0).fit(labels=y, negatives=no[0]).score(x), mcm)
    np.testing.assert_allclose(FA().fit(labels=y, negatives=y).score(x), mcm / 4, rtol=1e-12)  # the same four times
    given = {"labels": y, "negatives": no[:1]}
    alone = FA(competitor=1.0, learned_only=True)
    np.testing.assert_allclose(NegPrompt().fit(**given).score(x), alone.fit(**given).score(x), rtol=1e-12)
    alike = LSN().fit(labels=y, negatives=np.repeat(y[:1], 5, axis=0)[None])  # negatives that tell nothing apart
    np.testing.assert_allclose(alike.score(x), mcm + 1 / 5, rtol=1e-12)
    words = {"labels": y, "wild": u}
    options = {"temperature": 0.05, "n_groups": 4, "seed": 3}
    np.testing.assert_array_equal(LAPT(**options).fit(**words).score(x), NegLabel(**options).fit(**words).score(x))


@pytest.mark.parametrize("competitor", [1.0, 2.5, 3.0])
def test_fa_is_the_largest_share_of_learned_and_frozen_prompts(competitor):
    y, no, x, parts = (unit(*shape, seed=s) for s, shape in enumerate([(5, 8), (5, 8), (40, 8), (40, 3, 8)]))
    fa = FA(competitor=competitor).fit(labels=y, negatives=no)
    expected = np.array([slow.fa_score(row, y, no, competitor) for row in x])
    np.testing.assert_allclose(fa.score(x), expected, rtol=1e-12)
    assert 0.2 < ((x @ no.T).max(1) > (x @ y.T).max(1)).mean() < 0.8  # both kinds are the largest at times
    local = np.array([max(slow.fa_score(q, y, no, competitor) for q in some) for some in parts])
    both = FA(competitor=competitor, weight=1.0).fit(labels=y, negatives=no)
    np.testing.assert_allclose(both.score(x, patches=parts), expected + local, rtol=1e-12)
    learned = FA(competitor=competitor, learned_only=True).fit(labels=y, negatives=no).score(x)
    assert (learned <= fa.score(x)).all() and (learned < fa.score(x)).any()


def test_glmcm_is_the_score_with_a_weight():
    y, x, parts = (unit(*shape, seed=s) for s, shape in enumerate([(5, 8), (9, 8), (9, 4, 8)]))
    expected = DETECTORS["glmcm"]().fit(labels=y).score(x, patches=parts)
    np.testing.assert_array_equal(LoCoOp().fit(labels=y).score(x, patches=parts), expected)


@pytest.mark.parametrize("name", LEARNED)
def test_each_stage_moves_a_context_and_parameters_have_rules(name):
    method = DETECTORS[name]()
    contexts = method.contexts()
    assert all(set(stage.moving) <= set(contexts) for stage in method.stages())
    for key, value in (("shots", 0), ("epochs", -1), ("rate", 0.0), ("batch", 0), ("context", 0), ("crops", -1)):
        with pytest.raises(ParameterError, match=key):
            replace(method, **{key: value}).check()
    with pytest.raises(ParameterError, match="start must be words"):
        replace(method, start=3).check()
