"""Methods on ID images, and those with a small fit: values by hand, limits, reductions, slow references."""

import re
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from helpers import reference_id as reference
from outword.base.extras import install
from outword.detectors import ASH, KNN, MSP, NPOS, VOS, Energy, GradNorm, Mahalanobis, MaxLogit, Need, ReAct, ViM
from outword.errors import InputError, MissingExtraError, ParameterError
from outword.maths import numerics
from outword.maths.methods.knn import kth_distance
from outword.maths.methods.mahalanobis import class_means, spectrum, tied_covariance
from outword.maths.methods.probe import STRENGTH, Loss, fit_head
from outword.maths.numerics import log_sum_exp, unit_rows
from outword.metrics import auroc
from outword.testing import check_detector, planted_world

WORLD = planted_world(n_labels=5, n_wild=20, n_images=12, dim=8)
HEADED = [MSP, MaxLogit, Energy, ViM, GradNorm, ReAct, ASH]
SQUARE = {"images": [[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]], "image_labels": [0, 0, 1, 1]}


def fitted(detector, world=WORLD):
    return detector.fit(world.labels, images=world.train, image_labels=world.classes)


def zero_shot(temperature, world=WORLD):
    return world.labels / temperature, np.zeros(len(world.labels))


def probabilities(weights, bias, images):
    z = images @ weights.T + bias
    return np.exp(z - log_sum_exp(z)[:, None])


# The linear probe


@pytest.mark.parametrize("strength", [1.0, STRENGTH])
def test_probe_equals_scikit_learn(strength):
    world = planted_world(n_labels=7, dim=16)
    theirs = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(world.train, world.classes)
    weights, bias = fit_head(world.train, world.classes, strength=strength)
    np.testing.assert_allclose(
        probabilities(weights, bias, world.ood_images), theirs.predict_proba(world.ood_images), atol=1e-4
    )
    if strength == STRENGTH:
        np.testing.assert_array_equal(fit_head(world.train, world.classes)[0], weights)


def test_probe_by_hand():
    # images (1, 0) and (-1, 0) of two classes: by symmetry b = 0 and W = (-w, 0), (w, 0). The loss is
    # log(1 + e^{-2w}) + 2 w^2 / (2 C n) with n = 2, so that at the minimum w / C = 2 / (1 + e^{2w});
    # C = (1 + e^2) / 2 makes it w = 1
    weights, bias = fit_head(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1, 0]), strength=(1 + np.exp(2)) / 2)
    np.testing.assert_allclose(weights, [[-1, 0], [1, 0]], atol=1e-5)
    np.testing.assert_allclose(bias, [0, 0], atol=1e-8)


def test_rows_of_the_probe_follow_sorted_classes_with_gaps():
    weights, bias = fit_head(WORLD.train, WORLD.classes)
    renamed = np.array([70, 3, 12, 900, 8])[WORLD.classes]
    again, shift = fit_head(WORLD.train, renamed)
    order = np.argsort([70, 3, 12, 900, 8])
    np.testing.assert_allclose(
        probabilities(again, shift, WORLD.id_images), probabilities(weights, bias, WORLD.id_images)[:, order], atol=1e-5
    )


def test_one_class_is_no_head():
    with pytest.raises(InputError, match="at least two classes, got 1"):
        fit_head(WORLD.train, np.full(len(WORLD.train), 4))


def test_without_scipy_the_fit_says_what_to_install_and_scoring_goes_on(monkeypatch):
    states = {kind: fitted(kind()).state() for kind in (VOS, NPOS)}
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    for detector in (VOS(), NPOS(), MSP(head="probe")):
        with pytest.raises(MissingExtraError, match=f"needs scipy.*{re.escape(install('fit'))}"):
            fitted(detector)
    for kind, state in states.items():
        assert np.isfinite(kind().restore(state).score(WORLD.id_images)).all()


