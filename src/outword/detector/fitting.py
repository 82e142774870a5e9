"""Class names to a detector."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword._version import __version__
from outword.base.files import PathLike
from outword.base.reports import Report, quiet
from outword.base.terms import Flag
from outword.base.wording import a_few
from outword.detector.card import Card, CorpusCard, EncoderCard, IdImagesCard, MethodCard, MinerCard
from outword.detector.cuts import can_be_cut, cut_by_reference
from outword.detector.detector import NOTHING, Detector
from outword.detector.imagining import cut_by_imagining, find_sight, with_odds
from outword.detector.inputs import missing_inputs
from outword.detector.label_odds import with_measured_odds
from outword.detector.positives import Competitors, Positives, label_coverage, make_positives, make_wild, row_sentences
from outword.detector.recipe import Recipe, default_method, resolve, resolve_card
from outword.encoders import Encoder, get_encoder
from outword.errors import InputError, ParameterError, WeakLabelsWarning
from outword.maths.methods import DETECTORS, Need
from outword.maths.methods.requests import FitRequest
from outword.vectors.id_images import IdImages, read_id_images
from outword.vectors.names import name_vectors, readable_names
from outword.vectors.reference import find_reference
from outword.vectors.same_photo import Hashes
from outword.vectors.vocabulary import Vocabulary
from outword.words.corpora import is_named
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
    card: Card
    fitted_on: Hashes | None  # None where it is not known
    seconds: float = 0.0  # that the method took to make inputs of its own

    def fit(self) -> Detector:
        """Fit the method; there is neither a cut yet nor a vocabulary."""
        encoder, fitted = self.recipe.encoder, self.recipe.make_scorer().fit(**self.given)
        return Detector(
            scorer=fitted,
            labels=self.labels,
            rows=self.rows,
            wild=self.wild,
            card=self.card,
            find_encoder=lambda: encoder,
            fitted_on=self.fitted_on,
        )

    def finish(self, fpr: float | None = None, report: Report = quiet) -> Detector:
        """Fit the method, with what photos look like and the cut of the encoder's reference, if it has one."""
        encoder = self.recipe.encoder
        names = readable_names(encoder)
        vectors = name_vectors(encoder, get_prompts(encoder.prompts), names, report).astype(np.float16)
        made = replace(self, card=replace(self.card, fpr=fpr))
        detector = replace(made.fit(), vocabulary=Vocabulary(names, vectors))
        reference = find_reference(encoder)
        if fpr is not None and (reference is None or not can_be_cut(detector)):
            whose = encoder.name if reference is None else detector.method
            raise ParameterError(
                f"fpr is for a cut from a reference, and {whose} has none, got {fpr}",
                hint=f'make one from ordinary photos: "outword reference PHOTOS --encoder {encoder.name}"',
            )
        if reference is not None:
            return with_measured_odds(cut_by_reference(detector, reference, fpr), encoder)
        sight = find_sight(detector, encoder)
        return detector if sight is None else with_odds(cut_by_imagining(detector, sight))


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
    made = prepare(recipe, labels, id_images=id_images, word_images=word_images, report=report).finish(fpr, report)
    if weak := made.labels_report.weak:
        named = a_few([str(one.odds) for one in weak], between="; ")
        warnings.warn(f"{named}. See labels_report of the detector", WeakLabelsWarning, stacklevel=2)
    return made


def relabel(detector: Detector, labels: Given, report: Report = quiet) -> Detector:
    """The detector for other labels; see `Detector.relabel`."""
    corpus = detector.card.corpus
    why = detector.scorer.why_it_stays()
    if corpus is not None and not is_named(corpus.name):
        why = f"the word list {corpus.name} did not come along"
    if why:
        raise InputError(f"{detector.method} cannot be made for other labels: {why}", hint='make it with "outword fit"')
    recipe = resolve_card(detector.card, detector.encoder)
    learned_by = detector if detector.scorer.kept_ else None
    made = prepare(recipe, labels, learned_by=learned_by, report=report).finish(detector.card.fpr, report)
    return replace(made, refines=detector.refines)


