"""The whole chain with the embedded encoder and the demo photos."""

import io
import json
import math
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call
from helpers.cards import changed
from outword.base.cache import cache_dir
from outword.base.files import sha256_file
from outword.detector import artifact
from outword.detector.audit import audit
from outword.detector.card import IdImagesCard
from outword.detector.saving import FITTED_ON, zipped
from outword.detectors import DETECTORS, Need
from outword.encoders import get_encoder
from outword.errors import ArtifactError, ImageError, InputError, ParameterError
from outword.maths.thresholds import by_hand
from outword.photos.walk import find_images
from outword.scoring.stream import open_source, score_source
from outword.vectors import wild
from outword.vectors.embed import embed
from outword.vectors.id_images import read_id_images
from outword_lab.learning.needs import NO_TOWER, PROMPTS

CAT, COFFEE, GRAVEL = (PHOTOS / f"{name}.jpg" for name in ("cat", "coffee", "gravel"))


def test_importing_is_light():
    heavy = "{'torch', 'onnxruntime', 'numpy', 'PIL', 'rich', 'sklearn'}"
    code = f"import sys, outword; dir(outword); print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        outword.nothing  # noqa: B018


def test_the_contract_of_the_readme(detector):
    scores = detector.score([str(CAT), Image.open(COFFEE), np.asarray(Image.open(GRAVEL).convert("RGB"))])
    assert scores.dtype == np.float64
    assert min(scores[:2]) > 2 * scores[2]
    assert (detector.verdict(scores[0]), detector.verdict(scores[2])) == ("in", "out")
    assert "grounded, 4 labels" in repr(detector) and "reference threshold" in repr(detector)


@pytest.mark.filterwarnings("ignore:6 photos leave the threshold uncertain")
def test_with_nothing_to_cut_by_a_verdict_is_the_natural_one_of_the_relative_part(no_reference, tmp_path):
    (tmp_path / "words.txt").write_text("gravel\nbrick\nleaf\nwall")  # too few to imagine photos of
    made, plain = (outword.fit(LABELS, corpus=tmp_path / "words.txt", **given) for given in ({}, {"b": 0.0}))
    scores = made.score([CAT, GRAVEL])
    np.testing.assert_array_equal(scores, plain.score([CAT, GRAVEL]))
    assert [made.verdict(score) for score in scores] == ["in (uncalibrated)", "out (uncalibrated)"]
    assert "uncalibrated" in repr(made)
    found = made.calibrate(sorted(PHOTOS.glob("*.jpg"))[:6])
    assert found.score([CAT])[0] > scores[0]  # the whole score, now that there is a cut


def test_no_mining_for_the_default_corpus(monkeypatch):
    monkeypatch.setattr(wild, "rank", lambda *a, **k: pytest.fail("the shipped ranking was not used"))
    assert outword.fit(["daisy", "goldfish"]).wild


def test_a_corpus_is_mined_once(words_file, monkeypatch):
    first = outword.fit(LABELS, corpus=words_file, method="debiased", n_groups=3)
    monkeypatch.setattr(wild, "rank", lambda *a, **k: pytest.fail("mined again"))
    second = outword.fit(["boat", "violin"], corpus=words_file, method="debiased", n_groups=3)
    assert first.wild == second.wild
    assert first.card.miner.fingerprint == second.card.miner.fingerprint


def _half(data):
    return b"half a file"


