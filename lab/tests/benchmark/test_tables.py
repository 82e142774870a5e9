import csv
import io
import re
from dataclasses import replace

import pytest

from helpers.fabricated import config, row, run, suite
from outword_lab.benchmark.run.results import Outcome, Skipped
from outword_lab.benchmark.run.suite import Entry, Sweep
from outword_lab.benchmark.show.markup import to_csv, to_html, to_latex, to_markdown
from outword_lab.benchmark.show.summary import Value
from outword_lab.benchmark.show.table import Column, Label, Line, Table
from outword_lab.benchmark.show.tables import make_tables, shot_tables, write_tables

PAPER = ("imagenet-1k", "clip-vit-b-16", "")
SETS = ("inaturalist", "sun", "places", "textures")
TITLES = {"near": "Near set", "far": "Far"}


def of(rows, own=None, **more):
    return Outcome(own or suite(), None, rows, **more)


def tables_of(outcome):
    return {table.name: table for table in make_tables(outcome)}


def markdown(outcome, name="main"):
    """The rows of a table by method and source, and its notes."""
    lines = to_markdown(tables_of(outcome)[name]).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    return rows[0], rows[2:], [line[2:] for line in lines if line.startswith("- ")]


def raw(outcome, name="main"):
    return list(csv.DictReader(io.StringIO(to_csv(tables_of(outcome)[name]))))


def by_hand():
    """Two seeds of one method, one of another, on two sets."""
    return [
        row("debiased", "near", 0, 0.90, 0.30),
        row("debiased", "far", 0, 0.98, 0.10),
        row("debiased", "near", 1, 0.92, 0.20),
        row("debiased", "far", 1, 0.94, 0.20),
        row("mcm", "near", 0, 0.80, 0.50, chance=False),
        row("mcm", "far", 0, 0.90, 0.40, chance=False),
    ]


def test_means_and_deviations_by_hand():
    head, rows, notes = markdown(of(by_hand(), titles=TITLES))
    assert head == [
        "Method",
        *(f"{name} {f}" for name in ("Near set", "Far", "Average") for f in ("AUROC ↑", "FPR95 ↓")),
    ]
    # The averages of the seeds are 94 and 93, and 20 and 20: sd is 1/sqrt(2), and 0.
    own = ["91.00 ± 1.41", "25.00 ± 7.07", "96.00 ± 2.83", "15.00 ± 7.07", "**93.50 ± 0.71**", "**20.00 ± 0.00**"]
    assert rows[0] == ["debiased", *own]
    assert rows[1] == ["mcm", "80.00", "50.00", "90.00", "40.00", "85.00", "45.00"]
    assert "Figures in percent, mean ± standard deviation over 2 seeds." in notes
    assert any("one seed stands for all" in note for note in notes)
    assert "ID set: folder; Encoder: mini; Words: each method's own." in notes


def test_the_source_is_shown_where_there_are_several():
    plain = tables_of(of(by_hand()))["main"]
    both = tables_of(of(paper_rows("mcm"), paper_suite(Entry("mcm", published="MCM"))))["main"]
    for text in (to_markdown, to_latex, to_html):
        assert "Source" not in text(plain)
        assert "measured" not in re.sub("class=.measured.", "", text(plain))
        assert "Source" in text(both)
    assert {one["source"] for one in raw(of(by_hand()))} == {"measured"}


def test_csv_has_fractions_and_deviations_apart():
    first, second = raw(of(by_hand()))
    assert (first["method"], first["source"]) == ("debiased", "measured")
    assert float(first["near_auroc"]) == pytest.approx(0.91)
    assert float(first["near_auroc_sd"]) == pytest.approx(0.02 / 2**0.5)
    assert float(first["average_fpr95_id"]) == pytest.approx(0.2)
    assert (second["near_auroc"], second["near_auroc_sd"]) == ("0.8", "")


