"""One cell of a benchmark: a method is settled, fitted, and scores the ID set and every OOD set as one artifact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outword._version import __version__
from outword.base.files import sha256_bytes
from outword.benchmark.run.bootstrap import interval, resampled
from outword.benchmark.run.compare import stream_scores
from outword.benchmark.run.photos import Indices, Photos
from outword.benchmark.run.provenance import commit, versions
from outword.benchmark.run.results import Row
from outword.benchmark.run.suite import Entry
from outword.benchmark.run.task import Task
from outword.detector.detector import Detector
from outword.detector.fitting import CORPUS
from outword.detector.recipe import check_inputs, make_detector, make_miner
from outword.encoders import Encoder
from outword.encoders.base import PATCHES
from outword.errors import InputError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.metrics import aupr, auroc, fpr_at_tpr
from outword.maths.numerics import Array
from outword.vectors.reader import vectors_of
from outword.vectors.source import find_source
from outword.words.corpora import get_corpus
from outword.words.prompts import get_prompts

Scores = dict[str, Array]  # "id" (or "id/NAME", where each OOD set has its own) and "ood/NAME"


@dataclass(frozen=True)
class Setting:
    """A method as it is fitted: arguments of `prepare`, the same as a configuration, and whether a seed matters."""

    given: Mapping[str, Any]
    config: Mapping[str, Any]
    chance: bool


def settle(
    entry: Entry,
    encoder: Encoder,
    task: Task,
    *,
    seed: int,
    corpus: str | None,
    words: Path | None,
    prompts: str | None,
    keep_label_words: bool,
) -> Setting:
    """Fill in what the suite leaves to the method, and see that it lacks nothing.

    Args:
        entry: the method.
        encoder: what encodes.
        task: labels and photos.
        seed: of the method and the miner.
        corpus: of the condition; else the method's own.
        words: a word list of the user's, for methods that want one.
        prompts: templates for a method that has none of its own.
        keep_label_words: as for `outword.fit`.
    """
    params = _seeded(DETECTORS[entry.method], entry.params, seed)
    vectors = make_detector(entry.method, encoder.temperature, params)
    on_vectors = dict(vectors.on_vectors) if Need.PIXELS in vectors.wants() else {}  # what is measured are vectors
    vectors = make_detector(entry.method, encoder.temperature, params | on_vectors)
    chosen = entry.corpus or words if vectors.corpus == "" else corpus or entry.corpus
    id_images = task.id_images if Need.ID_IMAGES in vectors.wants() else None
    check_inputs(entry.method, vectors, encoder, id_images, chosen)
    miner = entry.miner or vectors.miner
    miner_params = _seeded(type(make_miner(miner, {})), entry.miner_params, seed)
    wild = Need.WILD in vectors.wants()
    source = get_corpus(chosen or vectors.corpus or CORPUS) if wild else None
    templates = entry.prompts or vectors.prompts or prompts or encoder.prompts
    given = {
        "method": entry.method,
        "corpus": chosen,
        "miner": miner,
        "prompts": templates,
        "id_images": id_images,
        "keep_label_words": keep_label_words,
        "miner_params": miner_params,
        "params": params | on_vectors,
    }
    config = {
        "outword": __version__,
        "method": {
            "name": entry.method,
            "parameters": vectors.params(),
            "needs": [need.value for need in vectors.wants()],
            "sees_order": vectors.sees_order,
            "on_vectors": on_vectors,
        },
        "miner": {"name": miner, "parameters": asdict(make_miner(miner, miner_params))} if wild else None,  # type: ignore[call-overload]
        "prompts": asdict(get_prompts(templates)),
        "corpus": source and {"name": source.name, "words": len(source), "fingerprint": source.fingerprint},
        "keep_label_words": keep_label_words,
        "encoder": {
            "name": encoder.name,
            "fingerprint": encoder.fingerprint,
            "options": dict(encoder.options),
            "precision": getattr(encoder, "precision", None),
            **({"patches": PATCHES} if Need.PATCHES in vectors.wants() else {}),
        },
        "id_images": id_images and {"count": len(id_images.vectors), "fingerprint": id_images.fingerprint},
    }
    chance = "seed" in vectors.params() or vectors.sees_order or (wild and "seed" in miner_params)
    return Setting(given, config, chance)


def _seeded(kind: type[Any], params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The parameters, with the seed, if there is one to set."""
    has = any(field.name == "seed" for field in fields(kind))
    return {"seed": seed, **params} if has else dict(params)


