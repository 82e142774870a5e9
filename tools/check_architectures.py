"""Build the paper's five models at their true size, with random weights, and check what `outword list encoders` says.

    python tools/check_architectures.py

Parameter count, dimension, input side and context of both libraries' configurations; about 8 GB of memory and a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from outword.base.extras import require
from outword.encoders.names import KNOWN, Known, parse

VISION = {  # in transformers: patch, width, layers, heads, side; and the width of the text tower
    "clip-vit-b-32": (32, 768, 12, 12, 224, 512),
    "clip-vit-b-16": (16, 768, 12, 12, 224, 512),
    "clip-vit-l-14": (14, 1024, 24, 16, 224, 768),
    "clip-vit-l-14-336": (14, 1024, 24, 16, 336, 768),
}


def main() -> int:
    """Print a line a model; the exit status tells whether all agree."""
    library, wrong = require("open_clip", "this script"), 0
    for known in (one for one in KNOWN.values() if parse(one.name).tag == "openai"):
        model = library.create_model(parse(known.name).what, force_quick_gelu=True)
        wrong += told(
            "open_clip",
            known,
            model,
            model.visual.image_size,
            model.context_length,
            model.encode_image,
            model.encode_text,
        )
        if known.name in VISION:
            module = in_transformers(known.name)
            text = module.config.text_config
            wrong += told(
                "transformers",
                known,
                module,
                module.config.vision_config.image_size,
                text.max_position_embeddings,
                lambda x, m=module: m.get_image_features(x).pooler_output,
                lambda x, m=module: m.get_text_features(x).pooler_output,
            )
    return min(wrong, 1)


def in_transformers(name: str) -> torch.nn.Module:
    """The same architecture of transformers."""
    library = require("transformers", "this script")
    patch, width, layers, heads, side, text = VISION[name]
    vision = {"patch_size": patch, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    texts = {
        "hidden_size": text,
        "intermediate_size": 4 * text,
        "num_attention_heads": text // 64,
        "projection_dim": text,
    }
    config = library.CLIPConfig(
        text_config=texts,
        vision_config={**vision, "intermediate_size": 4 * width, "image_size": side, "projection_dim": text},
        projection_dim=text,
    )
    return library.CLIPModel(config).eval()


@torch.inference_mode()
def told(
    kind: str,
    known: Known,
    module: torch.nn.Module,
    side: int | tuple[int, int],
    context: int,
    image: Callable[[torch.Tensor], torch.Tensor],
    text: Callable[[torch.Tensor], torch.Tensor],
) -> bool:
    """Compare one model with what we say of it."""
    module.eval()
    side = side[0] if isinstance(side, tuple) else side
    count = sum(p.numel() for p in module.parameters())
    ids = torch.zeros(1, context, dtype=torch.long)
    shapes = image(torch.zeros(1, 3, side, side)).shape[1], text(ids).shape[1]
    found, said = (count, *shapes, side, context), (known.parameters, known.dim, known.dim, known.side, 77)
    verdict = "agrees" if found == said else f"DIFFERS, we say {said}"
    facts = f"{count:,} parameters, dimension {shapes[0]}, {side} pixels, {context} tokens"
    print(f"{known.name} in {kind}: {facts}: {verdict}")
    return found != said


if __name__ == "__main__":
    sys.exit(main())
