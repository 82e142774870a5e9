"""Bootstrap samples against a slow reference that resamples arrays and calls the metrics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outword.errors import InputError, ParameterError
from outword.metrics import auroc, fpr_at_tpr
from outword_lab.benchmark.run import bootstrap
from outword_lab.benchmark.run.bootstrap import half_widths, interval, resampled, seed_stretch, seeds_resampled


def reference(inside, outside, n_samples, seed):
    """The same draws, with the images themselves resampled."""
    inside, found = np.asarray(inside), {}
    for name, scores in {name: np.asarray(values) for name, values in outside.items()}.items():
        rng = bootstrap._rng(seed, f"ood/{name}", len(scores))
        found[name] = np.empty((n_samples, 2))
        for sample in range(n_samples):
            id_rng = bootstrap._rng(seed, f"id/{sample}", len(inside))
            good = inside[id_rng.integers(len(inside), size=len(inside))]
            bad = scores[rng.integers(len(scores), size=len(scores))]
            found[name][sample] = auroc(good, bad), fpr_at_tpr(good, bad, tpr=0.95, positive="id")
    return found


def assert_same(a, b):
    assert list(a) == list(b)
    for name, values in a.items():
        np.testing.assert_allclose(values, b[name], rtol=0, atol=1e-12)


some = st.lists(
    st.integers(-3, 3).map(float) | st.floats(-3, 3) | st.sampled_from([-np.inf, np.inf]), min_size=1, max_size=50
)


@settings(max_examples=100, deadline=None)
@given(some, some, some, st.integers(0, 5))
def test_against_the_slow_reference(inside, sun, places, seed):
    outside = {"sun": sun, "places": places}
    assert_same(resampled(inside, outside, n_samples=5, seed=seed), reference(inside, outside, 5, seed))


def test_against_the_slow_reference_with_many_scores():
    rng = np.random.default_rng(0)
    inside = rng.normal(1, 1, 3000).round(1)  # many ties within and between the sets
    outside = {"sun": rng.normal(0, 1, 2000).round(1), "dtd": rng.normal(0, 1, 700), "same": inside.copy()}
    assert_same(resampled(inside, outside, n_samples=20, seed=3), reference(inside, outside, 20, 3))


@pytest.mark.parametrize(("together", "small"), [(1, 0), (200, 0), (200, 1 << 20)])
def test_blocks_and_kept_draws_change_nothing(together, small, monkeypatch):
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, 1, 30).round(1), {"x": rng.normal(0, 1, 40).round(1)}
    part = {"rows": [3, 8], "n_all": 60}  # some samples have none of them at first
    whole, halves = resampled(inside, outside, n_samples=50), resampled([1.0, 2.0], outside, n_samples=50, **part)
    monkeypatch.setattr(bootstrap, "TOGETHER", together)
    monkeypatch.setattr(bootstrap, "SMALL", small)
    np.testing.assert_array_equal(resampled(inside, outside, n_samples=50)["x"], whole["x"])
    np.testing.assert_array_equal(resampled([1.0, 2.0], outside, n_samples=50, **part)["x"], halves["x"])


@pytest.mark.parametrize(
    ("inside", "outside", "figures"),
    [
        ([0.0] * 7, [0.0] * 5, [0.5, 1.0]),
        ([2.0, np.inf], [-np.inf, 1.0, 1.0], [1.0, 0.0]),
        ([-np.inf] * 3, [0.0, np.inf], [0.0, 1.0]),
        ([np.inf, np.inf], [np.inf], [0.5, 1.0]),
        ([1.0], [0.0], [1.0, 0.0]),
        ([1.0], [1.0], [0.5, 1.0]),
        ([1.0], [2.0], [0.0, 1.0]),
    ],
)
def test_what_no_sample_can_change(inside, outside, figures):
    np.testing.assert_array_equal(resampled(inside, {"x": outside}, n_samples=4)["x"], [figures] * 4)


def test_samples_are_centred_on_the_figures_and_differ():
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(1, 1, 2000), rng.normal(0, 1, 1000)
    found = resampled(inside, {"x": outside}, n_samples=300)["x"]
    assert found.mean(axis=0) == pytest.approx([auroc(inside, outside), fpr_at_tpr(inside, outside)], abs=0.01)
    assert len(np.unique(found[:, 0])) > 290


def test_draws_depend_on_neither_scores_nor_order_nor_other_sets():
    inside, sun, places = np.arange(40.0), np.arange(30.0), np.arange(20.0) + 0.5
    both = resampled(inside, {"sun": sun, "places": places}, n_samples=10)
    turned = resampled(inside, {"places": places, "sun": sun}, n_samples=10)
    assert_same(turned, {name: both[name] for name in ("places", "sun")})
    assert_same(resampled(inside, {"sun": sun}, n_samples=4), {"sun": both["sun"][:4]})
    upside_down = resampled(-inside, {"sun": -sun}, n_samples=10)[
        "sun"
    ]  # a method that errs whenever the first is right
    np.testing.assert_allclose(upside_down[:, 0], 1 - both["sun"][:, 0])
    assert (resampled(inside, {"sun": sun}, n_samples=10, seed=1)["sun"] != both["sun"]).any()
    assert (resampled(inside, {"moon": sun}, n_samples=10)["moon"] != both["sun"]).any()


def test_all_sets_see_the_same_id_images():
    """One OOD score per set: AUROC is then the share of the drawn ID scores above it."""
    found = resampled([0.0, 1.0] * 10, {"a": [0.5], "b": [0.5], "c": [2.0]}, n_samples=20)
    np.testing.assert_array_equal(found["a"], found["b"])
    assert found["a"][:, 0].std() > 0 and (found["c"][:, 0] == 0).all()


def test_methods_are_paired():
    """The second method errs on one more image in 500: less than the images' own noise, yet it is seen to be worse."""
    rng = np.random.default_rng(2)
    inside, outside = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
    worse = inside.copy()
    worse[[0, 1]] = -9.0
    a, b = (resampled(scores, {"x": outside}, n_samples=400)["x"][:, 0] for scores in (inside, worse))
    drawn_neither = np.exp(-2)
    assert (a > b).mean() == pytest.approx(1 - drawn_neither, abs=0.05)
    assert half_widths([a, b])[0, 1] < 0.01 < a.std()


