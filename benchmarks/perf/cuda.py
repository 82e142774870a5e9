"""Scoring on a CUDA device, beside the released algorithm, plain torch and the bare product."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch
from triton.testing import do_bench

from baselines import released
from outword.detectors import Debiased
from outword.kernels import using
from outword.maths.kernels.choice import Choice
from outword.maths.methods.grouped import Groups
from perf.tables import Goal, Table

N_IMAGES, N_LABELS, N_WORDS, N_GROUPS = 60_000, 1000, 12_000, 100
TEMPERATURE, TAU = 0.01, 0.5


def run(device: str) -> Iterator[Table]:
    """Tables of a CUDA device; none for the CPU."""
    if device != "cuda":
        return
    peak, bandwidth = ceilings()
    yield Table(
        "Ceilings of the device",
        [
            {"": "product of two random 8192 x 8192 matrices in fp16", "measured": f"{peak / 1e12:,.0f} TFLOP/s"},
            {"": "copy of 4 GB, bytes read and written", "measured": f"{bandwidth / 1e12:.2f} TB/s"},
        ],
    )
    for dim in (512, 768):
        yield from scoring(dim, peak)


def ceilings() -> tuple[float, float]:
    """Operations and bytes a second."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    big = torch.empty(2**31, dtype=torch.float16, device="cuda")
    other = torch.empty_like(big)
    return 2 * 8192**3 / (1e-3 * median(lambda: a @ b)), 2 * big.nbytes / (1e-3 * median(lambda: other.copy_(big)))


def median(run) -> float:
    """Milliseconds on the device."""
    return do_bench(run, warmup=25, rep=150, return_mode="median")


def medians(runs, rounds: int = 3) -> dict[str, float]:
    """Milliseconds on the device of each run; they take turns, since clocks change as the device gets warm."""
    spent = [{name: median(run) for name, run in runs.items()} for _ in range(rounds)]
    return {name: float(np.median([turn[name] for turn in spent])) for name in runs}


def product(a: torch.Tensor, b: torch.Tensor):
    """`a @ b.T`, written to memory that is there already."""
    out = torch.empty((len(a), len(b)), dtype=a.dtype, device=a.device)
    return lambda: torch.matmul(a, b.T, out=out)