def _flipped(data):
    """A bit in each of four bytes, of one number or two, is another."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0x40 for byte in data[middle : middle + 4]) + data[middle + 4 :]


@pytest.mark.parametrize("damage", [_half, _flipped])
@pytest.mark.parametrize("kind", ["mined", "names", "corpus"])
def test_a_damaged_cache_is_made_anew(words_file, tmp_path, monkeypatch, damage, kind):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    given = {"corpus": words_file, "method": "debiased", "n_groups": 3}
    first = outword.fit(["zorbly cat", "dog"], **given)
    for path in (cache_dir() / kind).iterdir():
        path.write_bytes(damage(path.read_bytes()))
    if kind == "corpus":  # else what is mined is read, and the corpus is not
        shutil.rmtree(cache_dir() / "mined")
    assert outword.fit(["zorbly cat", "dog"], **given).fingerprint == first.fingerprint


@pytest.mark.parametrize(("method", "given"), [("debiased", {"n_groups": 1}), ("grounded", {})])
def test_phrases_about_a_label_are_left_out(tmp_path, method, given):
    path = tmp_path / "w.txt"
    path.write_text("red hammer\nhammer on sand\nthe old claw hammers\nhammer drill\nsea lion\nlamp\n")
    made = outword.fit(["hammer", "lion"], corpus=path, method=method, **given)
    assert sorted(made.wild) == ["hammer drill", "lamp", "sea lion"]
    kept = outword.fit(["hammer", "lion"], corpus=path, method=method, keep_label_words=True, **given)
    assert len(kept.wild) == 6


def test_words_that_equal_a_label_are_left_out_and_recorded(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("Tabby_Cat\npizzas\nlamp\ndog\n")
    without = outword.fit(LABELS, corpus=path, method="debiased", n_groups=1)
    assert sorted(without.wild) == ["dog", "lamp"]
    assert sorted(without.card.corpus.left_out) == ["Tabby Cat", "pizzas"]
    assert len(outword.fit(LABELS, corpus=path, method="debiased", n_groups=1, keep_label_words=True).wild) == 4


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A small CLIP with random weights: it has patches, and gradients."""
    from helpers.tiny import open_clip_folder

    folder = tmp_path_factory.mktemp("tiny") / "vit"
    open_clip_folder("vit", folder)
    return f"hf:{folder}"


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """The demo photos but the first six dealt into class folders, and a store of them."""
    folder = tmp_path_factory.mktemp("train")
    for i, photo in enumerate(sorted(PHOTOS.glob("*.jpg"))[6:]):
        (folder / LABELS[i % 4].replace(" ", "_")).mkdir(exist_ok=True)
        shutil.copy(photo, folder / LABELS[i % 4].replace(" ", "_"))
    store = folder.with_suffix(".store")
    embed(get_encoder("mini"), find_images([folder]), store)
    return store


def named(photos):
    """Words for photos, for the method that wants some: the first letters of their names."""
    return [[Path(photo.name).stem[:length] for length in (1, 2, 3)] for photo in photos]


def options_of(method, words_file, tiny, train, **params):
    """What `fit` must be given for a method, with few words in few groups."""
    kind = DETECTORS[method]
    wants, names = kind(**params).wants(), [field.name for field in fields(kind)]
    given = {"corpus": words_file, "miner": "density", **params} if Need.WILD in wants else dict(params)
    given |= {"n_groups": 3} if "n_groups" in names else {}
    if NO_TOWER in wants:
        from helpers.clipn_file import beside

        given["encoder"] = f"clipn:{beside(get_encoder(tiny), f'{tiny[3:]}-no.safetensors')}"
    given |= {"encoder": tiny} if {Need.PATCHES, Need.PIXELS, PROMPTS} & set(wants) else {}
    if PROMPTS in wants:
        return given | {"id_images": train.with_suffix(""), "epochs": 2, "context": 3}
    return given | ({"id_images": train} if Need.ID_IMAGES in wants else {})


