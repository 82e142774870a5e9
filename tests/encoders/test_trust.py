"""Encoders that a file names and not the user: not fetched from a hub, unless that is allowed. No hub is asked here."""

import json

import pytest

import outword
from conftest import PHOTOS, call
from helpers.cards import changed
from helpers.tiny import open_clip_folder
from outword.detector import artifact
from outword.detector.saving import saved_form
from outword.encoders import get_encoder
from outword.encoders.torch.models import check_here
from outword.errors import InputError

UNASKED = "the encoder {} is not on this machine and would be fetched from the hub, but a file names it, not you"
UNREACHED = "hub cannot be reached"  # as it is for tests: it was asked for


@pytest.fixture(params=["hf:org/none", "open_clip:ViT-B-32/laion2b_s34b_b79k", "clip-vit-b-16"])
def foreign(request, detector, tmp_path, monkeypatch):
    """A detector that names an encoder which is not here, and the name."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    saved = artifact.load(artifact.save(tmp_path / "d", saved_form(detector)))
    saved.card["encoder"]["name"] = request.param
    artifact.save(tmp_path / "d", saved)
    return tmp_path / "d", request.param


def test_in_python(foreign):
    path, name = foreign
    with pytest.raises(InputError, match=UNASKED.format(name)) as error:
        outword.load(path).score([PHOTOS / "cat.jpg"])
    assert f"--trust-encoder, or name it by hand: --encoder {name} (in Python trust_encoder=True" in error.value.hint
    for options in ({"trust_encoder": True}, {"encoder": name}):
        with pytest.raises(InputError, match=UNREACHED):
            outword.load(path, **options).score([PHOTOS / "cat.jpg"])
    with pytest.raises(InputError, match=UNASKED.format(name)):
        check_here(name)


@pytest.mark.parametrize("foreign", ["hf:org/none"], indirect=True)
@pytest.mark.parametrize("verb", ["score", "parts", "explain", "calibrate", "filter", "serve"])
def test_every_verb_that_reads_a_detector(foreign, tmp_path, verb):
    path, name = foreign
    args = {
        "score": ["score", path, PHOTOS / "cat.jpg"],
        "parts": ["score", path, PHOTOS / "cat.jpg", "-o", f"{tmp_path}/s/"],
        "explain": ["explain", path, PHOTOS / "cat.jpg"],
        "calibrate": ["calibrate", path, PHOTOS],
        "filter": ["filter", PHOTOS / "cat.jpg", "--detector", path, "-o", tmp_path / "kept"],
        "serve": ["serve", path, "--port", "0"],
    }[verb]
    done = call(*args, code=2)
    assert done.stdout == ""
    assert f"error: {UNASKED.format(name)}\n" in done.stderr
    assert UNREACHED in call(*args, "--trust-encoder", code=2).stderr
    assert UNREACHED in call(*args, "--encoder", name, code=2).stderr


def test_ray_settles_it_where_the_run_begins(detector):
    pytest.importorskip("ray")
    from outword.scoring.ray import score_source
    from outword.scoring.stream import open_source

    other = detector.with_threshold(None)
    other.card = changed(detector.card, "encoder", name="hf:org/none")
    source = open_source(detector, [PHOTOS / "cat.jpg"])
    with pytest.raises(InputError, match=UNASKED.format("hf:org/none")):
        next(score_source(other, source, {}))


def test_what_a_model_names_in_its_turn(tmp_path):
    """An open_clip configuration may name a text tower of the hub."""
    folder = tmp_path / "own"
    open_clip_folder("vit", folder)
    card = json.loads((folder / "open_clip_config.json").read_text())
    text = {"hf_model_name": "org/none", "hf_proj_type": "linear", "hf_pooler_type": "mean_pooler"}
    card["model_cfg"]["text_cfg"] = text
    (folder / "open_clip_config.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="is not on this machine and would be fetched"):
        get_encoder(f"hf:{folder}", download=False)


def test_what_is_here_needs_no_trust(detector, tmp_path):
    folder = tmp_path / "own"
    open_clip_folder("vit", folder)
    assert get_encoder(f"hf:{folder}", download=False).dim
    check_here(f"hf:{folder}")
    check_here("mini")


def test_a_suite_of_ones_own(tmp_path):
    suite = tmp_path / "own.toml"
    suite.write_text('title = "t"\nid = ["folder"]\nood = ["folder"]\nencoders = ["hf:org/none"]\nmethods = ["mcm"]\n')
    for kind in ("id/cat", "id/dog", "ood/x"):
        (tmp_path / kind).mkdir(parents=True)
        (tmp_path / kind / "cat.jpg").symlink_to(PHOTOS / "cat.jpg")
    run = ["bench", suite, "--data", tmp_path, "-o", tmp_path / "out"]
    assert UNASKED.format("hf:org/none") in call(*run, code=2).stderr
    for option in (["--trust-encoder"], ["--encoder", "hf:org/none"]):
        assert UNREACHED in call(*run, *option, code=2).stderr
