"""Write the packaged word list, `src/outword/words/corpora/data/wordnet.tsv.gz`, from WordNet 3.0's own database.

    python tools/build_corpora.py --wordnet DIR [-o OUT]

DIR holds `data.noun`, `index.noun`, `data.adj`, `index.adj` and `cntlist.rev` (Debian package `wordnet-base`).
The bytes depend on the database alone: sorted rows, and no time stamp or file name in the gzip header.
One row a spelled lemma, four columns: the lemma, its lexicographer files, and how often WordNet's concordance tags it
as a noun and as an adjective. A file is followed by `!` when the lemma comes first in one of its synsets there (the
lemma that names the synset), and by `~` when all its meanings there are instances (proper names: Paris, Rembrandt).
"""

from __future__ import annotations

import argparse
import gzip
import io
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from wordnet_db import Synset, WordNet, read_wordnet

OUT = Path(__file__).parents[1] / "src/outword/words/corpora/data/wordnet.tsv.gz"


@dataclass
class Row:
    """What is known of one spelled lemma."""

    meanings: dict[str, list[tuple[bool, bool]]] = field(default_factory=lambda: defaultdict(list))  # first, instance
    tags: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def text(self, lemma: str) -> str:
        """The row as it is written."""
        files = ",".join(name + _marks(self.meanings[name]) for name in sorted(self.meanings))
        return f"{lemma}\t{files}\t{self.tags['noun']}\t{self.tags['adj']}\n"


def _marks(meanings: list[tuple[bool, bool]]) -> str:
    return "!" * any(first for first, _ in meanings) + "~" * all(instance for _, instance in meanings)


def add(rows: dict[str, Row], net: WordNet, pos: str) -> None:
    """Enter the lemmas of one part of speech into `rows`."""
    counts = {(lemma, offset): tags for lemma, senses in net.senses.items() for offset, tags in senses}
    for synset in net.synsets.values():
        for place, lemma in enumerate(synset.lemmas):
            row = rows[lemma]
            row.meanings[synset.lexfile].append((place == 0, _is_instance(synset)))
            row.tags[pos] += counts[lemma.lower(), synset.offset]


def _is_instance(synset: Synset) -> bool:
    return bool(synset.instance_of) and not synset.hypernyms


def compress(text: str) -> bytes:
    """Gzip without a time stamp or a file name."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode("utf-8"))
    return buffer.getvalue()


def main() -> None:
    """Read the database, write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0's database files")
    parser.add_argument("-o", "--output", type=Path, default=OUT)
    arguments = parser.parse_args()
    rows: dict[str, Row] = defaultdict(Row)
    for pos in ("noun", "adj"):
        add(rows, read_wordnet(arguments.wordnet, pos), pos)
    data = compress("".join(rows[lemma].text(lemma) for lemma in sorted(rows)))
    arguments.output.write_bytes(data)
    print(f"{len(rows)} lemmas, {len(data)} bytes: {arguments.output}")


if __name__ == "__main__":
    main()
