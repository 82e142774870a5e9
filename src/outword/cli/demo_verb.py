"""`outword demo`: verdicts on real photos, offline."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import click

from outword.cli.progress import Progress, say


@click.command("demo")
@click.option("--html", default="outword-demo.html", show_default=True, type=click.Path(), help="The page to write.")
def command(html: str) -> None:
    """Show verdicts on the photos that come with outword: a table here, and an HTML page.

    \b
    Example:
      outword demo
    """
    from outword.base.files import check_outputs
    from outword.cli.photo_table import PhotoTable
    from outword.detector.fitting import fit
    from outword.scoring.page import Sample, Summary, card_of, write_page
    from outword.scoring.stream import open_source, score_source
    from outword.words.labels import read_labels

    check_outputs(html)
    folder = Path(str(files("outword"))) / "demo"
    with Progress("words") as progress:
        detector = fit(read_labels(folder / "labels.txt"), report=progress)
    rows = list(score_source(detector, open_source(detector, [folder / "photos"])))
    table, sample = PhotoTable(detector), Sample()
    for row, pixels in rows:
        named = replace(row, path=Path(row.path).name)
        table(named)
        sample.add(card_of(detector, named, pixels))
    table.close()
    write_page(Path(html), sample, title="outword demo", summary=Summary.of(detector))
    say(f"labels: {', '.join(detector.labels)}")
    say(f"threshold: {detector.how_cut}; unrelated photos show none of the labels")
    say(f"page: {Path(html).resolve()}")
    say('next, with yours: outword score --labels "cat, dog" PHOTOS --html page.html')
