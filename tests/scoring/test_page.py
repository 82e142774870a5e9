import base64
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.bad_images import picture
from helpers.pages import HOSTILE, STYLE, Page
from outword.base.prediction import Prediction, cells
from outword.photos.decode import open_image, thumbnail
from outword.scoring.page import Card, Sample, Summary, write_page

SUMMARY = Summary(labels=[f"label {i}" for i in range(1234)], encoder="mini", method="debiased", threshold=0.5)


def card(score, path="a.jpg", thumbnail=b"", remark="", **changes):
    verdict = "" if score is None else "in" if score >= 0.5 else "out"
    record = Prediction(path, **{"score": score, "verdict": verdict, "nearest": "tabby cat", **changes})
    return Card({**cells(record), "score": score, "words": record.words}, thumbnail, remark)


def page_of(tmp_path, rows, summary=SUMMARY, title="photos", **limits):
    sample = Sample(**limits)
    for each in rows:
        sample.add(each)
    write_page(tmp_path / "page.html", sample, title=title, summary=summary)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    return text, Page(text)


def test_the_page_holds_everything_and_asks_nobody(tmp_path):
    photo = thumbnail(open_image(picture()))
    rows = [
        card(0.9, "cat.jpg", thumbnail=photo, remark="known", p=0.008),
        card(0.1, "tea.jpg", words=(("teapot", 0.25), ("saucer", 0.004)), looks_like=("cup of tea",)),
        card(None, "bad.jpg", error="truncated image"),
    ]
    text, page = page_of(tmp_path, rows)
    shown = " ".join(page.texts)
    for words in ("1,234: label 0, label 1,", "mini", "debiased", "teapot", "25 %", "0.4 %", "truncated image"):
        assert words in shown
    assert "label 7 and 1,226 more" in shown and "label 8" not in shown
    as_label = "as tabby cat (to the encoder: known)"
    for line in (as_label, "looks like: cup of tea", "fits better than 99.2 % of unrelated photos"):
        assert line in re.sub(r"\s+", " ", shown)
    assert page.tags.count("details") == 2  # what decided is folded away
    images = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert [base64.b64decode(source.removeprefix("data:image/jpeg;base64,")) for source in images] == [photo]
    assert [value for tag, name, value in page.attributes if (tag, name) == ("img", "alt")] == ["cat.jpg"]
    assert ("meta", "content", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in page.attributes
    assert STYLE in text
    assert not {"script", "link", "iframe", "form", "object"} & set(page.tags)
    assert not re.search(r"https?:|//|url\(|@import", re.sub('base64,[^"]*', "", text))
    targets = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    ids = {value for _, name, value in page.attributes if name == "id"}
    assert {target.removeprefix("#") for target in targets} == ids == {"in", "out", "error"}


def test_photos_of_one_class_can_be_shown_without_a_script(tmp_path):
    labels = [*["dog"] * 3, *["cat"] * 2, "<i>imp"]
    rows = [card(0.9 - place / 100, f"{place}.jpg", label=label, nearest=label) for place, label in enumerate(labels)]
    text, page = page_of(tmp_path, [*rows, card(0.1, "out.jpg", nearest="cat")])
    assert [value for tag, name, value in page.attributes if (tag, name) == ("input", "value")] == [
        "any",
        "0",
        "1",
        "2",
    ]
    shown = " ".join(" ".join(page.texts).split())
    assert "any class dog 3 cat 2 <i>imp 1" in shown
    places = [value for tag, name, value in page.attributes if (tag, name) == ("li", "data-class")]
    assert places == ["0", "0", "0", "1", "1", "2", "1"]
    rule = 'body:has(.classes [value="1"]:checked) .card:not([data-class="1"]) { display: none; }'
    assert text.count(rule) == 1
    many, _ = page_of(tmp_path, [card(0.9, label=f"label {place}", nearest="x") for place in range(60)])
    assert "and 10 more classes" in many
    one, _ = page_of(tmp_path, rows, Summary(["dog"], "mini", "mcm", 0.5))
    assert 'type="radio"' not in one  # there is nothing to choose from


def test_the_page_says_what_to_expect_of_each_class(tmp_path, detector):
    known = detector.labels_report[0]
    assert Summary.of(detector).expected[0].share == min(one.share for one in detector.labels_report)
    weak = replace(known, label="<i>imp", share=0.1, word="not seen", try_names="try elf")
    summary = replace(SUMMARY, expected=[weak, *[known] * 60])
    shown = " ".join(" ".join(page_of(tmp_path, [card(0.9)], summary)[1].texts).split())
    assert "<i>imp not seen, 10 %: about 1 of 10 of its photos will be in" in shown
    assert "most photos of <i>imp may be kept out" in shown and "What helps: try elf; or " in shown
    assert "and 11 more, none of them worse" in shown


def test_words_that_were_read_from_a_file_are_a_text(tmp_path):
    words = (("teapot", 0.25), ("saucer", 0.04))
    read = Card(cells(Prediction("tea.jpg", score=0.1, verdict="out", nearest="cat", words=words)))
    text, page = page_of(tmp_path, [read])
    assert "teapot 0.25; saucer 0.04" in " ".join(page.texts) and '<ul class="words">' not in text


def test_hostile_text_stays_text(tmp_path):
    told = {"nearest": HOSTILE, "words": ((HOSTILE, 0.5),), "remark": HOSTILE, "notes": (HOSTILE,)}
    rows = [
        card(0.9, HOSTILE, **told, verdict=f"in {HOSTILE}", thumbnail=b"x"),
        card(0.1, HOSTILE, looks_like=(HOSTILE,)),
        card(None, HOSTILE, error=HOSTILE),
    ]
    summary = Summary(labels=[HOSTILE], encoder=HOSTILE, method=HOSTILE, threshold=0.5, calibration=HOSTILE)
    text, page = page_of(tmp_path, rows, summary=summary, title=HOSTILE)
    assert "script" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    visible = HOSTILE.replace("\n", "\\n").replace("\u202e", "\\u202e").replace("\udce9", "\\udce9")
    assert sum(visible in piece for piece in page.texts) >= 12
    assert "\u202e" not in text


def test_rows_are_sorted_and_errors_come_last(tmp_path):
    scores = [0.2, None, 0.9, 0.5, 0.7, 0.2]
    _, page = page_of(tmp_path, [card(score, f"{i}.jpg", error="x") for i, score in enumerate(scores)])
    names = [text for text in page.texts if text.endswith(".jpg")]
    assert names == ["2.jpg", "4.jpg", "3.jpg", "0.jpg", "5.jpg", "1.jpg"]
    shown = "".join(page.texts)
    assert "In (3)" in shown
    assert "Out (2)" in shown
    assert "Errors (1)" in shown


def test_uncalibrated_says_what_to_do(tmp_path):
    text, _ = page_of(tmp_path, [card(0.9)])
    assert "0.5000 (uncalibrated)" in text
    assert "<small>(uncalibrated)</small>" in text
    assert "outword calibrate" in text
    told = "95 % of 200 photos"
    fitted = Summary(labels=["cat", "dog"], encoder="mini", method="mcm", threshold=0.25, calibration=told)
    text, _ = page_of(tmp_path, [card(0.9)], summary=fitted)
    assert "<dd>2: cat, dog</dd>" in text
    assert "uncalibrated" not in text
    assert "0.2500 (95 % of 200 photos)" in text


def bars(page):
    return [text for text in page.texts if re.fullmatch(r"\S+ to \S+: [\d,]+", text)]


def test_histogram_counts_every_score(tmp_path):
    scores = [i / 1000 for i in range(1000)] + [float("inf")]
    text, page = page_of(tmp_path, [card(score) for score in scores], limit=10)
    counts = [int(text.split(": ")[1].replace(",", "")) for text in bars(page)]
    assert sum(counts) == 1000
    assert len(counts) == 48
    assert 'x1="24.0' in text
    assert "Showing 10 of 1,001 scored images" in text


@pytest.mark.parametrize(
    ("scores", "threshold"),
    [([0.5], 0.5), ([0.0], 0.0), ([3.0, 3.0], 0.5), ([-1e9, 1e9], 0.0), ([1e-12], 2e-12), ([1.0, 1.0 + 3e-16], 1.0)],
)
def test_histogram_of_few_scores(tmp_path, scores, threshold):
    summary = Summary(labels=["cat"], encoder="mini", method="energy", threshold=threshold)
    _, page = page_of(tmp_path, [card(score) for score in scores], summary=summary)
    assert 1 <= len(bars(page)) <= len(scores)
    assert sum(int(text[-1]) for text in bars(page)) == len(scores)


def test_an_empty_page_and_a_page_of_errors(tmp_path):
    text, page = page_of(tmp_path, [])
    assert "svg" not in page.tags
    text, page = page_of(tmp_path, [card(None, error="empty file")] * 1234)
    assert "the first 100 of 1,234" in text
    assert text.count("empty file") == 100


def test_a_failed_write_leaves_the_old_page(tmp_path):
    page_of(tmp_path, [card(0.9)])
    before = (tmp_path / "page.html").read_bytes()
    with pytest.raises(AttributeError):
        write_page(tmp_path / "page.html", Sample(), title="x", summary=None)
    assert (tmp_path / "page.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.integers(0, 9) | st.floats(-2, 2)), st.integers(0, 6).map(lambda half: 2 * half))
def test_sample_keeps_the_extremes(scores, limit):
    sample = Sample(limit=limit)
    rows = [card(score, str(i)) for i, score in enumerate(scores)]
    for each in rows:
        sample.add(each)
    ranked = sorted((r for r in rows if r.row["score"] is not None), key=lambda r: -r.row["score"])
    half = limit // 2
    expected = ranked if len(ranked) <= limit else ranked[:half] + ranked[len(ranked) - half :]
    assert sample.cards() == expected
    assert sum(sample.counts.values()) == len(scores)
    assert sample.counts["error"] == scores.count(None)
    assert list(sample.scores) == [score for score in scores if score is not None]


def test_sample_stays_small():
    sample = Sample(limit=100)
    for i in range(20_000):
        sample.add(card((i * 7919 % 20_000) / 20_000, str(i)))
    kept = [each.row["score"] for each in sample.cards()]
    assert len(kept) == 100
    assert kept == sorted(kept, reverse=True)
    assert kept[49] == 1 - 50 / 20_000
    assert kept[50] == 49 / 20_000
    assert [len(heap) for heap in sample._heaps] == [50, 50]
