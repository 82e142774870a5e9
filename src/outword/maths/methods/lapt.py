"""LAPT: NegLabel with one learned prompt for the labels and another for the negative words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.methods.neglabel import NegLabel
from outword.maths.methods.prompted import Batch, Context, Prompted, Stage, Tensor, own_log_shares


@DETECTORS.register("lapt")
@dataclass
class LAPT(Prompted, NegLabel):
    """NegLabel's score, with learned tokens before the labels and others before the words.

        S as in NegLabel, of t_i = text tower of [v_1] .. [v_M] [name of i] [.], u_k = that of [w_1] .. [w_M] [word] [.]
        v, w minimise  CE(x) + CE(unit(l x + (1 - l) e_y)) + CD,   CE(x) = mean of -log softmax_y(s cos(x, [t; u]))
        e_y = the class in a hand-written template, drawn from seven,   l drawn from U(0, 1)
        CD = mean of -l log softmax_y(z) - (1 - l) log softmax_y'(z),   z = unit(l x + (1 - l) x'), x' a word's photo

    Both contexts move to other labels and words. The authors learn from images that were synthesised or retrieved for
    each name and each word, and give none of them away; here it is your own photos of the classes, and photos of words
    where you have some (`--word-images`). Without those the CD is left out, and w is moved through the alternatives
    alone. The release has the second of the three losses only.

    Args: as for NegLabel, as for CoOp, and
        context: M; the released scripts have 2 to learn and 4 to test.
        words: of the mined words, best first, those that are learned with; the published value is 1,000. All that were
            mined take part in the score.
        mixing: weight of the second loss; 1 is published.

    Reference: Zhang et al., "LAPT: Label-driven Automated Prompt Tuning for OOD Detection with Vision-Language Models",
    ECCV 2024.

    >>> y, u = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> LAPT(temperature=1.0, n_groups=1).fit(labels=y, wild=u).score([[0.6, 0.8], [1.0, 0.0]]).round(4)    # NegLabel's
    array([0.4502, 0.7311])
    """

    epochs: int = parameter(10, whole_number, least=0, most=100_000, hint="the published value is 10")
    rate: float = parameter(0.01, above=0, hint="the published value is 0.01")
    context: int = parameter(4, whole_number, hint="the released values are 2 and 4")
    words: int = parameter(1000, whole_number, hint="the published value is 1000")
    mixing: float = parameter(1.0, least=0, hint="the published value is 1")
    summary = "NegLabel with learned prompts for labels and for words"
    needs = (*Prompted.needs, Need.WILD)
    prompts = NegLabel.prompts
    templates = (
        "a bad photo of the {}.",
        "a {} in a video game.",
        "a origami {}.",
        "a photo of the small {}.",
        "art of the {}.",
        "a photo of the large {}.",
        "itap of a {}.",
    )

    def contexts(self) -> Mapping[str, Context]:
        """One for labels, one for words."""
        return {**super().contexts(), "wild": Context(self.context, self.start)}

    def stages(self) -> tuple[Stage, ...]:
        """Both at once."""
        both = Stage(("labels", "wild"), self.loss, self.epochs, self.rate, self.batch, warm_up=0)
        return (replace(both, nesterov=True, decay=1e-5),)

    def loss(self, batch: Batch) -> Tensor:
        """Of the photos, of photos mixed with the names of their classes, and of photos of classes and words mixed."""
        x, y = batch.images, batch.classes
        found = -self._log_shares(batch, x, y).mean()
        own = (y < len(batch.labels)).nonzero()[:, 0]
        if self.mixing and len(own):
            templates = batch.rng.integers(len(batch.plain), size=len(own))
            mixed = _mixed(batch, x[own], batch.plain[templates, y[own]])[0]
            found = found - self.mixing * self._log_shares(batch, mixed, y[own]).mean()
        others = (y >= len(batch.labels)).nonzero()[:, 0]
        if len(own) and len(others):
            drawn = others[batch.rng.integers(len(others), size=len(own))]
            mixed, share = _mixed(batch, x[own], x[drawn])
            inside, outside = (self._log_shares(batch, mixed, y[rows]) for rows in (own, drawn))
            found = found - (share * inside + (1 - share) * outside).mean()
        return found

    def _log_shares(self, batch: Batch, x: Tensor, y: Tensor) -> Tensor:
        import torch

        return own_log_shares(batch.scale * x @ torch.cat([batch.labels, batch.wild]).T, y)


def _mixed(batch: Batch, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Rows between those of a and of b, and the share of a in each."""
    share = a.new_tensor(batch.rng.random(len(a)))
    rows = share[:, None] * a + (1 - share[:, None]) * b
    return rows / rows.norm(dim=1, keepdim=True), share
