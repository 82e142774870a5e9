"""All figures of the docs: run what is stale, and compare every table with the one that stands in the docs.

    make figures [ONLY="mini-* theorem2"] [DATA=BENCH_MINI] [HAVE="idle gpu"] [CHECK=1] [WRITE=1]

benchmarks/figures.toml names the figures: the command that prints each, what it needs, and the page that quotes it. A
figure is run again when its command, its code or its data has changed; one that is finished is kept in build/figures,
and a run that was killed goes on there. Figures of quality must be as the docs print them, to the last digit, or the
exit code is 1; those of speed are reported with the ratio and never fail. CHECK only compares; WRITE also puts what was
measured into the docs, and whole outputs that the docs only digest into benchmarks/results.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from PIL import Image

import figure_tables as tables
from figure_claims import numbered_tables, wrong_claims
from outword_lab.benchmark.toml import tomllib

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = "benchmarks/figures.toml"
WORK = "build/figures"
RESULTS = "benchmarks/results"
# What vectors and rankings in the cache are made by: they are made anew when this changes, and only then.
# Whole rooms where one takes part: a file that is added or moved inside of them is seen by itself.
PACKAGES = ("src/outword", "lab/src/outword_lab")
CACHED_BY = (
    *(f"src/outword/{name}" for name in ("encoders", "photos", "vectors", "words", "maths/kernels", "maths/mining")),
    "src/outword/maths/numerics.py",
    *(f"lab/src/outword_lab/{name}" for name in ("encoders", "world")),
)
THREADS = "2"  # of figures of quality: a head that is trained (vos) rounds otherwise with another number of them
APART = ("serve",)  # of the package: no figure of quality is made by it
NEEDS = {
    "photos": "bench-mini: DATA=FOLDER, or OUTWORD_BENCH_MINI",
    "vectors": "a folder of vectors (lab/docs/vectors.md): OUTWORD_VECTORS=FOLDER",
    "validation": "validation photos of ImageNet in FOLDER/imagenet/WNID_NUMBER.jpg: OUTWORD_VALIDATION=FOLDER",
    "wordnet": "WordNet's database in /usr/share/wordnet, and a package index: HAVE=wordnet",
    "idle": "a machine with nothing else to do: HAVE=idle",
    "gpu": "a CUDA device: HAVE=gpu",
}
FOLDERS = {"vectors": "OUTWORD_VECTORS", "validation": "OUTWORD_VALIDATION"}  # the variables that name them


@dataclass(frozen=True)
class Figure:
    """A figure of the docs.

    Attributes:
        name: as in the markers of the page.
        page: where it is quoted.
        command: what prints it, run by bash in the root; {data}, {out}, {cache}: folders of photos, of its own, shared;
            {vectors}: a folder of vectors; {validation}: one of validation photos.
        kind: "quality" must match to the last digit; "speed" is reported.
        needs: keys of `NEEDS`.
        printed: whether the page has the tables as printed; else it digests them, and the output is in RESULTS.
        speed_columns: heads of columns that are figures of speed.
        pictures: files below {out}, by their place in the docs.
        smallest: what makes a case of seconds of it that a CPU can run, for tests: `arguments` in place of the
            command's, and other values of `constants`, those of the script or of a module (`perf.judging.WORDS`).
    """

    name: str
    page: str
    command: str
    kind: Literal["quality", "speed"] = "quality"
    needs: tuple[str, ...] = ()
    printed: bool = True
    speed_columns: tuple[str, ...] = ()
    pictures: dict[str, str] = field(default_factory=dict)
    smallest: dict[str, Any] = field(default_factory=dict)

    @property
    def committed(self) -> str:
        """Where the output is kept, for a figure that the page only digests."""
        return f"{RESULTS}/{self.name}.txt"


@dataclass
class State:
    """What became of a figure: how it was run, what the comparison says, and the lines that differ."""

    run: str
    result: str = ""
    differs: list[str] = field(default_factory=list)
    seconds: float = 0.0


def read_figures(path: Path = ROOT / REGISTRY) -> list[Figure]:
    """The registry."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["figure"]
    lists = ("needs", "speed_columns")
    return [Figure(**one | {key: tuple(one[key]) for key in lists if key in one}) for one in found]


