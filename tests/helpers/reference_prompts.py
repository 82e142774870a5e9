"""The losses of learned prompts, slowly and in float64, photo by photo, from the formulas."""

import math

import numpy as np


def softmax(values):
    e = [math.exp(v - max(values)) for v in values]
    return [x / sum(e) for x in e]


def coop(b):
    total = 0.0
    for x, y in zip(b.images, b.classes, strict=True):
        total -= math.log(softmax([b.scale * float(x @ t) for t in b.labels])[y])
    return total / len(b.images)


def fa(b, competitor):
    total = 0.0
    for x, y in zip(b.images, b.classes, strict=True):
        own = [math.exp(b.scale * float(x @ t)) for t in b.labels]
        frozen = [math.exp(b.scale * float(x @ t)) for t in b.negatives[0]]
        total -= math.log(own[y] / (sum(own) + competitor * sum(frozen)))
    return total / len(b.images)


def fa_score(x, learned, frozen, competitor):
    """The largest share of any prompt, where each frozen one stands in the sum as often as `competitor` says."""
    own = [math.exp(float(x @ t)) for t in learned]
    hand_written = [math.exp(float(x @ t)) for t in frozen]
    return max(own + hand_written) / (sum(own) + competitor * sum(hand_written))


def unit(row):
    return row / math.sqrt(float(row @ row))


def log_share(b, row, y):
    """Log of the share of y, a label or behind them a word, among all labels and words."""
    texts = [*b.labels, *b.wild]
    return math.log(softmax([b.scale * float(row @ t) for t in texts])[y])


def lapt(b, mixing, templates, named_share, partners, both_share):
    """The loss with what is drawn given: a template a photo, a partner a photo, a share for all photos of each loss."""
    total = 0.0
    for x, y, template, partner in zip(b.images, b.classes, templates, partners, strict=True):
        named = unit(named_share * x + (1 - named_share) * b.plain[template][y])
        both = unit(both_share * x + (1 - both_share) * b.images[partner])
        total -= log_share(b, x, y) + mixing * log_share(b, named, y)
        total -= both_share * log_share(b, both, y) + (1 - both_share) * log_share(b, both, b.classes[partner])
    return total / len(b.images)


def outside_patches(b, k):
    """Entropy of each patch whose k best classes are not that of its photo, with the number of the photo."""
    for i, y in enumerate(b.classes):
        for q in b.patches[i]:
            p = softmax([b.scale * float(q @ t) for t in b.labels])
            if y not in sorted(range(len(p)), key=lambda c: -p[c])[:k]:
                yield i, -sum(one * math.log(one + 1e-5) for one in p)


def locoop(b, lam, k):
    found = [h for _, h in outside_patches(b, k)]
    return coop(b) - lam * (sum(found) / len(found) if found else 0.0)


def sct(b, lam, k):
    shares = [softmax([b.scale * float(x @ t) for t in b.labels])[y] for x, y in zip(b.images, b.classes, strict=True)]
    inside = sum((1.0000001 - pi) * -math.log(pi) for pi in shares) / len(shares)
    found = [(1e-7 + shares[i]) * h for i, h in outside_patches(b, k)]
    return inside - lam * (sum(found) / len(found) if found else 0.0)


def lsn_negative(b, lam, j):
    """The loss of one set of negatives, the others being fixed."""
    total = 0.0
    for x, y in zip(b.images, b.classes, strict=True):
        total -= math.log(softmax([20 * (1 - float(x @ n)) for n in b.negatives[j]])[y])
    others = [n for place, n in enumerate(b.negatives) if place != j]
    cosines = [float(b.negatives[j][i] @ other[i]) for i in range(len(b.labels)) for other in others]
    return total / len(b.images) + lam * sum(cosines) / len(cosines)


def negprompt(b, beta, gamma):
    sets, n = len(b.negatives), len(b.labels)
    nis = 0.0
    for x in b.images:
        p = softmax([b.scale * float(x @ b.negatives[m][i]) for m in range(sets) for i in range(n)])
        nis -= sum(math.log(one) for one in p) / len(p) / len(b.images)
    npd = -np.mean([b.negatives[m][i] @ b.labels[i] for m in range(sets) for i in range(n)])
    pairs = [(m, k) for m in range(sets) for k in range(sets) if m != k]
    nnd = np.mean([b.negatives[m][i] @ b.negatives[k][i] for i in range(n) for m, k in pairs])
    return nis + beta * npd + gamma * nnd
