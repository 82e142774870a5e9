"""Prompts that are learned before a method is fitted, or that another detector has learned."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from outword.base.wording import a_few
from outword.errors import InputError
from outword.maths.methods.requests import FitRequest, Inputs
from outword.vectors.id_images import IdImages, read_id_images
from outword.words.forms import fold
from outword_lab.learning.methods.prompted import CONTEXT, Prompted
from outword_lab.learning.prompts import Learned, Task, learn, vectors_of


def prompted_inputs(method: Prompted, request: FitRequest) -> Inputs:
    """What the contexts of a method make of names and words: learned on photos of both, or taken as they are."""
    shown, others = _word_images(request)
    labels, (mined, wild) = request.given["labels"], request.wild
    # what is wrong with a parameter is said before anything is learned
    copy.copy(method).fit(labels, wild, negatives=labels)
    names = [[label.prompt] if label.prompt else [*label.names] for label in request.labels.values()]
    words = _first_words(shown, mined)
    made: Inputs = {"words": words, "images": None, "image_labels": None}
    if request.learned is None:
        photos = few_shots(request.photos, [*request.labels], method.shots, method.seed)
        task = Task(names, _used(method, words, others), [photos, *others])
        learned = learn(method, request.encoder, task, request.report)
        made |= {"photos": photos, "learned": _facts(method, learned, task)}
    else:
        learned = Learned(cast(Prompted, request.learned).learned_contexts)
        made["learned"] = {}
    made |= vectors_of(learned.contexts, request.encoder, names, words)
    made["kept"] = {f"{CONTEXT}{name}": context for name, context in learned.contexts.items()}
    return {**made, "seconds": learned.seconds}


def _used(method: Prompted, words: Sequence[str], others: Sequence[IdImages]) -> list[str]:
    """The words to learn with: as many as the method says, and all that there are photos of, which come first."""
    with_photos = [1 + int(some.classes.max()) for some in others if some.classes is not None]
    return [*words][: max([getattr(method, "words", 0), *with_photos])]


def _facts(method: Prompted, learned: Learned, task: Task) -> dict[str, Any]:
    """What a card says of the learning."""
    counts = [len(some.vectors) for some in task.photos]
    return {
        "photos": counts[0],
        "shots": min(method.shots, max(task.photos[0].counts.values())),
        "words": len(task.words),
        "photos_of_words": sum(counts[1:]),
        "losses": [loss if np.isfinite(loss) else None for loss in learned.losses],
        "moved": False,
    }


def _word_images(request: FitRequest) -> tuple[list[str], list[IdImages]]:
    """Words that somebody has photos of: the names of the folders in a folder, and the photos."""
    folder = request.word_images
    if folder is None:
        return [], []
    words = sorted(path.name for path in Path(folder).glob("[!.]*/")) if Path(folder).is_dir() else []
    if not words:
        told = f"photos of words must be in a folder here, in folders that are named after them, got {folder}"
        raise InputError(told, hint="make a folder for each word")
    if len({*map(fold, words)}) < len(words):
        raise InputError(f"two folders in {folder} are named after the same word", hint="put their photos together")
    names = {fold(name.replace("-", " ")) for shown, label in request.labels.items() for name in (shown, *label.names)}
    if same := [word for word in words if fold(word.replace("-", " ")) in names]:
        told = f"photos of words must show other things than the labels, and {folder} has {a_few(same)}"
        raise InputError(told, hint="take those folders out")
    return words, [read_id_images(request.encoder, folder, words, with_classes=True, report=request.report)]


def _first_words(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Words with photos first, then the others, each once; without such the others as they are."""
    return [*{fold(word): word for word in (*words, *others)}.values()] if words else [*others]


def few_shots(photos: IdImages, labels: Sequence[str], shots: int, seed: int) -> IdImages:
    """At most so many photos of each class, drawn by the seed; a class without photos is an error."""
    assert photos.classes is not None
    rng = np.random.default_rng([seed, shots])
    own = [rng.permutation(np.flatnonzero(photos.classes == number))[:shots] for number in range(len(labels))]
    if bare := [label for label, rows in zip(labels, own, strict=True) if not len(rows)]:
        raise InputError(
            f"prompts are learned from photos of every label, and none shows {a_few(bare)}",
            hint="add photos of it, or leave the label out",
        )
    return photos.some(np.sort(np.concatenate(own)), labels)
