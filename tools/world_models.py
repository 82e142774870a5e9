"""What the models of the small world are: their sizes, their tokenizer, and how transformers builds them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from outword.base.extras import require
from outword.encoders import bpe
from outword_lab.world.phrases import EMPTY, FRAMES
from outword_lab.world.things import words

CONTEXT = 24  # tokens that a text may have
DIM = 128
PATCH = 8
MEAN, STD = (0.45, 0.45, 0.45), (0.27, 0.27, 0.27)
START, END = "<|startoftext|>", "<|endoftext|>"


@dataclass(frozen=True)
class Size:
    """Widths and depths of both towers, and the pixels a side of the input; a multiple of 8."""

    side: int
    width: int
    layers: int
    text_width: int
    text_layers: int
    begins_with: str = ""  # the size whose weights its training begins with


SIZES = {
    "s": Size(64, 96, 3, 64, 2),
    "m": Size(64, 128, 4, 64, 2),
    "m-96": Size(96, 128, 4, 64, 2, begins_with="m"),
}


def tokenizer_layout() -> dict[str, Any]:
    """A `tokenizer.json` in CLIP's layout, in which each word of the world is one token; others fall into letters."""
    spoken = {word for frame in FRAMES for word in re.findall(r"[a-z]+", frame)} | {"on", "in", *EMPTY.split()}
    merges = _merges(sorted(words() | spoken))
    characters = [*bpe.BYTES.values()]
    vocabulary = [*characters, *(char + bpe.END_OF_WORD for char in characters), *map("".join, merges), START, END]
    return bpe.layout({token: place for place, token in enumerate(dict.fromkeys(vocabulary))}, merges, START, END)


def _merges(known: list[str]) -> list[tuple[str, str]]:
    """Byte-pair encoding of words until each is one token: the pair that is most frequent, then first, is joined."""
    parts = [[*word[:-1], word[-1] + bpe.END_OF_WORD] for word in known]
    merges: list[tuple[str, str]] = []
    while pairs := Counter(pair for word in parts for pair in pairwise(word)):
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        parts = [[*bpe.joined(word, best)] for word in parts]
    return merges


def make_model(name: str, layout: dict[str, Any]) -> Any:
    """A CLIP of transformers with random weights."""
    library = require("transformers", "the models of the small world")
    size, ids = SIZES[name], layout["model"]["vocab"]
    end = {"bos_token_id": ids[START], "eos_token_id": ids[END], "pad_token_id": ids[END]}
    return library.CLIPModel(
        library.CLIPConfig(
            text_config={
                **{"vocab_size": len(ids), "max_position_embeddings": CONTEXT, "projection_dim": DIM, **end},
                **_tower(size.text_width, size.text_layers),
            },
            vision_config={
                **{"image_size": size.side, "patch_size": PATCH, "projection_dim": DIM},
                **_tower(size.width, size.layers),
            },
            projection_dim=DIM,
        )
    )


def _tower(width: int, layers: int) -> dict[str, int]:
    heads = {"num_attention_heads": width // 32, "num_hidden_layers": layers}
    return {"hidden_size": width, "intermediate_size": 4 * width, **heads}
