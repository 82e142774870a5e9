"""Size and start-up of a fresh core install: what a newcomer's machine pays, and what for.

python benchmarks/footprint.py            (a minute or two: it makes a new virtual environment)

It prints the parts of the install with what each is for, and the times of cold processes, the shortest of five; the
commands take turns. Caches are empty for each `fit`, so that nothing is left of the one before.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from perf.tables import Goal, Table, markdown

ROOT = Path(__file__).resolve().parents[1]
PHOTO = ROOT / "src" / "outword" / "demo" / "photos" / "cat.jpg"
ROUNDS = 5
MOST = 205.0  # MB of a core install
EXACT = "tabby cat, espresso, space shuttle, beagle, banana, acoustic guitar, school bus, goldfish, pizza, umbrella"
BROAD = "animal, vehicle, food, furniture, building, plant, clothing, musical instrument, tool, bird"
LIMITS = {  # seconds
    "import outword": 0.025,
    "outword score, one photo": 0.4,
    "outword fit, 10 exact labels": 0.6,
    "outword fit, 10 broad labels": 1.5,
}
FOR = {  # what a package is for, or what needs it
    "onnxruntime": "runs both towers of `mini` and every exported encoder",
    "numpy": "all arithmetic; half of it is OpenBLAS",
    "pillow": "reads photos; most of it are libraries of formats (AVIF, WebP, TIFF, JPEG 2000)",
    "protobuf": "onnxruntime asks for it",
    "safetensors": "reads and writes detectors, stores and the data below",
    "jinja2": "the HTML pages of score and serve",
    "packaging": "onnxruntime asks for it",
    "click": "the command line",
    "threadpoolctl": "keeps BLAS to its share of the processors",
    "flatbuffers": "onnxruntime asks for it",
    "markupsafe": "jinja2 asks for it",
}
DATA = {  # what a file or folder of the package is for; the longest that a path begins with counts
    "encoders/data/mini/text.onnx": "`mini`'s text tower, int8: labels that are no names of `names/`, prompts, corpora",
    "encoders/data/mini/image": "`mini`'s image tower",
    "encoders/data/mini/": "the space that the towers share (`head`), what `mini` knows of words (`lexicon`), tokens",
    "encoders/data/names/": "float32 vectors of the 3,159 names that `mini` knows: `fit` needs no text tower for them",
    "encoders/data/wild/": "int8 vectors of the 12,000 wild words that mining ranks first: `fit` mines nothing",
    "encoders/data/reference/": "float16 vectors of 2,100 photos: cuts and p-values without a photo of yours",
    "words/corpora/data/": "WordNet's nouns, glosses and words: kinds of labels, senses, corpora",
    "demo/": "photos of the demo",
    "": "code, pages and the rest",
}


def main() -> None:
    """Install into a new environment, and print its parts and the times."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        python = home / "venv" / "bin" / "python"
        before = {name for name, _ in files(python)}
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, str(ROOT)], check=True)
        print(markdown(parts({name: sizes for name, sizes in files(python) if name not in before})), end="\n\n")
        print(markdown(starts(home)))


def files(python: Path) -> list[tuple[str, dict[str, int]]]:
    """The packages of an environment by name, each with its files and their bytes, byte code left out."""
    code = (
        "import json; from importlib.metadata import distributions as all\n"
        "print(json.dumps([(d.name.lower(), {str(f): f.locate().stat().st_size for f in d.files or () "
        "if not str(f).endswith('.pyc') and f.locate().is_file()}) for d in all()]))"
    )
    return json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)


def parts(packages: Mapping[str, Mapping[str, int]]) -> Table:
    """What the install is made of, the largest part first, and what each is for."""
    rows = [
        {"part": name, "MB": megabytes(sizes), "what for": FOR[name]} for name, sizes in packages.items() if name in FOR
    ]
    unknown = [name for name in packages if name not in FOR and name != "outword"]
    assert not unknown, f"say in FOR what these packages are for: {unknown}"
    own: dict[str, dict[str, int]] = {}
    for file, size in packages["outword"].items():
        place = max((start for start in DATA if file.startswith(f"outword/{start}")), key=len, default="")
        own.setdefault(place, {})[file] = size
    rows += [
        {"part": f"outword: {place or 'code'}", "MB": megabytes(own[place]), "what for": DATA[place]} for place in own
    ]
    rows.sort(key=lambda row: -float(row["MB"]))
    whole = sum(float(row["MB"]) for row in rows)
    mine = megabytes(packages["outword"])
    return Table(
        "A core install, without pip and .pyc files",
        [*rows, {"part": "all", "MB": whole, "what for": f"{mine:.1f} MB are outword's own"}],
        [Goal(f"at most {MOST:.0f} MB", f"{whole:.1f} MB", whole <= MOST)],
    )


def megabytes(sizes: Mapping[str, int]) -> float:
    """Of files by name."""
    return round(sum(sizes.values()) / 1e6, 1)


def starts(home: Path) -> Table:
    """Seconds of cold processes, the shortest of some rounds."""
    python, outword = home / "venv" / "bin" / "python", home / "venv" / "bin" / "outword"
    env = {"OUTWORD_CACHE": str(home / "cache"), "PATH": "/usr/bin:/bin"}
    names = "import outword.words.corpora as c; print('\\n'.join(c.get_corpus('common').words[:8000:8]))"
    many = subprocess.run([python, "-c", names], env=env, capture_output=True, text=True, check=True).stdout
    lists = {"exact": EXACT.replace(", ", "\n"), "broad": BROAD.replace(", ", "\n"), "many": many}
    for name, text in lists.items():
        (home / f"{name}.txt").write_text(text)

    def fit(name: str) -> list[object]:
        return [outword, "fit", home / f"{name}.txt", "-o", home / f"{name}.outword"]

    commands = {
        "python alone": [python, "-c", "pass"],
        "import outword": [python, "-c", "import outword"],
        "outword fit, 10 exact labels": fit("exact"),
        "outword fit, 10 broad labels": fit("broad"),
        f"outword fit, {len(many.splitlines()):,} labels": fit("many"),
        "outword score, one photo": [outword, "score", home / "exact.outword", PHOTO],
        "outword demo": [outword, "demo", "--html", home / "demo.html"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(ROUNDS + 1):  # the first writes the byte code
        for name, command in commands.items():
            shutil.rmtree(home / "cache", ignore_errors=True)
            began = time.perf_counter()
            subprocess.run([str(part) for part in command], env=env, check=True, capture_output=True)
            took[name] += [time.perf_counter() - began] if turn else []
    best = {name: min(times) for name, times in took.items()}
    return Table(
        "Start: a cold process",
        [{"": name, "s": f"{seconds:.2f}"} for name, seconds in best.items()],
        [
            Goal(f"{name} in less than {most:g} s", f"{best[name]:.3f} s", best[name] < most)
            for name, most in LIMITS.items()
        ],
        f"The shortest of {ROUNDS} runs in turns, after one that writes the byte code; no cache of an earlier run.",
    )


if __name__ == "__main__":
    main()
