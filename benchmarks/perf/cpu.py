"""Scoring and mining with numpy on the CPU, beside the bare product, plain numpy, plain torch and the released way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType

import numpy as np

from baselines import released
from outword.detectors import Debiased
from outword.maths.kernels.numpy_blas import Bank
from outword.maths.kernels.numpy_mining import BLOCK_ROWS, neighbour_density
from outword.maths.numerics import unit_rows
from perf.cores import one_core, peak_mb, resident_mb
from perf.tables import Goal, Table, times

IMAGES, LABELS, GROUPS, SIZE, ALPHA, TEMPERATURE = 10_000, 1000, 100, 120, 100, 0.01
OFFSETS = np.cumsum([0, LABELS, LABELS, *[SIZE] * GROUPS])  # labels, positives, groups of wild words
RELEASED_IMAGES = 250  # the loop is timed on so many, and scaled
FEW_WORDS, WORDS = 20_000, 70_000
CLOSE = "at most 1.15 times the bare product, "


def run(device: str) -> Iterator[Table]:
    """The tables of the CPU; none for other devices."""
    if device == "cpu":
        ceilings = peaks()
        yield Table("Ceilings of the processor", [{"": name, "measured": text} for name, (_, text) in ceilings.items()])
        yield scoring(512, ceilings)
        yield scoring(768, ceilings)
        yield one_image()
        yield in_company()
        yield memory()
        few = mining()
        yield few
        yield mining_large(few)


def peaks(n: int = 4096) -> dict[str, tuple[float, str]]:
    """Operations a second of large products, and bytes a second of a copy, read and written."""
    found = {}
    for kind in ("float32", "float64"):
        a, b = (np.random.default_rng(seed).standard_normal((n, n)).astype(kind) for seed in (0, 1))
        rate = 2 * n**3 / (1e-3 * times({"": lambda a=a, b=b: a @ b}, rounds=3)[""])
        found[kind] = rate, f"{rate / 1e9:,.0f} GFLOP/s, product of two random {n} x {n} matrices"
    source, target = np.ones(1 << 27, np.float32), np.empty(1 << 27, np.float32)
    rate = 2 * source.nbytes / (1e-3 * times({"": lambda: np.copyto(target, source)}, rounds=3)[""])
    return {**found, "memory": (rate, f"{rate / 1e9:.1f} GB/s, copy of 0.5 GB on one core, read and written")}


def scoring(dim: int, ceilings: Mapping[str, tuple[float, str]]) -> Table:
    """10,000 images against 14,000 texts."""
    import torch

    x, u = texts_and_images(IMAGES, OFFSETS[-1], dim)
    x32, u32 = x.astype(np.float32), u.astype(np.float32)
    tx, tu = torch.from_numpy(x32), torch.from_numpy(u32)
    quick, exact = (Bank(u, OFFSETS, temperature=TEMPERATURE, precision=p) for p in ("float32", "float64"))
    some, y, groups = tx[:RELEASED_IMAGES], tu[:LABELS], tu[2 * LABELS :].reshape(GROUPS, SIZE, dim)
    out32, out64 = np.empty((IMAGES, len(u)), np.float32), np.empty((IMAGES, len(u)))
    part = times({"released": lambda: released.score(some, y, groups, tau=0)}, rounds=3)["released"]
    runs = {
        "plain numpy, float32": lambda: plain_numpy(x32, u32),
        "plain torch, float32": lambda: plain_torch(tx, tu),
        "bare product, float32": lambda: np.matmul(x32, u32.T, out=out32),
        "bare product, float64": lambda: np.matmul(x, u.T, out=out64),
        "ours, float32": lambda: score(quick.log_masses(x32)),
        "ours, float64": lambda: score(exact.log_masses(x)),
        "Debiased.score with noise, float64": lambda: detector.score(x32),
    }
    detector = Debiased(sigma=0.001).fit(labels=u[:LABELS], wild=u[2 * LABELS :])
    took = {"released loop, torch float32": part * IMAGES / RELEASED_IMAGES} | times(runs, rounds=5)
    head = slice(0, 500)
    wanted = plain_numpy(x[head], u)
    errors = {
        "released loop, torch float32": released.score(tx[head], y, groups, tau=0).numpy() - wanted,
        "plain numpy, float32": plain_numpy(x32[head], u32) - wanted,
        "plain torch, float32": plain_torch(tx[head], tu).numpy() - wanted,
        "ours, float32": score(quick.log_masses(x32[head])) - wanted,
        "ours, float64": score(exact.log_masses(x[head])) - wanted,
    }
    base = {kind: took[f"bare product, {kind}"] for kind in ("float32", "float64")}
    rows = [
        {
            "": name,
            "ms": ms,
            "times the bare product of its type": ms / base[name[-7:]],
            "time over floor": ms / (1e3 * 2 * IMAGES * len(u) * dim / ceilings[name[-7:]][0]),
            "largest error of the score": float(np.abs(errors[name]).max()) if name in errors else None,
        }
        for name, ms in took.items()
    ]
    ratios = {kind: took[f"ours, {kind}"] / base[kind] for kind in base}
    return Table(
        f"CPU scoring: {IMAGES:,} images x {len(u):,} texts, {GROUPS} groups of {SIZE}, d = {dim}",
        rows,
        [Goal(CLOSE + kind, f"{ratio:.2f} times", ratio <= 1.15) for kind, ratio in ratios.items()],
        f"The released loop is timed on {RELEASED_IMAGES} images and scaled. Floor: {2 * IMAGES * len(u) * dim:.2e} "
        "operations at the measured peak. Scores are NegLabel's, errors those of 500 images against float64 with the "
        "whole matrix.",
    )


def one_image() -> Table:
    """What a request of a server waits for."""
    x, u = texts_and_images(16, OFFSETS[-1], 512)
    banks = {p: Bank(u, OFFSETS, temperature=TEMPERATURE, precision=p) for p in ("float32", "float64")}
    detector = Debiased(sigma=0.001).fit(labels=u[:LABELS], wild=u[2 * LABELS :])
    runs = {f"log masses, {p}, {n} image{'s'[: n - 1]}": _call(banks[p], x[:n]) for p in banks for n in (1, 16)}
    runs["Debiased.score, 1 image"] = lambda: detector.score(x[:1])
    took = times(runs, rounds=30)
    slowest = max(took["log masses, float64, 1 image"], took["Debiased.score, 1 image"])
    return Table(
        f"CPU scoring: few images, {OFFSETS[-1]:,} texts, d = 512",
        [{"": name, "ms": ms} for name, ms in took.items()],
        [Goal("one image in less than 10 ms", f"{slowest:.1f} ms", slowest < 10)],
    )


def in_company() -> Table:
    """Several callers at once, and processes that were given one core."""
    x, u = texts_and_images(2000, OFFSETS[-1], 512)
    bank = Bank(u, OFFSETS, temperature=TEMPERATURE)
    with ThreadPoolExecutor(4) as callers:
        took = times(
            {
                "4 calls, one after the other": lambda: [bank.log_masses(x) for _ in range(4)],
                "4 calls from 4 threads": lambda: list(callers.map(bank.log_masses, [x] * 4)),
            },
            rounds=5,
        )
    first, second = took.values()
    rows = [{"": name, "ms": ms, "ratio": ms / first} for name, ms in took.items()]
    goals = [
        Goal("4 threads at once take at most 1.1 times as long", f"{second / first:.2f} times", second <= 1.1 * first)
    ]
    for name, held in {"OMP_NUM_THREADS=1": nullcontext, "held on one core": one_core}.items():
        with held():
            found = _elsewhere("alone", {"OMP_NUM_THREADS": "1"} if held is nullcontext else {})
        ratio = found["ours"] / found["bare"]
        rows.append({"": f"one call, {name}", "ms": found["ours"], "ratio": ratio})
        goals.append(Goal(f"{CLOSE}{name}", f"{ratio:.2f} times, with {found['threads']} threads", ratio <= 1.15))
    return Table(
        "CPU scoring in company: 2,000 images a call, float64, d = 512",
        rows,
        goals,
        "The ratio is to the first row; in the last two, processes of their own, to the bare product there.",
    )


def alone() -> dict[str, float]:
    """Ours and the bare product in this process."""
    from outword.maths.kernels.threads import workers

    x, u = texts_and_images(2000, OFFSETS[-1], 512)
    bank, out = Bank(u, OFFSETS, temperature=TEMPERATURE), np.empty((2000, len(u)))
    runs = {"ours": lambda: bank.log_masses(x), "bare": lambda: np.matmul(x, u.T, out=out)}
    return times(runs, rounds=5) | {"threads": workers()}


def memory() -> Table:
    """Peak memory beyond images, texts and results."""
    rows = []
    for n_images in (IMAGES, 4 * IMAGES):
        x, u = texts_and_images(n_images, OFFSETS[-1], 512)
        for precision in ("float32", "float64"):
            bank = Bank(u, OFFSETS, temperature=TEMPERATURE, precision=precision)
            tracemalloc.start()
            found = bank.log_masses(x)
            extra = (tracemalloc.get_traced_memory()[1] - found.nbytes) / 1e6
            tracemalloc.stop()
            whole = n_images * len(u) * found.itemsize / 1e6
            rows.append({"": f"{n_images:,} images, {precision}", "extra MB": extra, "the whole matrix, MB": whole})
    growth = rows[3]["extra MB"] / rows[1]["extra MB"]
    return Table(
        "CPU scoring: memory beyond images, texts and results, d = 512",
        rows,
        [Goal("memory does not grow with the images", f"{growth:.2f} times for 4 times the images", growth < 1.1)],
    )


def mining() -> Table:
    """20,000 words, with every baseline."""
    import torch

    words = corpus(FEW_WORDS)
    tensor, double = torch.from_numpy(words), unit_rows(words)
    runs = {
        "released: T x T, torch float32": lambda: released.rep(tensor, ALPHA),
        "plain numpy: T x T, partition, float32": lambda: np.partition(words @ words.T, FEW_WORDS - ALPHA - 1, axis=1),
        "plain torch: blocks, topk, float32": lambda: [
            (tensor[i : i + 1024] @ tensor.T).topk(ALPHA + 1) for i in range(0, FEW_WORDS, 1024)
        ],
        "bare product, float32": lambda: product(words, FEW_WORDS),
        "bare product, float64": lambda: product(double, FEW_WORDS),
        "ours, exact in float64": lambda: neighbour_density(words, ALPHA),
    }
    took = times(runs, rounds=2)
    some = np.arange(0, FEW_WORDS, 100)
    cosines = double[some] @ double.T
    cosines[np.arange(len(some)), some] = -np.inf
    wanted = 2 * ALPHA - 2 * np.sort(cosines, axis=1)[:, -ALPHA:].sum(axis=1)
    error = float(np.abs(neighbour_density(words, ALPHA)[some] - wanted).max())
    base = took["bare product, float32"]
    return Table(
        f"CPU mining: {FEW_WORDS:,} words, alpha = {ALPHA}, d = 512",
        [{"": name, "ms": ms, "times the bare float32 product": ms / base} for name, ms in took.items()],
        [Goal("exact", f"off by {error:.1e} for {len(some)} words compared in float64", error < 1e-10)],
    )


def mining_large(few: Table) -> Table:
    """70,000 words: ours and the product, in a process of its own; the baselines scaled from fewer words."""
    found = _elsewhere("mine_large")
    double, single = found["float64"], found["float32"]
    scaled = {f"{row['']}, scaled": row["ms"] * (WORDS / FEW_WORDS) ** 2 for row in few.rows[:3]}
    rows = [{"": name, "ms": ms, "times the bare float32 product": ms / single} for name, ms in scaled.items()]
    rows += [
        {"": f"bare product, {kind}", "ms": found[kind], "times the bare float32 product": found[kind] / single}
        for kind in ("float32", "float64")
    ]
    ours = found["ours"]
    rows.append({"": "ours, exact in float64", "ms": ours, "times the bare float32 product": ours / single})
    reached = f"{ours / single:.2f} times the float32 product, {ours / double:.2f} times the float64 product"
    return Table(
        f"CPU mining: {WORDS:,} words, alpha = {ALPHA}, d = 512",
        rows,
        [
            Goal("at most 1.6 times the bare product", reached, ours <= 1.6 * single),
            Goal("less than 512 MB extra", f"{found['extra']:.0f} MB", found["extra"] < 512),
        ],
        "Ours and the products in turns, twice. The product, of all words with all, is timed on a tenth of the rows "
        f"and scaled; ours computes one triangle of it. Baselines are those of {FEW_WORDS:,} words times 12.25; T x T "
        "in float32 would take 20 GB. Extra memory is the growth of the process's peak.",
    )


def mine_large() -> dict[str, float]:
    """Milliseconds of ours and of the bare products, and how many MB the peak of this process grew."""
    words, some = corpus(WORDS), WORDS // 10
    neighbour_density(words[:5000], ALPHA)
    before, kinds = resident_mb(), ("float32", "float64")
    first = seconds_of(lambda: neighbour_density(words, ALPHA))
    extra = peak_mb() - before
    products = {kind: product(words.astype(kind, copy=False), some) * WORDS / some for kind in kinds}
    second = seconds_of(lambda: neighbour_density(words, ALPHA))
    again = {kind: product(words.astype(kind, copy=False), some) * WORDS / some for kind in kinds}
    means = {kind: 1e3 * (products[kind] + again[kind]) / 2 for kind in kinds}
    return {"ours": 1e3 * (first + second) / 2, "extra": extra, **means}


def seconds_of(run) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def product(words: np.ndarray, n_rows: int) -> float:
    """Seconds for the product of the first rows with all."""
    out = np.ones((BLOCK_ROWS, len(words)), words.dtype)  # written once already: no page is new

    def multiply() -> None:
        for start in range(0, n_rows, BLOCK_ROWS):
            rows = words[start : min(start + BLOCK_ROWS, n_rows)]
            np.matmul(rows, words.T, out=out[: len(rows)])

    return seconds_of(multiply)


def texts_and_images(n_images: int, n_texts: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with cosines like CLIP's: texts are alike (about 0.7), images are far from them (about 0.2)."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(dim)
    texts = unit_rows(1.5 * common + rng.standard_normal((n_texts, dim)))
    own = texts[rng.integers(0, n_texts, n_images)] * np.sqrt(dim)
    return unit_rows(0.1 * common + 0.2 * own + rng.standard_normal((n_images, dim))), texts


def corpus(n_words: int) -> np.ndarray:
    """Unit float32 words in 2,000 clusters, alike as CLIP's texts are."""
    rng = np.random.default_rng(0)
    words = rng.standard_normal((2000, 512), dtype=np.float32)[rng.integers(0, 2000, n_words)]
    for start in range(0, n_words, BLOCK_ROWS):
        rows = words[start : start + BLOCK_ROWS]
        rows += rng.standard_normal(rows.shape, dtype=np.float32) + np.float32(2)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return words


def score(masses: np.ndarray) -> np.ndarray:
    """NegLabel's score from log masses."""
    return (1 / (1 + np.exp(masses[:, 2:] - masses[:, :1]))).mean(axis=1)


def plain_numpy(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """One product, one matrix of exponentials, one sum a group."""
    return score(np.log(np.add.reduceat(np.exp(x @ u.T / TEMPERATURE), OFFSETS[:-1], axis=1)))


def plain_torch(x, u):
    """The same in torch."""
    masses = (x @ u.T / TEMPERATURE).exp()
    inside, wild = masses[:, :LABELS].sum(1), masses[:, 2 * LABELS :].view(len(x), GROUPS, SIZE).sum(2)
    return (inside[:, None] / (inside[:, None] + wild)).mean(1)


def _call(bank: Bank, images: np.ndarray):
    return lambda: bank.log_masses(images)


def _elsewhere(function: str, settings: Mapping[str, str] = MappingProxyType({})) -> dict[str, float]:
    """What a function of this module returns in a new process with these variables."""
    code = f"import json; from perf import cpu; print(json.dumps(cpu.{function}()))"
    here = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, env=os.environ | settings, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)
