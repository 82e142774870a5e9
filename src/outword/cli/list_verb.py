"""`outword list`: what there is to choose from."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click

from outword.base import lab
from outword.base.extras import install
from outword.base.registry import LISTS
from outword.cli.choices import REGISTRIES, registry, the_registry
from outword.cli.progress import print_table, show

OURS = (*REGISTRIES, "prompts")
KINDS = [*OURS, *LISTS, *lab.names(LISTS.group, LISTS)]  # here, since other verbs need not load other packages for it


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
    rows = _rows(kind)
    if as_json:
        show(json.dumps(rows, indent=2))
    elif long:
        told = ["\n".join(f"{key}: {_listed(value)}" for key, value in row.items() if value) for row in rows]
        show("\n\n".join(told))
    else:
        titles = {"methods": ("name", "needs", "about"), "encoders": ("name", *_FACTS)}.get(kind, ("name", "about"))
        missing = [row for row in rows if not row.get("installed", True)]
        any_model = [row for row in rows if "form" in row and not row["size"]]
        lines = [row for row in rows if row not in missing and row not in any_model]
        print_table(titles, [[_listed(row.get(title, "")) for title in titles] for row in lines])
        if any_model:
            show("\n" + "\n".join(f"{row['form']}: {row['about']}" for row in any_model))
        if missing:
            names = ", ".join(row["name"] for row in missing)
            show(f"\nmore {missing[0]['about']}\n{names}")


def _rows(kind: str) -> list[dict[str, Any]]:
    """What there is of a kind; of what comes with `outword-lab` it is said so, and whether that is installed."""
    if kind in LISTS or kind not in OURS:
        return LISTS[kind]()
    more = {"encoders": _encoder, "methods": _method, "miners": _miner}.get(kind)
    rows = [{"name": name, "about": about, **(more(name) if more else {})} for name, about in registry(kind).items()]
    if kind not in REGISTRIES:
        return rows
    known = the_registry(kind)
    of_lab = lab.names(known.group)
    marked = [{**row, "package": lab.PACKAGE, "installed": True} if row["name"] in of_lab else row for row in rows]
    return marked + [_missing(name) for name in lab.names(known.group, known)]


def _missing(name: str) -> dict[str, Any]:
    """A row for what comes with `outword-lab`, where that is not installed."""
    how = f"comes with {lab.PACKAGE}: {install('lab')}"
    return {"name": name, "about": how, "package": lab.PACKAGE, "installed": False}


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


_FACTS = ("size", "dim", "input", "temperature", "on this machine")


def _encoder(name: str) -> dict[str, Any]:
    """What is known of an encoder without loading it; `on this machine` looks into the hub's cache."""
    from outword.encoders.names import KNOWN, PREFIXES, parse
    from outword.encoders.present import here as is_here

    if name.endswith(":"):  # any model of a library
        form = PREFIXES.get(name, f"{name}NAME")
        return {**dict.fromkeys(_FACTS, ""), "form": form, "licence": "of the model", "source": "of the model"}
    if known := KNOWN.get(name):
        model: Any = known
        size, side, here = 4 * known.parameters, known.side, "yes" if is_here(known) else "no"
    else:  # embedded
        from outword.encoders import get_encoder
        from outword.encoders.torch.models import files_of

        model, here = get_encoder(name), "yes"
        size = sum(path.stat().st_size for path in files_of(parse(name)))
        side = model.side
    shown = (f"{size / 1e6:.0f} MB", model.dim, f"{side} x {side}", float(f"{model.temperature:.4g}"), here)
    own = {"form": name, "licence": model.licence, "source": model.source}
    return {**dict(zip(_FACTS, shown, strict=True)), **own}
