"""Class names to a detector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.files import PathLike
from outword.base.reports import Report, quiet
from outword.detector.cuts import can_be_cut, cut_by_reference
from outword.detector.detector import NOTHING, Detector
from outword.detector.inputs import missing_inputs
from outword.detector.positives import Positives, label_coverage, make_positives, make_wild, row_sentences
from outword.detector.recipe import Recipe, default_method, resolve
from outword.encoders import Encoder, get_encoder
from outword.errors import ParameterError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.methods.requests import FitRequest
from outword.vectors.id_images import IdImages, read_id_images
from outword.vectors.names import name_vectors, readable_names
from outword.vectors.reference import find_reference
from outword.vectors.same_photo import Hashes
from outword.vectors.vocabulary import Vocabulary
from outword.words.labels import Given, Label, check_labels
from outword.words.prompts import Prompts, get_prompts

LabelCache = dict[tuple[Prompts, str, bool], Positives]  # by prompts, kinds, and whether a label is one row


@dataclass(frozen=True)
class Prepared:
    """All that a recipe is fitted on, encoded: `given` are the arguments of the method's `fit`."""

    recipe: Recipe
    labels: list[str]
    rows: list[str]
    wild: list[str]
    given: dict[str, NDArray[Any] | None]
    card: dict[str, Any]
    fitted_on: Hashes | None  # None where it is not known
    seconds: float = 0.0  # that the method took to make inputs of its own

    def fit(self) -> Detector:
        """Fit the method; there is neither a cut yet nor a vocabulary."""
        encoder, fitted = self.recipe.encoder, self.recipe.make_scorer().fit(**self.given)
        return Detector(
            fitted,
            self.labels,
            self.wild,
            self.card,
            encoder=lambda: encoder,
            fitted_on=self.fitted_on,
            rows=self.rows,
        )

    def finish(self, fpr: float | None = None, report: Report = quiet) -> Detector:
        """Fit the method, with what photos look like and the cut of the encoder's reference, if it has one."""
        encoder, self.card["fpr"] = self.recipe.encoder, fpr
        names = readable_names(encoder)
        vectors = name_vectors(encoder, get_prompts(encoder.prompts), names, report).astype(np.float16)
        detector = self.fit().with_vocabulary(Vocabulary(names, vectors))
        reference = find_reference(encoder)
        if fpr is not None and (reference is None or not can_be_cut(detector)):
            whose = encoder.name if reference is None else detector.method
            raise ParameterError(
                f"fpr is for a cut from a reference, and {whose} has none, got {fpr}",
                hint=f'make one from ordinary photos: "outword reference PHOTOS --encoder {encoder.name}"',
            )
        return detector if reference is None else cut_by_reference(detector, reference, fpr)


