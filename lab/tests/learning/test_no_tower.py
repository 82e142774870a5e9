"""A text tower that says no: its loss, its captions, and a training that gives the same bits, killed or not."""

import json
import math

import numpy as np
import pytest
import torch

from conftest import call
from helpers.tiny import clip_folder, photos
from outword.encoders import get_encoder
from outword.errors import InputError, ParameterError
from outword_lab.encoders.driven import text_tower
from outword_lab.learning import no_tower
from outword_lab.learning.captions import encode_captions, read_captions
from outword_lab.learning.no_loss import no_loss
from outword_lab.learning.no_tower import Course, train, train_no


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A CLIP of transformers with random weights."""
    folder = tmp_path_factory.mktemp("tiny")
    clip_folder(folder)
    return f"hf:{folder}"


def write(path, pairs):
    path.write_text("".join(json.dumps({"image": image, "text": text}) + "\n" for image, text in pairs))
    return path


@pytest.fixture
def captions(tmp_path):
    """Five photos with seven captions; two of them are of one photo."""
    for number, photo in enumerate(photos()):
        photo.save(tmp_path / f"{number}.png")
    told = ["a red cat", "a dog", "the nice old locomotive", "a cat", "x", "another dog", "a cat"]
    return write(tmp_path / "captions.jsonl", [(f"{i % 5}.png", text) for i, text in enumerate(told)])


def unit_rows(seed, n=5, dim=4):
    rows = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, dim)))
    return rows / rows.norm(dim=1, keepdim=True)


def test_loss_by_hand():
    # s = log 3, x = t = (e1, e2), n swapped: x_i.(t_i - n_i) = 1, so p_ii = 3/4; i != j: -1, so 1 - p = 3/4
    x = torch.eye(2, dtype=torch.float64)
    expected = 0.5 * (2 * math.log(4 / 3) + 2 - math.sqrt(2 + 1e-4))
    assert no_loss(x, x, x.flip(0), math.log(3)).item() == pytest.approx(expected)


def test_loss_where_training_begins():
    x, t = unit_rows(0), unit_rows(1)
    assert no_loss(x, t, t, 100.0).item() == pytest.approx(0.5 * (2 * math.log(2) + 2 - 0.01))


def test_loss_is_the_formula_and_stays_finite():
    x, t, n, s = unit_rows(0), unit_rows(1), unit_rows(2), 3.0
    p = [[1 / (1 + math.exp(s * float(a @ c) - s * float(a @ b))) for b, c in zip(t, n, strict=True)] for a in x]
    match = -sum(math.log(p[i][i]) for i in range(5)) / 5
    others = -sum(math.log(1 - p[i][j]) for i in range(5) for j in range(5) if i != j) / 20
    apart = sum(2 - math.sqrt(2 - 2 * float(a @ b) + 1e-4) for a, b in zip(t, n, strict=True)) / 5
    assert no_loss(x, t, n, s).item() == pytest.approx(0.5 * (match + others + apart))
    assert math.isfinite(no_loss(x.float(), -x.float(), x.float(), 1e4).item())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_text_says_no_to_those_images_alone_that_it_is_not_said_of(seed):
    x, t, n, s = unit_rows(seed), unit_rows(seed + 10), unit_rows(seed + 20), 3.0
    said = np.eye(5, dtype=bool) | (np.random.default_rng(seed).random((5, 5)) < 0.4)
    p = [[1 / (1 + math.exp(s * float(a @ c) - s * float(a @ b))) for b, c in zip(t, n, strict=True)] for a in x]
    no = [-math.log(1 - p[i][j]) for i in range(5) for j in range(5) if not said[i, j]]
    match = -sum(math.log(p[i][i]) for i in range(5)) / 5
    apart = sum(2 - math.sqrt(2 - 2 * float(a @ b) + 1e-4) for a, b in zip(t, n, strict=True)) / 5
    expected = 0.5 * (match + sum(no) / len(no) + apart)
    assert no_loss(x, t, n, s, torch.from_numpy(said)).item() == pytest.approx(expected)
    nobody = no_loss(x, t, n, s, torch.ones(5, 5, dtype=torch.bool)).item()
    assert nobody == pytest.approx(0.5 * (match + apart))  # all texts are said of all images


def test_captions_of_one_photo_do_not_say_no_to_it(captions, tmp_path):
    encoder = get_encoder("world-s")
    pairs = encode_captions(encoder, read_captions(captions))
    said = {(int(photo), text) for photo, text in zip(pairs.photos, pairs.texts, strict=True)}
    batches = no_tower._Batches(encoder, text_tower(encoder), pairs, 7)
    (batch,) = batches.epoch([0, 0])
    order = np.random.default_rng([0, 0]).permutation(7)
    expected = [[(int(pairs.photos[i]), pairs.texts[j]) in said for j in order] for i in order]
    assert batch.said.tolist() == expected
    assert batch.said.sum() > 7  # photos 0 and 1 have two captions, and "a cat" is said of photos 3 and 1


def test_loss_has_the_gradient_of_small_steps():
    x, t, n = unit_rows(0), unit_rows(1), unit_rows(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda no: no_loss(x, t, no, 10.0), n)


def test_captions_are_read_from_the_folder_of_their_file(captions, tmp_path):
    found = read_captions(captions)
    assert found[0] == (str(tmp_path / "0.png"), "a red cat")
    pairs = encode_captions(get_encoder("world-s"), found)
    assert (len(pairs.vectors), pairs.photos.tolist(), len(pairs.texts)) == (5, [0, 1, 2, 3, 4, 0, 1], 7)


def test_captions_of_the_rendered_world(tmp_path):
    file = write(tmp_path / "c.jsonl", [("world:train/cat/000.png", "a cat"), ("world:train/cat/999.png", "a cat")])
    with pytest.warns(UserWarning, match="1 of 2 photos are left out"):
        pairs = encode_captions(get_encoder("world-s"), read_captions(file))
    assert (len(pairs.vectors), pairs.texts) == (1, ["a cat"])


@pytest.mark.parametrize("line", ["{", "3", '{"image": "a.png"}', '{"image": "a.png", "text": " "}', "[" * 100])
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "c.jsonl").write_text('{"image": "a.png", "text": "a cat"}\n\n' + line)
    with pytest.raises(InputError, match=r"line 3 of .* should say an image and a text"):
        read_captions(tmp_path / "c.jsonl")


def test_captions_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_captions(tmp_path / "absent.jsonl")


def test_photos_that_cannot_be_read_are_counted(captions, tmp_path):
    (tmp_path / "1.png").write_bytes(b"none")
    (tmp_path / "2.png").unlink()
    with pytest.warns(UserWarning, match="2 of 5 photos are left out"):
        pairs = encode_captions(get_encoder("world-s"), read_captions(captions))
    assert len(pairs.unreadable) == 2
    assert pairs.texts == ["a red cat", "a cat", "x", "another dog"]


def test_the_same_bits_twice_and_the_encoder_stays(tiny, captions, tmp_path):
    encoder, before = get_encoder(tiny, device="cpu"), torch.random.get_rng_state()
    yes = encoder.encode_texts(["a cat"])
    for name in ("a", "b"):
        train_no(captions, encoder, tmp_path / f"{name}.safetensors", Course(epochs=2, batch=3))
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    train_no(captions, encoder, tmp_path / "c.safetensors", Course(epochs=2, batch=3, seed=1))
    assert (tmp_path / "a.safetensors").read_bytes() != (tmp_path / "c.safetensors").read_bytes()
    np.testing.assert_array_equal(encoder.encode_texts(["a cat"]), yes)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not list((tmp_path / "cache" / "no").iterdir())  # nothing is left of runs that are done


def test_a_killed_run_goes_on(tiny, captions, tmp_path, monkeypatch):
    encoder, course = get_encoder(tiny, device="cpu"), Course(epochs=4, batch=3)
    train_no(captions, encoder, tmp_path / "whole.safetensors", course)
    told, step = [], no_tower._step

    def dies(*args):
        if len(told) == 2:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(no_tower, "_step", dies)
    with pytest.raises(KeyboardInterrupt):
        train_no(captions, encoder, tmp_path / "again.safetensors", course, tell=told.append)
    monkeypatch.undo()
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    assert not (tmp_path / "again.safetensors").exists()
    train_no(captions, encoder, tmp_path / "again.safetensors", course, tell=told.append)
    assert [line.partition(":")[0] for line in told] == [f"epoch {i} of 4" for i in (1, 2, 3, 4)]
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def test_it_learns_what_it_is_told(tmp_path):
    told = [(f"world:train/{thing}/{i:03}.png", f"a {thing}") for thing in ("cat", "hammer", "car") for i in range(3)]
    pairs = encode_captions(get_encoder("world-s"), read_captions(write(tmp_path / "c.jsonl", told)))
    trained = train(get_encoder("world-s"), pairs, Course(epochs=15, batch=9, rate=1e-3))
    assert trained.losses[-1] < 0.8 * trained.losses[0]
    assert trained.prompts.abs().max() > 0
    assert all(leaf.grad is not None for leaf in trained.leaves().values())


def test_what_it_refuses(tiny, captions, tmp_path):
    encoder, out = get_encoder(tiny, device="cpu"), tmp_path / "a.safetensors"
    for course, message in (
        (Course(epochs=0), "epochs must be"),
        (Course(batch=1), "batch must be"),
        (Course(rate=0), "rate must be"),
        (Course(seed=-1), "seed must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            train_no(captions, encoder, out, course)
    for path in (tmp_path / "a.pt", tmp_path / "nowhere" / "a.safetensors"):
        with pytest.raises(ParameterError, match="the output must be"):
            train_no(captions, encoder, path)
    with pytest.raises(ParameterError, match="mini cannot be driven from token embeddings"):
        train_no(captions, get_encoder("mini"), out)
    with pytest.raises(InputError, match="at least 2 photos with captions"):
        train_no(write(tmp_path / "one.jsonl", [("0.png", "a cat")]), encoder, out)
    with pytest.raises(ParameterError, match=r"the loss is nan|the loss is inf"):
        train_no(captions, encoder, out, Course(epochs=9, rate=1e30))


def test_from_captions_to_verdicts(captions, tmp_path):
    out = tmp_path / "no.safetensors"
    result = call("train-no", captions, "--encoder", "world-s", "-o", out, "--epochs", "2", "--batch", "4")
    assert result.stdout == f"clipn:{out}\n"
    assert "epoch 2 of 2: loss" in result.stderr
    assert "trained on 7 captions of 5 photos" in result.stderr
    (tmp_path / "labels.txt").write_text("hammer\ncat\nfish\n")
    made = tmp_path / "d.outword"
    call("fit", tmp_path / "labels.txt", "--method", "clipn", "--encoder", f"clipn:{out}", "-o", made)
    assert "clipn" in call("list", "methods").stdout
    assert call("score", made, tmp_path / "0.png").stdout.count("\n") == 2
    told = call("train-no", captions, "--encoder", f"clipn:{out}", "-o", tmp_path / "b.safetensors", code=2).stderr
    assert "can say no already" in told
