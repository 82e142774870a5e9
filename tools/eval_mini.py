"""Measure `mini`: names it never saw, names it knows, and photos of something else.

    python tools/eval_mini.py PHOTOS --wordnet /usr/share/wordnet

PHOTOS has a folder `imagenet` (files `n<WordNet offset>_<name>.jpg`) and folders of other photos (`<class>_<id>.jpg`).
It prints, for each dimension asked for (0: no change of basis):

* unseen names: the space is built again without 200 classes (their weights, names and nodes), and photos of those are
  named among the 200; accuracy, also by coverage flag, and the temperature of best likelihood, over 5 folds;
* known names: accuracy among the names of all photographed classes, and AUROC of the largest cosine to 100 of them (10
  draws) for photos of the 100 against photos of the other classes and of each other folder;

and for the encoder as it ships, the accuracy among the class names of each other folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from build_mini import DIM, PROMPT, Inputs, read_inputs, sentence_vectors
from mini_space import Array, Nodes, basis, lexicon_arrays, make_head
from outword.encoders.mini.encoder import DATA, Mini
from outword.encoders.mini.head import Head, softmax
from outword.encoders.mini.lexicon import Lexicon
from outword.encoders.ort import session
from outword.metrics import auroc
from outword.photos.decode import open_image

FOLDS, HELD, DRAWS, DRAWN = 5, 200, 10, 100
SCALES = np.arange(10, 61, 2.5)  # 1 / temperature


@dataclass(frozen=True)
class Photos:
    """Pooled features (n, 1280); each photo's folder, class name and class number (-1 outside ImageNet)."""

    f: Array
    folder: NDArray[np.str_]
    name: NDArray[np.str_]
    label: NDArray[np.int64]


def read_photos(root: Path, classes: tuple[int, ...]) -> Photos:
    """Photos through the image tower that ships."""
    encoder, tower = Mini(), session(DATA / "image.onnx")
    paths = sorted(root.glob("*/*.jpg"))
    pixels = (encoder.preprocess(open_image(path)) for path in paths)
    f = np.concatenate([tower.run(None, {"pixels": p[None]})[0] for p in pixels])
    number = {f"n{offset:08d}": i for i, offset in enumerate(classes)}
    first = [path.name.split("_")[0] for path in paths]
    label = [number.get(w, -1) for w in first]
    return Photos(f, np.array([p.parent.name for p in paths]), np.array(first), np.array(label))


@dataclass(frozen=True)
class Space:
    """A head with the lexicon that belongs to it; `dim` 0 leaves out the change of basis."""

    head: Head
    lexicon: Lexicon
    sentence: Mapping[str, Array]
    dim: int

    @classmethod
    def build(cls, inputs: Inputs, sentence: Mapping[str, Array], held: NDArray[np.int64], dim: int) -> Space:
        """The space without the classes `held`."""
        classifier = inputs.classifier.without(held)
        nodes = Nodes(inputs.net, classifier.classes)
        lexicon = Lexicon(lexicon_arrays(nodes))
        head = make_head(nodes, lexicon, classifier, sentence)
        return cls(replace(head, B=basis(head, lexicon, nodes, sentence, max(dim - 1, 1))), lexicon, sentence, dim)

    def cut(self, dim: int) -> Space:
        """The same with fewer dimensions; 0 leaves out the change of basis."""
        return replace(self, head=replace(self.head, B=self.head.B[:, : dim - 1]), dim=dim)

    def images(self, f: Array) -> Array:
        """Unit vectors of pooled features."""
        return self.head.images(f) if self.dim else self.head.whole_images(f)

    def texts(self, words: list[str]) -> Array:
        """Unit vectors of nouns of WordNet."""
        E, v = np.stack([self.sentence[w.lower()] for w in words]), np.stack([self.lexicon.vector(w) for w in words])
        return self.head.texts(E, v) if self.dim else self.head.whole_texts(E, v)


def folds() -> Iterator[NDArray[np.int64]]:
    """Five times 200 classes, each class once."""
    order = np.random.default_rng(0).permutation(FOLDS * HELD)
    return (order[i::FOLDS] for i in range(FOLDS))


