"""Rows of `outword score` on the demo photos: what the default, the paper's method and its neighbours say stays.

They are rows of `mini-float`: a last digit that a processor rounds otherwise stays one there, and in the integers of
`mini` it may become a step.
"""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import outword
from conftest import PHOTOS
from outword.cli import main
from outword.encoders import get_encoder

ENCODER = "mini-float"
BEFORE = Path(__file__).parents[1] / "golden" / "rows"
PROCESSOR = "processor.sha256"
LABELS = [
    "acoustic guitar",
    "daisy",
    "espresso",
    "golden retriever",
    "pizza",
    "school bus",
    "space shuttle",
    "tabby cat",
]
OURS = {"method": "debiased"}
FITTED = {"neglabel": {"method": "neglabel", "miner": "density"}, "calibrated": OURS, "stored": OURS}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The demo photos, a damaged file and an empty one; and whether this processor rounds as that of the files did."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "photos").mkdir()
    for photo in sorted(PHOTOS.glob("*.jpg")):
        (folder / "photos" / photo.name).write_bytes(photo.read_bytes())
    (folder / "photos" / "damaged.jpg").write_bytes(b"not an image")
    (folder / "photos" / "empty.jpg").touch()
    return folder, processor() == (BEFORE / PROCESSOR).read_text().strip()


def processor():
    """What rows hang on besides this package: how the runtime, BLAS and numpy round on this processor."""
    vectors = get_encoder(ENCODER).encode_images(sorted(PHOTOS.glob("*.jpg"))).astype(np.float64)
    x = np.linspace(-30, 30, 4001)
    results = [vectors, vectors @ vectors.T, np.exp(x), np.log(np.exp(x))]
    return hashlib.sha256(b"".join(part.tobytes() for part in results)).hexdigest()


def scored(place, name, kind):
    """What `outword score` writes now."""
    detector = outword.fit(LABELS, encoder=ENCODER, **FITTED.get(name, {"method": name}))
    if name == "calibrated":
        detector.calibrate(sorted(PHOTOS.glob("c*.jpg")), tpr=0.8)
    detector.save(place / f"{name}.outword")
    source = "photos"
    if name == "stored":
        source = "vectors.store"
        assert CliRunner().invoke(main, ["embed", "photos", "-o", source, "--encoder", ENCODER]).exit_code == 0
    arguments = ["score", f"{name}.outword", source, "-o", f"{name}.{kind}"]
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 0, run.output
    return place / f"{name}.{kind}"


@pytest.mark.filterwarnings("ignore:.*of your 5 photos|5 photos leave")
@pytest.mark.parametrize("name", sorted(path.stem for path in BEFORE.glob("*.csv")))
def test_csv_is_the_same_bytes(place, name, monkeypatch):
    folder, same_processor = place
    monkeypatch.chdir(folder)
    now, before = scored(folder, name, "csv"), BEFORE / f"{name}.csv"
    if same_processor:
        assert now.read_bytes() == before.read_bytes()
    for one, other in zip(
        *(list(csv.DictReader(path.read_text().splitlines())) for path in (now, before)), strict=True
    ):
        assert one.keys() == other.keys()
        for column, was in other.items():
            if column in ("score", "threshold", "p") and was:
                assert float(one[column]) == pytest.approx(float(was), rel=2e-5)  # of six digits the last
            else:
                assert one[column] == was


def test_json_lines_are_the_same_but_for_the_last_digits_of_shares(place, monkeypatch):
    folder, _ = place
    monkeypatch.chdir(folder)
    now, before = scored(folder, "debiased", "jsonl"), BEFORE / "debiased.jsonl"
    for one, other in zip(
        *([json.loads(line) for line in path.read_text().splitlines()] for path in (now, before)), strict=True
    ):
        words, theirs = one.pop("words"), other.pop("words")
        assert [word["word"] for word in words] == [word["word"] for word in theirs]
        assert [word["share"] for word in words] == pytest.approx([word["share"] for word in theirs], abs=1e-6)
        for number in ("score", "threshold", "p"):
            found, was = one.pop(number), other.pop(number)
            assert found == was or found == pytest.approx(was, rel=1e-5)
        assert one == other


def test_verdicts_of_mini_are_those_of_mini_float():
    photos = sorted(PHOTOS.glob("*.jpg"))
    quick, slow = (outword.fit(LABELS, encoder=name).predict(photos) for name in ("mini", ENCODER))
    cut = slow[0].threshold  # each has a reference of its own
    assert [row.score >= cut for row in quick] == [row.score >= cut for row in slow]
    assert [row.score for row in quick] == pytest.approx([row.score for row in slow], abs=0.5)
