"""The image tower for CUDA devices, interpreted, against the libraries' own."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from helpers.tiny import clip_folder, open_clip_folder  # noqa: E402
from outword.encoders import get_encoder  # noqa: E402
from outword.encoders.torch import triton_vision as fused  # noqa: E402
from outword.encoders.torch.image_tower import ImageTower, of_open_clip  # noqa: E402


def tower_of(encoder, dtype=torch.float32):
    """The tower, in memory of its own: that of a file need not lie as descriptors want it."""
    tower = encoder.model.image_tower()
    return replace(tower, weights={name: weight.to(dtype).clone() for name, weight in tower.weights.items()})


@pytest.mark.parametrize("make", [lambda folder: open_clip_folder("vit", folder), clip_folder], ids=["open_clip", "hf"])
@torch.inference_mode()
def test_features_are_those_of_the_library(make, tmp_path):
    make(tmp_path)
    encoder = get_encoder(f"hf:{tmp_path}", device="cpu")
    side = encoder.preprocess.side
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, side, side, 3), dtype=np.uint8))
    want = encoder.model.image(encoder._normalised(pixels))
    found = tower_of(encoder)(pixels, encoder._scale, encoder._shift)
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)
    alone = tower_of(encoder)(pixels[1:2], encoder._scale, encoder._shift)
    torch.testing.assert_close(alone, found[1:2], rtol=1e-5, atol=1e-5)


def test_towers_that_are_not_clips_run_as_their_library_has_them(tmp_path):
    open_clip_folder("resnet", tmp_path / "resnet")
    assert get_encoder(f"hf:{tmp_path / 'resnet'}", device="cpu").model.image_tower() is None
    open_clip_folder("vit", tmp_path / "vit")
    visual = get_encoder(f"hf:{tmp_path / 'vit'}", device="cpu").model.module.visual
    assert isinstance(of_open_clip(visual), ImageTower)
    visual.transformer.resblocks[1].ls_1 = torch.nn.Dropout()
    assert of_open_clip(visual) is None
    visual.transformer.resblocks[1].ls_1 = torch.nn.Identity()
    visual.transformer.resblocks[0].mlp.gelu = torch.nn.GELU("tanh")
    assert of_open_clip(visual) is None


def test_patches_by_hand():
    pixels = torch.arange(2 * 4 * 4 * 3, dtype=torch.uint8).view(2, 4, 4, 3)
    scale, shift = torch.tensor([1.0, 2.0, 0.5]), torch.tensor([0.0, 1.0, -1.0])
    found = fused.cut_up(pixels, scale, shift, 2, 16, torch.float32)
    assert found.shape == (8, 16)
    want = (pixels[1, 2:4, 0:2].float() * scale + shift).flatten()  # the third patch of the second image
    torch.testing.assert_close(found[6, :12], want)
    assert not found[:, 12:].any()


@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_the_widest_product(activation):
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(130, 64, generator=generator), torch.randn(320, 64, generator=generator) / 8
    bias = torch.randn(320, generator=generator)
    want = getattr(torch.nn.functional, activation)(torch.nn.functional.linear(x, weight, bias))
    torch.testing.assert_close(fused.widen(x, weight, bias, activation), want, rtol=1e-4, atol=1e-4)


def test_add_and_norm():
    generator = torch.Generator().manual_seed(0)
    x, change, weight, bias = (torch.randn(shape, generator=generator) for shape in ((7, 48), (7, 48), (48,), (48,)))
    tokens = x.clone()
    normed = fused.add(tokens, change, (weight, bias), 1e-5)
    torch.testing.assert_close(tokens, x + change)
    torch.testing.assert_close(normed, torch.nn.functional.layer_norm(x + change, (48,), weight, bias, 1e-5))