def test_a_block_for_each_condition_and_columns_for_what_varies():
    both = [("a", "mini", ""), ("a", "clip", "")]
    rows = [
        row(ood=ood, condition=c, auroc=a) for c, a in zip(both, (0.9, 0.8), strict=True) for ood in ("near", "far")
    ]
    head, lines, notes = markdown(of(rows))
    assert head[:3] == ["Encoder", "Method", "near AUROC ↑"]
    assert [line[0] for line in lines] == ["mini", "clip"]
    assert [line[-2] for line in lines] == ["**90.00**", "**80.00**"]  # the best of each block
    assert notes[0] == "ID set: a; Words: each method's own."
    html = to_html(tables_of(of(rows))["main"])
    assert "<span>Encoder: clip</span>" in html


def test_groups_have_averages():
    own = suite(ood=("near", "mid", "far"), groups={"close": ("near", "mid"), "distant": ("far",)})
    rows = [row(ood=ood, auroc=a) for ood, a in (("near", 0.6), ("mid", 0.8), ("far", 1.0))]
    head, lines, _ = markdown(of(rows, own))
    found = dict(zip(head, lines[0], strict=True))
    assert found["Average AUROC ↑"] == "**80.00**"
    assert found["Average close AUROC ↑"] == "**70.00**"
    assert found["Average distant AUROC ↑"] == "**100.00**"


def paper_suite(*methods, **changes):
    return suite(methods, SETS, published="table1", id=PAPER[:1], encoders=PAPER[1:2], **changes)


def paper_rows(*entries, condition=PAPER, auroc=0.99):
    return [row(entry, ood, condition=condition, auroc=auroc) for entry in entries for ood in SETS]


def test_published_rows_stand_below_ours_and_the_rest_last():
    own = paper_suite(Entry("debiased", published="Ours"), Entry("csp"), Entry("mcm", published="MCM"))
    _, lines, notes = markdown(of(paper_rows("debiased", "csp", "mcm", auroc=0.5), own))
    assert [line[:2] for line in lines[:5]] == [
        ["debiased", "measured"],
        ["Ours", "published"],
        ["csp", "measured"],
        ["mcm", "measured"],
        ["MCM", "published"],
    ]
    assert len(lines) == 3 + 19
    assert all(line[1] == "published" for line in lines[5:])
    assert lines[1][2:] == ["99.51", "1.78", "95.88", "16.90", "91.95", "32.13", "90.72", "38.67", "94.52", "22.37"]
    assert [line[0] for line in lines if "**" in line[-2]] == ["debiased", "csp", "mcm"]  # all ours are the same
    assert "published: as printed in arXiv 2605.23797, Table 1, not measured here." in notes


def test_namesakes_of_the_paper_are_told_apart():
    zero = "Energy (zero-shot, training-free)"
    _, lines, _ = markdown(of(paper_rows("energy"), paper_suite(Entry("energy", published=zero))))
    assert [line[0] for line in lines[:2]] == ["energy", zero]
    _, lines, _ = markdown(of(paper_rows("energy"), paper_suite(Entry("energy", published="Energy"))))
    assert [line[0] for line in lines[:3]] == ["energy", "Energy (requires training (or fine-tuning))", zero]


@pytest.mark.parametrize(
    "condition",
    [("folder", "clip-vit-b-16", ""), ("imagenet-1k", "mini", ""), ("imagenet-1k", "clip-vit-b-16", "common")],
)
def test_other_conditions_have_no_published_rows(condition):
    own = paper_suite(Entry("debiased", published="Ours"))
    _, lines, _ = markdown(of(paper_rows("debiased", condition=condition), own))
    assert [line[0] for line in lines] == ["debiased"]


def test_printed_slips_are_noted():
    own = replace(paper_suite(Entry("mcm", published="MCM")), published="table2")
    condition = ("imagenet-1k", "clip-vit-b-32", "wordnet")
    _, lines, notes = markdown(of(paper_rows("mcm", condition=condition), own))
    assert lines[1][-2] == "89.96"  # as printed
    assert any("89.18" in note for note in notes)


def test_what_published_rows_used_is_told():
    _, _, notes = markdown(of(paper_rows("mcm"), paper_suite(Entry("mcm", published="MCM"))))
    assert any(note.startswith("published LoCoOp: 16 photos of each class, GL-MCM's score;") for note in notes)


