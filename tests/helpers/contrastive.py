"""A made-up encoder with texts and photos in one space, as CLIP has them: photos lie around names of what they show.

Photos are one colour: red and green choose a name of `NAMES`, blue what else is in the photo.
"""

from functools import cache
from hashlib import sha256

import numpy as np
from PIL import Image

from outword.encoders import ENCODERS, Encoder
from outword.words.nouns import nouns

NAMES = sorted(nouns().visible())
BLAND = "zorbly"  # a word that says nothing to the encoder
DIM = 192
GAIN, NOISE, LEVEL = 0.25, 0.9, 0.25


class Contrastive(Encoder):
    """Kin have texts that are alike; counts the photos that it encodes."""

    name, dim, temperature, prompts, licence, source = "made-up", DIM, 0.01, "{}", "none", "this file"
    fingerprint, min_side, batch_size = "ad" * 32, 0, 16

    def __init__(self):
        self.seen = 0

    def preprocess(self, image):
        return np.asarray(image.convert("RGB").resize((1, 1)))

    def encode_pixels(self, pixels):
        self.seen += len(pixels)
        return np.stack([photo_vector(*map(int, colour)) for colour in pixels[:, 0, 0]])

    def encode_texts(self, texts):
        return np.stack([text_vector(text) for text in texts])


def register(monkeypatch):
    """Give the encoder a name that the command line and saved detectors find it by."""
    monkeypatch.setitem(ENCODERS._things, Contrastive.name, lambda name, **options: Contrastive())


@cache
def text_vector(text):
    senses = nouns().visible().get(text), *nouns().senses(text)
    sense = next((one for one in senses if one is not None), None)
    above = [] if sense is None else nouns().above(sense)
    directions = [_chance(f"above {one}") * 0.7 ** (steps + 1) for steps, one in enumerate(above)]
    own = 0.2 if text == BLAND else 1.0
    return unit(1.5 * _chance("all texts") + own * _chance(f"text {text}") + sum(directions))


@cache
def photo_vector(red, green, blue):
    name = NAMES[(256 * red + green) % len(NAMES)]
    toward = unit(text_vector(name) - 0.8 * _chance("all texts"))
    return unit(LEVEL * _chance("all texts") + GAIN * toward + NOISE * _chance(f"{name} {blue}"))


def colour(name, chance=0):
    """The colour of a photo of a name."""
    return (*divmod(NAMES.index(name), 256), chance)


def photo(name, chance=0):
    """A photo of a name, in memory."""
    return np.full((4, 4, 3), colour(name, chance), np.uint8)


def paint(folder, shown):
    """A folder of photos, one of each (name, chance) of `shown`."""
    folder.mkdir(parents=True)
    for name, chance in shown:
        Image.new("RGB", (4, 4), colour(name, chance)).save(folder / f"{name} {chance}.png".replace("/", "-"))
    return folder


def unit(vector):
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _chance(key):
    """A direction that hangs on a text alone."""
    seed = int.from_bytes(sha256(key.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIM) / np.sqrt(DIM)
