"""No function of the source stands there twice."""

import ast
from collections import defaultdict
from pathlib import Path

import outword
import outword_lab

FEWEST = 3  # statements, from which on a function is worth a home of its own


def statements(function):
    """The body of a function without its docstring, its own names replaced by numbers."""
    body = function.body[ast.get_docstring(function) is not None :]
    nodes = [node for statement in body for node in ast.walk(statement)]
    own = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = defaultdict(lambda: f"v{len(names)}")
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in own:
            node.id = names[node.id]
        elif isinstance(node, ast.arg):
            node.arg = names[node.arg]
    return sum(isinstance(node, ast.stmt) for node in nodes), "".join(map(ast.dump, body))


def test_no_function_is_a_copy_of_another():
    seen = defaultdict(list)
    packages = [Path(package.__file__).parent for package in (outword, outword_lab)]
    every = [path for package in packages for path in sorted(package.rglob("*.py"))]
    for path in every:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{path.name}:{node.lineno} {node.name}"
                count, body = statements(node)
                if count >= FEWEST:
                    seen[body].append(where)
    assert [places for places in seen.values() if len(places) > 1] == []
