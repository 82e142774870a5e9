"""What `Detector.predict` gives: records that print, slice, show themselves in a notebook and go to a CSV file."""

import base64
import csv
import io
import re
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import outword
from conftest import PHOTOS
from helpers.archives import write_tar
from outword import Prediction, Predictions
from outword.base.cells import csv_line
from outword.base.prediction import HEADER, better_than, cells, csv_cells
from outword.detector import thumbnails
from outword.detector.judge import judged_anew, side
from outword.errors import InputError
from outword.maths.thresholds import by_hand
from outword.vectors.embed import embed

CAT, WALL = PHOTOS / "cat.jpg", PHOTOS / "brick.jpg"
TURNED = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"  # orientation 6
VIEW = re.compile(r'src="data:image/jpeg;base64,([^"]+)"')


def views(html):
    """The pictures of the rows of a table, or None."""
    found = [VIEW.search(row) for row in html.partition("<tbody>")[2].split("<tr>")[1:]]
    return [view and Image.open(io.BytesIO(base64.b64decode(view[1]))) for view in found]


@pytest.fixture(scope="module")
def found(detector):
    return detector.predict([CAT, str(WALL), "nope.jpg"])


def test_a_single_photo_of_any_kind_is_one_record(detector):
    image = Image.open(CAT)
    score = detector.predict(CAT)[0].score
    for one in (str(CAT), CAT.read_bytes(), image, np.asarray(image)):
        (record,) = detector.predict(one)
        assert record.score == score and record.path in (str(CAT), "photos[0]")


def test_lists_may_be_generators_arrays_of_pixels_or_arrays_of_names(detector):
    pixels = np.stack([np.asarray(Image.open(path).convert("RGB").resize((64, 48))) for path in (CAT, WALL)])
    assert [one.path for one in detector.predict(pixels)] == ["photos[0]", "photos[1]"]
    for some in ((path for path in (CAT, WALL)), np.array([str(CAT), str(WALL)]), np.array([CAT, WALL], object)):
        assert [one.path for one in detector.predict(some)] == [str(CAT), str(WALL)]
    odd = [None, CAT, [CAT], np.zeros((2, 2)), np.array("a.jpg")]
    assert [bool(one.error) for one in detector.predict(odd)] == [1, 0, 1, 1, 1]
    assert detector.predict(odd[-1])[0].error
    with pytest.raises(InputError, match="images must be a list, got int"):
        detector.predict(5)


def test_printed_it_is_a_line_a_photo(found):
    lines = repr(found).splitlines()
    assert lines[0] == "<outword.Predictions: 3 photos, 1 in, 1 out, 1 error>"
    assert lines[1].startswith(f"{CAT}: in, as tabby cat, fits better than 99")
    assert lines[2].startswith(f"{WALL}: out, looks like ") and lines[3] == "nope.jpg: error, no such file"
    assert repr(found[:1]).splitlines() == ["<outword.Predictions: 1 photo, 1 in>", lines[1]]
    many = Predictions([Prediction("a\nb.jpg", error="no such file")] * 1234)
    assert repr(many).splitlines()[0] == "<outword.Predictions: 1,234 photos, 1,234 errors>"
    assert repr(many).splitlines()[1] == "a\\nb.jpg: error, no such file"
    assert repr(many).splitlines()[11:] == ["and 1,224 more"]
    unsure = Predictions([Prediction("a", verdict="uncalibrated", label="dog", nearest="dog")])
    assert repr(unsure).endswith("a: uncalibrated, nearest to dog")


def test_a_notebook_shows_thumbnails_of_files_and_of_photos_in_memory(detector, tmp_path):
    (tmp_path / "gone.jpg").write_bytes(CAT.read_bytes())
    image = Image.open(CAT)
    array = np.array(image)
    grey, alpha = np.array(image.convert("L")), image.convert("RGBA")
    photos = [CAT, tmp_path / "gone.jpg", CAT.read_bytes(), image, array, grey, alpha, "nope.jpg"]
    found = detector.predict(photos)
    (tmp_path / "gone.jpg").unlink()
    array[:] = 0  # the memory is used for something else
    image.close()
    shown = views(found._repr_html_())
    assert [view is not None for view in shown] == [1, 0, 1, 1, 1, 1, 1, 0]
    assert {max(view.size) for view in shown if view} == {thumbnails.SIDE}
    means = [np.asarray(view.convert("L")).mean() for view in shown if view]
    assert max(means) - min(means) < 5
    assert [view is not None for view in views(found[4:]._repr_html_())] == [1, 1, 1, 0]
    assert len(found._repr_html_()) < 40_000


