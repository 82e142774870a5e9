import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from outword.errors import InputError, ParameterError
from outword.maths.numerics import unit_rows
from outword_lab.benchmark.run.suite import Theorem
from outword_lab.benchmark.show.markup import WRITERS
from outword_lab.benchmark.theory import theory
from outword_lab.benchmark.theory.plot import theorem_figures
from outword_lab.benchmark.theory.tables import theorem_headline, theorem_tables
from outword_lab.benchmark.theory.theory import (
    Setting,
    Slope,
    bound,
    corrected_bound,
    curve_lines,
    exact_masses,
    hard_cases,
    make_setting,
    mini_setting,
    run_theorem,
    slope,
    synthetic_setting,
)

THEOREM = Theorem(sizes=(100, 1000, 10_000), scales=(0.1, 1.0), tau=0.5, draws=150, images=6)
EAST, WEST, NORTH = [[1.0, 0.0]], [[-1.0, 0.0]], [[0.0, 1.0]]


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    parts = [unit_rows(rng.standard_normal((n, 8))) for n in (5, 40, 30, 50)]
    return Setting("small", *parts)


@pytest.fixture(scope="module")
def curves():
    return run_theorem(THEOREM, [synthetic_setting(0.5, 6)])


def deviation(*vectors, scale, tau, lam=theory.LAMBDA, **drawn):
    return theory.deviation(exact_masses(Setting("", *map(np.array, vectors)), scale, tau, lam), **drawn)


def measured(world, **changed):
    given = {"scale": 3.0, "tau": 0.3, "m": 40, "n": 30, "draws": 50, "seed": 0} | changed
    return deviation(world.images, world.labels, world.positives, world.negatives, **given)


# deviation


def test_exact_means_leave_nothing(small):
    assert not measured(small, m=None, n=None).any()


def test_two_words_by_hand():
    # h is 1 for the label and the positive, 0 for the negative; P / lam = e / 2. One word of Q is either.
    given = {"scale": 1.0, "tau": 0.5, "m": 1, "n": None, "draws": 400, "seed": 0, "lam": 2.0}
    found = deviation(EAST, EAST, EAST, NORTH, **given)
    e = math.e
    exact, positive, negative = e / 2 + 1, e / 2 + e, e / 2 + (1 - e / 2) / 0.5
    assert set(found.ravel().round(10)) == {round(math.log(exact / own), 10) for own in (positive, negative)}
    assert abs((found > 0).mean() - 0.5) < 0.1  # four standard errors


def test_the_share_of_positives_in_q_is_tau():
    found = deviation(EAST, EAST, EAST, NORTH, scale=1.0, tau=0.2, m=1, n=None, draws=2000, seed=0, lam=2.0)
    assert abs((found < 0).mean() - 0.2) < 0.04


def test_a_denominator_that_is_not_positive_is_nan():
    # P / lam = e / 4 is less than tau e / (1 - tau) - 1 / (1 - tau) = e - 2: a draw of the negative has no logarithm.
    found = deviation(EAST, EAST, EAST, NORTH, scale=1.0, tau=0.5, m=1, n=None, draws=400, seed=0, lam=4.0)
    assert np.nanmax(found) < 0
    assert abs(np.isnan(found).mean() - 0.5) < 0.1


@pytest.mark.parametrize(("m", "n"), [(50, None), (None, 50), (50, 50)])
def test_sampled_means_are_unbiased(small, m, n):
    ratios = np.exp(-measured(small, scale=1.0, m=m, n=n, draws=4000))  # P + lam Lambda over its expectation
    errors = ratios.std(axis=0) / math.sqrt(len(ratios))
    assert (np.abs(ratios.mean(axis=0) - 1) < 4 * errors).all()


def test_a_large_sample_follows_the_normal_law():
    m, kappa, lam = 10**6, 1.0, 120.0
    found = deviation(EAST, WEST, EAST, WEST, scale=kappa, tau=0.5, m=m, n=None, draws=4000, seed=0, lam=lam)
    sd = 0.5 * (math.exp(kappa) - math.exp(-kappa)) / 0.5 / (math.exp(-kappa) * (1 + 1 / lam)) / math.sqrt(m)
    assert np.abs(found).mean() == pytest.approx(sd * math.sqrt(2 / math.pi), rel=0.05)