@pytest.mark.filterwarnings("ignore:.*photos (leave the threshold uncertain|look like none|cannot guarantee)")
@pytest.mark.parametrize("method", DETECTORS)
def test_every_method_saves_loads_scores_explains_and_calibrates(method, tmp_path, words_file, tiny, train):
    made = outword.fit(LABELS, method=method, **options_of(method, words_file, tiny, train)).with_words(named)
    photos = sorted(PHOTOS.glob("*.jpg"))[:6]
    scores = made.score(photos)
    made.save(tmp_path / "d")
    back = outword.load(tmp_path / "d").with_words(named)  # which are not saved
    np.testing.assert_array_equal(back.score(photos), scores)
    assert (back.labels, back.wild, back.coverage) == (made.labels, made.wild, made.coverage)
    found = back.calibrate(photos, tpr=0.5).calibration_
    assert found.value + found.margin == pytest.approx(np.sort(scores)[3], rel=1e-12)
    back.save(tmp_path / "d")
    again = outword.load(tmp_path / "d").with_words(named)
    assert again.threshold_ == back.threshold_
    assert [row.score for row, _ in score_source(again, open_source(again, photos))] == scores.tolist()
    assert again.explain(CAT).verdict in ("in", "out")
    told = again.explain(CAT, top=100)
    n_groups = made.scorer.params().get("n_groups", 1)
    assert sum(s for _, s in told.labels) + sum(s for _, s in told.words) / n_groups == pytest.approx(1, rel=1e-5)
    assert bool(audit(again)) == (Need.WILD in DETECTORS[method].needs)


def test_a_probe_from_a_store_and_from_python_is_the_same(train, tiny, words_file):
    made = outword.fit(LABELS, method="msp", head="probe", id_images=[train])
    found = read_id_images(made.encoder, train, LABELS, with_classes=True)
    assert made.card.id_images == IdImagesCard(12, 4, 0, found.fingerprint)
    again = outword.fit(LABELS, method="msp", head="probe", id_images=found)
    np.testing.assert_array_equal(again.score([CAT]), made.score([CAT]))
    by_hand = DETECTORS["msp"](head="probe").fit(images=found.vectors, image_labels=found.classes)
    np.testing.assert_allclose(by_hand.score(made.encoder.encode_images([CAT])), made.score([CAT]), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message", "hint"),
    [
        (
            {"method": "mahalanobis"},
            InputError,
            "mahalanobis needs ID images with labels: pass --id-images FOLDER (sub-folders are labels)",
            "id_images=",
        ),
        ({"method": "knn"}, InputError, "knn needs ID images: pass --id-images FOLDER", 'a store of "outword embed"'),
        ({"method": "msp", "head": "probe"}, InputError, "msp needs ID images with labels: pass", "id_images="),
        ({"method": "glmcm"}, InputError, "glmcm needs patches: mini has none", "--encoder clip-vit-b-16"),
        ({"method": "odin"}, InputError, "odin needs pixels: mini gives no gradients", "--set epsilon=0"),
        (
            {"method": "eoe"},
            InputError,
            "eoe needs a word list of yours, one word a line: pass --corpus FILE, to compare --words FILE",
            "confused with",
        ),
        ({"method": "mcm", "id_images": "x"}, ParameterError, "mcm does not look at ID images", "leave them out"),
        ({"method": "knn", "id_images": "nowhere"}, InputError, "there are no ID images at nowhere", "check the path"),
    ],
)
def test_what_is_missing_is_said_before_any_work(options, error, message, hint, monkeypatch):
    monkeypatch.setattr("outword.detector.positives.encode_words", lambda *a: pytest.fail("encoded first"))
    with pytest.raises(error) as caught:
        outword.fit(LABELS, **options)
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_id_images_whose_classes_are_not_known_will_not_do_for_labels(train):
    found = read_id_images(get_encoder("mini"), train, ["something else"], with_classes=False)
    with pytest.raises(InputError, match="mahalanobis needs ID images with labels"):
        outword.fit(LABELS, method="mahalanobis", id_images=found)
    assert outword.fit(LABELS, method="knn", id_images=found).card.id_images.classes == 0


