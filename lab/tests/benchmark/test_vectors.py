"""The suite `vectors`: a made-up folder through the whole command, the layout of the folder, and its errors."""

import csv
import json

import numpy as np
import pytest

from conftest import call
from outword.encoders import get_encoder
from outword.errors import InputError, OutwordError
from outword.maths.numerics import unit_rows
from outword.words.nouns import nouns
from outword_lab.benchmark.vectors import lists
from outword_lab.benchmark.vectors.lists import List, broad_lists, drawn_lists, half_lists, judged, sizes_of
from outword_lab.encoders.vectors import VectorFolder

DIM, PHOTOS = 48, 3
ANIMALS = ("tabby", "Siamese cat", "beagle", "collie", "pug", "goldfish", "robin", "bee")
THINGS = ("teapot", "hammer", "sofa", "banjo", "canoe", "violin")
BROADER = ("cat", "dog", "bird", "fish", "insect", "animal")
OTHERS = (
    "apple",
    "pizza",
    "castle",
    "candle",
    "pillow",
    "rocket",
    "spoon",
    "fork",
    "mitten",
    "train",
    "tractor",
)

ASKED = ("methods", "leads", "sets", "broad", "verdicts", "halves", "odds", "p-values", "mining", "rivals", "tau")
ASKED = (*ASKED, "sigma")
MORE = tuple(sorted(nouns().readable()))[7::25]  # other names, for what else there is


def wnid(name):
    return nouns().wnid(nouns().senses(name)[0])


def directions(names, rng):
    """A direction a name; kinds of cats and dogs lie near each other, as an encoder sees them."""
    found = {name: rng.standard_normal(DIM) for name in names}
    for broad, kinds in (("cat", ANIMALS[:2]), ("dog", ANIMALS[2:5])):
        for kind in kinds:
            found[kind] = 1.5 * found[broad] + found[kind]
    return found


@pytest.fixture(scope="module")
def arrays():
    """The files of a small folder: photos near the direction of what they show, texts in a cone."""
    rng = np.random.default_rng(0)
    names = (*ANIMALS, *THINGS, *BROADER, *OTHERS, *MORE)
    toward, cone, prompt = directions(names, rng), rng.standard_normal(DIM), rng.standard_normal(DIM) / 2

    def texts(some, offset):
        return unit_rows(np.stack([toward[name] + offset for name in some])).astype(np.float16)

    def photos(some):
        shown = unit_rows(np.stack([toward[name] for name in some for _ in range(PHOTOS)]))
        return unit_rows(shown + 0.5 * unit_rows(rng.standard_normal(shown.shape))).astype(np.float16)

    classes = (*ANIMALS, *THINGS)
    return {
        "animals.npz": {"features": photos(classes), "labels": np.repeat(np.arange(len(classes)), PHOTOS)},
        "animals_wnids.json": [wnid(name) for name in classes],
        "food.npz": {"features": photos(OTHERS[:2])},
        "noise.npz": {"features": unit_rows(rng.standard_normal((30, DIM)))},
        "text_classes.npz": {"features": texts(classes, cone), "names": np.array(classes)},
        "text_more.npz": {
            "features": texts((*BROADER, *OTHERS, *MORE, *classes), cone + prompt),
            "names": np.array([f"{name}_(thing)" for name in (*BROADER, *OTHERS, *MORE, *classes)]),
        },
        "encoder.json": {"temperature": 0.05, "sight": {"gain": 1.0, "noise": 0.5, "level": 10.0, "spread": 0.5}},
    }


@pytest.fixture
def write(tmp_path):
    def written(arrays):
        folder = tmp_path / "vectors"
        folder.mkdir(exist_ok=True)
        for name, content in arrays.items():
            if name.endswith(".npz"):
                np.savez(folder / name, **content)
            else:
                (folder / name).write_text(json.dumps(content))
        return folder

    return written


@pytest.fixture
def folder(write, arrays):
    return write(arrays)


def opened(folder):
    return get_encoder(f"vectors:{folder}")


def rows_of(path):
    return list(csv.reader(path.read_text().splitlines()))


