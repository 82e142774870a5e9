"""Slow, obvious float64 references for the methods on labels and words; the code under test is not used here."""

import math
from decimal import Decimal

import numpy as np


def softmax(logits):
    top = max(logits)
    masses = [math.exp(z - top) for z in logits]
    return [m / sum(masses) for m in masses]


def cosines(x, vectors):
    return [float(np.dot(x, v) / (np.linalg.norm(x) * np.linalg.norm(v))) for v in vectors]


def entropy(images, labels, temperature):
    """S = sum_i p_i log p_i."""
    out = []
    for x in images:
        p = softmax([c / temperature for c in cosines(x, labels)])
        out.append(sum(p_i * math.log(p_i) for p_i in p))
    return np.array(out)


def var(images, labels, temperature):
    """S = 1/K sum_i (p_i - 1/K)^2."""
    out = []
    for x in images:
        p = softmax([c / temperature for c in cosines(x, labels)])
        out.append(sum((p_i - 1 / len(p)) ** 2 for p_i in p) / len(p))
    return np.array(out)


def glmcm(images, patches, labels, temperature, weight):
    """S = MCM of the image + weight * the largest MCM of a patch."""

    def mcm(x):
        return max(softmax([c / temperature for c in cosines(x, labels)]))

    return np.array([mcm(x) + weight * max(mcm(q) for q in parts) for x, parts in zip(images, patches, strict=True)])


def eoe(images, labels, words, temperature, beta):
    """S = max_i p_i - beta max_k p_{K+k}."""
    out = []
    for x in images:
        p = softmax([c / temperature for c in cosines(x, [*labels, *words])])
        out.append(max(p[: len(labels)]) - beta * max(p[len(labels) :]))
    return np.array(out)


def neglabel(logits_of_labels, logits_of_groups):
    """Mean over groups of the softmax mass on the labels, for one image."""
    shares = []
    for group in logits_of_groups:
        p = softmax([*logits_of_labels, *group])
        shares.append(sum(p[: len(logits_of_labels)]))
    return sum(shares) / len(shares)


def adaneg(images, labels, groups, temperature, memory, low, high, beta, weight):
    """AdaNeg image by image; groups (n_groups, size, dim). A memory is a list of (entropy, image)."""
    texts = [*labels, *(word for group in groups for word in group)]
    n_labels, size = len(labels), len(groups[0])
    memories = [[] for _ in texts]
    out = []
    for x in images:
        z = [c / temperature for c in cosines(x, texts)]
        text_score = neglabel(z[:n_labels], _groups(z[n_labels:], size))
        side = range(n_labels) if text_score > high else range(n_labels, len(texts)) if text_score < low else []
        if side:
            nearest = max(side, key=lambda c, z=z: z[c])
            p = softmax([z[c] for c in side])
            kept = memories[nearest]
            kept.append((-sum(p_c * math.log(p_c) for p_c in p if p_c > 0), x))
            if len(kept) > memory:
                kept.remove(max(kept, key=lambda pair: pair[0]))
        adapted = []
        for text, kept in zip(texts, memories, strict=True):
            adapted.append(proxy_cosine(x, [text, *(image for _, image in kept)], beta) / temperature)
        out.append(neglabel(adapted[:n_labels], _groups(adapted[n_labels:], size)) + weight * text_score)
    return np.array(out)


def proxy_cosine(x, vectors, beta):
    """cos(x, sum_m e^{-beta (1 - cos(x, m))} m), in decimals, which have exponents of any size."""
    weights = [(Decimal(beta) * (Decimal(c) - 1)).exp() for c in cosines(x, vectors)]
    columns = zip(*[[Decimal(value) for value in vector] for vector in vectors], strict=True)
    proxy = [sum(w * value for w, value in zip(weights, column, strict=True)) for column in columns]
    length = sum(value * value for value in proxy).sqrt()
    return float(sum(Decimal(a) * b for a, b in zip(x, proxy, strict=True)) / length)


def _groups(values, size):
    return [values[start : start + size] for start in range(0, len(values), size)]


def conjugated_order(words, labels, quantile, guard):
    """Indices by rising d(w); words whose largest cosine to a label exceeds the guard come last, in their order."""
    d = []
    for w in words:
        c = cosines(w, labels)
        d.append(1.0 if max(c) > guard else float(np.quantile(c, quantile)))
    return sorted(range(len(words)), key=lambda i: d[i])
