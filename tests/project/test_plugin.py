"""A method in a package of its own: `examples/outword-topk`, as an installer would leave it."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import outword
from conftest import PHOTOS
from outword.detectors import DETECTORS
from outword.errors import ArtifactError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pytest brings it
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "outword-topk"
GROUP = "outword.detectors"


def install(folder, name, points, group=GROUP):
    """What pip leaves of a package beside its modules: metadata with the entry points."""
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"{key} = {value}" for key, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


@pytest.fixture
def site(tmp_path):
    """A folder of installed packages that has the example."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    shutil.copytree(EXAMPLE / "src", folder, ignore=shutil.ignore_patterns("__pycache__"))
    install(folder, project["name"], project["entry-points"][GROUP])
    return folder


def python(site, *args, code=0):
    env = {
        **os.environ,
        "PYTHONPATH": f"{site}{os.pathsep}{ROOT / 'src'}{os.pathsep}{ROOT / 'lab' / 'src'}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    run = subprocess.run([sys.executable, *map(str, args)], env=env, capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    return run


def test_the_example_is_the_method_of_the_guide():
    guide = re.search(r"   ```python\n(.*?)   ```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL).group(1)
    assert (EXAMPLE / "src" / "outword_topk" / "__init__.py").read_text() == textwrap.dedent(guide)


def test_the_command_line_and_the_checks_pick_it_up(site, tmp_path):
    rows = json.loads(python(site, "-m", "outword", "list", "methods", "--json").stdout)
    assert [row["name"] for row in rows] == [*DETECTORS, "topk"]
    assert rows[-1]["about"] == "mean cosine of the k nearest labels"
    assert rows[-1]["parameters"] == {"k": 1}
    (tmp_path / "labels.txt").write_text("tabby cat\nespresso\nspace shuttle\n")
    made = tmp_path / "pets.outword"
    fit = ["-m", "outword", "fit", tmp_path / "labels.txt", "--method", "topk", "--set", "k=2", "-o", made]
    assert python(site, *fit).stdout.strip() == str(made)
    scored = python(site, "-m", "outword", "score", made, PHOTOS / "cat.jpg", PHOTOS / "gravel.jpg").stdout
    assert "tabby cat" in scored.splitlines()[1]
    assert python(site, "-m", "outword", "score", made, PHOTOS / "cat.jpg", PHOTOS / "gravel.jpg").stdout == scored
    check = "from outword.detectors import DETECTORS; from outword.testing import check_detector; "
    python(site, "-c", check + 'check_detector(DETECTORS["topk"]())')
    python(site, "-m", "doctest", site / "outword_topk" / "__init__.py")
    with pytest.raises(ArtifactError, match="was made with the method topk, which is not installed here"):
        outword.load(made)  # here it is not installed


ABSTRACT = """
from dataclasses import dataclass
from outword.plugins import VectorDetector
from outword_topk import TopK

@dataclass
class Abstract(VectorDetector):
    summary = "no score"

@dataclass
class Faulty(TopK):
    def __post_init__(self):
        raise ValueError("boom")
"""
BROKEN = [
    ("broken", "no_such_module:X", "No module named 'no_such_module'"),
    ("raises", "raises:X", "of its own"),
    ("function", "json:loads", "it is no dataclass that derives from VectorDetector"),
    ("base", "outword.maths.methods.base:VectorDetector", "it is no dataclass"),
    ("abstract", "abstract:Abstract", "abstract method"),
    ("faulty", "abstract:Faulty", "boom"),
    ("mcm", "outword_topk:TopK", "there is a method of that name already"),
]


def test_what_cannot_be_loaded_is_left_out_with_a_warning_and_the_rest_works(site):
    (site / "raises.py").write_text("raise RuntimeError('a fault of its own')\n")
    (site / "abstract.py").write_text(ABSTRACT)
    install(site, "other", {name: value for name, value, _ in BROKEN})
    run = python(site, "-m", "outword", "list", "methods", "--json")
    names = {row["name"]: row for row in json.loads(run.stdout)}
    assert sorted(names) == sorted([*DETECTORS, "topk"])
    assert names["mcm"]["about"] == DETECTORS["mcm"].summary
    for name, value, reason in BROKEN:
        line = next(line for line in run.stderr.splitlines() if f"the method {name} ({value}) is left out" in line)
        assert line.startswith("warning: ")
        assert reason in line


def test_a_verb_that_is_no_command_is_left_out_and_ours_stay_ours(site):
    (site / "verbs.py").write_text("import click\n\n@click.command()\ndef score():\n    pass\n")
    install(site, "verbs", {"loads": "json:loads", "score": "verbs:score"}, group="outword.verbs")
    run = python(site, "-m", "outword", "--help")
    assert "warning: the verb loads (json:loads) is left out: it is no command of click" in run.stderr.splitlines()
    assert [line.split()[0] for line in run.stdout.splitlines() if line.startswith("  score ")] == ["score"]
    assert 'unknown verb "loads"' in python(site, "-m", "outword", "loads", code=2).stderr


OTHERS = """
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outword.encoders import get_encoder
from outword.plugins import Kind, Miner, make_corpus

@dataclass
class Last(Miner):
    "Keep the last words."
    size: int = 3

    def _select(self, pool):
        return np.arange(len(pool.words))[-self.size :]

def encoder(name, device="cpu"):
    "mini under another name"
    made = copy(get_encoder("mini"))
    made.name = name
    return made

def four():
    "four things"
    return make_corpus("four", [(word, "noun") for word in ("anvil", "gravel", "kite", "lamp")])

basket = Kind(lambda path: path.endswith(".basket"), lambda path, options: iter(Path(path).read_text().split()))
"""
POINTS = {"miners": "last = others:Last", "encoders": "mine = others:encoder", "corpora": "four = others:four",
          "sources": "basket = others:basket"}  # fmt: skip
TRIED = """
import json, sys
import outword
from outword.cli.choices import registry
from outword.encoders import get_encoder
from outword.errors import ParameterError
from outword.photos.sources import find_names
from outword.testing import check_miner
from outword.mining import MINERS

check_miner(MINERS["last"]())
made = outword.fit(["cat", "espresso"], encoder="mine:x", corpus="four", miner="last", method="neglabel", n_groups=1)
made.save("pets.outword")
again = outword.load("pets.outword")
try:
    get_encoder("mine:x", resize="bilinear")
except ParameterError as error:
    refused = str(error)
names = {kind: [name for name in registry(kind) if name in ("last", "mine:", "four")] for kind in sys.argv[2:]}
found = list(find_names(["two.basket"]))
same = again.score([sys.argv[1]]) == made.score([sys.argv[1]])
print(json.dumps([names, made.wild, again.card["encoder"]["name"], bool(same), refused, found]))
"""


def test_miners_encoders_corpora_and_sources_of_other_packages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "others.py").write_text(OTHERS)
    (tmp_path / "two.basket").write_text("a.jpg b.jpg")
    for axis, point in POINTS.items():
        key, _, value = point.partition(" = ")
        install(tmp_path, f"other-{axis}", {key: value}, f"outword.{axis}")
    (tmp_path / "tried.py").write_text(TRIED)
    tried = (tmp_path, "tried.py", PHOTOS / "cat.jpg", "miners", "encoders", "corpora")
    names, wild, encoder, same, refused, found = json.loads(python(*tried).stdout)
    assert names == {"miners": ["last"], "encoders": ["mine:"], "corpora": ["four"]}
    assert (wild, encoder, same, found) == (["gravel", "kite", "lamp"], "mine:x", True, ["a.jpg", "b.jpg"])
    assert "mine:x cannot be made with these options: got an unexpected keyword argument 'resize'" in refused