def test_a_table_has_the_first_rows_and_the_columns_that_say_anything():
    name = "<script>alert(1)</script>\u202egpj.jpg"
    html = Predictions([Prediction(name, verdict="in", label="<b>", score=1.5)] * 60)._repr_html_()
    assert html.count("<tr>") == 51 and "and 10 more" in html and "[50:]" in html
    assert "<script" not in html and "\u202e" not in html and "&lt;script&gt;" in html and "&lt;b&gt;" in html
    assert re.findall(r'<th scope="col">(.*?)</th>', html) == ["path", "verdict", "label", "score"]
    assert '<b class="in">in</b>' in html and '<td class="number">1.5000</td>' in html
    assert "http" not in html
    bad = Predictions([Prediction("a.jpg", error="no such file"), Prediction("b.jpg", verdict="out")])._repr_html_()
    assert ">error</b>" in bad and "more" not in bad
    empty = Predictions([])._repr_html_()
    assert "0 photos" in empty and "<table" not in empty


def test_what_is_kept_of_photos_in_memory_has_a_limit(monkeypatch):
    large = np.zeros((3000, 4000, 3), np.uint8)
    wide = Image.new("RGB", (5000, 3))
    kept = list(thumbnails.sketches([large, wide, CAT, None]))
    assert max(kept[0].shape) <= thumbnails.SKETCH and kept[0].base is None
    assert kept[1].size == (358, 1) and kept[2:] == [CAT, None]
    turned = Image.new("RGB", (40, 20))
    turned.info = {"exif": TURNED, "icc_profile": bytes(1 << 20)}
    (kept,) = thumbnails.sketches([turned])
    ((name, view),) = thumbnails.thumbnails([("a", kept)])
    assert name == "a" and kept.info == {"exif": TURNED} and Image.open(io.BytesIO(view)).size == (20, 40)
    monkeypatch.setattr(thumbnails, "ROOM", 150)
    files = [b"x" * 100, b"y" * 100, b"z" * 100, CAT, np.zeros((2, 2), np.uint8)]
    assert list(thumbnails.sketches(files)) == [*files[:2], None, CAT, None]


def test_csv_has_the_columns_of_records_and_the_cells_of_score(detector, found, tmp_path):
    target = tmp_path / "found.csv"
    target.write_text("before")
    found.to_csv(str(target))
    with target.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    named = [field.name for field in fields(Prediction) if field.name not in ("needed", "labels")]
    assert header == named == list(found.to_pandas().columns)
    row = cells(found[0])
    shown = {name: f"{cell:.6g}" if isinstance(cell, float) else cell for name, cell in row.items()}
    assert dict(zip(header, lines[0], strict=True)) == shown
    assert lines[2] == ["nope.jpg", *[""] * (len(header) - 2), "no such file"]


def test_odd_names_in_csv_are_escaped_as_score_does(tmp_path):
    names = ["=cmd.jpg", 'a, "b"\n.jpg', "caf\udce9.jpg", "\ud800.jpg"]
    records = [Prediction(name, verdict="in", score=-0.5, threshold=-np.inf) for name in names]
    Predictions(records).to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == ["'=cmd.jpg", 'a, "b"\n.jpg', "caf\\xe9.jpg", "\\ud800.jpg"]
    assert {(row["score"], row["threshold"]) for row in rows} == {("-0.5", "")}


def test_a_column_of_several_texts_is_one_text(tmp_path):
    noted = Predictions([Prediction("a.jpg", notes=("dark", "=blurred")), Prediction("b.jpg")])
    noted.to_csv(tmp_path / "a.csv")
    header, *lines = csv.reader((tmp_path / "a.csv").read_text().splitlines())
    assert [line[header.index("notes")] for line in lines] == ["dark;' =blurred", ""]
    assert noted.to_pandas().notes.tolist() == ["dark; =blurred", ""]
    assert "<td>dark; =blurred</td>" in noted._repr_html_() and ">notes<" not in noted[1:]._repr_html_()


