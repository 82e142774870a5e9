"""A label of persons is seen by what people wear, where the encoder does not know persons."""

import numpy as np
import pytest

from outword.detector.fitting import fit, prepare
from outword.detector.positives import make_positives
from outword.detector.recipe import resolve
from outword.encoders import get_encoder
from outword.vectors.names import are_known, name_vectors
from outword.words.labels import check_labels
from outword.words.prompts import get_prompts
from outword.words.worn import worn_names

MINI = get_encoder("mini")


def kinds_of(label, labels, **options):
    """The worn names among the kinds of a label."""
    made = prepare(resolve(MINI, "grounded", {}, **options), labels)
    (meaning,) = [one for one in made.card.meanings if one.label == label]
    return set(meaning.kinds) & worn_names().keys(), made


@pytest.mark.parametrize("labels", [["person"], ["person", "dog"], ["dog", "people"]])
def test_worn_names_are_kinds_of_persons_and_do_not_compete(labels):
    (label,) = {*labels} - {"dog"}
    worn, made = kinds_of(label, labels)
    known = {name for name in worn_names() if are_known(MINI, [name])[0]}
    assert worn == known
    assert len(worn) > 50
    assert not worn & {*made.wild}
    of_person = {row for row, owner in zip(made.rows, made.given["owners"], strict=True) if labels[owner] == label}
    assert worn <= of_person


def test_a_photo_of_what_is_worn_is_one_of_a_person():
    """A vector like that of "wig" stands for its photo."""
    photo = name_vectors(MINI, get_prompts(MINI.prompts), ["wig"])
    with_worn, without = (fit(["person", "dog"], kinds=kinds).scorer.score(photo)[0] for kinds in ("auto", "off"))
    assert with_worn > without + 5
    found = fit(["person", "dog"]).scorer.masses(photo)
    assert np.isclose(found[0, 2], 1 / MINI.temperature)  # the largest logit is that of the kind itself


def test_names_about_another_label_stay_out():
    worn, _ = kinds_of("person", ["person", "hat", "shoe"])
    assert "wig" in worn
    assert not worn & {"hat", "sombrero", "shoe", "running shoe", "sandal", "clothing", "headgear"}


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (["person", "dog"], {"kinds": "off"}),
        (["person", "dog"], {"kinds": "all"}),  # those of WordNet alone
        (["person", "woman"], {}),  # clothes cannot tell them apart
        (["person > ballplayer", "dog"], {}),
        (["nurse", "dog"], {}),
    ],
)
def test_lists_without_worn_names(labels, options):
    label = labels[0].partition(" ")[0]
    assert kinds_of(label, labels, **options)[0] == set()


def test_an_encoder_that_cannot_tell_what_it_knows_sees_persons_itself():
    recipe = resolve(MINI, "grounded", {})
    made = make_positives(recipe, check_labels(["person", "dog"]), coverage={})
    assert not {*made.rows} & (worn_names().keys() - {"person", "dog"})
