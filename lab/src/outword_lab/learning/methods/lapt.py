"""LAPT: NegLabel with one learned prompt for the labels and another for the negative words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.methods.neglabel import NegLabel
from outword_lab.learning.methods.prompted import Batch, Context, Prompted, Stage, Tensor, own_log_shares


@DETECTORS.register("lapt")
@dataclass
class LAPT(Prompted, NegLabel):
    """NegLabel's score, with learned tokens before the labels and others before the words.

        S as in NegLabel, of t_i = text tower of [v_1] .. [v_M] [name of i] [.], u_k = that of [w_1] .. [w_M] [word] [.]
        v, w minimise  CE(x) + CE(unit(l x + (1 - l) e_y)) + CD,   CE(x) = mean of -log softmax_y(s cos(x, [t; u]))
        e_y = what x shows, a label or a word, in a hand-written template, drawn from seven for each photo
        CD = mean of -l log softmax_y(z) - (1 - l) log softmax_y'(z),   z = unit(l x + (1 - l) x')
        x' = a photo of a word where x shows a label, and of a label where x shows a word
        l drawn from U(0, 1), one for all photos of a step in each of the two losses

    Both contexts move to other labels and words. The authors learn from images that were synthesised or retrieved for
    each name and each word, and give none of them away; here it is your own photos of the classes, and photos of words
    where you have some (`--word-images`). Without those the CD is left out, and w is moved through the alternatives
    alone. The script of the release has the second of the three losses only.

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
    takes = ("word_images",)
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
        both = Stage(("labels", "wild"), self.loss, self.epochs, self.rate, self.batch, warm_up=0, every_step=True)
        return (replace(both, nesterov=True, decay=1e-5),)

    def loss(self, batch: Batch) -> Tensor:
        """Of the photos, of photos mixed with the names of what they show, and of photos of labels and words mixed."""
        x, y = batch.images, batch.classes
        found = -self._log_shares(batch, x, y).mean()
        if self.mixing:
            templates = batch.rng.integers(len(batch.plain), size=len(x))
            named = _mixed(x, batch.plain[templates, y], batch.rng.random())
            found = found - self.mixing * self._log_shares(batch, named, y).mean()
        partners = _partners(batch)
        if partners is None:
            return found
        share = batch.rng.random()
        both = _mixed(x, x[partners], share)
        inside, outside = self._log_shares(batch, both, y), self._log_shares(batch, both, y[partners])
        return found - (share * inside + (1 - share) * outside).mean()

    def _log_shares(self, batch: Batch, x: Tensor, y: Tensor) -> Tensor:
        import torch

        return own_log_shares(batch.scale * x @ torch.cat([batch.labels, batch.wild]).T, y)


def _mixed(a: Tensor, b: Tensor, share: float) -> Tensor:
    """Unit rows between those of a, which have this share, and those of b."""
    rows = share * a + (1 - share) * b
    return rows / rows.norm(dim=1, keepdim=True)


def _partners(batch: Batch) -> Tensor | None:
    """For each photo of a label one of a word, and for each of a word one of a label; None where one kind is missing.

    Partners are drawn by chance, and may serve several times.
    """
    shows_word = batch.classes >= len(batch.labels)
    own, others = (~shows_word).nonzero()[:, 0], shows_word.nonzero()[:, 0]
    if not len(own) or not len(others):
        return None
    found = batch.classes.clone()
    found[own] = others[batch.rng.integers(len(others), size=len(own))]
    found[others] = own[batch.rng.integers(len(own), size=len(others))]
    return found
