"""Class names to a detector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.detector.detector import NOTHING, Detector
from outword.detector.inputs import missing_inputs
from outword.detector.recipe import Recipe, resolve
from outword.encoders import Encoder, get_encoder
from outword.encoders.base import Vectors
from outword.errors import InputError, ParameterError
from outword.maths.methods import Need
from outword.vectors.fitted import Hashes
from outword.vectors.id_images import IdImages, read_id_images
from outword.vectors.wild import Report, encode_words, mine, quiet
from outword.words.corpora import Corpus
from outword.words.forms import drop_labels
from outword.words.labels import Given, Label, check_labels
from outword.words.prompts import Prompts

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Prepared:
    """All that a recipe is fitted on, encoded: `given` are the arguments of the method's `fit`."""

    recipe: Recipe
    labels: list[str]
    wild: list[str]
    given: dict[str, NDArray[Any] | None]
    card: dict[str, Any]
    fitted_on: Hashes

    def fit(self) -> Detector:
        """Fit the method."""
        encoder, fitted = self.recipe.encoder, self.recipe.make_scorer().fit(**self.given)
        return Detector(fitted, self.labels, self.wild, self.card, encoder=lambda: encoder, fitted_on=self.fitted_on)


def fit(
    labels: Given,
    *,
    encoder: str | Encoder = "mini",
    corpus: PathLike | None = None,
    method: str = "debiased",
    miner: str | None = None,
    prompts: str | None = None,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    keep_label_words: bool = False,
    miner_params: Mapping[str, Any] | None = None,
    report: Report = quiet,
    **params: Any,
) -> Detector:
    """Make a detector from class names, and from ID images where the method needs them.

    Args:
        labels: the class names, as docs/labels.md says (`crane#bird`, `sofa | couch`); a mapping gives some their own
            prompt, `{"crane": "a crane, the bird", "cat": ""}`, or kinds, `{"pet": ["cat", "hamster"]}`.
        encoder: a name (`outword list encoders`), or what `get_encoder` gave for a device, a precision or a batch size
            of your own. Its temperature is used unless `temperature=` says otherwise.
        corpus: where wild words come from: a name (`outword list corpora`) or a text file, one word a line; the
            method's own by default, else "wordnet".
        method: see `outword list methods`.
        miner: how wild words are chosen; the default is the rule that the method was published with.
        prompts: a template set by name, or a template such as "a photo of a {}"; the method's own by default, else the
            encoder's.
        id_images: photos that show the classes: folders, whose sub-folders are labels, or stores of "outword embed",
            one or several; or what `outword.vectors.id_images.read_id_images` gave.
        keep_label_words: keep wild words that equal a label; they are left out by default, and `card` says which.
        miner_params: of the miner, for example `{"alpha": 50}`.
        report: called with (task, done, total) during long work.
        params: of the method, for example `tau=0.4`.
    """
    recipe = resolve(
        encoder if isinstance(encoder, Encoder) else get_encoder(encoder),
        method,
        params,
        corpus=corpus,
        miner=miner,
        miner_params=miner_params,
        prompts=prompts,
        keep_label_words=keep_label_words,
    )
    if miner_params and Need.WILD not in recipe.wants:
        raise ParameterError(f"{method} mines no words, and {min(miner_params)} is of a miner", hint="leave it out")
    return prepare(recipe, labels, id_images=id_images, report=report).fit()


def prepare(
    recipe: Recipe,
    labels: Given,
    *,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    report: Report = quiet,
    label_cache: dict[Prompts, Vectors] | None = None,
) -> Prepared:
    """Encode what a recipe is fitted on; labels, ID images and report are those of `fit`.

    `label_cache` keeps the label vectors of each template set from one call to the next, for several recipes with the
    same encoder and labels.
    """
    typed, card, encoder = check_labels(labels), recipe.card, recipe.encoder
    if missing := missing_inputs(recipe, id_images):
        raise missing
    names, given, fitted_on = list(typed), dict[str, NDArray[Any] | None](), NOTHING
    card["label_prompts"] = {name: label.prompt for name, label in typed.items() if label.prompt}
    known = encoder.coverage([label.name for label in typed.values()])
    card["coverage"] = {name: one.flag for name, one in zip(typed, known, strict=False)}  # none where it cannot tell
    if Need.ID_IMAGES in recipe.wants:
        found = _id_images(recipe, id_images, names, report)
        card["id_images"] = {
            "count": len(found.vectors),
            "classes": len(found.counts),
            "left_out": len(found.left_out),
            "fingerprint": found.fingerprint,
        }
        given |= {"images": found.vectors, "image_labels": found.classes}
        fitted_on = found.hashes
    label_cache = {} if label_cache is None else label_cache
    if recipe.prompts not in label_cache:
        sentences = [_sentences(label, recipe.prompts) for label in typed.values()]
        label_cache[recipe.prompts] = encode_words(encoder, sentences, report)
    given["labels"] = y = label_cache[recipe.prompts]
    words: list[str] = []
    if recipe.corpus is not None:
        words, given["wild"] = _wild(recipe, recipe.corpus, [*typed.values()], y, card, report)
    return Prepared(recipe, names, words, given, card, fitted_on)


def _sentences(label: Label, prompts: Prompts) -> list[str]:
    """What the encoder reads of a label: its own prompt, or its names in all templates."""
    rendered = prompts.render(label.names, ["label"] * len(label.names))
    return [label.prompt] if label.prompt else [text for texts in rendered for text in texts]


def _wild(
    recipe: Recipe, corpus: Corpus, labels: Sequence[Label], y: Vectors, card: dict[str, Any], report: Report
) -> tuple[list[str], NDArray[np.float16]]:
    """The wild words and their vectors; the card is told which were left out."""
    wild = mine(recipe.encoder, corpus, recipe.prompts, recipe.make_miner(), y, report)
    every = list(range(len(wild.words)))
    names = [name for label in labels for name in label.names]
    kept, left_out = (every, []) if recipe.keep_label_words else drop_labels(wild.words, names)
    card["corpus"]["left_out"] = left_out
    card["miner"]["fingerprint"] = wild.fingerprint
    if not kept:
        raise InputError(
            f"{recipe.method} is left without words: the miner keeps {len(wild.words)} of {len(corpus)} in "
            f"{corpus.name}, and {len(left_out)} of them equal a label",
            hint="give a longer list, --miner all, or --keep-label-words",
        )
    return [wild.words[i] for i in kept], wild.vectors[kept]


def _id_images(recipe: Recipe, given: Any, labels: Sequence[str], report: Report) -> IdImages:
    if isinstance(given, IdImages):
        return given
    with_classes = Need.ID_LABELS in recipe.wants
    return read_id_images(recipe.encoder, given, labels, with_classes=with_classes, report=report)
