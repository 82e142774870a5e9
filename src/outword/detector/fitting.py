"""Class names to a detector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword._version import __version__
from outword.detector.detector import NOTHING, Detector
from outword.detector.recipe import check_inputs, make_detector, make_miner
from outword.encoders import Encoder, get_encoder
from outword.encoders.base import PATCHES
from outword.errors import InputError
from outword.maths.methods import Need, VectorDetector
from outword.vectors.fitted import Hashes
from outword.vectors.id_images import IdImages, read_id_images
from outword.vectors.wild import Report, encode_words, mine, quiet
from outword.words.corpora import get_corpus
from outword.words.forms import drop_labels
from outword.words.labels import check_labels
from outword.words.prompts import Prompts, get_prompts

CORPUS = "wordnet"
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Prepared:
    """All that a method is fitted on, encoded: `given` are the arguments of its `fit`."""

    vectors: VectorDetector
    labels: list[str]
    wild: list[str]
    given: dict[str, NDArray[Any] | None]
    card: dict[str, Any]
    encoder: Encoder
    fitted_on: Hashes

    def fit(self) -> Detector:
        """Fit the method."""
        tower, fitted = self.encoder, self.vectors.fit(**self.given)
        return Detector(fitted, self.labels, self.wild, self.card, encoder=lambda: tower, fitted_on=self.fitted_on)


def fit(
    labels: Iterable[str] | Mapping[str, str],
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
        labels: the class names; a mapping gives some their own prompt: `{"crane": "a crane, the bird", "cat": ""}`.
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
    return prepare(
        labels,
        encoder=encoder if isinstance(encoder, Encoder) else get_encoder(encoder),
        corpus=corpus,
        method=method,
        miner=miner,
        prompts=prompts,
        id_images=id_images,
        keep_label_words=keep_label_words,
        miner_params=miner_params,
        report=report,
        params=params,
    ).fit()


def prepare(
    labels: Iterable[str] | Mapping[str, str],
    *,
    encoder: Encoder,
    method: str,
    corpus: PathLike | None = None,
    miner: str | None = None,
    prompts: str | None = None,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    keep_label_words: bool = False,
    miner_params: Mapping[str, Any] | None = None,
    report: Report = quiet,
    params: Mapping[str, Any],
    remembered: dict[Prompts, NDArray[np.float32]] | None = None,
) -> Prepared:
    """Encode what `fit` fits on; the arguments are those of `fit`.

    `remembered` keeps the label vectors of each template set from one call to the next, for several methods on the
    same labels.
    """
    sentences = check_labels(labels)
    names = list(sentences)
    vectors = make_detector(method, encoder.temperature, params)
    check_inputs(method, vectors, encoder, id_images, corpus)
    templates = get_prompts(prompts or vectors.prompts or encoder.prompts)
    rule = make_miner(miner or vectors.miner, miner_params or {})
    source = get_corpus(corpus or vectors.corpus or CORPUS) if Need.WILD in vectors.wants() else None
    card: dict[str, Any] = {
        "outword": __version__,
        "method": {"name": method, "parameters": vectors.params()},
        "encoder": _encoder_card(encoder, vectors),
        "prompts": asdict(templates),
        "label_prompts": {name: own for name, own in sentences.items() if own},
        "coverage": {c.label: c.flag for c in encoder.coverage(names)},
    }
    given: dict[str, NDArray[Any] | None] = {}
    fitted_on = NOTHING
    if Need.ID_IMAGES in vectors.wants():
        found = _id_images(encoder, id_images, names, with_classes=Need.ID_LABELS in vectors.wants(), report=report)
        card["id_images"] = {
            "count": len(found.vectors),
            "classes": len(found.counts),
            "left_out": len(found.left_out),
            "fingerprint": found.fingerprint,
        }
        given |= {"images": found.vectors, "image_labels": found.classes}
        fitted_on = found.hashes
    remembered = {} if remembered is None else remembered
    if templates not in remembered:
        texts = templates.render(names, ["label"] * len(names))
        own = [[own] if own else text for own, text in zip(sentences.values(), texts, strict=True)]
        remembered[templates] = encode_words(encoder, own, report)
    given["labels"] = y = remembered[templates]
    if source is None:
        return Prepared(vectors, names, [], given, card, encoder, fitted_on)
    wild = mine(encoder, source, templates, rule, y, report)
    kept, left_out = (list(range(len(wild.words))), []) if keep_label_words else drop_labels(wild.words, names)
    card["corpus"] = {"name": source.name, "fingerprint": source.fingerprint, "left_out": left_out}
    card["miner"] = {"name": miner or vectors.miner, "parameters": asdict(rule), "fingerprint": wild.fingerprint}  # type: ignore[call-overload]
    if not kept:
        raise InputError(
            f"{method} is left without words: the miner keeps {len(wild.words)} of {len(source)} in {source.name}, and "
            f"{len(left_out)} of them equal a label",
            hint="give a longer list, --miner all, or --keep-label-words",
        )
    given["wild"] = wild.vectors[kept]
    return Prepared(vectors, names, [wild.words[i] for i in kept], given, card, encoder, fitted_on)


def _id_images(encoder: Encoder, given: Any, labels: Sequence[str], *, with_classes: bool, report: Report) -> IdImages:
    if isinstance(given, IdImages):
        return given
    return read_id_images(encoder, given, labels, with_classes=with_classes, report=report)


def _encoder_card(encoder: Encoder, vectors: VectorDetector) -> dict[str, Any]:
    facts = ("name", "fingerprint", "temperature", "licence", "source")
    card = {**{fact: getattr(encoder, fact) for fact in facts}, "options": dict(encoder.options)}
    return {**card, "patches": PATCHES} if Need.PATCHES in vectors.wants() else card
