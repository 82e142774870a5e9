"""`outword bench`: a suite of the benchmark, from data sets to tables, plots and a report."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named, named
from outword.cli.options import encoder_options, trust_option
from outword.cli.progress import Progress, say
from outword.errors import InputError, unknown

if TYPE_CHECKING:
    from outword.benchmark.run.suite import Suite


@click.command("bench")
@click.argument("suite", type=Named("suites"))
@click.option("--data", "root", type=click.Path(), help="Where the data sets are; see: outword data check ROOT")
@click.option("-o", "--output", "folder", required=True, type=click.Path(), help="Folder of the results.")
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="[NAME=]ENCODER",
    help="Instead of the suite's, with its own prompts; or of the one that it calls NAME. May be repeated.",
)
@click.option("--methods", metavar="A,B,C", help="Only these of the suite's.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many runs.  [default: the suite's, 5]")
@click.option("--folder", "own", is_flag=True, help="On ROOT/id and ROOT/ood/*, instead of the suite's sets.")
@click.option("--store", type=click.Path(), help="Where embeddings are kept; runs may share it.  [default: in -o]")
@click.option("--samples", default=1000, show_default=True, type=click.IntRange(min=20), help="Of the bootstrap.")
@trust_option
@encoder_options
def command(
    suite: str,
    root: str | None,
    folder: str,
    encoders: tuple[str, ...],
    methods: str | None,
    seeds: int | None,
    own: bool,
    store: str | None,
    samples: int,
    trust_encoder: bool,
    runtime: dict[str, Any],
) -> None:
    """Run SUITE, a name (outword list suites) or a TOML file, and print its main table.

    The folder gets rows.jsonl (every figure with all that it hangs on), tables/, plots/ and report.html. A run that
    was stopped goes on where it was. A set that is not in ROOT is a line in the table.

    The suite "folder" takes ROOT/id/<class>/*.jpg and ROOT/ood/<set>/*.jpg; a set may be a tar or a Parquet file.
    Photos to fit on are in ROOT/train/<class>; without that each seed draws half of ROOT/id for it, if most classes
    have two photos or more. ROOT/labels.txt has names instead of those of the class folders, ROOT/words.txt words for
    methods that want a list of yours.

    \b
    Example:
      outword bench folder --data ROOT -o results/
      outword bench table1-imagenet1k --data /data -o results/
      outword bench theorem2 -o results/
    """
    from outword.benchmark.run.bench import bench
    from outword.benchmark.run.suite import read_suite
    from outword.benchmark.show.markup import to_markdown
    from outword.encoders import get_encoder

    whole = read_suite(suite)
    chosen, names = _chosen(whole, encoders, seeds, own)
    by_file = set() if trust_encoder or Path(suite).suffix != ".toml" else {*whole.encoders} - {*names, *encoders}
    known = [entry.shown for entry in chosen.methods]
    only = None if methods is None else named(methods, known, f"method of {chosen.name}", "outword list suites --long")
    if chosen.kind != "theorem" and (root is None or not Path(root).is_dir()):
        given = "nothing" if root is None else root
        raise InputError(f"--data must be a folder with data sets, got {given}", hint="--data ROOT; see the help")
    try:
        with Progress("items") as meter:
            tables = bench(
                chosen,
                Path(root or ""),
                Path(folder),
                encoders=lambda name: get_encoder(names.get(name, name), download=name not in by_file, **runtime),
                store=Path(store) if store else None,
                samples=samples,
                only=only,
                command=shlex.join(["outword", *sys.argv[1:]]),
                report=meter,
            )
    except KeyboardInterrupt:
        if chosen.kind != "theorem":
            say("the same command goes on where it was")
        raise
    click.echo("\n".join(to_markdown(table) for table in tables[:-1]), nl=False)  # the last one is long
    say(f"report: {Path(folder) / 'report.html'}")
    say(f"tables: {Path(folder) / 'tables'} (Markdown, CSV, LaTeX); plots: {Path(folder) / 'plots'}")


def _chosen(suite: Suite, encoders: tuple[str, ...], seeds: int | None, own: bool) -> tuple[Suite, dict[str, str]]:
    """The suite with what the command line changes, and the encoders that stand for others."""
    from outword.benchmark.run.suite import FOLDER

    parts = [given.partition("=") for given in encoders]
    for name, equals, _ in parts:
        if equals and name not in suite.encoders and re.fullmatch(r"[\w.-]+", name):
            raise unknown(f"encoder of {suite.name}", name, suite.encoders, "outword list suites --long")
    stand_in = {name: encoder for name, equals, encoder in parts if equals and name in suite.encoders}
    instead = tuple(dict.fromkeys("".join(part) for part in parts if not (part[1] and part[0] in suite.encoders)))
    if instead and stand_in:
        hint = f"the suite has {', '.join(suite.encoders)}"
        raise InputError("--encoder must be given with NAME= always or never", hint=hint)
    if instead:
        suite = replace(suite, encoders=instead, prompts=None)  # the suite's are for its own encoders
    if seeds is not None:
        suite = replace(suite, seeds=seeds)
    if own:
        suite = replace(suite, id=(FOLDER,), ood=(FOLDER,), train=FOLDER, groups={})
    return suite, stand_in
