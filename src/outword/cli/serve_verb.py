"""`outword serve`: verdicts over HTTP, and a page for the browser."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from outword.base.ending import GRACE, allow
from outword.base.extras import require
from outword.cli.fit_verb import check_detector, check_either, fit_plainly
from outword.cli.options import (
    fixed_option,
    judge_options,
    labels_option,
    own_column_option,
    read_setting,
    with_refining,
)
from outword.cli.progress import say, show
from outword.errors import InputError, ParameterError
from outword.serve.limits import Limits

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.words.labels import Label


@click.command("serve")
@click.argument("detector", type=click.Path(), required=False)
@labels_option
@own_column_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option(
    "--token", envvar="OUTWORD_TOKEN", help="What clients must show. Better in OUTWORD_TOKEN: others see commands."
)
@click.option("--insecure", is_flag=True, help="Listen for other machines without a token.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a limit, e.g. images=16; docs/serving.md lists them. May be repeated.",
)
@fixed_option
@judge_options
def command(
    detector: str | None,
    labels: str | None,
    label_column: str | None,
    host: str,
    port: int,
    token: str | None,
    insecure: bool,
    limits: tuple[str, ...],
    fixed_threshold: bool,
    options: Mapping[str, Any],
) -> None:
    """Serve DETECTOR over HTTP, with a page for the browser; prints the address.

    The page is at /, the API at /docs. Ctrl-C ends it when what was accepted is answered.

    \b
    Example:
      outword serve pets.outword
      outword serve --labels labels.txt --port 8080
    """
    names, chosen = check_source(detector, labels, label_column), read_limits(limits)
    for package in ("fastapi", "uvicorn", "python_multipart", "prometheus_client"):
        require(package)
    from outword.detector.loading import load
    from outword.serve import server
    from outword.serve.app import create_app

    check_token(token, open_to_all=not server.is_local(host), insecure=insecure)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with server.bind(host, port) as bound:  # before the long work: that the port is in use is said at once
        made = load(detector, **options) if detector else fit_plainly(str(labels), names, options)
        found = _warm(with_refining(made, fixed=fixed_threshold))
        allow(math.ceil(chosen.patience) + GRACE)
        app = create_app(found, chosen, token, local=server.is_local(host))
        server.Server(app, chosen, ready=lambda: show(server.address(bound))).run(sockets=[bound])
    say("stopped")


def check_source(detector: str | None, labels: str | None, column: str | None = None) -> Mapping[str, Label]:
    """Raise unless there is one thing to serve, and it looks like it; gives the labels, if it is these."""
    from outword.words.labels import read_labels

    check_either("serve", detector, labels)
    if detector is not None:
        check_detector("serve", (detector,))
    return read_labels(labels, column=column, say=say) if labels is not None else {}


def read_limits(settings: Sequence[str]) -> Limits:
    """The limits of `NAME=VALUE`; those that are not named have their defaults."""
    given = dict(read_setting("--limit", text, "images=16") for text in settings)
    names = [field.name for field in fields(Limits)]
    for name in given:
        if name not in names:
            raise ParameterError(f"--limit knows no limit {name!r}", hint=f"the limits are {', '.join(names)}")
    return Limits(**given)


def check_token(token: str | None, *, open_to_all: bool, insecure: bool) -> None:
    """Raise unless a service may run with this token, or without one."""
    if token is not None and not re.fullmatch("[!-~]+", token):
        raise ParameterError("the token must be printable ASCII without spaces", hint="openssl rand -hex 32 makes one")
    if token is None and open_to_all and not insecure:
        hint = 'set OUTWORD_TOKEN, for example to what "openssl rand -hex 32" prints; or say --insecure'
        raise ParameterError("other machines can reach this address: a token is needed", hint=hint)


def _warm(found: Detector) -> Detector:
    """The detector, its encoder loaded and both warm: the first request is as quick as the next."""
    import numpy as np

    from outword.maths.methods.needs import by_hand

    if found.scorer.sees_order:
        wrong = f"{found.method} learns from the images that it scores: clients would change each other's scores"
        raise InputError(wrong, hint="serve a detector of another method")
    for need in by_hand(found.scorer.wants()):
        wrong = f"{found.method} needs {need.value}, and requests have none"
        raise InputError(wrong, hint="serve a detector of another method")
    photo = np.zeros((64, 64, 3), np.uint8)
    found.explain(photo)
    found.encoder.encode_images([photo, photo])  # several have a session of their own
    found.encoder.encode_texts(["a photo"])
    return found
