"""The whole chain in readable lines: class names to a detector, images to scores, a score to a verdict and why."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass, fields
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword._version import __version__
from outword.base.checks import mistyped, number
from outword.detector import artifact
from outword.detector.inputs import lacking
from outword.encoders import Encoder, Precision, get_encoder
from outword.encoders.base import PATCHES, Pixels, several
from outword.encoders.names import canonical, parse
from outword.errors import ArtifactError, InputError, OutwordError, ParameterError, unknown
from outword.maths.kernels.rows import product, whole_width
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.mining import MINERS, Miner
from outword.maths.numerics import Array, softmax, unit_rows
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_threshold, read_threshold
from outword.photos.images import ImageLike
from outword.vectors.fitted import Hashes, any_of, collected, hashes_of_files, hashes_of_vectors
from outword.vectors.id_images import IdImages, a_few, read_id_images
from outword.vectors.wild import Report, encode_words, mine, quiet
from outword.words.corpora import drop_labels, get_corpus, is_named
from outword.words.labels import check_labels
from outword.words.prompts import Prompts, get_prompts

Shares = list[tuple[str, float]]
UNCALIBRATED = "uncalibrated"
CORPUS = "wordnet"
FITTED_ON = "fitted_on"  # what an artifact calls the hashes of the photos
NOTHING = collected()
BLOCK = 512  # rows that become unit vectors together: their float64 copies stay in the cache, four times as fast
PathLike = str | os.PathLike[str]
T = TypeVar("T")
_KINDS: dict[str, tuple[type, ...]] = {  # what a word of an annotation admits
    "float": (int, float, np.number),
    "int": (int, np.integer),
    "bool": (bool,),
    "str": (str,),
    "Literal": (str,),
}


_CARD: dict[str, Any] = {  # what is used of a card, by kind (see `outword.base.checks.mistyped`)
    "method": {"name": str, "parameters": dict},
    "encoder": {
        "name": str,
        "fingerprint": str,
        "temperature": float,
        "licence?": str,
        "source?": str,
        "options?": {str: str},
    },
    "prompts": {"name": str},
    "label_prompts?": {str: str},
    "coverage": {str: str},
    "corpus?": {"name": str, "left_out": [str]},
    "miner?": {"name": str, "parameters": dict},
    "calibration": (None, dict),
}
_NAMES = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


class Perturbing(Protocol):
    """A method that moves the pixels by `epsilon` before it scores them, to the side that raises its score."""

    epsilon: float

    def gradient(self, images: ArrayLike) -> Array:
        """Gradient of the score by unit image vectors, (n_images, dim)."""


@dataclass(frozen=True)
class Evidence:
    """Labels and wild words with their share of an image's mass, largest first (see `Detector.evidence`)."""

    labels: Shares
    words: Shares


@dataclass(frozen=True)
class Explanation:
    """A verdict and its reasons.

    `coverage` says how well the encoder knows each of the labels named, `in_use` what became of parameters, such as
    tau, that need not be used as they were given.
    """

    score: float
    verdict: str
    threshold: float | None
    calibrated: bool
    labels: Shares
    words: Shares
    coverage: dict[str, str]
    in_use: dict[str, float]


