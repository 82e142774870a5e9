"""What the suite `world` answers: the questions asked of one encoder, each kept once it is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from outword.base.files import parse_json, sha256_bytes, whole_file
from outword.base.records import read_record
from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.errors import OutwordError
from outword_lab.benchmark.found import Found
from outword_lab.benchmark.show.overview import Answer, answer
from outword_lab.benchmark.world import about_verdicts, about_words
from outword_lab.benchmark.world.about_models import models
from outword_lab.benchmark.world.lab import Lab, open_lab

ENCODER = "world-m"
VERSION = 1  # of the questions: raise it when one is asked in another way
QUESTIONS: dict[str, Callable[[Lab], Found]] = {
    "mining": about_words.mining,
    "tau": about_words.tau,
    "sigma": about_words.sigma,
    "losses": about_words.losses,
    "score": about_verdicts.score,
    "verdicts": about_verdicts.verdicts,
    "p-values": about_verdicts.promises,
}


def answers(encoders: Callable[[str], Encoder], store: Path, folder: Path, report: Report = quiet) -> Sequence[Answer]:
    """Ask every question, or read the answer back from `folder`, where it was given to the same vectors."""
    found, lab = [models(encoders, store, report)], open_lab(encoders(ENCODER), store, report)
    for number, (name, ask) in enumerate(QUESTIONS.items()):
        report(f"question: {name}", number, len(QUESTIONS))
        found.append(_answer(lab, name, ask, folder / "answers" / f"{name}.json"))
    return [answer(one) for one in found]


def _answer(lab: Lab, name: str, ask: Callable[[Lab], Found], path: Path) -> Found:
    key = sha256_bytes(json.dumps([VERSION, name, lab.encoder.fingerprint, lab.fingerprint]).encode())
    try:
        kept = parse_json(path.read_bytes())
        if kept["key"] == key:
            return read_record(Found, kept["found"], str(path), "lab/docs/world.md")
    except (OSError, ValueError, KeyError, TypeError, OutwordError):
        pass  # it is asked again
    found = ask(lab)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps({"key": key, "found": asdict(found)}, indent=1), encoding="utf-8")
    return found
