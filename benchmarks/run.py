"""How close outword is to what the hardware can do: scoring, mining, encoding; docs/performance.md is made from it.

    python benchmarks/run.py --device cpu                     (about 25 minutes on 2 cores)
    python benchmarks/run.py --device cuda -o cuda.json       (a few minutes)
    python benchmarks/run.py --device cpu --only cpu texts

Every table is measured in this run. Rows take turns, but for those that take minutes, which have a note. Tables go to
stdout as Markdown, and into a JSON file with the date, the machine and the versions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from outword.base.files import whole_file
from perf.facts import circumstances
from perf.tables import markdown

SECTIONS = {
    "cpu": ["cpu", "end_to_end", "start_up", "encoder", "texts", "many_cores"],
    "cuda": ["cuda", "clip_images", "judging", "files"],
}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(SECTIONS), required=True)
    parser.add_argument("--only", nargs="+", choices=sorted({name for names in SECTIONS.values() for name in names}))
    parser.add_argument("-o", "--output", type=Path, help="the JSON file; performance-DEVICE.json by default")
    args = parser.parse_args()
    names = args.only or SECTIONS[args.device]
    if stray := set(names) - set(SECTIONS[args.device]):
        parser.error(f"--only {' '.join(sorted(stray))} has nothing for {args.device}")
    output = args.output or Path(f"performance-{args.device}.json")
    facts = {"command": f"python benchmarks/run.py {' '.join(sys.argv[1:])}", **circumstances(args.device)}
    print(f"{facts['command']}\n\n{facts['date']}, {facts['machine']}, {facts['versions']}\n", flush=True)
    tables = []
    for name in names:
        print(f"section {name} ...", file=sys.stderr, flush=True)
        for table in importlib.import_module(f"perf.{name}").run(args.device):
            print(markdown(table) + "\n", flush=True)
            tables.append(asdict(table))
            with whole_file(output) as file:  # after each table: an interrupted run keeps what it measured
                file.write_text(json.dumps({**facts, "tables": tables}, indent=1) + "\n")
    missed = [goal["aim"] for table in tables for goal in table["goals"] if not goal["met"]]
    print(f"{len(tables)} tables in {output}; goals missed: {'; '.join(missed) or 'none'}", file=sys.stderr)


if __name__ == "__main__":
    main()