def test_the_published_row_stands_below_its_number_of_shots():
    own = paper_suite(*learned(1, method="locoop"), *learned(16, method="locoop", published="LoCoOp"))
    _, lines, _ = markdown(of(paper_rows("locoop, 1 shot", "locoop, 16 shots"), own))
    assert [line[0] for line in lines[:3]] == ["locoop, 1 shot", "locoop, 16 shots", "LoCoOp"]


def test_a_missing_set_keeps_its_columns():
    own = paper_suite(Entry("debiased", published="Ours"))
    rows = [one for one in paper_rows("debiased") if one.ood != "sun"]
    skipped = [Skipped("set", "sun", "missing, skipped: put it in SUN/")]
    head, lines, notes = markdown(of(rows, own, skipped=skipped, titles={"sun": "SUN"}))
    found = dict(zip(head, lines[0], strict=True))
    assert found["SUN AUROC ↑"] == "–"
    assert found["Average of 3 of 4 sets AUROC ↑"] == "**99.00**"
    assert lines[1][-2] == "94.52"
    assert "Average of 3 of 4 sets: not comparable with published averages." in notes
    assert "SUN: missing, skipped: put it in SUN/." in notes
    assert raw(of(rows, own, skipped=skipped))[0]["sun_auroc"] == ""


def test_a_method_that_lacks_a_set_has_no_average():
    rows = [row("debiased", "near"), row("debiased", "far"), row("mcm", "near")]
    _, lines, _ = markdown(of(rows))
    assert lines[1][1:] == ["90.00", "20.00", "–", "–", "–", "–"]


def test_what_was_left_out_is_told_once():
    conditions = [("a", "mini", ""), ("b", "mini", ""), ("c", "mini", "")]
    rows = [row(ood=ood, condition=condition) for condition in conditions for ood in ("near", "far")]
    everywhere = [Skipped("method", "mcm", "no reason", condition) for condition in conditions]
    skipped = [*everywhere, Skipped("method", "csp", "odd", conditions[1]), Skipped("encoder", "clip", "no torch")]
    outcome = of(rows, suite(["debiased", "mcm", "csp"]), skipped=skipped)
    _, lines, notes = markdown(outcome)
    assert [line[1] for line in lines] == ["debiased"] * 3
    told = ["mcm: skipped: no reason.", "csp: skipped: odd (in b).", "clip: skipped: no torch."]
    assert notes[-3:] == told
    missing = [(one["id"], one["method"]) for one in raw(outcome) if one["source"] == "missing"]
    assert missing == [("a", "mcm"), ("b", "mcm"), ("b", "csp"), ("c", "mcm")]


def test_unreadable_images_are_counted():
    rows = [row(ood=ood, n_ood=5638, unread_ood=2 * (ood == "far"), unread_id=3) for ood in ("near", "far")]
    _, _, notes = markdown(of(rows))
    assert notes[-2:] == ["folder: 3 images could not be read.", "far: 2 of 5,640 images could not be read."]
    assert "folder: 1 image could not be read." in markdown(of([row(ood="far", unread_id=1)]))[2]


def test_the_long_table():
    rows = [row(seed=0, auroc_ci=(0.8, 0.9)), row(seed=1, auroc_ci=(0.7, 1.0)), row("mcm", chance=False)]
    head, lines, notes = markdown(of(rows), "all")
    found = dict(zip(head, lines[0], strict=True))
    assert (found["Method"], found["OOD set"], found["Seeds"]) == ("debiased", "near", "2")
    assert lines[0][3] == "75.00 to 95.00"
    assert (found["FPR95 (ID positive) ↓"], found["FPR95 (OOD positive) ↓"]) == ("20.00 ± 0.00", "40.00 ± 0.00")
    assert (found["AUPR (ID) ↑"], found["ID images"], found["OOD images"]) == ("80.00 ± 0.00", "100", "50")
    assert any("each end is the mean over seeds" in note for note in notes)
    first = raw(of(rows), "all")[0]
    assert (float(first["auroc_ci_low"]), float(first["auroc_ci_high"])) == pytest.approx((0.75, 0.95))


