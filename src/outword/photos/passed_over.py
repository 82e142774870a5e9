"""Files that a listing leaves out because of their names, counted by kind."""

from __future__ import annotations

from collections import Counter

KINDS = 1000  # that are told apart; memory does not grow with the files
LONGEST = 12  # characters of a suffix; what is longer is part of a name
SHOWN = 5  # kinds that are named


class PassedOver:
    """How many files were left out, by the suffix of their names."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        """Count a file; one thread does so at a time."""
        dot = name.rfind(".")
        kind = name[dot:].lower() if dot > 0 else ""
        if kind not in self.counts and (len(self.counts) >= KINDS or len(kind) > LONGEST or not kind.isprintable()):
            kind = "."  # any other
        self.counts[kind] += 1

    def told(self) -> str:
        """What was left out, in words, the most frequent kinds first; "" if nothing was.

        >>> passed = PassedOver()
        >>> for name in ("1.CR2", "2.cr2", "README", "a.txt"):
        ...     passed.add(name)
        >>> passed.told()
        '2 .cr2 files, 1 .txt file, 1 file without a suffix are not read: see docs/scale.md'
        """
        named = sorted((kind for kind in self.counts if kind not in ("", ".")), key=lambda kind: -self.counts[kind])
        parts = [f"{_files(self.counts[kind], kind + ' ')}" for kind in named[:SHOWN]]
        parts += [f"{_files(self.counts[''])} without a suffix"] if self.counts[""] else []
        if others := sum(self.counts[kind] for kind in (*named[SHOWN:], ".")):
            parts.append(_files(others, "other "))
        return f"{', '.join(parts)} {_be(self.counts.total())} not read: see docs/scale.md" if parts else ""


def _files(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}file{'' if count == 1 else 's'}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
