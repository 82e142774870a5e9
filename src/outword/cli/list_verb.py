"""`outword list`: what there is to choose from."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from outword.cli.choices import KINDS, registry


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: str, as_json: bool) -> None:
    """List what can be chosen: encoders, corpora, methods, miners or prompts.

    \b
    Example:
      outword list methods
    """
    rows = [{"name": name, "about": about, **_more(kind, name)} for name, about in registry(kind).items()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(highlight=False).print(table, markup=False)


def _more(kind: str, name: str) -> dict[str, Any]:
    """Further columns of a kind."""
    if kind == "encoders":
        from outword.encoders import get_encoder

        encoder = get_encoder(name)
        return {"dim": encoder.dim, "temperature": encoder.temperature, "prompts": encoder.prompts}
    if kind == "methods":
        from outword.detectors import DETECTORS

        method = DETECTORS[name]
        defaults = {f.name: f.default for f in fields(method)} | dict(method.in_pipeline)  # type: ignore[arg-type]
        if "temperature" in defaults and not method.own_temperature:
            defaults["temperature"] = "the encoder's"
        needs = "labels, wild words" if method.needs_wild else "labels"
        return {"needs": needs, "parameters": ", ".join(f"{key}={value}" for key, value in defaults.items())}
    return {}
