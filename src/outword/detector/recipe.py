"""How a detector is made: a method and a miner by name, with parameters that they have, an encoder, words, prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np

from outword.base.checks import unknown
from outword.base.files import PathLike
from outword.detector.card import Card
from outword.encoders import Encoder
from outword.errors import ParameterError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.methods.needs import from_pixels, versions
from outword.maths.mining import MINERS, Miner
from outword.vectors.names import rival_names
from outword.vectors.wild import is_shipped
from outword.words.corpora import THINGS, Corpus, get_corpus
from outword.words.kinds import Kinds
from outword.words.prompts import Prompts, get_prompts

METHOD, PAPERS, CORPUS = "grounded", "debiased", "wordnet"  # the library's own choice, and the paper's method
FEWEST_RIVALS = 500  # names of things that are enough without mined words (docs/clip.md)
_KINDS: dict[str, tuple[type, ...]] = {  # what a word of an annotation admits
    "float": (int, float, np.number),
    "int": (int, np.integer),
    "bool": (bool,),
    "str": (str,),
    "Literal": (str,),
}
_NAMES = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


@dataclass(frozen=True)
class Recipe:
    """How a detector is made, with nothing left open; `resolve` gives one, `outword.detector.fitting` follows it.

    There is no corpus where the method wants none, or wants a list of the user's and there is none
    (`outword.detector.inputs.missing_inputs` says so).
    """

    encoder: Encoder
    method: str
    params: Mapping[str, Any]  # all that the method has
    miner: str
    miner_params: Mapping[str, Any]
    corpus: Corpus | None
    prompts: Prompts
    keep_label_words: bool  # whether wild words about a label are kept
    kinds: Kinds | Literal["auto"]  # which kinds of a label stand beside it; "auto": by what the encoder knows
    on_vectors: Mapping[str, Any]  # what was set so that a method which looks at pixels is content with vectors

    def make_scorer(self) -> VectorDetector:
        """The method with its parameters, to be fitted."""
        return DETECTORS[self.method](**self.params)

    def make_miner(self) -> Miner:
        """The rule that chooses wild words."""
        return MINERS[self.miner](**self.miner_params)

    @cached_property
    def wants(self) -> tuple[Need, ...]:
        """What the method needs with these parameters."""
        return self.make_scorer().wants()

    @property
    def seed_matters(self) -> bool:
        """Whether figures depend on a seed: something is drawn by chance, or images are scored in a shuffled order."""
        of_words = Need.WILD in self.wants and "seed" in self.miner_params
        return "seed" in self.params or DETECTORS[self.method].sees_order or of_words

    @property
    def offer_versions(self) -> dict[str, str]:
        """In which way the encoder makes what the method asks of it, by name (`outword.maths.methods.needs`)."""
        return versions(self.wants)


def resolve(
    encoder: Encoder,
    method: str,
    params: Mapping[str, Any],
    *,
    corpus: PathLike | None = None,
    miner: str | None = None,
    miner_params: Mapping[str, Any] | None = None,
    prompts: str | None = None,
    seed: int | None = None,
    keep_label_words: bool = False,
    kinds: str | None = None,
    vectors_only: bool = False,
) -> Recipe:
    """Fill in what is left open by what the method is published with, and check names and parameters.

    Nothing is encoded. What the method lacks is no error here; `outword.detector.inputs.missing_inputs` tells it. The
    arguments are those of `outword.fit`, but for `seed`, of all that is drawn by chance and whose parameters have none,
    and `vectors_only`, by which a method that looks at pixels takes part in its form for vectors, if it has one.
    """
    scorer = make_detector(method, encoder.temperature, _seeded(DETECTORS.get(method), params, seed))
    on_vectors = dict(scorer.on_vectors) if vectors_only and from_pixels(scorer.wants()) else {}
    if on_vectors:
        scorer = make_detector(method, encoder.temperature, {**scorer.params(), **on_vectors})
    rule = miner or scorer.miner
    mined = make_miner(rule, _seeded(MINERS.get(rule), miner_params or {}, seed))
    templates = get_prompts(prompts or scorer.prompts or encoder.prompts)
    named = corpus or (CORPUS if scorer.corpus is None else scorer.corpus)
    if corpus is None and scorer.rivals and rivals_are_enough(encoder, get_corpus(named), templates, mined):
        named = THINGS
    return Recipe(
        encoder=encoder,
        method=method,
        params=scorer.params(),
        miner=rule,
        miner_params=asdict(mined),  # type: ignore[call-overload]
        corpus=get_corpus(named) if named and Need.WILD in scorer.wants() else None,
        prompts=templates,
        keep_label_words=keep_label_words,
        kinds=_kinds(method, scorer, kinds),
        on_vectors=on_vectors,
    )


def rivals_are_enough(encoder: Encoder, corpus: Corpus, prompts: Prompts, miner: Miner) -> bool:
    """Whether names of things compete by themselves: the mined words would have to be made, and it knows many names."""
    return not is_shipped(encoder, corpus, prompts, miner) and len(rival_names(encoder)) >= FEWEST_RIVALS


def _kinds(method: str, scorer: VectorDetector, kinds: str | None) -> Kinds | Literal["auto"]:
    """The kinds that were asked for, or else the method's own choice."""
    chosen, known = kinds or scorer.kinds, ("auto", *get_args(Kinds))
    if chosen not in known:
        raise unknown("value of kinds", chosen, known, "outword fit --help")
    if chosen != "off" and Need.ID_LABELS in scorer.wants():
        if kinds is None:
            return "off"
        raise ParameterError(f"{method} learns its classes from ID images, got kinds={kinds}", hint="leave kinds out")
    return cast("Kinds", chosen)