class Detector:
    """Tells whether an image shows one of `labels`; made by `outword.fit` or `outword.load`.

    Attributes:
        vectors: the method, fitted: it sees vectors only.
        labels: the ID labels.
        wild: the wild words, best first.
        card: where it comes from: method, encoder, corpus, miner and prompts, with parameters and fingerprints.
        calibration_: the fitted `Threshold`, or None.
        elsewhere: whether the encoder was named anew when the detector was loaded.
        fitted_on: hashes of the photos that the method was fitted on (`vectors.fitted`); None where they are not known,
            since the detector was saved before they were kept.
    """

    def __init__(
        self,
        vectors: VectorDetector,
        labels: Sequence[str],
        wild: Sequence[str],
        card: dict[str, Any],
        calibration: Threshold | None = None,
        *,
        encoder: Callable[[], Encoder],
        elsewhere: bool = False,
        fitted_on: Hashes | None = NOTHING,
    ) -> None:
        self.vectors = vectors
        self.labels = list(labels)
        self.wild = list(wild)
        self.card = card
        self.calibration_ = calibration
        self.elsewhere = elsewhere
        self.fitted_on = fitted_on
        self._get_encoder = encoder
        self._rows: tuple[NDArray[np.int64], Array] | None = None

    def __repr__(self) -> str:
        threshold = UNCALIBRATED if self.threshold_ is None else f"threshold {self.threshold_:.4g}"
        return f"<outword.Detector: {self.method}, {len(self.labels)} labels, {len(self.wild)} wild words, {threshold}>"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made the vectors; loaded when it is first needed."""
        wanted, used = self.card["encoder"], self._get_encoder()
        if wanted["fingerprint"] not in (used.fingerprint, used.exported_from):
            raise ArtifactError(
                f"the detector was made with the encoder {wanted['name']}, and {used.name} is another one, or another "
                "version of it",
                hint="fit it again, or name the encoder that it was made with",
            )
        return used

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.card["method"]["name"])

    @property
    def fingerprint(self) -> str:
        """sha256 of all that the detector is, its threshold included."""
        return artifact.fingerprint(self._saved())

    @property
    def coverage(self) -> dict[str, str]:
        """How well the encoder knows each label; empty when it cannot tell."""
        flags: dict[str, str] = self.card["coverage"]
        return flags

    @property
    def threshold_(self) -> float | None:
        """The calibrated threshold, or None."""
        return None if self.calibration_ is None else self.calibration_.value

    @property
    def cut(self) -> float | None:
        """The score from which a verdict is `in`: the calibrated threshold, else the natural cut, if there is one."""
        return self.vectors.natural_cut_ if self.calibration_ is None else self.calibration_.value

    def score(self, images: Iterable[ImageLike]) -> Array:
        """Score of each image, (n_images,) float64; higher means more in-distribution.

        A method that learns from what it scores (`vectors.sees_order`) goes on from the images of the last call, in
        the order given; `reset()` starts afresh.
        """
        scores = [self.score_pixels(pixels)[0] for pixels in self.encoder.pixel_chunks(images)]
        return np.concatenate([np.zeros(0), *scores])

    def score_pixels(self, pixels: Pixels) -> tuple[Array, NDArray[np.float32]]:
        """Scores of preprocessed pixels, and the vectors that were scored: of changed pixels, where the method asks."""
        wants = self.vectors.wants()
        if Need.PATCHES in wants:
            vectors, patches = self.encoder.encode_patches(pixels)
            return self.score_vectors(vectors, patches), vectors
        if Need.PIXELS in wants:
            method = cast(Perturbing, self.vectors)
            vectors = self.encoder.encode_perturbed(pixels, method.gradient, method.epsilon)
        else:
            vectors = self.encoder.encode_pixels(pixels)
        return self.score_vectors(vectors), vectors

    def score_vectors(self, vectors: NDArray[np.floating], patches: NDArray[np.floating] | None = None) -> Array:
        """Scores of image vectors (n_images, dim), and of those of their patches where the method asks for them."""
        return self.vectors.score(vectors, patches=patches)

    def calibrate(
        self, images: Iterable[ImageLike], tpr: float = 0.95, method: CalibrationMethod = "quantile"
    ) -> Detector:
        """Set the threshold that accepts a share `tpr` of images like these ID photos; returns self.

        The photos must be others than those that the method was fitted on.
        """
        photos = several(images)
        with self.afresh():
            scored = [self.score_pixels(pixels) for pixels in self.encoder.pixel_chunks(photos)]
        self.check_unfitted(_hashed(photos, (vectors for _, vectors in scored)))
        scores = np.concatenate([np.zeros(0), *(scores for scores, _ in scored)])
        self.calibration_ = fit_threshold(scores, tpr, method)
        return self

    def check_unfitted(self, photos: Iterable[tuple[str, Iterable[int | None]]]) -> None:
        """Raise if the method was fitted on some of these photos: what each is called, and its hashes."""
        if self.fitted_on is None or not len(self.fitted_on):
            return
        known = self.fitted_on
        seen = [(name, any_of(hashes, known)) for name, hashes in photos]
        if fitted := [name for name, found in seen if found]:
            raise InputError(
                f"{len(fitted):,} of {len(seen):,} photos are among those that {self.method} was fitted on, and a "
                f"threshold from them would be too high: {a_few(fitted)}",
                hint="leave them out, and calibrate on other photos of the classes",
            )

    def reset(self) -> None:
        """Forget the images that were scored; for methods that learn from them."""
        self.vectors.reset()

    @contextmanager
    def afresh(self) -> Iterator[None]:
        """A block in which a method that learns from what it scores starts anew; what it learns there is forgotten."""
        self.reset()
        try:
            yield
        finally:
            self.reset()

    def verdict(self, score: float) -> str:
        """`in` or `out`; while no threshold was fitted the natural cut is used, and the verdict says so."""
        if self.cut is None:
            return UNCALIBRATED
        side = "in" if score >= self.cut else "out"
        return side if self.calibration_ else f"{side} ({UNCALIBRATED})"

    def explain(self, image: ImageLike, top: int = 5) -> Explanation:
        """Verdict, nearest labels with their share, and the wild words that fired.

        A method that learns from what it scores does not learn from this.
        """
        (pixels,) = self.encoder.pixel_chunks([image])
        pupil = copy.copy(self)
        if self.vectors.sees_order:
            pupil.vectors = copy.deepcopy(self.vectors)
        scores, vectors = pupil.score_pixels(pixels)
        score, found = float(scores[0]), self.evidence(vectors, top)[0]
        return Explanation(
            score=score,
            verdict=self.verdict(score),
            threshold=self.cut,
            calibrated=self.calibration_ is not None,
            labels=found.labels,
            words=found.words,
            coverage={label: flag for label, flag in self.coverage.items() if label in dict(found.labels)},
            in_use=self.vectors.in_use(),
        )

    def evidence(self, images: NDArray[np.floating], top: int = 5) -> list[Evidence]:
        """Shares for image vectors (n_images, dim), as the score sees them, group by group.

        With `Q_b` the mass of group b, a word of that group has the share `e^h / (P + Q_b)`, and a label the mean over
        groups of the same; without wild words the labels have it all. A method that deals its words into no groups
        has them all in one. One that learned the classes from ID images gives its own shares (`class_logits`).
        """
        if (learned := self.vectors.class_logits(images)) is not None:
            return self._learned_evidence(*learned, top)
        return self._shared_evidence(images, top)

    def _shared_evidence(self, images: NDArray[np.floating], top: int) -> list[Evidence]:
        temperature = self.card["encoder"]["temperature"]
        if not self.vectors.own_temperature:
            temperature = self.vectors.params().get("temperature", temperature)
        groups, k = self._groups(), len(self.labels)
        if self._rows is None or not np.array_equal(self._rows[0], groups):
            rows = self._text_rows(groups)
            self._rows = groups, np.pad(rows, ((0, whole_width(len(rows)) - len(rows)), (0, 0)))
        n_texts = k + groups.size
        cosines = product(images.astype(np.float64, order="C"), self._rows[1].T)[:, :n_texts].astype(np.float32)
        words = cosines[:, k:].reshape(len(cosines), *groups.shape)
        for_labels, near, for_words = _shares(cosines[:, :k], words, temperature, top)
        found = []
        for key, p, b, log_q in zip(cosines, for_labels, near, for_words, strict=True):
            best = _largest(log_q, top)
            wild = zip(groups[b].ravel()[best], np.exp(log_q[best]), strict=True)
            labels = [(self.labels[i], float(p[i])) for i in _largest(key[:k], top)]
            found.append(Evidence(labels, [(self.wild[i], float(q)) for i, q in wild]))
        return found

    def _groups(self) -> NDArray[np.int64]:
        """The groups of wild words, (n_groups, size) indices; one of them all where the method deals none."""
        return self.vectors.state().get("groups", np.arange(len(self.wild))[None])

    def _learned_evidence(self, classes: NDArray[np.int64], logits: Array, top: int) -> list[Evidence]:
        shares = np.zeros((len(logits), len(self.labels)))
        shares[:, classes] = softmax(logits)
        return [Evidence([(self.labels[i], float(row[i])) for i in _largest(row, top)], []) for row in shares]

    def audit(self, top: int = 20) -> list[tuple[str, str, float]]:
        """Mined words closest to an ID label, as (word, label, cosine): likely positives among the wild words."""
        rows, k = self._text_rows(np.arange(len(self.wild))), len(self.labels)
        cosines = rows[k:] @ rows[:k].T
        nearest, closest = cosines.argmax(axis=1), cosines.max(axis=1, initial=-1)
        order = np.argsort(-closest, kind="stable")[:top]
        return [(self.wild[i], self.labels[nearest[i]], float(closest[i])) for i in order]

    def save(self, path: PathLike) -> None:
        """Write the detector to a directory, whole or not at all."""
        artifact.save(path, self._saved())

    def zipped(self, folder: str = "detector.outword") -> bytes:
        """The directory that `save` writes, under this name in a zip file."""
        return artifact.zipped(self._saved(), folder)

    def _saved(self) -> artifact.Saved:
        stored = artifact.finite(asdict(self.calibration_)) if self.calibration_ else None
        arrays = self.vectors.state()
        if self.fitted_on is not None and len(self.fitted_on):
            arrays[FITTED_ON] = self.fitted_on
        return artifact.Saved({**self.card, "calibration": stored}, arrays, self.labels, self.wild)

    def with_threshold(self, threshold: Threshold | None) -> Detector:
        """The same detector with another threshold; vectors are shared, and this one stays as it is."""
        other = copy.copy(self)
        other.calibration_ = threshold
        return other

    def relabel(self, labels: Iterable[str] | Mapping[str, str], report: Report = quiet) -> Detector:
        """A new detector for other labels, made as this one was; it is not calibrated.

        Encoder, method, corpus, miner and prompts are the same, with the same parameters.
        """
        corpus = self.card["corpus"]["name"] if self.wild else None
        own_words, own_photos = corpus is not None and not is_named(corpus), Need.ID_IMAGES in self.vectors.wants()
        if own_words or own_photos:
            lost = "photos that it was fitted on" if own_photos else f"word list {corpus}"
            raise InputError(
                f"{self.method} cannot be made for other labels: the {lost} did not come along",
                hint='make it with "outword fit"',
            )
        miner = self.card.get("miner", {"name": None, "parameters": {}})
        return fit(
            labels,
            encoder=self.encoder,
            corpus=corpus,
            method=self.method,
            miner=miner["name"],
            prompts=self.card["prompts"]["name"],
            miner_params=miner["parameters"],
            report=report,
            **self.card["method"]["parameters"],
        )

    def _text_rows(self, words: NDArray[np.int64]) -> Array:
        """Unit vectors of the labels, then of these wild words, for explanations."""
        parts = [self.vectors.labels_] + ([] if self.vectors.wild_ is None else [self.vectors.wild_[words.ravel()]])
        blocks = (part[start : start + BLOCK] for part in parts for start in range(0, len(part), BLOCK))
        return np.concatenate([unit_rows(block) for block in blocks])


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


def check_inputs(method: str, vectors: VectorDetector, encoder: Encoder, id_images: object, corpus: object) -> None:
    """Raise if an input is missing, or ID images are there and would not be looked at."""
    classes = not isinstance(id_images, IdImages) or id_images.classes is not None
    images = id_images is not None
    lack = lacking(method, vectors, encoder, images=images, classes=classes, corpus=corpus is not None)
    stray = id_images.stray if isinstance(id_images, IdImages) and Need.ID_LABELS in vectors.wants() else None
    if stray:
        raise InputError(f"{method} needs ID images with labels: {stray.message}", hint=stray.hint)
    if lack:
        raise lack
    if images and Need.ID_IMAGES not in vectors.wants():
        probe = ", or fit a head on them with --set head=probe" if "head" in vectors.params() else ""
        raise ParameterError(f"{method} does not look at ID images", hint=f"leave them out{probe}")


def _id_images(encoder: Encoder, given: Any, labels: Sequence[str], *, with_classes: bool, report: Report) -> IdImages:
    if isinstance(given, IdImages):
        return given
    return read_id_images(encoder, given, labels, with_classes=with_classes, report=report)


def _encoder_card(encoder: Encoder, vectors: VectorDetector) -> dict[str, Any]:
    facts = ("name", "fingerprint", "temperature", "licence", "source")
    card = {**{fact: getattr(encoder, fact) for fact in facts}, "options": dict(encoder.options)}
    return {**card, "patches": PATCHES} if Need.PATCHES in vectors.wants() else card


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
        path: the directory that `Detector.save` wrote.
        encoder: the name of its encoder here, where that lies elsewhere or was exported ("onnx:/path").
        trust_encoder: fetch its encoder where that is not on this machine, as if you had named it.
        device, precision, batch_size: of the encoder (see `get_encoder`).
    """
    saved = artifact.load(path)
    if encoder is not None:
        parse(canonical(encoder))  # an unknown name is said now, not at the first image
    download = trust_encoder or encoder is not None
    runtime = {"device": device, "precision": precision, "batch_size": batch_size, "download": download}
    try:
        return _restore(path, saved, encoder, runtime)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError) as error:
        told = error.message if isinstance(error, OutwordError) else repr(error)
        raise ArtifactError(f"{path} cannot be understood: {told}", hint="fit it again") from error


