"""What a detector says of itself: how it was made, and what each label was taken for; detector.json has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from outword.base.terms import Flag
from outword.words.kinds import Kinds, Meaning
from outword.words.prompts import Prompts

_IF_ANY = "corpus", "miner", "keep_label_words", "id_images", "learned"  # left out of the JSON where there is none


@dataclass(frozen=True)
class MethodCard:
    """A method, with all of its parameters."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class EncoderCard:
    """The encoder that made the vectors.

    `options` are those of `get_encoder` that change vectors. `patches` names the way in which patches are made, for a
    method that looks at them; "" for others.
    """

    name: str
    fingerprint: str
    temperature: float
    licence: str = ""
    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    patches: str = ""


@dataclass(frozen=True)
class CorpusCard:
    """A list of words; `left_out` are those of the mined words that are about a label."""

    name: str
    fingerprint: str
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class MinerCard:
    """The rule that chose wild words; the fingerprint is that of all that they depend on."""

    name: str
    parameters: Mapping[str, Any]
    fingerprint: str


@dataclass(frozen=True)
class IdImagesCard:
    """The photos that a method was fitted on: how many, of how many classes, and how many were not used."""

    count: int
    classes: int
    left_out: int
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """How a detector was made, and what each label was taken for.

    Attributes:
        outword: the version that made it.
        method, encoder, prompts: what it is made of.
        corpus, miner: where its wild words come from; None where it has none.
        kinds: which kinds of the labels were asked for.
        keep_label_words: whether wild words about a label were kept.
        label_prompts: the prompts that were given for some labels.
        coverage: how well the encoder knows each label (`outword.encoders.Coverage`); empty where it cannot tell.
        id_images: the photos that the method was fitted on; None where there were none.
        fpr: the share of unrelated photos that was to get in; None where none was asked for.
        meanings: what each label was taken for.
        learned: what the method says of its learning; None where it learned nothing.
    """

    outword: str = ""
    method: MethodCard
    encoder: EncoderCard
    prompts: Prompts
    corpus: CorpusCard | None = None
    miner: MinerCard | None = None
    kinds: Kinds | Literal["auto"]
    keep_label_words: bool = False
    label_prompts: Mapping[str, str] = field(default_factory=dict)
    coverage: Mapping[str, Flag]
    id_images: IdImagesCard | None = None
    fpr: float | None
    meanings: tuple[Meaning, ...]
    learned: Mapping[str, Any] | None = None

    def __getitem__(self, entry: str) -> Any:
        """An entry as detector.json has it: `card["encoder"]["name"]`."""
        return self.as_json()[entry]

    def as_json(self) -> dict[str, Any]:
        """The card as detector.json has it."""
        table = asdict(self)
        for name in _IF_ANY:
            if table[name] in (None, False):
                del table[name]
        if not self.encoder.patches:
            del table["encoder"]["patches"]
        return table
