"""Train a text tower that says no, beside an encoder that stays as it is.

Photos and captions are encoded once; then only the new tower is in the loop. One process on one device: where the
authors gather the texts of several, a larger batch does the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import one_hot

from outword._version import __version__
from outword.base.arrays import read_arrays, write_arrays
from outword.base.cache import cache_dir
from outword.base.checks import number, whole_number
from outword.base.files import sha256_bytes, whole_file
from outword.base.reports import Report, Say, quiet
from outword.encoders import Encoder
from outword.errors import InputError, ParameterError
from outword_lab.encoders.clipn import to_file
from outword_lab.encoders.driven import text_tower
from outword_lab.encoders.text_tower import TextTower
from outword_lab.learning.captions import Pairs, encode_captions, read_captions
from outword_lab.learning.no_loss import no_loss

PROMPTS = 16  # that are learned; the tower is used with their mean
DECAY, BETAS, EPSILON = 0.2, (0.9, 0.98), 1e-6
WAY = 2  # how it is trained: to be raised when the same pairs give another tower, as killed runs must not go on then


@dataclass(frozen=True)
class Course:
    """How long, how fast and in what order it is trained; by default as published, but for the seed.

    Args:
        epochs: how often each pair is seen.
        batch: pairs that are compared with each other, at least 2; all of them where there are fewer.
        rate: of learning, at the beginning; it goes down to 0 by a cosine.
        seed: of the order of pairs and of the prompt that each is read with.
    """

    epochs: int = 10
    batch: int = 512
    rate: float = 3e-4
    seed: int = 0

    def check(self) -> None:
        """Raise if a number breaks its rule."""
        whole_number("epochs", self.epochs, most=100_000, hint="the published value is 10")
        whole_number("batch", self.batch, 2, hint="the published value is 512, on each of 4 GPUs")
        number("rate", self.rate, above=0, hint="the published value is 3e-4")
        whole_number("seed", self.seed, 0, hint="the default is 0")


@dataclass
class Trained:
    """A tower in the making: its weights and prompts, as leaves, and the mean loss of each epoch so far."""

    weights: dict[str, Tensor]
    prompts: Tensor
    losses: list[float]

    def leaves(self) -> dict[str, Tensor]:
        """All that is learned, by name."""
        return {**self.weights, "prompts": self.prompts}


def train_no(
    captions: Path,
    encoder: Encoder,
    output: Path,
    course: Course | None = None,
    report: Report = quiet,
    tell: Say = quiet,
) -> Pairs:
    """Train a tower on photos with captions, and write it; `clipn:OUTPUT` is then an encoder.

    Args:
        captions: JSON lines (see `read_captions`).
        encoder: whose text tower it begins as. It must be CLIP's, and stays as it is.
        output: the file to write, FILE.safetensors.
        course: how long, how fast and in what order.
        report: called with (task, done, total) during long work.
        tell: called with a line after each epoch.
    """
    course = course or Course()
    course.check()
    if output.suffix != ".safetensors" or not output.absolute().parent.is_dir():
        raise ParameterError(
            f"the output must be FILE.safetensors in a folder that exists, got {output}", hint="name one"
        )
    if "no" in encoder.offers:
        raise ParameterError(f"{encoder.name} can say no already", hint="name the encoder that it was made of")
    text_tower(encoder)  # raises where there is none, before photos are read
    pairs = encode_captions(encoder, read_captions(captions), report)
    trained = train(encoder, pairs, course, report, tell)
    weights, facts = to_file(encoder, trained.weights, trained.prompts)
    facts["training"] = {**asdict(course), "pairs": len(pairs.texts), "losses": trained.losses, "outword": __version__}
    with whole_file(output) as temporary:
        save_file(weights, temporary, {"no": json.dumps(facts)})
    _kept(encoder, pairs, course).unlink(missing_ok=True)
    return pairs


def train(encoder: Encoder, pairs: Pairs, course: Course, report: Report = quiet, tell: Say = quiet) -> Trained:
    """Train on pairs that are encoded; a run that was killed goes on after its last whole epoch."""
    total = len(pairs.texts)
    if total < 2:
        raise InputError(
            f"there must be at least 2 photos with captions that can be read, got {total}", hint="add some"
        )
    tower = text_tower(encoder).to(torch.float32)
    trained = Trained(
        {key: weight.clone().requires_grad_() for key, weight in sorted(tower.weights.items())},
        torch.zeros(PROMPTS, tower.context, tower.width, device=tower.device, requires_grad=True),
        [],
    )
    wide, narrow = (
        [leaf for leaf in trained.leaves().values() if (leaf.ndim > 1) == is_wide] for is_wide in (True, False)
    )
    groups = [{"params": wide, "weight_decay": DECAY}, {"params": narrow, "weight_decay": 0.0}]  # norms and biases
    optimiser = torch.optim.AdamW(groups, lr=course.rate, betas=BETAS, eps=EPSILON)
    kept = _kept(encoder, pairs, course)
    _go_on(kept, trained, optimiser)
    batches = _Batches(encoder, tower, pairs, min(course.batch, total))
    for epoch in range(len(trained.losses), course.epochs):
        losses = []
        for step, batch in enumerate(batches.epoch([course.seed, epoch])):
            _set_rate(optimiser, course.rate, (epoch + step / batches.count) / course.epochs)
            losses.append(_step(replace(tower, weights=trained.weights), trained.prompts, batch, optimiser, course))
            report("training", epoch * total + min(total, (step + 1) * batches.size), course.epochs * total)
        trained.losses.append(float(np.mean(losses)))
        tell(f"epoch {epoch + 1} of {course.epochs}: loss {trained.losses[-1]:.4f}")
        _keep(kept, trained, optimiser)
    return trained


@dataclass(frozen=True)
class _Batch:
    """Pairs that are compared with each other."""

    images: Tensor  # (N, dim)
    yes: Tensor  # (N, dim)
    ids: Tensor  # (N, length), tokens up to the longest end
    ends: Tensor  # (N,)
    prompts: Tensor  # (N,), which prompt each is read with; the last is the mean
    said: Tensor  # (N, N), whether the text of a column is a caption of the image of a row
    scale: float


class _Batches:
    """The pairs on the tower's device, in an order of their own for each epoch; a rest waits for the next one."""

    def __init__(self, encoder: Encoder, tower: TextTower, pairs: Pairs, size: int) -> None:
        self.size, self.count, self.device = size, len(pairs.texts) // size, tower.device
        self.scale = 1 / encoder.temperature
        texts = list(dict.fromkeys(pairs.texts))
        self._n_texts = len(texts)
        number_of = {text: place for place, text in enumerate(texts)}
        self.photos, self.texts = pairs.photos, np.array([number_of[text] for text in pairs.texts], np.intp)
        self._said = np.unique(self._pairs(self.photos, self.texts))
        self.images, self.yes = self._moved(pairs.vectors), self._moved(encoder.encode_texts(texts))
        ids = tower.tokenize(texts)
        self.ends = tower.ends(ids)
        self.ids = ids[:, : int(self.ends.max()) + 1]

    def epoch(self, seed: list[int]) -> Iterator[_Batch]:
        """All batches of an epoch; what is drawn depends on the seed alone."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.photos))[: self.count * self.size]
        for rows in order.reshape(self.count, self.size):
            photos, texts, ends = self.photos[rows], self.texts[rows], self.ends[self.texts[rows]]
            yield _Batch(
                self.images[self._moved(photos)],
                self.yes[self._moved(texts)],
                self._moved(self.ids[texts, : int(ends.max()) + 1]),
                self._moved(ends),
                self._moved(rng.integers(PROMPTS + 1, size=self.size)),
                self._moved(self._are_said(photos[:, None], texts)),
                self.scale,
            )

    def _pairs(self, photos: NDArray[np.intp], texts: NDArray[np.intp]) -> NDArray[np.intp]:
        """A number for each pair of a photo and a text."""
        return photos * self._n_texts + texts

    def _are_said(self, photos: NDArray[np.intp], texts: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each text is a caption of each photo; `np.isin` would sort the pairs of all photos for each batch."""
        wanted = self._pairs(photos, texts)
        place = np.searchsorted(self._said, wanted).clip(max=len(self._said) - 1)
        return np.asarray(self._said[place] == wanted)

    def _moved(self, rows: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)