def _restore(path: PathLike, saved: artifact.Saved, encoder: str | None, runtime: Mapping[str, Any]) -> Detector:
    card = {key: value for key, value in saved.card.items() if key not in ("schema", "files", "fingerprint")}
    _check_card(card)
    used, options = encoder or card["encoder"]["name"], dict(card["encoder"].get("options", {}))
    parse(used)
    if card["method"]["name"] not in DETECTORS:
        raise ArtifactError(
            f"{path} was made with the method {card['method']['name']}, which is not installed here",
            hint='install the package that it comes from; see "outword list methods"',
        )
    kind, given = DETECTORS[card["method"]["name"]], card["method"]["parameters"]
    _checked_params(card["method"]["name"], kind, given, {}, "outword list methods --long")
    arrays = {name: array for name, array in saved.arrays.items() if name != FITTED_ON}
    vectors = kind(**given).restore(arrays)
    if Need.PATCHES in vectors.wants() and card["encoder"].get("patches") != PATCHES:
        raise ArtifactError(f"{path} was made for other patch vectors than those of today", hint="fit it again")
    n_wild = 0 if vectors.wild_ is None else len(vectors.wild_)
    learned = vectors.class_logits(np.eye(1, vectors.labels_.shape[1]))
    foreign = learned is not None and not set(learned[0].tolist()) <= set(range(len(saved.labels)))
    if (len(vectors.labels_), n_wild) != (len(saved.labels), len(saved.wild)) or foreign:
        raise ArtifactError(f"{path} has vectors and names of different number", hint="fit it again")
    stored = card.pop("calibration")
    threshold = read_threshold(stored) if stored is not None else None
    return Detector(
        vectors,
        saved.labels,
        saved.wild,
        card,
        threshold,
        encoder=partial(get_encoder, used, **options, **runtime),
        elsewhere=encoder is not None,
        fitted_on=_fitted_on(saved),
    )