def test_the_whole_suite(folder, tmp_path):
    out = tmp_path / "results"
    seen = call("bench", "vectors", folder, "-o", out, "--seeds", 2)
    assert "How well do methods separate" in seen.stdout and "report.html" in seen.stderr
    names = {path.stem for path in (out / "tables").glob("*.csv")}
    assert names == {f"answer-{name}" for name in ASKED}
    methods = (out / "tables/answer-methods.csv").read_text().splitlines()
    assert methods[0] == "method,3 names,10 names,14 names"
    assert [line.split(",")[0] for line in methods[1:3]] == ["grounded", '"grounded']
    figures = [float(cell) for cell in methods[1].split(",")[1:]]
    assert min(figures) > 90, "the default must tell the planted photos apart"
    head, *rows = rows_of(out / "tables/answer-verdicts.csv")
    assert head[1:] == ["formula", "batch of 200", *(f"imagined, {n}" for n in (0, 1, 5, 20, 200)), "best"]
    assert [row[0] for row in rows[:3]] == ["3 names", "10 names", "14 names"]
    assert all(float(cell.partition("= ")[2]) > 50 for row in rows for cell in row[1:])
    halves = [row[0] for row in rows_of(out / "tables/answer-halves.csv")[1:]]
    assert halves == ["3 names, even classes", "3 names, odd classes"]
    promised = [row for row in rows_of(out / "tables/answer-odds.csv") if row[0] == "all"]
    assert sum(int(row[-1]) for row in promised) == (2 * 3 + 2 * 10 + 14) * PHOTOS, "each photo of a label counts once"
    assert {path.name for path in (out / "plots").glob("*.svg")} == {"methods.svg", "odds.svg"}
    assert (out / "report.html").read_text().count("<img") == 3
    before = {path: path.stat().st_mtime_ns for path in (out / "figures").iterdir()}
    again = call("bench", "vectors", folder, "-o", out, "--seeds", 2)
    assert again.stdout == seen.stdout
    after = {path: path.stat().st_mtime_ns for path in (out / "figures").iterdir()}
    assert after == before, "nothing is measured again"


def test_other_vectors_are_measured_again(write, arrays, tmp_path):
    out, methods = tmp_path / "results", ["--seeds", 2, "--methods", "maxlogit"]
    first = call("bench", "vectors", write(arrays), "-o", out, *methods).stdout
    food = {"features": arrays["food.npz"]["features"][::-1] + np.float16(0.2)}
    assert call("bench", "vectors", write({**arrays, "food.npz": food}), "-o", out, *methods).stdout != first


def test_texts_are_found_by_name(folder, arrays):
    encoder = opened(folder)
    assert (encoder.dim, encoder.temperature, encoder.inside) == (DIM, 0.05, "animals")
    own = arrays["text_classes.npz"]
    np.testing.assert_allclose(encoder.encode_texts(["Beagle"])[0], unit_rows(own["features"])[2], atol=1e-6)
    assert encoder.encode_texts([]).shape == (0, DIM)
    assert [one.flag for one in encoder.coverage(["spoon", "lantern"])] == ["known", "unknown"]
    assert "spoon" in encoder.corpus.words and len(encoder.corpus) == len({*ANIMALS, *THINGS, *BROADER, *OTHERS, *MORE})
    with pytest.raises(InputError, match="no text for 'lantern'"):
        encoder.encode_texts(["lantern"])
    with pytest.raises(InputError, match="cannot read photos"):
        encoder.encode_images([np.zeros((8, 8, 3), np.uint8)])


def test_the_difference_of_templates_is_taken_away(write, arrays):
    few = VectorFolder(write(arrays))
    assert [one.file for one in few.lists] == ["text_classes.npz", "text_more.npz"]
    untouched = unit_rows(arrays["text_more.npz"]["features"])
    np.testing.assert_allclose(few.lists[1].vectors, untouched, atol=1e-6)  # 14 names in common are too few
    lamps = np.array([f"lamp {n}" for n in range(20)])
    same = unit_rows(np.random.default_rng(1).standard_normal((20, DIM)))
    other = unit_rows(same + 2 * np.eye(DIM)[0])
    longer = dict(arrays)
    for name, rows in (("text_classes.npz", same), ("text_more.npz", other)):
        features = np.concatenate([arrays[name]["features"], rows])
        longer[name] = {"features": features, "names": np.concatenate([arrays[name]["names"], lamps])}
    moved = VectorFolder(write(longer)).lists[1].vectors[-20:]
    before, after = (np.sum(same * rows, axis=1).mean() for rows in (other, moved))
    assert after > before + 0.2


def test_a_text_with_several_names(write, arrays):
    names = arrays["text_classes.npz"]["names"].astype("U40")
    names[2] = "beagle, small hound"
    encoder = VectorFolder(write({**arrays, "text_classes.npz": {**arrays["text_classes.npz"], "names": names}}))
    np.testing.assert_array_equal(encoder.encode_texts(["small hound"]), encoder.encode_texts(["beagle"]))
    assert "small hound" not in encoder.corpus.words


def test_classes_called_like_a_label_are_no_ood(write, arrays):
    food = {**arrays["food.npz"], "labels": np.repeat([0, 1], PHOTOS)}
    told = {"food.npz": food, "food_classnames.json": ["/a/apple/red", "pizza"]}
    encoder = VectorFolder(write({**arrays, **told}))

    def n_food(*labels):
        return [len(one.vectors) for one in judged(encoder, List("", 0, labels, by_class=True)).outside[1:2]]

    assert [n_food("beagle", "sofa"), n_food("pizza", "sofa")] == [[2 * PHOTOS], [PHOTOS]]
    assert n_food("fruit", "pizza") == [30], "the next set: a red apple is a fruit, and no photo of food is left"


