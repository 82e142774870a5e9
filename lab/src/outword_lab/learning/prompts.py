"""The prompt learner: moves the tokens before names until the photos of the classes are told apart, by any loss.

A method (`outword_lab.learning.methods.prompted`) says which contexts there are, and in which stages they move by which
loss; the towers stay as they are, and the photos are vectors from the beginning on. What comes of it is small: the
contexts.
"""

from __future__ import annotations

import json
import math
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from outword.base.arrays import read_arrays, write_arrays
from outword.base.cache import cache_dir
from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError
from outword.vectors.id_images import IdImages
from outword_lab.encoders.driven import text_tower
from outword_lab.encoders.text_tower import TextTower
from outword_lab.learning.methods.prompted import Batch, Prompted, Stage
from outword_lab.learning.names import SMALL, Names
from outword_lab.learning.photos import Views, encode_views

SPREAD = 0.02  # of the numbers of a context that begins at random
SLOW = 1e-5  # the rate of the first epochs
KEEP = 10.0  # seconds after which it is written down how far the learning is
WAY = 2  # how it is learned: to be raised when the same task gives other contexts, as killed runs must not go on then
Contexts = Mapping[str, NDArray[np.float32]]  # (n_sets, tokens, width), or (n_sets, n_labels, tokens, width), by name


@dataclass(frozen=True)
class Task:
    """What prompts are learned for: the names of each label, words, photos of labels, and perhaps photos of words."""

    labels: Sequence[Sequence[str]]
    words: Sequence[str]
    photos: Sequence[IdImages]


@dataclass(frozen=True)
class Learned:
    """Contexts by name, the mean loss of the last epoch of each stage, and how long it took."""

    contexts: Contexts
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0


def learn(method: Prompted, encoder: Encoder, task: Task, report: Report = quiet) -> Learned:
    """Learn the contexts of a method; the same seed gives the same contexts on the same kind of machine.

    How far it is, is kept in the cache for the case that it is killed, and removed at the end.
    """
    started = time.perf_counter()
    folder = cache_dir() / "learning" / _key(method, encoder, task)
    learner = _Learner(method, encoder, task, folder / "state.safetensors", report)
    try:
        views = _views(method, encoder, task, folder, report)
        with threadpool_limits(1) if learner.small else nullcontext():
            losses = learner.run(views)
    except OutwordError:
        shutil.rmtree(folder, ignore_errors=True)  # it would be the same again
        raise
    contexts = {name: context.detach().float().cpu().numpy() for name, context in learner.contexts.items()}
    shutil.rmtree(folder, ignore_errors=True)
    return Learned(contexts, losses, time.perf_counter() - started)


@torch.no_grad()
def vectors_of(
    contexts: Contexts, encoder: Encoder, labels: Sequence[Sequence[str]], words: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    """What contexts make of labels and words, in float32: `labels`, `negatives` and `wild`, as methods are fitted."""
    tower = _tower(encoder).to(torch.float32)
    found = {}
    for name, context in contexts.items():
        if context.shape[-1] != tower.width:
            told = f"the context of {name} has tokens of {context.shape[-1]} numbers, and those of {encoder.name} have "
            raise InputError(f"{told}{tower.width}", hint="it belongs to another encoder")
        names = Names(tower, [[word] for word in words] if name == "wild" else labels, context.shape[-2])
        found[name] = _shown(name, names.vectors(torch.from_numpy(context).to(tower.device))).cpu().numpy()
    return found


def _tower(encoder: Encoder) -> TextTower:
    """The text tower, in float32 if its weights are, else in bfloat16: gradients in float16 would be lost."""
    tower = text_tower(encoder)
    return tower.to(torch.float32 if tower.dtype == torch.float32 else torch.bfloat16)


def _views(method: Prompted, encoder: Encoder, task: Task, folder: Path, report: Report) -> list[Views]:
    budget = getattr(method, "budget", None) if method.on_patches else None
    options: dict[str, Any] = {"crops": method.crops, "seed": method.seed, "budget": budget, "report": report}
    return [encode_views(encoder, some, folder / str(place), **options) for place, some in enumerate(task.photos)]


def _key(method: Prompted, encoder: Encoder, task: Task) -> str:
    """sha256 of all that the learning depends on."""
    photos = [some.fingerprint for some in task.photos]
    runs = [getattr(encoder, "precision", ""), str(getattr(encoder, "device", ""))]
    parts = [WAY, type(method).__name__, method.params(), encoder.fingerprint, runs, task.labels, task.words, photos]
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode())


