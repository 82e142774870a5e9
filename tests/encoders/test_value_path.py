"""Patch vectors: the value path of the last block, against a slow re-derivation, and where it is plain attention."""

import numpy as np
import pytest
import torch

from helpers.reference_vit import OPEN_CLIP, TRANSFORMERS, Vit
from helpers.tiny import open_clip, open_clip_model, transformers
from outword.encoders.torch import open_clip as in_open_clip
from outword.encoders.torch import transformers as in_transformers


def in_each_library():
    """A small model of each: what makes features of pixels, its weights by name, and what the names are."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 9},
        vision_config={**sizes, "image_size": 32, "patch_size": 8},
        projection_dim=24,
    )
    model, other = open_clip_model("vit"), transformers.CLIPModel(config).eval()
    for weight in other.vision_model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    return {
        "open_clip": (in_open_clip._patches(model.visual), model.state_dict(), OPEN_CLIP),
        "transformers": (in_transformers._patches(other), other.state_dict(), TRANSFORMERS),
    }


@torch.inference_mode()
@pytest.mark.parametrize("library", ["open_clip", "transformers"])
def test_patches_take_the_value_path_of_the_last_block(library):
    torch.manual_seed(0)
    patches, weights, names = in_each_library()[library]
    pixels, reference = torch.randn(3, 3, 32, 32), Vit(weights, names, heads=2, layers=2)
    for image, whole, parts in zip(pixels, *patches(pixels), strict=True):
        expected = reference(image)
        np.testing.assert_allclose(whole, expected[0], atol=1e-4 * np.abs(expected[0]).max())
        np.testing.assert_allclose(parts, expected[1], atol=1e-4 * np.abs(expected[1]).max())


def blocks():
    """The last block of each library as (the block, what it makes of tokens, its value path)."""
    scaled = open_clip.transformer.ResidualAttentionBlock(16, 2, ls_init_value=0.3)
    config = transformers.CLIPVisionConfig(hidden_size=16, intermediate_size=32, num_attention_heads=2)
    layer = transformers.models.clip.modeling_clip.CLIPEncoderLayer(config)
    layer.self_attn.config._attn_implementation = "sdpa"
    return [(scaled, scaled, in_open_clip.value_path), (layer, lambda z: layer(z, None), in_transformers.value_path)]


@torch.inference_mode()
@pytest.mark.parametrize("which", [0, 1])
def test_a_token_alone_and_equal_tokens_go_the_value_path_by_themselves(which):
    torch.manual_seed(0)
    block, whole, value_path = blocks()[which]
    for weight in block.eval().parameters():
        weight.data.normal_(std=0.3)
    z = torch.randn(3, 5, 16)
    alone = torch.cat([whole(z[:, [place]]) for place in range(5)], dim=1)
    np.testing.assert_allclose(value_path(block, z), alone, atol=1e-5)
    equal = z[:, :1].expand(3, 5, 16).contiguous()
    np.testing.assert_allclose(value_path(block, equal), whole(equal), atol=1e-5)
    assert (value_path(block, z) - whole(z)).abs().max() > 0.1  # others are looked at otherwise


@torch.inference_mode()
def test_metaclip_2_has_the_patches_of_clip():
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.MetaClip2Config(
        text_config={**sizes, "vocab_size": 9}, vision_config={**sizes, "image_size": 8, "patch_size": 4}
    )
    module = transformers.MetaClip2Model(config).eval()
    image, patches = in_transformers._patches(module)(torch.ones(2, 3, 8, 8))
    np.testing.assert_allclose(image, module.get_image_features(torch.ones(2, 3, 8, 8)).pooler_output, atol=1e-6)
    assert patches.shape == (2, 4, image.shape[1])


@pytest.mark.parametrize(
    "given",
    [{"pool_type": "avg"}, {"attentional_pool": True, "attn_pooler_heads": 1}, {"qk_norm": True}, {"layers": 1}],
)
def test_towers_that_are_no_vit_of_clip_have_no_patches(given):
    sizes = {"image_size": 8, "patch_size": 4, "width": 16, "layers": 2, "heads": 2, "mlp_ratio": 2.0, "output_dim": 8}
    assert in_open_clip._patches(open_clip.transformer.VisionTransformer(**sizes)) is not None
    assert in_open_clip._patches(open_clip.transformer.VisionTransformer(**{**sizes, **given})) is None
