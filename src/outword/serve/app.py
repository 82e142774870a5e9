"""The routes: what is asked is read, handed to the model's thread, and told in JSON."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from prometheus_client import generate_latest

from outword._version import __version__
from outword.base.html import render
from outword.base.prediction import COLUMNS, finite_or_none
from outword.client import Info, ThresholdInfo
from outword.detector.calibration import threshold_from_marks
from outword.detector.detector import Detector
from outword.detector.judge import takes_vectors
from outword.detector.saving import zipped
from outword.errors import OutwordError
from outword.maths.thresholds import Threshold, by_hand, measured
from outword.photos.decode import Blob
from outword.photos.twins import Twins
from outword.serve import refusals, schemas
from outword.serve.bodies import read_images
from outword.serve.gate import PIECE, Gate
from outword.serve.limits import DOWNLOADS, Limits
from outword.serve.refusals import Refusal, Refused, busy, in_time, too_large
from outword.serve.service import Judged, Service, Vector, no_thread
from outword.words.labels import TooManyLabels, check_labels

PACKAGE = Path(str(files("outword")))
STATIC = {path.name: path for path in (*(PACKAGE / "serve" / "static").iterdir(), PACKAGE / "scoring" / "style.css")}
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
}
PHOTOS = {path.name: path for path in sorted((PACKAGE / "demo" / "photos").glob("*.jpg"))}
REFUSED: dict[int | str, dict[str, Any]] = {"4XX": {"model": Refused}, "503": {"model": Refused}}
FILE = {"type": "string", "format": "binary"}
FILES = {"images": {"type": "array", "minItems": 1, "items": FILE}}
FORM = {"type": "object", "required": ["images"], "properties": FILES}
BODIES = {"multipart/form-data": FORM, "application/json": schemas.ScoreRequest.model_json_schema()}
BODY = {"requestBody": {"required": True, "content": {kind: {"schema": body} for kind, body in BODIES.items()}}}
Key = Annotated[str, InPath(description="The id of a detector.")]
JSON = [Depends(refusals.json_only)]
CHUNK = 1 << 16  # bytes of a download that are sent at a time


def create_app(detector: Detector, limits: Limits, token: str | None = None, *, local: bool = True) -> FastAPI:
    """The service of one detector as an ASGI application; see `Gate` for `token` and `local`."""
    service = Service(detector, limits)
    app = FastAPI(
        title="outword",
        version=__version__,
        description="Tells whether a photo shows one of your classes, given nothing but their names.",
        lifespan=service.running,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=REFUSED,
        exception_handlers=dict.fromkeys(refusals.TOLD, refusals.tell),
    )
    _add_scoring(app, service)
    _add_detectors(app, service)
    _add_state(app, service)
    _add_pages(app)
    app.add_middleware(Gate, service=service, token=token, local=local)
    return app


def _add_scoring(app: FastAPI, service: Service) -> None:
    @app.post("/v1/score", openapi_extra=BODY, tags=["scores"])
    async def score(
        request: Request,
        detector: Annotated[str | None, Query(description="Its id; that of the service by default.")] = None,
        embeddings: Annotated[bool, Query(description="Whether to give vectors, to score again later.")] = False,
        fixed: Annotated[bool, Query(description="Whether these images leave an imagined threshold as it is.")] = False,
        top: Annotated[int, Query(ge=1, le=20, description="How many labels and words.")] = 3,
    ) -> schemas.ScoreAnswer:
        """Score images, or embeddings; higher means more in-distribution.

        One bad image among several is a result with an error; if none can be read, the answer is 422.
        """
        key, found = service.detectors.get(detector)
        kind, body = request.headers.get("content-type", ""), deque([piece async for piece in request.stream()])
        read = partial(read_images, kind, body, service.limits, found.scorer.labels_.shape[1])

        async def work() -> list[Judged]:
            small = sum(map(len, body)) <= PIECE  # then to read it takes less than to hand it over
            items: Sequence[Blob | Vector] = read() if small else await service.in_thread(read)
            if not isinstance(items[0], Blob) and not takes_vectors(found):
                raise Refusal(422, "invalid", f"{found.method} looks at more than embeddings", "send the images")
            return await service.judged(found, items, top, fixed=fixed)

        seconds = service.limits.seconds
        judged = await in_time(work(), seconds, busy(f"it took more than {seconds:g} s", 5))
        errors = [one.photo.error for one in judged if one.photo.error]
        if len(errors) == len(judged):
            raise _unreadable(errors)
        results = _results(judged, embeddings)
        for result in results:
            service.telemetry.images.labels(result.verdict or "error").inc()
        threshold = next(result.threshold for result in results if not result.error)
        return schemas.ScoreAnswer(detector=key, threshold=threshold, basis=found.basis, results=results)


def _add_detectors(app: FastAPI, service: Service) -> None:
    @app.get("/v1/detector", tags=["detectors"])
    async def own_detector() -> Info:
        """The detector that the service was started with."""
        return service.info(*service.detectors.get(None))

    @app.post("/v1/detectors", tags=["detectors"], dependencies=JSON)
    async def make_detector(given: schemas.LabelsRequest) -> Info:
        """Make a detector of labels, as the service's own was made; the same labels give the same id.

        It is kept in memory. There is room for some; the least recently used goes first, and can be made again.
        """
        count, most = len(given.labels), service.limits.labels
        hint = 'for more, fit it with "outword fit"'
        if count > most:
            raise too_large(f"got {count:,} labels", most, hint)
        try:
            labels = check_labels(given.labels, most=most)
        except TooManyLabels as error:
            raise too_large(f"names and kinds count as labels: {error.message}", most, hint) from None
        return service.info(*await service.detectors.make(labels))

    @app.get("/v1/detectors/{key}", tags=["detectors"])
    async def detector(key: Key) -> Info:
        """A detector by its id."""
        return service.info(*service.detectors.get(key))

    @app.post("/v1/detectors/{key}/threshold", tags=["detectors"], dependencies=JSON)
    async def threshold(key: Key, marks: schemas.Marks) -> ThresholdInfo:
        """The threshold that fits the scores of marked photos best; nothing is kept."""
        _, found = service.detectors.get(key)
        fitted = await service.in_thread(partial(threshold_from_marks, found, marks.inside, marks.outside))
        wrong = sum(s < fitted.value for s in marks.inside) + sum(s >= fitted.value for s in marks.outside)
        known = {name: getattr(fitted, name) for name in ("method", "tpr", "low", "high", "warning")}
        return ThresholdInfo(finite_or_none(fitted.value), calibration=fitted.told, mistakes=wrong, **known)

    places = asyncio.Semaphore(DOWNLOADS)

    async def download(
        key: Key, given: schemas.ArtifactRequest
    ) -> AsyncIterator[tuple[Detector, schemas.ArtifactRequest]]:
        """A detector, what is asked of it, and a place among the downloads until the answer is out, or has failed."""
        _, found = service.detectors.get(key)
        if places.locked():
            raise busy(f"{DOWNLOADS} detectors are being downloaded already")
        async with places:
            yield found, given

    @app.post(
        "/v1/detectors/{key}/artifact",
        tags=["detectors"],
        dependencies=JSON,
        response_class=Response,
        responses={200: {"content": {"application/zip": {"schema": FILE}}}},
    )
    async def artifact(wanted: tuple[Detector, schemas.ArtifactRequest] = Depends(download)) -> Response:
        """The detector as a zip file of the folder that `outword score` takes, with a threshold; nothing is kept."""
        found, given = wanted
        chosen = found.with_threshold(await service.in_thread(partial(_chosen, found, given)))
        data = await service.in_thread(partial(zipped, chosen))
        named = 'attachment; filename="detector.outword.zip"'
        headers = {"content-disposition": named, "content-length": str(len(data))}
        return StreamingResponse(_pieces(data), headers=headers, media_type="application/zip")


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["state"])
    async def healthz() -> schemas.Status:
        """Whether the process answers, and has threads left that do not hang."""
        if stuck := service.stuck():
            raise Refusal(503, "stuck", no_thread(stuck), "start the service anew")
        return schemas.Status(status="ok")

    @app.get("/readyz", tags=["state"])
    async def readyz() -> schemas.Status:
        """Whether images would be taken right now."""
        if not service.batcher.alive:
            raise busy("the model's thread does not run", code="not_ready")
        if refusal := service.refusal():
            raise refusal
        return schemas.Status(status="ready")

    @app.get("/metrics", tags=["state"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(generate_latest(service.telemetry.registry), media_type="text/plain; version=0.0.4")


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file(STATIC, "index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(STATIC, name)

    @app.get("/columns", include_in_schema=False)
    async def columns() -> list[dict[str, str]]:
        return [{"name": column.name, "form": column.form.name} for column in COLUMNS]

    @app.get("/demo", include_in_schema=False)
    async def demo() -> dict[str, list[str]]:
        return {"photos": list(PHOTOS)}

    @app.get("/demo/{name}", include_in_schema=False)
    async def photo(name: str) -> Response:
        return _file(PHOTOS, name)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render("serve/api_page.html", schema=app.openapi()))


def _file(known: Mapping[str, Path], name: str) -> Response:
    """One of the files that are known by name; a client's text is never made into a path."""
    if name not in known:
        raise Refusal(404, "not_found", "there is no such file", "see /docs")
    return Response(known[name].read_bytes(), media_type=TYPES[known[name].suffix])


