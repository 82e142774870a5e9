"""CLIP's image transformer in plain numpy and float64, step by step from the formulas; the towers are not used here."""

import numpy as np

EPSILON = 1e-5  # of the norms, as CLIP has it
OPEN_CLIP = {  # the names of the weights in each library; {} is the number of a block
    "patch": "visual.conv1.weight",
    "class": "visual.class_embedding",
    "places": "visual.positional_embedding",
    "before": "visual.ln_pre",
    "after": "visual.ln_post",
    "norm_1": "visual.transformer.resblocks.{}.ln_1",
    "norm_2": "visual.transformer.resblocks.{}.ln_2",
    "out": "visual.transformer.resblocks.{}.attn.out_proj",
    "wide": "visual.transformer.resblocks.{}.mlp.c_fc",
    "narrow": "visual.transformer.resblocks.{}.mlp.c_proj",
}
TRANSFORMERS = {
    "patch": "vision_model.embeddings.patch_embedding.weight",
    "class": "vision_model.embeddings.class_embedding",
    "places": "vision_model.embeddings.position_embedding.weight",
    "before": "vision_model.pre_layrnorm",
    "after": "vision_model.post_layernorm",
    "norm_1": "vision_model.encoder.layers.{}.layer_norm1",
    "norm_2": "vision_model.encoder.layers.{}.layer_norm2",
    "out": "vision_model.encoder.layers.{}.self_attn.out_proj",
    "wide": "vision_model.encoder.layers.{}.mlp.fc1",
    "narrow": "vision_model.encoder.layers.{}.mlp.fc2",
}


class Vit:
    """The features of an image, and those of its patches by the value path, from a table of weights."""

    def __init__(self, weights, names, heads, layers):
        self.weights = {name: np.asarray(array, np.float64) for name, array in weights.items()}
        self.names, self.heads, self.layers = names, heads, layers

    def __call__(self, pixels):
        """Normalised pixels (3, side, side) to features (dim,) and (n_patches, dim)."""
        z = self.embedded(np.asarray(pixels, np.float64))
        for block in range(self.layers - 1):
            z = self.mixed(block, z, attend=True)
        last = self.layers - 1
        whole, alone = self.mixed(last, z, attend=True)[0], self.mixed(last, z, attend=False)[1:]
        return self.projected(whole), np.stack([self.projected(token) for token in alone])

    def embedded(self, pixels):
        kernel = self.weights[self.names["patch"]]
        side = kernel.shape[-1]
        tokens = [self.weights[self.names["class"]]]
        for top in range(0, pixels.shape[1], side):
            for left in range(0, pixels.shape[2], side):
                tokens.append((kernel * pixels[:, top : top + side, left : left + side]).sum(axis=(1, 2, 3)))
        return self.norm("before", 0, np.stack(tokens) + self.weights[self.names["places"]])

    def mixed(self, block, z, attend):
        x = self.norm("norm_1", block, z)
        q, k, v = (self.projection(block, which, x) for which in "qkv")
        if attend:
            v = np.concatenate([self.attended(q, k, v, head) for head in range(self.heads)], axis=1)
        u = z + self.linear("out", block, v)
        h = self.linear("wide", block, self.norm("norm_2", block, u))
        return u + self.linear("narrow", block, h / (1 + np.exp(-1.702 * h)))

    def attended(self, q, k, v, head):
        size = q.shape[1] // self.heads
        own = slice(head * size, (head + 1) * size)
        weights = np.exp(q[:, own] @ k[:, own].T / np.sqrt(size))
        return weights / weights.sum(axis=1, keepdims=True) @ v[:, own]

    def projection(self, block, which, x):
        name = self.names["out"].format(block)
        if self.names is TRANSFORMERS:
            name = name.replace("out_proj", f"{which}_proj")
            return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        width, at = x.shape[1], "qkv".index(which)
        own = slice(at * width, (at + 1) * width)
        name = name.replace(".out_proj", "")
        return x @ self.weights[f"{name}.in_proj_weight"][own].T + self.weights[f"{name}.in_proj_bias"][own]

    def linear(self, name, block, x):
        name = self.names[name].format(block)
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, block, x):
        name = self.names[name].format(block)
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def projected(self, token):
        token = self.norm("after", 0, token)
        if self.names is TRANSFORMERS:
            return self.weights["visual_projection.weight"] @ token
        return token @ self.weights["visual.proj"]
