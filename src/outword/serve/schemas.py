"""The bodies of requests and answers, beside those of `outword.client`; FastAPI makes the OpenAPI schema of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

FIELDS = 10  # of an object; no request has as many
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
        if isinstance(given, dict) and len(given) > FIELDS:
            raise ValueError(f"an object has at most {FIELDS} fields")
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

    inside: list[Score] = Field(default=[], description="Of photos that show one of the classes.", max_length=1000)
    outside: list[Score] = Field(default=[], description="Of photos that show none of them.", max_length=1000)


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


class Result(BaseModel):
    """One image."""

    name: str = Field(description="Of the file in the form, else its place.")
    score: float | None = Field(description="Higher means more in-distribution; null if it could not be read.")
    verdict: str = Field(description='"in" or "out"; "uncalibrated" where there is no threshold.')
    basis: str = Field(description='Of the threshold: "calibrated", "reference", "batch" or "formula".')
    threshold: float | None = Field(description="In from this score on; null if there is none.")
    p: float | None = Field(description="The share of unrelated photos that score as high, if it is known.")
    fits: str = Field(description="What p says, in words.")
    label: str = Field(description="The nearest.")
    kind: str = Field(description="The kind of it that matched; empty if that is the label itself.")
    looks_like: list[str] = Field(description="Readable names, best first; they decide nothing.")
    labels: list[LabelShare]
    words: list[WordShare] = Field(description="Wild words that fired.")
    notes: list[str] = Field(description="Of its quality, or that it is the same as another; they decide nothing.")
    error: str = Field(description="Why it could not be read, else empty.")
    embedding: list[float] | None = Field(description="With `?embeddings=true`.")


class ScoreAnswer(BaseModel):
    """Results in the order of the images."""

    detector: str
    threshold: float | None
    basis: str
    results: list[Result]


class Status(BaseModel):
    """How the service is."""

    status: str