def fit(
    labels: Given,
    *,
    encoder: str | Encoder = "mini",
    corpus: PathLike | None = None,
    method: str | None = None,
    miner: str | None = None,
    prompts: str | None = None,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    word_images: PathLike | None = None,
    keep_label_words: bool = False,
    kinds: str | None = None,
    fpr: float | None = None,
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
        method: see `outword list methods`; "grounded" by default, or the paper's "debiased" where parameters of its own
            are set, such as tau.
        miner: how wild words are chosen; the default is the rule that the method was published with.
        prompts: a template set by name, or a template such as "a photo of a {}"; the method's own by default, else the
            encoder's.
        id_images: photos that show the classes: folders, whose sub-folders are labels, or stores of "outword embed",
            one or several; or what `outword.vectors.id_images.read_id_images` gave.
        word_images: photos of other things, in folders named after them, for "lapt", which learns from such too.
        keep_label_words: keep wild words about a label, those that equal it, phrases such as "red cat" and kinds; they
            are left out by default, and `card` says which.
        kinds: what stands for a label beside its name: "known", what WordNet has below it and the encoder knows; "all"
            of that; "off"; or "auto", the best of these. The method's own by default: "auto" for "grounded".
        fpr: the share of unrelated photos, those of the encoder's reference, that may get in; by default both errors
            are balanced, as far as they are known.
        miner_params: of the miner, for example `{"alpha": 50}`.
        report: called with (task, done, total) during long work.
        params: of the method, for example `tau=0.4`.
    """
    method = method or default_method(params)
    recipe = resolve(
        encoder if isinstance(encoder, Encoder) else get_encoder(encoder),
        method,
        params,
        corpus=corpus,
        miner=miner,
        miner_params=miner_params,
        prompts=prompts,
        keep_label_words=keep_label_words,
        kinds=kinds,
    )
    if miner_params and Need.WILD not in recipe.wants:
        raise ParameterError(f"{method} mines no words, and {min(miner_params)} is of a miner", hint="leave it out")
    return prepare(recipe, labels, id_images=id_images, word_images=word_images, report=report).finish(fpr, report)


def prepare(
    recipe: Recipe,
    labels: Given,
    *,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    word_images: PathLike | None = None,
    learned_by: VectorDetector | None = None,
    report: Report = quiet,
    label_cache: LabelCache | None = None,
) -> Prepared:
    """Encode what a recipe is fitted on; labels, ID images, word images and report are those of `fit`.

    `label_cache` keeps what stands for the labels from one call to the next, for several recipes with the same encoder
    and labels. With `learned_by`, a fitted method of the same kind, what that has learned is taken as it is, and no
    photos.
    """
    typed, card, encoder = check_labels(labels), recipe.card, recipe.encoder
    if learned_by is None and (missing := missing_inputs(recipe, id_images)):
        raise missing
    if word_images is not None and "word_images" not in DETECTORS[recipe.method].takes:
        raise ParameterError(f"{recipe.method} learns nothing from photos of words", hint="leave them out")
    names, given, fitted_on = list(typed), dict[str, NDArray[Any] | None](), NOTHING
    card["label_prompts"] = {name: label.prompt for name, label in typed.items() if label.prompt}
    card["coverage"] = label_coverage(encoder, typed)
    photos: IdImages | None = None
    if Need.ID_IMAGES in recipe.wants and learned_by is None:
        photos = _id_images(recipe, id_images, names, report)
        card["id_images"] = {}  # which of them, the method says in the end
        given |= {"images": photos.vectors, "image_labels": photos.classes}
    positives = _positives(recipe, typed, card["coverage"], label_cache, report)
    card["fpr"] = None
    card["meanings"] = [_listed(asdict(meaning)) for meaning in positives.meanings]
    given |= {"labels": positives.vectors, "owners": positives.owners}
    request = FitRequest(
        encoder=encoder,
        labels=typed,
        given=given,
        sentences=lambda: row_sentences(recipe, typed, positives.meanings),
        find_wild=lambda: ([], None) if recipe.corpus is None else make_wild(recipe, positives, card, report),
        photos=photos,
        word_images=word_images,
        learned=learned_by,
        report=report,
    )
    made = recipe.make_scorer().fit_inputs(request)
    words, given["wild"] = request.wild
    words, photos, seconds = made.pop("words", words), made.pop("photos", photos), made.pop("seconds", 0.0)
    if photos is not None:
        card["id_images"], fitted_on = _about(photos), photos.hashes
    if "learned" in made:
        card["learned"] = made.pop("learned")
    return Prepared(recipe, names, positives.rows, words, {**given, **made}, card, fitted_on, seconds)


def _positives(
    recipe: Recipe,
    labels: Mapping[str, Label],
    coverage: Mapping[str, str],
    label_cache: LabelCache | None,
    report: Report,
) -> Positives:
    """What stands for the labels; from the cache, if there is one."""
    cache = {} if label_cache is None else label_cache
    key = recipe.prompts, recipe.kinds, Need.ID_LABELS in recipe.wants
    if key not in cache:
        cache[key] = make_positives(recipe, labels, coverage, report)
    return cache[key]


def _about(photos: IdImages) -> dict[str, Any]:
    """What a card says of ID images."""
    return {
        "count": len(photos.vectors),
        "classes": len(photos.counts),
        "left_out": len(photos.left_out),
        "fingerprint": photos.fingerprint,
    }


def _listed(values: dict[str, Any]) -> dict[str, Any]:
    """The same with lists for tuples, which JSON does not have."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _id_images(recipe: Recipe, given: IdImages | Any, labels: Sequence[str], report: Report) -> IdImages:
    """The photos that are fitted on, or chosen from."""
    if isinstance(given, IdImages):
        return given
    with_classes = Need.ID_LABELS in recipe.wants
    return read_id_images(recipe.encoder, given, labels, with_classes=with_classes, report=report)
