"""`outword reference`: ordinary photos as the reference of an encoder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named
from outword.cli.options import column_option, encoder_options
from outword.cli.progress import Progress, say, show

if TYPE_CHECKING:
    from outword.encoders import Encoder
    from outword.vectors.reference import Made, Reference


@click.command("reference")
@click.argument("photos", nargs=-1, type=click.Path())
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@column_option
@encoder_options
def command(photos: tuple[str, ...], encoder: str, as_json: bool, column: str | None, runtime: dict[str, Any]) -> None:
    """Make the reference of an encoder from ordinary PHOTOS, and print its path; without PHOTOS say what there is.

    From a reference, "outword fit" knows what photos that show none of your classes score, and puts the cut there. 100
    photos are the least, some thousands are good, more than 5,000 are not needed. Nobody needs to say what they show,
    and they may show anything: the more they are like the photos that you will judge, the better. PHOTOS are all that
    "outword score" takes. Only their vectors are kept, in the cache.

    For mini one is shipped; your own takes its place.

    \b
    Example:
      outword reference holiday/ --encoder clip-vit-b-16
      outword reference --encoder clip-vit-b-16
    """
    import outword
    from outword.encoders import get_encoder
    from outword.vectors.reference import find_reference, kept_path

    loaded = get_encoder(encoder, **runtime)
    if not photos:
        _tell(loaded, find_reference(loaded), as_json)
        return
    with Progress("images") as progress:
        made = outword.reference(photos, encoder=loaded, column=column, report=progress)
    path = str(kept_path(loaded.fingerprint))
    for name, reason in made.failed:
        say(f"left out {name!r}: {reason}")
    say(_counts(made))
    say(f"from now on, fits with {loaded.name} use it" + _shipped(loaded))
    counts = {"read": made.n_read, "repeats": made.n_repeats, "unreadable": made.n_unreadable, "spare": made.n_spare}
    show(json.dumps({"path": path, **_about(loaded, made.reference), **counts}) if as_json else path)


def _tell(encoder: Encoder, found: Reference | None, as_json: bool) -> None:
    """Print which reference an encoder has."""
    if found is None:
        say(f"{encoder.name} has no reference. hint: name a folder of ordinary photos, of anything")
    if as_json:
        show(json.dumps(_about(encoder, found)))
    elif found is not None:
        show(f"{encoder.name}: {len(found):,} photos, from {found.source}")


def _about(encoder: Encoder, found: Reference | None) -> dict[str, Any]:
    told = {"source": found.source, "fingerprint": found.fingerprint} if found else {}
    return {"encoder": encoder.name, "photos": len(found) if found else 0, **told}


def _counts(made: Made) -> str:
    """How many photos a reference has, and what became of the others."""
    parts = {
        "seen already": made.n_repeats,
        "that cannot be read": made.n_unreadable,
        "more than are needed": made.n_spare,
    }
    left = ", ".join(f"{count:,} {why}" for why, count in parts.items() if count)
    return f"the reference has {len(made.reference):,} photos" + (f"; left out: {left}" if left else "")


def _shipped(encoder: Encoder) -> str:
    from outword.vectors.reference import shipped_path

    there = shipped_path(encoder.fingerprint).exists()
    return ", and not the one that is shipped; remove the file to go back to that" if there else ""
