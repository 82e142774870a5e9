"""Write WordNet 3.0's nouns, `nouns.safetensors` and `glosses.safetensors`, into src/outword/words/corpora/data.

    python tools/build_nouns.py --wordnet DIR [-o FOLDER]         (after tools/build_imagenet.py)

DIR holds `data.noun`, `index.noun` and `cntlist.rev` (Debian package `wordnet-base`). The bytes depend on the database,
on ImageNet's classes and on `outword.words.forms.squeeze` alone. A *sense* is the row of a synset in the order of
offsets; numbers that do not fit into 16 bits have three bytes each, the lowest first. What the arrays hold:

nouns: `lemmas` as spelled, a line each, sorted by squeezed form; for each how many senses (`n_senses`, 0 where only
case tells it from the lemma before), and these, most frequent first (`senses`), each with how often the
concordance tags the lemma in it (`sense_tags`). For each sense its lemmas (`n_names`, `names`), what it is a kind or an
instance of (`n_parents`, `parents`, and a bit for each of these, `instance`), the step from one offset to the next
(`steps`), and its information, 255 (1 - log(1 + n) / log N), where n of all N senses are below it. The senses that a
photo may be said to look like (`readable`), each with the place of its plainest name (`readable_names`); and the other
senses above ImageNet's classes (`general`).
glosses: the definitions without the examples, a line a sense, in blocks of BLOCK senses (`n_bytes` each), by LZMA.
"""

from __future__ import annotations

import argparse
import lzma
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from outword.base.files import whole_file
from outword.words.forms import squeeze
from outword.words.nouns import BLOCK, DATA, GLOSSES, NOUNS, gloss_filter
from wordnet_db import WordNet, read_wordnet

IMAGENET = Path(__file__).parents[1] / "lab/src/outword_lab/benchmark/data/imagenet.tsv"
# What a photo may be said to look like, besides ImageNet's classes: what the concordance tags so often below one of
# these (persons: far more often, since few of their names are of looks). Names that tell less (device) say too little.
ROOTS = {
    15388: "animal", 21939: "artifact", 21265: "food", 7555863: "food", 13134947: "fruit", 17222: "plant",
    5220461: "body part", 9287968: "geological formation", 9335240: "land", 9225146: "body of water",
}  # fmt: skip
PERSON = 7846
TAGGED, PERSON_TAGGED, TELLING = 10, 100, 0.4
Arrays = dict[str, NDArray[Any]]


def nouns(net: WordNet) -> Arrays:
    """All but the glosses, as arrays."""
    rows = {offset: row for row, offset in enumerate(sorted(net.synsets))}
    synsets = [net.synsets[offset] for offset in rows]
    spelled = sorted(
        {lemma for s in synsets for lemma in s.lemmas}, key=lambda lemma: (squeeze(lemma), lemma.lower(), lemma)
    )
    place = {lemma: i for i, lemma in enumerate(spelled)}
    senses = [
        [] if i and spelled[i - 1].lower() == lemma.lower() else net.senses[lemma.lower()]
        for i, lemma in enumerate(spelled)
    ]
    parents = [(*s.hypernyms, *s.instance_of) for s in synsets]
    plain = readable(net)
    general = {up for offset in imagenet(net) for up in lineage(net, offset)} - {*plain.values()}
    return {
        "lemmas": np.frombuffer("\n".join(spelled).encode("ascii"), np.uint8),
        "n_senses": np.array([len(found) for found in senses], np.uint8),
        "senses": three([rows[offset] for found in senses for offset, _ in found]),
        "sense_tags": np.array([tags for found in senses for _, tags in found], np.uint16),
        "n_names": np.array([len(s.lemmas) for s in synsets], np.uint8),
        "names": three([place[lemma] for s in synsets for lemma in s.lemmas]),
        "n_parents": np.array([len(found) for found in parents], np.uint8),
        "parents": three([rows[offset] for found in parents for offset in found]),
        "instance": np.packbits(
            [i >= len(s.hypernyms) for s, p in zip(synsets, parents, strict=True) for i in range(len(p))]
        ),
        "steps": np.diff([0, *rows]).astype(np.uint16),
        "information": np.array(information(net), np.uint8),
        "readable": three([rows[offset] for offset in plain.values()]),
        "general": three([rows[offset] for offset in sorted(general)]),
        "readable_names": np.array([net.synsets[o].lemmas.index(name) for name, o in plain.items()], np.uint8),
    }


