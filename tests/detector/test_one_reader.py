"""Every way in reads photos by the encoder's own loader, so that all of them judge the pixels that a device decodes."""

import copy
import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import outword
from conftest import PHOTOS, six_digits
from helpers.cards import changed
from helpers.served import ask, form, in_thread
from outword import cli
from outword.detector.batches import vectors_of_readable
from outword.encoders import ENCODERS, get_encoder
from outword.encoders.loader import Loader
from outword.encoders.mini.encoder import Mini
from outword.errors import ImageError
from outword.maths.thresholds import fit_threshold
from outword.scoring.stream import open_source, score_source
from outword_lab.learning.captions import encode_captions

GOOD = [str(PHOTOS / f"{name}.jpg") for name in ("cat", "coffee", "rocket", "brick", "clock")]
DARK = str(PHOTOS / "galaxies.jpg")


@dataclass(frozen=True)
class Dimming(Loader):
    """A decoder of its own: pixels are half as light as Pillow's, and dark photos are damaged, as it finds out late."""

    def gather(self, loaded):
        pixels, _ = super().gather(loaded)
        dark = pixels.mean(axis=(1, 2, 3)) < 25
        return pixels[~dark] // 2, [ImageError("damaged image") if damaged else None for damaged in dark]


class Device(Mini):
    """`mini` with that decoder."""

    @property
    def loader(self):
        plain = super().loader
        return Dimming(plain.preprocess, plain.min_side, "dimming", together=2, apart=True)


@pytest.fixture(scope="module")
def device():
    encoder = copy.copy(get_encoder("mini"))
    encoder.__class__ = Device
    return encoder


@pytest.fixture(scope="module")
def by_device(device):
    return outword.fit(["cat", "coffee"], encoder=device)


@pytest.fixture(scope="module")
def scores(device, by_device):
    """What halved pixels score."""
    plain = Loader(device.preprocess, device.min_side)
    pixels = np.stack([plain(photo) // 2 for photo in GOOD])
    return by_device.scorer.score(device.encode_pixels(pixels))


def test_a_run_and_python_judge_the_same_pixels(by_device, scores):
    rows = [row for row, _ in score_source(by_device, open_source(by_device, [*GOOD, DARK]))]
    found = by_device.predict([*GOOD, DARK])
    np.testing.assert_array_equal([row.score for row in rows[:5]], scores)
    np.testing.assert_array_equal([one.score for one in found[:5]], scores)
    np.testing.assert_array_equal(by_device.score(GOOD), scores)
    np.testing.assert_array_equal([by_device.explain(photo).score for photo in GOOD], scores)
    assert [rows[5].error, found[5].error] == ["damaged image"] * 2
    with pytest.raises(ImageError, match=r"galaxies\.jpg': damaged image"):
        by_device.score([*GOOD, DARK])


def test_calibration_and_samples_too(device, by_device, scores):
    with pytest.warns(UserWarning):
        calibrated = copy.copy(by_device).calibrate(GOOD, tpr=1.0)
    assert calibrated.threshold == fit_threshold(scores, tpr=1.0).value
    vectors = device.encode_images(GOOD)
    np.testing.assert_array_equal(vectors_of_readable(device, [*GOOD, DARK]), vectors)
    pairs = encode_captions(device, [(photo, "a photo") for photo in GOOD])
    np.testing.assert_array_equal(pairs.vectors, vectors)


def test_the_service_too(by_device, scores):
    files = [(name, Path(name).read_bytes()) for name in [*GOOD, DARK]]
    body, kind = form(*files)
    with in_thread(by_device) as address:
        status, _, answer = ask(address, "POST", "/v1/score", body, kind=kind)
    assert status == 200
    results = json.loads(answer)["results"]
    np.testing.assert_allclose([one["score"] for one in results[:5]], scores, rtol=1e-12)
    assert results[5]["error"] == "damaged image"


@pytest.fixture
def saved(by_device, device, monkeypatch, tmp_path):
    """The detector as a file, whose encoder the command line finds by its name."""
    monkeypatch.setitem(ENCODERS._things, "dimming:", lambda name, **options: device)
    monkeypatch.setattr(device, "name", "dimming:mini", raising=False)
    monkeypatch.setattr(by_device, "card", changed(by_device.card, "encoder", name="dimming:mini"))
    by_device.save(tmp_path / "dimming.outword")
    return tmp_path / "dimming.outword"


def invoke(*arguments):
    done = CliRunner().invoke(cli.main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_verb_too(saved, scores, tmp_path):
    rows = list(csv.DictReader(io.StringIO(invoke("score", saved, *GOOD, "--trust-encoder"))))
    assert [float(row["score"]) for row in rows] == [*map(six_digits, scores)]
    told = [json.loads(line) for line in invoke("explain", saved, *GOOD, "--json", "--trust-encoder").splitlines()]
    assert [one["score"] for one in told] == scores.tolist()
    invoke("embed", *GOOD, "-o", tmp_path / "store", "--encoder", "dimming:mini")
    stored = list(csv.DictReader(io.StringIO(invoke("score", saved, tmp_path / "store", "--trust-encoder"))))
    assert sorted(float(row["score"]) for row in stored) == sorted(map(six_digits, scores))
    invoke("calibrate", saved, *GOOD, "--tpr", "1.0", "--trust-encoder")
    assert outword.load(saved, trust_encoder=True).threshold == fit_threshold(scores, tpr=1.0).value
    invoke("filter", *GOOD, "--detector", saved, "-o", tmp_path / "kept", "--trust-encoder")
    assert len(list((tmp_path / "kept").rglob("*.jpg"))) == len(GOOD)  # all of them, at the threshold of the lowest