def _fitted_on(saved: artifact.Saved) -> Hashes | None:
    """The hashes of the photos that a detector was fitted on; None where it was, and says nothing of them."""
    found = saved.arrays.get(FITTED_ON)
    if found is None:
        return None if "id_images" in saved.card else NOTHING
    if found.dtype != np.uint64 or found.ndim != 1:
        raise ValueError(f"{FITTED_ON} must be hashes in one row, got {found.dtype} {found.shape}")
    return np.unique(found)


def _hashed(
    photos: Sequence[ImageLike], vectors: Iterable[NDArray[np.float32]]
) -> Iterator[tuple[str, list[int | None]]]:
    """What each photo is called, and the hashes of its file, if it is one, and of its vector."""
    rows = (row for part in vectors for row in hashes_of_vectors(part))
    for place, ((photo, content), row) in enumerate(zip(hashes_of_files(photos), rows, strict=True)):
        name = repr(os.fspath(photo)) if isinstance(photo, str | os.PathLike) else f"images[{place}]"
        yield name, [content, row]


def _check_card(card: Mapping[str, Any]) -> None:
    """Raise unless all that is used of a card is there, and is what it should be: a seal is no proof of origin."""
    if wrong := mistyped(card, _CARD, "the card"):
        raise ValueError(wrong)
    number("temperature", card["encoder"]["temperature"], above=0, hint="fit it again")
    if len(card["encoder"]["fingerprint"]) != 64:
        raise ValueError("the encoder's fingerprint is not whole")
    if stray := card["encoder"].get("options", {}).keys() - {"resize"}:
        raise ValueError(f"{min(stray)} is no option of an encoder")