def test_encoders_say_what_they_offer(tiny, tmp_path):
    from helpers.tiny import open_clip_folder

    open_clip_folder("resnet", tmp_path / "resnet")
    assert get_encoder("mini").offers == ()
    assert get_encoder(tiny).offers == ("patches", "pixels")
    resnet = get_encoder(f"hf:{tmp_path / 'resnet'}")
    assert ("patches" in resnet.offers) == (resnet.model.patches is not None)


def test_patches_reach_the_score(tiny):
    made = outword.fit(LABELS, method="glmcm", encoder=tiny)
    images, patches = made.encoder.encode_images([CAT, COFFEE], patches=True)
    expected = made.scorer.score(images, patches=patches)
    np.testing.assert_allclose(made.score([CAT, COFFEE]), expected, rtol=1e-6)
    whole = outword.fit(LABELS, method="mcm", encoder=tiny).score([CAT, COFFEE])
    assert (expected > whole + 0.2).all()


def test_a_detector_for_other_patches_is_not_loaded(tiny, tmp_path):
    made = outword.fit(LABELS, method="glmcm", encoder=tiny)
    made.save(tmp_path / "new")
    assert outword.load(tmp_path / "new").card.encoder.patches == "value path"
    made.card = changed(made.card, "encoder", patches="")  # as before they took the value path
    made.save(tmp_path / "old")
    with pytest.raises(ArtifactError, match="made for other patches"):
        outword.load(tmp_path / "old")


def test_pixels_are_moved_before_the_score(tiny):
    still, moved = (outword.fit(LABELS, method="odin", encoder=tiny, epsilon=e) for e in (0.0, 0.01))
    assert (moved.score([CAT, COFFEE]) > still.score([CAT, COFFEE])).all()
    told = moved.explain(CAT)
    assert told.score == moved.score([CAT])[0]


@pytest.mark.parametrize(("method", "need"), [("glmcm", "patches"), ("odin", "pixels")])
def test_a_store_has_vectors_only(method, need, tiny, tmp_path):
    outword.fit(LABELS, method=method, encoder=tiny).save(tmp_path / "d")
    embed(get_encoder(tiny), [CAT], tmp_path / "s")
    result = call("score", tmp_path / "d", tmp_path / "s", code=2)
    assert result.stderr.startswith(f"error: {method} needs {need}, and {tmp_path / 's'} is a store, which has none")
    assert result.stdout == ""