def _results(judged: Sequence[Judged], embeddings: bool) -> list[schemas.Result]:
    with Twins() as twins:  # of this request
        return [_result(one, twins, embeddings) for one in judged]


def _result(judged: Judged, twins: Twins, embeddings: bool) -> schemas.Result:
    photo, record, vector = judged
    print_of = photo.look.fingerprint
    noted = replace(record, notes=(*record.notes, *twins.note(photo.name, print_of)))
    if not embeddings:
        return schemas.result_of(noted)
    return schemas.result_of(
        noted,
        None if vector is None else vector.tolist(),
        None if print_of is None else b64encode(print_of.packed).decode(),
    )


def _unreadable(errors: Sequence[OutwordError]) -> Refusal:
    first, *rest = errors
    more = f", and {len(rest)} more cannot be read" if rest else ""
    return Refusal(422, "unreadable_image", f"{first.message}{more}", first.hint)


def _chosen(detector: Detector, given: schemas.ArtifactRequest) -> Threshold | None:
    marked = bool(given.inside or given.outside)
    if marked and given.threshold is not None:
        raise Refusal(422, "invalid", "a threshold is set by hand or comes from marks", "send one of the two")
    if marked:
        return threshold_from_marks(detector, given.inside, given.outside)
    if given.threshold is None:
        return detector.calibration_
    return measured(by_hand(given.threshold), detector.thresholds.reference_scores)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK]
