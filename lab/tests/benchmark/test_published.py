"""The paper's figures: complete, as printed, and consistent with their printed averages but for the two known slips."""

from importlib.resources import files

import pytest

from outword.encoders.names import KNOWN
from outword.errors import ParameterError
from outword_lab.benchmark.show.published import SETS, published, reference
from outword_lab.benchmark.toml import tomllib

TABLES = [f"table{number}" for number in range(1, 6)]
ROWS = [row for table in TABLES for row in published(table)]


def test_every_row_is_there():
    assert [len(published(table)) for table in TABLES] == [19, 9, 2, 4, 12]
    told_apart = {(row.table, row.section, row.id, row.encoder, row.corpus, row.method) for row in ROWS}
    assert len(told_apart) == len(ROWS)
    assert all(tuple(row.sets) == SETS for row in ROWS)


def test_rows_as_printed():
    ours = published("table1")[-1]
    assert (ours.method, ours.section, ours.average) == ("Ours", "zero-shot, training-free", (94.52, 22.37))
    assert ours.sets == {
        "inaturalist": (99.51, 1.78),
        "sun": (95.88, 16.90),
        "places": (91.95, 32.13),
        "textures": (90.72, 38.67),
    }
    energies = {row.section: row.average for row in published("table1") if row.method == "Energy"}
    assert energies == {
        "requires training (or fine-tuning)": (91.54, 39.89),
        "zero-shot, training-free": (79.57, 82.21),
    }


def test_rows_whose_code_takes_ood_as_the_positives_are_marked():
    assert {row.method for row in ROWS if row.ood_positive} == {"LAPT"}


def test_conditions_by_our_names():
    def conditions(table):
        return list(dict.fromkeys((row.id, row.encoder, row.corpus) for row in published(table)))

    assert {row.encoder for row in ROWS} == {name for name in KNOWN if name.startswith("clip-")}
    assert conditions("table1") == [("imagenet-1k", "clip-vit-b-16", "")]
    assert [encoder for _, encoder, _ in conditions("table2")] == ["clip-vit-b-32", "clip-vit-l-14", "clip-rn50"]
    assert conditions("table3") == [("imagenet-1k", "clip-vit-l-14-336", "")]
    assert [corpus for *_, corpus in conditions("table4")] == ["common", "pos"]
    assert [id_set for id_set, *_ in conditions("table5")] == [
        *("imagenet-sketch", "imagenet-a", "imagenet-r", "imagenet-v2"),
    ]


def off(row):
    """How far the two printed averages are from those of the four sets."""
    columns = zip(*row.sets.values(), strict=True)
    return tuple(round(shown - sum(column) / 4, 4) for shown, column in zip(row.average, columns, strict=True))


def test_averages_agree_but_for_the_two_slips():
    slips = [row for row in ROWS if max(map(abs, off(row))) > 0.005]
    assert [(row.table, row.id, row.encoder, row.method) for row in slips] == [
        ("table2", "imagenet-1k", "clip-vit-b-32", "MCM"),
        ("table5", "imagenet-sketch", "clip-vit-b-16", "Ours"),
    ]
    assert slips == [row for row in ROWS if row.note]
    assert slips[0].average[0] == 89.96 and "89.18" in slips[0].note
    assert off(slips[0]) == pytest.approx((89.96 - 89.1775, 0.0025))
    assert slips[1].sets["places"][1] == 68.46 and "38.46" in slips[1].note
    assert off(slips[1])[1] == pytest.approx((38.46 - 68.46) / 4, abs=0.0051)


def test_reference_and_unknown_tables():
    assert reference("table5") == "arXiv 2605.23797, Table 5"
    for asked in (published, reference):
        with pytest.raises(ParameterError, match=r'unknown published table "tabel1".*did you mean "table1"'):
            asked("tabel1")


def test_a_list_of_rows_is_the_callers_own():
    published("table1").clear()
    assert len(published("table1")) == 19


def test_figures_are_percentages_and_notes_are_of_rows():
    assert all(0 <= figure <= 100 for row in ROWS for pair in (*row.sets.values(), row.average) for figure in pair)
    content = tomllib.loads((files("outword_lab") / "benchmark" / "published.toml").read_text(encoding="utf-8"))
    assert set(content) == {"reference", "ood_positive", "block"}
    for block in content["block"]:
        assert set(block.get("notes", {})) | set(block.get("used", {})) <= set(block["rows"])


def test_what_learned_rows_used_is_said():
    used = {row.method: row.used for row in ROWS if row.used}
    assert set(used) == {"LSN", "CLIPN", "LoCoOp", "LAPT", "NegPrompt", "ZOC"}
    assert all("LAION-2B" in used[name] for name in ("CLIPN", "NegPrompt"))
    assert "GL-MCM's score" in used["LoCoOp"] and "92.69 / 33.98" in used["LoCoOp"]
    assert "CoCoOp with LSN, on 64 photos of each class (secondary source)" in used["LSN"]
    assert "no evaluation on ImageNet-1k" in used["ZOC"]
    assert not any(text.endswith(".") for text in used.values())  # tables end the line
