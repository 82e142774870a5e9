"""One self-contained HTML report of a run: who wins, by how much, how sure, where it fails, under which conditions."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from string import Template

from outword.base.files import whole_file
from outword.benchmark.run.results import Condition, Outcome, Worst
from outword.benchmark.show.facts import conditions_section, warnings_of
from outword.benchmark.show.markup import to_html
from outword.benchmark.show.plots import PANELS, picture_name
from outword.benchmark.show.summary import (
    condition_text,
    entries,
    measured_sets,
    paper_entries,
    ranking,
    title,
    varying,
)
from outword.benchmark.show.table import Table
from outword.benchmark.show.tables import make_tables
from outword.benchmark.show.verdict import verdict, weakness
from outword.benchmark.theory.plot import CAPTION, NAME
from outword.errors import ImageError, OutwordError
from outword.photos.images import thumbnail, with_image
from outword.scoring.page import escape, photo, score_text, shared_style, wild_words

SHOWN = 12  # images of a kind
LONG = ("all", "points")  # tables that are folded
Read = Callable[[Sequence[str]], Mapping[str, bytes | ImageError]]


def write_report(
    outcome: Outcome,
    path: Path,
    figures: Sequence[Path],
    *,
    read: Read | None = None,
    command: str = "",
    tables: Sequence[Table] | None = None,
    headline: str = "",
) -> None:
    """Write the report of a run to `path`; the file appears whole or not at all.

    Args:
        outcome: the run.
        path: of the HTML file.
        figures: what `write_plots` or `theorem_figures` gave.
        read: gives the bytes of images, or what is wrong with them, by their paths below the data root; without it
            there are no thumbnails.
        command: the command line that repeats the run.
        tables: those of the run by default.
        headline: the answer in a few sentences, where it is not a matter of which method wins.
    """
    made = make_tables(outcome) if tables is None else tables
    parts = [("answer", "In short", f'<p class="verdict">{escape(headline)}</p>')] if headline else []
    parts += _parts(outcome, figures, made, read)
    parts.append(("conditions", "Conditions", conditions_section(outcome, command)))
    template = Template((resources.files("outword") / "benchmark" / "report.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=escape(outcome.suite.title),
        style=shared_style(),
        about=escape(outcome.suite.about),
        warnings="".join(f'<p class="notice" role="note">{text}</p>\n' for text in warnings_of(outcome)),
        links="".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in parts),
        sections="\n".join(f'<section id="{n}">\n<h2>{h}</h2>\n{content}\n</section>' for n, h, content in parts),
    )
    with whole_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _parts(
    outcome: Outcome, figures: Sequence[Path], tables: Sequence[Table], read: Read | None
) -> Iterator[tuple[str, str, str]]:
    """The sections before the conditions: name, heading, content."""
    if outcome.suite.kind == "methods" and outcome.rows:
        leads = [table for table in tables if table.name == "leads"]
        yield (
            "winner",
            "Which method wins?",
            _winners(outcome) + _folded("Show all leads", _tables(leads)) * bool(leads),
        )
        yield "figures", "All methods", _tables(tables[:1]) + _each(outcome, lambda n, _: _dots(figures, n))
        yield "failures", "Where it fails", _each(outcome, lambda _, condition: _failures(outcome, condition, read))
        yield "curves", "Curves and scores", _each(outcome, lambda n, _: _curves(figures, n))
        yield "all", "All figures", _folded("Show the long table", _tables(tables[-1:]))
    else:
        yield "curves", "Figures", _sweeps(outcome, figures)
        long = [table for table in tables if table.name in LONG]
        yield "figures", "Tables", _tables([table for table in tables if table not in long], headed=True)
        if long:
            yield "all", "All figures", _folded("Show the long table", _tables(long))


def _each(outcome: Outcome, content: Callable[[int, Condition], str]) -> str:
    """Something for each condition, below its name where there are several."""
    axes, parts = varying(outcome), []
    for number, condition in enumerate(outcome.conditions()):
        told = condition_text(outcome, condition, axes)
        parts.append((f"<h3>{escape(told)}</h3>\n" if told else "") + content(number, condition))
    return "\n".join(parts)


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def _tables(tables: Sequence[Table], *, headed: bool = False) -> str:
    return "\n".join((f"<h3>{escape(t.title)}</h3>\n" if headed else "") + to_html(t) for t in tables)


# Which method wins?


def _winners(outcome: Outcome) -> str:
    told = (
        "Intervals are 95 %, by paired bootstrap over images and seeds: every method is measured on the same samples, "
        "and figures are averaged over OOD sets and seeds. They hold for all pairs of methods at once, so that picking "
        "the winner on the images on which it is measured does not spoil them; its own figure is flattered a little "
        "all the same, the more so the closer the methods are."
    )
    lines = _each(outcome, lambda _, condition: f'<p class="verdict">{verdict(outcome, condition)}</p>')
    return f'{lines}\n<p class="small">{told}</p>'


# Where it fails


def _failures(outcome: Outcome, condition: Condition, read: Read | None) -> str:
    """The worst images of the winner and of the paper's method."""
    methods = [*(name for name, _ in ranking(outcome, condition)[:1]), *paper_entries(outcome, condition)[:1]]
    return "\n".join(_failures_of(outcome, condition, name, read) for name in dict.fromkeys(methods))


