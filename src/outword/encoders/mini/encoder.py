"""The embedded encoder `mini`: EfficientNet-Lite2 and MiniLM-L6 in one space, offline, on onnxruntime.

It knows ImageNet names, their synonyms and broad parents, and little else; `coverage` says so label by label. How the
two networks come to share a space is in `head`, what is known of words in `lexicon`; the files are made by
`tools/build_mini.py`. Its image tower computes in 8-bit integers (`tools/mini_int8.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file

from outword.base.odds import MeasuredOdds
from outword.encoders.base import Coverage, Encoder, Vectors, texts_of
from outword.encoders.mini.head import Head
from outword.encoders.mini.lexicon import Lexicon
from outword.encoders.mini.odds import ODDS
from outword.encoders.mini.wordpiece import WordPiece
from outword.encoders.ort import ImageTower, never_alone, session, threads
from outword.encoders.texts import alike

if TYPE_CHECKING:
    from outword.encoders.onnx.traced import Graph, Traced

DATA = Path(str(files("outword"))) / "encoders" / "data" / "mini"
SIDE = 260  # pixels that go into the image tower
CROP = 260 / 292  # share of the shorter side that the central crop keeps
MAX_TOKENS = 128  # what the text tower was trained with; a longer text is cut
TEXT_BATCH = 64
PREPROCESSING = {"side": SIDE, "crop": CROP, "resize": "bicubic", "max_tokens": MAX_TOKENS}  # goes into the fingerprint


def central(width: Any, height: Any) -> tuple[Any, Any, Any, Any]:
    """The central square that is kept of an image: left, top, right, bottom."""
    side = np.minimum(width, height) * CROP
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


class Mini(Encoder):
    """One unit vector per image and per text; each tower is loaded when it is first needed.

    >>> Mini().encode_texts(["a photo of a tabby cat"]).shape
    (1, 512)
    """

    side = SIDE
    odds: MeasuredOdds | None = ODDS

    def __init__(self, folder: Path = DATA, shared: Path | None = None) -> None:
        """`folder` has the card and the image tower, `shared` all else; by default that is the same folder."""
        self._image_file, self._folder = folder / "image.onnx", shared or folder
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        self.name, self.fingerprint, self.text_fingerprint = card["name"], card["fingerprint"], card["text_fingerprint"]
        self.dim, self.temperature, self.prompts = (card[key] for key in ("dim", "temperature", "prompts"))
        self.licence = "Apache-2.0; WordNet 3.0 licence"
        self.source = "comes with outword: EfficientNet-Lite2, all-MiniLM-L6-v2, WordNet 3.0 (docs/mini.md)"
        self.min_side = round(SIDE / CROP)  # the side of what is resized: a JPEG is decoded at twice that or more
        self.callers = min(2, threads())  # one's head and scores are computed while the other's tower is
        self.batch_size = 4  # 1 to 4 are fastest here: the activations of more do not stay in the cache

    @staticmethod
    def preprocess(image: Image.Image) -> NDArray[np.uint8]:
        """The central square, resized in one bicubic step to (260, 260, 3)."""
        return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box=central(*image.size)))

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> Vectors:
        """Pixels (n, 260, 260, 3) to unit vectors (n, dim)."""
        out, head = np.empty((len(pixels), self.dim), np.float32), self._head

        def encode(session: Any, rows: slice) -> None:
            out[rows] = head.images(session.run(None, {"pixels": pixels[rows]})[0])

        self._image_tower.each(encode, len(pixels), self.batch_size)
        return out

    def image_graph(self, graph: Graph, pixels: Traced, *, resize: bool) -> Traced:
        """Unit vectors of bytes, as operations of an ONNX graph; see `Encoder.image_graph`."""
        import onnx

        from outword.encoders.mini.traced_head import image_vectors
        from outword.encoders.onnx.resizing import resized

        x = resized(graph, pixels, SIDE, "bicubic", central) if resize else pixels
        features = graph.include(onnx.load(self._image_file), x)
        return image_vectors(graph, features, *self._stored, self._head.v)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, prompts included, to unit vectors (n, dim).

        The sentence is read as given; the taxonomy looks at the longest run of words at its end that WordNet holds:
        in "a photo of a tabby cat" it finds "tabby cat".
        """
        texts = texts_of(texts)
        ids = [self._tokens.encode(text) for text in texts]
        out = np.empty((len(texts), self.dim), np.float32)
        lengths = np.array([len(row) for row in ids])
        for rows in alike(lengths, TEXT_BATCH):  # no padding, so a text never feels its batch
            some = np.array([ids[i] for i in rows], np.int64)
            E = never_alone(lambda these: self._text_tower.run(None, {"ids": these})[0], some)
            v = np.stack([self.lexicon.vector(texts[i]) for i in rows])
            out[rows] = self._head.texts(E, v)
        return out

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """How well each bare label is known; see `outword.encoders.mini.lexicon.Lexicon.flag`."""
        return [Coverage(label, self.lexicon.flag(label)) for label in labels]

    @cached_property
    def _image_tower(self) -> ImageTower[Any]:
        return ImageTower(lambda n_threads: session(self._image_file, n_threads))

    @cached_property
    def _text_tower(self) -> Any:
        return session(self._folder / "text.onnx")

    @cached_property
    def _tokens(self) -> WordPiece:
        return WordPiece((self._folder / "vocab.txt").read_text(encoding="utf-8").split("\n"), MAX_TOKENS)

    @cached_property
    def lexicon(self) -> Lexicon:
        """What is known of words."""
        return Lexicon.load(self._folder / "lexicon.safetensors")

    @property
    def _stored(self) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.float32]]]:
        """The matrices as the file has them, and the scales of those that are int8."""
        stored = load_file(self._folder / "head.safetensors")
        scales = {name: stored.pop(f"{name}.scale") for name in [n for n in stored if f"{n}.scale" in stored]}
        return stored, scales

    @cached_property
    def _head(self) -> Head:
        """Its matrices are kept as int8 with one scale a row, and computed with in float32.

        Products go through onnxruntime: numpy's own threads spin for a while after each product, in the way of the
        towers' threads, and cost more than half of the images per second.
        """
        stored, scales = self._stored
        arrays = {name: a * scales[name][:, None] if name in scales else a for name, a in stored.items()}
        product = session(self._folder / "matmul.onnx")
        return Head(
            **{name: np.asarray(a, np.float32) for name, a in arrays.items()},
            v=self.lexicon.taxonomy.v[self.lexicon.classes],
            multiply=lambda x, y: never_alone(lambda rows: product.run(None, {"x": rows, "y": y})[0], x),
        )
