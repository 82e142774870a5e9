"""`outword.embed` and the others, which the verbs of the same names call too."""

import csv

import numpy as np
import pytest

import outword
from conftest import PHOTOS, call
from outword.encoders import get_encoder
from outword.errors import ImageError, ParameterError
from outword.vectors import reference
from outword.vectors.reference import find_reference


def test_embed_keeps_vectors_and_says_what_cannot_be_read(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"none")
    store, done = tmp_path / "photos.store", []
    given = [PHOTOS / "cat.jpg", tmp_path / "broken.jpg"]
    rows = dict(outword.embed(given, store, report=lambda *told: done.append(told)).rows())
    np.testing.assert_array_equal(rows[str(PHOTOS / "cat.jpg")], get_encoder("mini").encode_images(given[:1])[0])
    assert isinstance(rows[str(tmp_path / "broken.jpg")], ImageError)
    assert done[-1] == ("embed", 2, 2)
    again = outword.embed(PHOTOS / "coffee.jpg", store, encoder=get_encoder("mini"))
    assert [*again.paths()] == sorted(map(str, [*given, PHOTOS / "coffee.jpg"]))
    assert call("embed", PHOTOS / "coffee.jpg", "-o", store).stderr.startswith("1 image: 0 encoded, 1 reused")


def test_compare_gives_the_rows_of_the_verb():
    mine, other = [PHOTOS / "cat.jpg", PHOTOS / "coffee.jpg"], [PHOTOS / "brick.jpg", PHOTOS / "gravel.jpg"]
    told = []
    found = outword.compare(["cat", "coffee"], mine, other, methods=["maxlogit", "mcm", "knn"], tell=told.append)
    assert told == ["left out: knn: knn needs ID images: pass --id-images FOLDER"]
    rows = [*found]
    sets = [option for path in other for option in ("--ood", path)]
    ids = [option for path in mine for option in ("--id", path)]
    verb = call("compare", "cat, coffee", *ids, *sets, "--methods", "maxlogit,mcm", "--format", "csv").stdout
    kept = [{"method": row["method"], "auroc": float(row["auroc"])} for row in csv.DictReader(verb.splitlines())]
    assert kept == [{"method": row.method, "auroc": row.auroc} for row in rows]
    assert [row.ood for row in next(found.by_set())] == ["brick.jpg", "gravel.jpg"]
    with pytest.raises(ParameterError, match='unknown method "mmc"'):
        outword.compare(["cat"], mine, other, methods=["mmc"])
    with pytest.raises(outword.errors.InputError, match="must be a method that applies"):
        outword.compare(["cat"], mine, other, methods=["knn"])


def test_reference_is_what_fit_finds_from_then_on(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(reference, "FEWEST", 5)
    made = outword.reference(sorted(PHOTOS.glob("*.jpg"))[:6], encoder="mini")
    assert (made.n_read, made.n_repeats, len(made.reference)) == (6, 0, 6)
    assert find_reference(get_encoder("mini")).fingerprint == made.reference.fingerprint
    with pytest.raises(outword.errors.InputError, match="at least 5 different photos"):
        outword.reference(PHOTOS / "cat.jpg")
