"""What people wear, and which labels stand for persons."""

import pytest

from outword.words.kinds import understand
from outword.words.labels import check_labels
from outword.words.nouns import nouns
from outword.words.worn import PERSONS, WORN, is_of_persons, means_persons, worn_names


@pytest.mark.parametrize(
    ("label", "stands"),
    [
        ("person", True),
        ("persons", True),
        ("human", True),
        ("people", True),
        ("nurse", False),  # clothes do not tell who is one
        ("woman", False),
        ("dog", False),
        ("blorp", False),  # which WordNet does not know
        ("person > nurse | cook", False),  # kinds by hand are what it stands for
    ],
)
def test_labels_that_stand_for_persons(label, stands):
    (meaning,) = understand(check_labels([label]), "off")
    assert means_persons(meaning) == stands


@pytest.mark.parametrize(("label", "shows"), [("person", True), ("nurse", True), ("woman", True), ("dog", False)])
def test_labels_of_some_persons(label, shows):
    (meaning,) = understand(check_labels([label]), "off")
    assert is_of_persons(meaning) == shows


def test_worn_names_are_visible_names_below_their_roots():
    net, names = nouns(), worn_names()
    roots = {net.by_wnid(wnid) for wnid in WORN}
    assert None not in roots
    assert all(net.by_wnid(wnid) is not None for wnid in PERSONS)
    assert all(roots.intersection(net.above(sense)) for sense in names.values())
    assert names.items() <= net.visible().items()
    assert {"ski mask", "sunglasses", "jersey", "necklace", "sandal"} <= names.keys()
    assert not {"dog", "hammer", "bag", "guitar"} & names.keys()
