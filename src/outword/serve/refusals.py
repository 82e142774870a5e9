"""Every answer that is no success has one shape: `{"error": {"code", "message", "hint"}}`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException

from outword.errors import OutwordError

T = TypeVar("T")
CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}


class Problem(BaseModel):
    """What went wrong, and what to do next."""

    code: str = Field(description="Stable; for programs.", examples=["too_large"])
    message: str = Field(description="For people; may change.", examples=["the body must have at most 1024 bytes"])
    hint: str = Field(description="What to do next.", examples=["send fewer images at once"])


class Refused(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: Problem


class Refusal(Exception):
    """Ends a request with a status and the common shape."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self._headers = status, headers
        self.problem = {"code": code, "message": message, "hint": hint}

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse({"error": self.problem}, self.status, headers=self._headers)


def busy(what: str, seconds: int = 1, *, code: str = "overloaded") -> Refusal:
    """503: nothing is wrong with the request, but it has to come again."""
    hint = f"try again in {seconds} s, as Retry-After says"
    return Refusal(503, code, what, hint, {"Retry-After": str(seconds)})


async def in_time(work: Awaitable[T], seconds: float, late: Refusal) -> T:
    """The result of work; `late` is raised where it does not come within so many seconds."""
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError:
        raise late from None


def too_large(what: str, most: int, hint: str) -> Refusal:
    """413: more than the service takes."""
    return Refusal(413, "too_large", f"{what}; the most is {most:,}", hint)


def invalid(error: ValidationError | RequestValidationError) -> Refusal:
    """422: the first thing that does not follow the schema. What was received is not repeated: it may be an image."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    if first["type"] == "json_invalid":
        return not_json()
    return Refusal(422, "invalid", f"{place[:200]}: {first['msg'][:500]}", "see /docs for what is expected")


def not_json() -> Refusal:
    """400: no JSON at all."""
    return Refusal(400, "bad_request", "the body is not JSON", "see /docs for what is expected")


def wrong_type(got: str, wanted: str) -> Refusal:
    """415: a body of a type that is not taken."""
    message = f'the type of the body must be {wanted}, got "{got[:100]}"'
    return Refusal(415, "unsupported_media_type", message, "set the header Content-Type")


def json_only(request: Request) -> None:
    """For routes that take JSON: a page of another site could send any other type without asking first."""
    got = request.headers.get("content-type", "")
    if got.partition(";")[0].strip().lower() != "application/json":
        raise wrong_type(got, "application/json")


TOLD: dict[type[Exception], Callable[[Any], Refusal]] = {
    Refusal: lambda error: error,
    OutwordError: lambda error: Refusal(422, "invalid", error.message, error.hint),
    RequestValidationError: invalid,
    HTTPException: lambda error: Refusal(
        error.status_code, CODES.get(error.status_code, "bad_request"), error.detail, "see /docs", error.headers
    ),
}
"""The refusal that an exception becomes: what the framework itself refuses has the common shape too."""


async def tell(request: Request, error: Exception) -> JSONResponse:
    """The answer to an exception of `TOLD`, or of a class below one."""
    return next(made(error) for kind, made in TOLD.items() if isinstance(error, kind)).response()
