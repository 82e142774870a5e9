"""Bench-mini in the layout of the suite "folder": ROOT/id/<class>/, ROOT/ood/<set>/, by links to its photos.

    python benchmarks/bench_folder.py PATH ROOT {broad,names,scenes}
    outword bench folder --data ROOT -o results/

`broad`: ten broad names, with the photos of the ImageNet classes below them as ID, all other photos are OOD. `names`:
all ImageNet names, one photo each. `scenes`: the six kinds of scene, no class that the embedded encoder was made from.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

from bench_mini import PARENTS
from common import OOD_SETS
from outword.encoders.mini.encoder import Mini
from outword.photos.walk import find_images


def broad(photos: dict[str, list[Path]]) -> dict[str, str]:
    """The broad name of each ImageNet photo that has one, by file name."""
    lexicon = Mini().lexicon
    found = {}
    nodes = {name: [s.node for s in lexicon.find(name)[0] if s.exact] for name in PARENTS}
    for file in photos["imagenet"]:
        below = [s.node for s in lexicon.find(class_name(file))[0] if s.exact]
        is_a = lexicon.taxonomy.v[below][:, [nodes[name][0] for name in PARENTS]].any(axis=0)
        if is_a.any():
            found[file.name] = PARENTS[int(np.argmax(is_a))]
    return found


def class_name(file: Path) -> str:
    """The class in nXXXXXXXX_class_name.jpg."""
    return file.stem.partition("_")[2].replace("_", " ")


def layout(photos: dict[str, list[Path]], kind: str) -> dict[str, list[Path]]:
    """The files of each folder below ROOT."""
    if kind == "scenes":
        inside = {file.name: file.stem.split("_")[0] for file in photos["scenes"]}
        outside = {name: photos[name] for name in ("imagenet", "textures", "flowers")}
    else:
        inside = broad(photos) if kind == "broad" else {file.name: class_name(file) for file in photos["imagenet"]}
        outside = {name: photos[name] for name in OOD_SETS}
    found: dict[str, list[Path]] = {}
    for file in photos["scenes" if kind == "scenes" else "imagenet"]:
        place = f"id/{inside[file.name]}" if file.name in inside else "ood/other classes"
        found.setdefault(place, []).append(file)
    return found | {f"ood/{name}": files for name, files in outside.items()}


def link(path: Path, root: Path, kind: str) -> dict[str, int]:
    """Make ROOT, whole or not at all; how many photos each of its folders has."""
    photos = {name: list(find_images([path.resolve() / name])) for name in ["imagenet", *OOD_SETS]}
    half = root.with_name(f"{root.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    folders = layout(photos, kind)
    for folder, files in folders.items():
        (half / folder).mkdir(parents=True)
        for file in files:
            (half / folder / file.name).symlink_to(file)
    half.rename(root)
    return {folder: len(files) for folder, files in folders.items()}


def main() -> None:
    """Make the links."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("root", type=Path)
    parser.add_argument("kind", choices=["broad", "names", "scenes"])
    args = parser.parse_args()
    for folder, count in link(args.path, args.root, args.kind).items():
        print(f"{folder}: {count}")


if __name__ == "__main__":
    main()