def test_a_table_for_each_swept_parameter():
    own = suite(["debiased"], kind="sweep", sweep=(Sweep("tau", (0.5, 0.1)), Sweep("sigma", (0.0,))))
    points = {"tau=0.5": 0.9, "tau=0.1": 0.8, "sigma=0": 0.7}
    rows = [row(ood=ood, point=point, auroc=a) for point, a in points.items() for ood in ("near", "far")]
    tables = tables_of(of(rows, own))
    assert list(tables) == ["sweep-tau", "sweep-sigma", "all"]
    head, lines, notes = markdown(of(rows, own), "sweep-tau")
    assert [line[0] for line in lines] == ["0.1", "0.5"]
    assert dict(zip(head, lines[0], strict=True))["Average AUROC ↑"] == "80.00"
    assert notes[0] == "The paper's tau is 0.5."
    several = suite(["debiased", "mcm"], kind="sweep", sweep=own.sweep)
    assert markdown(of(rows, several), "sweep-tau")[0][:2] == ["Method", "tau"]
    assert markdown(of(rows, own), "all")[1][0][:2] == ["debiased", "tau=0.5"]


def learned(*shots, method="coop", **changes):
    return Entry(method, shots=shots, **changes).by_shots()


def test_figures_by_shots(tmp_path):
    own = suite(["mcm", "knn", *learned(1, 16), *learned(4, method="lapt", name="words")])
    outcome = run(tmp_path, own, ahead={"coop, 16 shots": 3.0}, fixed=["mcm"])
    (table,) = shot_tables(outcome)
    assert (table.name, table.title) == ("shots", "Made up: mean AUROC by shots")
    assert [column.group for column in table.columns[1::2]] == ["0 shots", "1 shot", "4 shots", "16 shots"]
    cells = {line.cells[0]: line.cells[1:] for line in table.rows}
    assert [*cells] == ["mcm", "coop", "words"]  # knn learns no prompts, and has no part in this
    assert [[cell is not None for cell in line[::2]] for line in cells.values()] == [
        [True, False, False, False],
        [False, True, False, True],
        [False, False, True, False],
    ]
    mean, (low, high) = cells["coop"][-2:]
    rows = outcome.select(entry="coop, 16 shots")
    assert mean.mean == pytest.approx(sum(one.auroc for one in rows) / len(rows))
    assert mean.sd is not None and cells["mcm"][0].sd is None
    assert low < mean.mean < high
    assert "shots_16_auroc_ci_low" in to_csv(table).splitlines()[0]


def test_one_number_of_shots_is_no_table(tmp_path):
    assert shot_tables(run(tmp_path, suite(["mcm", *learned(16)]))) == []
    left_out = replace(run(tmp_path / "b", suite(["mcm"])), suite=suite(["mcm", *learned(1, 16)]))
    assert shot_tables(left_out) == []


def test_nothing_measured_gives_no_table():
    assert make_tables(of([])) == []


def test_odd_names_stay_text(tmp_path):
    odd = "a|b_50%&*\udce9"
    table = tables_of(of([row("debiased", odd)], suite(ood=(odd,))))["main"]
    assert r"a\|b_50%&\*" in to_markdown(table)
    assert r"a|b\_50\%\&*" in to_latex(table)
    assert len(next(line for line in to_markdown(table).splitlines() if "debiased" in line).split(" | ")) == 5
    write_tables(make_tables(of([row("debiased", odd)], suite(ood=(odd,)))), tmp_path)
    for path in (tmp_path / "tables").iterdir():
        odd = "\\xe9" if path.suffix == ".csv" else "\\udce9"
        assert odd in path.read_text(encoding="utf-8") or path.name.endswith("tex")


