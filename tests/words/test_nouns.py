"""WordNet's nouns: values looked up by hand in WordNet 3.0, and the build script's rule."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from outword.words.nouns import DATA, GLOSSES, NOUNS, PHYSICAL, Nouns, nouns

ROOT = Path(__file__).parents[2]
DATABASE = Path("/usr/share/wordnet")


def first(net, word):
    return net.senses(word)[0]


def test_senses_come_in_the_order_of_frequency():
    net = nouns()
    assert [net.wnid(sense) for sense in net.senses("crane")][3:] == ["n03126707", "n02012849"]
    assert [net.names(sense)[0] for sense in net.senses("mouse")] == ["mouse", "shiner", "mouse", "mouse"]
    assert net.senses("daschund") == ()


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Space_Shuttles", "space shuttle"),
        ("the merry go round", "merry-go-round"),
        ("T shirt", "jersey"),
        ("tshirts", "jersey"),
        ("jack o lantern", "jack-o'-lantern"),
        ("crêpe", "crepe"),
        ("grayhound", "greyhound"),
        ("armoured car", "armored car"),
        ("fertiliser", "fertilizer"),
        ("aeroplane", "airplane"),
        ("an aeroplane", "airplane"),
        ("knives", "knife"),
    ],
)
def test_a_word_is_found_however_it_is_spelled(typed, name):
    assert name in nouns().names(first(nouns(), typed))


def test_a_plural_that_is_a_word_of_its_own_comes_first_and_its_singular_after():
    net = nouns()
    glosses = [net.gloss(sense) for sense in net.senses("glasses")]
    assert glosses[0].startswith("optical instrument consisting of a frame")
    assert set(net.senses("glass")) < set(net.senses("glasses"))


def test_names_glosses_tags_and_numbers():
    net = nouns()
    dog = first(net, "dog")
    assert net.names(dog) == ("dog", "domestic dog", "Canis familiaris")
    assert net.gloss(dog).startswith("a member of the genus Canis (probably descended from the common wolf)")
    assert '"' not in net.gloss(dog)
    assert net.tags(dog) == 42
    assert (net.wnid(dog), net.by_wnid("n02084071")) == ("n02084071", dog)
    assert [net.by_wnid(text) for text in ("n02084072", "n99999999", "2084071", "n", "dog")] == [None] * 5
    assert net.gloss(len(net) - 1)


def test_above_and_below():
    net = nouns()
    dog, poodle, paris = first(net, "dog"), first(net, "poodle"), first(net, "Paris")
    assert [net.names(sense)[0] for sense in net.above(dog)[:4]] == ["canine", "domestic animal", "carnivore", "animal"]
    assert net.above(net.by_wnid("n00001740")) == ()
    assert {poodle, first(net, "toy poodle")} <= set(net.below(dog))
    assert dog not in net.below(dog)
    assert len(net.below(dog)) == 189
    assert net.is_instance(paris)
    assert not net.is_instance(dog)
    city = first(net, "national capital")
    assert city in net.above(paris)
    assert paris not in net.below(city)


def test_below_is_sorted_by_use():
    net = nouns()
    dog = first(net, "dog")
    owner, depth = net.spread([dog])
    keys = [(-net.tags(sense), depth[sense], sense) for sense in net.below(dog)]
    assert keys == sorted(keys)
    assert [net.names(sense)[0] for sense in net.below(dog)[:3]] == ["hound", "puppy", "terrier"]
    assert set(np.flatnonzero(owner == 0)) == {dog, *net.below(dog)}


def test_what_spreads_goes_to_the_nearest():
    net = nouns()
    dog, poodle, beagle = (first(net, word) for word in ("dog", "poodle", "beagle"))
    owner, depth = net.spread([dog, poodle])
    assert (owner[poodle], owner[first(net, "toy poodle")], owner[beagle], owner[first(net, "cat")]) == (1, 1, 0, -1)
    assert (depth[dog], depth[poodle], depth[beagle]) == (0, 0, 3)
    owner, _ = net.spread([dog, dog])
    assert set(owner) == {-1, 0}


def test_information_is_least_at_the_top_and_most_where_nothing_is_below():
    net = nouns()
    dog, physical = first(net, "dog"), net.by_wnid(PHYSICAL)
    assert net.information[first(net, "toy poodle")] == 1
    assert net.information[dog] == pytest.approx(1 - np.log(190) / np.log(82115), abs=1 / 255)
    assert net.information[physical] < net.information[first(net, "animal")] < net.information[dog]


# --- the build script


def tool(name):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


SMALL = {
    "data.noun": (
        '00000001 03 n 01 beast 0 000 | a living thing; "beasts roam"\n'
        "00000100 05 n 02 Dog 0 house-dog 0 001 @ 00000001 n 0000 | a beast that barks\n"
        "00060000 18 n 01 dog 0 001 @i 00000100 n 0000 | a name\n"
    ),
    "index.noun": "beast n 1 0 1 0 00000001\ndog n 2 0 2 1 00000100 00060000\nhouse-dog n 1 0 1 0 00000100\n",
    "cntlist.rev": "dog%1:05:00:: 1 7\nhouse-dog%1:05:00:: 1 2\n",
}


def test_build_script_writes_what_the_page_says(tmp_path):
    for name, text in SMALL.items():
        (tmp_path / name).write_text("  1 a licence line\n" * (name != "cntlist.rev") + text)
    command = [sys.executable, str(ROOT / "tools/build_nouns.py"), "--wordnet", str(tmp_path), "-o", str(tmp_path)]
    for _ in range(2):
        subprocess.run(command, check=True, capture_output=True)
    net = Nouns(load_file(tmp_path / NOUNS), tmp_path)
    assert (len(net), net.senses("dog"), net.senses("house dogs")) == (3, (1, 2), (1,))
    assert (net.names(1), net.names(2)) == (("Dog", "house-dog"), ("dog",))
    assert [net.tags(sense) for sense in range(3)] == [0, 9, 0]
    assert (net.above(2), net.below(0), net.below(1)) == ((1, 0), (1,), ())
    assert [net.gloss(sense) for sense in range(3)] == ["a living thing", "a beast that barks", "a name"]
    assert net.information.tolist() == pytest.approx([1 - np.log(2) / np.log(3), 1, 1], abs=1 / 255)


@pytest.mark.skipif(not (DATABASE / "data.noun").exists(), reason="the database of wordnet-base is not installed")
def test_the_packaged_files_are_those_of_the_database():
    build = tool("build_nouns")
    net = build.read_wordnet(DATABASE, "noun")
    for name, arrays in ((NOUNS, build.nouns(net)), (GLOSSES, {})):
        kept = load_file(DATA / name)
        for key, array in arrays.items():
            assert np.array_equal(kept[key], array), key
    packed = nouns()
    for row in range(0, len(packed), 997):
        synset = net.synsets[int(packed.offsets[row])]
        assert packed.names(row) == synset.lemmas
        assert packed.gloss(row) == synset.gloss.partition('; "')[0]
