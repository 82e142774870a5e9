"""Whether promised shares come true: p-values, what `outword tune` expects, and the leads of `outword bench`.

    python benchmarks/promises.py [--only p,tune,leads] [--trials 60] [--photos BENCH_MINI]

p: vectors of the reference that comes with `mini`, in halves. One half is the reference, and of the unrelated photos of
the other half the share with p <= a is counted; the mean of twenty halves, with its standard error. "without names"
takes the names of the reference away; "look-alikes left out" is how p was counted before.

tune: `outword tune` on vectors. A class is a direction beside that of its name, photos lie around it, other things lie
anywhere. How often are the true shares, counted on 4,000 new photos of either kind, in the 90 % intervals? 200 photos
of other things are given. With BENCH_MINI also vectors of `mini`, of which 20 or 50 are drawn, and the rest is new.

leads: methods whose true AUROC is known. How often do the 95 % intervals of all leads hold at once, by the bootstrap
alone, and with what the report makes of few seeds and of few photos that are ranked wrong?
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import read_bench, table
from outword.base.processors import usable_cpus
from outword.choosing.compare import Tried, applicable
from outword.choosing.photos import numbered
from outword.choosing.tune import OUTSIDE, Tuned, tune_vectors
from outword.detector.cuts import cut_by_reference
from outword.encoders import Encoder
from outword.encoders.base import Coverage, Pixels, Vectors
from outword.maths.numerics import Array, unit_rows
from outword.maths.reference import p_values
from outword.metrics import auroc
from outword.vectors.id_images import IdImages
from outword.vectors.names import name_vectors
from outword.vectors.reference import Reference
from outword.words.labels import check_labels
from outword.words.prompts import get_prompts
from outword_lab.benchmark.run.bootstrap import half_widths, resampled, seeds_resampled
from outword_lab.benchmark.show.summary import with_few_errors
from tune import drawn, lists
from verdicts import BROAD, make_task, read_photos

LEVELS = (0.01, 0.05, 0.1)
HALVES = 20
NAMES = (10, 100, 400)
SIZES = (20, 50, 100, 300)
CHOICE = ("maxlogit", "mcm", "energy", "knn", "vim", "mahalanobis")
METHODS = (("maxlogit",), ("knn",), ("mahalanobis",), CHOICE)
N_OTHERS, N_NEW = 200, 4000
STRENGTH = 0.6  # of what a photo shows, beside all else in it


# p-values


def p_rows() -> Iterator[list[str]]:
    """A row for each list of labels and each way to have a reference."""
    photos = read_photos()
    tasks = [(f"{len(labels)} broad names", labels) for labels in (BROAD[0].split(", "), BROAD[1].split(", "))]
    known = np.flatnonzero(photos.sets == "imagenet")
    for size in NAMES:
        chosen = np.random.default_rng(size).choice(known, size, replace=False)
        tasks.append((f"{size} names", list(dict.fromkeys(photos.reference.names[i] for i in chosen))))
    for name, labels in tasks:
        task = make_task(photos, labels, "grounded")
        found: dict[str, list[list[float]]] = {}
        for seed in range(HALVES):
            half = np.random.default_rng(seed).permutation(len(photos.sets)) < len(photos.sets) // 2
            given, scores = photos.part(half), task.scores[task.outside & ~half]
            named, nameless = (cut_by_reference(task.detector, one) for one in (given, _nameless(given)))
            ways = {
                "named": named.thresholds.p_values(scores),
                "without names": nameless.thresholds.p_values(scores),
                "without names, look-alikes left out": p_values(scores, nameless.thresholds.reference_scores),
            }
            for way, p in ways.items():
                found.setdefault(way, []).append([float((p <= level).mean()) for level in LEVELS])
        for way, shares in found.items():
            yield [name, way, *_with_errors(np.array(shares))]


def _nameless(reference: Reference) -> Reference:
    """The same photos, of which nobody says what they show."""
    nothing = ("",) * len(reference)
    return Reference(reference.vectors, nothing, nothing, reference.sets, reference.source)


def _with_errors(shares: Array) -> list[str]:
    """Means of columns, with standard errors."""
    errors = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    return [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(shares.mean(axis=0), errors, strict=True)]


# tune


class Made(Encoder):
    """Names in directions by chance, that of their hash; nothing is decoded."""

    name, dim, temperature, prompts = "made", 48, 0.1, "paper"
    min_side, batch_size, licence, source = 1, 1, "Apache-2.0", "benchmarks/promises.py"
    fingerprint = hashlib.sha256(b"made 1").hexdigest()

    def preprocess(self, image: Any) -> Pixels:
        """No photo is opened here."""
        raise NotImplementedError

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """No photo has pixels here."""
        raise NotImplementedError

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text."""
        seeds = [int(hashlib.sha256(text.encode()).hexdigest(), 16) for text in texts]
        rows = np.array([np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds])
        return unit_rows(rows.reshape(len(texts), self.dim)).astype(np.float32)

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """It knows the classes of these worlds, and a hundred names more."""
        known = {"cat", "dog"}
        return [Coverage(label, "known" if label in known else "unknown") for label in labels]


