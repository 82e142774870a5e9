"""Prompts that are learned before a method is fitted, or that another detector has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from outword.base.wording import a_few
from outword.detector.recipe import PathLike, Recipe
from outword.errors import InputError, ParameterError
from outword.maths.methods import Need
from outword.maths.methods.prompted import Prompted
from outword.vectors.id_images import IdImages, read_id_images
from outword.vectors.wild import Report, quiet
from outword.words.forms import fold
from outword.words.labels import Label

if TYPE_CHECKING:
    from outword.learning.prompts import Contexts


@dataclass(frozen=True)
class Prompting:
    """What learned prompts give a method: vectors, as its `fit` takes them, the contexts, and what the card says.

    The card is empty where nothing was learned.
    """

    given: dict[str, NDArray[np.float32]]
    contexts: Contexts
    card: dict[str, Any]
    seconds: float


def with_prompts(
    recipe: Recipe,
    labels: Mapping[str, Label],
    words: Sequence[str],
    photos: Sequence[IdImages],
    contexts: Contexts | None = None,
    report: Report = quiet,
) -> Prompting:
    """Learn the prompts of a method on photos of the labels, and of words behind them; or take contexts as they are."""
    from outword.learning.prompts import Learned, Task, learn, vectors_of

    method = cast(Prompted, recipe.make_scorer())
    names = [[label.prompt] if label.prompt else [*label.names] for label in labels.values()]
    with_photos = [1 + int(some.classes.max()) for some in photos[1:] if some.classes is not None]  # they come first
    used = [*words][: max([getattr(method, "words", 0), *with_photos])]
    if contexts is None:
        learned = learn(method, recipe.encoder, Task(names, used, photos), report)
        counts = [len(some.vectors) for some in photos]
        card = {
            "photos": counts[0],
            "shots": min(method.shots, max(photos[0].counts.values())),
            "words": len(used),
            "photos_of_words": sum(counts[1:]),
            "losses": [loss if np.isfinite(loss) else None for loss in learned.losses],
            "moved": False,
        }
    else:
        learned, card = Learned(contexts), {}
    return Prompting(
        vectors_of(learned.contexts, recipe.encoder, names, words), learned.contexts, card, learned.seconds
    )


def read_word_images(
    recipe: Recipe, labels: Mapping[str, Label], folder: PathLike | None, report: Report = quiet
) -> tuple[list[str], IdImages | None]:
    """Words that somebody has photos of: the names of the folders in a folder, and the photos."""
    if folder is None:
        return [], None
    if not {Need.PROMPTS, Need.WILD} <= set(recipe.wants):
        raise ParameterError(f"{recipe.method} learns nothing from photos of words", hint="lapt does")
    words = sorted(path.name for path in Path(folder).glob("[!.]*/")) if Path(folder).is_dir() else []
    if not words:
        told = f"photos of words must be in a folder here, in folders that are named after them, got {folder}"
        raise InputError(told, hint="make a folder for each word")
    if len({*map(fold, words)}) < len(words):
        raise InputError(f"two folders in {folder} are named after the same word", hint="put their photos together")
    names = {fold(name.replace("-", " ")) for shown, label in labels.items() for name in (shown, *label.names)}
    if same := [word for word in words if fold(word.replace("-", " ")) in names]:
        told = f"photos of words must show other things than the labels, and {folder} has {a_few(same)}"
        raise InputError(told, hint="take those folders out")
    return words, read_id_images(recipe.encoder, folder, words, with_classes=True, report=report)


def first_words(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Words with photos first, then the others, each once."""
    return [*{fold(word): word for word in (*words, *others)}.values()]
