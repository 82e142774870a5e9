"""Encode all names that the embedded encoder knows, and ship them: `fit` then encodes no label and no kind of it.

    python tools/build_names.py        (after tools/build_mini.py and tools/build_nouns.py)

Writes src/outword/encoders/data/names/KEY.safetensors: `names`, sorted, and `vectors` in float32. KEY is the
fingerprint of encoder and prompts, so that a stale file is never read.
"""

from __future__ import annotations

from outword.encoders import get_encoder
from outword.encoders.base import Encoder
from outword.vectors.names import SHIPPED_NAMES, names_key, shipped_names, write_names
from outword.vectors.wild import encode_words
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts


def known_names(encoder: Encoder) -> list[str]:
    """All lemmas of WordNet that the encoder calls known, as they are spelled."""
    net = nouns()
    lemmas = [net.lemma(row) for row in range(len(net.key_ends))]
    return [told.label for told in encoder.coverage(lemmas) if told.flag == "known"]


def main() -> None:
    """Build the file, and remove those of earlier encoders."""
    encoder = get_encoder("mini")
    prompts = get_prompts(encoder.prompts)
    names = known_names(encoder)
    vectors = encode_words(encoder, prompts.render(names, ["label"] * len(names)))
    SHIPPED_NAMES.mkdir(exist_ok=True)
    for old in SHIPPED_NAMES.glob("*.safetensors"):
        old.unlink()
    path = shipped_names(names_key(encoder, prompts))
    write_names(path, dict(zip(names, vectors, strict=True)))
    print(f"{path.name}: {len(names)} names, {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
