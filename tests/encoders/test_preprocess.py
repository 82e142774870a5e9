"""Resize and crop against Pillow's two plain steps, and against a slow sum in float64."""

import numpy as np
import pytest
from PIL import Image

from helpers.tiny import photos, require
from outword.encoders.preprocess import Preprocess

FILTERS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
MEAN = STD = (0.5, 0.5, 0.5)


def cubic(x, a=-0.5):
    x = np.abs(x)
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def weights(before, after, kernel, support):
    """(after, before): how much of each old pixel goes into a new one; the kernel is widened when shrinking."""
    scale = max(before / after, 1)
    centres = (np.arange(after)[:, None] + 0.5) * before / after
    distance = (np.arange(before)[None] + 0.5 - centres) / scale
    w = kernel(distance) * (np.abs(distance) < support)
    return w / w.sum(axis=1, keepdims=True)


def slow(image, given):
    """Resize in float64, rounding to bytes after each pass as image libraries do, then cut out the centre."""
    kernel, support = (cubic, 2) if given.interpolation == "bicubic" else (lambda x: np.maximum(1 - np.abs(x), 0), 1)
    pixels = np.asarray(image).astype(np.float64)
    height, width = pixels.shape[:2]
    short = given.short or given.side
    size = [int(short * n / min(height, width)) for n in (height, width)] if given.short else [short, short]
    across = np.clip(np.rint(np.einsum("ow,hwc->hoc", weights(width, size[1], kernel, support), pixels)), 0, 255)
    resized = np.clip(np.rint(np.einsum("oh,hwc->owc", weights(height, size[0], kernel, support), across)), 0, 255)
    top, left = (round((n - given.side) / 2) for n in size)
    return resized[top : top + given.side, left : left + given.side]


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("side, short", [(32, 32), (32, 36), (48, 0), (224, 224), (33, 40)])
def test_equals_a_slow_sum(side, short, interpolation):
    given = Preprocess(side, short, interpolation, MEAN, STD)
    for image in photos():
        pixels = given(image)
        assert pixels.shape == (side, side, 3)
        assert pixels.dtype == np.uint8
        difference = np.abs(pixels - slow(image, given))
        assert difference.max() <= 2, difference.max()
        assert (difference <= 1).mean() > 0.999


@pytest.mark.parametrize("interpolation", FILTERS)
def test_the_box_gives_the_pixels_of_resize_and_crop(interpolation):
    rng = np.random.default_rng(0)
    for width, height in [
        *rng.integers(20, 400, size=(40, 2)).tolist(),
        (224, 224),
        (225, 224),
        (500, 375),
        (31, 4000),
    ]:
        image = Image.fromarray(rng.integers(256, size=(height, width, 3), dtype=np.uint8))
        size = [int(224 * n / min(width, height)) for n in (width, height)]
        left, top = (round((n - 224) / 2) for n in size)
        whole = np.asarray(image.resize(size, FILTERS[interpolation]))[top : top + 224, left : left + 224]
        got = Preprocess(224, 224, interpolation, MEAN, STD)(image)
        assert np.abs(got.astype(int) - whole).max() <= 2, (width, height)  # the box is in float32
        assert (got == whole).mean() > 0.98


def test_equals_the_transforms_of_open_clip():
    library = require("open_clip", "the tests")
    transform = library.image_transform(224, is_train=False, mean=(0, 0, 0), std=(1, 1, 1))
    for image in photos():
        theirs = np.rint(transform(image).permute(1, 2, 0).numpy() * 255)
        ours = Preprocess(224, 224, "bicubic", MEAN, STD)(image)
        assert np.abs(ours - theirs).max() <= 1