@pytest.mark.parametrize("with_outliers", [False, True])
def test_the_loss_and_its_gradient(with_outliers, monkeypatch):
    monkeypatch.setattr(numerics, "CELLS", 5 * 7)  # seven rows a block
    rng = np.random.default_rng(0)
    outliers = WORLD.ood_images if with_outliers else WORLD.ood_images[:0]
    centre = WORLD.train.mean(axis=0)
    loss = Loss(WORLD.train, WORLD.classes, outliers, centre, 0.3, 0.01, 5)
    theta = rng.standard_normal(len(loss.start()))
    weights, bias, (s, c) = loss.parts(theta)
    bias -= bias.mean()
    value, gradient = loss(theta)
    own = WORLD.classes.tolist()
    expected = reference.head_loss(weights, bias - weights @ centre, WORLD.train, own, 0.01, outliers, 0.3, (s**2, c))
    assert value == pytest.approx(expected, rel=1e-10)
    for _ in range(20):
        step = 1e-5 * rng.standard_normal(len(theta))
        loss.parts(step)[1][:] -= loss.parts(step)[1].mean()
        assert loss(theta + step)[0] - loss(theta - step)[0] == pytest.approx(2 * gradient @ step, rel=1e-5, abs=1e-12)


def test_a_head_that_takes_too_long_is_said(monkeypatch):
    monkeypatch.setattr("outword.maths.methods.probe.MOST_STEPS", 2)
    with pytest.warns(UserWarning, match="not quite fitted after 2 steps"):
        fit_head(WORLD.train, WORLD.classes)


@pytest.mark.parametrize("kind", HEADED)
def test_any_head_may_be_a_probe(kind):
    detector = kind(head="probe")
    wants = detector.wants()
    assert Need.LABELS not in wants
    assert len(set(wants)) == len(wants)
    assert {Need.ID_IMAGES, Need.ID_LABELS} <= set(wants)
    detector.fit(images=WORLD.train, image_labels=WORLD.classes)
    restored = kind(**detector.params()).restore(detector.state())
    np.testing.assert_array_equal(restored.score(WORLD.id_images), detector.score(WORLD.id_images))


# Mahalanobis


def test_mahalanobis_by_hand():
    # unit rows (.6, .8), (.6, -.8) | (-1, 0), (0, -1): means (.6, 0) and (-.5, -.5)
    # centred: (0, +-.8) and +-(-.5, .5); Sigma = 1/4 [[.5, -.5], [-.5, 1.28 + .5]] = [[.125, -.125], [-.125, .445]]
    # det = .125 * .445 - .125^2 = .04; inverse = [[11.125, 3.125], [3.125, 3.125]]
    # (1, 0): (.4, 0) from the first mean: .16 * 11.125 = 1.78; (1.5, .5): 25.03 + 2 * .75 * 3.125 + .78 is more
    detector = Mahalanobis().fit(
        images=[[0.6, 0.8], [0.6, -0.8], [-1.0, 0.0], [0.0, -1.0]], image_labels=np.array([5, 5, 9, 9])
    )
    np.testing.assert_allclose(detector.means_, [[0.6, 0], [-0.5, -0.5]], atol=1e-15)
    np.testing.assert_allclose(detector.score([[1.0, 0.0]]), [-1.78])


def test_mahalanobis_equals_the_reference_and_not_the_indexing_slip():
    world = planted_world(n_labels=4, n_images=15, dim=6, seed=3)
    order = np.random.default_rng(0).permutation(len(world.train))
    train, classes = world.train[order], world.classes[order]
    ours = Mahalanobis().fit(images=train, image_labels=classes).score(world.id_images)
    np.testing.assert_allclose(ours, reference.mahalanobis(world.id_images, train, classes.tolist()), rtol=1e-9)
    slip = reference.mahalanobis_by_batch_number(world.id_images, train, classes.tolist(), batch_size=8)
    assert np.abs(ours - slip).min() > 0.01
    assert not np.array_equal(np.argsort(ours), np.argsort(slip))


