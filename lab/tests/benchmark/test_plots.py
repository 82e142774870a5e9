import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from helpers.fabricated import MINI, config, run, suite
from outword.errors import MissingExtraError
from outword.metrics import auroc
from outword_lab.benchmark.run.results import Outcome, Results
from outword_lab.benchmark.run.suite import Entry, Sweep
from outword_lab.benchmark.show.method_plots import POINTS, dots, histograms, roc, roc_curves, score_range, score_scale
from outword_lab.benchmark.show.plots import sweeps, write_plots


def drawn(panel):
    axes = Figure().add_subplot()
    handles = panel(axes)
    return axes, handles


@pytest.fixture
def outcome(tmp_path):
    methods = ["debiased", "mcm", *(Entry("mcm", name=f"mcm {i}") for i in range(6))]
    ahead = {"debiased": 0.5, "mcm": 3.0} | {f"mcm {i}": 1.0 + 0.2 * i for i in range(6)}
    return run(tmp_path / "run", suite(methods, seeds=1), ahead=ahead)


def test_roc_has_the_area_of_auroc():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, 1, 3000).round(2), rng.normal(0, 1, 2000).round(2)
    inside[:5], outside[:5] = np.inf, -np.inf
    false, true = roc(inside, outside)
    assert len(false) <= POINTS
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    area = (np.diff(false) * (true[1:] + true[:-1]) / 2).sum()
    assert area == pytest.approx(auroc(inside, outside), abs=1e-4)


def test_roc_of_equal_scores_is_the_diagonal():
    false, true = roc(np.zeros(3), np.zeros(5))
    assert false.tolist() == true.tolist() == [0, 1]


def test_dots_have_the_best_on_top(outcome):
    picture = dots(outcome, MINI, "dots", "")
    axes, _ = drawn(picture.panels[0])
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["mcm", *(f"mcm {i}" for i in reversed(range(6))), "debiased"]
    assert axes.yaxis_inverted()
    lines = axes.get_lines()  # an interval and a dot for each
    ends = np.array([line.get_xdata() for line in lines[::2]])
    means = np.array([line.get_xdata()[0] for line in lines[1::2]])
    assert (means[:-1] >= means[1:]).all()
    assert ((ends[:, 0] <= means) & (means <= ends[:, 1])).all()
    assert means[0] == pytest.approx(100 * np.mean([r.auroc for r in outcome.select(entry="mcm")]))


def test_dots_mark_methods_that_see_images(outcome):
    assert drawn(dots(outcome, MINI, "dots", "").panels[0])[1] == []
    sees = {"mcm": {"needs": ["ID images"]}, "mcm 5": {"sees_order": True}}
    rows = [replace(row, config=config(row.entry, **sees.get(row.entry, {}))) for row in outcome.rows]
    axes, handles = drawn(dots(replace(outcome, rows=rows), MINI, "dots", "").panels[1])
    assert [handle.get_label() for handle in handles] == ["fitted on ID images", "learns from the test images"]
    faces = [line.get_markerfacecolor() for line in axes.get_lines()[1::2]]
    assert [face == "white" for face in faces] == [True, True] + 6 * [False]
    assert [handle.get_marker() for handle in handles] == [line.get_marker() for line in axes.get_lines()[1:4:2]]


def test_curves_of_the_best_and_the_papers(outcome):
    picture = roc_curves(outcome, MINI, "roc", "")
    assert len(picture.panels) == 2
    axes, _ = drawn(picture.panels[1])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label.split("  ")[0] for label in labels] == ["mcm", "mcm 5", "mcm 4", "mcm 3", "mcm 2", "debiased"]
    assert labels[0] == f"mcm  {100 * outcome.select(entry='mcm', ood='far')[0].auroc:.2f}"
    assert axes.get_title() == "far"
    assert axes.get_legend().get_title().get_text() == "AUROC, % (seed 0)"


def test_histograms_drop_infinities_and_say_so(outcome, tmp_path):
    row = outcome.select(entry="mcm", ood="far")[0]
    inside, outside = outcome.scores(row)
    infinite = np.append(outside, [-np.inf, -np.inf])
    scores = {"id": np.append(inside, np.inf), "ood/near": outside, "ood/far": infinite}
    Results(outcome.folder).keep(row.cell, scores, None)
    pictures = histograms(outcome, MINI, "histogram", "")
    assert [picture.name for picture in pictures] == ["histogram-1", "histogram-2"]
    axes, handles = drawn(pictures[0].panels[1])
    assert "3 infinite ones not shown" in axes.get_xlabel()
    assert axes.get_title() == "mcm: ID against far"
    assert [handle.get_label() for handle in handles] == ["ID", "OOD", "accepts 95 % of ID"]
    assert "infinite" not in drawn(pictures[1].panels[1])[0].get_xlabel()


SPREAD = np.linspace(0.01, 1, 100)