def world(dim: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, labels and words that lie like CLIP's: texts alike, images alike, half of the images near a label.

    Two texts have a cosine of .75, two images .5, an image and a text .3, an ID image and its label about .45.
    """
    generator = torch.Generator(device="cuda").manual_seed(0)

    def unit(rows: torch.Tensor) -> torch.Tensor:
        return rows / rows.norm(dim=1, keepdim=True)

    def around(n: int, centre: torch.Tensor, share: float) -> torch.Tensor:
        own = unit(torch.randn(n, dim, generator=generator, device="cuda"))
        return unit(share**0.5 * centre + (1 - share) ** 0.5 * own)

    centre = unit(torch.randn(2, dim, generator=generator, device="cuda"))
    text_centre = unit(0.5 * centre[:1] + 0.75**0.5 * centre[1:])
    texts = around(N_LABELS + N_WORDS, text_centre, 0.75)
    images = around(N_IMAGES, centre[:1], 0.5)
    shown = torch.randint(0, N_LABELS, (N_IMAGES // 2,), generator=generator, device="cuda")
    images[: N_IMAGES // 2] += 0.25 * texts[shown]
    return unit(images), texts[:N_LABELS], texts[N_LABELS:]


def scoring(dim: int, peak: float) -> Iterator[Table]:
    """All ways to score, one image, and images that come from the computer's memory."""
    x, y, u = world(dim)
    half = x.half()
    detectors = {
        sigma: Debiased(sigma=sigma, policy="paper").fit(y.cpu().numpy(), u.cpu().numpy()) for sigma in (0, 0.001)
    }
    groups: Groups = detectors[0].groups_
    in_groups = u[torch.as_tensor(groups, device="cuda")]
    texts = torch.cat([y, y, in_groups.flatten(0, 1)])
    columns = {0: texts[N_LABELS:].half(), 0.001: texts.half()}  # what the labels are compared with twice, for noise
    wanted = {sigma: on_device(d, Choice("torch-cuda", "float64"), x) for sigma, d in detectors.items()}
    exactly, halved = Choice("triton", "float32"), Choice("triton", "float16")
    runs = {
        "released loop, fp32": (lambda: released.score(x, y, in_groups, TAU, TEMPERATURE), 0),
        "plain torch, one product, fp32": (lambda: plain(x, y, in_groups), 0),
        "plain torch, one product, tf32": (lambda: with_tf32(lambda: plain(x, y, in_groups)), 0),
        "plain torch, one product, fp16": (lambda: plain(half, y.half(), in_groups.half()), 0),
        "ours, torch, float64": (lambda: on_device(detectors[0], Choice("torch-cuda", "float64"), x), 0),
        "ours, Triton, float32": (lambda: on_device(detectors[0], exactly, x), 0),
        "ours, Triton, float16": (lambda: on_device(detectors[0], halved, half), 0),
        "bare product, fp16, 13,000 columns": (product(half, columns[0]), None),
        "with noise: ours, Triton, float32": (lambda: on_device(detectors[0.001], exactly, x), 0.001),
        "with noise: ours, Triton, float16": (lambda: on_device(detectors[0.001], halved, half), 0.001),
        "with noise: bare product, fp16, 14,000 columns": (product(half, columns[0.001]), None),
    }
    took = medians({name: r for name, (r, _) in runs.items()})
    errors = {name: float((r() - wanted[s]).abs().max()) for name, (r, s) in runs.items() if s is not None}
    loop, floors = took["released loop, fp32"], {}
    rows = []
    for name, t in took.items():
        noisy = name.startswith("with noise")
        bare = next(took[other] for other in took if "bare" in other and other.startswith("with noise") == noisy)
        floors[noisy] = 1e3 * 2 * N_IMAGES * len(columns[0.001 if noisy else 0]) * dim / peak
        rows.append(
            {
                "": name,
                "ms": t,
                "times quicker than the loop": loop / t,
                "speed of the bare product": bare / t,
                "time over floor": t / floors[noisy],
                "max score error": errors.get(name),
            }
        )
    speeds = [100 * row["speed of the bare product"] for row in rows if "Triton, float16" in row[""]]
    half_errors, exact_errors = ([errors[n] for n in errors if f"Triton, float{b}" in n] for b in (16, 32))
    quicker = loop / took["ours, Triton, float16"]
    yield Table(
        f"Scoring {N_IMAGES:,} images against {N_LABELS:,} labels and {N_WORDS:,} words, d = {dim}",
        rows,
        [
            Goal("at least 250 times the released loop", f"{quicker:.0f}", quicker >= 250),
            *(
                Goal(f"{aim}, {how} noise", found(values[i]), met(values[i]))
                for i, how in enumerate(("without", "with"))
                for aim, values, found, met in (
                    ("at least 80 % of the bare product's speed", speeds, "{:.0f} %".format, lambda v: v >= 80),
                    ("score error of float16 at most 2e-4", half_errors, "{:.1e}".format, lambda v: v <= 2e-4),
                    ("score error of float32 at most 1e-6", exact_errors, "{:.1e}".format, lambda v: v <= 1e-6),
                )
            ),
        ],
        f"From vectors to scores, both on the device, {N_GROUPS} groups. The released code adds no noise to labels; "
        f"the paper's text does (sigma = 0.001), and {N_LABELS:,} more texts are compared with. Floors "
        f"{floors[False]:.2f} and {floors[True]:.2f} ms: the products at the measured peak. Bytes are no limit: "
        f"{(half.nbytes + columns[0].nbytes) / 1e6:.0f} MB in, {8 * N_IMAGES / 1e6:.1f} MB out.",
    )
    yield one_image(detectors[0.001], x)
    yield from_memory(detectors[0.001], x)


def on_device(detector: Debiased, choice: Choice, images: torch.Tensor) -> torch.Tensor:
    """Scores that stay on the device: what `Debiased.score` does but for the copy to the computer's memory."""
    return detector._combine(detector._bank(choice).log_masses(images))


def plain(images: torch.Tensor, labels: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Eq. 18 without noise the way one writes it down in torch: one product, and the whole matrix in memory."""
    logits = (images @ torch.cat([labels, groups.flatten(0, 1)]).T).float() / TEMPERATURE
    log_p = torch.logsumexp(logits[:, :N_LABELS], 1, keepdim=True)
    log_q = torch.logsumexp(logits[:, N_LABELS:].unflatten(1, groups.shape[:2]), 2)
    c = groups.shape[1] / ((1 - TAU) * N_LABELS)
    return (1 / (1 - c * TAU + torch.exp(log_q - log_p) / (1 - TAU))).mean(1)


def with_tf32(run):
    """With products in TF32."""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return run()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def one_image(detector: Debiased, images: torch.Tensor) -> Table:
    """One image: on the device alone, as a graph is replayed, and as a call from Python."""
    x = images[:1].contiguous()
    rows = []
    for precision in ("float16", "float32"):
        choice = Choice("triton", precision)
        on_device(detector, choice, x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            on_device(detector, choice, x)
        with using(*choice):
            called = wall(lambda: detector.score(x))
        rows.append(
            {"": precision, "on the device, us": 1e3 * median(graph.replay), "a call of score, us": 1e3 * called}
        )
    slowest = max(row["on the device, us"] for row in rows)
    return Table(
        f"One image, d = {images.shape[1]}",
        rows,
        [Goal("less than 100 us on the device", f"{slowest:.0f} us", slowest < 100)],
        "On the device: the whole chain, replayed as a CUDA graph. A call also prepares and launches it from Python.",
    )


def from_memory(detector: Debiased, images: torch.Tensor) -> Table:
    """Images that lie in the computer's memory as float32, scores in its memory."""
    x = images.cpu().numpy()
    rows = []
    for choice in (Choice("triton", "float16"), Choice("triton", "float32"), Choice("torch-cuda", "float64")):
        with using(*choice):
            rows.append({"": " ".join(choice), "ms": wall(lambda: detector.score(x))})
    return Table(
        f"The same from numpy arrays, d = {images.shape[1]}",
        rows,
        note=f"Most of it is the way of {x.nbytes / 1e6:.0f} MB to the device.",
    )


def wall(run, rounds: int = 7) -> float:
    """Median milliseconds of a call that ends with its result in the computer's memory."""
    spent = []
    for _ in range(rounds + 2):
        began = time.perf_counter()
        run()
        spent.append(1e3 * (time.perf_counter() - began))
    return float(np.median(spent[2:]))
