"""The 1000 classes of ImageNet (ILSVRC 2012) with their names, and the subsets of MCM.

A name is the first lemma of the class's synset in WordNet 3.0. Two names stand for two classes each: `crane` (bird and
machine) and `maillot` (two kinds of swimsuit). Equal names are one label, so the 1000 classes have 998 labels; the
cleaned list of the literature has 998 different names, too. The dog `Cardigan` differs from the garment `cardigan` by
case only, which is no difference between labels; it goes by its second lemma, `Cardigan Welsh corgi`.

`data/imagenet.tsv` is written by tools/build_imagenet.py, which names the sources.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from outword.base.checks import unknown

SUBSETS = (10, 20, 100)


@cache
def _rows() -> list[list[str]]:
    """WordNet id, name and subsets of each class, in the order of ILSVRC."""
    text = (files("outword_lab") / "benchmark" / "data" / "imagenet.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()]


def classes() -> list[tuple[str, str]]:
    """WordNet id and name of each class, in the order of ILSVRC.

    >>> classes()[0]
    ('n01440764', 'tench')
    """
    return [(wnid, name) for wnid, name, _ in _rows()]


@cache
def classes_by_key() -> dict[str, tuple[str, str]]:
    """WordNet id and name of each class, by its id and by its index in the order of ILSVRC.

    >>> classes_by_key()["999"], classes_by_key()["n01440764"]
    (('n15075141', 'toilet tissue'), ('n01440764', 'tench'))
    """
    return {key: known for index, known in enumerate(classes()) for key in (known[0], str(index))}


def labels(wnids: frozenset[str] | None = None) -> list[str]:
    """The different names of some classes, or of all, in the order of ILSVRC.

    >>> len(labels()), labels(frozenset({"n15075141", "n01440764"}))
    (998, ['tench', 'toilet tissue'])
    """
    return list(dict.fromkeys(name for wnid, name in classes() if wnids is None or wnid in wnids))


@cache
def subset(n: int) -> tuple[str, ...]:
    """The WordNet ids of ImageNet-10, ImageNet-20 or ImageNet-100, in the order of ILSVRC.

    The lists are those of Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language
    Representations", NeurIPS 2022.

    >>> subset(10)[:2]
    ('n01530575', 'n01641577')
    """
    if n not in SUBSETS:
        raise unknown("subset of ImageNet", str(n), map(str, SUBSETS), "outword data check")
    return tuple(wnid for wnid, _, subsets in _rows() if str(n) in subsets.split(","))
