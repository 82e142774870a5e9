"""`outword tune`: a choice and a cut that no judged photo had a part in, on vectors that are made up and on photos."""

import shutil
from itertools import combinations, count
from statistics import NormalDist

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import outword
from conftest import PHOTOS
from outword.choosing.compare import Tried, applicable
from outword.choosing.folds import FOLDS, Final, Share, Trial, best_of, expected
from outword.choosing.photos import numbered
from outword.choosing.tune import OUTSIDE, STAND_IN, tune, tune_vectors, unrelated
from outword.encoders import get_encoder
from outword.errors import InputError, ParameterError
from outword.maths.thresholds import fit_threshold, share_bounds
from outword.vectors.id_images import IdImages
from outword.vectors.reference import Reference, find_reference
from outword.words.labels import check_labels

LABELS = ["tabby cat", "espresso", "space shuttle"]
MINI = get_encoder("mini")
TEN = ["astronaut", "camera", "cat", "clock", "coffee", "helmet", "raccoon", "rocket", "shuttle", "tripod"]
OTHERS = ["brick", "cell", "galaxies", "grass", "gravel", "leaves", "retina", "stairs"]


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def noise(n, seed, centre=0.0):
    """Vectors without any meaning, around a centre."""
    return unit(np.random.default_rng(seed).standard_normal((n, MINI.dim)) + centre)


def clusters(n, seed):
    """Three classes that lie where their names do not, and which class each vector is of."""
    centres = 2 * np.random.default_rng(99).standard_normal((3, MINI.dim))
    shown = np.arange(n) % 3
    return unit(np.random.default_rng(seed).standard_normal((n, MINI.dim)) + centres[shown]), shown


def choose(methods, inside, outside, classes=None, name=OUTSIDE, **options):
    """What comes of vectors."""
    own = IdImages(inside, classes, {} if classes is None else dict.fromkeys(LABELS, 1), [])
    others = numbered(name, outside)
    recipes = applicable([Tried(method) for method in methods], MINI, id_images=own)
    assert len(recipes) == len(methods)
    return tune_vectors(recipes, check_labels(LABELS), own, others, **options)


@pytest.mark.parametrize("tpr", [None, 0.9])
def test_where_there_is_nothing_to_learn_nothing_is_promised(tpr):
    methods = ["mcm", "msp", "maxlogit", "energy", "entropy", "gradnorm", "knn", "vim", "mahalanobis"]
    found = choose(methods, noise(60, 0), noise(60, 1), np.arange(60) % 3, tpr=tpr)
    assert 0.75 < found.tpr.value + found.tnr.value < 1.25  # a method judges photos that it was fitted on by 2
    assert found.candidates[0].auroc == max(one.auroc for one in found.candidates) > 0.5  # it looks better than it is


def test_photos_with_classes_beat_names_that_do_not_fit_and_what_is_told_comes_true():
    inside, classes = clusters(90, 0)
    found = choose(["mcm", "knn", "mahalanobis"], inside, noise(80, 1), classes)
    best = found.candidates[0]
    assert best.name in ("knn", "mahalanobis") and found.detector.method == best.name
    assert [one.name for one in found.candidates][-1] == "mcm"
    assert found.tpr.low <= found.tpr.value <= found.tpr.high and found.tpr.n == 90 and found.tnr.n == 80
    scores = found.detector.scorer.score
    new_in, new_out = scores(clusters(300, 2)[0]), scores(noise(300, 3))
    assert found.tpr.low - 0.05 < (new_in >= found.detector.threshold).mean() < found.tpr.high + 0.05
    assert found.tnr.low - 0.05 < (new_out < found.detector.threshold).mean() < found.tnr.high + 0.05
    assert found.reason.startswith(f"{best.name} is chosen from 3 methods") and found.reason.count(". ") == 1
    assert f"{found.tpr} of yours in" in found.reason


def test_the_cut_by_hand():
    """For a method on names, nothing is fitted, and the threshold is that of all scores."""
    from outword.maths.thresholds import fit_balanced, fit_threshold

    inside, outside = noise(40, 0, 0.3), noise(30, 1)
    scores = outword.fit(LABELS, method="maxlogit").scorer.score
    found = choose(["maxlogit"], inside, outside)
    assert found.detector.threshold == fit_balanced(scores(inside), scores(outside)).value
    assert found.detector.how_cut == "both errors equal on 40 photos of the classes and 30 of other things"
    assert found.reason.startswith("maxlogit is the only method that applies. Expected")
    found = choose(["maxlogit"], inside, outside, tpr=0.8)
    assert found.detector.threshold == fit_threshold(scores(inside), 0.8, others=scores(outside)).value


def test_equals_are_decided_by_the_list_of_methods():
    found = choose(["msp", "maxlogit", "energy"], unit(np.eye(20, MINI.dim) + 9), unit(np.eye(20, MINI.dim) - 9))
    assert [(one.name, one.auroc) for one in found.candidates] == [("maxlogit", 1.0), ("energy", 1.0), ("msp", 0.0)]
    assert "AUROC 1.0000, as 1 that comes after it in the list of methods" in found.reason