class Figures:
    """One run over figures; `data` is bench-mini, `have` what else there is of `NEEDS`, or the folder of it."""

    def __init__(
        self, root: Path, data: Path | None, have: Iterable[str], places: Mapping[str, Path | None] | None = None
    ) -> None:
        self.root = root
        self.given = {"photos": data, **dict.fromkeys(FOLDERS), **(places or {})}
        self.have = {*have, *(need for need, place in self.given.items() if place)}
        self._hashes: dict[tuple[str, ...], str] = {}

    def bring(self, figure: Figure) -> State:
        """Run a figure unless it is there, or lacks what it needs."""
        if self.output(figure).exists():
            return State("kept")
        if lacking := [NEEDS[need] for need in figure.needs if need not in self.have]:
            return State("not run", f"needs {'; '.join(lacking)}")
        for older in (self.root / WORK).glob(f"{figure.name}@*"):
            if older != self.folder(figure):
                shutil.rmtree(older)
        began = time.perf_counter()
        code = self._run(figure)
        state = State("ran" if code == 0 else "FAILED", "" if code == 0 else f"exit code {code}")
        state.seconds = time.perf_counter() - began
        return state

    def _run(self, figure: Figure) -> int:
        self.folder(figure).mkdir(parents=True, exist_ok=True)
        places = {"data": self.given["photos"], **{name: self.given[name] for name in FOLDERS}}
        places |= {"out": self.folder(figure) / "out", "cache": self.cache()}
        command = figure.command.format(**{name: shlex.quote(str(place)) for name, place in places.items()})
        source = os.pathsep.join(filter(None, [str(self.root / "src"), os.environ.get("PYTHONPATH")]))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PYTHONPATH": source, "PATH": path, "OUTWORD_CACHE": str(self.cache())}
        env |= {"OMP_NUM_THREADS": THREADS} if figure.kind == "quality" else {}
        half = self.output(figure).with_suffix(".half")
        with half.open("w", encoding="utf-8") as file:
            code = subprocess.run(["bash", "-c", command], cwd=self.root, env=env, stdout=file, check=False).returncode
        if code == 0:
            half.rename(self.output(figure))
        return code

    def compare(self, figure: Figure, state: State) -> None:
        """Add to the state how the output differs from the docs, if there is an output."""
        output = self.output(figure)
        if not output.exists():
            state.result = state.result or "not measured with this code"
            return
        text = output.read_text(encoding="utf-8")
        if figure.kind == "speed":
            state.result = tables.told_ratios(self._old(figure), self._new(figure, text))
            return
        state.differs = self._differs(figure, text)
        state.result = "DIFFERS" if state.differs else "same"
        if others := [place for place, made in figure.pictures.items() if not self._drawn_alike(figure, place, made)]:
            state.result += f" (drawn otherwise: {', '.join(others)})"  # fonts and versions move pixels: no failure

    def _differs(self, figure: Figure, output: str) -> list[str]:
        if not figure.printed:
            return tables.text_differences(self._old(figure).splitlines(), output.splitlines())
        page = (self.root / figure.page).read_text(encoding="utf-8")
        found = [block for block in tables.blocks(page) if block.name == figure.name]
        told = [
            tables.differences(tables.tables(one.body), tables.printed(one, output), figure.speed_columns)
            for one in found
        ]
        return [*(line for lines in told for line in lines), *tables.off_the_page(output, page)]

    def _old(self, figure: Figure) -> str:
        """What is committed of a figure, as text."""
        if figure.printed:
            page = (self.root / figure.page).read_text(encoding="utf-8")
            found = [tables.tables(block.body) for block in tables.blocks(page) if block.name == figure.name]
            return str(found)
        path = self.root / figure.committed
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _new(self, figure: Figure, output: str) -> str:
        if not figure.printed:
            return output
        page = (self.root / figure.page).read_text(encoding="utf-8")
        return str([tables.printed(block, output) for block in tables.blocks(page) if block.name == figure.name])

    def _drawn_alike(self, figure: Figure, place: str, made: str) -> bool:
        new, old = self.folder(figure) / "out" / made, self.root / place
        return new.exists() and old.exists() and small(new) == old.read_bytes()

    def write(self, figure: Figure) -> None:
        """Put an output into the docs, or where it is kept."""
        text = self.output(figure).read_text(encoding="utf-8")
        page = self.root / figure.page
        if figure.printed:
            page.write_text(tables.written(page.read_text(encoding="utf-8"), figure.name, text), encoding="utf-8")
        else:
            (self.root / figure.committed).write_text(text, encoding="utf-8")
        for place, made in figure.pictures.items():
            (self.root / place).write_bytes(small(self.folder(figure) / "out" / made))

    def folder(self, figure: Figure) -> Path:
        """Where a figure is made: named by its command, its code and its data."""
        return self.root / WORK / f"{figure.name}@{self._mark(figure)}"

    def output(self, figure: Figure) -> Path:
        """The output of the finished command."""
        return self.folder(figure) / "output.txt"

    def cache(self) -> Path:
        """Vectors and rankings that figures share."""
        return self.root / WORK / f"cache@{self._hash(self.root / place for place in CACHED_BY)}"

    def _mark(self, figure: Figure) -> str:
        apart = () if figure.kind == "speed" else APART
        every = [path for package in PACKAGES for path in sorted((self.root / package).iterdir())]
        code = [path for path in every if path.name not in apart]
        parts = [self._hash(code), self._hash(scripts(figure.command, self.root)), figure.command]
        parts += [self._hash([place]) for need, place in self.given.items() if need in figure.needs and place]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def _hash(self, places: Iterable[Path]) -> str:
        """Of all files in some places, by name and content; byte code is left out."""
        key = tuple(map(str, places))
        if key not in self._hashes:
            found = hashlib.sha256()
            for place in map(Path, key):
                if not place.exists():  # nothing would be hashed, and what is stale would pass for new
                    raise FileNotFoundError(f"{place} is gone. hint: CACHED_BY must name where that code is now")
                for file in [place] if place.is_file() else sorted(place.rglob("*")):
                    if file.is_file() and "__pycache__" not in file.parts:
                        found.update(f"{file.relative_to(place.parent)}\n".encode() + file.read_bytes())
            self._hashes[key] = found.hexdigest()[:12]
        return self._hashes[key]


