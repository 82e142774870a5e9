"""`outword demo`: verdicts on real photos, offline."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import click

from outword.cli.progress import Progress, print_table, say


@click.command("demo")
@click.option("--html", default="outword-demo.html", show_default=True, type=click.Path(), help="The page to write.")
def command(html: str) -> None:
    """Show verdicts on the photos that come with outword: a table here, and an HTML page.

    \b
    Example:
      outword demo
    """
    from rich.text import Text

    from outword.detector.fitting import fit
    from outword.scoring.page import Sample, Summary, page_row, write_page
    from outword.scoring.runs import check_outputs
    from outword.scoring.stream import open_source, score_source
    from outword.words.labels import read_labels

    check_outputs(html)
    folder = Path(str(files("outword"))) / "demo"
    with Progress("words") as progress:
        detector = fit(read_labels(folder / "labels.txt"), report=progress)
    rows = list(score_source(detector, open_source(detector, [folder / "photos"])))
    rows.sort(key=lambda pair: -(pair[0].score or 0))
    cells, sample = [], Sample()
    for row, pixels in rows:
        verdict = Text(row.verdict, "green" if row.verdict.startswith("in") else "red")
        words = ", ".join(f"{word} {share:.0%}" for word, share in row.words)
        cells.append((Path(row.path).name, verdict, f"{row.score:.3f}", row.label, words))
        sample.add(page_row(detector, replace(row, path=Path(row.path).name), pixels))
    print_table(("photo", "verdict", "score", "nearest label", "wild words that fired"), cells, pad_edge=True)
    write_page(Path(html), sample, title="outword demo", summary=Summary.of(detector))
    say(f"labels: {', '.join(detector.labels)}")
    say(f"page: {Path(html).resolve()}")
    say("next: write your class names into labels.txt, one a line, and run: outword fit labels.txt")
