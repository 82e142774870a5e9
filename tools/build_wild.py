"""Rank the default corpus for the embedded encoder, and ship the 12,000 words: `fit` then does no mining.

    python tools/build_wild.py            (after tools/build_mini.py and tools/build_corpora.py; minutes)

Writes src/outword/encoders/data/wild/KEY.safetensors: `words`, best first, so that no corpus is read where they are
used, `vectors` in int8, and `scale`, what a row is multiplied by.
KEY is the fingerprint of encoder, corpus, prompts and miner, so that a stale file is never read.
"""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save_file

from outword.base.files import whole_file
from outword.encoders import get_encoder
from outword.mining import Density
from outword.vectors.wild import SHIPPED, rank, shipped_path, wild_key
from outword.words.corpora import get_corpus
from outword.words.prompts import get_prompts


def main() -> None:
    """Build the file, and remove those of earlier encoders and corpora."""
    encoder, corpus, miner = get_encoder("mini"), get_corpus("wordnet"), Density()
    prompts = get_prompts(encoder.prompts)
    found = rank(encoder, corpus, prompts, miner, None, lambda *said: print(*said, end="\r"))
    SHIPPED.mkdir(exist_ok=True)
    for old in SHIPPED.glob("*.safetensors"):
        old.unlink()
    path = shipped_path(wild_key(encoder, corpus, prompts, miner))
    vectors = found["vectors"].astype(np.float32)
    scale = np.abs(vectors).max(axis=1) / 127
    small = np.round(vectors / scale[:, None]).astype(np.int8)
    with whole_file(path) as temporary:
        save_file({"words": found["words"], "vectors": small, "scale": scale}, temporary)
    again = small * scale[:, None]
    cosines = (again * vectors).sum(axis=1) / np.linalg.norm(again, axis=1) / np.linalg.norm(vectors, axis=1)
    print(f"\nleast cosine to the float16 vectors: {cosines.min():.5f}")
    print(f"{path.name}: {len(vectors)} of {len(corpus)} words, {path.stat().st_size / 1e6:.1f} MB")
    print("first:", found["words"].tobytes()[:100].decode(errors="ignore").split("\n"))


if __name__ == "__main__":
    main()
