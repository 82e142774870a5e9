"""What the benchmarks share: bench-mini's photos as vectors, draws of labels, and tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outword.base.cache import cache_dir
from outword.encoders import Encoder, get_encoder
from outword.encoders.mini.encoder import Mini
from outword.errors import ImageError
from outword.maths.numerics import Array
from outword.metrics import auroc, fpr_at_tpr
from outword.photos.walk import find_images
from outword.vectors.embed import embed
from outword.vectors.store import is_store, open_store
from outword.vectors.wild import encode_words
from outword.words.prompts import get_prompts

OOD_SETS = ["textures", "scenes", "flowers"]


@dataclass(frozen=True)
class Bench:
    """Vectors of the photos by set; ID photo i shows `names[i]`, and `kinds` are the class names of OOD photos."""

    encoder: Encoder
    names: list[str]
    texts: Array
    photos: dict[str, Array]
    kinds: dict[str, list[str]]


@dataclass(frozen=True)
class Task:
    """One list of labels: their vectors, the photos that show them (photo i shows `shown[i]`), OOD photos by set."""

    names: list[str]
    labels: Array
    inside: Array
    shown: Array
    outside: dict[str, Array]

    def figures(self, score) -> dict[str, tuple[float, float]]:
        """(AUROC, FPR95) by OOD set of a scoring function."""
        inside = score(self.inside)
        scored = {name: score(photos) for name, photos in self.outside.items()}
        return {name: (auroc(inside, s), fpr_at_tpr(inside, s, positive="id")) for name, s in scored.items()}


def read_bench(root: Path, encoder_name: str = "mini") -> Bench:
    """The photos of bench-mini, or a store of them: imagenet/nXXXXXXXX_name.jpg is ID, the other folders are OOD."""
    encoder = get_encoder(encoder_name)
    vectors = _vectors(encoder, root)
    photos, kinds = {}, {}
    for name in ["imagenet", *OOD_SETS]:
        files = [file for file in vectors if file.parent.name == name]
        photos[name] = np.stack([vectors[file] for file in files])
        kinds[name] = [file.stem.split("_")[0] for file in files]
    names = [f.stem.partition("_")[2].replace("_", " ") for f in vectors if f.parent.name == "imagenet"]
    return Bench(encoder, names, encoded_texts(encoder, names), photos, kinds)


def _vectors(encoder: Encoder, root: Path) -> dict[Path, Array]:
    """Vectors by file, in the order of the files; those of a folder of photos are kept in a store in the cache."""
    store, files = root, None
    if not is_store(root):
        store = cache_dir() / "bench" / "store"
        store.parent.mkdir(parents=True, exist_ok=True)
        files = list(find_images([root.resolve() / name for name in ["imagenet", *OOD_SETS]]))
        done = embed(encoder, files, store)
        print(f"{done.encoded} photos encoded, {done.reused} read from {store}", file=sys.stderr)
    found = {Path(path): vector for path, vector in open_store(store, encoder.fingerprint, encoder.name).rows()}
    for file in files or found:
        if isinstance(found[file], ImageError):
            raise ImageError(f"{file}: {found[file]}", hint="a benchmark needs all of its photos")
    return {file: found[file] for file in files or found}


def draw(bench: Bench, n_labels: int, seed: int) -> Task:
    """Draw labels for a task; two draws may have labels in common."""
    rng = np.random.default_rng([seed, n_labels])
    return named_task(bench, rng.choice(len(bench.names), n_labels, replace=False).tolist())


def draw_apart(bench: Bench, n_labels: int, n_draws: int) -> list[Task]:
    """Tasks without a label in common, at most `n_draws`; the labels of a shorter list are among those of a longer one.

    So draw i is the same part of the photos for all sizes, and draws are independent but for the OOD photos.
    """
    order = np.random.default_rng(0).permutation(len(bench.names))
    parts = [order[start : start + n_labels] for start in range(0, len(order), max(n_labels, len(order) // n_draws))]
    return [named_task(bench, part.tolist()) for part in parts if len(part) == n_labels][:n_draws]


def named_task(bench: Bench, chosen: list[int]) -> Task:
    """Some names as labels; photos of the other classes are OOD, and OOD photos of a label are left out."""
    rows = sorted(chosen)
    drawn = {bench.names[i] for i in rows}
    outside = {
        name: bench.photos[name][[kind not in drawn and f"{kind}s" not in drawn for kind in bench.kinds[name]]]
        for name in OOD_SETS
    }
    rest = [i for i in range(len(bench.names)) if i not in set(rows)]
    if rest:
        outside["other classes"] = bench.photos["imagenet"][rest]
    names, shown = [bench.names[i] for i in rows], np.arange(len(rows))
    return Task(names, bench.texts[rows], bench.photos["imagenet"][rows], shown, outside)


def parents(bench: Bench, labels: list[str]) -> Task:
    """Broad names as labels: photos of the classes below them in WordNet are ID, all others OOD; needs `mini`."""
    assert isinstance(bench.encoder, Mini)
    lexicon = bench.encoder.lexicon
    nodes = {name: [s.node for s in lexicon.find(name)[0] if s.exact] for name in [*bench.names, *labels]}
    tops = [nodes[label][0] for label in labels]
    below = np.array([lexicon.taxonomy.v[nodes[name]][:, tops].any(axis=0) for name in bench.names])
    inside = below.any(axis=1)
    outside = {name: bench.photos[name] for name in OOD_SETS} | {"other classes": bench.photos["imagenet"][~inside]}
    shown = below[inside].argmax(axis=1)
    return Task(labels, encoded_texts(bench.encoder, labels), bench.photos["imagenet"][inside], shown, outside)


def encoded_texts(encoder: Encoder, names: list[str], prompts: str | None = None) -> Array:
    """Vectors of class names, with a set of templates of their own or the encoder's."""
    return encode_words(encoder, get_prompts(prompts or encoder.prompts).render(names, ["label"] * len(names)))


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
