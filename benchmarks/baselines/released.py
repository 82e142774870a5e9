"""The algorithm of the scripts that came with the paper, from its description: group by group, matrix by matrix.

Arrays stay as they are: torch tensors on their device, numpy arrays for `score` too, in the type in which they come
(float32, in the scripts).
"""

from __future__ import annotations

import sys


def score(images, labels, groups, tau=0.5, temperature=0.01):
    """Eq. 18 without noise, (n_images,): each group brings a new product of all images with the labels and its words.

        S = mean_b P / (P + |G| (q_b - tau g) / (1 - tau)),   g = P / K

    With `tau=0` it is NegLabel's score. There is no guard: `e^{100 cos}` leaves float32 at a cosine of 0.887.

    Args:
        images: (n_images, dim), unit rows.
        labels: (n_labels, dim), unit rows.
        groups: (n_groups, size, dim), unit rows.
        tau: share of positives among the words; `tau_ood = 1 - tau` in the scripts.
        temperature: divisor of cosines.
    """
    library = sys.modules[type(images).__module__.partition(".")[0]]
    total = 0.0
    for words in groups:
        masses = library.exp(images @ library.concatenate([labels, words]).T / temperature)
        inside = masses[:, : len(labels)].sum(1)
        wild = masses[:, len(labels) :].mean(1)
        total = total + inside / (inside + len(words) * (wild - tau * inside / len(labels)) / (1 - tau))
    return total / len(groups)


def rep(words, alpha=100):
    """The ranking key of the words, (n_words,), larger is better: one T x T matrix, and the smallest of each row.

        -mean over the alpha + 1 nearest, itself among them, of log(|w| + |w'| - 2 cos)

    Args:
        words: (n_words, dim) torch tensor, any length but zero.
        alpha: how many neighbours.
    """
    lengths = words.norm(dim=1)
    unit = words / lengths[:, None]
    distances = lengths[:, None] + lengths - 2 * unit @ unit.T
    nearest = distances.topk(alpha + 1, largest=False).values
    return -nearest.clamp(min=sys.float_info.epsilon).log().mean(1)
