"""Detectors of label lists with all defaults, kept by their recipe: the same labels are not fitted a second time."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from outword._version import __version__
from outword.base.cache import cache_dir, not_kept, touch, trim
from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.detector.detector import Detector
from outword.detector.fitting import fit
from outword.detector.loading import load
from outword.detector.recipe import METHOD, resolve
from outword.encoders import Encoder, get_encoder
from outword.errors import ArtifactError, OutwordError
from outword.vectors.reference import find_reference
from outword.words.labels import Given, Label, check_labels

RULES = 2  # raised where names are understood, or cuts are made, in another way by the same version


def fit_cached(
    labels: Given, encoder: str | Encoder = "mini", *, report: Report = quiet, **runtime: Any
) -> tuple[Detector, bool]:
    """What `outword.fit(labels, encoder=encoder)` gives, and whether it was in the cache already.

    `encoder` is a name, of which `runtime` are the device, precision and batch size, or what `get_encoder` gave. What
    the detector depends on is in its key: the labels, all of the recipe, the version of the package and the reference.
    One that is damaged is made again.
    """
    names = check_labels(labels)
    used = encoder if isinstance(encoder, Encoder) else get_encoder(encoder, **runtime)
    path = cache_dir() / "detectors" / f"{_key(names, used)}.outword"
    with suppress(OutwordError, OSError):
        found = load(path, trust_encoder=True, **runtime)
        touch(path)
        return replace(found, find_encoder=lambda: used), True
    made = fit(names, encoder=used, report=report)
    try:
        _keep(made, path)
    except (OSError, OutwordError) as error:
        warnings.warn(not_kept(error), stacklevel=2)
    return made, False


def _key(names: Mapping[str, Label], encoder: Encoder) -> str:
    reference, recipe = find_reference(encoder), resolve(encoder, METHOD, {})
    facts = [
        [__version__, RULES],
        [asdict(label) for label in names.values()],
        [encoder.name, encoder.fingerprint, encoder.temperature, dict(encoder.options)],
        [recipe.method, dict(recipe.params), asdict(recipe.prompts), recipe.kinds],
        [recipe.corpus and recipe.corpus.fingerprint, recipe.miner, dict(recipe.miner_params)],
        None if reference is None else reference.fingerprint,
        repr(encoder.odds),
        [str(getattr(encoder, part, "")) for part in ("device", "precision")],  # by which vectors of labels round
    ]
    return sha256_bytes(json.dumps(facts, sort_keys=True).encode())[:32]


def _keep(detector: Detector, path: Path) -> None:
    """Save a detector in the cache, and remove those that were used least recently."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        detector.save(path)
    except ArtifactError:  # a folder that is none any more
        shutil.rmtree(path)
        detector.save(path)
    trim(path)