@pytest.mark.filterwarnings("ignore:.*photos (leave the threshold uncertain|look like none|cannot guarantee)")
def test_calibrating_leaves_no_trace_in_a_method_that_learns_from_what_it_scores(words_file, tmp_path):
    photos = sorted(PHOTOS.glob("*.jpg"))
    made = outword.fit(LABELS, method="adaneg", corpus=words_file, miner="density", n_groups=3)
    fresh = made.score(photos)
    assert not np.allclose(made.score(photos), fresh)  # it remembers
    threshold = made.calibrate(photos, tpr=0.5).threshold_
    assert threshold + made.calibration_.margin == pytest.approx(np.sort(fresh)[len(photos) // 2], rel=1e-12)
    np.testing.assert_array_equal(made.score(photos), fresh)
    made.save(tmp_path / "d")
    told = float(call("calibrate", tmp_path / "d", *photos, "--tpr", "0.5").stdout)
    assert told == pytest.approx(threshold, rel=1e-5)  # it is printed in six digits
    np.testing.assert_array_equal(outword.load(tmp_path / "d").score(photos), fresh)


def test_methods_bring_their_own_corpus_and_prompts(words_file, monkeypatch):
    assert outword.fit(LABELS, method="mcm").card.prompts.name == "mcm"
    assert outword.fit(LABELS, method="msp").card.prompts.name == "mini"
    monkeypatch.setattr(DETECTORS["neglabel"], "corpus", str(words_file))
    assert len(outword.fit(LABELS, method="neglabel", miner="density", n_groups=3).wild) == 15
    assert outword.fit(LABELS, method="debiased").card.corpus.name == "wordnet"


def test_words_without_groups_are_explained_as_one(words_file):
    made = outword.fit(LABELS, method="eoe", corpus=words_file)
    told = made.explain(CAT, top=100)
    assert len(told.words) == len(made.wild) == 15
    assert sum(s for _, s in told.labels) + sum(s for _, s in told.words) == pytest.approx(1, rel=1e-5)


def test_a_score_without_a_default_threshold_is_uncalibrated(no_reference):
    made = outword.fit(LABELS, method="energy")
    assert made.explain(CAT).verdict == "uncalibrated"
    assert made.explain(CAT).threshold is None


def test_explain_names_the_label_and_the_words(detector):
    told = detector.explain(CAT)
    assert told.labels[0][0] == "tabby cat"
    assert told.labels[0][1] > 0.3
    assert (told.verdict, told.basis, told.kind, told.looks_like[0]) == ("in", "reference", "", "Egyptian cat")
    unrelated = detector.thresholds.reference_scores
    assert told.p == (1 + (unrelated >= told.score).sum()) / (len(unrelated) + 1) < 0.01
    assert told.threshold == detector.thresholds.estimated.value
    assert told.coverage["tabby cat"] == "known"
    far = detector.explain(GRAVEL)
    assert far.words[0][1] > far.labels[0][1]


def test_audit_lists_the_words_nearest_to_a_label(detector):
    rows = audit(detector, 10)
    cosines = [c for _, _, c in rows]
    assert cosines == sorted(cosines, reverse=True)
    assert all(label in LABELS for _, label, _ in rows)


def test_results_do_not_depend_on_order_batch_or_global_state(detector):
    photos = sorted(PHOTOS.glob("*.jpg"))[:5]
    np.random.seed(0)  # noqa: NPY002
    together = detector.score(photos)
    np.testing.assert_array_equal(detector.score(photos[::-1])[::-1], together)
    alone = np.concatenate([detector.score([p]) for p in photos])
    np.testing.assert_array_equal(alone, together)


def test_fitting_twice_gives_the_same_bytes(tmp_path, words_file):
    for name in ("a", "b"):
        outword.fit(LABELS, corpus=words_file, method="debiased", n_groups=3).save(tmp_path / name)
    for file in os.listdir(tmp_path / "a"):
        assert sha256_file(tmp_path / "a" / file) == sha256_file(tmp_path / "b" / file)


def test_own_prompts(words_file):
    plain = outword.fit(["crane", "pizza"], corpus=words_file, method="debiased", n_groups=3)
    bird = outword.fit(
        {"crane": "a photo of a flamingo", "pizza": ""}, corpus=words_file, method="debiased", n_groups=3
    )
    assert not np.allclose(plain.scorer.labels_[0], bird.scorer.labels_[0])
    np.testing.assert_allclose(plain.scorer.labels_[1], bird.scorer.labels_[1], atol=1e-6)
    assert bird.card.label_prompts == {"crane": "a photo of a flamingo"}
    other = outword.fit(["crane", "pizza"], corpus=words_file, method="debiased", n_groups=3, prompts="the nice {}")
    assert not np.allclose(plain.scorer.labels_, other.scorer.labels_)


@pytest.mark.filterwarnings("ignore:.*photos (leave the threshold uncertain|look like none|cannot guarantee)")
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
    artifact.save(saved, replace(found, card=card, labels=found.labels[1:]))
    with pytest.raises(ArtifactError, match="of different number"):
        outword.load(saved)


def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch, words_file, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="the cache cannot be written"):
        assert outword.fit(LABELS, corpus=words_file, method="debiased", n_groups=3).wild


def test_shares_follow_the_temperature_of_the_method(words_file):
    cold, warm = (
        outword.fit(LABELS, corpus=words_file, method="debiased", n_groups=3, temperature=t).explain(CAT)
        for t in (0.01, 1.0)
    )
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
        ({"taw": 0.4, "method": "debiased"}, 'unknown parameter of debiased "taw"', 'did you mean "tau"?'),
        ({"tau": 0.4, "method": "grounded"}, "grounded has no parameter tau", "method=debiased"),
        ({"tau": "lots"}, "tau must be a number of at least 0 and below 1", "0.5"),
        ({"sigma": "lots"}, "sigma must be a number", "sigma=0.0"),
        ({"policy": 1}, "policy must be a word", "policy=cap"),
        ({"tau": True}, "tau must be a number", "tau=0.5"),
        ({"n_groups": 2.5}, "n_groups must be a whole number", "n_groups=100"),
        ({"tau": 1.2}, "tau must be a number of at least 0 and below 1", "0.5"),
    ],
)
def test_bad_options(options, message, hint):
    with pytest.raises(ParameterError, match=message) as error:
        outword.fit(LABELS, **options)
    assert hint in error.value.hint


