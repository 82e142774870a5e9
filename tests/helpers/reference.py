"""Slow, obvious float64 references, written from the paper's formulas; the code under test is not used here."""

import numpy as np


def debiased_as_printed(images, labels, groups, positives, tau, kappa):
    """Eq. 18, term by term; groups (n_groups, size, dim)."""
    scores = []
    for x in images:
        id_mass = sum(np.exp(x @ y / kappa) for y in labels)
        g = np.mean([np.exp(x @ v / kappa) for v in positives])
        terms = []
        for group in groups:
            q = np.mean([np.exp(x @ u / kappa) for u in group])
            a = (1 - tau) / len(group) * id_mass
            terms.append(a / (a + q - tau * g))
        scores.append(np.mean(terms))
    return np.array(scores)


def grounded(images, labels, words, kappa, b):
    """Log-odds of the labels against all words, plus b times the largest logit, image by image."""
    scores = []
    for x in images:
        logits = [x @ y / kappa for y in labels]
        odds = sum(np.exp(h) for h in logits) / sum(np.exp(x @ u / kappa) for u in words)
        scores.append(np.log(odds) + b * max(logits))
    return np.array(scores)


def rep(words, alpha):
    """Eq. 14, word by word."""
    out = []
    for i, w in enumerate(words):
        distances = sorted(np.sum((w - v) ** 2) for j, v in enumerate(words) if j != i)
        out.append(-np.log(sum(distances[:alpha])))
    return np.array(out)


def neighbour_distance_sums(words, alpha):
    """Sum of squared distances of each unit row to its `alpha` nearest other rows, with the whole matrix at hand."""
    squared = 2 - 2 * words @ words.T
    np.fill_diagonal(squared, np.inf)
    return np.sort(squared, axis=1)[:, :alpha].sum(axis=1)


def conformal_p_values(id_scores, scores):
    """Split-conformal p-value of each score, `(1 + #{i : s_i <= s}) / (n + 1)`."""
    return (1 + np.searchsorted(np.sort(id_scores), scores, side="right")) / (len(id_scores) + 1)