class _Learner:
    """The contexts as they are, and the stages that move them."""

    def __init__(self, method: Prompted, encoder: Encoder, task: Task, state: Path, report: Report) -> None:
        self._method, self._task, self._state, self._report = method, task, state, report
        self._tower, self._scale = _tower(encoder), 1 / encoder.temperature
        self.device = self._tower.device
        self.contexts: dict[str, Tensor] = {}
        for name in method.contexts():
            self._begin(name)
        words = [[word] for word in task.words]
        self._names = {
            name: Names(self._tower, words if name == "wild" else task.labels, context.shape[-2])
            for name, context in self.contexts.items()
        }
        shown = [some.classes + place * len(task.labels) for place, some in enumerate(task.photos)]  # type: ignore[operator]
        classes = np.concatenate(shown)
        self._classes = self._tensor(classes)
        with_photos = max(len(task.labels), 1 + int(classes.max()))  # all labels, and the words that photos show
        named = [*(some[0] for some in task.labels), *task.words][:with_photos]
        texts = [template.replace("{}", name) for template in method.templates for name in named]
        self._plain = self._tensor(encoder.encode_texts(texts)).view(len(method.templates), len(named), -1)

    @property
    def small(self) -> bool:
        """Whether a step is so little work that threads would only wait for each other."""
        return sum(names.operations for names in self._names.values()) < SMALL

    def run(self, views: Sequence[Views]) -> list[float]:
        """Run the stages, or what is left of them, on photos; the mean loss of the last epoch of each."""
        self._images = torch.cat([self._tensor(np.asarray(view.vectors)) for view in views])
        self._patches = views[0].patches
        kept = read_arrays(self._state) or {}
        number, epoch = (int(kept.get(name, 0)) for name in ("stage", "epoch"))
        losses: list[float] = kept.get("losses", np.zeros(0)).tolist()
        for name in self.contexts.keys() & {key.removeprefix("context/") for key in kept}:
            self.contexts[name] = self._tensor(kept[f"context/{name}"])
        stages = self._method.stages()
        for place in range(number, len(stages)):
            if place > number or not epoch:
                for name in stages[place].moving:
                    self._begin(name)  # perhaps from what another context has become
            found = self._stage(place, stages[place], epoch if place == number else 0, losses, kept)
            losses.append(found)
        return losses

    def _begin(self, name: str) -> None:
        """Set a context as it begins, (n_sets, tokens, width), or for each label (n_sets, n_labels, tokens, width)."""
        places = list(self._method.contexts())
        context, rng = self._method.contexts()[name], np.random.default_rng([self._method.seed, places.index(name)])
        if context.start in self.contexts:
            first = self.contexts[context.start][0]
        elif context.start:
            ids = self._tower.tokenize([context.start])
            first = self._tower.embed(self._tensor(ids[0, 1 : int(self._tower.ends(ids)[0])])).float()
        else:
            first = torch.zeros((context.tokens, self._tower.width), device=self.device)
        shape = (context.sets, *((len(self._task.labels),) if context.own else ()), *first.shape)
        noise = rng.uniform(-context.noise, context.noise, shape) if context.start else rng.normal(0, SPREAD, shape)
        self.contexts[name] = first + self._tensor(noise.astype(np.float32))

    def _stage(self, place: int, stage: Stage, first: int, losses: list[float], kept: Mapping[str, Any]) -> float:
        """Move some contexts, from an epoch on; the mean loss of the last."""
        moving = {name: self.contexts[name].clone().requires_grad_() for name in stage.moving}
        optimizer = _optimizer(stage, list(moving.values()))
        for name, context in moving.items() if first else ():
            marked = {key.rpartition("/")[2]: array for key, array in kept.items() if key.startswith(f"moved/{name}/")}
            optimizer.state[context] = {key: torch.from_numpy(array).to(self.device) for key, array in marked.items()}
        with torch.no_grad():
            fixed = {
                name: _shown(name, self._names[name].vectors(context))
                for name, context in self.contexts.items()
                if name not in moving
            }
        read = {name: self._reader(name, context) for name, context in moving.items()}
        n, loss, wrote = len(self._images), math.nan, time.monotonic()
        steps, task = math.ceil(n / stage.batch), f"learning {' and '.join(moving)}"
        self._report(task, first * steps, stage.epochs * steps)
        for epoch in range(first, stage.epochs):
            rng = np.random.default_rng([self._method.seed, place, epoch])
            total = torch.zeros((), device=self.device)
            for step, rows in enumerate(np.array_split(rng.permutation(n), range(stage.batch, n, stage.batch))):
                optimizer.param_groups[0]["lr"] = rate_of(stage, epoch, step / steps)
                optimizer.zero_grad()
                texts = {name: _shown(name, read[name](context)) for name, context in moving.items()}
                found = stage.loss(self._batch(rows, epoch, rng, {**fixed, **texts}))
                found.backward()
                optimizer.step()
                total += found.detach() * len(rows)
                told = "" if math.isnan(loss) else f" | loss {loss:.3f}"
                self._report(f"{task}{told}", epoch * steps + step + 1, stage.epochs * steps)
            loss = total.item() / n
            if not math.isfinite(loss):
                raise InputError(
                    f"the loss of {stage.moving[0]} is {loss} after epoch {epoch + 1} of {stage.epochs}",
                    hint=f"lower the rate, which is {stage.rate:g} (--set rate=0.002 is CoOp's)",
                )
            if time.monotonic() - wrote > KEEP:
                self._write(place, epoch + 1, losses, moving, optimizer)
                wrote = time.monotonic()
        self.contexts |= {name: context.detach() for name, context in moving.items()}
        return loss

    def _reader(self, name: str, context: Tensor) -> Callable[[Tensor], Tensor]:
        """What reads the texts of a context: on a GPU one graph of all its steps, which are many and small."""
        names = self._names[name]
        if self.device.type != "cuda" or not names.at_once:
            return names.vectors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that what is tried out is on another stream than what comes
            graphed = torch.cuda.make_graphed_callables(names.vectors, (context.detach().clone().requires_grad_(),))
        return cast(Callable[[Tensor], Tensor], graphed)

    def _batch(
        self, rows: NDArray[np.int64], epoch: int, rng: np.random.Generator, texts: Mapping[str, Tensor]
    ) -> Batch:
        """Some photos, in the view of the epoch."""
        view, places = epoch % self._images.shape[1], self._tensor(rows)
        patches = None if self._patches is None else self._tensor(self._patches[rows, view]).float()
        images, classes = self._images[places, view], self._classes[places]
        return Batch(images, classes, plain=self._plain, scale=self._scale, rng=rng, patches=patches, **texts)

    def _write(self, place: int, epoch: int, losses: list[float], moving: Mapping[str, Tensor], optimizer: Any) -> None:
        """Keep how far it is."""
        now = {f"context/{name}": context for name, context in {**self.contexts, **moving}.items()}
        for name, context in moving.items():
            now |= {
                f"moved/{name}/{key}": value for key, value in optimizer.state[context].items() if value is not None
            }
        arrays = {key: np.ascontiguousarray(value.detach().cpu().numpy()) for key, value in now.items()}
        numbers = {"stage": np.array(place), "epoch": np.array(epoch), "losses": np.array(losses)}
        write_arrays(self._state, {**arrays, **numbers})

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _shown(name: str, sets: Tensor) -> Tensor:
    """What a loss, or a method, sees of vectors: a row a label or word, and of negatives one or several sets."""
    return sets if name == "negatives" else sets[0]


def rate_of(stage: Stage, epoch: int, part: float = 0.0) -> float:
    """The rate in an epoch of which a part is done: slow first epochs, then half a cosine down to nearly 0.

    As in Dassl, which CoOp and its followers are written with, the cosine begins when the slow epochs are over and is
    as long as all epochs, so that it ends a little early.
    """
    if epoch < stage.warm_up:
        return min(SLOW, stage.rate)
    done = epoch - stage.warm_up + (part if stage.every_step else 0.0)
    return stage.rate * (1 + math.cos(math.pi * done / stage.epochs)) / 2


def _optimizer(stage: Stage, contexts: list[Tensor]) -> torch.optim.Optimizer:
    if stage.optimizer == "adam":
        return torch.optim.Adam(contexts, lr=stage.rate, weight_decay=stage.decay)
    return torch.optim.SGD(contexts, lr=stage.rate, momentum=0.9, weight_decay=stage.decay, nesterov=stage.nesterov)
