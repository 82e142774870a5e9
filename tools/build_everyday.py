"""Write the everyday things that compete with labels for encoders that know them: names, each with its sense.

    python tools/build_everyday.py LVIS.txt OPEN_IMAGES.txt OBJECTS365.txt

The files have a class name of LVIS 1.0, of Open Images' boxes, and of Objects365 in each line, as these data sets
write them ("bat_(animal)"). A name is kept where WordNet has it as a physical thing that is not among the names of
`Nouns.visible` already. What a name means is decided as for labels (`outword.words.kinds`), and `WRONG` are the names
for which that is not what the data sets mean.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from outword.errors import InputError
from outword.words.corpora.things import EVERYDAY
from outword.words.forms import squeeze
from outword.words.kinds import by_hint, choices_of, lineage
from outword.words.labels import parse
from outword.words.nouns import PHYSICAL, nouns

WRONG = """
arctic, atomizer, blinder, bob, cast, chap, choker, cleansing agent, coloring material, cone,
converter, cooler, couch, crisp, crown, crumb, cube, cutting, cylinder, drone, earplug, extractor,
flap, flash, generator, gargle, grill, handle, igniter, knob, lanyard, lifesaver, locker, log,
marker, mascot, mixer, mound, mule, nest, nutcracker, overall, pad, peeler, plumbing fixture,
poster, pouch, puncher, recorder, ring, scooter, scraper, slide, sling, spectacles, sponge, squid,
straw, tablet, tap, tin can, veil, visor, vent, yoke
"""


def written(line: str) -> tuple[list[str], str]:
    """The names in a line, and the hint in its brackets: "bat_(animal)" is a bat, the animal."""
    name, _, hint = line.strip().replace("_", " ").partition("(")
    return [one.strip() for one in re.split(r"[/,]", name) if one.strip()], hint.rstrip(")")


def sense_of(name: str, hint: str) -> int | None:
    """The physical thing that a name means; None where there is none."""
    net = nouns()
    physical = net.by_wnid(PHYSICAL)
    found = [sense for sense in choices_of([name]) if physical in lineage(sense) and not net.is_instance(sense)]
    if hint and found:
        try:
            return by_hint(parse(f"{name}#{hint}"))
        except InputError:
            pass
    return found[0] if found else None


def spelled(name: str, sense: int) -> str:
    """The name as WordNet spells it in that sense."""
    return next((one for one in nouns().names(sense) if squeeze(one) == squeeze(name)), name)


def things(lines: Iterator[str]) -> dict[str, int]:
    """The names that are kept, each with its sense."""
    visible = nouns().visible()
    taken, names = (
        set(visible.values()),
        {*map(squeeze, visible), *(squeeze(name.strip()) for name in WRONG.split(","))},
    )
    found: dict[str, int] = {}
    for line in lines:
        several, hint = written(line)
        senses = {name: sense_of(name, hint) for name in several}
        name, sense = next(((name, sense) for name, sense in senses.items() if sense is not None), ("", None))
        if sense is None or sense in taken or squeeze(name) in names:
            continue
        taken.add(sense)
        names.add(squeeze(name))
        found[spelled(name, sense)] = sense
    return found


def main() -> None:
    """Write the file."""
    lines = (line for path in sys.argv[1:] for line in Path(path).read_text(encoding="utf-8").splitlines())
    found = things(lines)
    rows = [f"{name}\t{nouns().wnid(found[name])}\n" for name in sorted(found, key=lambda name: (name.lower(), name))]
    EVERYDAY.write_text("".join(rows), encoding="utf-8")
    print(f"{len(rows):,} names in {EVERYDAY}")


if __name__ == "__main__":
    main()
