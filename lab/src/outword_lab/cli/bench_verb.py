"""`outword bench`: a suite of the benchmark, from data sets to tables, plots and a report."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.base.checks import unknown
from outword.cli.choices import Named, named
from outword.cli.options import encoder_options, trust_option
from outword.cli.progress import Progress, say, show
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.encoders import Encoder
    from outword_lab.benchmark.run.parts import FinishedParts
    from outword_lab.benchmark.run.suite import Suite


@click.command("bench")
@click.argument("suite", type=Named("suites"))
@click.argument("top", metavar="[ROOT]", required=False, type=click.Path())
@click.option("--data", "root", type=click.Path(), help="ROOT, as an option.")
@click.option("-o", "--output", "folder", type=click.Path(), help="Folder of the results.  [default: outword-SUITE]")
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
    top: str | None,
    root: str | None,
    folder: str | None,
    encoders: tuple[str, ...],
    methods: str | None,
    seeds: int | None,
    own: bool,
    store: str | None,
    samples: int,
    trust_encoder: bool,
    runtime: Mapping[str, Any],
) -> None:
    """Run SUITE, a name (outword list suites) or a TOML file, on the data sets in ROOT, and print its main table.

    The folder gets rows.jsonl (every figure with all that it hangs on), tables/, plots/ and report.html. A run that
    was stopped goes on where it was. A set that is not in ROOT is a line in the table. A suite of parts, such as
    "world", runs each into a folder in it, and report.html shows them all; a part is a suite, too.

    The suite "folder" takes ROOT/id/<class>/*.jpg and ROOT/ood/<set>/*.jpg; a set may be a tar or a Parquet file.
    Photos to fit on are in ROOT/train/<class>; without that each seed draws half of ROOT/id for it, if most classes
    have two photos or more. ROOT/labels.txt has names instead of those of the class folders, ROOT/words.txt words for
    methods that want a list of yours.

    The suite "vectors" takes a folder of vectors of photos and of texts (lab/docs/vectors.md); --seeds is how many
    lists of each length are drawn.

    \b
    Example:
      outword bench world
      outword bench vectors FOLDER -o results/
      outword bench folder --data ROOT -o results/
      outword bench table1-imagenet1k --data /data -o results/
      outword bench theorem2 -o results/
    """
    from outword.encoders import get_encoder
    from outword.maths.methods import DETECTORS
    from outword_lab.benchmark.run.bench import bench
    from outword_lab.benchmark.run.parts import FinishedParts, bench_parts
    from outword_lab.benchmark.run.suite import read_parts, read_suite
    from outword_lab.benchmark.vectors.answers import bench_vectors

    if top is not None and root is not None:
        raise InputError(f"ROOT and --data are the same, got {top} and {root}", hint="give one of them")
    root = top if root is None else root
    whole, parts = read_suite(suite), read_parts(suite)
    chosen, names = _chosen_parts(whole, parts, encoders, seeds, own)
    named_there = {name for part in parts for name in part.encoders}
    by_file = set() if trust_encoder or Path(suite).suffix != ".toml" else named_there - {*names, *encoders}
    known = dict.fromkeys(entry.shown for part in chosen for entry in part.methods)
    if whole.kind == "vectors":
        known = dict.fromkeys(DETECTORS)
    only = None if methods is None else named(methods, known, f"method of {whole.name}", "outword list suites --long")
    _check_data(chosen, root)
    place = Path(folder or f"outword-{whole.name}")
    _tell_before(None if folder else place)

    def encoder(name: str) -> Encoder:
        return get_encoder(names.get(name, name), download=name not in by_file, **runtime)

    try:
        with Progress("items") as meter:
            given: dict[str, Any] = {
                "encoders": encoder,
                "store": Path(store) if store else None,
                "samples": samples,
                "only": only,
                "command": shlex.join(["outword", *sys.argv[1:]]),
                "report": meter,
            }
            sets = Path(root) if root else None
            if whole.parts:
                done = bench_parts(whole, chosen, sets, place, **given)
            elif sets and whole.kind == "vectors":
                done = bench_vectors(chosen[0], sets, place, only=only, command=given["command"], report=meter)
            else:
                done = FinishedParts([bench(chosen[0], sets, place, **given)], (), ())
    except KeyboardInterrupt:
        if whole.kind != "theorem":
            say("the same command goes on where it was")
        raise
    _tell_after(done, place, of_parts=bool(whole.parts))


def _tell_after(done: FinishedParts, place: Path, *, of_parts: bool) -> None:
    """Print the tables that people look at first, and say where the rest is."""
    from outword_lab.benchmark.show.markup import to_markdown
    from outword_lab.benchmark.show.overview import DETAILS

    long = DETAILS if of_parts else DETAILS[1:]  # leads are for a suite by itself
    tables = [table for answer in done.answers for table in answer.tables]
    tables += [table for one in done.parts for table in one.tables if table.name not in long]
    show("\n".join(to_markdown(table) for table in tables), nl=False)
    for line in done.left_out:
        say(line)
    say(f"report: {place / 'report.html'}")
    below = place / "PART" if of_parts else place
    plots = f"; plots: {below / 'plots'}" if any(one.figures for one in done.parts) else ""
    say(f"tables: {below / 'tables'} (Markdown, CSV, LaTeX){plots}")


def _tell_before(place: Path | None) -> None:
    """Say what is good to know before it takes its time: where results go by default, that there will be no plots."""
    from outword.base.extras import lacking

    if place:
        say(f"results: {place}")
    if error := lacking("matplotlib"):
        say(f"no plots are drawn: {error.message}. {error.hint} brings them")


def _check_data(suites: Sequence[Suite], root: str | None) -> None:
    """Raise unless there is a folder of data sets, or no set of the suites needs one."""
    from outword_lab.benchmark.run.catalogue import world_catalogue

    sets = [name for suite in suites for name in (*suite.id, *suite.ood, *filter(None, [suite.train]))]
    needed = [name for name in sets if name not in world_catalogue()]
    needed += [suite.name for suite in suites if suite.kind == "vectors"]
    if (needed or root is not None) and not (root and Path(root).is_dir()):
        given = "nothing" if root is None else root
        raise InputError(f"ROOT must be a folder with data sets, got {given}", hint="bench SUITE ROOT; see the help")


def _chosen_parts(
    whole: Suite, parts: Sequence[Suite], encoders: tuple[str, ...], seeds: int | None, own: bool
) -> tuple[list[Suite], dict[str, str]]:
    """The suites to run with what the command line changes, and the encoders that stand for others.

    In a suite of parts an encoder can stand for one of theirs, and does so wherever that has a part; to put another in
    the place of all would make parts that compare encoders the same.
    """
    if not whole.parts:
        suite, stand_in = _chosen(whole, encoders, seeds, own)
        return [suite], stand_in
    if own:
        raise InputError(f"--folder is for a suite without parts, got {whole.name}", hint=f"parts: {_names(parts)}")
    known = list(dict.fromkeys(name for part in parts for name in part.encoders))
    for given in encoders:
        if "=" not in given or given.partition("=")[0] not in known:
            told = f"--encoder must be NAME=ENCODER for a suite of parts, NAME one of {', '.join(known)}; got {given}"
            raise InputError(told, hint=f"any other encoder is for a part by itself: {_names(parts)}")
    chosen: list[Suite] = []
    names: dict[str, str] = {}
    for part in parts:
        suite, stand_in = _chosen(part, tuple(e for e in encoders if e.partition("=")[0] in part.encoders), seeds, own)
        chosen.append(suite)
        names |= stand_in
    return chosen, names


def _names(parts: Sequence[Suite]) -> str:
    return ", ".join(part.name for part in parts)


def _chosen(suite: Suite, encoders: tuple[str, ...], seeds: int | None, own: bool) -> tuple[Suite, dict[str, str]]:
    """The suite with what the command line changes, and the encoders that stand for others."""
    from outword_lab.benchmark.run.suite import FOLDER

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
