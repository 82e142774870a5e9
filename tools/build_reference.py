"""Encode photos as the references of the embedded encoders, and bench-mini's for the lab; no photo is shipped.

    python tools/build_reference.py --photos BENCH_MINI --validation BENCH_VAL --wordnet /usr/share/wordnet

(after tools/build_mini.py). BENCH_MINI has the folders imagenet, textures, scenes and flowers; a file's name begins
with what it shows. BENCH_VAL has imagenet/WNID_N.jpg, photos of ImageNet's validation set, and users/SET/CLASS/FILE.

* `mini`: the validation photos, which its tower was not trained on, with bench-mini's textures and scenes and users'
  screenshots and codes: src/outword/encoders/data/reference/KEY.safetensors.
* the lab: all of bench-mini by `mini` and by `mini-float`, which are the photos of many figures
  (`outword_lab.encoders.bench_mini`); it is the reference of `mini-float`, too.

A file has `vectors` in float16 (what is shipped in int8, with a `scale` a row), and `card`, JSON with the name, the
synset and the set of each. KEY is the fingerprint of the encoder, so that a stale file is never read.

Names: of ImageNet's classes that of `outword_lab.benchmark.run.imagenet`; of textures the adjective, without a
synset; of scenes and flowers the noun; of users' photos that of their class. The synset of a scene is the only sense
of its noun that WordNet files under objects or artifacts, that of a flower the only one under plants; where there are
several ("street") it has none.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from outword.encoders import Encoder, get_encoder
from outword.vectors.reference import SHIPPED, Named, by_wnid, make_reference, shipped_path, write_reference
from outword_lab.encoders.bench_mini import place_of
from outword_lab.encoders.mini_float import REFERENCE
from wordnet_db import WordNet, read_wordnet

IMAGENET = Path(__file__).parents[1] / "lab" / "src" / "outword_lab" / "benchmark" / "data" / "imagenet.tsv"
MINI = ("mini", "mini-float")
FILED = {"scenes": ("noun.object", "noun.artifact"), "flowers": ("noun.plant",)}  # what photos of a set can show
NOUNS = {"buildings": "building"}  # file names that are no noun of WordNet
SETS = ("flowers", "imagenet", "scenes", "textures")
OTHER_KINDS = ("scenes", "textures")  # of bench-mini, beside the validation photos
USERS = ("codes/2D barcode", "codes/QR code", "codes/barcode", "screenshots/screenshot")
Naming = Callable[[str], Named]


def named(net: WordNet, classes: dict[str, str], path: str) -> Named:
    """What a photo shows."""
    folder, word = Path(path).parent.name, Path(path).name.partition("_")[0]
    if folder == "imagenet":
        wnid = by_wnid(path).wnid
        return Named(classes[wnid], wnid, folder)
    if folder not in SETS:  # a class of users' photos
        return Named(folder, "", Path(path).parent.parent.name)
    noun = NOUNS.get(word, word)
    meant = [offset for offset, _ in net.senses.get(noun, ())]  # an adjective has none
    senses = [offset for offset in meant if net.synsets[offset].lexfile in FILED.get(folder, ())]
    return Named(noun, f"n{senses[0]:08d}" if len(senses) == 1 else "", folder)


def build(encoder: Encoder, folders: Sequence[Path], known: Naming, source: str, path: Path) -> None:
    """Write the reference that an encoder has of some folders."""
    n_photos = sum(1 for folder in folders for _ in folder.iterdir())
    told = source.format(n_photos)
    made = make_reference(encoder, folders, named=known, source=told, report=lambda *said: print(*said, end="\r"))
    of = made.reference
    write_reference(path, encoder, of, small=path.parent == SHIPPED)
    print(f"\n{encoder.name}, {path.name}: {len(of)} photos, {path.stat().st_size / 1e6:.1f} MB")
    print(f"{made.n_repeats} repeats, {made.n_unreadable} unreadable", *made.failed, *Counter(of.sets).items())
    shown = set(zip(of.sets, of.names, of.wnids, strict=True))
    print(*sorted(one for one in shown if one[0] != "imagenet"), sep="\n")


def main() -> None:
    """Build the files, and remove those of earlier encoders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="the folder of bench-mini")
    parser.add_argument("--validation", type=Path, required=True, help="the folder of bench-val")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, index.noun, cntlist.rev")
    parser.add_argument("--only", choices=["shipped", *MINI], help="what is shipped, or what the lab has of an encoder")
    args = parser.parse_args()
    classes = dict(line.split("\t")[:2] for line in IMAGENET.read_text(encoding="utf-8").splitlines())
    known = cache(partial(named, read_wordnet(args.wordnet, "noun"), classes))
    encoders = {name: get_encoder(name) for name in MINI}
    shipped, kept = shipped_path(encoders["mini"].fingerprint), {name: place_of(one) for name, one in encoders.items()}
    SHIPPED.mkdir(exist_ok=True)
    for old in {*SHIPPED.glob("*.safetensors"), *REFERENCE.glob("*.safetensors")} - {shipped, *kept.values()}:
        old.unlink()
    if args.only in (None, "shipped"):
        folders = [args.validation / "imagenet", *(args.photos / name for name in OTHER_KINDS)]
        folders += [args.validation / "users" / name for name in USERS]
        source = "{:,} photos: ImageNet's validation set (two a class), textures, scenes, screenshots and codes"
        build(encoders["mini"], folders, known, source, shipped)
    for name in MINI if args.only is None else {args.only} & {*MINI}:
        folders = [args.photos / of for of in SETS]
        source = "bench-mini, the {:,} photos of this project's benchmark"
        build(encoders[name], folders, known, source, kept[name])


if __name__ == "__main__":
    main()