def _step(tower: TextTower, prompts: Tensor, batch: _Batch, optimiser: Any, course: Course) -> float:
    """One step; gives the loss before it."""
    each = torch.cat([prompts, prompts.mean(dim=0, keepdim=True)])
    try:
        chosen = one_hot(batch.prompts, len(each)).to(each.dtype)  # a product, whose gradient sums in a fixed order
        added = (chosen @ each.flatten(1)).view(-1, *each.shape[1:])
        own = tower.embed(batch.ids) + added[:, : batch.ids.shape[1]]
        no = tower.read(own.new_zeros(0, tower.width), (own, batch.ends))
        loss = no_loss(batch.images, batch.yes, no, batch.scale, batch.said)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
    except torch.OutOfMemoryError:
        told = f"{tower.device} has not enough memory for {len(batch.images)} captions at a time"
        raise ParameterError(told, hint="lower --batch") from None
    if not math.isfinite(value := loss.item()):
        raise ParameterError(f"the loss is {value} at a rate of {course.rate:g}", hint="lower --rate, or raise --batch")
    optimiser.step()
    return value


def _set_rate(optimiser: Any, rate: float, done: float) -> None:
    """The rate after so much of the whole: a cosine from the first value to 0."""
    for group in optimiser.param_groups:
        group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * done))


def _kept(encoder: Encoder, pairs: Pairs, course: Course) -> Path:
    """Where a run is kept until it is done: by all that it depends on."""
    parts = [WAY, encoder.fingerprint, sha256_bytes(pairs.vectors.tobytes()), pairs.photos.tolist(), pairs.texts]
    key = sha256_bytes(json.dumps([*parts, asdict(course)]).encode())
    return cache_dir() / "no" / f"{key}.safetensors"


def _keep(path: Path, trained: Trained, optimiser: Any) -> None:
    """Keep what was learned, and the optimiser's moments."""
    arrays = {"losses": np.array(trained.losses)}
    for name, leaf in trained.leaves().items():
        state = optimiser.state[leaf]
        parts = {
            "value": leaf.detach(),
            "first": state["exp_avg"],
            "second": state["exp_avg_sq"],
            "step": state["step"],
        }
        arrays |= {f"{part} {name}": np.ascontiguousarray(tensor.cpu().numpy()) for part, tensor in parts.items()}
    write_arrays(path, arrays)


@torch.no_grad()
def _go_on(path: Path, trained: Trained, optimiser: Any) -> None:
    """Take what a killed run left, if it left anything."""
    found = read_arrays(path)
    if found is None:
        return
    trained.losses = found["losses"].tolist()
    for name, leaf in trained.leaves().items():
        value, first, second, step = (
            torch.from_numpy(found[f"{p} {name}"]) for p in ("value", "first", "second", "step")
        )
        leaf.copy_(value)
        moved = {"exp_avg": first.to(leaf.device), "exp_avg_sq": second.to(leaf.device)}
        optimiser.state[leaf] = {"step": step, **moved}
