"""Labels of several rows: scores see rows, evidence sees labels, and who owns what is checked and kept."""

import copy

import numpy as np
import pytest

from outword.detectors import DETECTORS, MCM, MSP, Debiased, Energy, Grounded, Mahalanobis, NegLabel
from outword.errors import InputError
from outword.testing import planted_world

OWNERS = np.repeat(np.arange(5), [3, 1, 10, 2, 4])
METHODS = [Grounded(), Debiased(n_groups=3, sigma=0.1), NegLabel(n_groups=3), Energy(), MCM()]


@pytest.fixture(scope="module")
def world():
    return planted_world(n_labels=20, n_wild=60, n_images=30, dim=12)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_scores_see_rows_and_evidence_labels(method, world):
    plain, owned = (copy.copy(method).fit(world.labels, world.wild, owners=owners) for owners in (None, OWNERS))
    images = np.concatenate([world.id_images, world.ood_images])
    np.testing.assert_array_equal(owned.score(images), plain.score(images))
    rows, labels = (one.evidence(images, 20, 0.1) for one in (plain, owned))
    np.testing.assert_array_equal(rows.kinds, rows.labels)
    np.testing.assert_array_equal(labels.words, rows.words)
    shares = np.zeros((len(images), 20))
    np.put_along_axis(shares, rows.labels, rows.label_shares, 1)
    sums = np.stack([shares[:, label == OWNERS].sum(axis=1) for label in range(5)], axis=1)
    order = np.argsort(-sums, axis=1)
    np.testing.assert_allclose(labels.label_shares, np.take_along_axis(sums, order, 1), rtol=1e-9)
    np.testing.assert_array_equal(labels.labels, order)
    np.testing.assert_array_equal(OWNERS[labels.kinds], labels.labels)
    best = np.take_along_axis(shares, labels.kinds, 1)
    assert (best[:, :, None] >= np.where(labels.labels[:, :, None] == OWNERS, shares[:, None], 0)).all()
    scores, same = owned.begin(images, 20, 0.1)()
    np.testing.assert_array_equal(scores, owned.score(images))
    for part, other in zip(same, labels, strict=True):
        np.testing.assert_array_equal(part, other)


def test_one_row_each_is_no_owner_at_all(world):
    owned = NegLabel(n_groups=3).fit(world.labels, world.wild, owners=np.arange(20))
    plain = NegLabel(n_groups=3).fit(world.labels, world.wild)
    for part, other in zip(*(one.evidence(world.id_images, 3, 0.1) for one in (owned, plain)), strict=True):
        np.testing.assert_array_equal(part, other)


def test_owners_are_kept_and_forgotten(world):
    detector = Grounded().fit(world.labels, world.wild, owners=OWNERS.astype(np.int32))
    state = detector.state()
    np.testing.assert_array_equal(state["owners"], OWNERS)
    again = Grounded().restore(state)
    assert again.owners_.dtype == np.int64
    np.testing.assert_array_equal(
        again.evidence(world.id_images, 2, 0.1).labels, detector.evidence(world.id_images, 2, 0.1).labels
    )
    assert detector.relative().owners_ is detector.owners_
    assert "owners" not in detector.fit(world.labels, world.wild).state()
    assert detector.owners_ is None
    with pytest.raises(InputError, match="owners must begin at 0"):
        Grounded().restore(state | {"owners": OWNERS[::-1]})


@pytest.mark.parametrize(
    ("owners", "message"),
    [
        (OWNERS[:-1], r"owners must be \(20,\) integers, got shape \(19,\)"),
        (OWNERS.astype(float), "integers, got .*float64"),
        (OWNERS + 1, "begin at 0"),
        (np.where(OWNERS > 2, OWNERS + 1, OWNERS), "leave out no label"),
        (OWNERS[::-1], "not decrease"),
    ],
)
def test_bad_owners(owners, message, world):
    with pytest.raises(InputError, match=message):
        NegLabel(n_groups=3).fit(world.labels, world.wild, owners=owners)


def test_methods_that_learn_classes_from_images_take_no_owners(world):
    given = {"owners": OWNERS, "images": world.train, "image_labels": world.classes}
    for method in (Mahalanobis(), MSP(head="probe")):
        with pytest.raises(InputError, match="learns its classes from ID images, so every row must be a label"):
            method.fit(world.labels, **given)
    fitted = DETECTORS["knn"](k=5).fit(world.labels, **given)  # it does not look at the classes
    assert fitted.evidence(world.id_images, 9, 0.1).labels.shape == (30, 5)