def test_blocks_do_not_matter(small, monkeypatch):
    whole = measured(small)
    monkeypatch.setattr("outword.maths.numerics.CELLS", 7 * 80)
    np.testing.assert_allclose(measured(small), whole, rtol=1e-9)


def test_a_scale_for_each_image(small):
    scales = [0.5, 1.0, 2.0, 20.0, 100.0]
    together = measured(small, scale=scales)
    for column, scale in enumerate(scales):
        np.testing.assert_allclose(together[:, column], measured(small, scale=scale)[:, column], rtol=1e-9)


def test_seeds(small):
    assert (measured(small) == measured(small)).all()
    assert (measured(small) != measured(small, seed=1)).any()


# bounds


def test_the_bounds_by_hand():
    assert bound(2.0, 0.25, 8, 2) == pytest.approx(
        4 / 3 * math.sqrt(math.pi * math.exp(6) / 16) + 1 / 3 * math.sqrt(math.pi * math.exp(6) / 4)
    )
    assert corrected_bound(2.0, 0.25, 4, 16) == pytest.approx((math.exp(4) - 1) / 2 * (4 / 3 / 2 + 1 / 3 / 4))


def test_the_printed_bound_fails_where_words_are_opposite():
    # All of P- and the label lie opposite the image, all of P+ on it: the largest variance over the smallest mean.
    for kappa, m, fails in ((1.0, 10**5, False), (3.0, 10**7, True)):
        found = deviation(EAST, WEST, EAST, WEST, scale=kappa, tau=0.5, m=m, n=None, draws=2000, seed=0)
        delta = np.abs(found).mean()
        assert (delta > 1.3 * bound(kappa, 0.5, m, None)) is np.bool_(fails)
        assert delta < corrected_bound(kappa, 0.5, m, None)


def test_each_score_breaks_the_printed_bound_for_a_wild_distribution_of_its_own():
    broken = {(case.cosine, case.floored): case.of_bound for case in hard_cases(draws=4000)}
    assert broken == pytest.approx(
        {(-1.0, False): 1.43, (-1.0, True): 0.65, (-0.98, False): 1.33, (-0.98, True): 1.28}, abs=0.04
    )
    assert all(case.of_corrected < 1 for case in hard_cases(draws=400))


def test_the_floor_by_hand():
    # One word of Q, on the image or opposite: Lambda is e or (e^-1 - e/2) / 0.5 < 0, which the floor makes e^-1.
    given = {"scale": 1.0, "tau": 0.5, "m": 1, "n": None, "draws": 50, "seed": 0, "lam": 2.0, "floored": True}
    found = deviation(EAST, WEST, EAST, WEST, **given)
    exact, high = math.exp(-1) * 1.5, math.exp(-1) / 2 + math.e
    assert set(found.ravel().round(10)) == {0.0, round(math.log(exact / high), 10)}


# slopes


def test_the_slope_of_a_power_law():
    sizes = [10, 30, 100, 1000]
    rng = np.random.default_rng(0)
    exact = 3.0 * np.array(sizes)[:, None] ** -0.7
    assert slope(sizes, exact * np.ones(5)) == Slope(-0.7, -0.7, -0.7, 10, 1000)
    many = slope(sizes, exact * rng.lognormal(sigma=0.5, size=(4, 400)))
    assert many.low < -0.7 < many.high
    assert many.low < many.value < many.high
    assert many.high - many.low < 0.05
    few = slope(sizes, exact * rng.lognormal(sigma=0.5, size=(4, 25)))
    assert few.high - few.low > 2 * (many.high - many.low)


@pytest.mark.parametrize(("sizes", "deltas"), [([1, 2], np.ones((2, 5))), ([1, 2, 3], np.zeros((3, 5)))])
def test_no_slope(sizes, deltas):
    assert slope(sizes, deltas) is None


# settings


def test_the_nearest_words_are_positive():
    words = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]]
    world = make_setting("w", EAST, EAST, words, tau=0.25)
    assert world.positives.tolist() == EAST
    assert world.negatives.tolist() == words[2:3] + words[1:2] + words[3:]
    with pytest.raises(InputError, match="4 words cannot be parted at tau"):
        make_setting("w", EAST, EAST, words, tau=0.1)