def test_lists_and_their_photos(folder):
    encoder = opened(folder)
    assert sizes_of(encoder) == [3, 10, 50]
    assert [one.labels for one in drawn_lists(encoder, 3, 4)] == [one.labels for one in drawn_lists(encoder, 3, 4)]
    assert [len(one.labels) for one in drawn_lists(encoder, 50, 4)] == [len(ANIMALS) + len(THINGS)]
    even, odd = (half_lists(encoder, 3, 4)[at : at + 4] for at in (0, 4))
    assert {one.group for one in even} == {"3 names, even classes"}
    assert {name for one in even for name in one.labels}.isdisjoint(name for one in odd for name in one.labels)
    assert half_lists(encoder, 7, 4) == [], "a half has seven names"
    given = List("3 names", 0, ("beagle", "teapot", "sofa"), by_class=True)
    photos = judged(encoder, given)
    assert len(photos.inside.vectors) == 3 * PHOTOS
    assert {one.name: len(one.vectors) for one in photos.outside} == {
        lists.OTHERS: 11 * PHOTOS,
        "food": 2 * PHOTOS,
        "noise": 30,
    }
    broad = broad_lists(encoder)
    assert ("cat", "dog") in [one.labels for one in broad]
    pets = judged(encoder, next(one for one in broad if one.labels == ("cat", "dog")))
    assert len(pets.inside.vectors) == 5 * PHOTOS


def changed(name, **content):
    return lambda arrays: {**arrays, name: {**arrays[name], **content}}


def without(*names):
    return lambda arrays: {name: content for name, content in arrays.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without("text_classes.npz", "text_more.npz"), "has no vectors of texts"),
        (without("animals.npz"), "animals_wnids.json is about animals.npz, which is not there"),
        (without("animals_wnids.json"), "must have one file SET_wnids.json, got 0"),
        (lambda arrays: {**arrays, "food_wnids.json": []}, "must have one file SET_wnids.json, got 2"),
        (lambda arrays: {**arrays, "animals_wnids.json": ["n99999999"]}, "must be a list of numbers of nouns"),
        (lambda arrays: {**arrays, "animals_wnids.json": arrays["animals_wnids.json"][:3]}, "must be from 0 to 2"),
        (lambda arrays: {**arrays, "encoder.json": {"temprature": 1}}, 'unknown key in .* "temprature"'),
        (lambda arrays: {**arrays, "encoder.json": {"temperature": 0}}, "temperature in .* must be"),
        (lambda arrays: {**arrays, "encoder.json": [1]}, "must be a table"),
        (changed("food.npz", features=np.ones((4, DIM + 1))), "must have 48 columns .* got 49 in food"),
        (changed("food.npz", features=np.ones(4)), r"two-dimensional array of floats.*got shape \(4,\)"),
        (changed("food.npz", features=np.zeros((2, DIM))), "must have no zero row"),
        (changed("food.npz", features=np.full((2, DIM), np.nan)), "must be finite"),
        (lambda arrays: {**arrays, "noise_classnames.json": {"a": 1}}, "noise_classnames.json must be a list of names"),
        (lambda arrays: {**arrays, "noise_classnames.json": ["a"]}, "labels in .* must be from 0 to 0, got -1 to -1"),
        (changed("animals.npz", labels=np.zeros(3, int)), "labels in .* must be 42 whole numbers"),
        (changed("text_more.npz", names=np.array(["cat"])), "must be 92 texts, one a row"),
        (changed("text_more.npz", names=np.full(92, "_")), "must not be empty, row 0 is"),
        (
            lambda arrays: {**arrays, "food.npz": {"vectors": np.ones((2, DIM))}},
            "must have the array features, got vectors",
        ),
        (lambda arrays: {**arrays, "food.npz": {"features": np.array(["a"], object)}}, "cannot be read as arrays"),
    ],
)
def test_a_folder_that_is_none(write, arrays, change, told):
    with pytest.raises(OutwordError, match=told) as error:
        VectorFolder(write(change(arrays)))
    assert error.value.hint and "\n" not in str(error.value)


def test_files_that_are_no_arrays(folder, tmp_path):
    (folder / "food.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(InputError, match=r"food.npz cannot be read as arrays of numpy"):
        VectorFolder(folder)
    with pytest.raises(InputError, match="must be a folder, got"):
        VectorFolder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["vectors"], "ROOT must be a folder with data sets, got nothing"),
        (["vectors", "nowhere"], "ROOT must be a folder with data sets, got nowhere"),
        (["vectors", ".", "--data", "."], "ROOT and --data are the same"),
        (["vectors", ".", "--methods", "grounder"], 'unknown method of vectors "grounder"'),
    ],
)
def test_errors_of_the_command(arguments, told):
    assert told in call("bench", *arguments, code=2).stderr
