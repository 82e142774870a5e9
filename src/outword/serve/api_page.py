"""The page `/docs`: the OpenAPI schema as plain HTML, with a command for each call; no script, no other host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outword.base.html import render

_JSON = "-H 'Content-Type: application/json' -d"
EXAMPLES = {
    ("post", "/v1/score"): "curl -s -F images=@photos/cat.jpg -F images=@photos/raccoon.jpg ADDRESS/v1/score",
    ("get", "/v1/detector"): "curl -s ADDRESS/v1/detector",
    ("post", "/v1/detectors"): f"""curl -s {_JSON} '{{"labels": ["raccoon", "espresso"]}}' ADDRESS/v1/detectors""",
    ("get", "/v1/detectors/{key}"): "curl -s ADDRESS/v1/detectors/ID",
    ("post", "/v1/detectors/{key}/threshold"): (
        f"""curl -s {_JSON} '{{"inside": [6.5, 0.9], "outside": [0.3]}}' ADDRESS/v1/detectors/ID/threshold"""
    ),
    ("post", "/v1/detectors/{key}/artifact"): (
        f"""curl -s {_JSON} '{{"threshold": 1.2}}' -o detector.zip ADDRESS/v1/detectors/ID/artifact"""
    ),
    ("get", "/healthz"): "curl -s ADDRESS/healthz",
    ("get", "/readyz"): "curl -s ADDRESS/readyz",
    ("get", "/metrics"): "curl -s ADDRESS/metrics",
}
"""A command for each call; `ADDRESS` is that of the service, `ID` that of a detector."""


def api_page(schema: Mapping[str, Any]) -> str:
    """The page of an OpenAPI schema."""
    return render("serve/api_page.html", schema=schema, examples=EXAMPLES)