def small(picture: Path) -> bytes:
    """A picture in 64 colours, which are enough for lines: a quarter of the bytes."""
    file = io.BytesIO()
    with Image.open(picture) as image:
        image.convert("RGB").quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()


def scripts(command: str, root: Path = ROOT) -> list[Path]:
    """The files of benchmarks/ and tools/ that a command runs, with those that they import."""
    found: list[Path] = []
    names = [root / name for name in re.findall(r"(?:benchmarks|tools)/[\w/]+\.py", command)]
    names += [
        root / "benchmarks" / f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m (perf\.\w+)", command)
    ]
    while names:
        path = names.pop()
        if path in found or not path.exists():
            continue
        found.append(path)
        imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        home = root / path.relative_to(root).parts[0]
        names += [home / f"{name.replace('.', '/')}.py" for name in imported]
    return sorted(found)


def chosen(figures: list[Figure], only: list[str]) -> list[Figure]:
    """The figures whose names match one of the patterns; all without patterns."""
    found = [figure for figure in figures if not only or any(fnmatch(figure.name, pattern) for pattern in only)]
    if not found:
        sys.exit(f"no figure is called {' or '.join(only)}. hint: see {REGISTRY}")
    return found


def sentences(root: Path = ROOT) -> list[str]:
    """Sentences of the docs that their tables contradict, as the pages are now."""
    paths = [root / "README.md", *sorted([*root.glob("docs/**/*.md"), *root.glob("lab/docs/*.md")])]
    pages = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths if path.exists()}
    known = numbered_tables(pages.values())
    return [f"{name}: {problem}" for name, page in pages.items() for problem in wrong_claims(page, known)]


def summary(states: dict[str, tuple[Figure, State]]) -> str:
    """The table at the end."""
    lines = [("figure", "kind", "page", "run", "s", "against the docs")]
    for name, (figure, state) in states.items():
        seconds = f"{state.seconds:.0f}" if state.seconds else ""
        more = f": {len(state.differs)} lines" if state.differs else ""
        lines.append((name, figure.kind, figure.page, state.run, seconds, state.result + more))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def main() -> None:
    """Run, compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names, or patterns such as 'mini-*'")
    parser.add_argument("--data", type=Path, default=os.environ.get("OUTWORD_BENCH_MINI"), help="bench-mini")
    parser.add_argument("--have", nargs="+", default=[], choices=list(NEEDS), help="what else there is")
    parser.add_argument("--check", action="store_true", help="run nothing, compare what is there")
    parser.add_argument("--write", action="store_true", help="put what was measured into the docs")
    args = parser.parse_args()
    figures = chosen(read_figures(), args.only)
    data = Path(args.data).resolve() if args.data else None
    places = {
        name: Path(os.environ[variable]).resolve() for name, variable in FOLDERS.items() if variable in os.environ
    }
    work = Figures(ROOT, data, args.have, places)
    states: dict[str, tuple[Figure, State]] = {}
    for number, figure in enumerate(figures, 1):
        print(f"[{number}/{len(figures)}] {figure.name}: {figure.command}", file=sys.stderr, flush=True)
        state = State("checked") if args.check else work.bring(figure)
        work.compare(figure, state)
        if state.differs:
            print(f"\n{figure.name}, {figure.page}:", *state.differs, sep="\n", end="\n\n", flush=True)
        if args.write and work.output(figure).exists():
            work.write(figure)
        states[figure.name] = figure, state
    print(summary(states))
    untrue = sentences()
    if untrue:
        print("\nsentences that their tables contradict:", *untrue, sep="\n")
    bad = [name for name, (_, state) in states.items() if state.differs or state.run == "FAILED"]
    if bad:
        hint = "" if args.write else "; WRITE=1 puts what was measured into the docs"
        sys.exit(f"{len(bad)} of {len(figures)} figures are not as in the docs: {', '.join(bad)}{hint}")
    if untrue:
        sys.exit(f"sentences to be written anew: {len(untrue)}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")
