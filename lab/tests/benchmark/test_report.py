import base64
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from helpers.bad_images import encoded, picture
from helpers.fabricated import MINI, config, row, run, suite, wrong
from helpers.pages import HOSTILE, STYLE, Page
from outword.errors import ImageError
from outword_lab.benchmark.run.results import Outcome, Skipped
from outword_lab.benchmark.run.suite import Entry, Sweep
from outword_lab.benchmark.show.plots import write_plots
from outword_lab.benchmark.show.report import write_report
from outword_lab.benchmark.show.summary import leads, ranking
from outword_lab.benchmark.show.table import Column, Line, Table
from outword_lab.benchmark.show.tables import make_tables
from outword_lab.benchmark.show.verdict import weakness

PAPER = ("imagenet-1k", "clip-vit-b-16", "")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


def report(outcome, path, figures=(), tables=None, **more):
    write_report(outcome, path / "report.html", figures, make_tables(outcome) if tables is None else tables, **more)
    text = (path / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


def said(page):
    return re.sub(r"\s+", " ", "".join(page.texts))


def test_the_winner_is_named_with_its_lead(tmp_path):
    own = suite(["debiased", "mcm", "energy"], seeds=5)
    outcome = run(tmp_path, own, ahead={"debiased": 0.5, "mcm": 3.0, "energy": 1.5}, samples=200)
    text = said(report(outcome, tmp_path)[1])
    found = leads(outcome, MINI)["energy"]
    assert found.low > 0
    assert found.share == 1.0
    assert "mcm has the highest mean AUROC over 2 OOD sets" in text
    points, low = f"{100 * found.points:.2f} points", f"{100 * found.low:.2f}"
    assert f"It leads energy by {points} (95 % interval for all pairs at once {low} to" in text
    assert "It leads debiased (the paper's method) by" in text
    assert "mcm is ahead in 100.0 % of the samples" in text
    assert "not separable" not in text
    assert "names only" not in text
    fpr95 = sum(one.fpr95_id for one in outcome.select(entry="mcm")) / 10
    assert f"mcm is the best by FPR95, too: {100 * fpr95:.2f} %." in text


def test_methods_that_see_images_are_marked_and_the_best_that_does_not_is_named(tmp_path):
    own = suite(["debiased", "mcm", "knn", "adaneg"])
    made = run(tmp_path, own, ahead={"debiased": 0.5, "mcm": 1.0, "knn": 3.0, "adaneg": 2.5})
    sees = {"knn": {"needs": ["ID images"]}, "adaneg": {"sees_order": True}}
    outcome = replace(
        made, rows=[replace(one, config=config(one.entry, one.seed, **sees.get(one.entry, {}))) for one in made.rows]
    )
    text = said(report(outcome, tmp_path)[1])
    found = leads(outcome, MINI)["mcm"]
    mean = dict(ranking(outcome, MINI))["mcm"]
    assert "knn (fitted on ID images) has the highest" in text
    assert "It leads adaneg (learns from the test images) by" in text
    best = f"mcm is the best, {100 * mean:.2f} %: {100 * found.points:.2f} points behind (95 % interval "
    assert f"Of the methods that need names only, {best}" in text
    rows = [one for one in outcome.rows if one.entry in ("knn", "debiased")]
    text = said(report(replace(outcome, rows=rows), tmp_path)[1])
    assert "need names only, debiased (the paper's method) is the best" in text
    assert "It leads" not in text  # it is told once


def test_fpr95_may_disagree(tmp_path):
    outcome = run(tmp_path, suite(["mcm", "knn"], seeds=1), ahead={"mcm": 3.0, "knn": 1.0})
    rows = [replace(one, fpr95_id=0.25 if one.entry == "mcm" else 0.125) for one in outcome.rows]
    text = said(report(replace(outcome, rows=rows), tmp_path)[1])
    assert "By FPR95 the best is knn, 12.50 %; mcm has 25.00 %." in text


def test_the_lead_by_hand(tmp_path):
    outcome = run(tmp_path, suite(["debiased", "mcm"], seeds=1), ahead={"mcm": 2.0}, samples=40)
    found = leads(outcome, MINI)["debiased"]
    auroc = {name: [row.auroc for row in outcome.select(entry=name)] for name in ("mcm", "debiased")}
    assert found.points == pytest.approx(sum(auroc["mcm"]) / 2 - sum(auroc["debiased"]) / 2)
    boot = {
        name: sum(outcome.replicates(row)[:, 0] for row in outcome.select(entry=name)) / 2
        for name in ("mcm", "debiased")
    }
    assert found.share == (boot["mcm"] > boot["debiased"]).mean()
    spread = boot["mcm"] - boot["debiased"]
    width = np.quantile(np.abs(spread - spread.mean()), 0.95)  # of one pair: c is the quantile of its own deviation
    assert (found.low, found.high) == pytest.approx((found.points - width, found.points + width))


def test_leads_resample_what_a_seed_decides(tmp_path):
    """Seeds that differ by far more than images widen the interval of a lead."""
    outcome = run(tmp_path, suite(["debiased", "mcm"], seeds=4), ahead={"mcm": 1.6}, samples=200)
    narrow = leads(outcome, MINI)["debiased"]
    moved = {(one.entry, one.seed, one.ood): 0.2 * (one.entry == "mcm") * (one.seed % 2) for one in outcome.rows}
    seen = type(outcome).replicates
    shaken = type(
        "Shaken", (type(outcome),), {"replicates": lambda self, r: seen(self, r) - moved[r.entry, r.seed, r.ood]}
    )
    wide = leads(shaken(*(getattr(outcome, f.name) for f in fields(outcome))), MINI)["debiased"]
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_what_prompts_were_learned_from_is_told(tmp_path):
    used = {"photos": 400, "shots": 16, "words": 0, "photos_of_words": 0, "losses": [0.5], "moved": False}
    found = {
        "coop, 16 shots": {**used, "id_images": {"classes": 25}},
        "lapt": {**used, "photos": 390, "words": 1000, "photos_of_words": 8, "id_images": {"classes": 25}},
        "mcm": None,
    }
    made = run(tmp_path, suite([*(Entry("mcm", name=name) for name in found), "knn"]))
    more = {name: {"learned_from": one} for name, one in found.items()}
    rows = [replace(one, config=config(one.entry) | more.get(one.entry, {})) for one in made.rows]
    text = said(report(replace(made, rows=rows), tmp_path)[1])
    assert "coop, 16 shots: learned from 400 photos, 16 of each label." in text
    assert "lapt: learned from 390 photos, at most 16 of each label; 1,000 words; 8 photos of words." in text
    assert text.count("learned from") == 3  # and the heading
    assert "losses" not in text


def test_equal_methods_are_tied(tmp_path):
    text = said(report(run(tmp_path, suite(["mcm", "debiased", "energy"])), tmp_path)[1])
    assert "It is tied with debiased (the paper's method) and energy." in text
    assert "It leads" not in text


def test_a_lead_within_chance_is_not_separable(tmp_path):
    outcome = run(tmp_path, suite(["mcm", "debiased"]), ahead={"mcm": 1.6})
    rows = [replace(one, auroc=0.9 + 1e-6 * (one.entry == "mcm")) for one in outcome.rows]
    text = said(report(replace(outcome, rows=rows), tmp_path)[1])
    assert text.count("It leads") == 1  # the second and the paper's are one
    assert (
        "It leads debiased (the paper's method) by less than 0.01 points (95 % interval for all pairs at once" in text
    )
    assert "not separable, as the interval contains 0" in text


def test_the_weakest_set_and_who_is_ahead_there():
    figures = {"mcm": (0.9, 0.7), "knn": (0.6, 0.8), "vim": (0.5, 0.75)} | {f"m{i}": (0.1, 0.71) for i in range(4)}
    rows = [
        row(name, ood, auroc=figure)
        for name, pair in figures.items()
        for ood, figure in zip(("near", "far"), pair, strict=True)
    ]
    rows = [replace(one, config=config("knn", needs=["ID images"])) if one.entry == "knn" else one for one in rows]
    outcome = Outcome(suite(list(figures)), None, rows, titles={"far": "<far>"})
    text = weakness(outcome, MINI, "mcm").replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith("mcm is weakest on &lt;far&gt;: AUROC 70.00 %. Ahead of it there: <b>knn</b> (fitted on ID")
    assert text.endswith("ID images) with 80.00 %, vim, m0, m1, m2 and 1 more.")
    assert "weakest on near: AUROC 60.00\N{NO-BREAK SPACE}%. Ahead of it there: <b>mcm</b> with" in weakness(
        outcome, MINI, "knn"
    )
    alone = Outcome(suite(["mcm"], ["far"]), None, [row("mcm", "far", auroc=0.7)])
    assert weakness(alone, MINI, "mcm").startswith("mcm is measured on far: AUROC 70.00")
    assert weakness(alone, MINI, "mcm").endswith("No other method is ahead of it there.")


def test_methods_without_all_sets_have_no_winner(tmp_path):
    outcome = run(tmp_path, suite(["mcm", "debiased"], seeds=1), samples=5)
    kept = [row for row in outcome.rows if (row.entry, row.ood) not in (("mcm", "far"), ("debiased", "near"))]
    lacking = replace(outcome, rows=kept)
    assert write_plots(lacking, tmp_path) == []
    assert "No method has figures on all OOD sets." in said(report(lacking, tmp_path)[1])


def test_a_single_method(tmp_path):
    assert "No other method was measured." in said(report(run(tmp_path, suite(["mcm"])), tmp_path)[1])


def test_the_page_asks_nobody_and_is_well_formed(tmp_path):
    outcome = run(tmp_path, worst=[wrong(), wrong("id/1.jpg", inside=True)], samples=5)
    figures = write_plots(outcome, tmp_path)
    text, page = report(
        outcome,
        tmp_path,
        figures,
        read=lambda paths: dict.fromkeys(paths, encoded(picture(), "PNG")),
        command="outword bench x",
    )
    assert ("meta", "content", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in page.attributes
    assert any(name == "viewport" for _, _, name in page.attributes)
    assert STYLE in text
    assert not {"script", "link", "iframe", "form", "object"} & set(page.tags)
    assert not re.search(r"https?:|//|url\(|@import", re.sub('base64,[^"]*', "", text))
    sources = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    svg = [base64.b64decode(s.partition(",")[2]) for s in sources if s.startswith("data:image/svg+xml;base64,")]
    panels = [path.read_bytes() for path in figures if path.parent.name == "panels"]
    assert sorted(svg) == sorted(panels)
    assert sum(s.startswith("data:image/jpeg;base64,") for s in sources) == 2  # the winner is the paper's: shown once
    targets = [value.removeprefix("#") for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert targets == ids == ["winner", "figures", "failures", "curves", "all", "conditions"]
    assert "outword bench x" in said(page)


def test_failures_come_worst_first_and_an_unreadable_one_has_no_picture(tmp_path):
    worst = [wrong(f"ood/{score}.jpg", score=score) for score in (0.5, 2.5, 1.5)]
    worst += [wrong(f"id/{score}.jpg", inside=True, score=score) for score in (-1.5, -2.5)]
    outcome = run(tmp_path, suite(["debiased"]), worst=worst, samples=5, titles={"far": "Far away"})

    def content(path):
        if "2.5" in path:
            return ImageError("gone")
        return b"no image" if "1.5" in path else encoded(picture(), "JPEG")

    def read(paths):
        return {path: content(path) for path in paths}

    _, page = report(outcome, tmp_path, read=read)
    names = [text for text in page.texts if text.endswith(".jpg")]
    assert names == ["ood/2.5.jpg", "ood/1.5.jpg", "ood/0.5.jpg", "id/-2.5.jpg", "id/-1.5.jpg"]
    assert [value for tag, name, value in page.attributes if (tag, name) == ("img", "alt")] == ["ood/0.5.jpg"]
    shown = said(page)
    for words in ("Far away", "tabby cat", "lynx", "50 %", "2.5000"):
        assert words in shown
    assert "img" not in report(outcome, tmp_path)[1].tags


def test_hostile_text_stays_text(tmp_path):
    own = suite([Entry("debiased", name=HOSTILE), "mcm"], title=HOSTILE, about=HOSTILE)
    skipped = [Skipped("method", HOSTILE, HOSTILE, MINI)]
    worst = [wrong(HOSTILE, label=HOSTILE, words=[(HOSTILE, 0.5)])]
    # A name that is no file name would stop `run`, not the report.
    outcome = run(tmp_path, replace(own, methods=(Entry("debiased", name="x"), Entry("mcm"))), worst=worst, samples=5)
    rows = [
        replace(
            row,
            entry=HOSTILE if row.entry == "x" else row.entry,
            config={**row.config, HOSTILE: HOSTILE, "own": row.entry},
        )
        for row in outcome.rows
    ]
    outcome = replace(outcome, suite=own, rows=rows, skipped=skipped, titles={"far": HOSTILE})
    text, page = report(outcome, tmp_path, command=HOSTILE)
    assert "script" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "\u202e" not in text
    visible = HOSTILE.replace("\n", "\\n").replace("\u202e", "\\u202e").replace("\udce9", "\\udce9")
    assert sum(visible in piece for piece in page.texts) >= 10


def test_published_figures_are_marked(tmp_path):
    own = suite(
        [Entry("debiased", published="Ours")],
        ("inaturalist", "sun", "places", "textures"),
        published="table1",
        id=PAPER[:1],
        encoders=PAPER[1:2],
    )
    text, page = report(run(tmp_path, own, conditions=[PAPER], samples=5), tmp_path)
    assert text.count('<tr class="published">') == 19
    assert '<tr class="published"><th scope="row">Ours</th><td>published</td><td class="number">99.51</td>' in text
    assert "published: as printed in arXiv 2605.23797, Table 1, not measured here." in said(page)
    assert "not CLIP" not in said(page)


def test_conditions_say_what_was_run(tmp_path):
    skipped = [Skipped("method", "csp", "it lacks words", MINI)]
    outcome = run(tmp_path, samples=5, skipped=skipped)
    rows = [replace(r, config={**r.config, "corpus": {"fingerprint": "abc"}, "tau": 0.5}) for r in outcome.rows]
    text = said(report(replace(outcome, rows=rows), tmp_path)[1])
    for words in ("mini is not CLIP", "csp: skipped: it lacks words.", "commit 0123abc", "numpy 2.0", "0.500", "1.500"):
        assert words in text
    assert "corpus.fingerprintabc" in text
    assert "tau0.5" in text
    assert "different commits" not in text
    assert "as in OpenOOD" in text
    mixed = [replace(rows[0], commit="other", versions={"numpy": "1.0"}), *rows[1:]]
    text = said(report(replace(outcome, rows=mixed), tmp_path)[1])
    assert "Rows come from 2 different commits" in text
    assert "Rows come from 2 different versions" in text


def test_the_first_photos_that_cannot_be_read_are_named(tmp_path):
    unread = {"far": [(f"ood/far/{i}.jpg", "no image") for i in range(7)], "folder": [("id/a/1.jpg", "cut short.")]}
    outcome = replace(run(tmp_path, samples=5, titles={"far": "Far away"}), unread=unread)
    text = said(report(outcome, tmp_path)[1])
    assert text.count("Far away: ood/far/") == 5
    assert "Far away: ood/far/4.jpg: no image." in text
    assert "folder: id/a/1.jpg: cut short." in text


def test_each_condition_has_its_verdict_and_figures(tmp_path):
    both = [("folder", "mini", ""), ("folder", "clip", "")]
    outcome = run(tmp_path, conditions=both, samples=5)
    text, page = report(outcome, tmp_path, write_plots(outcome, tmp_path))
    assert said(page).count("has the highest mean AUROC") == 2
    assert text.count("<h3>Encoder: clip</h3>") == 4
    assert text.count("image/svg+xml") == 2 * (2 + 2 + 2)


def test_a_sweep_shows_figures_first(tmp_path):
    own = suite(["debiased"], kind="sweep", sweep=(Sweep("tau", (0.1, 0.5)), Sweep("L", (100, 200))))
    outcome = run(tmp_path, own, points={"tau=0.1": 0, "tau=0.5": 0.1, "L=100": 0, "L=200": 0.2}, samples=5)
    text, page = report(outcome, tmp_path, write_plots(outcome, tmp_path))
    assert text.count("image/svg+xml") == 2
    assert text.index("image/svg+xml") < text.index("Made up: tau") < text.index("Made up: L")
    assert "has the highest" not in said(page)


def test_a_theorem_has_a_headline_panels_and_tables(tmp_path):
    (tmp_path / "panels").mkdir()
    paths = [tmp_path / "theorem2.svg", tmp_path / "panels" / "theorem2.1.svg"]
    for path in paths:
        path.write_bytes(SVG)
    tables = [
        Table(name, name.title(), [Column("size", "size")], [Line([size])], ["a note"])
        for name, size in (("slopes", "12"), ("points", "13"))
    ]
    outcome = Outcome(suite(kind="theorem"), tmp_path, [])
    text, page = report(outcome, tmp_path, paths, tables=tables, headline="All is <well>.")
    assert text.count(base64.b64encode(SVG).decode()) == 1
    for words in ("All is <well>.", "knee", "Slopes", "12", "a note"):
        assert words in said(page)
    assert text.index("All is") < text.index("svg+xml") < text.index("Slopes") < text.index("<details>")
    assert "In short" not in said(report(outcome, tmp_path, paths, tables=tables)[1])


def test_equal_runs_give_equal_reports(tmp_path):
    texts = []
    for name in ("a", "b"):
        outcome = run(tmp_path / name, samples=5)
        texts.append(report(outcome, tmp_path, write_plots(outcome, tmp_path / name))[0])
    assert texts[0] == texts[1]


def test_a_failed_write_leaves_the_old_report(tmp_path):
    outcome = run(tmp_path, samples=5)
    before = report(outcome, tmp_path)[0]
    with pytest.raises(FileNotFoundError):
        write_report(outcome, tmp_path / "report.html", [tmp_path / "panels" / "roc-1.1.svg"], make_tables(outcome))
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == before