@pytest.mark.parametrize(
    ("inside", "outside", "scale"),
    [
        (SPREAD, SPREAD, "linear"),
        (SPREAD, SPREAD**6, "log"),
        (SPREAD, np.append(SPREAD**6, 0.0), "symlog"),
        (-(SPREAD**6), -SPREAD, "symlog"),
        (SPREAD, np.zeros(100), "symlog"),
        (np.zeros(9), np.zeros(9), "linear"),
        (np.full(3, np.inf), np.full(3, -np.inf), "linear"),
    ],
)
def test_scores_at_one_end_have_a_logarithmic_axis(inside, outside, scale):
    assert score_scale([(inside, outside)])["value"] == scale


@pytest.mark.parametrize(("lowest", "scale"), [(1e-5, "log"), (-1e-5, "symlog"), (-np.inf, "log")])
def test_histograms_of_squeezed_scores(outcome, lowest, scale):
    row = outcome.select(entry="mcm", ood="far")[0]
    outside = np.append(np.geomspace(1e-5, 1, 99), lowest)
    Results(outcome.folder).keep(row.cell, {"id": SPREAD, "ood/near": SPREAD, "ood/far": outside}, None)
    for panel in histograms(outcome, MINI, "histogram", "")[0].panels:
        axes, _ = drawn(panel)
        assert axes.get_xscale() == scale  # the same for all sets
        assert "logarithmic axis" in axes.get_xlabel()
    counts, edges, _ = axes.patches[-1].get_data()
    assert (np.diff(edges) > 0).all()
    assert sum(counts) == pytest.approx(np.isfinite(outside).mean() * 100, abs=1)  # outliers are cut off
    assert max(counts) < 20  # on a linear axis two of three lie in one bin


@pytest.mark.parametrize(
    ("inside", "outside"),
    [([0.0], [0.0]), ([1e9, 1e9], [1e9]), ([np.inf], [-np.inf]), ([1e-12, 2e-12], [0.0]), ([np.inf, 1.0], [0.5])],
)
def test_the_range_of_few_scores_has_room(inside, outside):
    low, high = score_range(np.array(inside), np.array(outside))
    assert np.isfinite([low, high]).all()
    assert high > low
    assert (np.diff(np.histogram([], 40, (low, high))[1]) > 0).all()


def test_an_outlier_does_not_stretch_the_range():
    scores = np.linspace(0, 1, 2000)
    low, high = score_range(np.append(scores, 1e6), scores)
    assert -0.1 < low < high < 1.1


def swept(tmp_path, parameter, values):
    own = suite(["debiased"], kind="sweep", sweep=(Sweep(parameter, tuple(values)),))
    found = run(tmp_path / "run", own, points={f"{parameter}={v:g}": 0.2 * i for i, v in enumerate(values)}, samples=5)
    return found, sweeps(found, MINI, "debiased", "sweep", "")


@pytest.mark.parametrize(
    ("parameter", "values", "scale"),
    [
        ("tau", (0.1, 0.5, 0.9), "linear"),
        ("alpha", (1, 10, 100), "log"),
        ("alpha", (10, 100, 150), "linear"),
        ("sigma", (0, 0.001, 0.1), "symlog"),
        ("K", (5,), "linear"),
    ],
)
def test_sweeps(tmp_path, parameter, values, scale):
    outcome, picture = swept(tmp_path, parameter, values)
    axes, handles = drawn(picture.panels[0])
    assert axes.get_xscale() == scale
    assert [text.get_text() for text in axes.get_xticklabels()] == [f"{value:g}" for value in values]
    labels = [handle.get_label() for handle in handles]
    assert labels == ["mean AUROC", "mean FPR95", "near", "far"]
    mean = handles[0].get_ydata()
    first = [row.auroc for row in outcome.select(point=f"{parameter}={values[0]:g}")]
    assert mean[0] == pytest.approx(100 * np.mean(first))
    assert all(a < b for a, b in pairwise(mean))
    low, high = axes.get_xlim()
    assert low < min(values) <= max(values) < high


def test_files_are_whole_equal_and_named(outcome, tmp_path):
    paths = write_plots(outcome, tmp_path / "a")
    again = write_plots(outcome, tmp_path / "b")
    names = [path.relative_to(tmp_path / "a" / "plots").as_posix() for path in paths]
    assert names[:4] == ["dots-1.svg", "dots-1.png", "panels/dots-1.1.svg", "panels/dots-1.2.svg"]
    assert "panels/roc-1.2.svg" in names
    assert "histogram-1-2.png" in names
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.width > 1000
        else:
            assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_odd_names_do_not_stop_a_plot(tmp_path):
    odd = "a$b\n\udce9 \u4e2d"
    outcome = run(tmp_path / "run", suite(ood=("far",), seeds=1), titles={"far": odd}, samples=5, n=20)
    assert "\\udce9" in drawn(roc_curves(outcome, MINI, "roc", "").panels[0])[0].get_title()
    assert len(write_plots(outcome, tmp_path)) == 10


def test_nothing_measured_gives_no_plot(tmp_path):
    assert write_plots(Outcome(suite(), tmp_path, []), tmp_path) == []


def test_pyplot_is_left_alone():
    code = "import sys, outword_lab.benchmark.show.plots; print([m for m in sys.modules if m.startswith('matplotlib')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_matplotlib(outcome, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\[bench\]"):
        write_plots(outcome, tmp_path)
