"""Words per photo: from a file, from a callable, and their vectors."""

import json

import numpy as np
import pytest

from outword.encoders import get_encoder
from outword.errors import ImageError, InputError
from outword.vectors.wild import encode_words
from outword.words.prompts import get_prompts
from outword_lab.learning.photo_words import Photo, WordVectors, ask, read_words_per_image


def photo(name):
    return Photo(name, None, np.zeros(2, np.float32))


@pytest.fixture
def write(tmp_path):
    def written(*lines):
        path = tmp_path / "words.jsonl"
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
        return path

    return written


def test_a_photo_is_found_by_its_path_and_else_by_a_file_name_that_one_line_has(write):
    lines = [("a/1.jpg", "dog"), ("b/1.jpg", "cat"), ("b/2.jpg", "emu")]
    path = write(*({"path": name, "words": [word]} for name, word in lines), b"", {"image": "3.jpg", "words": []})
    source = read_words_per_image(path)
    *found, twice, never, nameless = source(
        map(photo, ["a/1.jpg", "b/1.jpg", "/data/b/2.jpg", "x.tar/3.jpg", "c/1.jpg", "4.jpg", ""])
    )
    assert found == [("dog",), ("cat",), ("emu",), ()]
    for error in (twice, never, nameless):
        assert isinstance(error, ImageError)
        assert error.message == f"no words for it in {path}"
    assert len(source.fingerprint) == 64


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", r"line 2 is no JSON: "),
        (b"\xff", r"line 2 is no JSON: .*utf-8"),
        (b"[" * 10_000, r"line 2 is no JSON: it is nested"),
        ([], r"line 2 must name its photo"),
        ({"words": []}, r"line 2 must name its photo"),
        ({"path": 3, "words": []}, r"line 2 must name its photo"),
        ({"path": "", "words": []}, r"line 2 must name its photo"),
        ({"path": "b.jpg"}, r"line 2 must have words"),
        ({"path": "b.jpg", "words": "dog"}, r"line 2 must have words"),
        ({"path": "b.jpg", "words": ["dog", 3]}, r"line 2 must have words"),
        ({"path": "b.jpg", "words": ["\ud800"]}, r"line 2 must have words"),
        ({"path": "a.jpg", "words": []}, r"line 2: 'a.jpg' was there before"),
    ],
)
def test_a_damaged_line_is_named(write, line, message):
    path = write({"path": "a.jpg", "words": ["dog"]}, line)
    with pytest.raises(InputError, match=message) as error:
        read_words_per_image(path)
    assert str(path) in error.value.message
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"none.jsonl cannot be read: No such file"):
        read_words_per_image(tmp_path / "none.jsonl")


def test_words_count_once_and_id_names_not_at_all():
    answers = [["Dog", "grey_cat", "dog ", " ", "Grey  Cat", "Pizza"], ImageError("none"), ()]
    first, error, nothing = ask(lambda photos: answers, [photo("a")] * 3, ["PIZZA", "emu"])
    assert (first, nothing, error.message) == (["Dog", "grey cat"], [], "none")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([], r"one list a photo \(1\), got 0 of them"),
        (None, r"one list a photo \(1\), got NoneType"),
        ("x", r"one list a photo \(1\), got"),
        (["dog"], r"the words of a photo must be a list, got 'dog'"),
        ([3], r"the words of a photo must be a list, got 3"),
        ([[3]], r"a word must be a text, got 3"),
    ],
)
def test_what_a_callable_must_give(answers, message):
    with pytest.raises(InputError, match=message):
        ask(lambda photos: answers, [photo("a")], [])


def test_each_word_is_encoded_once_and_few_are_kept(monkeypatch):
    encoder, prompts, encoded = get_encoder("mini"), get_prompts("zoc"), []

    def spy(encoder, sentences, *rest):
        encoded.append([texts[0] for texts in sentences])
        return encode_words(encoder, sentences, *rest)

    monkeypatch.setattr("outword_lab.learning.photo_words.encode_words", spy)
    vectors = WordVectors(encoder, prompts, kept=2)
    first = vectors([["dog", "cat"], [], ["cat"]])
    assert encoded == [["This is a photo of a dog", "This is a photo of a cat"]]
    wanted = encode_words(encoder, [["This is a photo of a dog"], ["This is a photo of a cat"]])
    np.testing.assert_array_equal(first[0], wanted)
    np.testing.assert_array_equal(first[2], wanted[1:])
    assert [some.shape for some in first] == [(2, 512), (0, 512), (1, 512)]
    again = vectors([["cat"], ["emu", "dog"]])  # all of these are at hand for this call, and the last two for the next
    np.testing.assert_array_equal(again[1][1:], wanted[:1])
    np.testing.assert_array_equal(again[:1][0], wanted[1:])
    vectors([["dog", "emu", "cat"]])
    assert encoded[1:] == [["This is a photo of a emu"], ["This is a photo of a cat"]]


def test_a_photo_takes_no_words_of_one_that_is_called_the_same_elsewhere(tmp_path):
    lines = ['{"path": "cat/1.jpg", "words": ["sofa"]}', '{"path": "2.jpg", "words": ["grass"]}']
    (tmp_path / "w.jsonl").write_text("\n".join(lines))
    words = read_words_per_image(tmp_path / "w.jsonl")
    photos = [
        Photo(name, None, np.zeros(2)) for name in ("photos/cat/1.jpg", "dog/1.jpg", "wildcat/1.jpg", "any/2.jpg")
    ]
    found = words(photos)
    assert (found[0], found[3]) == (("sofa",), ("grass",))
    assert all(isinstance(one, ImageError) for one in found[1:3])
