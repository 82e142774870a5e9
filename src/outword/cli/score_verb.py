"""`outword score`: photos to rows."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.cli.options import elsewhere_option, runtime_options
from outword.cli.talk import Meter, note_order
from outword.cli.writers import FORMATS, open_writer
from outword.errors import InputError, OutwordError

if TYPE_CHECKING:
    from outword.page import PageRow, Sample, Summary
    from outword.pipeline import Detector
    from outword.store import Store
    from outword.stream import Pixels, Row


@click.command("score")
@click.argument("detector", type=click.Path())
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="File to write, whole or not at all.  [default: stdout]")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="[default: by the suffix of -o, else csv]")
@click.option("--html", type=click.Path(), help="Also write a page with thumbnails, sorted by score.")
@click.option("--strict", is_flag=True, help="Stop at the first image that cannot be read (exit 1).")
@elsewhere_option
@runtime_options
def command(
    detector: str,
    paths: tuple[str, ...],
    output: str | None,
    kind: str | None,
    html: str | None,
    strict: bool,
    encoder: str | None,
    runtime: dict[str, Any],
) -> None:
    """Score PATHS (files, folders, globs) and write path, score, verdict, label, words, error.

    Higher scores mean more in-distribution. An image that cannot be read is a row with an error, and the run goes on.
    A store of "outword embed" among PATHS is scored without encoding anything.

    \b
    Example:
      outword score pets.outword photos/ --html page.html > scores.csv
    """
    from outword.pipeline import load

    check_outputs(output, html)
    found = load(detector, encoder=encoder, **runtime)
    note_order(found)
    counts = run(found, paths, output=output, kind=kind, html=html, strict=strict)
    total = sum(counts.values())
    parts = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    click.echo(f"{total:,} images: {parts}" if total else "no images found", err=True)


def run(
    detector: Detector, paths: tuple[str, ...], *, output: str | None, kind: str | None, html: str | None, strict: bool
) -> Counter[str]:
    """Score, write and count; the counts are by verdict, with `error` for what could not be read."""
    from outword.stream import open_sources, score_sources

    counts: Counter[str] = Counter()
    sample = _sample() if html else None
    sources = open_sources(detector, paths)
    if any(isinstance(source, list) for source in sources):
        detector.encoder  # noqa: B018  # what is wrong with it is said before anything is written
    total = count_in_background(sources)
    with open_writer(output, kind) as write, Meter("images") as meter:
        for row, pixels in score_sources(detector, sources):
            if strict and row.error:
                raise click.ClickException(f"{row.path!r}: {row.error} (--strict)")
            write(row)
            counts[row.verdict or "error"] += 1
            meter("score", sum(counts.values()), total())
            if sample is not None:
                sample.add(page_row(detector, row, pixels))
    if html and sample is not None:
        _write_page(Path(html), sample, detector)
    return counts


def _sample() -> Sample:
    from outword.page import Sample

    return Sample()


def _write_page(path: Path, sample: Sample, detector: Detector) -> None:
    from outword.page import write_page

    sample.illustrate(_view)
    write_page(path, sample, title="outword", summary=page_summary(detector))


def page_row(detector: Detector, row: Row, pixels: Pixels | None) -> PageRow:
    """What the page shows of a row."""
    from PIL import Image

    from outword.images import thumbnail
    from outword.page import PageRow

    view = b"" if pixels is None else thumbnail(Image.fromarray(pixels))
    note = detector.coverage.get(row.label, "")
    return PageRow(row.path, row.score, row.verdict, row.label, row.words, row.error, view, note)


def _view(path: str) -> bytes:
    """The thumbnail of a file that was scored from a store, if it is still there."""
    from outword.images import open_image, thumbnail

    try:
        return thumbnail(open_image(path, min_side=160))
    except OutwordError:
        return b""


def page_summary(detector: Detector) -> Summary:
    """What the page says of the detector."""
    from outword.page import Summary

    fitted = detector.calibration_
    how = fitted.told if fitted else ""
    return Summary(len(detector.labels), detector.card["encoder"]["name"], detector.method, detector.cut, how)


def check_outputs(*names: str | None) -> None:
    """Raise unless the files can be written: a folder that is there, a name that is no folder, no name twice."""
    given = [Path(name).resolve() for name in names if name]
    if len(set(given)) < len(given):
        raise InputError(f"the outputs must be different files, got {given[0]} twice", hint="choose another name")
    for name in names:
        if name and not Path(name).resolve().parent.is_dir():
            raise InputError(f"{Path(name).parent} is not a folder", hint="make it first")
        if name and Path(name).is_dir():
            raise InputError(f"{name} is a folder", hint="name a file")


def count_in_background(sources: Sequence[Store | Sequence[str | os.PathLike[str]]]) -> Callable[[], int | None]:
    """A function that gives the number of images once a thread has counted them; None before that."""
    from outword.images import find_images
    from outword.store import Store

    result: list[int] = []

    def count() -> None:
        result.append(sum(len(s) if isinstance(s, Store) else sum(1 for _ in find_images(s)) for s in sources))

    threading.Thread(target=count, daemon=True).start()
    return lambda: result[0] if result else None
