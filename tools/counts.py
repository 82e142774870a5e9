"""Count the code: modules and code lines by room, how full functions are, and what the package takes on disk.

    python tools/counts.py                  tables of this tree
    python tools/counts.py --worst 15       with the functions of the highest complexity
    python tools/counts.py --json           the same for machines
    python tools/counts.py --before TREE    one table: an older tree beside this one, with what the house is judged by

A code line has more than a comment or a part of a docstring on it. The complexity of a function is 1 and one more for
each if, for, while, except, conditional expression, comprehension and assert in it, and for each further operand of
"and" and "or". Decisions a line are the complexities of all functions over the code lines of all functions.

Three counts are of the product alone. Its public names are those in `__all__` of the modules that make promises
(`MODULES` of tools/build_api.py), where the methods are one, the miners are one, and a name that several modules have
is one. The forms of a photo are the types of `FORMS` that a tree has, from what was loaded to an answer. The files of a
column are the source files, of Python and of the pages, in which `COLUMN` stands.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, quantiles
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
Rooms = dict[str, tuple[int, int]]  # modules and code lines, by room
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DECISIONS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert, *COMPREHENSIONS)
COLUMN = "looks_like"
PLACES = (  # modules that a photo goes through, in any tree that is compared
    *("encoders/loader.py", "encoders/reading.py", "vectors/reader.py", "detector/judge.py", "detector/predictions.py"),
    *("base/prediction.py", "scoring/stream.py", "scoring/rows.py", "scoring/page.py", "serve/service.py"),
    *("serve/schemas.py", "client.py"),
)
FORMS = {  # the types in them that hold a photo, or what is said of it
    *("Seen", "Photo", "Entry", "Loaded", "Found", "Chunk", "Encoded", "Verdict", "Verdicts", "Explanation", "Scored"),
    *("Said", "Told", "Judged", "Prediction", "Row", "PageRow", "Card", "Result"),
}
LISTS = {"detectors": ("DETECTORS", "Need", "VectorDetector"), "mining": ("MINERS", "Miner")}  # others are registered
PUBLIC = """
import json
from importlib import import_module
from build_api import MODULES
names = {module: import_module(f"outword.{module}" if module else "outword").__all__ for module in MODULES}
print(json.dumps({module: list(some) for module, some in names.items()}))
"""
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Function:
    """A function or method that is in no other function; what is nested in it counts as a part of it."""

    where: str
    lines: int  # of code
    complexity: int


@dataclass(frozen=True)
class Module:
    """A Python file."""

    room: str  # its folder, within the package
    code: frozenset[int]  # the numbers of its code lines
    characters: int  # of the code lines, without the indent
    functions: tuple[Function, ...]
    nodes: Counter[str]  # how many there are of each kind of syntax


def main() -> int:
    """Print what was counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also list the N most complex functions")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--before", type=Path, metavar="TREE", help="compare with an older checkout")
    options = parser.parse_args()
    packages = find_packages(ROOT)
    if options.before:
        print(compare_trees(options.before, ROOT))
        return 0
    counted = {package.name: count_package(package) for package in packages}
    if options.json:
        print(json.dumps(counted, indent=2))
        return 0
    for name, figures in counted.items():
        print(as_text(name, figures))
    for function in worst_functions(packages, options.worst):
        print(f"{function.complexity:4}  {function.lines:4} lines  {function.where}")
    return 0


def find_packages(root: Path) -> list[Path]:
    """The packages of this repository: of the product, and of the lab where there is one."""
    found = [root / "src" / "outword", root / "lab" / "src" / "outword_lab"]
    return [package for package in found if package.is_dir()]


def count_package(package: Path) -> dict[str, object]:
    """All figures of a package."""
    modules = list(read_modules(package))
    functions = [function for module in modules for function in module.functions]
    nodes: Counter[str] = sum((module.nodes for module in modules), Counter())
    code = sum(len(module.code) for module in modules)
    lengths = [function.lines for function in functions]
    decisions = sum(function.complexity for function in functions)
    return {
        "rooms": count_rooms(modules),
        "modules": len(modules),
        "code lines": code,
        "characters a code line": round(sum(module.characters for module in modules) / code, 1),
        "functions": len(functions),
        "code lines of a function, median": median(lengths),
        "code lines of a function, 95th percentile": round(quantiles(lengths, n=20)[-1]),
        "code lines of a function, most": max(lengths),
        "complexity, mean": round(mean(function.complexity for function in functions), 2),
        "complexity, most": max(function.complexity for function in functions),
        "functions above complexity 12": sum(function.complexity > 12 for function in functions),
        "decisions a line": round(decisions / sum(lengths), 3),
        "comprehensions a hundred lines": round(100 * nodes["comprehensions"] / code, 1),
        "conditional expressions a hundred lines": round(100 * nodes["IfExp"] / code, 1),
        "megabytes on disk": round(bytes_on_disk(package) / 1e6, 1),
    }


def count_rooms(modules: Iterable[Module]) -> Rooms:
    """Modules and code lines of each room."""
    found: dict[str, tuple[int, int]] = {}
    for module in modules:
        files, lines = found.get(module.room, (0, 0))
        found[module.room] = files + 1, lines + len(module.code)
    return dict(sorted(found.items()))