def test_bad_images(detector):
    with pytest.raises(ImageError, match=r"'nowhere\.jpg': no such file"):
        detector.score(["nowhere.jpg"])
    with pytest.raises(ImageError, match=r"^'photos\[0\]': not an image"):
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
    whole = [row for row, _ in score_source(detector, open_source(detector, photos))]
    monkeypatch.setattr(type(detector.encoder), "chunk", 3)
    parts = [row for row, _ in score_source(detector, open_source(detector, [*photos, "missing.jpg"]))]
    assert [row.path for row in parts[:-1]] == [row.path for row in whole] == [str(p) for p in photos]
    assert [r.score for r in parts[:-1]] == [r.score for r in whole]
    assert parts[-1].error == "no such file"


@pytest.mark.parametrize("method", DETECTORS)
def test_an_artifact_without_one_of_its_arrays_is_refused(method, tmp_path, words_file, tiny, train):
    made = outword.fit(LABELS, method=method, **options_of(method, words_file, tiny, train))
    made.save(tmp_path / "d")
    saved = artifact.load(tmp_path / "d")
    card = {key: value for key, value in saved.card.items() if key not in ("schema", "files", "fingerprint")}
    for name in set(saved.arrays) - {FITTED_ON, "tau"}:  # older ones do not have these
        fewer = {other: array for other, array in saved.arrays.items() if other != name}
        artifact.save(tmp_path / "d", replace(saved, card=card, arrays=fewer))
        with pytest.raises(ArtifactError, match=r"cannot be understood|different number"):
            outword.load(tmp_path / "d")


@pytest.mark.parametrize(("method", "params"), [("mahalanobis", {}), ("vos", {}), ("msp", {"head": "probe"})])
def test_a_method_that_learned_the_classes_names_its_own(method, params, train, tmp_path):
    made = outword.fit(LABELS, method=method, id_images=train, **params)
    classes, logits = made.scorer.class_logits(made.encoder.encode_images([CAT, COFFEE]))
    assert classes.tolist() == [0, 1, 2, 3]
    told = [made.explain(photo) for photo in (CAT, COFFEE)]
    assert [t.labels[0][0] for t in told] == [LABELS[i] for i in logits.argmax(axis=1)]
    assert sum(share for _, share in told[0].labels) == pytest.approx(1)
    assert told[0].words == ()
    swapped = [LABELS[1], LABELS[0], *LABELS[2:]]  # the photos do not change, so neither does what they are called
    other = outword.fit(swapped, method=method, id_images=train, **params)
    assert other.explain(CAT).labels[0][0] == told[0].labels[0][0]


def test_explaining_does_not_teach(words_file):
    photos = sorted(PHOTOS.glob("*.jpg"))
    made = outword.fit(LABELS, method="adaneg", corpus=words_file, miner="density", n_groups=3)
    plain = made.score(photos)
    made.reset()
    first = made.score(photos[:5])
    for photo in photos:
        made.explain(photo)
    np.testing.assert_allclose(np.concatenate([first, made.score(photos[5:])]), plain, rtol=1e-4)


