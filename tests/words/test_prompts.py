import pytest
from hypothesis import given
from hypothesis import strategies as st

from outword.errors import ParameterError
from outword.words.prompts import PROMPTS, get_prompts


@pytest.mark.parametrize("name", PROMPTS)
def test_every_template_has_one_place_for_the_word(name):
    prompts = get_prompts(name)
    assert prompts.name == name
    for templates in (prompts.noun, prompts.adjective, prompts.label):
        assert templates
        assert all(template.count("{}") == 1 for template in templates)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("paper", ["The nice cat."]),
        ("released", ["the nice cat"]),
        ("mcm", ["a photo of a cat"]),
        ("mini", ["a photo of a cat"]),
    ],
)
def test_labels_read_as_in_the_literature(name, expected):
    assert get_prompts(name).render(["cat"], ["label"]) == [expected]


def test_released_adjectives_have_their_own_template():
    assert get_prompts("released").render(["red"], ["adj"]) == [["This is a red photo"]]
    assert get_prompts("paper").render(["red"], ["adj"]) == [["The nice red."]]


def test_csp_has_eight_noun_and_four_adjective_templates():
    csp = get_prompts("csp")
    assert (len(csp.noun), len(csp.adjective), csp.label) == (8, 4, csp.noun)
    rendered = csp.render(["cat", "red scene"], ["noun", "adj"])
    assert [len(sentences) for sentences in rendered] == [8, 4]
    assert "a photo of the nice cat." in rendered[0]
    assert "a good photo of red scene" in rendered[1]


def test_a_template_of_your_own():
    own = get_prompts("a picture of a {}")
    assert own.render(["cat", "red"], ["noun", "adj"]) == [["a picture of a cat"], ["a picture of a red"]]


@pytest.mark.parametrize("template", ["a photo", "{} and {}", "a {0}", "{{}}", "", "a {} {", "a {name} {}"])
def test_a_template_without_exactly_one_place_is_refused(template):
    with pytest.raises(ParameterError, match=r"must hold \{\} exactly once"):
        get_prompts(template)


def test_a_misspelt_name_is_suggested():
    with pytest.raises(ParameterError, match='did you mean "paper"'):
        get_prompts("papre")


def test_words_and_kinds_must_match():
    with pytest.raises(ValueError, match="zip"):
        get_prompts("paper").render(["cat"], [])


@given(st.lists(st.text()))
def test_words_are_put_in_as_they_are(words):
    rendered = get_prompts("mcm").render(words, ["noun"] * len(words))
    assert rendered == [["a photo of a " + word] for word in words]
