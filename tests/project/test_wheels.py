"""The wheels of both packages: built, installed where nothing else is but what the core asks for, and used."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement

import outword
from conftest import PHOTOS
from outword._version import __version__
from outword.base import lab

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def needed(names, seen):
    """The packages that some ask for, with what these ask for, as they are installed here."""
    for requirement in map(Requirement, names):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = distribution(requirement.name)
            if found.name not in seen:
                seen[found.name] = found
                needed(found.requires or [], seen)
    return seen


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels, by the package that they bring."""
    folder = tmp_path_factory.mktemp("wheels")
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*PIP, "wheel", *offline, "--wheel-dir", folder, ROOT, ROOT / "lab"], check=True)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def sites(wheels, tmp_path_factory):
    """Folders of installed packages: what the core asks for, outword, and the lab."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = {"core": tmp_path_factory.mktemp("core")}
    for package in needed(asked, {}).values():
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link, target = found["core"] / top, Path(package.locate_file(top))
            if target.exists() and not link.exists():
                link.symlink_to(target)
    found["half"] = found["core"].parent / "half"  # a lab that is broken
    for name, wheel in wheels.items():
        found[name] = tmp_path_factory.mktemp(name)
        install = ["install", "--no-deps", "--no-index", "--no-compile", "--target", found[name], wheel]
        subprocess.run([*PIP, *install], check=True)
    return found


@pytest.fixture
def run(sites, tmp_path):
    """A function that runs Python with some of the folders alone."""

    def call(places, *args, code=0):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(sites[place]) for place in places), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-S", *map(str, args)], env=env, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        return done

    return call


ALONE = ("core", "outword")
BOTH = ("core", "outword", "outword_lab")


def test_a_wheel_has_its_own_package_alone(wheels):
    assert sorted(wheels) == ["outword", "outword_lab"]
    for name, path in wheels.items():
        tops = {file.partition("/")[0] for file in zipfile.ZipFile(path).namelist()}
        assert tops == {name, f"{name}-{__version__}.dist-info"}
        assert f"{name}/py.typed" in zipfile.ZipFile(path).namelist()
    big = [
        file for file in zipfile.ZipFile(wheels["outword"]).namelist() if re.search("world|mini-float|catalogue", file)
    ]
    assert big == []


def test_both_have_one_version_and_the_lab_asks_for_it():
    about = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]
    assert about["dependencies"] == [f"outword=={__version__}"]


def test_the_product_alone_lists_and_scores(run):
    rows = {row["name"]: row for row in json.loads(run(ALONE, "-m", "outword", "list", "methods", "--json").stdout)}
    assert [name for name, row in rows.items() if row.get("package") == lab.PACKAGE] == [
        *lab.NAMES["outword.detectors"]
    ]
    assert not any(rows[name]["installed"] for name in lab.NAMES["outword.detectors"])
    *_, brings, names = run(ALONE, "-m", "outword", "list", "encoders").stdout.splitlines()
    assert brings.startswith(f"more comes with {lab.PACKAGE}: pip install ")
    assert names == ", ".join(lab.NAMES["outword.encoders"])
    scored = run(ALONE, "-m", "outword", "score", "--labels", "tabby cat, espresso", PHOTOS / "cat.jpg").stdout
    assert "tabby cat" in scored.splitlines()[1]


LACK = f"comes with {lab.PACKAGE}, which is not installed: pip install "
ASKED = {
    "bench": ["bench", "world", "--seeds", "1"],
    "data": ["data", "check", "/data"],
    "train-no": ["train-no", "--help"],
    "suites": ["list", "suites"],
    "coop": ["fit", "cat, dog", "--method", "coop"],
    "world-s": ["fit", "cat, dog", "--encoder", "world-s"],
    "clipn:": ["fit", "cat, dog", "--encoder", "clipn:no.safetensors"],
    "world-nouns": ["fit", "cat, dog", "--corpus", "world-nouns", "--method", "neglabel"],
    "world:": ["score", "--labels", "cat, dog", "world:near"],
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_of_the_lab_says_in_one_line_which_command_brings_it(name, run):
    told = run(ALONE, "-m", "outword", *ASKED[name], code=2).stderr.splitlines()
    assert [line for line in told if LACK in line] == [told[-1]]
    assert told[-1].startswith(f"error: {name} ")


def test_help_lists_the_verbs_of_the_lab_as_such(run):
    lines = run(ALONE, "-m", "outword", "--help").stdout.splitlines()
    for verb in lab.NAMES["outword.verbs"]:
        [line] = [line for line in lines if line.split()[:1] == [verb]]
        assert f"({lab.PACKAGE}, not installed" in line


@pytest.mark.parametrize(
    "code",
    [
        "from outword.detectors import CoOp",
        "import outword; outword.read_words_per_image",
        "from outword.encoders import zoc_decoder",
        "import outword; outword.load('float.outword')",
        "import outword; outword.load('zoc.outword')",
    ],
)
def test_so_do_names_in_python_and_old_detectors(code, run, tmp_path):
    labels = ["tabby cat", "espresso"]
    outword.fit(labels, encoder="mini-float", method="mcm").save(tmp_path / "float.outword")
    outword.fit(labels, method="zoc").save(tmp_path / "zoc.outword")
    last = run(ALONE, "-c", code, code=1).stderr.splitlines()[-1]
    assert last.startswith("outword.errors.MissingExtraError: ") and LACK in last


BROKEN = [
    ["-m", "outword", *ASKED["bench"]],
    ["-m", "outword", *ASKED["coop"]],
    ["-c", "from outword.detectors import CoOp"],
]


@pytest.mark.parametrize("args", BROKEN)
def test_a_lab_that_cannot_be_loaded_is_to_be_installed_again(args, run, sites):
    """Its metadata is there and its modules are not: so an editable install is left when its clone was moved."""
    sites["half"].mkdir(exist_ok=True)
    for info in sites["outword_lab"].glob("*.dist-info"):
        shutil.copytree(info, sites["half"] / info.name, dirs_exist_ok=True)
    told = run(("core", "outword", "half"), *args, code=2 if "-m" in args else 1).stderr.splitlines()
    assert f"comes with {lab.PACKAGE}, which is installed, but cannot be loaded; install it again: pip " in told[-1]
    if "-m" in args:
        assert all(line.startswith(("warning: the ", "error: ")) for line in told)
        assert any("is left out: No module named 'outword_lab'" in line for line in told)


def test_with_the_lab_all_of_it_works(run):
    rows = json.loads(run(BOTH, "-m", "outword", "list", "methods", "--json").stdout)
    marked = [row["name"] for row in rows if row.get("package") == lab.PACKAGE and row["installed"] and row["needs"]]
    assert marked == [*lab.NAMES["outword.detectors"]]
    assert "world-table1" in run(BOTH, "-m", "outword", "list", "suites").stdout
    assert "unknown suite" in run(BOTH, "-m", "outword", "bench", "wrold", code=2).stderr
    drawn = ["score", "--labels", "hammer, cat", "--encoder", "world-s", "world:id/hammer/000.png"]
    assert "hammer" in run(BOTH, "-m", "outword", *drawn).stdout
    names = "from outword.detectors import CoOp; import outword; print(CoOp.summary, outword.read_words_per_image)"
    run(BOTH, "-c", names)


def test_a_verb_of_ours_loads_no_module_of_the_lab(run):
    """Neither is it as slow as the lab's modules are, nor does a broken package have a warning in all that is done."""
    code = "import sys; from outword.cli import main; main(['score', '--help'], standalone_mode=False); "
    run(BOTH, "-c", code + "sys.exit(any(name.startswith('outword_lab') for name in sys.modules))")