def resolve_card(card: Card, encoder: Encoder) -> Recipe:
    """The recipe of a card, which says all but how the encoder runs here."""
    return resolve(
        encoder,
        card.method.name,
        card.method.parameters,
        corpus=card.corpus.name if card.corpus else None,
        miner=card.miner.name if card.miner else None,
        miner_params=card.miner.parameters if card.miner else None,
        prompts=card.prompts.name,
        keep_label_words=card.keep_label_words,
        kinds=card.kinds,
    )


def _seeded(kind: type[Any] | None, params: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The parameters, with the seed, if there is one to set."""
    has = kind is not None and seed is not None and any(known.name == "seed" for known in fields(kind))
    return {"seed": seed, **params} if has else dict(params)


def default_method(params: Mapping[str, Any]) -> str:
    """The method to take where none is named: the paper's if parameters of its own are set, such as tau.

    >>> default_method({}), default_method({"b": 2}), default_method({"tau": 0.4})
    ('grounded', 'grounded', 'debiased')
    """
    own = set(params) - set(_parameters(DETECTORS[METHOD]))
    return PAPERS if own and own <= set(_parameters(DETECTORS[PAPERS])) else METHOD


def make_detector(method: str, temperature: float, params: Mapping[str, Any]) -> VectorDetector:
    """A method by name, at the encoder's temperature unless the method has its own.

    >>> make_detector("debiased", 0.04, {"tau": 0.4})
    Debiased(temperature=0.04, n_groups=100, seed=0, tau=0.4, sigma=0.0, policy='cap')
    """
    kind = DETECTORS[method]
    for key in params.keys() - set(_parameters(kind)):
        if others := [name for name, other in DETECTORS.items() if key in _parameters(other)]:
            has = "has" if len(others) == 1 else "have"
            raise ParameterError(
                f"{method} has no parameter {key}, got {key}={params[key]}",
                hint=f"{', '.join(others[:3])} {has} it: method={others[0]}",
            )
    known = checked_params(method, kind, params, kind.in_pipeline, "outword list methods --long")
    takes = "temperature" in known and not kind.own_temperature
    made = kind(**{**({"temperature": temperature} if takes else {}), **kind.in_pipeline, **params})
    made.check()
    return made


def _parameters(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def make_miner(miner: str, params: Mapping[str, Any]) -> Miner:
    """A miner by name.

    >>> make_miner("density", {"alpha": 10}).alpha
    10
    """
    kind = MINERS[miner]
    checked_params(miner, kind, params, {}, "outword list miners --long")
    return kind(**params)


def checked_params(
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
