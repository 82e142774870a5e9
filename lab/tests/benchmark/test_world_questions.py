"""The questions that the rendered world answers: on few photos, by hand where that can be, and kept on disk."""

import json
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.rendered import every
from outword.encoders import get_encoder
from outword.maths.numerics import unit_rows
from outword.vectors.wild import encode_words
from outword.words.prompts import get_prompts
from outword_lab.benchmark.found import Found, listed, paired, percent, side
from outword_lab.benchmark.show.overview import answer
from outword_lab.benchmark.world import about_models, about_verdicts, about_words, answers
from outword_lab.benchmark.world import lab as lab_of
from outword_lab.benchmark.world.lab import Lab, List, broad_lists, exact_lists, the_list
from outword_lab.world.phrases import corpus, is_positive
from outword_lab.world.sets import NOTHING
from outword_lab.world.things import FAMILIES, seen

STEPS = {"id": 20, "other": 10, "near": 16, "far": 16, "ground": 15, "clutter": 15, "shuffled": 15, "reference": 4}


@pytest.fixture(scope="module")
def lab():
    """What the small model sees of some photos of each set."""
    encoder, vectors, shown = get_encoder("world-s"), {}, {}
    for name, step in STEPS.items():
        pixels, things = every(step, name)
        vectors[name], shown[name] = encoder.encode_images(pixels), np.array([thing or NOTHING for thing in things])
    texts = [phrase.text for phrase in corpus()]
    return Lab(encoder, vectors, shown, encode_words(encoder, get_prompts("mcm").render(texts, ["label"] * len(texts))))


@pytest.fixture
def brief(monkeypatch):
    """Two lists of each length, two sizes, two seeds: the same code in seconds."""
    few = partial(exact_lists, draws=2)
    monkeypatch.setattr(about_words, "exact_lists", few)
    monkeypatch.setattr(about_verdicts, "exact_lists", few)
    monkeypatch.setattr(about_words, "LENGTHS", (5,))
    monkeypatch.setattr(about_words, "SIZES", (100, 300))
    monkeypatch.setattr(about_words, "SHARES", (0.0, 0.5))
    monkeypatch.setattr(about_words, "TAUS", (0.0, 0.5))
    monkeypatch.setattr(about_words, "SIGMAS", (0.1,))
    monkeypatch.setattr(about_words, "SEEDS", 2)
    monkeypatch.setattr(about_words, "MANY", 500)
    lists = {"3 families": partial(broad_lists, draws=2), "10 names": partial(few, 10)}
    monkeypatch.setattr(about_verdicts, "LISTS", lists)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("mining", ["5", "5"]),
        ("tau", ["0.00", "0.50"]),
        ("sigma", ["0", "0.1"]),
        ("losses", ["other", "near", "far", "ground", "clutter", "shuffled"]),
        ("score", ["3 families"] * 12 + ["10 names"] * 12),
        ("verdicts", ["3 families", "10 names"]),
        ("p-values", ["like the reference", "near", "far", "ground", "clutter", "shuffled"]),
    ],
)
def test_every_question_has_rows(name, first, lab, brief):
    found = answers.QUESTIONS[name](lab)
    assert found.name == name and found.question.endswith("?") and found.says
    assert [row[0] for row in found.rows] == first
    assert {len(row) for row in found.rows} == {len(found.header)}


def test_verdicts_are_better_than_chance_and_no_better_than_the_best(lab, brief):
    for row in about_verdicts.verdicts(lab).rows:
        *_, best = balanced = [float(cell.partition("= ")[2]) for cell in row[1:]]
        assert min(balanced) > 50 and max(balanced) == best


def test_p_values_hold_for_photos_like_the_reference(lab, brief):
    alike, *_ = about_verdicts.promises(lab).rows
    assert [float(cell) for cell in alike[1:]] == pytest.approx(about_verdicts.LEVELS, abs=0.06)


def test_lists(lab):
    assert [len(one.labels) for one in exact_lists(5)] == [5] * 10
    assert exact_lists(10)[3] == exact_lists(10)[3] != exact_lists(10)[4]
    assert all(set(one.labels) <= set(seen()) for one in exact_lists(25))
    for one in broad_lists():
        assert set(one.things) == {name for label in one.labels for name in FAMILIES[label][:-1]}
    own, others = lab.inside(the_list()), lab.outside(the_list())
    assert len(own) == len(lab.vectors["id"]) and len(others["other"]) == len(lab.vectors["other"])
    mixed = List(("hammer", "house"), ("hammer", "house"))
    n = sum((lab.shown[name] == thing).sum() for name, thing in (("id", "hammer"), ("other", "house")))
    assert len(lab.inside(mixed)) == n > 0
    assert len(lab.outside(mixed)["other"]) == len(lab.vectors["id"]) + len(lab.vectors["other"]) - n


def test_a_lead_by_hand():
    # gaps of 1, 2, 3, 4, 5 points: mean 3, deviation sqrt(2.5), t = 2.776: 3 +- 2.776 sqrt(2.5 / 5) = 3 +- 1.963
    one, other = np.array([0.51, 0.62, 0.73, 0.84, 0.95]), np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    assert paired(one, other) == "+3.00 (+1.04 to +4.96)"
    assert paired(other, one) == "-3.00 (-4.96 to -1.04)"
    assert [side(paired(one, other)), side(paired(other, one)), side(paired(one, one))] == [1, -1, 0]
    assert side("+0.10 (-0.01 to +0.21)") == side("-0.10 (-0.21 to +0.01)") == 0
    assert side("-0.10 (-0.19 to -0.01)") == -1
    assert (percent([0.5, 0.25]), listed([]), listed(["a", "b"])) == ("37.50", "no point", "a; b")