def test_a_csv_file_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(AttributeError):
        Predictions([Prediction("a.jpg"), None]).to_csv(tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="is not a folder"):
        Predictions([]).to_csv(tmp_path / "no" / "a.csv")
    with pytest.raises(InputError, match="is a folder"):
        Predictions([]).to_csv(tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        Predictions([]).to_csv("")


def test_an_open_file_is_refused_and_not_read_line_by_line(detector):
    with (PHOTOS / "cat.jpg").open("rb") as file, pytest.raises(InputError, match=r"an open file is no image.*read"):
        detector.predict(file)


def test_folders_patterns_and_archives_are_what_they_are_to_the_command(detector, tmp_path):
    write_tar(tmp_path / "a.tar", {"cat.jpg": CAT.read_bytes(), "bad.jpg": b"junk"})
    (tmp_path / "list.txt").write_text(f"{CAT}\n{WALL}\n")
    wanted = detector.predict(sorted(PHOTOS.glob("*.jpg")))
    for place in (PHOTOS, f"{PHOTOS}/", f"{PHOTOS}/*.jpg", [PHOTOS]):
        assert list(detector.predict(place)) == list(wanted)
    assert [one.path for one in detector.predict(tmp_path / "list.txt")] == [str(CAT), str(WALL)]
    mixed = detector.predict([CAT, tmp_path / "a.tar", "nope.jpg"])
    names = [f"{tmp_path}/a.tar/{name}.jpg" for name in ("cat", "bad")]
    assert [one.path for one in mixed] == [str(CAT), *names, "nope.jpg"]
    assert [one.error for one in mixed] == ["", "", "not an image", "no such file"]
    assert mixed[0].score == mixed[1].score and mixed[1].notes == (f"the same as {CAT}",)
    assert len(views(mixed._repr_html_())) == 4
    with pytest.raises(InputError, match="cannot stand in one list"):
        detector.predict([PHOTOS, CAT.read_bytes()])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no photos found in .*empty"):
        detector.predict(tmp_path / "empty")


def test_a_store_is_predicted_without_its_photos(detector, tmp_path):
    embed(detector.encoder, [CAT, WALL], tmp_path / "s")
    found = detector.predict(tmp_path / "s")
    assert {one.path: one.verdict for one in found} == {str(CAT): "in", str(WALL): "out"}


def test_photos_of_a_folder_refine_an_imagined_threshold_as_those_of_a_run_do(tmp_path, no_reference):
    made = outword.fit(["tabby cat", "espresso"])
    assert made.basis == "imagined"
    outword.scoring.run(made, PHOTOS, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = made.predict(PHOTOS)
    assert [one.path for one in found] == [row["path"] for row in rows]
    assert {f"{one.threshold:.6g}" for one in found} == {row["threshold"] for row in rows}


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(NUMBERS, st.one_of(NUMBERS, st.integers(-3, 3)))
def test_the_verdict_follows_from_the_numbers_that_are_written(threshold, near):
    for score in (near, threshold + near * 1e-9, threshold * (1 + near * 1e-7), np.nextafter(threshold, -np.inf)):
        record = Prediction("a.jpg", verdict=side(float(score), threshold), score=float(score), threshold=threshold)
        line = next(csv.reader([csv_line(csv_cells(record)).decode()]))
        written, cut = (float(line[HEADER.index(name)]) for name in ("score", "threshold"))
        assert record.verdict == ("in" if written >= cut else "out")
        assert written == pytest.approx(score, rel=2e-5, abs=1e-300)


def test_how_well_it_fits_has_its_other_half(detector, found):
    cat, wall, missing = found
    cut = detector.thresholds.p_values([detector.threshold])[0]
    assert cat.needed == wall.needed == cut and missing.needed is None and missing.fits == ""
    assert wall.fits.endswith(f"; {better_than(cut)} are needed") and wall.p > cut > cat.p
    assert f"; {better_than(cut)} are needed" in repr(found) and "needed" not in cells(cat)
    calibrated = judged_anew(detector.with_threshold(by_hand(wall.score)), found)
    assert calibrated[1].verdict == "in" and calibrated[1].needed == wall.p
    assert (wall.label, calibrated[1].label) == ("", wall.nearest)
