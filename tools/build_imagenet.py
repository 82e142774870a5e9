"""Build the list of ImageNet's 1000 classes from registry and WordNet 3.0; a second run gives the same bytes.

    python tools/build_imagenet.py --wordnet /usr/share/wordnet --out lab/src/outword_lab/benchmark/data/imagenet.tsv

Takes the same inputs as tools/build_mini.py, so it needs what that needs. One line a class, in the order of ILSVRC:
WordNet id, name, and the subsets of MCM that have it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from build_mini import TIMM, fetch
from wordnet_db import WordNet, read_wordnet

OTHER_LEMMA = {"n02113186": 1}  # the dog "Cardigan" differs from the garment by case only: its second lemma instead

# Class lists that Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language Representations"
# (NeurIPS 2022), publish as data/ImageNet{10,20,100}/class_list.txt in github.com/deeplearning-wisc/MCM.
SUBSETS = {
    10: "n04552348 n04285008 n01530575 n02123597 n02422699 n02107574 n01641577 n03417042 n02389026 n03095699",
    20: """
        n04147183 n02951358 n02782093 n04389033 n03773504 n02917067 n02317335 n01632458 n01630670 n01631663 n02391049
        n01693334 n01697457 n02120079 n02114367 n02132136 n03785016 n04310018 n04266014 n04252077""",
    100: """
        n03877845 n03000684 n03110669 n03710721 n02825657 n02113186 n01817953 n04239074 n02002556 n04356056 n03187595
        n03355925 n03125729 n02058221 n01580077 n03016953 n02843684 n04371430 n01944390 n03887697 n04037443 n02493793
        n01518878 n03840681 n04179913 n01871265 n03866082 n03180011 n01910747 n03388549 n03908714 n01855032 n02134084
        n03400231 n04483307 n03721384 n02033041 n01775062 n02808304 n13052670 n01601694 n04136333 n03272562 n03895866
        n03995372 n06785654 n02111889 n03447721 n03666591 n04376876 n03929855 n02128757 n02326432 n07614500 n01695060
        n02484975 n02105412 n04090263 n03127925 n04550184 n04606251 n02488702 n03404251 n03633091 n02091635 n03457902
        n02233338 n02483362 n04461696 n02871525 n01689811 n01498041 n02107312 n01632458 n03394916 n04147183 n04418357
        n03218198 n01917289 n02102318 n02088364 n09835506 n02095570 n03982430 n04041544 n04562935 n03933933 n01843065
        n02128925 n02480495 n03425413 n03935335 n02971356 n02124075 n07714571 n03133878 n02097130 n02113799 n09399592
        n03594945""",
}


def line(wnid: str, net: WordNet) -> str:
    """One class: its id, name and subsets."""
    lemmas = net.synsets[int(wnid[1:])].lemmas
    subsets = [str(size) for size, members in SUBSETS.items() if wnid in members.split()]
    return "\t".join([wnid, lemmas[OTHER_LEMMA.get(wnid, 0)], ",".join(subsets)])


def main() -> None:
    """Build, and print how many names differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, index.noun, cntlist.rev")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--work", type=Path, default=Path("build/mini"), help="where downloads are kept")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    with fetch(TIMM, args.work) as wheel:
        wnids = wheel.read("timm/data/_info/imagenet_synsets.txt").decode().split()
    unknown = {wnid for members in SUBSETS.values() for wnid in members.split()} - set(wnids)
    if unknown:
        raise SystemExit(f"no class of ImageNet: {', '.join(sorted(unknown))}")
    net = read_wordnet(args.wordnet, "noun")
    lines = [line(wnid, net) for wnid in wnids]
    args.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} classes, {len({entry.split(chr(9))[1] for entry in lines})} names")


if __name__ == "__main__":
    main()
