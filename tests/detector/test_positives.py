"""What stands for labels: kinds label by label, the noun of a phrase, and the sense in what the encoder reads."""

import numpy as np
import pytest

from outword.detector.positives import label_coverage, make_positives
from outword.detector.recipe import resolve
from outword.encoders import get_encoder
from outword.vectors.names import name_vectors
from outword.words.labels import check_labels
from outword.words.prompts import get_prompts


@pytest.fixture(scope="module")
def mini():
    return get_encoder("mini")


def positives(encoder, *labels, kinds="auto"):
    typed = check_labels(labels)
    return make_positives(resolve(encoder, "grounded", {}, kinds=kinds), typed, label_coverage(encoder, typed))


def test_a_label_that_is_not_known_takes_nobody_elses_kinds_away(mini):
    kinds = {one.label: one.kinds for one in positives(mini, "dog", "receipt", "sedge").meanings}
    assert "beagle" in kinds["dog"] and not kinds["receipt"]
    assert kinds["dog"] == positives(mini, "dog").meanings[0].kinds
    assert not any(one.kinds for one in positives(mini, "dog", "receipt", kinds="off").meanings)


def test_a_phrase_stands_for_its_noun(mini):
    found = positives(mini, "black cat", "brown dog")
    alone = positives(mini, "cat", "dog")
    assert [one.kinds for one in found.meanings] == [one.kinds for one in alone.meanings]
    assert [one.sense for one in found.meanings] == [one.sense for one in alone.meanings]
    np.testing.assert_array_equal(found.vectors[0], alone.vectors[0])  # a black cat is a fisher for WordNet: read "cat"
    assert label_coverage(mini, check_labels(["black cat", "brown dog"])) == {
        "black cat": "known",
        "brown dog": "head noun only",
    }


def test_a_sense_reaches_the_vector(mini):
    mouse = positives(mini, "mouse#device")
    np.testing.assert_array_equal(
        mouse.vectors[0], name_vectors(mini, get_prompts(mini.prompts), ["computer mouse"])[0]
    )
    assert mouse.rows == ["mouse"] and mouse.meanings[0].read == "computer mouse"
    assert label_coverage(mini, check_labels(["mouse#device", "mouse"])) == {
        "mouse#device": "known",
        "mouse": "through rodent",
    }


def test_two_labels_of_one_name_have_different_senses(mini):
    device, animal = positives(mini, "mouse#device", "mouse").meanings
    assert device.sense != animal.sense == positives(mini, "mouse").meanings[0].sense


def test_no_name_is_read_that_the_encoder_knows_worse(mini):
    corn = positives(mini, "corn#n07731952").meanings[0]
    assert (corn.names, corn.read) == (("corn",), "")  # "edible corn" is none of its names
    assert label_coverage(mini, check_labels(["corn"])) == {"corn": "known"}
