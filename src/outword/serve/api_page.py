"""The page `/docs`: the OpenAPI schema as plain HTML, with a command for each call; no script, no other host."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

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


def handbook(schema: Mapping[str, Any]) -> str:
    """The page of an OpenAPI schema."""
    calls = [
        _call(method, path, about) for path, methods in schema["paths"].items() for method, about in methods.items()
    ]
    models = "".join(
        f'<h3 id="{_text(name)}">{_text(name)}</h3><pre>{_text(json.dumps(model, indent=2))}</pre>'
        for name, model in schema["components"]["schemas"].items()
    )
    title = f"{_text(schema['info']['title'])} {_text(schema['info']['version'])}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}: the API</title><link rel="icon" type="image/svg+xml" href="static/icon.svg">'
        '<link rel="stylesheet" href="static/style.css"><link rel="stylesheet" href="static/docs.css"></head>'
        f"<body><header><h1>{title}: the API</h1><p>{_text(schema['info']['description'])} "
        'The schema is <a href="openapi.json">openapi.json</a>; <a href="./">the page</a> is for people. Every answer '
        "with a status of 400 or more has the body <code>Refused</code>.</p></header>"
        f"<main>{''.join(calls)}<h2>Bodies</h2>{models}</main></body></html>"
    )


def _call(method: str, path: str, about: Mapping[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{_text(p['name'])}</code> ({_text(p['in'])}) {_text(p.get('description', ''))}</li>"
        for p in about.get("parameters", [])
    )
    takes = " or ".join(_body(kind, body) for kind, body in about.get("requestBody", {}).get("content", {}).items())
    body = f"<div>Takes {takes}</div>" if takes else ""
    answer = " or ".join(_body(kind, body) for kind, body in about["responses"]["200"]["content"].items())
    return (
        f"<h2><code>{_text(method.upper())} {_text(path)}</code></h2><p>{_text(about.get('description', ''))}</p>"
        f"<pre>{_text(EXAMPLES[method, path])}</pre><ul>{parameters}</ul>{body}<p>Gives {answer}.</p>"
    )


def _body(kind: str, body: Mapping[str, Any]) -> str:
    """The type of a body, and the name of what is in it, where it has one."""
    schema = body.get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    link = f' (<a href="#{_text(name)}">{_text(name)}</a>)' if name else ""
    own = f"<pre>{_text(json.dumps(schema, indent=2))}</pre>" if "properties" in schema else ""
    return f"<code>{_text(kind)}</code>{link}{own}"


def _text(value: str) -> str:
    return html.escape(value, quote=True)
