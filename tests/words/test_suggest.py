"""Did you mean: the distance by hand and against a search, and what is suggested."""

from itertools import product

import pytest

from outword.words.suggest import distance, suggestions


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [("", "abc", 3), ("cat", "cat", 0), ("cat", "act", 1), ("ca", "abc", 2), ("kitten", "sitting", 3)],
)
def test_distance_by_hand(one, other, far):
    assert distance(one, other) == distance(other, one) == far


def test_distance_is_the_number_of_edits_that_a_search_needs():
    def edits(text):
        for i in range(len(text) + 1):
            yield from (text[:i] + letter + text[i:] for letter in "ab")
            yield from (text[:i] + letter + text[i + 1 :] for letter in "ab" if i < len(text))
            yield text[:i] + text[i + 1 :]
            yield text[:i] + text[i + 1 : i + 2] + text[i : i + 1] + text[i + 2 :]

    found, level = {"abba": 0}, ["abba"]
    for far in (1, 2, 3):
        level = [new for text in level for new in edits(text) if found.setdefault(new, far) == far]
    for length in range(5):
        for letters in product("ab", repeat=length):
            text = "".join(letters)
            if text in found:
                assert distance("abba", text) == found[text]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("daschund", ["dachshund"]),
        ("Golden Retreiver", ["golden retriever"]),
        ("helicoptor", ["helicopter"]),
        ("spagetti", ["spaghetti"]),
        ("xyzzyq", []),
        ("Kühlschrank", []),
        ("", []),
    ],
)
def test_what_is_suggested(typed, names):
    assert suggestions(typed) == names


def test_common_names_come_first():
    assert suggestions("hosre")[0] == "horse"