def test_mahalanobis_at_full_shrinkage_is_the_euclidean_distance():
    detector = fitted(Mahalanobis(shrinkage=1.0))
    means, own = class_means(WORLD.train, WORLD.classes)
    spread = ((WORLD.train - means[own]) ** 2).sum() / len(WORLD.train)
    squared = ((WORLD.id_images[:, None] - means) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(detector.score(WORLD.id_images), -squared * 8 / spread, rtol=1e-9)


def test_mahalanobis_with_fewer_images_than_dimensions():
    world = planted_world(n_labels=2, dim=48)
    few = [0, 1, 2, 10, 11, 12]
    bare = Mahalanobis().fit(images=world.train[few], image_labels=world.classes[few])
    assert bare.whitening_.shape == (48, 4)  # 6 images less 2 means
    # a step in a direction in which no image differs within its class does not count
    rest = np.linalg.svd(bare.whitening_.T)[2][4:]
    moved = bare._distances(bare.means_ + rest[0])
    np.testing.assert_allclose(moved, bare._distances(bare.means_), atol=1e-6)
    filled = Mahalanobis(shrinkage=0.1).fit(images=world.train[few], image_labels=world.classes[few])
    assert filled.whitening_.shape == (48, 48)
    assert np.isfinite(filled.score(world.ood_images)).all()


@pytest.mark.parametrize("kind", [Mahalanobis, VOS])
@pytest.mark.parametrize("shrinkage", [0.0, 0.5])
def test_classes_without_spread_are_said(kind, shrinkage):
    params = {"shrinkage": shrinkage} if kind is Mahalanobis else {}
    with pytest.raises(InputError, match="3 images of 3 classes without any spread"):
        kind(**params).fit(images=np.eye(3), image_labels=[0, 1, 2])
    with pytest.raises(InputError, match="without any spread"):
        kind(**params).fit(images=unit_rows(np.repeat(WORLD.train[:2], 3, axis=0)), image_labels=[0, 0, 0, 1, 1, 1])


# KNN


def test_knn_by_hand_and_where_there_are_fewer_images():
    images = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]  # from (1, 0): distances 0, sqrt 2, 2
    for k, distance in [(1, 0), (2, 2**0.5), (3, 2), (50, 2)]:
        np.testing.assert_allclose(KNN(k=k).fit(images=images).score([[1.0, 0.0]]), [-distance], atol=1e-7)


@pytest.mark.parametrize("k", [1, 4, 50])
def test_knn_equals_the_reference(k):
    found = fitted(KNN(k=k))
    assert found.images_.dtype == np.float32
    np.testing.assert_allclose(
        found.score(WORLD.ood_images), reference.knn(WORLD.ood_images, WORLD.train, k), atol=1e-6
    )


def test_knn_of_one_is_the_largest_cosine():
    nearest = MaxLogit().fit(WORLD.train).score(WORLD.id_images)
    np.testing.assert_allclose(fitted(KNN(k=1)).score(WORLD.id_images), -np.sqrt(2 - 2 * nearest), atol=1e-6)


def test_distances_do_not_depend_on_the_blocks(monkeypatch):
    whole = kth_distance(WORLD.id_images, WORLD.train, 3)
    monkeypatch.setattr(numerics, "CELLS", 100)
    np.testing.assert_allclose(kth_distance(WORLD.id_images, WORLD.train, 3), whole, rtol=1e-12)


# ViM


