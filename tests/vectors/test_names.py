"""Vectors of names: the same from the package, from the cache and from the encoder; and the plain names."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from outword.encoders import get_encoder
from outword.encoders.base import Encoder
from outword.encoders.mini.encoder import Mini
from outword.vectors.names import (
    SHIPPED_NAMES,
    are_known,
    coverage,
    name_vectors,
    names_key,
    readable_names,
    rival_names,
    shipped_names,
)
from outword.vectors.wild import encode_words
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts

PROMPTS = get_prompts("mini")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path))


class Letters(Encoder):
    """Texts to the counts of their letters; remembers what it was asked."""

    name, dim, fingerprint, prompts = "letters", 26, "f" * 64, "mini"

    def __init__(self):
        self.asked = []

    def encode_pixels(self, pixels):
        raise NotImplementedError

    def encode_texts(self, texts):
        self.asked += texts
        counts = np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_what_is_shipped_is_what_the_encoder_gives_and_loads_no_text_tower():
    names = ["beagle", "Great Dane", "sea lion", "beagle"]
    mini = Mini()
    found = name_vectors(mini, PROMPTS, names)
    assert not {"_text_tower", "lexicon", "_head"} & set(vars(mini))
    wanted = encode_words(mini, PROMPTS.render(names, ["label"] * len(names)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=2e-7)


def test_shipped_are_the_names_that_mini_knows():
    mini = get_encoder("mini")
    path = shipped_names(names_key(mini, PROMPTS))
    assert [*SHIPPED_NAMES.glob("*.safetensors")] == [path]
    arrays = load_file(path)
    names = arrays["names"].tobytes().decode().split("\n")
    assert (len(names), arrays["vectors"].shape, names) == (3159, (3159, 512), sorted(set(names)))
    assert {told.flag for told in mini.coverage(names[::50])} == {"known"}
    np.testing.assert_allclose(np.linalg.norm(arrays["vectors"], axis=1), 1, atol=1e-6)


def test_what_is_shipped_says_what_is_known_as_the_encoder_would():
    mini, net = get_encoder("mini"), nouns()
    names = [*net.visible(), *(net.names(sense)[0] for sense in range(0, len(net), 50))]
    told = [one.flag == "known" for one in mini.coverage(names)]
    assert are_known(mini, names) == told and True in told and False in told
    assert are_known(Letters(), ["cat", "dog"]) == [True, True]


def test_coverage_is_that_of_the_encoder_which_is_not_asked_about_what_is_shipped():
    mini, names = Mini(), ["beagle", "castle", "no such thing", "sea lion", "Beagle"]
    assert coverage(mini, names) == get_encoder("mini").coverage(names)
    fresh = Mini()
    assert [one.flag for one in coverage(fresh, ["beagle", "sea lion"])] == ["known", "known"]
    assert "lexicon" not in vars(fresh)
    assert coverage(Letters(), ["cat"]) == []


def test_what_is_encoded_once_is_kept(tmp_path):
    encoder = Letters()
    first = name_vectors(encoder, PROMPTS, ["cat", "dog"])
    assert encoder.asked == ["a photo of a cat", "a photo of a dog"]
    again = name_vectors(encoder, PROMPTS, ["emu", "dog", "emu", "cat"])
    assert encoder.asked[2:] == ["a photo of a emu"]
    np.testing.assert_array_equal(again[[3, 1]], first)
    np.testing.assert_array_equal(again[0], again[2])
    plain = encode_words(Letters(), PROMPTS.render(["emu", "dog", "emu", "cat"], ["label"] * 4))
    np.testing.assert_array_equal(again, plain)
    name_vectors(encoder, PROMPTS, ["cat", "dog", "emu"])
    name_vectors(encoder, get_prompts("paper"), ["cat"])
    assert encoder.asked[3:] == ["The nice cat."]
    assert len([*(tmp_path / "names").iterdir()]) == 2


def test_a_broken_cache_is_made_again(tmp_path):
    name_vectors(Letters(), PROMPTS, ["cat", "dog"])
    [path] = (tmp_path / "names").iterdir()
    path.write_bytes(path.read_bytes()[:-10])
    encoder = Letters()
    name_vectors(encoder, PROMPTS, ["cat"])
    assert len(encoder.asked) == 1
    assert name_vectors(encoder, PROMPTS, []).shape == (0, 26)


def test_plain_names():
    every, known = readable_names(Letters()), readable_names(get_encoder("mini"))
    assert (len(every), len(known)) == (1527, 1274)
    assert set(known) < set(every)
    assert {"dog", "sea lion", "bird"} < set(known)
    assert not {"entity", "artifact", "organism", "device", "Canis familiaris"} & set(every)
    assert every[:2] == ["tench", "goldfish"]
    rivals = rival_names(get_encoder("mini"))
    assert set(known) < set(rivals)
    assert "canine" in rivals
