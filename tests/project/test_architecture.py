"""docs/architecture.md, compared with the tree: every room, every module, every function that it names."""

import re
from pathlib import Path

import pytest
import tomllib

from helpers.dotted import exists

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / "src" / "outword", ROOT / "lab" / "src" / "outword_lab"]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| `([\w/]+/)` \| (.+) \| (.*?) \|$", PAGE, flags=re.MULTILINE)


def modules_of(folder):
    return {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__", "_version"}


def test_every_room_and_module_is_on_the_map():
    on_map = {room.rstrip("/"): set(re.findall(r"`(\w+)`", names)) for room, _, names in ROWS}
    there = {}
    for package in PACKAGES:
        folders = [path.parent for path in package.rglob("__init__.py")]
        there |= {path.relative_to(package.parent).as_posix(): modules_of(path) for path in folders}
    assert on_map == there


@pytest.mark.parametrize(("package", "mark"), [("outword", "layers"), ("outword_lab", "layers of the lab")])
def test_the_layers_are_those_that_are_kept(package, mark):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    every = [one["layers"] for one in contracts if one["type"] == "layers"]
    [layers] = [some for some in every if some[0].startswith(f"{package}.")]
    layers = [layer.replace(f"{package}.", "").replace("|", "·") for layer in layers]
    drawn = re.search(rf"<!-- {mark} -->\n```\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    assert [" ".join(line.split()) for line in drawn.splitlines()] == layers


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:\w+\.)+\w+)(?:\(\))?`", PAGE))))
def test_what_the_map_names_exists(name):
    if name.rpartition(".")[2] in ("md", "toml", "py", "html", "json", "jsonl"):
        pytest.skip("a file")
    assert exists(name if name.startswith("outword") else f"outword.{name}")