def unseen(inputs: Inputs, sentence: Mapping[str, Array], photos: Photos, dims: list[int]) -> Iterator[str]:
    """Accuracy among unseen names, also by the flag of the true name, and the temperature with the best likelihood."""
    hits, losses, flags = {dim: [] for dim in dims}, {dim: [] for dim in dims}, []
    for held in folds():
        largest = Space.build(inputs, sentence, held, max(dims))
        rows = np.flatnonzero(np.isin(photos.label, held))
        truth = np.array([np.flatnonzero(held == y)[0] for y in photos.label[rows]])
        names = class_names(inputs, held)
        flags += [largest.lexicon.flag(names[t]).split()[0] for t in truth]
        for dim in dims:
            space = largest.cut(dim)
            cosine = space.images(photos.f[rows]) @ space.texts(names).T
            hits[dim] += list(cosine.argmax(axis=1) == truth)
            chosen = np.arange(len(truth)), truth
            losses[dim].append(np.array([-np.log(softmax(scale * cosine)[chosen]) for scale in SCALES]))
    for dim in dims:
        hit, loss = np.array(hits[dim]), np.hstack(losses[dim]).mean(axis=1)
        best = loss.argmin()
        by_flag = {flag: hit[np.array(flags) == flag] for flag in sorted(set(flags))}
        split = ", ".join(f"{flag} {h.mean():.3f} of {len(h)}" for flag, h in by_flag.items())
        yield f"{hit.mean():.3f} ({split}); best temperature {1 / SCALES[best]:.4f} ({loss[best]:.3f} nats)"


def class_names(inputs: Inputs, classes: NDArray[np.int64]) -> list[str]:
    """The first name of each class in WordNet."""
    return [inputs.net.synsets[inputs.classes[c]].lemmas[0] for c in classes]


def known(inputs: Inputs, space: Space, photos: Photos) -> str:
    """Accuracy among all photographed names; AUROC of 100 of them."""
    shown = np.unique(photos.label[photos.label >= 0])
    cosine = space.images(photos.f) @ space.texts(class_names(inputs, shown)).T
    own = photos.label >= 0
    accuracy = np.mean(shown[cosine[own].argmax(axis=1)] == photos.label[own])
    others = sorted(set(photos.folder[~own]))
    rows = []
    for seed in range(DRAWS):
        drawn = np.random.default_rng(seed).permutation(len(shown))[:DRAWN]
        score, inside = cosine[:, drawn].max(axis=1), np.isin(photos.label, shown[drawn])
        outside = [own & ~inside, *(photos.folder == folder for folder in others)]
        rows.append([auroc(score[inside], score[o]) for o in outside])
    figures = " ".join(f"{k} {a:.3f}" for k, a in zip(["left-out", *others], np.mean(rows, axis=0), strict=True))
    return (
        f"accuracy among {len(shown)} names {accuracy:.3f}; AUROC of {DRAWN} names: {figures}; mean {np.mean(rows):.4f}"
    )


def folder_names(photos: Photos) -> str:
    """Accuracy among the class names of each folder outside ImageNet."""
    encoder, found = Mini(), []
    for folder in sorted(set(photos.folder[photos.label < 0])):
        rows = photos.folder == folder
        names = sorted(set(photos.name[rows]))
        texts = encoder.encode_texts([PROMPT.format(name) for name in names])
        cosine = encoder._head.images(photos.f[rows]) @ texts.T
        found.append(
            f"{folder} ({len(names)}) {np.mean(np.array(names)[cosine.argmax(axis=1)] == photos.name[rows]):.3f}"
        )
    return " ".join(found)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("build/mini"), help="where downloads are kept")
    parser.add_argument("--dims", type=int, nargs="+", default=[DIM])
    args = parser.parse_args()
    inputs = read_inputs(args.wordnet, args.work)
    photos = read_photos(args.photos, inputs.classes)
    sentence = sentence_vectors(DATA, sorted(inputs.net.senses))
    whole = Space.build(inputs, sentence, np.array([], np.int64), max(args.dims))
    for dim, figures in zip(args.dims, unseen(inputs, sentence, photos, args.dims), strict=True):
        print(f"dim {dim or 'all'}: unseen names ({HELD} of 1000, {FOLDS} folds), accuracy {figures}")
        print(f"dim {dim or 'all'}: {known(inputs, whole.cut(dim), photos)}")
    print(f"as shipped: folder names, accuracy: {folder_names(photos)}")


if __name__ == "__main__":
    main()