def make_detector(method: str, temperature: float, params: Mapping[str, Any]) -> VectorDetector:
    """A method by name, at the encoder's temperature unless the method has its own.

    >>> make_detector("debiased", 0.04, {"tau": 0.4})
    Debiased(temperature=0.04, n_groups=100, seed=0, tau=0.4, sigma=0.0, policy='cap')
    """
    kind = _lookup("method", method, DETECTORS, "outword list methods")
    known = _checked_params(method, kind, params, kind.in_pipeline, "outword list methods --long")
    takes = "temperature" in known and not kind.own_temperature
    made = kind(**{**({"temperature": temperature} if takes else {}), **kind.in_pipeline, **params})
    made.check()
    return made


def make_miner(miner: str, params: Mapping[str, Any]) -> Miner:
    """A miner by name.

    >>> make_miner("density", {"alpha": 10}).alpha
    10
    """
    kind = _lookup("miner", miner, MINERS, "outword list miners")
    _checked_params(miner, kind, params, {}, "outword list miners")
    return kind(**params)


def _checked_params(
    name: str, kind: type[Any], params: Mapping[str, Any], defaults: Mapping[str, Any], see: str
) -> dict[str, Field[Any]]:
    """The fields of a method or miner; raises for a parameter that it does not have, or of the wrong type."""
    known = {field.name: field for field in fields(kind)}
    for key, value in params.items():
        if key not in known:
            raise unknown(f"parameter of {name}", key, known, see)
        if not _admits(known[key], value):
            default = defaults.get(key, known[key].default)
            raise ParameterError(
                f"{key} must be {_NAMES.get(type(default), 'of the kind of its default')}, got {value!r}",
                hint=f"for example {key}={default}",
            )
    return known


