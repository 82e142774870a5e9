"""`outword doctor`: what there is on this machine, and whether an encoder works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from outword.base.wording import a_few, be
from outword.cli.choices import Named
from outword.cli.progress import print_table, say, show, warn


@click.command("doctor")
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="The one to be checked.")
@click.option("--imports", is_flag=True, help="Also import every extra, to see that it works: some seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, encoder: str, imports: bool, as_json: bool) -> None:
    """Tell versions, extras, devices, caches, whether the hub answers, and whether an encoder works.

    The encoder names the photos that come with outword among their names. If it is right about half of them or more,
    its weights, tokens and preprocessing fit together; else, or if it cannot be loaded, the exit status is 1. One that
    is not on this machine is fetched first. What else is wrong is a line, and no failure.

    \b
    Example:
      outword doctor
      outword doctor --encoder clip-vit-b-16
    """
    from outword.doctor import doctor

    if encoder != "mini":
        say(f"loading {encoder}, which is fetched first if it is not here")
    found = doctor(encoder, imports=imports)
    if as_json:
        show(json.dumps(found, indent=2))
    else:
        _print(found)
    ctx.exit(0 if found["encoder"].get("ok") else 1)


def _print(found: dict[str, Any]) -> None:
    show(_wrong(found["versions"]) or ", ".join(f"{name} {one}" for name, one in found["versions"].items()))
    show("")
    if isinstance(found["extras"], dict):
        show(f"extras: {_wrong(found['extras'])}")
    else:
        titles = ("extra", "for", "packages", "what brings it")
        print_table(titles, [_extra_cells(extra) for extra in found["extras"]])
        for package, one in (item for extra in found["extras"] for item in extra["packages"].items()):
            if isinstance(one, dict):
                show(_wrong(one, package))
    show("")
    for part, line in (*_devices(found["devices"]), *_caches(found["caches"]), ("hub", _hub(found["hub"]))):
        show(f"{part}: {line}")
    checked = found["encoder"]
    show(f"encoder: {_wrong(checked, checked['name']) or _checked(checked)}")
    if "sight" in checked:
        show(f"sight: {_wrong(checked['sight']) or _sight(checked['sight'])}")
        if checked["sight"].get("far_off"):
            warn(f"WARNING: {_far_off(checked['sight'])}")


def _wrong(part: Any, of: str = "") -> str:
    """What is wrong with a part, else ""."""
    if not isinstance(part, dict) or "error" not in part:
        return ""
    hint = f" (hint: {part['hint']})" if part.get("hint") else ""
    return f"{of}{': ' * bool(of)}error: {part['error']}{hint}"


def _extra_cells(extra: dict[str, Any]) -> tuple[str, ...]:
    shown = (
        f"no {name}" if one is None else f"{name} fails" if isinstance(one, dict) else f"{name} {one}"
        for name, one in extra["packages"].items()
    )
    return extra["extra"], ", ".join(extra["for"]), ", ".join(shown), extra["command"]


def _devices(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    count, gpus, decoders = (found[part] for part in ("processors", "gpus", "decoders"))
    yield "processors", _wrong(count) or f"{count['usable']} of {count['all']}"
    yield "NVIDIA devices", _wrong(gpus) or "; ".join(gpus) or "none"
    here = [f"{name} {one}" for name, one in decoders.items() if isinstance(one, str)]
    yield "decoders of JPEGs", _wrong(decoders) or ", ".join(here)


def _caches(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, cache in found.items():
        told = "" if cache.get("exists") else ", not there yet"
        told += "" if cache.get("writable") else ", cannot be written"
        yield f"cache of {name}", _wrong(cache) or f"{cache['path']}, {cache['bytes'] / 1e6:,.1f} MB{told}"


def _hub(found: dict[str, Any]) -> str:
    return _wrong(found) or f"{found['address']} {found['told']}"


def _checked(found: dict[str, Any]) -> str:
    taken = [f"{photo} is taken for {name}" for photo, name in found["wrong"].items()]
    wrong = a_few(taken, between="; ")
    return f"{found['setting']}: {found['told']}{f' ({wrong})' * bool(wrong)}, {found['seconds']:.1f} s"


def _sight(found: dict[str, Any]) -> str:
    """How the encoder sees the demo photos, and the constants that are used for it."""
    if found["measured"] is None:
        return "not measured: it knows too few names of things"
    told = f"{_numbers(found['measured'])} measured on the demo photos"
    return told if found["constants"] is None else f"{told}; {_numbers(found['constants'])} are used"


def _numbers(sight: dict[str, float]) -> str:
    return f"gain {sight['gain']:.2g}, noise {sight['noise']:.2g}, level {sight['level']:.3g}"


def _far_off(found: dict[str, Any]) -> str:
    names = " and ".join(found["far_off"])
    return (
        f"{names} measured on the demo photos {be(len(found['far_off']))} far from what is used: are weights and "
        "preprocessing right? If they are, make a reference (outword reference) or calibrate"
    )
