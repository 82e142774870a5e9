"""Which decoder makes pixels of photos for an encoder of torch: the choice alone; `feeding` has what they do."""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

from outword.base.extras import install
from outword.encoders.packed import VARIABLE
from outword.encoders.torch import nvjpeg
from outword.errors import ParameterError

DECODERS = ("nvjpeg", "simplejpeg", "pillow")  # the first that is there is taken


def choose(device: torch.device) -> str:
    """The decoder for a device: that of $OUTWORD_DECODER, else the fastest that is installed; Pillow beside a CPU."""
    asked = os.environ.get(VARIABLE)
    if asked and asked not in DECODERS:
        raise ParameterError(f"{VARIABLE} must be one of {', '.join(DECODERS)}, got {asked!r}", hint="leave it out")
    if device.type != "cuda" or find_spec("triton") is None:  # beside a CPU it is the encoder that takes the time
        return "pillow"
    if asked and not _works(asked, device):
        hint = f"{install(asked)}, or leave it out"
        raise ParameterError(f"{VARIABLE} is {asked}, which is not installed, or has no hardware here", hint=hint)
    return asked or next(decoder for decoder in DECODERS if _works(decoder, device))


def _works(decoder: str, device: torch.device) -> bool:
    if decoder != "nvjpeg":
        return decoder == "pillow" or find_spec(decoder) is not None
    try:
        with torch.cuda.device(device):
            nvjpeg.Decoder()
    except OSError:  # no library, or a device without hardware for JPEG
        return False
    return True
