"""The bodies of requests and answers, beside those of `outword.client`; FastAPI makes the OpenAPI schema of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from outword.base.prediction import BEST, FIELDS, LABELS, NUMBER, TEXT, TEXTS, WORDS, Form, Prediction
from outword.base.terms import Basis

MOST_FIELDS = 10  # of an object; no request has as many
MARKS = 10_000  # on either side, of a request; these many scores fit into a small body
Score = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e100, le=1e100)]


def _texts(given: Any) -> Any:
    """Refuse at the first mistake: pydantic would write down each of a million, which takes seconds and gigabytes."""
    texts = given.values() if isinstance(given, dict) else given
    if not isinstance(given, list | dict) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of names, or an object of names and prompts")
    return given


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MOST_FIELDS:
            raise ValueError(f"an object has at most {MOST_FIELDS} fields")
        return given


class ScoreRequest(_Request):
    """Images as base64, or embeddings that were given before; one of the two."""

    images: list[str] | None = Field(None, description="Image files, base64.")
    embeddings: list[list[Score]] | None = Field(None, description="Vectors from `?embeddings=true`.")


class LabelsRequest(_Request):
    """Class names; as an object they may have a prompt of their own."""

    labels: Annotated[list[str] | dict[str, Annotated[str, Field(max_length=1000)]], BeforeValidator(_texts)] = Field(
        description="One at least; an object gives some a prompt of their own.",
        examples=[["tabby cat", "espresso", "space shuttle"]],
    )


class Marks(_Request):
    """Scores of photos that were marked."""

    inside: list[Score] = Field(default=[], description="Of photos that show one of the classes.", max_length=MARKS)
    outside: list[Score] = Field(default=[], description="Of photos that show none of them.", max_length=MARKS)


class ArtifactRequest(Marks):
    """The threshold of the download: from marks, by hand, or as it is."""

    threshold: Score | None = Field(None, description="Set by hand; not together with marks.")


class LabelShare(BaseModel):
    """A label and its share of the mass."""

    label: str
    share: float


class WordShare(BaseModel):
    """A wild word and its share of the mass of its group and the labels together."""

    word: str
    share: float


TYPES: dict[Form, Any] = {
    TEXT: str,
    NUMBER: float | None,
    BEST: list[str],
    TEXTS: list[str],
    LABELS: list[LabelShare],
    WORDS: list[WordShare],
}


def _fields() -> Iterator[tuple[str, Any]]:
    """The fields of a result by name: the columns of the table, and what an answer has besides."""
    yield "path", Annotated[str, Field(description="Of the file in the form, else its place.")]
    for column in FIELDS[1:]:
        yield column.name, Annotated[TYPES[column.form], Field(description=column.about)]
        if column.name == "p":
            yield "fits", Annotated[str, Field(description="What p says, in words.")]
    yield "embedding", Annotated[list[float] | None, Field(description="With `?embeddings=true`.")]
    about = "Base64 of what tells photos that look the same; with `?embeddings=true`."
    yield "fingerprint", Annotated[str | None, Field(description=about)]


if TYPE_CHECKING:
    Result = Any
else:
    Result = create_model("Result", __doc__="One image.", **{name: (kind, ...) for name, kind in _fields()})


def result_of(record: Prediction, embedding: list[float] | None = None, fingerprint: str | None = None) -> Result:
    """A record as an answer has it."""
    values = {column.name: column.json(record) for column in FIELDS}
    return Result(**values, fits=record.fits, embedding=embedding, fingerprint=fingerprint)


class ScoreAnswer(BaseModel):
    """Results in the order of the images."""

    detector: str
    threshold: float | None
    basis: Basis
    results: list[Result]


class Status(BaseModel):
    """How the service is."""

    status: str