def compare_trees(before: Path, after: Path) -> str:
    """One table: an older tree, and the packages of this one, as Markdown."""
    old = count_package(find_packages(before)[0]) | count_house(before)
    new = [count_package(package) for package in find_packages(after)]
    new[0] |= count_house(after)
    lines = ["|  | before | outword | outword-lab |", "|---|---|---|---|"]
    for figure in (name for name in old if name != "rooms"):
        cells = [old[figure], *(one.get(figure, "") for one in new)]
        lines.append(f"| {figure} | {' | '.join(as_cell(cell) for cell in cells)} |")
    rooms = [cast("Rooms", one["rooms"]) for one in (old, *new)]
    lines += ["", "| room: code lines | before | outword | outword-lab |", "|---|---|---|---|"]
    for room in sorted({name for one in rooms for name in one}):
        cells = [one[room][1] if room in one else "" for one in rooms]
        lines.append(f"| {room} | {' | '.join(as_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def as_cell(value: object) -> str:
    """A number as a table has it."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def count_house(root: Path) -> dict[str, object]:
    """What of the product no count of lines shows."""
    product = root / "src" / "outword"
    return {
        "public names": len(public_names(root)),
        "forms of a photo": len(photo_forms(product)),
        "types with a verdict of their own": len(verdict_types(product)),
        f"source files with {COLUMN}": len(files_with(product, COLUMN)),
    }


def public_names(root: Path) -> set[str]:
    """The public names of the product, as the tree itself has them."""
    path = os.pathsep.join([str(root / "src"), str(root / "tools"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", "-c", PUBLIC]
    answer = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    found = set[str]()
    for module, names in json.loads(answer.stdout).items():
        listed = {name for name in names if module in LISTS and name not in LISTS[module]}
        found |= {*names} - listed | ({module} if listed else set())
    return found


def photo_forms(product: Path) -> list[str]:
    """The forms of a photo that a tree has."""
    found = []
    for place in PLACES:
        path = product / place
        body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
        named = {name for node in walk_branches(body) for name in names_of(node)}
        found += [f"{place}: {name}" for name in sorted(named & FORMS)]
    return found


def walk_branches(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under an "if" among them."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from walk_branches([*node.body, *node.orelse])


def names_of(node: ast.stmt) -> list[str]:
    """The types that a statement makes."""
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def verdict_types(product: Path) -> list[str]:
    """The types that have a field `verdict`, and do not take it from another."""
    found = []
    for path in sorted(product.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any("verdict" in names_of(line) for line in node.body):
                found.append(f"{path.relative_to(product)}: {node.name}")
    return found


def files_with(product: Path, name: str) -> list[Path]:
    """The source files, of Python and of the pages, in which a name stands."""
    files = (path for kind in ("*.py", "*.js", "*.html") for path in sorted(product.rglob(kind)))
    return [path for path in files if name in path.read_text(encoding="utf-8")]


def worst_functions(packages: Iterable[Path], most: int) -> list[Function]:
    """The functions of the highest complexity, the highest first."""
    modules = (module for package in packages for module in read_modules(package))
    functions = [function for module in modules for function in module.functions]
    return sorted(functions, key=lambda function: (-function.complexity, function.where))[:most]


def read_modules(package: Path) -> Iterator[Module]:
    """The modules of a package, by path."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        code = code_lines(text, tree)
        lines = text.splitlines()
        room = path.relative_to(package).parent.as_posix()
        nodes = Counter(type(node).__name__ for node in ast.walk(tree))
        nodes["comprehensions"] = sum(nodes[kind.__name__] for kind in COMPREHENSIONS)
        yield Module(
            room.replace(".", package.name),
            code,
            sum(len(lines[number - 1].strip()) for number in code),
            tuple(outer_functions(tree, code, path.relative_to(package).as_posix())),
            nodes,
        )


def code_lines(text: str, tree: ast.AST) -> frozenset[int]:
    """The numbers of the lines that have code on them."""
    found = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            found.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return frozenset(found)


def outer_functions(tree: ast.AST, code: frozenset[int], where: str) -> Iterator[Function]:
    """The functions that are in no other one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS):
            lines = code.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            yield Function(f"{where}:{node.lineno} {node.name}", len(lines), complexity(node))
        else:
            yield from outer_functions(node, code, where)


def complexity(function: ast.AST) -> int:
    """1, and one more for each decision."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, DECISIONS):
            found += 1
    return found


def bytes_on_disk(package: Path) -> int:
    """What the files of a package take, compiled ones left out."""
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sum(path.stat().st_size for path in files)


def as_text(name: str, figures: dict[str, object]) -> str:
    """The figures of a package as Markdown."""
    rooms = figures["rooms"]
    assert isinstance(rooms, dict)
    lines = [f"## {name}", "", "| room | modules | code lines |", "|---|---|---|"]
    lines += [f"| {room} | {files} | {count:,} |" for room, (files, count) in rooms.items()]
    lines += ["", "| figure | value |", "|---|---|"]
    lines += [f"| {figure} | {value} |" for figure, value in figures.items() if figure != "rooms"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