def tuned(
    encoder: Encoder, methods: Sequence[str], labels: Sequence[str], own: tuple[Array, Array], others: Array, tpr
) -> Tuned:
    """What the command makes of photos of the classes, with the class of each, and of other things."""
    inside = IdImages(own[0].astype(np.float32), own[1], dict.fromkeys(labels, 1), [])
    outside = numbered(OUTSIDE, others.astype(np.float32))
    recipes = applicable([Tried(method) for method in methods], encoder, id_images=inside)
    return tune_vectors(recipes, check_labels(labels), inside, outside, tpr=tpr)


def outcome(found: Tuned, inside: Array, outside: Array) -> list[float]:
    """Whether TPR and TNR of new photos are in the intervals, how wide these are, and how far off the values."""
    score, cut = found.detector.scorer.score, found.detector.threshold
    true = (score(inside) >= cut).mean(), (score(outside) < cut).mean()
    shares = found.tpr, found.tnr
    hits = [float(share.low <= own <= share.high) for share, own in zip(shares, true, strict=True)]
    wide = [share.high - share.low for share in shares]
    return [*hits, *wide, *(share.value - own for share, own in zip(shares, true, strict=True))]


def made_trial(methods: Sequence[str], size: int, tpr: float | None, seed: int) -> list[float]:
    """One draw of a world and of photos of it."""
    rng, encoder = np.random.default_rng([seed, size]), Made()
    labels = [f"class {seed} {number}" for number in range(3)]
    names = name_vectors(encoder, get_prompts(encoder.prompts), labels)
    beside = unit_rows(names + unit_rows(rng.standard_normal(names.shape)))

    def inside(n: int) -> tuple[Array, Array]:
        shown = np.arange(n) % len(labels)
        return unit_rows(STRENGTH * beside[shown] + anything(n) / np.sqrt(encoder.dim)), shown

    def anything(n: int) -> Array:
        return rng.standard_normal((n, encoder.dim))

    found = tuned(encoder, methods, labels, inside(size), unit_rows(anything(N_OTHERS)), tpr)
    return outcome(found, inside(N_NEW)[0], unit_rows(anything(N_NEW)))


def tune_rows(trials: int) -> Iterator[list[str]]:
    """A row for each choice of methods, number of photos and kind of threshold."""
    with ProcessPoolExecutor(usable_cpus()) as pool:
        for methods in METHODS:
            for size in SIZES:
                for tpr in (0.95, None):
                    found = [*pool.map(partial(made_trial, methods, size, tpr), range(trials), chunksize=5)]
                    name = methods[0] if len(methods) == 1 else f"the best of {len(methods)}"
                    yield [name, str(size), "balanced" if tpr is None else f"TPR {tpr:g}", *_outcomes(found)]


def photo_rows(root: Path, trials: int) -> Iterator[list[str]]:
    """The same on vectors of photos."""
    bench = read_bench(root)
    for one in lists(bench):
        others = np.concatenate([*one.outside.values()])
        for size in (20, 50):
            found = []
            for seed in range(trials):
                rng = np.random.default_rng([seed, size])
                (own, rest), (given, new) = drawn(rng, len(one.inside), size), drawn(rng, len(others), N_OTHERS)
                photos = one.inside[own], one.shown[own]
                told = tuned(bench.encoder, CHOICE, one.labels, photos, others[given], 0.95)
                found.append(outcome(told, one.inside[rest], others[new]))
            yield [f"{one.name}, the best of {len(CHOICE)}", str(size), "TPR 0.95", *_outcomes(found)]


def _outcomes(found: Sequence[Sequence[float]]) -> list[str]:
    cells = np.mean(found, axis=0)
    hits, wide, off = (f"{first:.2f} / {second:.2f}" for first, second in cells.reshape(3, 2))
    return [hits, wide, off.replace("-", "\N{MINUS SIGN}")]


# leads