def test_vim_by_hand():
    # images (.8, 0, .6), (.6, 0, -.8), (0, 1, 0), (0, 1, 0): scatter diag(1, 2, 1) + nothing mixed; one of three
    # dimensions is principal: the second. Residuals 1, 1, 0, 0: mean .5; logits of (0, 1, 0): 0, 0, 1, 1: mean .5
    images = [[0.8, 0.0, 0.6], [0.6, 0.0, -0.8], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    detector = ViM(temperature=1.0, share=0.34).fit([[0.0, 1.0, 0.0]], images=images)
    np.testing.assert_allclose(detector.alpha_, [1.0])
    np.testing.assert_allclose(detector.score([[0.6, 0.8, 0.0]]), [0.8 - 0.6])


@pytest.mark.parametrize("head", ["labels", "probe"])
def test_vim_equals_the_reference(head):
    detector = fitted(ViM(temperature=0.2, head=head, share=0.6))  # 4 of 8
    weights, bias = zero_shot(0.2) if head == "labels" else (detector.weights_, detector.bias_)
    expected = reference.vim(WORLD.id_images, WORLD.train, weights, bias, 4)
    np.testing.assert_allclose(detector.score(WORLD.id_images), expected, rtol=1e-6)


def test_vim_without_residual_is_energy():
    for head in ("labels", "probe"):
        detector = fitted(ViM(share=1.0, head=head))
        assert detector.residual_.shape == (8, 0)
        expected = fitted(Energy(head=head)).score(WORLD.id_images)
        np.testing.assert_array_equal(detector.score(WORLD.id_images), expected)


def test_vim_leaves_few_images_a_residual():
    few = ViM(share=1.0).fit(WORLD.labels, images=WORLD.train[:6])
    assert few.residual_.shape == (8, 5)  # no more than half of 6 are principal
    with pytest.raises(InputError, match="4 ID images leave no residual outside 2 principal dimensions"):
        ViM().fit(WORLD.labels, images=WORLD.train[[0, 0, 1, 1]])


# GradNorm, ReAct, ASH


def test_gradnorm_by_hand():
    # |x|_1 = 1.4; e^z = e^.6, e^.8 at temperature 1: p_2 = 1 / (1 + e^-.2), sum |p - 1/2| = 2 (p_2 - .5)
    found = GradNorm(temperature=1.0).fit([[1.0, 0.0], [0.0, 1.0]]).score([[0.6, 0.8]])
    np.testing.assert_allclose(found, [1.4 * 2 * (1 / (1 + np.exp(-0.2)) - 0.5)])


def test_gradnorm_equals_the_numeric_gradient():
    found = fitted(GradNorm(temperature=0.2)).score(WORLD.id_images)
    np.testing.assert_allclose(found, reference.gradnorm(WORLD.id_images, *zero_shot(0.2)), rtol=1e-5)


def test_gradnorm_of_a_sure_head_is_the_norm_of_the_image_and_of_an_unsure_one_nothing():
    cold = fitted(GradNorm(temperature=1e-5)).score(WORLD.id_images)
    np.testing.assert_allclose(cold, np.abs(WORLD.id_images).sum(axis=1) * 2 * (1 - 1 / 5))
    np.testing.assert_allclose(fitted(GradNorm(temperature=1e9)).score(WORLD.id_images), 0, atol=1e-8)


def test_react_by_hand():
    # entries .6, .8, .8, .6 and -.6, .8: sorted -.6 .6 .6 .8 .8 .8, the median is .7
    detector = ReAct(temperature=0.5, quantile=0.5).fit(
        [[1.0, 0.0], [0.0, 1.0]], images=[[0.6, 0.8], [0.8, 0.6], [-0.6, 0.8]]
    )
    np.testing.assert_allclose(detector.cut_, [0.7])
    found = detector.score([[0.6, 0.8]])  # (.6, .7) over .5
    np.testing.assert_allclose(found, [np.log(np.exp(1.2) + np.exp(1.4))])


@pytest.mark.parametrize("quantile", [0.0, 0.37, 0.9])
def test_react_equals_the_reference(quantile):
    found = fitted(ReAct(temperature=0.2, quantile=quantile)).score(WORLD.id_images)
    expected = reference.react(WORLD.id_images, WORLD.train, *zero_shot(0.2), quantile)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_react_that_cuts_nothing_is_energy():
    found = fitted(ReAct(quantile=1.0)).score(WORLD.train)
    np.testing.assert_array_equal(found, fitted(Energy()).score(WORLD.train))


@pytest.mark.parametrize(
    ("variant", "shaped"),
    # (.1, -.3, .5, .8) over its length: the upper half stays; s_1 = 1.7, s_2 = 1.3, two are left
    [("p", [0.5, 0.8]), ("b", [0.85, 0.85]), ("s", [0.5 * np.exp(1.7 / 1.3), 0.8 * np.exp(1.7 / 1.3)])],
)
def test_ash_by_hand(variant, shaped):
    length = np.sqrt(0.01 + 0.09 + 0.25 + 0.64)
    detector = ASH(temperature=1.0, variant=variant, percentile=0.5).fit(np.eye(4))
    expected = np.log(2 + np.exp(np.array(shaped) / length).sum())
    np.testing.assert_allclose(detector.score([[0.1, -0.3, 0.5, 0.8]]), [expected])


@pytest.mark.parametrize("variant", ["s", "b", "p"])
@pytest.mark.parametrize("percentile", [0.0, 0.3, 0.9])
def test_ash_is_the_published_rule_where_nothing_is_negative(variant, percentile):
    images = np.abs(WORLD.id_images)
    found = fitted(ASH(temperature=0.2, variant=variant, percentile=percentile)).score(images)
    np.testing.assert_allclose(found, reference.ash(images, *zero_shot(0.2), variant, percentile), rtol=1e-10)


def test_ash_keeps_signs():
    detector = fitted(ASH(temperature=0.2))
    mirrored = ASH(temperature=0.2).fit(-WORLD.labels)
    np.testing.assert_allclose(mirrored.score(-WORLD.id_images), detector.score(WORLD.id_images))


def test_ash_that_removes_nothing_is_energy():
    found = fitted(ASH(variant="p", percentile=0.0)).score(WORLD.id_images)
    np.testing.assert_array_equal(found, fitted(Energy()).score(WORLD.id_images))


# VOS, NPOS


@pytest.mark.parametrize("kind", [VOS, NPOS])
def test_without_weight_it_is_the_energy_of_the_probe(kind):
    expected = fitted(Energy(head="probe")).score(WORLD.id_images)
    np.testing.assert_array_equal(fitted(kind(weight=0.0)).score(WORLD.id_images), expected)
    np.testing.assert_allclose(fitted(kind(weight=1e-9)).score(WORLD.id_images), expected, atol=1e-3)


@pytest.mark.parametrize("kind", [VOS, NPOS])
def test_by_hand_for_a_square(kind, monkeypatch):
    # Four corners (+-.8, +-.6), mirrored by both axes, two classes left and right, outliers (0, +-1). By symmetry
    # W = (-w, 0), (w, 0), b = 0: an image has the margin 1.6 w and the energy log 2 cosh .8 w, an outlier log 2. What
    # is left are three numbers: w, and the line phi = a (energy - log 2) + c.
    monkeypatch.setattr(kind, "_outliers", lambda self, images, classes: np.array([[0.0, 1.0], [0.0, -1.0]]))
    detector = kind(weight=0.5).fit(**SQUARE)

    def loss(numbers):
        w, a, c = numbers
        phi = a * np.log(np.cosh(0.8 * w)) + c
        ridge = (2 * w**2 + a**2) / (2 * STRENGTH * 4)
        return np.log1p(np.exp(-1.6 * w)) + ridge + 0.25 * (np.log1p(np.exp(-phi)) + np.log1p(np.exp(c)))

    w = minimize(loss, [1.0, 1.0, 0.0], options={"gtol": 1e-9}).x[0]
    found = detector.weights_ * np.sign(detector.weights_[0, 0])
    np.testing.assert_allclose(found, [[abs(w), 0], [-abs(w), 0]], rtol=1e-4, atol=1e-5)
    expected = [np.log(2), np.log(2 * np.cosh(w))]
    np.testing.assert_allclose(detector.score([[0.0, 1.0], [1.0, 0.0]]), expected, rtol=1e-4)


@pytest.mark.parametrize("kind", [VOS, NPOS])
def test_the_energy_of_outliers_goes_down(kind):
    world = planted_world(n_labels=8, dim=24)
    gaps = []
    for weight in (0.0, 0.1, 1.0):
        detector = fitted(kind(weight=weight), world)
        outliers = kind(weight=weight)._outliers(world.train, world.classes)
        gaps.append(detector.score(world.train).mean() - detector.score(outliers).mean())
    assert gaps[0] < gaps[1] < gaps[2]


@pytest.mark.parametrize("kind", [VOS, NPOS])
def test_the_fitted_head_is_a_minimum_of_the_reference_loss(kind):
    world = planted_world(n_labels=3, n_images=5, dim=4)
    detector = fitted(kind(weight=0.5), world)
    outliers = unit_rows(detector._outliers(world.train, world.classes))
    own, penalty = world.classes.tolist(), 1 / (STRENGTH * len(world.train))

    def loss(weights):
        """With the best line for these weights; a >= 0."""
        return minimize(
            lambda line: reference.head_loss(
                weights, detector.bias_, world.train, own, penalty, outliers, 0.5, (line[0] ** 2, line[1])
            ),
            [1.0, 0.0],
            options={"gtol": 1e-8},
        ).fun

    def slope(weights, direction):
        return (loss(weights + 1e-3 * direction) - loss(weights - 1e-3 * direction)) / 2e-3

    rng = np.random.default_rng(0)
    for _ in range(3):
        direction = rng.standard_normal(detector.weights_.shape)
        assert abs(slope(detector.weights_, direction)) < 1e-4
        assert abs(slope(0.5 * detector.weights_, direction)) > 1e-3


@pytest.mark.parametrize("kind", [VOS, NPOS])
def test_the_seed_decides(kind):
    first, again, other = (fitted(kind(seed=seed)).score(WORLD.id_images) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_outliers_of_vos_are_the_thinnest_draws_of_the_gaussian():
    world = planted_world(n_labels=3, dim=6)
    means, own = class_means(world.train, world.classes)
    sigma = tied_covariance(world.train, means, own)
    inverse = np.linalg.inv(sigma)
    outliers = VOS(n_samples=1000)._outliers(world.train, world.classes).reshape(3, 10, 6)
    squared = np.einsum("kni,ij,knj->kn", outliers - means[:, None], inverse, outliers - means[:, None])
    # the same by drawing them all: the mean squared length of the longest 10 of 1000 vectors in 6 dimensions
    draws = np.sort((np.random.default_rng(1).standard_normal((300, 1000, 6)) ** 2).sum(axis=2), axis=1)[:, -10:]
    assert squared.mean() == pytest.approx(draws.mean(), rel=0.05)
    assert squared.min() > draws.min(axis=1).min()
    # and in no direction more than in another, once the spread is taken out
    many = (
        VOS(n_samples=100_000)._outliers(np.tile(world.train, (200, 1)), np.tile(world.classes, 200)).reshape(3, -1, 6)
    )
    values, vectors = spectrum(sigma)
    e = (many - means[:, None]).reshape(-1, 6) @ vectors / np.sqrt(values)
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    np.testing.assert_allclose(e.T @ e / len(e), np.eye(6) / 6, atol=0.02)
    np.testing.assert_allclose(e.mean(axis=0), 0, atol=0.05)


def test_how_many_outliers_vos_keeps():
    for n_samples, kept in [(10_000, 10), (500, 5), (10, 1)]:  # ten images a class; 1 % of the draws; at least one
        assert len(VOS(n_samples=n_samples)._outliers(WORLD.train, WORLD.classes)) == 5 * kept
    many = np.tile(WORLD.train, (300, 1)), np.tile(WORLD.classes, 300)  # 15,000 images: a fifth of 10,000 a class
    assert len(VOS(n_samples=1_000_000)._outliers(*many)) == 10_000


def test_vos_stays_in_the_space_of_few_images():
    world = planted_world(n_labels=2, dim=48)
    few = [0, 1, 2, 10, 11, 12]
    train, classes = world.train[few], world.classes[few]
    outliers = VOS()._outliers(train, classes)
    assert np.linalg.matrix_rank(np.concatenate([train, outliers]), tol=1e-8) == 6


def test_outliers_of_npos_are_the_farthest_candidates_around_the_boundary():
    world = planted_world(n_labels=4, dim=6)
    train = world.train
    found = NPOS(n_boundary=3, k=5, sigma=1e-4)._outliers(train, world.classes)
    spread = [sorted(np.linalg.norm(x - t) for j, t in enumerate(train) if j != i)[4] for i, x in enumerate(train)]
    boundary = sorted(np.argsort(spread)[-3:])
    np.testing.assert_allclose(found, train[boundary], atol=1e-3)  # small noise: at the boundary itself
    rng = np.random.default_rng(0)
    far = NPOS(n_boundary=3, k=5, sigma=0.3)._outliers(train, world.classes)
    for i, row in enumerate(boundary):
        candidates = unit_rows(train[row] + 0.3 * rng.standard_normal((50, 6)))
        farthest = np.argmin(reference.knn(candidates, train, 5))
        np.testing.assert_allclose(far[i], candidates[farthest])


def test_npos_by_class_keeps_two_candidates_far_from_the_images_of_the_class():
    world = planted_world(n_labels=3, dim=6)
    found = NPOS(n_boundary=3, k=4, sigma=0.3, by_class=True, n_candidates=9)._outliers(world.train, world.classes)
    rng, expected = np.random.default_rng(0), []
    for label in range(3):
        own = world.train[world.classes == label]
        spread = [sorted(np.linalg.norm(x - t) for j, t in enumerate(own) if j != i)[3] for i, x in enumerate(own)]
        for row in sorted(np.argsort(spread)[-3:]):
            candidates = unit_rows(own[row] + 0.3 * rng.standard_normal((9, 6)))
            expected += list(candidates[np.argsort(reference.knn(candidates, own, 4))[:2]])
    np.testing.assert_allclose(found, expected)


def test_npos_by_class_of_a_single_class_begins_with_the_outliers_of_all():
    train, one = WORLD.train, np.zeros(len(WORLD.train), np.int64)
    whole = NPOS(n_boundary=5, k=3)._outliers(train, one)
    np.testing.assert_array_equal(NPOS(n_boundary=5, k=3, by_class=True)._outliers(train, one)[::2], whole)


def test_npos_by_class_by_hand():
    # a class of two images, k = 1: both are its boundary. A candidate's distance is to the nearer of the two, and with
    # noise as good as none it is that to its own image: the two that moved most.
    images = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    found = NPOS(k=1, sigma=1e-3, by_class=True, n_candidates=4)._outliers(images, np.array([0, 0, 1]))
    noise = 1e-3 * np.random.default_rng(0).standard_normal((3, 4, 2))
    for image, moves, got in zip(images, noise, found.reshape(3, 2, 2), strict=True):
        sideways = np.abs(moves @ [image[1], image[0]])  # what a step along the image does is undone by its unit length
        order = np.argsort(-sideways)[:2]
        np.testing.assert_allclose(got, unit_rows(image + moves[order]))


def test_npos_by_class_passes_the_public_checks():
    check_detector(NPOS(by_class=True))


def test_npos_by_class_draws_points_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr("outword.maths.methods.npos.MOST", 12)
    n_classes = len(np.unique(WORLD.classes))
    found = NPOS(by_class=True)._outliers(WORLD.train, WORLD.classes)
    assert len(found) == 2 * n_classes * max(1, 12 // (2 * n_classes)) < 2 * len(WORLD.train)


def test_npos_takes_all_images_where_there_are_few():
    assert len(NPOS()._outliers(WORLD.train, WORLD.classes)) == len(WORLD.train)
    assert len(NPOS(by_class=True)._outliers(WORLD.train, WORLD.classes)) == 2 * len(WORLD.train)


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (Mahalanobis(shrinkage=-0.1), "shrinkage must be a number of at least 0 and at most 1, got -0.1"),
        (Mahalanobis(shrinkage=float("nan")), "shrinkage must be"),
        (KNN(k=0), "k must be a whole number of at least 1, got 0"),
        (KNN(k=1.5), "k must be"),
        (KNN(k=True), "k must be"),
        (ViM(share=1.1), "share must be a number of at least 0 and at most 1, got 1.1"),
        (ReAct(quantile=2), "quantile must be a number of at least 0 and at most 1, got 2"),
        (ASH(variant="x"), 'variant must be "s", "b" or "p", got \'x\''),
        (ASH(percentile=1.0), "percentile must be a number of at least 0 and below 1, got 1.0"),
        (ASH(percentile=-0.1), "percentile must be"),
        (VOS(weight=-1), "weight must be a number of at least 0 and at most 1000, got -1"),
        (VOS(weight=float("inf")), "weight must be"),
        (VOS(n_samples=0), "n_samples must be a whole number between 1 and 1000000, got 0"),
        (VOS(seed=-1), "seed must be a whole number of at least 0, got -1"),
        (NPOS(n_boundary=0), "n_boundary must be a whole number of at least 1, got 0"),
        (NPOS(k=0), "k must be"),
        (NPOS(sigma=0.0), "sigma must be a number above 0, got 0.0"),
        (NPOS(n_candidates=1), "n_candidates must be a whole number between 2 and 100000, got 1"),
        (GradNorm(head="x"), "head must be"),
    ],
)
def test_bad_parameters(detector, message):
    with pytest.raises(ParameterError, match=message) as error:
        fitted(detector)
    assert error.value.hint


@pytest.mark.parametrize("kind", [Mahalanobis, KNN, ViM, ReAct, VOS, NPOS])
def test_images_are_needed(kind):
    with pytest.raises(InputError, match="needs ID images, got none"):
        kind().fit(WORLD.labels)


@pytest.mark.parametrize("kind", [Mahalanobis, VOS, NPOS])
def test_image_labels_are_needed(kind):
    with pytest.raises(InputError, match="needs ID image labels"):
        kind().fit(images=WORLD.train)


@pytest.mark.parametrize("kind", [VOS, NPOS])
@pytest.mark.parametrize("seed", [0, 1])
def test_outliers_never_turn_the_score_upside_down(kind, seed):
    # two classes in 8 dimensions: the outliers lie among the images, and a free slope would turn negative
    world = planted_world(n_labels=2, dim=8, n_images=60, seed=seed)
    plain, fitted = (kind(weight=w).fit(images=world.train, image_labels=world.classes) for w in (0.0, 0.1))
    away = unit_rows(np.random.default_rng(seed).standard_normal((300, 8)))
    before, after = (auroc(d.score(world.id_images), d.score(away)) for d in (plain, fitted))
    assert after > before - 0.05
