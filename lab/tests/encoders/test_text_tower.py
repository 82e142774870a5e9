"""The text tower from token embeddings on: the library's own forward in fewer operations, and gradients through it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from helpers.tiny import TEXTS, clip_folder, open_clip_folder
from outword.encoders import get_encoder
from outword.errors import ParameterError
from outword_lab.encoders.driven import text_tower
from outword_lab.learning.needs import PROMPTS


@pytest.fixture(params=["open_clip", "transformers"])
def encoder(request, tmp_path):
    if request.param == "open_clip":
        open_clip_folder("vit", tmp_path)
    else:
        clip_folder(tmp_path)
    return get_encoder(f"hf:{tmp_path}", device="cpu")


def read(tower, ids, shared, dtype=torch.float64, **options):
    """Vectors of texts whose first `shared` tokens are the same for all."""
    tower, ends = tower.to(dtype), tower.ends(ids)
    longest = int(ends.max()) + 1
    tokens = tower.embed(torch.from_numpy(ids[:, :longest]))
    return tower.read(tokens[0, :shared], (tokens[:, shared:], torch.from_numpy(ends - shared)), **options)


def test_it_is_the_towers_own_forward(encoder):
    tower = text_tower(encoder)
    vectors = encoder.encode_texts(TEXTS)
    np.testing.assert_allclose(read(tower, tower.tokenize(TEXTS), 1), vectors, atol=2e-6)
    alike = [f"a photo of a {name}." for name in ("cat", "tape measure", "very old locomotive")]
    ids = tower.tokenize(alike)
    for shared in (0, 1, 3, 5):
        np.testing.assert_allclose(read(tower, ids, shared), encoder.encode_texts(alike), atol=2e-6)


def test_a_few_at_a_time_are_the_same_with_the_same_gradients(encoder):
    tower = text_tower(encoder).to(torch.float64)
    ids = tower.tokenize([f"a photo of a {name}." for name in ("cat", "tape measure", "dog", "cow", "old locomotive")])
    ends = torch.from_numpy(tower.ends(ids) - 5)
    tokens = tower.embed(torch.from_numpy(ids[:, : int(tower.ends(ids).max()) + 1]))
    found = []
    for together in (None, 2):
        shared = tokens[0, :5].clone().requires_grad_()
        vectors = tower.read(shared, (tokens[:, 5:], ends), together=together)
        (vectors * torch.arange(vectors.numel()).view_as(vectors)).sum().backward()
        found.append((vectors.detach(), shared.grad))
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9, atol=1e-12)


def test_gradients_are_those_of_small_steps(encoder):
    tower = text_tower(encoder).to(torch.float64)
    ids = tower.tokenize(["x cat.", "x dog and cow."])
    tokens = tower.embed(torch.from_numpy(ids[:, : int(tower.ends(ids).max()) + 1])).clone()
    ends = torch.from_numpy(tower.ends(ids) - 2)

    def vectors(shared, own):
        return tower.read(shared, (own, ends))

    given = tokens[0, :2].clone().requires_grad_(), tokens[:, 2:].clone().requires_grad_()
    assert torch.autograd.gradcheck(vectors, given, fast_mode=True)


def test_what_cannot_be_driven_says_so(tmp_path):
    open_clip_folder("siglip", tmp_path)
    encoder = get_encoder(f"hf:{tmp_path}", device="cpu")
    assert not PROMPTS.is_offered(encoder)
    other = SimpleNamespace(name="mine", model="of a package that is none of ours")
    for one in (encoder, get_encoder("mini"), other):
        with pytest.raises(ParameterError, match="cannot be driven from token embeddings"):
            text_tower(one)


def test_the_small_world_can_be_driven():
    encoder = get_encoder("world-s")
    tower = text_tower(encoder)
    texts = ["a photo of a dog.", "a photo of a red hammer."]
    np.testing.assert_allclose(read(tower, tower.tokenize(texts), 5), encoder.encode_texts(texts), atol=2e-3)