def test_latex():
    own = paper_suite(Entry("debiased", published="Ours"), Entry("mcm"))
    rows = paper_rows("debiased") + paper_rows("mcm", auroc=0.5)
    text = to_latex(tables_of(of(rows, own))["main"])
    assert r"\textit{Ours} & \textit{published} & \textit{99.51}" in text
    assert text.count(r"\textbf{") == 3  # AUROC of one method, FPR95 of both
    assert r"\multicolumn{2}{c}{inaturalist}" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    widths = {line.count("&") for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line}
    assert widths == {11}
    many = suite([Entry("mcm", name=f"mcm {i}") for i in range(50)])
    long = to_latex(tables_of(of([row(f"mcm {i}", ood) for i in range(50) for ood in ("near", "far")], many))["main"])
    assert long.count("longtable}") == 2


def test_equal_rows_give_equal_files(tmp_path):
    first = run(tmp_path / "a", samples=5)
    again = replace(first, folder=tmp_path / "b", rows=[replace(r, fit_seconds=9.0, commit="x") for r in first.rows])
    for outcome in (first, again):
        write_tables(make_tables(outcome), outcome.folder)
    paths = [sorted((tmp_path / name / "tables").iterdir()) for name in ("a", "b")]
    assert [p.name for p in paths[0]] == [f"{n}.{s}" for n in ("all", "main") for s in ("csv", "md", "tex")]
    assert [p.read_bytes() for p in paths[0]] == [p.read_bytes() for p in paths[1]]
    text = "".join(p.read_text(encoding="utf-8") for p in paths[0])
    assert str(tmp_path) not in text
    assert not re.search(r"20\d\d-\d\d", text)


def test_terms_that_are_not_those_of_all_are_told():
    rows = [
        row("debiased", config={**config("debiased"), "learned": {"tau": 0.1}}),
        row("knn", config=config("knn", needs=["labels", "ID images"])),
        row("adaneg", config=config("adaneg", sees_order=True)),
        row("odin", config=config("odin", on_vectors={"epsilon": 0.0})),
    ]
    told = "\n".join(make_tables(of(rows, suite(["debiased", "knn", "adaneg", "odin"])))[0].notes)
    assert "Fitted on ID images, the others on names: knn." in told
    assert "adaneg learns from the test images" in told
    assert "odin is measured on vectors, without its step of the pixels: epsilon=0.0." in told
    assert "tau is lowered where there are few labels for the size of a group, to 0.1 " in told
    assert "stands for it" not in told
    other = row("mcm", condition=("imagenet-1k", "clip-vit-b-16", ""), config=config("mcm", encoder="hf:/mine"))
    notes = make_tables(of([other], suite(["mcm"], id=("imagenet-1k",), encoders=("clip-vit-b-16",))))[0].notes
    assert "Encoder clip-vit-b-16: hf:/mine stands for it." in notes
    several = [replace(other, encoder=name) for name in ("clip-vit-b-16", "clip-rn50")]
    notes = make_tables(of(several, suite(["mcm"], encoders=("clip-vit-b-16", "clip-rn50"))))[0].notes
    assert sum("stands for it" in note for note in notes) == 2


def test_a_method_with_other_settings_for_each_encoder_has_one_line_each():
    own = suite(
        [Entry("mcm", name="same", encoders=(e,)) for e in ("mini", "clip-rn50")], encoders=("mini", "clip-rn50")
    )
    rows = [row("same", condition=("folder", encoder, "")) for encoder in own.encoders]
    table = make_tables(of(rows, own))[0]
    assert [line.cells[0].name for line in table.rows] == ["mini", "clip-rn50"]


def test_csv_has_no_formulas():
    columns = [Column("Method", "method"), Column("n", "n", "count"), Column("AUROC", "@auroc", "figure")]
    rows = [Line([Label("=1+1", "one"), -2, Value(-0.5, None)]), Line(["@x", None, None]), Line(["-1.5e-07", 0, None])]
    assert (
        to_csv(Table("t", "T", columns, rows, []))
        == "method,n,'@auroc,'@auroc_sd\n'=1+1,-2,-0.5,\n'@x,,,\n-1.5e-07,0,,\n"
    )
