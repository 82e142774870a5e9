"""A detector from its files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from outword.base import lab
from outword.base.checks import number
from outword.base.files import PathLike
from outword.base.odds import Odds
from outword.base.records import read_record
from outword.base.terms import read_flag
from outword.detector import artifact
from outword.detector.card import Card, EncoderCard
from outword.detector.detector import NOTHING, Detector
from outword.detector.recipe import checked_params
from outword.detector.saving import ALIKE, FITTED_ON, IMAGINED, REFERENCE, VOCABULARY
from outword.detector.thresholds import estimated_thresholds
from outword.encoders import Precision, get_encoder
from outword.encoders.names import canonical, named_now, parse
from outword.encoders.present import for_torch, resolved
from outword.errors import ArtifactError, OutwordError
from outword.maths.imagined import Sight
from outword.maths.methods import DETECTORS, VectorDetector
from outword.maths.methods.needs import versions
from outword.maths.numerics import Array, all_finite
from outword.maths.thresholds import Threshold, read_threshold
from outword.vectors.same_photo import Hashes
from outword.vectors.vocabulary import Vocabulary


def load(
    path: PathLike,
    *,
    encoder: str | None = None,
    trust_encoder: bool = False,
    device: str | None = None,
    precision: Precision | None = None,
    batch_size: int | None = None,
) -> Detector:
    """Read a detector back; its files must be those that it was saved with.

    Its encoder is loaded when an image is first scored, and must be the one that it was made with. A detector may come
    from anywhere, so an encoder that only it names is not fetched from a hub.

    Args:
        path: the directory that `Detector.save` wrote, or a zip file of it, such as the page of "outword serve" gives.
        encoder: the name of its encoder here, where that lies elsewhere or was exported ("onnx:/path").
        trust_encoder: fetch its encoder where that is not on this machine, as if you had named it.
        device: of the encoder (see `get_encoder`).
        precision: of the encoder.
        batch_size: of the encoder.
    """
    saved = artifact.load(path)
    if encoder is not None:
        parse(resolved(canonical(encoder)))  # an unknown name is said now, not at the first image
    download = trust_encoder or encoder is not None
    runtime = {"device": device, "precision": precision, "batch_size": batch_size, "download": download}
    try:
        return _restore(path, saved, encoder, runtime)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError) as error:
        description = error.message if isinstance(error, OutwordError) else repr(error)
        raise ArtifactError(f"{path} cannot be understood: {description}", hint="fit it again") from error


def _restore(path: PathLike, saved: artifact.Saved, encoder: str | None, runtime: Mapping[str, Any]) -> Detector:
    card = _read_card(saved.card)
    used = encoder or for_torch(_encoder_name(path, card.encoder))
    parse(used)
    options: dict[str, Any] = {**card.encoder.options, **runtime}
    vectors = _method(path, saved, card)
    calibration, cut = (_threshold(saved.card[key]) for key in ("calibration", "cut"))
    basis = "" if cut is None else cut.basis
    by_batch = basis == "batch"
    for name in (REFERENCE, IMAGINED):
        belongs = basis == name.removesuffix("_scores")
        if belongs != (name in saved.arrays) and not by_batch:
            raise ValueError(f"a cut and {name} come together")
    known, alike = (None if by_batch else _scores(saved, name) for name in (REFERENCE, ALIKE))  # some kept a batch's
    estimated = estimated_thresholds(cut, known, alike, calibration)
    imagined = _scores(saved, IMAGINED)
    thresholds = replace(estimated, imagined_scores=imagined, sight=_sight(saved, cut), odds=_odds(saved))
    return Detector(
        scorer=vectors,
        labels=saved.labels,
        rows=saved.rows,
        wild=saved.wild,
        card=card,
        find_encoder=cache(partial(get_encoder, used, **options)),
        thresholds=thresholds,
        vocabulary=_vocabulary(saved, vectors.labels_.shape[1]),
        fitted_on=_fitted_on(saved, card),
        encoder_override=encoder is not None,
    )


def _threshold(stored: Any) -> Threshold | None:
    return None if stored is None else read_threshold(stored)


def _sight(saved: artifact.Saved, cut: Threshold | None) -> Sight | None:
    """How the encoder sees, which an imagined cut comes with."""
    stored = saved.card.get("sight")
    if (stored is None) != (cut is None or cut.basis != "imagined"):
        raise ValueError("an imagined cut and a sight come together")
    return None if stored is None else read_record(Sight, stored, "sight", "outword fit")


def _odds(saved: artifact.Saved) -> tuple[Odds, ...]:
    """The odds of the labels, of all or of none."""
    stored = saved.card.get("odds")
    if stored is None:
        return ()
    if list(stored) != saved.labels or not all(0 <= share <= 1 for share in stored.values()):
        raise ValueError("odds must be a share between 0 and 1 for each label")
    return tuple(Odds(label, float(share)) for label, share in stored.items())


def _encoder_name(path: PathLike, made: EncoderCard) -> str:
    """What the encoder of a card is called now."""
    name = named_now(made.name, made.fingerprint)
    if name != made.name:
        warnings.warn(
            f"{path} was made with what is called {name} now, and is used with that; {made.name} is another encoder "
            f"since: fit it again to have that, or name {name} to be asked no more",
            stacklevel=5,
        )
    return name


def _method(path: PathLike, saved: artifact.Saved, card: Card) -> VectorDetector:
    """The fitted method."""
    name, parameters = card.method.name, card.method.parameters
    if name not in DETECTORS:
        raise lab.missing(DETECTORS.group, name) or ArtifactError(
            f"{path} was made with the method {name}, which is not installed here",
            hint='install the package that it comes from; see "outword list methods"',
        )
    kind = DETECTORS[name]
    checked_params(name, kind, parameters, {}, "outword list methods --long")
    others = {FITTED_ON, REFERENCE, ALIKE, IMAGINED, VOCABULARY}
    arrays = {key: array for key, array in saved.arrays.items() if key not in others}
    vectors = kind(**parameters).restore(arrays)
    _check_kept(arrays, vectors, name)
    for need in vectors.wants():
        if any(getattr(card.encoder, offer) != how for offer, how in versions([need]).items()):
            raise ArtifactError(f"{path} was made for other {need.value} than those of today", hint="fit it again")
    if not _agree(vectors, saved, card):
        raise ArtifactError(f"{path} has vectors and names of different number", hint="fit it again")
    return vectors


def _agree(vectors: VectorDetector, saved: artifact.Saved, card: Card) -> bool:
    """Whether names are as many as vectors, each label has a row, and all that is learned is of a label."""
    n_labels, n_wild = len(saved.labels), 0 if vectors.wild_ is None else len(vectors.wild_)
    owners = np.arange(len(saved.rows)) if vectors.owners_ is None else vectors.owners_
    learned = vectors.class_logits(np.eye(1, vectors.labels_.shape[1]))
    return (
        (len(vectors.labels_), n_wild) == (len(saved.rows), len(saved.wild))
        and [meaning.label for meaning in card.meanings] == saved.labels
        and len(owners) == len(saved.rows)
        and set(owners.tolist()) == set(range(n_labels))
        and (learned is None or set(learned[0].tolist()) <= set(range(n_labels)))
    )


def _scores(saved: artifact.Saved, name: str) -> Array | None:
    """Scores of photos of a reference."""
    found = saved.arrays.get(name)
    if found is not None and (found.dtype != np.float64 or found.ndim != 1 or np.isnan(found).any()):
        raise ValueError(f"{name} must be numbers in one row, got {found.dtype} {found.shape}")
    return found


def _vocabulary(saved: artifact.Saved, dim: int) -> Vocabulary | None:
    """The names that say what a photo looks like."""
    found = saved.arrays.get(VOCABULARY)
    if found is None and not saved.vocabulary:
        return None
    if found is None or found.dtype != np.float16 or found.ndim != 2 or found.shape[1] != dim:
        raise ValueError(f"{VOCABULARY} must be a float16 vector of {dim} numbers a name")
    if not all_finite(found) or not found.any(axis=1).all():
        raise ValueError(f"{VOCABULARY} must be finite and not zero")
    return Vocabulary(saved.vocabulary, found)


def _check_kept(arrays: Iterable[str], vectors: VectorDetector, method: str) -> None:
    """Raise unless all arrays are there that the method keeps to be made again, and no others of that kind."""
    found = sorted(name for name in arrays if "/" in name)
    if found != sorted(vectors.kept_names()):
        raise ValueError(f"there must be {sorted(vectors.kept_names())} of {method}, got {found}")


def _fitted_on(saved: artifact.Saved, card: Card) -> Hashes | None:
    """The hashes of the photos that a detector was fitted on; None where it was, and says nothing of them."""
    found = saved.arrays.get(FITTED_ON)
    if found is None:
        return NOTHING if card.id_images is None else None
    if found.dtype != np.uint64 or found.ndim != 1:
        raise ValueError(f"{FITTED_ON} must be hashes in one row, got {found.dtype} {found.shape}")
    return np.unique(found)


def _read_card(stored: Mapping[str, Any]) -> Card:
    """The card of a file, checked: a seal is no proof of origin. Parameters that were added since are filled in."""
    known = {field.name: stored[field.name] for field in fields(Card) if field.name in stored}
    card = read_record(Card, known, "the card", "outword fit")
    number("temperature", card.encoder.temperature, above=0, hint="fit it again")
    for flag in card.coverage.values():
        read_flag(flag)
    if len(card.encoder.fingerprint) != 64:
        raise ValueError("the encoder's fingerprint is not whole")
    if stray := card.encoder.options.keys() - {"resize"}:
        raise ValueError(f"{min(stray)} is no option of an encoder")
    method = card.method
    before = DETECTORS[method.name].before if method.name in DETECTORS else {}
    return replace(card, method=replace(method, parameters={**before, **method.parameters}))