SEEDED = ((2, 2), (2, 5), (5, 2), (5, 3), (5, 5), (5, 10))  # methods, seeds
NEAR = ((2, 0.5), (5, 0.5), (2, 1.0), (5, 1.0), (2, 2.0), (5, 2.0), (2, 5.0))  # methods, photos that are ranked wrong
N, SAMPLES, SEED_SPREAD = 300, 200, 0.15


def intervals(figures: Array, samples: Array, n: int) -> tuple[Array, Array]:
    """Half of the intervals of the first before each, without and with what is known of seeds and of few errors."""
    n_pairs = len(figures) * (len(figures) - 1) // 2
    plain, stretched = (np.stack([seeds_resampled(one, given) for one in samples]) for given in (None, n_pairs))
    first = int(figures.argmax())
    before, after = half_widths(plain)[first], half_widths(stretched)[first]
    pairs = zip(after.tolist(), figures.tolist(), strict=True)
    return before, np.array([with_few_errors(half, (own + figures[first]) / 2, n)[0] for half, own in pairs])


def holds(figures: Array, samples: Array, truth: Array, n: int) -> list[bool]:
    """Whether the intervals of all leads hold at once: by the bootstrap alone, and as the report has them."""
    first = int(figures.argmax())
    off = np.abs((figures[first] - figures) - (truth[first] - truth))
    return [bool((off <= half + 1e-12).all()) for half in intervals(figures, samples, n)]


def seeded_trial(n_methods: int, n_seeds: int, seed: int) -> list[bool]:
    """Methods that are equally good, where much depends on the seed."""
    rng = np.random.default_rng([seed, n_methods, n_seeds])
    shared, own = rng.standard_normal(2 * N), rng.standard_normal((n_methods, 2 * N))
    figures, samples = np.empty((n_methods, n_seeds)), np.empty((n_methods, n_seeds, SAMPLES))
    for place in np.ndindex(n_methods, n_seeds):
        scores = (shared + own[place[0]]) / np.sqrt(2)
        inside, outside = scores[:N] + rng.normal(1.5, 2 * SEED_SPREAD), scores[N:]
        figures[place] = auroc(inside, outside)
        samples[place] = resampled(inside, {"": outside}, n_samples=SAMPLES)[""][:, 0]
    return holds(figures.mean(axis=1), samples, np.zeros(n_methods), N)


def near_trial(n_methods: int, errors: float, seed: int) -> list[bool]:
    """Methods that rank few photos below all others; the first half as many as the rest, which have `errors`."""
    rng = np.random.default_rng([seed, n_methods, int(10 * errors)])
    rates = np.full(n_methods, errors / N)
    rates[0] /= 2
    figures, samples = np.empty(n_methods), np.empty((n_methods, 1, SAMPLES))
    for method, rate in enumerate(rates):
        inside = np.where(rng.random(N) < rate, 0.0, 2.0)
        figures[method] = auroc(inside, np.ones(N))
        samples[method, 0] = resampled(inside, {"": np.ones(N)}, n_samples=SAMPLES)[""][:, 0]
    return holds(figures, samples, 1 - rates, N)


def lead_rows(trials: int) -> Iterator[list[str]]:
    """A row for each number of methods, and of seeds or of photos that are ranked wrong."""
    with ProcessPoolExecutor(usable_cpus()) as pool:
        for methods, seeds in SEEDED:
            found = [*pool.map(partial(seeded_trial, methods, seeds), range(trials), chunksize=5)]
            yield [str(methods), f"{seeds} seeds, which matter much", *_shares(found)]
        for methods, errors in NEAR:
            found = [*pool.map(partial(near_trial, methods, errors), range(trials), chunksize=5)]
            yield [str(methods), f"1 seed, {errors:g} of {N} photos ranked wrong", *_shares(found)]


def _shares(found: Sequence[Sequence[bool]]) -> list[str]:
    return [f"{share:.2f}" for share in np.mean(found, axis=0)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="p,tune,leads")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--photos", type=Path)
    args = parser.parse_args()
    only, shares = args.only.split(","), ["in the interval: TPR / TNR", "width", "expected less true"]
    if "p" in only:
        print(table(["labels", "reference", *(f"p <= {level:g}" for level in LEVELS)], [*p_rows()]))
    if "tune" in only:
        print("\n" + table(["method", "photos", "threshold", *shares], [*tune_rows(args.trials)]))
    if "leads" in only:
        head = ["methods", "where", "bootstrap alone", "as the report has it"]
        print("\n" + table(head, [*lead_rows(args.trials)]))
    if args.photos:
        print("\n" + table(["labels", "photos", "threshold", *shares], [*photo_rows(args.photos, args.trials)]))


if __name__ == "__main__":
    main()
