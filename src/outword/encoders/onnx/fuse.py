"""The same network in fewer passes over memory: exact algebra on the weights, for any device."""

from __future__ import annotations

from collections import Counter

import torch

QUICK = 1.702  # QuickGELU(x) = x * sigmoid(1.702 x), the activation of OpenAI's CLIP
_NAMES = (("c_fc", "gelu", "c_proj"), ("fc1", "activation_fn", "fc2"))  # open_clip's and transformers' words


@torch.no_grad()
def fuse_quick_gelu(module: torch.nn.Module) -> None:
    """Turn `W2 (h * sigmoid(1.702 h)) + b2`, `h = W1 x + b1`, into one with SiLU, in place.

    SiLU(z) = z * sigmoid(z), so that h * sigmoid(1.702 h) = SiLU(1.702 h) / 1.702: W1 and b1 take the factor, W2 its
    inverse. Three passes over the widest tensor of a block become one. Blocks with anything else between or beside the
    two products are left as they are.
    """
    uses = Counter(id(weight) for part in module.modules() for weight in part.parameters(recurse=False))
    for block in module.modules():
        parts = dict(block.named_children())
        names = next((names for names in _NAMES if set(names) == set(parts)), None)
        if names is None or type(parts[names[1]]).__name__ not in ("QuickGELU", "QuickGELUActivation"):
            continue
        first, second = parts[names[0]], parts[names[2]]
        if not (isinstance(first, torch.nn.Linear) and isinstance(second, torch.nn.Linear)) or first.bias is None:
            continue
        if any(uses[id(weight)] > 1 for weight in (first.weight, first.bias, second.weight)):
            continue
        first.weight.mul_(QUICK)
        first.bias.mul_(QUICK)
        second.weight.div_(QUICK)
        setattr(block, names[1], torch.nn.SiLU())
