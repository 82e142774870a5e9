"""The whole chain with the embedded encoder and the demo photos."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS
from outword import artifact, wild
from outword.detectors import DETECTORS
from outword.errors import ArtifactError, ImageError, InputError, ParameterError
from outword.files import sha256_file
from outword.stream import Clock, score_files

CAT, COFFEE, GRAVEL = (PHOTOS / f"{name}.jpg" for name in ("cat", "coffee", "gravel"))


def test_importing_is_light():
    code = "import sys, outword; print([m for m in ('torch','onnxruntime','numpy','PIL','rich') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        outword.nothing  # noqa: B018


def test_the_contract_of_the_readme(detector):
    scores = detector.score([str(CAT), Image.open(COFFEE), np.asarray(Image.open(GRAVEL).convert("RGB"))])
    assert scores.dtype == np.float64
    assert min(scores[:2]) > 2 * scores[2]
    assert detector.verdict(scores[0]) == "in (uncalibrated)"
    assert detector.verdict(scores[2]) == "out (uncalibrated)"
    assert "uncalibrated" in repr(detector)


def test_no_mining_for_the_default_corpus(monkeypatch):
    monkeypatch.setattr(wild, "rank", lambda *a, **k: pytest.fail("the shipped ranking was not used"))
    assert outword.fit(["daisy", "goldfish"]).wild


def test_a_corpus_is_mined_once(words_file, monkeypatch):
    first = outword.fit(LABELS, corpus=words_file, n_groups=3)
    monkeypatch.setattr(wild, "rank", lambda *a, **k: pytest.fail("mined again"))
    second = outword.fit(["dog", "lamp"], corpus=words_file, n_groups=3)
    assert first.wild == second.wild
    assert first.card["miner"]["fingerprint"] == second.card["miner"]["fingerprint"]


def test_a_damaged_cache_is_made_anew(words_file, own_cache):
    outword.fit(LABELS, corpus=words_file, n_groups=3)
    for path in wild.cache_dir().rglob("*.safetensors"):
        path.write_bytes(b"half a file")
    assert len(outword.fit(LABELS, corpus=words_file, n_groups=3).wild) == 15


def test_words_that_equal_a_label_are_left_out_and_recorded(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("Tabby_Cat\npizzas\nlamp\ndog\n")
    without = outword.fit(LABELS, corpus=path, n_groups=1)
    assert sorted(without.wild) == ["dog", "lamp"]
    assert sorted(without.card["corpus"]["left_out"]) == ["Tabby Cat", "pizzas"]
    assert len(outword.fit(LABELS, corpus=path, n_groups=1, keep_label_words=True).wild) == 4


@pytest.mark.parametrize("method", DETECTORS)
def test_every_method_saves_loads_scores_explains_and_calibrates(method, tmp_path, words_file):
    params = {"n_groups": 3} if DETECTORS[method].needs_wild else {}
    made = outword.fit(LABELS, method=method, corpus=words_file, miner="density", **params)
    photos = sorted(PHOTOS.glob("*.jpg"))[:6]
    scores = made.score(photos)
    made.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    np.testing.assert_array_equal(back.score(photos), scores)
    assert (back.labels, back.wild, back.coverage) == (made.labels, made.wild, made.coverage)
    assert back.calibrate(photos, tpr=0.5).threshold_ == np.sort(scores)[3]
    back.save(tmp_path / "d")
    again = outword.load(tmp_path / "d")
    assert again.threshold_ == back.threshold_
    assert again.explain(CAT).verdict in ("in", "out")
    told = again.explain(CAT, top=100)
    n_groups = made.vectors.params().get("n_groups", 1)
    assert sum(s for _, s in told.labels) + sum(s for _, s in told.words) / n_groups == pytest.approx(1, rel=1e-5)
    assert bool(again.audit()) == DETECTORS[method].needs_wild


def test_a_score_without_a_natural_cut_is_uncalibrated():
    made = outword.fit(LABELS, method="energy")
    assert made.explain(CAT).verdict == "uncalibrated"
    assert made.explain(CAT).threshold is None


def test_explain_names_the_label_and_the_words(detector):
    told = detector.explain(CAT)
    assert told.labels[0][0] == "tabby cat"
    assert told.labels[0][1] > 0.5
    assert not told.calibrated
    assert told.threshold == detector.vectors.natural_cut_
    assert told.coverage["tabby cat"] == "known"
    far = detector.explain(GRAVEL)
    assert far.words[0][1] > far.labels[0][1]


def test_audit_lists_the_words_nearest_to_a_label(detector):
    rows = detector.audit(10)
    cosines = [c for _, _, c in rows]
    assert cosines == sorted(cosines, reverse=True)
    assert all(label in LABELS for _, label, _ in rows)


def test_results_do_not_depend_on_order_batch_or_global_state(detector):
    photos = sorted(PHOTOS.glob("*.jpg"))[:5]
    np.random.seed(0)  # noqa: NPY002
    together = detector.score(photos)
    np.testing.assert_allclose(detector.score(photos[::-1])[::-1], together, rtol=1e-4)
    alone = np.concatenate([detector.score([p]) for p in photos])
    np.testing.assert_allclose(alone, together, rtol=1e-4)


def test_fitting_twice_gives_the_same_bytes(tmp_path, words_file):
    for name in ("a", "b"):
        outword.fit(LABELS, corpus=words_file, n_groups=3).save(tmp_path / name)
    for file in os.listdir(tmp_path / "a"):
        assert sha256_file(tmp_path / "a" / file) == sha256_file(tmp_path / "b" / file)


def test_own_prompts(words_file):
    plain = outword.fit(["crane", "pizza"], corpus=words_file, n_groups=3)
    bird = outword.fit({"crane": "a photo of a flamingo", "pizza": ""}, corpus=words_file, n_groups=3)
    assert not np.allclose(plain.vectors.labels_[0], bird.vectors.labels_[0])
    np.testing.assert_allclose(plain.vectors.labels_[1], bird.vectors.labels_[1], atol=1e-6)
    assert bird.card["label_prompts"] == {"crane": "a photo of a flamingo"}
    other = outword.fit(["crane", "pizza"], corpus=words_file, n_groups=3, prompts="the nice {}")
    assert not np.allclose(plain.vectors.labels_, other.vectors.labels_)


def test_conformal_threshold_of_minus_infinity_survives_a_round_trip(detector, tmp_path):
    photos = sorted(PHOTOS.glob("*.jpg"))[:5]
    detector.save(tmp_path / "d")
    made = outword.load(tmp_path / "d").calibrate(photos, method="conformal")
    made.save(tmp_path / "d")
    json.loads((tmp_path / "d" / "detector.json").read_text(), parse_constant=pytest.fail)
    assert outword.load(tmp_path / "d").threshold_ == -math.inf


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("method", {"name": "mcm", "parameters": {"tau": 1}}),
        ("method", {"name": "debiased", "parameters": {"tau": "x"}}),
        ("method", {}),
        ("encoder", {"name": "mini"}),
        ("calibration", {"value": 1}),
    ],
)
def test_a_card_that_says_nonsense_is_refused(saved, key, value):
    card = json.loads((saved / "detector.json").read_text()) | {key: value}
    card["fingerprint"] = artifact._fingerprint(card)
    (saved / "detector.json").write_text(json.dumps(card))
    with pytest.raises(ArtifactError, match="cannot be understood"):
        outword.load(saved)


def test_names_that_do_not_match_the_vectors_are_refused(saved):
    found = artifact.load(saved)
    card = {k: v for k, v in found.card.items() if k not in ("schema", "files", "fingerprint")}
    artifact.save(saved, artifact.Saved(card, found.arrays, found.labels[1:], found.wild))
    with pytest.raises(ArtifactError, match="of different number"):
        outword.load(saved)


def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch, words_file, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="the cache cannot be written"):
        assert outword.fit(LABELS, corpus=words_file, n_groups=3).wild


def test_shares_follow_the_temperature_of_the_method(words_file):
    cold, warm = (outword.fit(LABELS, corpus=words_file, n_groups=3, temperature=t).explain(CAT) for t in (0.01, 1.0))
    assert cold.labels[0][1] > 0.9 > warm.labels[0][1]


def test_another_encoder_is_refused(saved, monkeypatch):
    monkeypatch.setattr(outword.load(saved).encoder, "fingerprint", "0" * 64)
    with pytest.raises(ArtifactError, match="made with the encoder mini, and mini is another one, or another version"):
        outword.load(saved).score([PHOTOS / "cat.jpg"])


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"method": "neglable"}, 'unknown method "neglable"', 'did you mean "neglabel"?'),
        ({"encoder": "minni"}, 'unknown encoder "minni"', 'did you mean "mini"?'),
        ({"corpus": "wordnett"}, 'unknown corpus "wordnett"', "wordnet"),
        ({"miner": "densty"}, 'unknown miner "densty"', 'did you mean "density"?'),
        ({"taw": 0.4}, 'unknown parameter of debiased "taw"', 'did you mean "tau"?'),
        ({"tau": "lots"}, "tau must be of the kind of its default", "tau=0.5"),
        ({"tau": True}, "tau must be of the kind", "tau=0.5"),
        ({"n_groups": 2.5}, "n_groups must be of the kind", "n_groups=100"),
        ({"tau": 1.2}, "tau must be at least 0 and below 1", "0.5"),
    ],
)
def test_bad_options(options, message, hint):
    with pytest.raises(ParameterError, match=message) as error:
        outword.fit(LABELS, **options)
    assert hint in error.value.hint


def test_bad_images(detector):
    with pytest.raises(ImageError, match=r"'nowhere\.jpg': no such file"):
        detector.score(["nowhere.jpg"])
    with pytest.raises(ImageError, match=r"^not an image"):
        detector.score([b"junk"])
    for single in ("a.jpg", b"bytes", CAT, Image.new("RGB", (5, 5))):
        with pytest.raises(InputError, match="images must be a list"):
            detector.score(single)
    with pytest.raises(InputError, match="images must be a list, got ndarray"):
        detector.score(np.zeros((20, 30, 3), np.uint8))
    assert detector.score(np.zeros((2, 20, 30, 3), np.uint8)).shape == (2,)
    assert detector.score([]).shape == (0,)


def test_streaming_in_chunks_changes_nothing(detector, monkeypatch):
    photos = sorted(PHOTOS.glob("*.jpg"))[:7]
    whole = [row for row, _ in score_files(detector, photos)]
    clock = Clock()
    monkeypatch.setattr(type(detector.encoder), "chunk", 3)
    parts = [row for row, _ in score_files(detector, [*photos, "missing.jpg"], clock=clock)]
    assert [row.path for row in parts[:-1]] == [row.path for row in whole] == [str(p) for p in photos]
    np.testing.assert_allclose([r.score for r in parts[:-1]], [r.score for r in whole], rtol=1e-4)
    assert parts[-1].error == "no such file"
    assert clock.working > 0
    assert clock.waiting > 0
