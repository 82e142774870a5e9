"""Questions about words: how they are mined, what the positives among them cost, and what tau and sigma do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.maths.methods import Debiased, MaxLogit
from outword.maths.mining import Density, Miner, Quantile, Random
from outword_lab.benchmark.found import Found, listed, paired, percent, side
from outword_lab.benchmark.world.lab import LENGTHS, Lab, List, exact_lists, the_list
from outword_lab.world.phrases import is_positive

GROUP = 20  # words of a group: tau = 0.5 is admitted for 25 labels
SIZES = (100, 300, 1000, 2500)  # how many words are mined
MANY = 2000
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75)  # of positives among the words
TAUS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SIGMAS = (0.001, 0.003, 0.01, 0.03, 0.1)
SEEDS = 5
Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]


def _debiased(lab: Lab, given: List, words: Rows, *, tau: float = 0.5, sigma: float = 0.0, **rest: int) -> Debiased:
    """The paper's method on some words, in groups of `GROUP` unless `rest` says otherwise."""
    settings: Any = {"n_groups": max(1, len(words) // GROUP), **rest}
    made = Debiased(temperature=lab.encoder.temperature, tau=tau, sigma=sigma, **settings)
    return made.fit(labels=lab.names(given.labels), wild=lab.words[words])


def _positives(lab: Lab, given: List) -> Flags:
    return np.array([is_positive(phrase, given.things) for phrase in lab.phrases])


def mining(lab: Lab) -> Found:
    """Density mining against random words and NegLabel's rule, and what the positives among the words cost."""
    rules: dict[str, Callable[[int], Miner]] = {
        "density": lambda size: Density(alpha=100, size=size),
        "quantile": lambda size: Quantile(share=size / len(lab.words)),
        "random": lambda size: Random(size=size),
    }
    rows, leads = [], dict[str, str]()
    for length in LENGTHS:
        for size in SIZES:
            ranks, shares = {name: [0.0][:0] for name in (*rules, "")}, {name: [0.0][:0] for name in rules}
            for given in exact_lists(length):
                positive = _positives(lab, given)
                chosen = {name: _select(lab, given, make(size)) for name, make in rules.items()}
                for name, words in chosen.items():
                    shares[name].append(float(positive[words].mean()))
                chosen[""] = np.random.default_rng(0).permutation(np.flatnonzero(~positive))[:size]
                for name, words in chosen.items():
                    ranks[name].append(lab.mean_rank(given, _debiased(lab, given, words).score))
            lead = leads[f"{length} labels, {size} words"] = paired(ranks["density"], ranks["random"])
            found = [f"{percent(ranks[name])} ({np.mean(shares[name]):.2f})" for name in rules]
            rows.append((str(length), str(size), *found, percent(ranks[""]), lead))
    ahead, behind = ([name for name, lead in leads.items() if side(lead) == sign] for sign in (1, -1))
    return Found(
        "mining",
        "Does density mining beat random words and NegLabel's, and when?",
        (
            *("labels", "words", *(f"{name} (share of positives)" for name in rules)),
            *("random, no positives", "density less random"),
        ),
        tuple(rows),
        (
            f"Density is ahead of random words at {listed(ahead)}, and behind at {listed(behind)}; elsewhere the "
            "interval has 0 in it. What positives among the words cost is the step to the column without them. The "
            "score is the paper's, in groups of 20 words; words that equal a label are kept, as there.",
        ),
    )


def _select(lab: Lab, given: List, rule: Miner) -> Rows:
    return np.asarray(rule.select(lab.words, labels=lab.names(given.labels)))


def tau(lab: Lab) -> Found:
    """The best tau against the known share of positives, and how near the corrected mean comes to that of negatives."""
    given, rows, best_of = the_list(), [], []
    positive = _positives(lab, given)
    equal = np.isin([phrase.text for phrase in lab.phrases], given.labels)
    pools = np.flatnonzero(positive & ~equal), np.flatnonzero(~positive)
    for share in SHARES:
        ranks, alone, errors = np.empty((SEEDS, len(TAUS))), [], []
        for seed in range(SEEDS):
            words = _with_share(pools, share, 1000, seed)
            made = [_debiased(lab, given, words, tau=value, seed=seed, n_groups=100) for value in TAUS]
            ranks[seed] = [lab.mean_rank(given, one.score) for one in made]
            alone.append(lab.mean_rank(given, _debiased(lab, given, words, tau=0.0, n_groups=1).score))
            errors.append(_errors(lab, given, words, positive[words], share))
        means = ranks.mean(axis=0)
        best_of.append(f"{TAUS[int(means.argmax())]:g}")
        at_share = percent(np.interp(share, TAUS, means)) if share <= TAUS[-1] else "not admitted"
        figures = percent(means[0]), at_share, percent(means.max())
        told = [f"{error:.2f}" for error in np.mean(errors, axis=0)]
        rows.append((f"{share:.2f}", best_of[-1], *figures, percent(alone), *told))
    return Found(
        "tau",
        "Is the best tau near the known share of positives?",
        (
            *("share of positives", "best tau", "AUROC at tau = 0", "at tau = share", "at the best"),
            *("one group, any tau", "error at tau = 0", "error at tau = share"),
        ),
        tuple(rows),
        (
            f"The best tau of {TAUS[0]:g} to {TAUS[-1]:g} is {', '.join(best_of)} for shares of "
            f"{', '.join(f'{share:g}' for share in SHARES)}. With one group, tau changes no order. The error is the "
            "median over ID photos of how far log((q - tau g) / (1 - tau)), the paper's estimate, lies from the log of "
            "the mean over the words that are no positives; it is without bound where q <= tau g.",
        ),
    )


def _with_share(pools: tuple[Rows, Rows], share: float, size: int, seed: int) -> Rows:
    """Words of which a known share are positives, in any order."""
    rng, n = np.random.default_rng(seed), round(share * size)
    chosen = [rng.permutation(pool)[:count] for pool, count in zip(pools, (n, size - n), strict=True)]
    return rng.permutation(np.concatenate(chosen))


def _errors(lab: Lab, given: List, words: Rows, positive: Flags, share: float) -> tuple[float, float]:
    """Median error of the log of the corrected mean, at tau = 0 and at the share of positives."""
    images, temperature = lab.inside(given).astype(np.float64), lab.encoder.temperature
    masses = np.exp(images @ lab.words[words].T / temperature)
    q, true = masses.mean(axis=1), masses[:, ~positive].mean(axis=1)
    g = np.exp(images @ lab.names(given.labels).T / temperature).mean(axis=1)

    def error(value: float) -> float:
        left = q - value * g
        kept = np.where(left > 0, left, 1.0)  # the logarithm is taken of all
        return float(np.median(np.where(left > 0, np.abs(np.log(kept / (1 - value) / true)), np.inf)))

    return error(0.0), error(share)


def sigma(lab: Lab) -> Found:
    """Noise on the positives against none."""
    given = the_list()
    words = _select(lab, given, Density(alpha=100, size=MANY))
    ranks = {
        value: [
            lab.mean_rank(given, _debiased(lab, given, words, sigma=value, seed=seed).score) for seed in range(SEEDS)
        ]
        for value in (0.0, *SIGMAS)
    }
    leads = {f"{value:g}": paired(ranks[value], ranks[0.0]) for value in SIGMAS}
    helps, hurts = ([value for value, lead in leads.items() if side(lead) == sign] for sign in (1, -1))
    rows = [(f"{value:g}", percent(ranks[value]), leads.get(f"{value:g}", "")) for value in ranks]
    return Found(
        "sigma",
        "Does sigma help at all?",
        ("sigma", "AUROC", "less sigma = 0"),
        tuple(rows),
        (f"It helps at {listed(helps)}, and hurts at {listed(hurts)}. {SEEDS} seeds, 25 labels, {MANY:,} words.",),
    )


def losses(lab: Lab) -> Found:
    """The paper's method by OOD set, beside MaxLogit, which looks at no word."""
    ranks: dict[str, dict[str, list[float]]] = {}
    lists = [given for length in (10, 25) for given in exact_lists(length)]
    for given in lists:
        words = _select(lab, given, Density(alpha=100, size=MANY))
        clean = words[~_positives(lab, given)[words]]
        ways = {
            "debiased": _debiased(lab, given, words).score,
            "debiased, no positives": _debiased(lab, given, clean).score,
            "maxlogit": MaxLogit().fit(labels=lab.names(given.labels)).score,
        }
        for way, score in ways.items():
            for one, rank in lab.ranked(given, score).items():
                ranks.setdefault(one, {}).setdefault(way, []).append(rank)
    leads = {one: paired(by_way["debiased"], by_way["maxlogit"]) for one, by_way in ranks.items()}
    lost, won = ([one for one, lead in leads.items() if side(lead) == sign] for sign in (-1, 1))
    return Found(
        "losses",
        "Where does the paper's method lose?",
        ("OOD set", *next(iter(ranks.values())), "debiased less maxlogit"),
        tuple((one, *map(percent, by_way.values()), leads[one]) for one, by_way in ranks.items()),
        (
            f"Against MaxLogit, which looks at no word, it loses on {listed(lost)}, and wins on {listed(won)}. "
            f"{len(lists)} lists by chance of 10 and 25 names, {MANY:,} words by density; those about labels compete, "
            "as in the paper, but for the column without them.",
        ),
    )