@pytest.mark.parametrize("make", [synthetic_setting, mini_setting])
def test_settings(make):
    world = make(0.25, 3)
    assert len(world.images) == 3
    words = len(world.positives) + len(world.negatives)
    assert len(world.positives) == round(0.25 * words) > 2000
    near, far = ((part @ world.labels.T).max(axis=1) for part in (world.positives, world.negatives))
    assert near.min() >= far.max()
    again = make(0.25, 3)
    assert (again.images == world.images).all() and (again.positives == world.positives).all()


# the experiment


def test_slopes_are_a_half(curves):
    assert [(c.setting, c.axis, c.scale) for c in curves[:3]] == [
        ("synthetic", "m", 0.1),
        ("synthetic", "m", 1.0),
        ("synthetic", "n", 0.1),
    ]
    for curve in curves:
        assert curve.slope.meets_goal
        assert curve.slope == curve.beyond
        assert -0.55 < curve.slope.low < curve.slope.value < curve.slope.high < -0.45
        assert all(p.low < p.mean < p.high and p.mean <= p.worst < p.corrected < p.bound for p in curve.points)


def test_delta_grows_with_the_scale_and_both_are_worse_than_one(curves):
    means = {(c.axis, c.scale): c.points[-1].mean for c in curves}
    assert means["m", 0.1] < means["m", 1.0]
    assert means["both", 1.0] > means["m", 1.0] > means["n", 1.0]


def test_a_curve_is_the_mean_of_deviations(small):
    theorem = replace(THEOREM, sizes=(10, 20, 30), scales=(2.0, 4.0), tau=0.3)
    curve = next(c for c in run_theorem(theorem, [small], seed=7) if (c.axis, c.scale) == ("both", 4.0))
    own = np.abs(measured(small, scale=4.0, m=20, n=20, draws=150, seed=(7, 2, 20)))
    assert curve.points[1].mean == pytest.approx(own.mean(), rel=1e-9)
    assert curve.points[1].worst == pytest.approx(own.mean(axis=0).max(), rel=1e-9)
    assert (curve.images, curve.labels, curve.words, curve.draws) == (5, 40, 80, 150)


def test_the_knee_by_hand():
    # e^h is e or 1, alike often; q has mean 1.859 and deviation 0.859, P / lam + Lambda mean e / 2 + 1.
    world = Setting("two", *map(np.array, (EAST, EAST, EAST, NORTH)))
    theorem = replace(THEOREM, scales=(1.0,), images=1)
    at_m, at_n, at_both = run_theorem(theorem, [world], lam=2.0)
    e = math.e
    assert at_m.knee == pytest.approx(max(((e - 1) / (e + 1)) ** 2, ((e - 1) / 2 / 0.5 / (e / 2 + 1)) ** 2))
    assert (at_n.knee, at_n.slope, at_n.points[0].mean) == (0.0, None, 0.0)  # P+ is one word
    assert at_both.knee == at_m.knee


def test_undefined_draws_are_counted_and_leave_the_slope():
    world = Setting("two", *map(np.array, (EAST, EAST, EAST, NORTH)))
    theorem = Theorem(sizes=(1, 400, 800, 1600), scales=(1.0,), tau=0.5, draws=100, images=1)
    at_m, *_ = run_theorem(theorem, [world], lam=4.0)
    assert 0.3 < at_m.points[0].undefined < 0.7
    assert at_m.points[0].mean > 0
    assert [p.undefined for p in at_m.points[1:]] == [0, 0, 0]
    assert (at_m.slope.first, at_m.slope.last) == (400, 1600)
    table = theorem_tables([at_m])[0]
    key = [column.key for column in table.columns].index("undefined")
    assert table.rows[0].cells[key].shown == f"{100 * at_m.points[0].undefined:.3g} %"


