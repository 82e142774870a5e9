"""Names as people type them: how many photos of the things meant are in, and how many others are out.

    python benchmarks/names.py --photos STORE --users STORE

Photos are those of stores that `outword embed` made with `mini`: ImageNet's, named WNID_NUMBER.jpg, and what people
sort, SET/CLASS/FILE. Behind a list stands what its labels mean here, as numbers of WordNet or sets of users' photos;
with "kinds off" the labels stand for themselves alone. Others are the photos of ImageNet that show none of it. Verdicts
are those of `outword.fit` from names alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import outword
from common import table
from outword.metrics import auroc
from outword.words.kinds import are_below, understand
from outword.words.labels import check_labels
from score_choice import photos_of
from verdicts import Photos

DOG, CAT, CAR, BOAT, CHAIR = "n02084071", "n02121620", "n02958343", "n02858304", "n03001627"
MOUSE, KEYBOARD, DISPLAY, CRANE = "n03793489", "n03614007", "n03782006", "n03126707"
PERSONS, RECEIPTS, CLOTHES = "faces-masks", "receipts", "clothes"
LISTS = {
    "cat, dog": (CAT, DOG),
    "black cat, brown dog": (CAT, DOG),
    "red car, blue boat": (CAR, BOAT),
    "wooden chair, big dog": (CHAIR, DOG),
    "dog, person": (DOG, PERSONS),
    "cat, person": (CAT, PERSONS),
    "dog, receipt": (DOG, RECEIPTS),
    "mouse#device": (MOUSE,),
    "computer mouse": (MOUSE,),
    "mouse, keyboard, monitor": (MOUSE, KEYBOARD, DISPLAY),
    "crane#machine": (CRANE,),
    "bus, car": ("n02924116", CAR),
    "shoes, jeans": ("n04199027", "n03594734"),
    "dress, hat, pants, shirt, shoes, shorts, skirt, t-shirt": (CLOTHES,),
}


def shows(photos: Photos, what: str) -> np.ndarray:
    """Which photos show a sense, or are of a set of users' photos."""
    if what in set(photos.sets):
        return np.asarray(photos.sets == what)
    meanings = understand(check_labels([f"it#{what}"]), "off")
    return np.array(are_below(photos.reference.wnids, meanings))


def measured(photos: Photos, labels: str, own: tuple[str, ...], kinds: str) -> list[str]:
    """A row: photos in of each thing, the share of other photos of ImageNet that are out, and AUROC against these."""
    detector = outword.fit(labels.split(", "), kinds=kinds)
    scores = detector.scorer.score(photos.reference.vectors.astype(np.float32))
    found = [shows(photos, one) for one in own]
    inside = np.any(found, axis=0)
    others = (photos.sets == "imagenet") & ~inside
    cut = detector.threshold
    counts = ", ".join(f"{(scores[one] >= cut).sum()} of {one.sum()}" for one in found)
    out = 100 * np.mean(scores[others] < cut)
    return [counts, f"{out:.1f}", f"{100 * auroc(scores[inside], scores[others]):.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="a store of ImageNet's photos")
    parser.add_argument("--users", type=Path, required=True, help="a store of users' sets")
    args = parser.parse_args()
    photos = photos_of((args.photos, args.users))
    rows = []
    for labels, own in LISTS.items():
        with_kinds, alone = (measured(photos, labels, own, kinds) for kinds in ("auto", "off"))
        rows.append([labels, *with_kinds, *alone])
    head = ["in", "others out, %", "AUROC"]
    print(table(["labels", *head, *(f"kinds off: {name}" for name in head)], rows))


if __name__ == "__main__":
    main()
