"""`outword.sklearn`: the methods that learn from ID vectors, by scikit-learn's conventions and its own checks."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from outword.detectors import DETECTORS, KNN
from outword.errors import ParameterError
from outword.metrics import auroc
from outword.sklearn import VectorOutlierDetector
from outword.testing import planted_world

WITH_CLASSES = ["ash", "energy", "entropy", "gradnorm", "maxlogit", "msp", "npos", "odin", "react", "var", "vim", "vos"]
WITHOUT = ["knn", "mahalanobis"]


@pytest.fixture(scope="module")
def world():
    return planted_world()


def expected_failures(estimator):
    return {"check_estimators_dtypes": "one row of its whole numbers is zero, and that has no direction"}


@parametrize_with_checks(
    [VectorOutlierDetector(), VectorOutlierDetector("knn", params={"k": 10})],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", [*WITHOUT, *WITH_CLASSES])
def test_every_method_on_id_vectors_can_be_had(method):
    world = planted_world(n_labels=8)
    params = DETECTORS[method].in_small_world
    found = VectorOutlierDetector(method, params=params).fit(world.train, world.classes)
    inside, outside = found.score_samples(world.id_images), found.score_samples(world.ood_images)
    assert auroc(inside, outside) > 0.95
    np.testing.assert_array_equal(found.decision_function(world.id_images), inside - found.offset_)
    np.testing.assert_array_equal(found.predict(world.id_images) == 1, inside >= found.offset_)


def test_those_are_all(world):
    def works(name):
        try:
            VectorOutlierDetector(name)._make()
        except ParameterError:
            return False
        return True

    assert sorted(name for name in DETECTORS if works(name)) == sorted([*WITHOUT, *WITH_CLASSES])
    for name in WITHOUT:
        VectorOutlierDetector(name).fit(world.train)
    with pytest.raises(ValueError, match="a head needs images of at least two classes, got 1"):
        VectorOutlierDetector("vim").fit(world.train)


def test_scores_are_those_of_the_method(world):
    found = VectorOutlierDetector("knn", params={"k": 3}).fit(world.train)
    np.testing.assert_array_equal(
        found.score_samples(world.ood_images), KNN(k=3).fit(images=world.train).score(world.ood_images)
    )
    named = VectorOutlierDetector().fit(world.train, [f"class {number:02}" for number in world.classes])
    numbered = VectorOutlierDetector().fit(world.train.tolist(), world.classes + 7)
    assert named.offset_ == numbered.offset_


@pytest.mark.parametrize("tpr", [0.8, 0.95])
def test_the_threshold_holds_for_rows_that_were_not_seen(tpr, world):
    found = VectorOutlierDetector(tpr=tpr).fit(world.train, world.classes)
    share = (found.predict(world.id_images) == 1).mean()
    known = (found.score_samples(world.id_images) >= np.quantile(found.score_samples(world.train), 1 - tpr)).mean()
    assert known < 0.5 < tpr - 0.03 < share < tpr + 0.12
    assert (found.predict(world.ood_images) == -1).all()


def test_pipelines_clones_searches_and_pickles(world):
    pipe = make_pipeline(PCA(40, random_state=0), VectorOutlierDetector("knn", params={"k": 2}))
    labels = pipe.fit(world.train).predict(world.ood_images)
    assert (labels == -1).mean() > 0.9 and is_outlier_detector(pipe[-1])
    copy = clone(pipe).set_params(vectoroutlierdetector__method="mahalanobis", vectoroutlierdetector__params=None)
    assert copy[-1].get_params() == {"method": "mahalanobis", "params": None, "tpr": 0.95}
    with pytest.raises(NotFittedError):
        copy[-1].predict(world.train)
    again = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(again.predict(world.ood_images), labels)
    inside = np.concatenate([world.train, world.id_images])
    search = GridSearchCV(
        VectorOutlierDetector("knn"),
        {"params": [{"k": 1}, {"k": 5}]},
        scoring=lambda found, rows, _=None: found.score_samples(rows).mean(),
        cv=2,
    )
    assert search.fit(inside).best_params_ == {"params": {"k": 1}}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"method": "mahalanobs"}, 'unknown method "mahalanobs". hint: did you mean "mahalanobis"'),
        (
            {"method": "debiased"},
            "learns from ID vectors alone, and debiased needs labels, wild words",
        ),
        ({"method": "vim", "params": {"head": "labels"}}, "vim needs labels"),
        ({"method": "knn", "params": {"m": 1}}, 'unknown parameter of knn "m"'),
        ({"method": "knn", "params": {"k": 0}}, "k must be a whole number"),
        ({"tpr": 0}, "tpr must be"),
        ({"tpr": 1.5}, "tpr must be"),
        ({"tpr": "all"}, "tpr must be a number above 0 and at most 1, got 'all'"),
    ],
)
def test_what_cannot_be_is_told_at_fit(arguments, told, world):
    with pytest.raises(ParameterError) as error:
        VectorOutlierDetector(**arguments).fit(world.train, world.classes)
    assert told in str(error.value)


@pytest.mark.parametrize("method", ["mahalanobis", "vim"])
def test_a_row_that_is_alone_in_its_class_takes_part_but_in_the_threshold(method, world):
    rows = np.concatenate([world.train[:20], -world.train[:1]])
    alone = VectorOutlierDetector(method).fit(rows, [0] * 10 + [1] * 10 + [2])
    assert len(alone.scorer_.classes_) == 3 and alone.predict(rows)[-1] == 1


@pytest.mark.parametrize("method", ["mahalanobis", "vim"])
def test_fit_predict_learns_the_classes(method, world):
    alone, both = VectorOutlierDetector(method), VectorOutlierDetector(method)
    found = both.fit_predict(world.train, world.classes)
    np.testing.assert_array_equal(found, alone.fit(world.train, world.classes).predict(world.train))
    assert both.offset_ == alone.offset_
    assert len(both.scorer_.classes_) == len(np.unique(world.classes))


def test_classes_are_nothing_to_a_method_without_them(world):
    found = VectorOutlierDetector("knn").fit(world.train, np.arange(len(world.train)))
    assert found.offset_ == VectorOutlierDetector("knn").fit(world.train).offset_


def test_rows_and_classes_that_make_no_sense(world):
    with pytest.raises(ValueError, match="minimum of 5"):
        VectorOutlierDetector().fit(world.train[:4])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        VectorOutlierDetector().fit(world.train, world.classes[1:])
    with pytest.raises(ValueError, match="Unknown label type"):
        VectorOutlierDetector().fit(world.train, world.train[:, 0])
    with pytest.raises(ValueError, match="expecting 48 features"):
        VectorOutlierDetector().fit(world.train).predict(world.train[:, :5])
    with pytest.raises(ValueError, match="without any spread"):
        VectorOutlierDetector().fit(np.ones((20, 3)))
    assert VectorOutlierDetector().fit(world.train[:5]).predict(world.train[:5]).shape == (5,)