def prepare(
    recipe: Recipe,
    labels: Given,
    *,
    id_images: PathLike | Iterable[PathLike] | IdImages | None = None,
    word_images: PathLike | None = None,
    learned_by: Detector | None = None,
    report: Report = quiet,
    label_cache: LabelCache | None = None,
) -> Prepared:
    """Encode what a recipe is fitted on; labels, ID images, word images and report are those of `fit`.

    `label_cache` keeps what stands for the labels from one call to the next, for several recipes with the same encoder
    and labels. With `learned_by`, a detector of the same recipe, what its method has learned is taken as it is, and no
    photos.
    """
    typed, encoder = check_labels(labels), recipe.encoder
    if learned_by is None and (missing := missing_inputs(recipe, id_images)):
        raise missing
    if word_images is not None and "word_images" not in DETECTORS[recipe.method].takes:
        raise ParameterError(f"{recipe.method} learns nothing from photos of words", hint="leave them out")
    given: dict[str, NDArray[Any] | None] = {}
    photos: IdImages | None = None
    if Need.ID_IMAGES in recipe.wants and learned_by is None:
        photos = _id_images(recipe, id_images, list(typed), report)
        given |= {"images": photos.vectors, "image_labels": photos.classes}
    coverage = label_coverage(encoder, typed)
    positives = _positives(recipe, typed, coverage, label_cache, report)
    given |= {"labels": positives.vectors, "owners": positives.owners}
    wild = cache(lambda: make_wild(recipe, positives, report))
    request = FitRequest(
        encoder=encoder,
        labels=typed,
        given=given,
        sentences=lambda: row_sentences(recipe, typed, positives.meanings),
        find_wild=lambda: (wild().words, wild().vectors),
        photos=photos,
        word_images=word_images,
        learned=learned_by.scorer if learned_by else None,
        report=report,
    )
    made = recipe.make_scorer().fit_inputs(request)
    given["wild"] = wild().vectors
    words, photos, seconds = made.pop("words", wild().words), made.pop("photos", photos), made.pop("seconds", 0.0)
    card = Card(
        outword=__version__,
        method=MethodCard(recipe.method, dict(recipe.params)),
        encoder=_encoder_card(recipe),
        prompts=recipe.prompts,
        corpus=_corpus_card(recipe, wild()),
        miner=_miner_card(recipe, wild()),
        kinds=recipe.kinds,
        keep_label_words=recipe.keep_label_words,
        label_prompts={name: label.prompt for name, label in typed.items() if label.prompt},
        coverage=coverage,
        id_images=_id_images_card(photos),
        fpr=None,
        meanings=tuple(positives.meanings),
        learned=made.pop("learned", None),
    )
    fitted_on = photos.hashes if photos else NOTHING
    if learned_by is not None:  # which has seen the same photos
        learned = {**(learned_by.card.learned or {}), "moved": list(typed) != learned_by.labels}
        card, fitted_on = replace(card, id_images=learned_by.card.id_images, learned=learned), learned_by.fitted_on
    return Prepared(recipe, list(typed), positives.rows, words, {**given, **made}, card, fitted_on, seconds)


def _positives(
    recipe: Recipe,
    labels: Mapping[str, Label],
    coverage: Mapping[str, Flag],
    label_cache: LabelCache | None,
    report: Report,
) -> Positives:
    """What stands for the labels; from the cache, if there is one."""
    cache = {} if label_cache is None else label_cache
    key = recipe.prompts, recipe.kinds, Need.ID_LABELS in recipe.wants
    if key not in cache:
        cache[key] = make_positives(recipe, labels, coverage, report)
    return cache[key]


def _encoder_card(recipe: Recipe) -> EncoderCard:
    encoder = recipe.encoder
    return EncoderCard(
        encoder.name,
        encoder.fingerprint,
        encoder.temperature,
        encoder.licence,
        encoder.source,
        dict(encoder.options),
        **recipe.offer_versions,
    )


def _corpus_card(recipe: Recipe, wild: Competitors) -> CorpusCard | None:
    corpus = recipe.corpus
    return None if corpus is None else CorpusCard(corpus.name, corpus.fingerprint, wild.left_out)


def _miner_card(recipe: Recipe, wild: Competitors) -> MinerCard | None:
    return None if recipe.corpus is None else MinerCard(recipe.miner, dict(recipe.miner_params), wild.fingerprint)


def _id_images_card(photos: IdImages | None) -> IdImagesCard | None:
    if photos is None:
        return None
    return IdImagesCard(len(photos.vectors), len(photos.counts), len(photos.left_out), photos.fingerprint)


def _id_images(recipe: Recipe, given: IdImages | Any, labels: Sequence[str], report: Report) -> IdImages:
    """The photos that are fitted on, or chosen from."""
    if isinstance(given, IdImages):
        return given
    with_classes = Need.ID_LABELS in recipe.wants
    return read_id_images(recipe.encoder, given, labels, with_classes=with_classes, report=report)