def score_sets(
    detector: Detector, encoder: Encoder, inside: Photos, rows: Indices, outside: Sequence[Photos], seed: int
) -> Scores:
    """ID and OOD scores. A method that learns from the test images sees ID and OOD as one stream for each OOD set."""
    method = detector.scorer
    if method.sees_order:
        found: Scores = {}
        for photos in outside:
            streamed = stream_scores(method, inside.vectors[rows], photos.vectors, seed)
            found |= dict(zip((f"id/{photos.name}", f"ood/{photos.name}"), streamed, strict=True))
        return found
    if Need.PATCHES in method.wants():
        by_patches = {photos.name: _patch_scores(method, encoder, photos) for photos in outside}
        return {
            "id": _patch_scores(method, encoder, inside)[rows],
            **{f"ood/{name}": scores for name, scores in by_patches.items()},
        }
    return {
        "id": method.score(inside.vectors[rows]),
        **{f"ood/{photos.name}": method.score(photos.vectors) for photos in outside},
    }


def _patch_scores(method: VectorDetector, encoder: Encoder, photos: Photos) -> Array:
    """Scores of a method that looks at patches, which no store holds: the photos are encoded once more."""
    wanted = {path: row for row, path in enumerate(photos.paths)}
    scores = np.full(len(photos.paths), np.nan)
    for some in vectors_of(encoder, find_source(photos.found.paths, encoder, only=wanted.__contains__), patches=True):
        if some.paths:
            scores[[wanted[path] for path in some.paths]] = method.score(some.vectors, patches=some.patches)
    if np.isnan(scores).any():
        raise InputError(
            f"{np.isnan(scores).sum():,} photos of {photos.name} could be read before, and cannot any more",
            hint="see that nothing changes them during the run",
        )
    return scores


@dataclass(frozen=True)
class Place:
    """Where rows belong: the condition, the name of the method, the point of a sweep."""

    id: str
    encoder: str
    corpus: str
    entry: str
    point: str


def row_keys(config: Mapping[str, Any], place: Place, outside: Sequence[Photos]) -> dict[str, str]:
    """The key of each OOD set's row."""
    return {
        photos.name: sha256_bytes(
            json.dumps([asdict(place), config, photos.name, photos.fingerprint], sort_keys=True).encode()
        )
        for photos in outside
    }


@dataclass(frozen=True)
class Measured:
    """A fitted method, its scores, the rows of the ID set that it scored, seconds of fit and of score, and chance."""

    detector: Detector
    scores: Scores
    rows: Indices
    seconds: tuple[float, float]
    chance: bool

    def inside(self, ood: str) -> Array:
        """ID scores beside an OOD set."""
        return self.scores["id"] if "id" in self.scores else self.scores[f"id/{ood}"]

    def outside(self, ood: str) -> Array:
        """Scores of an OOD set."""
        return self.scores[f"ood/{ood}"]


def make_rows(
    place: Place,
    config: Mapping[str, Any],
    keys: Mapping[str, str],
    measured: Measured,
    inside: Photos,
    outside: Sequence[Photos],
) -> tuple[list[Row], dict[str, Array]]:
    """A row for each OOD set, and the bootstrap samples of all sets, which the intervals come from."""
    draw = partial(resampled, rows=measured.rows, n_all=len(inside.paths), n_samples=config["samples"])
    if "id" in measured.scores:
        boot = draw(measured.scores["id"], {photos.name: measured.outside(photos.name) for photos in outside})
    else:
        boot = {}
        for name in (photos.name for photos in outside):
            boot |= draw(measured.inside(name), {name: measured.outside(name)})
    rows = []
    for photos in outside:
        own, others = measured.inside(photos.name), measured.outside(photos.name)
        rows.append(
            Row(
                key=keys[photos.name],
                cell=cell_name(keys),
                **asdict(place),
                seed=config["seed"],
                chance=measured.chance,
                ood=photos.name,
                n_id=len(own),
                n_ood=len(others),
                unread_id=len(inside.unreadable),
                unread_ood=len(photos.unreadable),
                auroc=auroc(own, others),
                aupr_id=aupr(own, others, positive="id"),
                aupr_ood=aupr(own, others, positive="ood"),
                fpr95_id=fpr_at_tpr(own, others, positive="id"),
                fpr95_ood=fpr_at_tpr(own, others, positive="ood"),
                auroc_ci=interval(boot[photos.name][:, 0]),
                fpr95_ci=interval(boot[photos.name][:, 1]),
                fit_seconds=measured.seconds[0],
                score_seconds=measured.seconds[1],
                config={
                    **config,
                    "ood": {"name": photos.name, "fingerprint": photos.fingerprint},
                    "learned": measured.detector.scorer.in_use(),
                },
                versions=versions(),
                commit=commit(),
            )
        )
    return rows, boot


def cell_name(keys: Mapping[str, str]) -> str:
    """What the file with the scores is called."""
    return sha256_bytes("".join(keys.values()).encode())[:16]
