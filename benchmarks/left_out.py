"""`mini` without some of ImageNet's classes: what it makes of names and photos that it never saw.

The classes' weights, names and nodes are taken away, and the shared space is made again as `tools/build_mini.py` makes
it, from what ships: the classifier's weights as they are stored, WordNet's nouns, and sentence vectors of every tenth
noun (for the regression and the basis) and of the names at or above a class. Photos are read from the features of the
image tower, which are kept. The 12,000 mined words are those that ship with `mini`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from outword.base.arrays import write_arrays
from outword.base.cache import cache_dir
from outword.base.files import sha256_bytes
from outword.detector.recipe import METHOD, resolve
from outword.encoders import get_encoder
from outword.encoders.base import Vectors, texts_of
from outword.encoders.mini.encoder import DATA, Mini
from outword.encoders.mini.lexicon import Lexicon
from outword.encoders.ort import session
from outword.encoders.texts import alike
from outword.maths.numerics import Array
from outword.photos.decode import open_image
from outword.vectors.wild import encode_words, mine, wild_key
from outword.words.nouns import _part, nouns

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from mini_space import Classifier, Nodes, basis, lexicon_arrays, make_head
from wordnet_db import Synset, WordNet

FOLDS, EVERY = 5, 10
PROMPT = "a photo of a {}"  # of the template set "mini"


class LeftOut(Mini):
    """The embedded encoder without the classes `held`, which are numbers from 0 to 999."""

    def __init__(self, held: Sequence[int], sentences: Sentences) -> None:
        super().__init__()
        keep = np.setdiff1d(np.arange(1000), held)
        self.fingerprint = sha256_bytes(b"left out" + np.array(sorted(held), np.int64).tobytes())
        self.text_fingerprint, self.sentences = self.fingerprint, sentences
        net, names = wordnet(), class_wnids()
        nodes = Nodes(net, [int(names[i][1:]) for i in keep])
        lexicon = Lexicon(lexicon_arrays(nodes))
        own = {lemma.lower() for offset in nodes.offsets for lemma in net.synsets[offset].lemmas}
        chosen = sorted({*sorted(net.senses)[::EVERY], *own} & {*net.senses})
        nodes.net = WordNet(net.synsets, {word: net.senses[word] for word in chosen})
        spoken = dict(zip(chosen, sentences([PROMPT.format(word) for word in chosen]), strict=True))
        stored = load_file(DATA / "head.safetensors")
        weights = stored["W"].astype(np.float32) * stored["W.scale"][:, None]
        classifier = Classifier(weights[keep], stored["b"][keep], tuple(nodes.classes), stored["mu"])
        head = make_head(nodes, lexicon, classifier, spoken)
        self.__dict__["lexicon"] = lexicon
        self.__dict__["_head"] = replace(head, B=basis(head, lexicon, nodes, spoken, self.dim - 1))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """As `mini` does, with sentence vectors that are kept."""
        texts = texts_of(texts)
        meant = np.stack([self.lexicon.vector(text) for text in texts])
        return self._head.texts(self.sentences(texts), meant)

    def seen(self, features: Array) -> Vectors:
        """Vectors of photos from the features of the image tower."""
        return self._head.images(features)


class Sentences:
    """Sentence vectors of texts, each worked out once."""

    def __init__(self, path: Path) -> None:
        self.path, self.known = path, dict[str, Array]()
        if path.exists():
            kept = np.load(path)
            self.known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Array:
        """The vectors of texts, (n_texts, 384)."""
        new = [*dict.fromkeys(text for text in texts if text not in self.known)]
        if new:
            encoder = Mini()
            ids = [encoder._tokens.encode(text) for text in new]
            for rows in alike(np.array([len(row) for row in ids]), 64):
                found = encoder._text_tower.run(None, {"ids": np.array([ids[i] for i in rows], np.int64)})[0]
                self.known.update((new[i], vector) for i, vector in zip(rows, found, strict=True))
        return np.stack([self.known[text] for text in texts])

    def keep(self) -> None:
        """Write them for the next time."""
        np.savez(self.path, texts=np.array([*self.known]), vectors=np.stack([*self.known.values()]))


@cache
def class_wnids() -> list[str]:
    """WordNet's numbers of the classes, in the order of the classifier."""
    path = Path(__file__).parents[1] / "lab" / "src" / "outword_lab" / "benchmark" / "data" / "imagenet.tsv"
    return sorted(line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines())


@cache
def wordnet() -> WordNet:
    """WordNet's nouns as `tools/wordnet_db.py` has them, from what ships."""
    net, found = nouns(), WordNet()
    for sense in range(len(net)):
        parents = tuple(int(net.offsets[above]) for above in _part(net._parents, net._parent_ends, sense))
        of, instance_of = ((), parents) if net.is_instance(sense) else (parents, ())
        offset = int(net.offsets[sense])
        found.synsets[offset] = Synset(offset, "", net.names(sense), of, instance_of, "")
    for row in range(len(net.key_ends)):
        tags = _part(net._sense_tags, net._sense_ends, row)
        meant = zip(net.lemma_senses(row), tags, strict=False)
        if senses := [(int(net.offsets[sense]), int(tag)) for sense, tag in meant]:
            found.senses[net.lemma(row).lower()] = senses
    return found


def features(paths: Sequence[Path], kept: Path) -> Array:
    """Features of photos by the image tower, kept in a file."""
    if kept.exists():
        return np.load(kept)["features"]
    encoder, tower = Mini(), session(DATA / "image.onnx")
    rows = [tower.run(None, {"pixels": encoder.preprocess(open_image(path))[None]})[0][0] for path in paths]
    np.savez(kept, features=np.stack(rows))
    return np.stack(rows)


def folds() -> Iterator[list[int]]:
    """Five times 200 classes, each class once."""
    order = np.random.default_rng(0).permutation(1000)
    return (np.sort(order[i::FOLDS]).tolist() for i in range(FOLDS))


def with_mined_words(encoder: LeftOut) -> LeftOut:
    """The encoder, whose mined words are those of `mini`, by its own vectors, from now on."""
    mini = get_encoder("mini")
    recipes = [resolve(one, METHOD, {}) for one in (mini, encoder)]
    (shipped, own) = recipes
    words = mine(mini, shipped.corpus, shipped.prompts, shipped.make_miner(), np.zeros((0, 0), np.float32)).words
    vectors = encode_words(encoder, own.prompts.render(words, ["noun"] * len(words))).astype(np.float16)
    key = wild_key(encoder, own.corpus, own.prompts, own.make_miner())
    arrays = {"words": np.frombuffer("\n".join(words).encode(), np.uint8), "vectors": vectors}
    write_arrays(cache_dir() / "mined" / f"{key}.safetensors", arrays)
    return encoder