def _admits(field: Field[Any], value: object) -> bool:
    """Whether a value is of a kind that the field's annotation names; what is named by other words, of its default's.

    Words in quotes, such as those of a Literal, are for the method to check.
    """
    words = re.findall(r"\w+", str(field.type))
    kinds = tuple(kind for word in words for kind in _KINDS.get(word, ())) or (type(field.default),)
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _lookup(kind: str, name: str, registry: Mapping[str, T], see: str) -> T:
    if name not in registry:
        raise unknown(kind, name, registry, see)
    return registry[name]


def _shares(
    labels: NDArray[np.float32], words: NDArray[np.float32], temperature: float, top: int
) -> tuple[Array, NDArray[np.int64], Array]:
    """Shares of all labels and of the words that can be among the `top` largest; see `Detector.evidence`.

    With `m_b` the largest cosine of the labels and group b, all masses of that group are divided by `e^{m_b / T}`, so
    that they neither overflow nor vanish together. Words are told by the logs of their shares, which keep their order
    where the shares themselves vanish. The `top` largest words lie in the `top` groups whose largest words have the
    largest shares: each of these groups has one that is no smaller than any word outside of them.

    Args:
        labels: cosines (n_images, n_labels).
        words: cosines (n_images, n_groups, size); overwritten. `size` may be 0.
        temperature: T, the divisor of cosines.
        top: how many words are wanted, at least 1.

    Returns:
        Shares of the labels (n_images, n_labels); the groups (n_images, up to `top`) in rising order; logs of the
        shares of their words (n_images, up to `top` * size).
    """
    scale = np.float32(1 / temperature)
    top_label = labels.max(axis=1, keepdims=True)
    top_word = words.max(axis=2, initial=-np.inf)
    m = np.maximum(top_label, top_word)
    words -= m[:, :, None]
    words *= scale
    p = np.exp((labels - top_label) * scale)  # in the measure of the labels alone
    to_group = np.exp((top_label - m) * scale)  # from that measure to the group's
    sums = p.sum(axis=1, keepdims=True) * to_group + np.exp(words).sum(axis=2, dtype=np.float64)  # 1 - 1e-9 is not 1
    for_labels = p * (to_group / sums).mean(axis=1, keepdims=True)
    logs = np.log(sums)
    near = np.sort(np.argsort(logs - (top_word - m) * scale, axis=1, kind="stable")[:, :top], axis=1)
    for_words = np.take_along_axis(words, near[:, :, None], 1) - np.take_along_axis(logs, near, 1)[:, :, None]
    return for_labels, near, for_words.reshape(len(words), near.shape[1] * words.shape[2])


def _largest(keys: NDArray[np.floating], top: int) -> NDArray[np.int64]:
    """Indices of the `top` largest, ties by index; only candidates are sorted, since this runs once an image."""
    enough = np.flatnonzero(keys >= np.partition(keys, -top)[-top]) if top < len(keys) else np.arange(len(keys))
    return np.asarray(enough[np.argsort(-keys[enough], kind="stable")[:top]])