def test_no_words_left_says_why(tmp_path):
    (tmp_path / "w.txt").write_text("Pizza\nespressos\n")
    with pytest.raises(InputError, match=r"eoe is left without words: the miner keeps 2 of 2 in w.txt, and 2 of them"):
        outword.fit(LABELS, method="eoe", corpus=tmp_path / "w.txt")


def test_input_of_a_wrong_kind():
    with pytest.raises(InputError, match="a corpus must be a name or a text file, got list"):
        outword.fit(LABELS, method="eoe", corpus=["dog", "cat"])
    with pytest.raises(InputError, match="ID images must be folders or stores"):
        outword.fit(LABELS, method="knn", id_images=np.zeros((3, 4)))
    with pytest.raises(InputError, match=r"there is no corpus file nothing\.txt"):
        outword.fit(LABELS, corpus="nothing.txt")


def test_parameters_of_the_miner(words_file):
    made = outword.fit(
        LABELS, corpus=words_file, miner="random", miner_params={"size": 7, "seed": 3}, method="debiased", n_groups=2
    )
    assert len(made.wild) == 7
    assert made.card.miner.parameters == {"size": 7, "seed": 3}
    with pytest.raises(ParameterError, match='unknown parameter of random "sise"'):
        outword.fit(LABELS, corpus=words_file, miner="random", miner_params={"sise": 7})
    with pytest.raises(ParameterError, match="size must be a whole number, got 'many'"):
        outword.fit(LABELS, corpus=words_file, miner="random", miner_params={"size": "many"})


def test_other_labels_are_fitted_as_the_first_ones_were(words_file):
    names = {"espresso": "", "crane": "a crane, the bird"}
    again, wanted = outword.fit(["cat", "dog"], b=0.5).relabel(names), outword.fit(names, b=0.5)
    assert again.card == wanted.card
    assert (again.labels, again.wild) == (wanted.labels, wanted.wild)
    photos = sorted(PHOTOS.glob("c*.jpg"))
    np.testing.assert_array_equal(again.score(photos), wanted.score(photos))
    assert outword.fit(["cat", "dog"], method="mcm").relabel(["pen", "cup"]).labels == ["pen", "cup"]
    kept = outword.fit(["cat", "dog"], keep_label_words=True).relabel(["raccoon", "cup"])
    assert kept.card.keep_label_words
    assert kept.card.corpus.left_out == ()
    with pytest.raises(InputError, match="cannot be made for other labels: the word list"):
        outword.fit(["cat", "dog"], corpus=words_file, method="debiased", n_groups=3).relabel(["pen", "cup"])


def test_photos_do_not_come_along_to_other_labels(train):
    fitted = outword.fit(LABELS, method="knn", id_images=train)
    with pytest.raises(InputError, match="the photos that it was fitted on did not come along"):
        fitted.relabel(["pen", "cup"])


def test_another_threshold_leaves_the_detector_as_it_is(detector):
    moved = detector.with_threshold(by_hand(3.0))
    assert (moved.threshold, moved.verdict(2.9), detector.threshold_) == (3.0, "out", None)
    assert moved.scorer is detector.scorer


def test_a_zip_file_holds_what_save_writes(detector, tmp_path):
    moved = detector.with_threshold(by_hand(3.0))
    moved.save(tmp_path / "pets.outword")
    with zipfile.ZipFile(io.BytesIO(zipped(moved, "pets.outword"))) as file:
        assert {name: file.read(name) for name in file.namelist()} == {
            f"pets.outword/{path.name}": path.read_bytes() for path in (tmp_path / "pets.outword").iterdir()
        }
    assert zipped(moved) == zipped(moved)
    assert outword.load(tmp_path / "pets.outword").calibration_ == by_hand(3.0)
