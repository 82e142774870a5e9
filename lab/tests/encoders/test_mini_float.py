"""`mini-float`: `mini` as it was, beside the one of today."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import outword
from helpers.cards import changed
from outword.base.files import sha256_bytes, sha256_file
from outword.encoders import get_encoder
from outword.encoders.mini.encoder import DATA as SHARED
from outword.encoders.mini.encoder import PREPROCESSING
from outword.encoders.names import parse
from outword.encoders.torch.models import files_of
from outword.errors import ArtifactError, InputError
from outword.testing import check_encoder
from outword.vectors.embed import embed
from outword.vectors.store import open_store
from outword_lab.encoders.bench_mini import bench_mini
from outword_lab.encoders.mini_float import DATA

TEXTS = ["a photo of a tabby cat", "a photo of a rather long label about nothing", ""]


def test_it_is_an_encoder():
    check_encoder(get_encoder("mini-float"))


def test_fingerprint_is_that_of_the_files():
    card = json.loads((DATA / "card.json").read_text())
    paths = {file: (DATA if file == "image.onnx" else SHARED) / file for file in card["files"]}
    assert card["files"] == {file: sha256_file(path) for file, path in paths.items()}
    parts = {"files": card["files"], "preprocessing": PREPROCESSING}
    assert card["fingerprint"] == sha256_bytes(json.dumps(parts, sort_keys=True).encode())
    assert sum(path.stat().st_size for path in files_of(parse("mini-float"))) < 36e6


def test_both_have_the_same_texts_and_photos_of_their_own():
    both = [get_encoder(name) for name in ("mini", "mini-float")]
    assert both[0].fingerprint != both[1].fingerprint == both[0].text_fingerprint == both[1].text_fingerprint
    np.testing.assert_array_equal(*(one.encode_texts(TEXTS) for one in both))
    photos = sorted((Path(str(files("outword"))) / "demo" / "photos").glob("*.jpg"))
    quick, slow = (one.encode_images(photos) for one in both)
    assert 0.99 < np.median((quick * slow).sum(axis=1)) < 1


def test_both_have_vectors_of_the_same_photos():
    quick, slow = (bench_mini(get_encoder(name)) for name in ("mini", "mini-float"))
    assert (quick.names, quick.wnids, quick.sets) == (slow.names, slow.wnids, slow.sets)
    assert (quick.vectors != slow.vectors).any(axis=1).all()


def test_what_was_made_with_mini_in_float_is_used_with_mini_float(tmp_path):
    made = outword.fit(["tabby cat", "espresso"], encoder="mini-float")
    made.card = changed(made.card, "encoder", name="mini")  # as it was called
    made.save(tmp_path / "old.outword")
    with pytest.warns(UserWarning, match=r"old\.outword was made with what is called mini-float now.*fit it again"):
        found = outword.load(tmp_path / "old.outword")
    assert found.encoder is get_encoder("mini-float")
    with pytest.raises(ArtifactError, match="was made with the encoder mini-float, and mini is another one"):
        outword.load(tmp_path / "old.outword", encoder="mini").encoder  # noqa: B018


def test_a_store_of_one_is_none_of_the_other(tmp_path):
    photos = Path(str(files("outword"))) / "demo" / "photos"
    embed(get_encoder("mini-float"), [photos / "cat.jpg"], tmp_path / "s")
    quick = get_encoder("mini")
    with pytest.raises(InputError, match=r"no embeddings of mini \(.*it has those of mini-float"):
        open_store(tmp_path / "s", quick.fingerprint, quick.name)
