"""`outword list`: what there is to choose from."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click

from outword.cli.choices import KINDS, registry
from outword.cli.progress import print_table, show


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
    more = {"encoders": _encoder, "methods": _method, "miners": _miner, "suites": _suite}.get(kind)
    rows = [{"name": n, "about": about, **(more(n) if more else {})} for n, about in registry(kind).items()]
    if as_json:
        show(json.dumps(rows, indent=2))
    elif long:
        told = ["\n".join(f"{key}: {_listed(value)}" for key, value in row.items() if value) for row in rows]
        show("\n\n".join(told))
    else:
        titles = {"methods": ("name", "needs", "about"), "encoders": ("name", *_FACTS)}.get(kind, ("name", "about"))
        any_model = [row for row in rows if kind == "encoders" and not row["size"]]
        print_table(titles, [[_listed(row[title]) for title in titles] for row in rows if row not in any_model])
        if any_model:
            show("\n" + "\n".join(f"{row['form']}: {row['about']}" for row in any_model))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        value = [f"{key}={one}" for key, one in value.items()]
    return ", ".join(value) if isinstance(value, list) else value


def _method(name: str) -> dict[str, Any]:
    """What a method needs, its parameters as `outword fit` sets them, and the words that it is published with."""
    from outword.maths.methods import DETECTORS, Need

    method = DETECTORS[name]
    defaults = {f.name: f.default for f in fields(method)} | dict(method.in_pipeline)  # type: ignore[arg-type]
    if "temperature" in defaults and not method.own_temperature:
        defaults["temperature"] = "the encoder's"
    own = {"miner": method.miner if Need.WILD in method.needs else None, "prompts": method.prompts}
    corpus = "a word list of yours" if method.corpus == "" else method.corpus
    needs = [need.value for need in method.needs if need is not Need.NEGATIVES]  # which nobody has to bring
    return {"needs": needs, "parameters": defaults, "corpus": corpus, **own}


def _miner(name: str) -> dict[str, Any]:
    """The parameters of a miner."""
    from outword.maths.mining import MINERS

    return {"parameters": {field.name: field.default for field in fields(MINERS[name])}}  # type: ignore[arg-type]


def _suite(name: str) -> dict[str, Any]:
    """What a suite runs."""
    from outword.benchmark.run.suite import read_suite

    suite = read_suite(name)
    return {
        "details": suite.about,
        "parts": list(suite.parts),
        **({} if suite.parts else {part: list(getattr(suite, part)) for part in ("id", "ood", "encoders", "corpora")}),
        "methods": [entry.shown for entry in suite.methods],
        "sweep": {sweep.parameter: list(sweep.values) for sweep in suite.sweep},
    }


_FACTS = ("size", "dim", "input", "temperature", "on this machine")


def _encoder(name: str) -> dict[str, Any]:
    """What is known of an encoder without loading it; `on this machine` looks into the hub's cache."""
    from outword.encoders.names import KNOWN, MINI, PREFIXES, parse

    if name.endswith(":"):  # any model of a library
        form = PREFIXES.get(name, f"{name}NAME")
        return {**dict.fromkeys(_FACTS, ""), "form": form, "licence": "of the model", "source": "of the model"}
    if known := KNOWN.get(name):
        model: Any = known
        size, side, here = 4 * known.parameters, known.side, _is_here(known.repo)
    else:  # embedded
        from outword.encoders import get_encoder
        from outword.encoders.mini.encoder import SIDE
        from outword.encoders.torch.models import files_of

        model, here = get_encoder(name), "yes"
        size = sum(path.stat().st_size for path in files_of(parse(name)))
        side = SIDE if name in MINI else model.preprocess.side
    shown = (f"{size / 1e6:.0f} MB", model.dim, f"{side} x {side}", float(f"{model.temperature:.4g}"), here)
    own = {"form": name, "licence": model.licence, "source": model.source}
    return {**dict(zip(_FACTS, shown, strict=True)), **own}


def _is_here(repo: str) -> str:
    from outword.encoders.hub import cached
    from outword.encoders.torch.models import WEIGHTS
    from outword.errors import MissingExtraError

    try:
        return "yes" if cached(repo, WEIGHTS["open_clip"]) else "no"
    except MissingExtraError:
        return "unknown"  # the hub's own library knows where to look