def planted():
    """A lab of three words and one photo on the plane: of the words, the first is a label and the second about it."""
    images, words = np.array([[1.0, 0.0]]), np.array([[0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    return SimpleNamespace(
        encoder=SimpleNamespace(temperature=0.5),
        inside=lambda given: images,
        words=words,
        names=lambda texts: words[:1],
    )


def test_the_error_of_the_corrected_mean_by_hand():
    # e^(cos / T): 1.2 for the words that are no label, and 0; the label g = e^1.6
    q, g, true = (np.exp(1.2) + 1) / 2, np.exp(1.6), 1.0
    rows, positive = np.array([1, 2]), np.array([True, False])
    at_0, at_share = about_words._errors(planted(), List(("a",), ("a",)), rows, positive, 0.4)
    assert at_0 == pytest.approx(np.log(q / true))
    assert at_share == pytest.approx(abs(np.log((q - 0.4 * g) / 0.6 / true)))
    assert about_words._errors(planted(), List(("a",), ("a",)), rows, positive, 0.5)[1] == np.inf  # q <= tau g


def test_words_with_a_share_of_positives():
    pools = np.arange(50), np.arange(50, 200)
    words = about_words._with_share(pools, 0.25, 40, seed=0)
    assert len(set(words.tolist())) == 40 and (words < 50).sum() == 10
    np.testing.assert_array_equal(about_words._with_share(pools, 0.25, 40, seed=0), words)
    assert (np.diff((words < 50).astype(int)) != 0).sum() > 4  # in any order


def test_positives_are_those_of_the_phrases(lab):
    given = List(("hammer", "cat"), ("hammer", "cat"))
    found = about_words._positives(lab, given)
    assert [p.text for p, is_one in zip(corpus(), found, strict=True) if is_one] == [
        phrase.text for phrase in corpus() if is_positive(phrase, ["hammer", "cat"])
    ]
    assert found[lab.rows["red hammer"]] and not found[lab.rows["tool"]]


def test_photos_right_by_hand():
    own, others = np.array([[3.0], [1.0]]), {"a": np.array([[2.0], [0.0]]), "b": np.array([[0.0]])}
    assert about_verdicts._right(lambda x: x[:, 0], 1.5, own, others) == (0.5, 0.75)
    assert about_verdicts._best(lambda x: x[:, 0], own, others) == (1.0, 0.75)


def test_answers_are_kept_and_asked_again_when_something_has_changed(lab, tmp_path):
    asked, path = count(), tmp_path / "answers" / "tau.json"

    def ask(given):
        return Found("tau", "How?", ("a", "b"), (("1", str(next(asked))),), ("It is so.",))

    def answer(given=lab, name="tau"):
        return answers._answer(given, name, ask, path).rows[0][1]

    assert [answer(), answer()] == ["0", "0"]
    assert answers._answer(lab, "tau", ask, path) == Found("tau", "How?", ("a", "b"), (("1", "0"),), ("It is so.",))
    turned = replace(lab, vectors={**lab.vectors, "id": unit_rows(lab.vectors["id"] + 0.01)})
    assert [answer(turned), answer(turned), answer(name="other")] == ["1", "1", "2"]
    kept = json.loads(path.read_text())
    assert answer(name="other") == "2"
    damaged = [
        *(b"", b"{", b"[]", b"null", b"\xff"),
        *(
            json.dumps({**kept, **change}).encode()
            for change in ({"found": None}, {"found": {"name": 3}}, {"key": "x"})
        ),
        json.dumps({**kept, "found": {**kept["found"], "rows": [["1", 2]]}}).encode(),
    ]
    for number, content in enumerate(damaged, 3):
        path.write_bytes(content)
        assert answer(name="other") == answer(name="other") == str(number)


def test_an_answer_is_shown_as_a_table():
    found = Found("tau", "How?", ("a", "b"), (("1", "2"), ("3", "4")), ("It is so.",))
    shown = answer(found)
    assert (shown.question, shown.texts) == ("How?", ("It is so.",))
    (table,) = shown.tables
    assert table.name == "answer-tau" and [column.key for column in table.columns] == ["a", "b"]
    assert [line.cells for line in table.rows] == [("1", "2"), ("3", "4")]


def test_all_is_asked_of_a_store(monkeypatch, tmp_path):
    """From sets in a store to what the report shows; few photos stand for each set."""

    def some(encoder, name, store, report=None):
        pixels, things = every(STEPS.get(name, 25), name)
        paths = [f"world:{name}/{thing or NOTHING}/{row:03}.png" for row, thing in enumerate(things)]
        return SimpleNamespace(vectors=encoder.encode_images(pixels), paths=paths)

    monkeypatch.setattr(about_models, "encoded_set", some)
    monkeypatch.setattr(lab_of, "encoded_set", some)
    monkeypatch.setattr(about_models, "MODELS", ("world-s",))
    monkeypatch.setattr(answers, "QUESTIONS", {"p-values": about_verdicts.promises})
    monkeypatch.setattr(answers, "ENCODER", "world-s")
    models, promises = answers.answers(get_encoder, tmp_path / "store", tmp_path)
    (row,) = models.tables[0].rows
    assert row.cells[0] == "world-s" and 50 < float(row.cells[1]) < 90
    assert float(row.cells[6]) > float(row.cells[7]) + 0.3  # texts lie in a cone, and images elsewhere
    assert promises.tables[0].rows[0].cells[0] == "like the reference"
    assert (tmp_path / "answers/p-values.json").exists()