def test_few_photos_of_other_things_leave_a_wide_interval():
    told = " ".join(choose(["maxlogit"], noise(200, 0), noise(12, 1)).warnings)
    assert "the expected TNR is uncertain: it lies between 0." in told
    told = " ".join(choose(["maxlogit"], noise(12, 0), noise(200, 1)).warnings)
    assert "12 photos leave the threshold uncertain: the true TPR lies between" in told


def test_the_number_of_threads_changes_no_bit():
    inside, classes = clusters(60, 0)
    marks = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            found = choose(["mahalanobis"], inside, noise(40, 1), classes)  # its sums hang on them by themselves
        marks.add((found.detector.fingerprint, found.tpr, found.tnr, found.candidates))
    assert len(marks) == 1


def test_methods_that_cannot_score_are_left_out():
    told = []
    own = IdImages(np.full_like(noise(12, 0), np.nan), None, {}, [])
    others = numbered(OUTSIDE, noise(12, 1))
    recipes = applicable([Tried("mcm"), Tried("knn")], MINI, id_images=own)
    with pytest.raises(InputError, match="there must be a method that applies"):
        tune_vectors(recipes, check_labels(LABELS), own, others, tell=told.append)
    assert [line.split(": ")[:2] for line in told] == [["left out", name] for name in recipes]


def test_a_share():
    flags = np.array([True] * 19 + [False])
    share = Share.of(flags, 0.95)
    assert (share.value, share.n, share.low) == (0.95, 20, share_bounds(20, 18)[0])
    assert round(share.low, 3) == 0.717 and round(share.high, 3) == 0.997
    assert str(share) == "95.0 % (71.7 to 99.7)"
    chosen = Share.of(flags, 0.95, lost=0.1)
    assert (chosen.value, chosen.low, chosen.high) == pytest.approx((0.85, share.low - 0.1, share.high))
    moved = Share.of(flags, 0.95, shift=-0.2)
    assert (moved.value, moved.low, moved.high) == pytest.approx((0.95, share.low - 0.2, share.high))
    assert Share.of(flags, 0.95, chosen=5).low == share_bounds(20, 18, 0.98)[0] < share.low
    assert Share.of(flags, 0.95, shift=0.2).high == 1 and Share.of(flags, 0.2).value == share.low


def one_trial(rng, n, n_others, gap=2.0, name="names"):
    """A method that looks at no photos, on scores of photos of the classes and of other things."""
    inside, outside = rng.normal(gap, 1, n), rng.normal(0, 1, n_others)
    outs = [frozenset(some) for size in (1, 2) for some in combinations(range(FOLDS), size)]
    folds = np.arange(n) % FOLDS, np.arange(n_others) % FOLDS
    return Trial(name, None, folds, dict.fromkeys(outs, (inside, outside))), inside, outside


@pytest.mark.parametrize("n", [20, 50])
def test_intervals_hold_in_a_world_that_is_known(n):
    """The second lowest of 20 scores is no lower than the lowest of 16: TNR was told too low, as of another cut."""
    rng, held = np.random.default_rng(n), []
    for _ in range(60):
        trial, inside, outside = one_trial(rng, n, 200)
        cut = fit_threshold(inside, 0.95, others=outside).value
        tpr, tnr = expected(trial, [trial] * FOLDS, Final(inside, outside, outside, cut), 0.95)
        true = 1 - NormalDist(2).cdf(cut), NormalDist().cdf(cut)
        held.append([share.low <= own <= share.high for share, own in zip((tpr, tnr), true, strict=True)])
    assert (np.mean(held, axis=0) >= 0.85).all()


def test_what_a_choice_loses_is_in_the_interval():
    rng = np.random.default_rng(0)
    trials = [one_trial(rng, 40, 40, 1.0, str(number))[0] for number in range(5)]
    best, choices = best_of(trials), [best_of(trials, fold) for fold in range(FOLDS)]
    inside, outside = best.unseen()
    cut = fit_threshold(inside, 0.9, others=outside).value
    final = Final(inside, outside, outside, cut)
    alone, chosen = (expected(best, some, final, 0.9) for some in ([best] * FOLDS, trials))
    assert chosen[1].low < alone[1].low and chosen[1].high > alone[1].high  # for five methods at once
    assert expected(best, choices, final, 0.9)[0].low <= alone[0].low


def test_tnr_is_of_the_detector_itself():
    """Photos of other things are never fitted on: the method as fitted on all judges them as it judges new ones."""
    inside, classes = clusters(30, 0)
    others = noise(60, 1)
    found = choose(["knn"], inside, others, classes)
    out = found.detector.scorer.score(others) < found.detector.threshold
    assert found.tnr.value == pytest.approx(out.mean())
    assert (found.detector.calibration_.low, found.detector.calibration_.high) == (found.tpr.low, found.tpr.high)


def test_look_alikes_of_a_reference_without_names_are_told():
    found, told = find_reference(MINI), []
    nothing = ("",) * len(found)
    none = IdImages(np.zeros((0, MINI.dim), np.float32), None, {}, [])
    unrelated(MINI, Reference(found.vectors, nothing, nothing, nothing, ""), check_labels(["dog"]), none, told.append)
    assert "photos of the reference look like your classes and have no names" in told[0]


