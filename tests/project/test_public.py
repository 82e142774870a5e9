"""Public names: those of `__all__` in the modules that make promises, and no others."""

import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import outword
from outword.base import lab
from outword.base.extras import install
from outword.detectors import DETECTORS
from outword.errors import MissingExtraError
from outword.mining import MINERS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from build_api import MODULES  # noqa: E402


def public(name):
    return import_module(f"outword.{name}" if name else "outword")


@pytest.mark.parametrize("name", MODULES)
def test_exported_members_are_there_and_described(name):
    module = public(name)
    names = list(module.__all__)
    assert len(set(names)) == len(names)
    for one in names:
        value = getattr(module, one)
        assert not callable(value) or inspect.getdoc(value), one


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_makes_itself_is_exported_or_private(name):
    module = public(name)
    own = {
        one
        for one, value in vars(module).items()
        if not one.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }
    assert own <= set(module.__all__)


NAMES = {  # all of them, but for the methods and the miners, which registries list
    "": "Detector Guard Guarded OutwordError Prediction Predictions SuggestedKinds __version__ bundle check compare"
    " embed export find fit load read_labels reference suggest_kinds tune",
    "detectors": "DETECTORS Need VectorDetector",
    "mining": "MINERS Miner",
    "metrics": "aupr auroc fpr_at_tpr threshold_at_tpr",
    "kernels": "chosen grouped_logsumexp neighbour_density using",
    "encoders": "Coverage ENCODERS Encoder get_encoder",
    "scoring": "filter run",
    "testing": "World check_detector check_encoder check_miner planted_world",
    "sklearn": "VectorOutlierDetector",
    "client": "Client Info LabelOdds Limits Result Scores ServiceError ThresholdInfo",
    "errors": "ArtifactError ImageError InputError MissingExtraError NotFittedError OutwordError ParameterError"
    " UnreachableError WeakLabelsWarning",
    "plugins": "Array Blob Corpus Coverage DETECTORS ENCODERS Encoder FitRequest ImageError InputError Item Kind MINERS"
    " Miner Need OutwordError ParameterError Piece Pixels ScoreRequest VectorDetector Vectors check_bytes digest"
    " find_names inner make_corpus number say show unit_rows whole_number",
}


OF_LAB = {"": ["read_words_per_image"], "detectors": [*lab.CLASSES], "encoders": ["zoc_decoder"]}  # of outword-lab


@pytest.mark.parametrize(("name", "one"), [(name, one) for name, names in OF_LAB.items() for one in names])
def test_names_of_the_lab_are_at_their_places(name, one):
    assert inspect.getdoc(getattr(public(name), one))


@pytest.mark.parametrize("name", MODULES)
def test_the_public_names_are_these(name):
    """Who adds one, or takes one away, says so here and in the changelog."""
    listed = {"detectors": DETECTORS, "mining": MINERS}.get(name, {}).values()
    ours = {one.__name__ for one in listed if one.__module__.startswith("outword.")}  # others are the lab's
    assert {*public(name).__all__} == {*NAMES[name].split(), *ours}


def test_plugins_has_each_name_from_its_home_and_imports_nothing_before():
    homes = {name for names in outword.plugins._HOMES.values() for name in names}
    assert homes == {*outword.plugins.__all__}
    assert all(getattr(outword.plugins, name) for name in homes)
    quick = "import sys, outword.plugins; sys.exit('numpy' in sys.modules or 'click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", quick]).returncode == 0


IMPORT = re.compile(r"^(?:from (outword[\w.]*) import (\([^)]*\)|[^\n#]*)|import (outword[\w.]*))", re.MULTILINE)
KINDS = ("*.md", "docs/**/*.md", "docs/**/*.ipynb", "examples/**/*.py", "lab/*.md", "lab/docs/**/*.md")
GUIDES = sorted(path for kind in KINDS for path in ROOT.glob(kind) if path.name != "CHANGELOG.md")


def code_of(path):
    """The code that a guide shows, without indents and prompts."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"```\w+\n(.*?)```", text, flags=re.DOTALL))
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    return re.sub(r"^ *(>>> |\.\.\. )?(python -c \S)?", "", text, flags=re.MULTILINE)


def private(module, names):
    """What of an import is not public; the lab, outword_lab, is another package."""
    package, _, rest = module.partition(".")
    if package != "outword":
        return []
    if rest not in MODULES:
        return [module]
    known = {*public(rest).__all__, *OF_LAB.get(rest, ()), *(() if rest else MODULES)}
    return [f"{module}.{name}" for name in names if name not in known]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_guides_import_nothing_private(path):
    found = []
    for module, names, plain in IMPORT.findall(code_of(path)):
        found += private(module or plain, re.findall(r"(\w+)(?: as \w+)?", names))
    assert not found


def test_the_page_of_public_names_is_what_the_code_says():
    run = subprocess.run([sys.executable, ROOT / "tools" / "build_api.py", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_dir_shows_what_there_is_and_all_of_it_can_be_had():
    assert set(dir(outword)) == {*outword.__all__, *MODULES} - {""}
    assert outword.metrics.auroc([1.0], [0.0]) == 1 and outword.Guard and outword.Predictions
    assert all(hasattr(outword, name) for name in dir(outword))
    with pytest.raises(AttributeError, match="module 'outword' has no attribute 'nothing'"):
        outword.nothing  # noqa: B018


def test_without_scikit_learn_its_module_is_not_there_and_says_why(monkeypatch):
    monkeypatch.delattr(outword, "sklearn", raising=False)
    monkeypatch.delitem(sys.modules, "outword.sklearn", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert not hasattr(outword, "sklearn") and inspect.getmembers(outword)
    command = re.escape(install("sklearn"))
    with pytest.raises(MissingExtraError, match=rf"outword\.sklearn needs sklearn, .*{command}"):
        import_module("outword.sklearn")
