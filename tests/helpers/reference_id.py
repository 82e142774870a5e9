"""Slow, obvious float64 references of the methods on ID images, from the papers; the code under test is not used."""

import numpy as np


def logits(x, weights, bias):
    return np.array(
        [sum(w_j * x_j for w_j, x_j in zip(w, x, strict=True)) + b for w, b in zip(weights, bias, strict=True)]
    )


def softmax(z):
    mass = [np.exp(value - max(z)) for value in z]
    return np.array([m / sum(mass) for m in mass])


def energy(z):
    return max(z) + np.log(sum(np.exp(value - max(z)) for value in z))


def mahalanobis(images, train, classes):
    """Class means, a covariance of what is centred class by class, the smallest distance."""
    means = {c: np.mean([x for x, own in zip(train, classes, strict=True) if own == c], axis=0) for c in set(classes)}
    sigma = np.zeros((train.shape[1],) * 2)
    for x, own in zip(train, classes, strict=True):
        sigma += np.outer(x - means[own], x - means[own]) / len(train)
    inverse = np.linalg.inv(sigma)
    return np.array([-min((x - mu) @ inverse @ (x - mu) for mu in means.values()) for x in images])


def mahalanobis_by_batch_number(images, train, classes, batch_size):
    """The slip of a published code: rows are looked up by the number of their batch, and centred all together."""
    means = []
    for c in sorted(set(classes)):
        batches = [i // batch_size for i, own in enumerate(classes) if own == c]
        means.append(np.mean([train[batch] for batch in batches], axis=0))
    inverse = np.linalg.inv(np.cov(train.T))
    return np.array([-min((x - mu) @ inverse @ (x - mu) for mu in means) for x in images])


def knn(images, train, k):
    return np.array([-sorted(np.sqrt(sum((x - t) ** 2)) for t in train)[k - 1] for x in images])


def vim(images, train, weights, bias, n_principal):
    """The residual by projection onto the principal space, column by column."""
    origin = -np.linalg.pinv(weights) @ bias
    values, vectors = np.linalg.eig(sum(np.outer(x - origin, x - origin) for x in train) / len(train))
    principal = vectors.real[:, np.argsort(-values.real)[:n_principal]]

    def residual(x):
        inside = sum((p @ (x - origin)) * p for p in principal.T)
        return np.linalg.norm(x - origin - inside)

    top = np.mean([max(logits(x, weights, bias)) for x in train])
    alpha = top / np.mean([residual(x) for x in train])
    return np.array([energy(logits(x, weights, bias)) - alpha * residual(x) for x in images])


def gradnorm(images, weights, bias, step=1e-6):
    """The L1 norm of a numeric gradient of KL(uniform || softmax) by each weight."""

    def divergence(w, x):
        p = softmax(logits(x, w, bias))
        return sum(np.log(1 / len(p) / value) / len(p) for value in p)

    scores = []
    for x in images:
        total = 0.0
        for index in np.ndindex(*weights.shape):
            more, less = weights.copy(), weights.copy()
            more[index] += step
            less[index] -= step
            total += abs(divergence(more, x) - divergence(less, x)) / (2 * step)
        scores.append(total)
    return np.array(scores)


def odin(images, weights, bias, temperature):
    return np.array([max(softmax(logits(x, weights, bias) / temperature)) for x in images])


def react(images, train, weights, bias, quantile):
    """The quantile by sorting and linear interpolation."""
    values = sorted(value for x in train for value in x)
    place = quantile * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    cut = values[below] + (place - below) * (values[above] - values[below])
    return np.array([energy(logits([min(v, cut) for v in x], weights, bias)) for x in images])


def ash(images, weights, bias, variant, percentile):
    """The published rule, for entries of at least 0."""
    scores = []
    for x in images:
        kept = sorted(range(len(x)), key=lambda j: -x[j])[: len(x) - round(percentile * len(x))]
        before, after = sum(x), sum(x[j] for j in kept)
        shaped = [0.0] * len(x)
        for j in kept:
            shaped[j] = {"p": x[j], "b": before / len(kept), "s": x[j] * np.exp(before / after)}[variant]
        scores.append(energy(logits(shaped, weights, bias)))
    return np.array(scores)


def head_loss(weights, bias, images, own, penalty, outliers=(), weight=0.0, line=(0.0, 0.0)):
    """Cross-entropy + penalty + weight * logistic loss of a line through the energy, image by image."""
    a, c = line
    zs = [logits(x, weights, bias) for x in images]
    total = np.mean([-np.log(softmax(z)[k]) for z, k in zip(zs, own, strict=True)])
    total += penalty / 2 * (sum(w**2 for w in weights.ravel()) + a**2)
    if len(outliers):
        inside = [a * (energy(z) - np.log(len(bias))) + c for z in zs]
        outside = [a * (energy(logits(v, weights, bias)) - np.log(len(bias))) + c for v in outliers]
        total += weight / 2 * np.mean([-np.log(1 / (1 + np.exp(-phi))) for phi in inside])
        total += weight / 2 * np.mean([-np.log(1 - 1 / (1 + np.exp(-phi))) for phi in outside])
    return total
