"""Encode the photos of bench-mini as the references of the embedded encoders; photos are read, and none is shipped.

    python tools/build_reference.py --photos BENCH_MINI --wordnet /usr/share/wordnet     (after tools/build_mini.py)

BENCH_MINI has the folders imagenet, textures, scenes and flowers; a file's name begins with what it shows. Writes
src/outword/encoders/data/reference/KEY.safetensors: `vectors` in float16, and `card`, JSON with the name, the synset
and the set of each. KEY is the fingerprint of the encoder, so that a stale file is never read.

Names: of ImageNet's classes that of `outword_lab.benchmark.run.imagenet`; of textures the adjective, without a
synset; of scenes and flowers the noun. The synset of a scene is the only sense of its noun that WordNet files under
objects or artifacts, that of a flower the only one under plants; where there are several ("street") it has none.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import cache, partial
from pathlib import Path

from outword.encoders import Encoder, get_encoder
from outword.vectors.reference import SHIPPED, Named, by_wnid, make_reference, shipped_path, write_reference
from outword_lab.encoders.mini_float import REFERENCE
from wordnet_db import WordNet, read_wordnet

IMAGENET = Path(__file__).parents[1] / "lab" / "src" / "outword_lab" / "benchmark" / "data" / "imagenet.tsv"
MINI = ("mini", "mini-float")
FILED = {"scenes": ("noun.object", "noun.artifact"), "flowers": ("noun.plant",)}  # what photos of a set can show
NOUNS = {"buildings": "building"}  # file names that are no noun of WordNet
SETS = {"imagenet", "textures", *FILED}


def named(net: WordNet, classes: dict[str, str], path: str) -> Named:
    """What a photo of bench-mini shows."""
    kind, word = Path(path).parent.name, Path(path).name.partition("_")[0]
    if kind == "imagenet":
        wnid = by_wnid(path).wnid
        return Named(classes[wnid], wnid, kind)
    noun = NOUNS.get(word, word)
    meant = [offset for offset, _ in net.senses.get(noun, ())]  # an adjective has none
    senses = [offset for offset in meant if net.synsets[offset].lexfile in FILED.get(kind, ())]
    return Named(noun, f"n{senses[0]:08d}" if len(senses) == 1 else "", kind)


def place(encoder: Encoder) -> Path:
    """Where the reference of an encoder lies: the lab keeps that of its own."""
    return encoder.own_reference or shipped_path(encoder.fingerprint)


def main() -> None:
    """Build the files, and remove those of earlier encoders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="the folder of bench-mini")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, index.noun, cntlist.rev")
    parser.add_argument("--encoder", choices=[*MINI], help="that of one alone")
    args = parser.parse_args()
    classes = dict(line.split("\t")[:2] for line in IMAGENET.read_text(encoding="utf-8").splitlines())
    known = cache(partial(named, read_wordnet(args.wordnet, "noun"), classes))
    folders = sorted(args.photos / name for name in SETS)
    n_photos = sum(1 for folder in folders for _ in folder.iterdir())
    source = f"bench-mini, the {n_photos:,} photos of this project's benchmark"
    places = {name: place(get_encoder(name)) for name in MINI}
    SHIPPED.mkdir(exist_ok=True)
    for old in {*SHIPPED.glob("*.safetensors"), *REFERENCE.glob("*.safetensors")} - {*places.values()}:
        old.unlink()
    for name in [args.encoder] if args.encoder else MINI:
        encoder = get_encoder(name)
        made = make_reference(encoder, folders, named=known, source=source, report=lambda *said: print(*said, end="\r"))
        path, of = places[name], made.reference
        write_reference(path, encoder, of)
        print(f"\n{name}, {path.name}: {len(of)} photos, {path.stat().st_size / 1e6:.1f} MB, {made.n_repeats} repeats")
        print(f"{made.n_unreadable} unreadable", *made.failed, *Counter(of.sets).items())
        shown = set(zip(of.sets, of.names, of.wnids, strict=True))
        print(*sorted(one for one in shown if one[0] != "imagenet"), sep="\n")


if __name__ == "__main__":
    main()