def test_draws_that_are_all_undefined():
    # One word of P- opposite the image: q is below tau g unless a positive is drawn, which is rare.
    world = Setting("rare", *map(np.array, (EAST, WEST, EAST, WEST)))
    theorem = Theorem(sizes=(1, 2, 3), scales=(20.0,), tau=0.01, draws=5, images=1)
    at_m, *_ = run_theorem(theorem, [world])
    assert at_m.points[0].undefined == 1
    assert (at_m.points[0].mean, at_m.points[0].low, at_m.points[0].worst) == (None, None, None)
    assert at_m.slope is None
    assert json.loads(curve_lines([at_m], commit="c")) == json.loads(json.dumps({**asdict(at_m), "commit": "c"}))
    assert "not measured" in WRITERS["md"](theorem_tables([at_m])[0])


def test_json_lines(curves):
    text = curve_lines(curves)
    assert len(text.splitlines()) == len(curves)
    assert json.loads(text.splitlines()[0])["points"][0]["size"] == 100
    assert [json.loads(line) for line in text.splitlines()] == json.loads(json.dumps([asdict(c) for c in curves]))
    assert curve_lines(run_theorem(THEOREM, [synthetic_setting(0.5, 6)])) == text


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sizes": (10, 100)}, r"sizes must be at least 3 .* got \[10, 100\]"),
        ({"sizes": (10, 10, 100)}, "sizes must be"),
        ({"sizes": (100, 10, 1000)}, "smallest first"),
        ({"sizes": (0, 10, 100)}, "sizes must be a whole number"),
        ({"scales": ()}, "scales must differ"),
        ({"scales": (1.0, 1.0)}, "scales must differ"),
        ({"scales": (1.0, 1000.0)}, "scales must be a number above 0 and at most 175"),
        ({"tau": 1.0}, "tau must be"),
        ({"draws": 0}, "draws must be"),
        ({"images": 0}, "images must be"),
    ],
)
def test_bad_theorem(small, changed, told):
    with pytest.raises(ParameterError, match=told):
        run_theorem(replace(THEOREM, **changed), [small])


# tables and the figure


def test_tables(curves):
    slopes, points = theorem_tables(curves)
    assert len(slopes.rows) == len(curves)
    assert len(points.rows) == 3 * len(curves)
    assert all(len(line.cells) == len(table.columns) for table in (slopes, points) for line in table.rows)
    first = WRITERS["csv"](slopes).splitlines()[1].split(",")
    assert first[:3] == ["synthetic", "0.1", "m"]
    assert float(first[3]) == pytest.approx(curves[0].slope.value)
    assert "τ = 0.5, λ = 120, 150 draws" in WRITERS["md"](slopes)


def test_the_figures_are_the_same_each_time(curves, tmp_path):
    paths = theorem_figures(curves, tmp_path / "a")
    names = [path.relative_to(tmp_path / "a" / "plots").as_posix() for path in paths]
    assert names == ["theorem2.svg", "theorem2.png", *(f"panels/theorem2.{number}.svg" for number in (1, 2, 3))]
    again = theorem_figures(curves, tmp_path / "b")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    for path in paths:
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
        assert b"dc:date" not in data


def test_the_headline(curves):
    told = theorem_headline(curves)
    assert told.startswith(
        "6 of 6 curves have a slope of −0.5 ± 0.05 over all sizes. 6 of 6 curves do from 10 knees on."
    )
    share = max(point.worst / point.bound for curve in curves for point in curve.points)
    assert f"The printed bound is broken nowhere: δ of the worst image is at most {share:.3g} of it." in told
    assert "vacuous" not in told


def test_the_headline_tells_what_does_not_hold(curves):
    steep = replace(curves[1], scale=9.0, slope=replace(curves[1].slope, value=-0.6), beyond=None)
    loose = [replace(point, bound=1.0, worst=2.5) for point in steep.points]
    told = theorem_headline([*curves[:1], steep, replace(steep, points=loose)])
    assert "1 of 3 curves have a slope of −0.5 ± 0.05 over all sizes, the others are at κ = 9 (2 of 2)." in told
    assert "1 of 1 curves do from 10 knees on; 2 have too few sizes for that." in told
    assert "The printed bound is broken at κ = 9: δ of the worst image is at most 2.5 of it." in told
    assert "vacuous" not in told
    told = theorem_headline([*curves[:1], replace(steep, points=loose)])
    assert "It is vacuous from κ = 9 on: no size that was measured brings it below 1" in told
