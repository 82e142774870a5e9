"""The text decoder of ZOC: from an image vector to the words that a caption of it may have.

Reference: Esmaeilpour et al., "Zero-Shot Out-of-Distribution Detection Based on the Pre-trained Model CLIP", AAAI 2022.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from outword.base.extras import require
from outword.encoders.base import in_short
from outword.encoders.configs import AGAIN
from outword.encoders.torch.transformers import from_folder, quietly
from outword.errors import InputError

DIM = 512  # of an image vector; the decoder reads it twice over
LENGTH = 10.0  # about that of the image features of CLIP ViT-B/32, before anything makes unit vectors of them
HEAD = 64  # numbers of a head of attention, in all BERTs of the authors' kind; shapes do not tell
STEPS, TOP = 9, 35  # tokens of a caption, and how many candidates for each are words
TOGETHER = 64  # photos that go through at a time


class ZOCDecoder:
    """Names words for photos: the 35 likeliest tokens at each of 9 greedy steps, also behind the end of a caption.

    It reads the vector of a photo, of CLIP ViT-B/32 in the paper, twice over, as the one hidden state that it attends
    to. Words are pieces of words as the tokenizer has them, each once, the first step's first.

    In two things this is not the authors' release. There every token is read at position 0 while a caption is made, as
    the length of a batch is taken for that of a text; here tokens have the positions 0, 1, 2, ... that the network was
    trained with. And there image features are as long as CLIP makes them, about 10, while encoders here give unit
    vectors: all are made 10 long.
    """

    def __init__(self, network: Any, tokenizer: Any, device: str) -> None:
        self._network, self._tokenizer, self._device = network.to(device).eval(), tokenizer, device
        self._pieces: dict[int, str] = {}

    def __call__(self, photos: Sequence[Any]) -> list[list[str]]:
        """The words of each photo, by its `vector`."""
        found: list[list[str]] = []
        for start in range(0, len(photos), TOGETHER):
            vectors = np.stack([photo.vector for photo in photos[start : start + TOGETHER]])
            if vectors.shape[1:] != (DIM,):
                told = f"ZOC's decoder reads vectors of {DIM} numbers, got {vectors.shape[-1]}"
                raise InputError(told, hint="it was trained on those of CLIP ViT-B/32: --encoder clip-vit-b-32")
            found += self._words(torch.from_numpy(vectors.astype(np.float32)).to(self._device))
        return found

    @torch.inference_mode()
    def _words(self, vectors: Tensor) -> list[list[str]]:
        seen = (LENGTH * normalize(vectors)).repeat(1, 2)[:, None]  # (n, 1, 1024)
        tokens = torch.full((len(vectors), 1), self._tokenizer.bos_token_id, device=vectors.device)
        words: list[dict[str, None]] = [{} for _ in vectors]
        for _ in range(STEPS):
            logits = self._network(input_ids=tokens, encoder_hidden_states=seen, use_cache=False).logits[:, -1]
            best = logits.topk(min(TOP, logits.shape[1])).indices
            for place, candidates in enumerate(best.tolist()):
                words[place] |= dict.fromkeys(filter(None, map(self._piece, candidates)))
            tokens = torch.cat([tokens, logits.argmax(dim=1)[:, None]], dim=1)
        return [list(some) for some in words]

    def _piece(self, token: int) -> str:
        """What a token says by itself; nothing if it is the end of a text, or the like."""
        if token not in self._pieces:
            self._pieces[token] = self._tokenizer.decode([token], skip_special_tokens=True).strip()
        return self._pieces[token]


def load(path: Path, folder: Path, device: str) -> ZOCDecoder:
    """The decoder of a checkpoint, with the tokenizer of a folder."""
    library = require("transformers", "zoc_decoder", "hf")
    weights = _weights(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder", hint="name that of the tokenizer")
    with quietly(library):
        tokenizer = from_folder(library.AutoTokenizer, folder)
        network = _network(library, weights, path)
    if tokenizer.bos_token_id is None:
        raise InputError(f"the tokenizer in {folder} has no token for the beginning", hint=AGAIN)
    if len(tokenizer) > len(weights["lm_head.bias"]):
        raise InputError(f"the tokenizer in {folder} has more tokens than {path}", hint="name the decoder's own")
    return ZOCDecoder(network, tokenizer, device)


def _weights(path: Path) -> dict[str, Tensor]:
    """The weights by name; nothing else is unpickled."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # bytes that are no weights make the reader raise nearly anything
        if "weights_only" in str(error):
            hint = 'save {"net": its weights} again, with torch.save'
            raise InputError(f"{path} holds more than weights, and is not unpickled", hint=hint) from None
        raise InputError(f"{path} cannot be read: {in_short(error)}", hint=AGAIN) from None
    net = found.get("net") if isinstance(found, dict) else None
    if not isinstance(net, dict) or not all(isinstance(value, Tensor) for value in net.values()):
        raise InputError(f"{path} has no weights under net", hint="name the checkpoint of ZOC's authors")
    kept = {name: value for name, value in net.items() if not name.endswith("position_ids")}  # of older versions
    if "lm_head.bias" in kept:
        kept.setdefault("lm_head.decoder.bias", kept["lm_head.bias"])  # one and the same
    return kept


def _network(library: Any, weights: dict[str, Tensor], path: Path) -> Any:
    """The network that the shapes of weights tell, with these weights."""
    part = "bert.embeddings.{}_embeddings.weight".format
    layers = {found[1] for name in weights if (found := re.match(r"bert\.encoder\.layer\.(\d+)\.", name))}
    try:
        (tokens, width), (positions, _) = weights[part("word")].shape, weights[part("position")].shape
        inner = len(weights["bert.encoder.layer.0.intermediate.dense.bias"])
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} is no BertGenerationDecoder: {in_short(error)}", hint=AGAIN) from None
    if width != 2 * DIM:
        raise InputError(f"{path} must be {2 * DIM} numbers wide, twice an image vector, got {width}", hint=AGAIN)
    config = library.BertGenerationConfig(
        vocab_size=tokens,
        hidden_size=width,
        num_hidden_layers=len(layers),
        num_attention_heads=width // HEAD,
        intermediate_size=inner,
        max_position_embeddings=positions,
        is_decoder=True,
        add_cross_attention=True,
    )
    network = library.BertGenerationDecoder(config)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"{path} does not fit its own shapes: {in_short(error)}", hint=AGAIN) from None
    return network