def _failures_of(outcome: Outcome, condition: Condition, method: str, read: Read | None) -> str:
    rows = outcome.select(condition, entry=method, seed=0)
    kept = outcome.worst(rows[0]) if rows else []
    worst = [one for one in kept if one.inside or one.set in measured_sets(outcome)]  # a set may be gone since
    accepted = sorted((one for one in worst if not one.inside), key=lambda one: -one.score)[:SHOWN]
    rejected = sorted((one for one in worst if one.inside), key=lambda one: one.score)[:SHOWN]
    parts = [
        (accepted, "OOD images that look most like ID", "of those that a threshold for 95 % of ID accepts"),
        (rejected, "ID images that look least like ID", "the lowest scores"),
    ]
    seen = _thumbnails([wrong.path for wrong in accepted + rejected], read)
    lists = ""
    for found, heading, what in parts:
        cards = "".join(_card(outcome, wrong, seen[wrong.path]) for wrong in found)
        lists += f'<h5>{heading} <small>{what}</small></h5>\n<ol class="cards">{cards}</ol>\n' if found else ""
    told = f"<p>{weakness(outcome, condition, method)}</p>"
    return f"<h4>{escape(method)}</h4>\n{told}\n{lists or '<p>No image is kept.</p>'}"


def _card(outcome: Outcome, wrong: Worst, jpeg: bytes) -> str:
    return (
        f'<li class="card"><div class="photo">{photo(wrong.path, jpeg)}</div><div class="text">'
        f'<p class="score"><b>{score_text(wrong.score)}</b> <small>{escape(title(outcome, wrong.set))}</small></p>'
        f'<p class="label"><small>nearest</small> {escape(wrong.label)}</p>{wild_words(wrong.words)}'
        f'<p class="name">{escape(wrong.path)}</p></div></li>\n'
    )


def _thumbnails(paths: Sequence[str], read: Read | None) -> dict[str, bytes]:
    """JPEG bytes of images, or none where one cannot be read any more."""
    found = dict.fromkeys(paths, b"")
    for path, data in (read(paths) if read else {}).items():
        with suppress(OutwordError):
            found[path] = b"" if isinstance(data, ImageError) else with_image(data, thumbnail, min_side=160)
    return found


# Figures


def _dots(figures: Sequence[Path], number: int) -> str:
    told = "Mean over OOD sets and seeds; lines are 95 % bootstrap intervals over images. The paper's method is orange."
    return _panels(figures, picture_name("dots", number), told)


def _curves(figures: Sequence[Path], number: int) -> str:
    curves = "ROC curves of the best methods and the paper's; first seed."
    scores = "Scores of ID and OOD images; first seed. The dashed line is the threshold that accepts 95 % of ID."
    parts = [_panels(figures, picture_name("roc", number), curves)]
    return "\n".join(parts + [_panels(figures, picture_name("histogram", number, place), scores) for place in range(2)])


def _sweeps(outcome: Outcome, figures: Sequence[Path]) -> str:
    if outcome.suite.kind == "theorem":
        return _panels(figures, NAME, CAPTION)
    told = "Mean over OOD sets (bold), each OOD set (thin); bands are ± one standard deviation over seeds."
    return _each(
        outcome,
        lambda number, condition: "\n".join(
            f"<h4>{escape(entry)}</h4>\n" + _panels(figures, picture_name("sweep", number, place), told)
            for place, entry in enumerate(entries(outcome, condition))
        ),
    )


def _panels(figures: Sequence[Path], name: str, caption: str) -> str:
    """A figure as its panels, which a phone shows one below the other."""
    return _figure([p for p in figures if p.parent.name == PANELS and p.stem.rpartition(".")[0] == name], caption)


def _figure(paths: Sequence[Path], caption: str) -> str:
    if not paths:
        return ""
    images = "".join(
        f'<img alt="{escape(caption or path.stem)}" src="data:image/svg+xml;base64,'
        f'{base64.b64encode(path.read_bytes()).decode("ascii")}">'
        for path in paths
    )
    told = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure>{told}<div class="panels">{images}</div></figure>'