def test_intervals_cover_the_truth():
    """Two normals one apart: AUROC is Phi(1 / sqrt 2), FPR95 is Phi(1.645 - 1)."""
    rng, covered = np.random.default_rng(4), np.zeros(2)
    for trial in range(200):
        found = resampled(rng.normal(1, 1, 200), {"x": rng.normal(0, 1, 200)}, n_samples=200, seed=trial)["x"]
        for column, truth in enumerate([0.76025, 0.74049]):
            low, high = interval(found[:, column])
            covered[column] += low <= truth <= high
    assert (covered >= 180).all() and (covered <= 198).all()


def test_interval_by_hand():
    assert interval(np.arange(1001)) == pytest.approx((25.0, 975.0))
    assert interval([0.5]) == (0.5, 0.5)


def test_half_widths_by_hand():
    one = half_widths([np.arange(101) / 100, np.full(101, 0.5)])
    assert one == pytest.approx(np.array([[0, 0.48], [0.48, 0]]))  # 96 of the 101 deviations are less
    assert not half_widths([[1.0, 1.0], [0.5, 0.5]]).any()
    three = half_widths([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    assert three[0, 1] == three[1, 2] == pytest.approx(three[0, 2] / np.sqrt(2))  # in proportion to their errors


def test_intervals_of_the_best_hold_though_it_was_picked():
    """Six methods that are alike: the first looks better than the others, and plain intervals believe it."""
    rng, held, naive = np.random.default_rng(6), 0, 0
    for _ in range(400):
        figures = rng.normal(size=6)
        samples = figures[:, None] + rng.normal(size=(6, 400))
        best, second = np.argsort(-figures)[[0, -1]]
        held += (np.abs(figures[best] - figures) <= half_widths(samples)[best]).all()
        low, high = interval(samples[best] - samples[second])
        naive += low <= 0 <= high
    assert 0.93 <= held / 400 <= 0.975
    assert naive / 400 < 0.75


@pytest.mark.parametrize(("n_methods", "n_seeds"), [(2, 2), (5, 3), (5, 5)])
def test_intervals_hold_with_few_seeds(n_methods, n_seeds):
    """Methods that are alike, whose figures move with the seed far more than with the images."""
    rng, held, n_pairs = np.random.default_rng(0), [], n_methods * (n_methods - 1) // 2
    for _ in range(60):
        seeds = rng.normal(size=(n_methods, n_seeds, 1))
        samples = seeds + rng.normal(scale=0.1, size=(n_methods, 1, 150))
        figures = seeds.mean(axis=(1, 2))
        best = int(figures.argmax())
        for at_once in (None, n_pairs):
            widths = half_widths([seeds_resampled(one, at_once) for one in samples])[best]
            held.append((np.abs(figures[best] - figures) <= widths).all())
    plain, stretched = np.mean(np.reshape(held, (60, 2)), axis=0)
    assert stretched >= 0.88 > plain


def test_many_seeds_are_hardly_stretched_and_one_not_at_all():
    values = np.random.default_rng(0).normal(size=(1, 50))
    np.testing.assert_array_equal(seeds_resampled(values, 3), values[0])
    assert 1 < seed_stretch(200, 10) < 1.03
    assert seed_stretch(2, 1) == pytest.approx(np.sqrt(2) * 12.7062 / 1.95996, rel=1e-4)  # from a table of t


def test_no_sets():
    assert resampled([1.0], {}) == {}


@pytest.mark.parametrize("bad", [[], [np.nan], [[1.0]]])
def test_bad_scores(bad):
    with pytest.raises(InputError, match="inside must be a non-empty"):
        resampled(bad, {"sun": [1.0]})
    with pytest.raises(InputError, match=r"outside\['sun'\] must be a non-empty"):
        resampled([1.0], {"sun": bad})
    with pytest.raises(InputError, match="values must be a non-empty"):
        interval(bad)


def test_bad_parameters():
    with pytest.raises(ParameterError, match="n_samples must be a whole number of at least 1, got 0"):
        resampled([1.0], {}, n_samples=0)
    with pytest.raises(ParameterError, match="seed must be a whole number of at least 0, got -1"):
        resampled([1.0], {}, seed=-1)


def test_some_of_the_images_are_drawn_from_all_of_them():
    rng = np.random.default_rng(5)
    every, outside = rng.normal(1, 1, 60), rng.normal(0, 1, 50)
    rows = np.sort(rng.permutation(60)[:30])
    found = resampled(every[rows], {"x": outside}, rows=rows, n_all=60, n_samples=20)["x"]
    for sample in range(20):
        drawn = bootstrap._rng(0, f"id/{sample}", 60).integers(60, size=60)
        good = every[drawn[np.isin(drawn, rows)]]
        ood = bootstrap._rng(0, "ood/x", 50)
        bad = [outside[ood.integers(50, size=50)] for _ in range(sample + 1)][-1]
        assert found[sample] == pytest.approx([auroc(good, bad), fpr_at_tpr(good, bad)], abs=1e-12)
    assert_same(
        resampled(every, {"x": outside}, rows=np.arange(60), n_samples=3), resampled(every, {"x": outside}, n_samples=3)
    )


def test_halves_of_one_set_are_no_independent_sets():
    """The spread of a mean over random halves must be that of the whole set, or the interval is too narrow."""
    rng = np.random.default_rng(6)
    every, outside = rng.normal(1, 1, 200), rng.normal(0, 1, 5000)
    halves = [np.sort(rng.permutation(200)[:100]) for _ in range(8)]
    means = np.mean(
        [resampled(every[h], {"x": outside}, rows=h, n_all=200, n_samples=300)["x"][:, 0] for h in halves], axis=0
    )
    whole = resampled(every, {"x": outside}, n_samples=300)["x"][:, 0]
    assert means.std() == pytest.approx(whole.std(), rel=0.15)


def test_a_sample_always_has_an_image():
    found = resampled([1.0], {"x": [0.0]}, rows=[0], n_all=4, n_samples=50)["x"]
    np.testing.assert_array_equal(found, [[1.0, 0.0]] * 50)
