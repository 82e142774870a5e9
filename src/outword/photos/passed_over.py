"""Files that a listing leaves out because of their names, counted by kind."""

from __future__ import annotations

from collections import Counter

from outword.base.wording import be, counted

KINDS = 1000  # that are told apart; memory does not grow with the files
LONGEST = 12  # characters of a suffix; what is longer is part of a name
SHOWN = 5  # kinds that are named


class PassedOver:
    """How many files were left out, by the suffix of their names."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, suffix: str) -> None:
        """Count a file by its suffix in lower case; what does not begin with a dot is none.

        One thread does so at a time. There may be millions, so that a kind that is known is counted at once.
        """
        if suffix not in self.counts:
            suffix = suffix if suffix.startswith(".") else ""
            if len(suffix) > LONGEST or not suffix.isprintable() or len(self.counts) >= KINDS:
                suffix = "."  # any other
        self.counts[suffix] += 1

    def told(self) -> str:
        """What was left out, in words, the most frequent kinds first; "" if nothing was.

        >>> passed = PassedOver()
        >>> for suffix in (".mov", ".mov", "", ".txt"):
        ...     passed.add(suffix)
        >>> passed.told()
        '2 .mov files, 1 .txt file, 1 file without a suffix are not read: see docs/scale.md'
        """
        named = sorted((kind for kind in self.counts if kind not in ("", ".")), key=lambda kind: -self.counts[kind])
        parts = [counted(self.counts[kind], f"{kind} file") for kind in named[:SHOWN]]
        parts += [f"{counted(self.counts[''], 'file')} without a suffix"] if self.counts[""] else []
        if others := sum(self.counts[kind] for kind in (*named[SHOWN:], ".")):
            parts.append(counted(others, "other file"))
        return f"{', '.join(parts)} {be(self.counts.total())} not read: see docs/scale.md" if parts else ""