def readable(net: WordNet) -> dict[str, int]:
    """Plain names that a photo may be said to look like, each with its synset; a name or a synset comes once.

    ImageNet's classes, what is above them and tagged at all, and other things that are tagged often.
    """
    tags = Counter[int]()
    for found in net.senses.values():
        tags.update(dict(found))
    telling = {o for o, bits in zip(sorted(net.synsets), information(net), strict=True) if bits >= 255 * TELLING}
    classes = imagenet(net)
    parents = {up for offset in classes for up in lineage(net, offset)}
    common = {o for o, count in tags.items() if count >= TAGGED and not ROOTS.keys().isdisjoint(lineage(net, o))}
    common |= {o for o, count in tags.items() if count >= PERSON_TAGGED and PERSON in lineage(net, o)}
    parents -= {offset for offset in parents if PERSON in lineage(net, offset)}
    others = sorted(o for o in (parents | common) & telling - {*classes} if tags[o])
    names, taken = dict[str, int](), set[str]()
    for offset in (*classes, *others):
        for name in sorted(net.synsets[offset].lemmas, key=lambda lemma: -dict(net.senses[lemma.lower()])[offset]):
            if name.lower() not in taken:
                names[name] = offset
                taken.add(name.lower())
                break
    return names


def imagenet(net: WordNet) -> list[int]:
    """The synsets of ImageNet's classes, in their order."""
    offsets = [int(line[1:9]) for line in IMAGENET.read_text(encoding="utf-8").splitlines()]
    return [offset for offset in offsets if offset in net.synsets]


def lineage(net: WordNet, offset: int) -> set[int]:
    """A synset and all that it is a kind of."""
    found, level = {offset}, {offset}
    while level := {up for one in level for up in net.synsets[one].hypernyms} - found:
        found |= level
    return found


def information(net: WordNet) -> list[int]:
    """For each synset, in the order of offsets, 255 (1 - log(1 + n) / log N)."""
    below = Counter[int]()
    for offset in net.synsets:
        below.update(lineage(net, offset) - {offset})
    most = math.log(max(2, len(net.synsets)))
    return [max(0, round(255 * (1 - math.log(1 + below[offset]) / most))) for offset in sorted(net.synsets)]


def glosses(net: WordNet) -> Arrays:
    """The definitions, as arrays."""
    texts = [net.synsets[offset].gloss.partition('; "')[0] for offset in sorted(net.synsets)]
    starts = range(0, len(texts), BLOCK)
    options: Any = {"format": lzma.FORMAT_RAW, "filters": gloss_filter()}
    blocks = [lzma.compress("\n".join(texts[i : i + BLOCK]).encode(), **options) for i in starts]
    data = np.frombuffer(b"".join(blocks), np.uint8)
    return {"blocks": data, "n_bytes": np.array([len(block) for block in blocks], np.int32)}


def three(numbers: list[int]) -> NDArray[np.uint8]:
    """Whole numbers below 2^24 as three bytes each, (n, 3)."""
    return np.ascontiguousarray(np.array(numbers, "<i4").view(np.uint8).reshape(-1, 4)[:, :3])


def main() -> None:
    """Read the database, write the two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0's database files")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    arguments = parser.parse_args()
    net = read_wordnet(arguments.wordnet, "noun")
    for name, arrays in ((NOUNS, nouns(net)), (GLOSSES, glosses(net))):
        path = arguments.output / name
        with whole_file(path) as temporary:
            save_file(arrays, temporary)
        print(f"{path.stat().st_size} bytes: {path}")


if __name__ == "__main__":
    main()
