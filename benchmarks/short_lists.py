"""What to do when the denominator of Eq. 18 can turn negative: the candidate policies on short label lists.

    python benchmarks/short_lists.py PATH [--draws 6]

Mean AUROC over textures, scenes, flowers and the classes left out, for K labels drawn from bench-mini's 600. Draws of
one size have no label in common, and draw i of a short list is a part of draw i of a longer one: so the mean over sizes
of a draw is one observation, and their standard error is over draws. All of them share the OOD photos.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench_mini import wild_vectors
from common import Bench, Task, draw_apart, read_bench, table
from outword.detectors import Debiased, NegLabel
from outword.kernels import grouped_logsumexp
from outword.maths.numerics import Array, unit_rows

SIZES = [3, 5, 10, 25, 50, 100, 300, 600]
SHORT = SIZES[:6]  # where tau = 0.5 breaks the rule, with groups of 120 words
TAU = 0.5
Score = Callable[[Array], Array]


def masses(task: Task, wild: Array, temperature: float) -> Callable[[Array], tuple[Array, Array, Array, int]]:
    """log P, log g and log q_b of images, and the group size, for 100 groups and no noise."""
    dealt = NegLabel(temperature=temperature).fit(task.labels, wild)
    labels, words, groups = unit_rows(task.labels), unit_rows(wild), dealt.groups_
    bank = np.concatenate([labels, words[groups.ravel()]])
    offsets = np.cumsum([0, len(labels)] + [groups.shape[1]] * len(groups))

    def of(images: Array) -> tuple[Array, Array, Array, int]:
        found = grouped_logsumexp(images, bank, offsets, temperature=temperature)
        log_p = found[:, :1]
        return log_p, log_p - np.log(len(labels)), found[:, 1:] - np.log(groups.shape[1]), groups.shape[1]

    return of


def printed(task: Task, wild: Array, temperature: float) -> Score:
    """Eq. 18 as printed, no guard: the denominator may be negative."""
    of = masses(task, wild, temperature)

    def score(images: Array) -> Array:
        log_p, log_g, log_q, size = of(images)
        q_over_p, g_over_p = np.exp(log_q - log_p), np.exp(log_g - log_p)
        a = (1 - TAU) / size
        return (a / (a + q_over_p - TAU * g_over_p)).mean(axis=1)

    return score


def clamp(task: Task, wild: Array, temperature: float) -> Score:
    """The clamp of debiased contrastive learning, q - tau g >= (1 - tau) e^{-1/t}: no inversion, but ties at 1."""
    of = masses(task, wild, temperature)

    def score(images: Array) -> Array:
        log_odds = clamped_log_odds(of, images, temperature)
        return (1 / (1 + np.exp(-log_odds))).mean(axis=1)

    return score


def clamp_log_odds(task: Task, wild: Array, temperature: float) -> Score:
    """The same clamp, with the mean log-odds as the score, which still orders what is clamped."""
    of = masses(task, wild, temperature)
    return lambda images: clamped_log_odds(of, images, temperature).mean(axis=1)


def clamped_log_odds(of: Callable, images: Array, temperature: float) -> Array:  # type: ignore[type-arg]
    """log a - log max(q_b - tau g, (1 - tau) e^{-1/t})."""
    log_p, log_g, log_q, size = of(images)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = log_q + np.log1p(-np.exp(np.minimum(np.log(TAU) + log_g - log_q, 0)))
    floor = np.log(1 - TAU) - 1 / temperature
    return np.log((1 - TAU) / size) + log_p - np.maximum(rest, floor)


def cap(task: Task, wild: Array, temperature: float) -> Score:
    """The printed formula while |G| <= 0.7 K, then tau falls so that w stays 6.7; what `Debiased` does by default."""
    return Debiased(temperature=temperature, tau=TAU, sigma=0.0).fit(task.labels, wild).score


def cap_papers_weight(task: Task, wild: Array, temperature: float) -> Score:
    """Tau lowered so that w keeps its value in the paper's setting, 2.27, for every list under 1000 names."""
    tau = min(TAU, 1.12 * TAU / (1 + len(wild) // 100 / len(task.labels)))
    return Debiased(temperature=temperature, tau=tau, sigma=0.0, policy="paper").fit(task.labels, wild).score


def cap_with_noise(task: Task, wild: Array, temperature: float) -> Score:
    """The same with the paper's noise."""
    return Debiased(temperature=temperature, tau=TAU, sigma=0.001).fit(task.labels, wild).score


def groups(task: Task, wild: Array, temperature: float, ratio: float = 0.12) -> Score:
    """Tau stays, groups shrink to `ratio * K` words: 0.12 is the paper's |G| / K."""
    n_labels, n_wild = len(task.labels), len(wild)
    size = min(n_wild // 100, max(1, int(ratio * n_labels)))
    detector = Debiased(temperature=temperature, tau=TAU, sigma=0.0, n_groups=n_wild // size, policy="paper")
    return detector.fit(task.labels, wild).score


def groups_widest(task: Task, wild: Array, temperature: float) -> Score:
    """Tau stays, groups as large as a positive denominator admits: |G| <= K (1 - tau) / tau, here just below K."""
    return groups(task, wild, temperature, ratio=0.9)


def neglabel(task: Task, wild: Array, temperature: float) -> Score:
    """NegLabel on the same words: tau = 0."""
    return NegLabel(temperature=temperature).fit(task.labels, wild).score


POLICIES: dict[str, Callable[[Task, Array, float], Score]] = {
    "as printed, no guard": printed,
    "cap": cap,
    "groups of 0.12 K": groups,
    "groups of 0.9 K": groups_widest,
    "clamp": clamp,
    "clamp, log-odds": clamp_log_odds,
    "cap, sigma = 0.001": cap_with_noise,
    "cap, w = 2.27": cap_papers_weight,
    "tau = 0 (NegLabel)": neglabel,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=6, help="at most 6: 600 names in lists of 100")
    parser.add_argument("--corpus", default="wordnet")
    args = parser.parse_args()
    bench = read_bench(args.path)
    found = {size: measure(bench, size, args.draws, args.corpus) for size in SIZES}
    head = ["policy", *(f"K = {k}" for k in SIZES)]
    print(table(head, [[name, *(f"{v[i].mean():.2f}" for v in found.values())] for i, name in enumerate(POLICIES)]))
    short = np.mean([found[size] - found[size][1] for size in SHORT], axis=0)  # paired with cap; (policies, draws)
    error = short.std(axis=1, ddof=1) / np.sqrt(short.shape[1])
    rows = [[name, f"{short[i].mean():+.3f} ± {error[i]:.3f}"] for i, name in enumerate(POLICIES)]
    print(f"\nMinus `cap`, paired by draw, mean over K = {SHORT}: mean and standard error over draws\n")
    print(table(["policy", "difference in AUROC"], rows))


def measure(bench: Bench, size: int, n_draws: int, corpus: str) -> Array:
    """Mean AUROC over the OOD sets of each policy and draw, (n_policies, n_draws)."""
    columns = []
    for task in draw_apart(bench, size, n_draws):
        wild = wild_vectors(bench, task, "density", corpus)
        scores = [policy(task, wild, bench.encoder.temperature) for policy in POLICIES.values()]
        columns.append([100 * np.mean([a for a, _ in task.figures(score).values()]) for score in scores])
    print(f"K = {size} done", file=sys.stderr)
    return np.array(columns).T


if __name__ == "__main__":
    main()
