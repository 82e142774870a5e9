"""What is said of labels before any photo: odds that were measured, why, and what to do."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import outword
from outword.base.odds import MeasuredOdds
from outword.detector.labels_report import LabelsReport, names_to_try
from outword.encoders import get_encoder
from outword.errors import WeakLabelsWarning

LABELS = ["dog", "raccoon", "quasiparticle flumph"]


@pytest.fixture(scope="module")
def made():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outword.fit(LABELS)


def test_a_known_label_is_good_and_a_strange_one_is_not(made):
    dog, raccoon, strange = made.labels_report
    assert (dog.word, dog.flag, dog.next_step, dog.broader, dog.why) == ("good", "known", "", "", "")
    assert raccoon.share < dog.share and raccoon.why == "the encoder knows it only through procyonid"
    assert strange.word == "not seen" and strange.is_weak and "--encoder clip-vit-b-16" in strange.next_step
    assert [(one.label, one.share) for one in made.odds] == [
        (one.label, pytest.approx(one.share, abs=1e-4)) for one in made.labels_report
    ]


def test_a_weak_label_is_sent_to_a_broader_name_or_to_photos_of_it(made):
    strange = made.labels_report[2]
    command = "outword labels 'quasiparticle flumph,' --photos PHOTOS"
    assert strange.broader == "" and strange.try_names.endswith(command)
    other = replace(made, card=replace(made.card, encoder=replace(made.card.encoder, name="clip-vit-b-16")))
    assert other.labels_report[2].try_names.endswith(f"{command} --encoder clip-vit-b-16")
    bees = outword.fit(["bumblebee", "dog"])
    assert [one.broader for one in bees.labels_report] == ["bee", ""]
    assert (
        names_to_try(bees.card.meanings[0], "bee", "mini")
        == 'the encoder knows a broader name, which lets in more than this: "bee"'
    )


def test_kinds_by_hand_promise_nothing():
    typed = outword.fit(["metal > iron | medium | coffee", "dog"])
    metal, dog = typed.labels_report
    assert (metal.share, metal.word, dog.word) == (None, "", "good") and [one.label for one in typed.odds] == ["dog"]
    assert metal.told.startswith("metal: its kinds were typed by hand") and not metal.is_weak
    all_by_hand = outword.fit(["metal > iron | coffee"])
    assert all_by_hand.odds == () and all_by_hand.labels_report[0].odds is None


def test_weak_labels_are_warned_of_and_the_warning_can_be_filtered():
    with pytest.warns(WeakLabelsWarning, match=r"quasiparticle flumph: not seen, .*labels_report"):
        outword.fit(["dog", "quasiparticle flumph"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", WeakLabelsWarning)
        outword.fit(["dog", "quasiparticle flumph"])
        outword.fit(["dog", "cat"])


def test_json_can_hold_it(made):
    first, *_, last = json.loads(json.dumps(made.labels_report.as_json()))
    assert (first["label"], first["next_step"]) == ("dog", "") and "tune" in last["next_step"]


def test_odds_are_kept_with_the_detector(made, tmp_path):
    made.save(tmp_path / "d")
    found = outword.load(tmp_path / "d")
    assert found.odds == made.odds and found.labels_report.as_json() == made.labels_report.as_json()


@pytest.mark.parametrize("options", [{"fpr": 0.01}, {"kinds": "off"}, {"b": 0.5}, {"method": "maxlogit"}])
def test_nothing_is_promised_where_nothing_was_measured(options):
    found = outword.fit(LABELS, **options)
    assert found.odds == () and {one.share for one in found.labels_report} == {None}
    assert repr(found.labels_report).splitlines()[1] == "raccoon: the encoder knows it only through procyonid"


def test_it_is_printed_and_shown_as_a_table(made):
    report = made.labels_report
    assert repr(report).splitlines()[0] == str(made.odds[0])
    assert isinstance(report[:1], LabelsReport) and [one.label for one in report.weak][-1] == LABELS[-1]
    page = report._repr_html_()
    assert page.count("<tr>") == 4 and "quasiparticle flumph" in page


def test_the_formula_of_measured_odds():
    measured = MeasuredOdds({"known": (2.0, 0.0, 0.5), "through": (-3.0, 5.0, 0.25)})
    assert measured.share("known", 0.3, 2.0) == pytest.approx(1 / (1 + np.exp(-1)))
    assert measured.share("through", 0.8, -4.0) == pytest.approx(1 / (1 + np.exp(-2)))
    assert measured.share("known", 1, -100) == 0.98  # nothing is certain


def test_what_ships_promises_more_of_what_is_known_better_and_less_at_a_stricter_cut():
    odds = get_encoder("mini").odds
    assert odds.share("known", 1, 0) > odds.share("through", 0.9, 0) > odds.share("through", 0.6, 0)
    assert odds.share("through", 0.7, 0) > odds.share("unknown", 0.7, 0) > odds.share("unknown", 0.7, 3)
