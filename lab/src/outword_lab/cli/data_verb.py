"""`outword data`: which sets of the benchmarks are there, and how to get those that are not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from outword.cli.choices import Named
from outword.cli.failures import Group
from outword.cli.progress import Progress, print_table, say, show

if TYPE_CHECKING:
    from outword_lab.benchmark.run.catalogue import Found

WIDTH = 160  # room for the table, as in "outword compare"
BLOCK = 1 << 22


@click.group("data", cls=Group)
def command() -> None:
    """Say which sets of the benchmarks are there, and how to get the others; nothing is downloaded.

    \b
    Example:
      outword data check /data
    """


@command.command("check")
@click.argument("root", type=click.Path(path_type=Path))
@click.argument("names", metavar="[SET]...", nargs=-1)
@click.option("--suite", type=Named("suites"), help="The sets of a suite only. See: outword list suites")
@click.option("--checksums", is_flag=True, help="Verify the archives that were downloaded, where a checksum is known.")
@click.option("--json", "as_json", is_flag=True, help="Print all that is known of each set as JSON.")
def check(root: Path, names: tuple[str, ...], suite: str | None, checksums: bool, as_json: bool) -> None:
    """Look below the folder ROOT for sets, all of the catalogue by default.

    A table says of each whether it is present, missing or incomplete. What to download by hand, and how to lay it out,
    is said on stderr. "folder" stands for sets of your own in ROOT/id, ROOT/train and ROOT/ood. Exits with 1 if
    a set that was asked for, by name or by --suite, is not there as a whole.

    \b
    Example:
      outword data check /data --suite table1-imagenet1k
      outword data check /data textures sun --checksums
    """
    sets = _sets(root, names, suite)
    verified = _verified(root, sets) if checksums else {}
    if as_json:
        show(json.dumps([_facts(found, verified) for found in sets], indent=2))
    else:
        _print(root, sets, verified)
    for found in sets:
        if found.advice:
            say(f"{found.data_set.name}: {found.advice}")
    for path, good in verified.items():
        if not good:
            say(f"{path}: its checksum is not that of the published file; download it again")
    lacking = any(found.status != "present" for found in sets) and (names or suite)
    if lacking or not all(verified.values()):
        raise click.exceptions.Exit(1)


def _sets(root: Path, names: Sequence[str], suite: str | None) -> list[Found]:
    """The sets that were asked for, each once."""
    from outword_lab.benchmark.run.catalogue import TRAIN, catalogue, find_set, folder_ood
    from outword_lab.benchmark.run.suite import FOLDER, read_parts

    asked = list(names)
    if suite is not None:
        for told in read_parts(suite):
            asked += [*told.id, *told.ood, *([told.train] if told.train else [])]
    own = FOLDER in asked
    asked = [name for name in asked if name != FOLDER] if asked else list(catalogue())
    if own:  # photos to fit on need not be there
        asked = [FOLDER, *([TRAIN] if (root / "train").exists() else []), *asked]
    found = [find_set(root, name) for name in dict.fromkeys(asked)]
    return found + (folder_ood(root) if own else [])


def _verified(root: Path, sets: Sequence[Found]) -> dict[Path, bool]:
    """Whether the archives that lie where the sets are looked for are the published ones, by path."""
    from outword_lab.benchmark.run.catalogue import archives

    verified = {}
    with Progress("MB") as meter:
        for found in sets:
            for path, checksum in archives(root, found.data_set).items():
                kind, _, wanted = checksum.partition(":")
                verified[path] = _digest(path, kind, meter) == wanted
    return verified


def _digest(path: Path, kind: str, meter: Progress) -> str:
    digest, done, total = hashlib.new(kind, usedforsecurity=False), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            meter(path.name, done // 10**6, total // 10**6)
    return digest.hexdigest()


def _facts(found: Found, verified: dict[Path, bool]) -> dict[str, object]:
    known = asdict(found.data_set)
    return {
        "name": known.pop("name"),
        "status": found.status,
        "count": found.count,
        "where": None if found.where is None else str(found.where),
        "advice": found.advice,
        **known,
        "verified": {str(path): good for path, good in verified.items() if path.name in found.data_set.checksums},
    }


def _print(root: Path, sets: Sequence[Found], verified: dict[Path, bool]) -> None:
    rows = []
    for found in sets:
        drawn = ", ".join(map(str, found.paths))  # of a set that lies nowhere
        where = drawn if found.where is None else str(found.where.relative_to(root))
        expected = f"{found.data_set.images:,}" if found.data_set.images else ""
        rows.append([found.data_set.name, found.status, f"{found.count:,}", expected, where])
        good = [verified[path] for path in verified if path.name in found.data_set.checksums]
        if verified:
            rows[-1].append(("good" if all(good) else "wrong") if good else "")
    titles = ["set", "status", "images", "of", "where", *(["checksums"] if verified else [])]
    print_table(titles, rows, right=("images", "of"), width=WIDTH)
