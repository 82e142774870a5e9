"""`outword list`: what there is to choose from."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click

from outword.cli.choices import KINDS, registry


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--long", is_flag=True, help="All that is known of each, such as licence and source of encoders.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: str, long: bool, as_json: bool) -> None:
    """List what can be chosen: encoders, corpora, methods, miners, prompts or suites.

    \b
    Example:
      outword list methods
      outword list encoders --long
    """
    rows = [{"name": name, "about": about, **_more(kind, name)} for name, about in registry(kind).items()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif long:
        click.echo(
            "\n\n".join("\n".join(f"{key}: {_listed(value)}" for key, value in row.items() if value) for row in rows)
        )
    elif kind == "methods":
        _print([{key: _listed(row[key]) for key in ("name", "needs", "about")} for row in rows])
    elif kind == "encoders":
        _print([{key: row[key] for key in ("name", *_FACTS)} for row in rows if row["size"]])
        click.echo("\n" + "\n".join(f"{row['form']}: {row['about']}" for row in rows if not row["size"]))
    else:
        _print([{key: row[key] for key in ("name", "about")} for row in rows])


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    columns = [Column(name, overflow="fold") for name in rows[0]]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(highlight=False).print(table, markup=False)


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        value = [f"{key}={one}" for key, one in value.items()]
    return ", ".join(value) if isinstance(value, list) else value


def _more(kind: str, name: str) -> dict[str, Any]:
    """Further columns of a kind."""
    more = {"encoders": _encoder, "methods": _method, "suites": _suite}.get(kind)
    return more(name) if more else {}


def _method(name: str) -> dict[str, Any]:
    """What a method needs, its parameters as `outword fit` sets them, and the words that it is published with."""
    from outword.maths.methods import DETECTORS, Need

    method = DETECTORS[name]
    defaults = {f.name: f.default for f in fields(method)} | dict(method.in_pipeline)  # type: ignore[arg-type]
    if "temperature" in defaults and not method.own_temperature:
        defaults["temperature"] = "the encoder's"
    own = {"miner": method.miner if Need.WILD in method.needs else None, "prompts": method.prompts}
    corpus = "a word list of yours" if method.corpus == "" else method.corpus
    return {"needs": [need.value for need in method.needs], "parameters": defaults, "corpus": corpus, **own}


def _suite(name: str) -> dict[str, Any]:
    """What a suite runs."""
    from outword.benchmark.run.suite import read_suite

    suite = read_suite(name)
    return {
        "details": suite.about,
        **{part: list(getattr(suite, part)) for part in ("id", "ood", "encoders", "corpora")},
        "methods": [entry.shown for entry in suite.methods],
        "sweep": {sweep.parameter: list(sweep.values) for sweep in suite.sweep},
    }


_FACTS = ("size", "dim", "input", "temperature", "on this machine")


def _encoder(name: str) -> dict[str, Any]:
    """What is known of an encoder without loading it; `on this machine` looks into the hub's cache."""
    from outword.encoders.names import KNOWN, PREFIXES

    if name.endswith(":"):  # any model of a library
        form = PREFIXES.get(name, f"{name}NAME")
        return {**dict.fromkeys(_FACTS, ""), "form": form, "licence": "of the model", "source": "of the model"}
    if known := KNOWN.get(name):
        facts = 4 * known.parameters, known.dim, known.side, known.temperature, _is_here(known.repo)
        licence, source = known.licence, known.source
    else:
        from outword.encoders.mini.encoder import DATA, SIDE, Mini

        mini = Mini()
        facts = sum(path.stat().st_size for path in DATA.iterdir()), mini.dim, SIDE, mini.temperature, "yes"
        licence, source = mini.licence, mini.source
    size, dim, side, temperature, here = facts
    shown = (f"{size / 1e6:.0f} MB", dim, f"{side} x {side}", temperature, here)
    return {**dict(zip(_FACTS, shown, strict=True)), "form": name, "licence": licence, "source": source}


def _is_here(repo: str) -> str:
    from outword.encoders.hub import cached
    from outword.encoders.torch.models import WEIGHTS
    from outword.errors import MissingExtraError

    try:
        return "yes" if cached(repo, WEIGHTS["open_clip"]) else "no"
    except MissingExtraError:
        return "unknown"  # the hub's own library knows where to look
