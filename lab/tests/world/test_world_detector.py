"""A detector of the rendered world: its verdicts are right, and the same from photos, a store, and the service."""

import json

import pytest

import outword
from conftest import call, contents, rows_of, six_digits
from helpers.served import ask, form, in_thread
from outword.photos.sources import find_items
from outword_lab.encoders.world import DATA

KINDS = ("hammer", "cat", "car")
OWN = "world:id/hammer"
GROUNDS = [f"world:ground/nothing/{number:03}.png" for number in range(0, 300, 12)]
OTHERS = "world:other/house"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A detector that is calibrated on 48 photos of its labels, which are in no other set."""
    path = tmp_path_factory.mktemp("world") / "d.outword"
    outword.fit(KINDS, encoder="world-m", corpus="world-nouns").save(path)
    told = call("calibrate", path, *(f"world:train/{kind}" for kind in KINDS), "--tpr", "0.9")
    assert "48 photos" in told.stderr
    return path


@pytest.fixture(scope="module")
def rows(saved):
    return rows_of(call("score", saved, OWN, *GROUNDS, OTHERS).stdout)


def test_the_verdicts_are_right(rows):
    own, grounds, others = rows[:40], rows[40 : 40 + len(GROUNDS)], rows[40 + len(GROUNDS) :]
    assert [row["path"] for row in grounds] == GROUNDS
    assert sum(row["verdict"] == "in" and row["label"] == "hammer" for row in own) >= 30
    assert sum(row["verdict"] == "out" for row in grounds) >= 20
    assert sum(row["verdict"] == "out" for row in others) >= 15 and len(others) == 16
    assert {row["basis"] for row in rows} == {"calibrated"}
    looks = [row["looks_like"] for row in rows]
    assert looks[:40].count("hammer") >= 30 and looks[-16:].count("house") >= 12


def test_a_store_gives_the_same_rows_and_goes_on_where_it_stopped(saved, rows, tmp_path):
    store = ("-o", tmp_path / "s", "--encoder", "world-m")
    call("embed", OWN, *GROUNDS[:5], *store)
    assert "36 encoded, 45 reused, 0 errors" in call("embed", OWN, *GROUNDS, OTHERS, *store).stderr
    wanted = [{**row, "notes": ""} for row in sorted(rows, key=lambda row: row["path"])]  # a store has no photos
    assert rows_of(call("score", saved, tmp_path / "s").stdout) == wanted


def test_a_run_that_was_stopped_goes_on(saved, rows, tmp_path):
    given = ("score", saved, OWN, OTHERS)
    call(*given, "-o", f"{tmp_path}/whole/")
    call("score", saved, OWN, OTHERS, "-o", f"{tmp_path}/again/")
    whole = contents(tmp_path / "whole")
    last = max(name for name in whole if name.startswith("part-"))
    (tmp_path / "again" / last).unlink()
    call(*given, "-o", f"{tmp_path}/again/")
    assert contents(tmp_path / "again") == whole
    parts = b"".join(whole[name] for name in sorted(whole) if name.startswith("part-"))
    assert all(row["path"].encode() in parts for row in (*rows[:40], *rows[-16:]))


def test_the_service_gives_the_same_verdicts(saved, rows):
    chosen = [*rows[:3], *rows[40:43]]
    photos = [item.data for item in find_items([row["path"] for row in chosen])]
    with in_thread(outword.load(saved)) as address:
        body, kind = form(*((f"{place}.png", data) for place, data in enumerate(photos)))
        status, _, answer = ask(address, "POST", "/v1/score", body, kind=kind)
    assert status == 200
    found = json.loads(answer)["results"]
    told = [(one["verdict"], one["label"], six_digits(one["score"])) for one in found]
    assert told == [(row["verdict"], row["label"], float(row["score"])) for row in chosen]


def test_explain_names_what_is_there(saved):
    asked = "world:other/house/000.png", "world:id/cat/001.png"
    house, cat = map(json.loads, call("explain", saved, *asked, "--json", "--top", "3").stdout.splitlines())
    assert (cat["label"], cat["labels"][0][0]) == ("cat", "cat")
    assert house["verdict"] == "out" and house["words"][0][0] in ("house", "building")
    assert sum(share for _, share in house["words"]) > 0.5 > sum(share for _, share in house["labels"])


@pytest.mark.filterwarnings("ignore:.*were cut")
def test_what_was_fitted_on_torch_is_scored_without_it(tmp_path):
    """The folder of the model is its own export: its artifacts can be moved from the one to the other."""
    given = outword.fit(KINDS, encoder=f"hf:{DATA / 'm'}", corpus="world-nouns")
    given.save(tmp_path / "d.outword")
    moved = outword.load(tmp_path / "d.outword", encoder="world-m")
    photos = [*find_items(["world:id/cat/000.png", OTHERS])]
    assert moved.score(photos) == pytest.approx(given.score(photos), abs=0.01)