def test_the_reference_without_the_labels_and_without_the_users_photos():
    reference = find_reference(MINI)
    labels = check_labels(["dog", "cat"])
    none = IdImages(np.zeros((0, MINI.dim), np.float32), None, {}, [])
    rest = unrelated(MINI, reference, labels, none)
    assert rest.name == STAND_IN and len(reference) / 2 < len(rest.paths) < len(reference)
    mine = IdImages(unit(rest.vectors[:7].astype(np.float64)), None, {}, [])
    assert unrelated(MINI, reference, labels, mine).paths == rest.paths[7:]
    few = Reference(reference.vectors[:99], *(part[:99] for part in (reference.names, reference.wnids)), ("",) * 99, "")
    with pytest.raises(InputError, match="at least 100 photos of the reference"):
        unrelated(MINI, few, labels, none)


# photos


def lay(folder, names):
    folder.mkdir(parents=True)
    for name in names:
        shutil.copy(PHOTOS / f"{name}.jpg", folder)
    return folder


@pytest.fixture(scope="module")
def ten(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("photos") / "mine", TEN)


@pytest.fixture(scope="module")
def by_reference(ten):
    return tune(LABELS, ten, methods=["grounded", "mcm", "knn", "vim"])


def test_files_in_another_order_under_other_names_give_the_same(ten, by_reference, tmp_path):
    assert by_reference.stand_in and "ordinary photos (the reference) out" in by_reference.reason
    numbers = count(100, -1)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    for place, path in enumerate(sorted(ten.iterdir())):
        shutil.copy(path, tmp_path / "ab"[place % 2] / f"{next(numbers)}.jpg")
    shutil.copy(next(ten.iterdir()), tmp_path / "b" / "twice.jpg")
    told = []
    given = [tmp_path / "b", tmp_path / "a"]
    again = tune(LABELS, given, methods=["vim", "knn", "mcm", "grounded"], tell=told.append)
    assert again.candidates == by_reference.candidates
    assert again.detector.calibration_ == by_reference.detector.calibration_
    assert "1 of 11 photos are there more than once, and count once" in told


def test_without_class_folders_what_learns_classes_takes_no_part(ten):
    told = []
    found = tune(LABELS, ten, methods=["mahalanobis", "maxlogit", "adaneg", "zoc"], tell=told.append)
    assert [one.name for one in found.candidates] == ["maxlogit"]
    lines = "\n".join(told)
    assert "left out: mahalanobis: mahalanobis needs ID images with labels" in lines
    assert "left out: adaneg: it looks at photos scored before, and what is compared are vectors" in lines
    assert "left out: zoc: it looks at words per image" in lines


def test_class_folders_let_the_methods_in_that_learn_classes(tmp_path):
    for number, name in enumerate(TEN):
        label = LABELS[number % 2].replace(" ", "_")
        (tmp_path / label).mkdir(exist_ok=True)
        shutil.copy(PHOTOS / f"{name}.jpg", tmp_path / label)
    with pytest.warns(UserWarning, match="no ID image shows space shuttle"):
        found = tune(LABELS, tmp_path, methods=["mahalanobis"])
    assert found.detector.method == "mahalanobis" and found.detector.card.id_images.count == 10
    with pytest.raises(InputError, match="10 of 10 photos are among those that mahalanobis was fitted on"):
        found.detector.calibrate(sorted(tmp_path.glob("*/*.jpg")))


def test_what_is_too_little_or_wrong(ten, tmp_path):
    nine, few = lay(tmp_path / "nine", TEN[:9]), lay(tmp_path / "few", OTHERS[:3])
    both = lay(tmp_path / "both", [*OTHERS, *TEN[:3]])
    for folder in (nine, few, both):
        (folder / "broken.jpg").write_bytes(b"no photo")
    with (
        pytest.warns(UserWarning, match="1 of 10 ID images are left out"),
        pytest.raises(InputError, match="5 folds need at least 10 different photos of the classes, got 9"),
    ):
        tune(LABELS, nine, methods=["mcm"])
    with pytest.raises(InputError, match="at least 10 different photos of other things, got 3"):
        tune(LABELS, ten, few, methods=["mcm"])
    with pytest.raises(InputError, match="3 photos are both among those of the classes and among those of other"):
        tune(LABELS, ten, both, methods=["mcm"])
    with pytest.raises(InputError, match="there is nothing at"):
        tune(LABELS, tmp_path / "nowhere")
    with pytest.raises(InputError, match="world-s has no reference to stand in for them"):
        tune(LABELS, ten, encoder="world-s", methods=["mcm"])
    with pytest.raises(InputError, match="there must be a method that applies"):
        tune(LABELS, ten, methods=["mahalanobis"])
    with pytest.raises(ParameterError, match="tpr must be a number above 0 and at most 1, got 2"):
        tune(LABELS, ten, tpr=2)
    with pytest.raises(ParameterError, match='unknown method "kn"'):
        tune(LABELS, ten, methods=["kn"])
