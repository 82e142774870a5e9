"""Write docs/api.md, the public names, from the package itself: the `__all__` of the modules that make promises.

python tools/build_api.py            (seconds; run it after any change of a public name)
python tools/build_api.py --check    exits 1 when the page is stale
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from generated import keep
from outword.detectors import DETECTORS
from outword.mining import MINERS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
MODULES = (
    "",
    "detectors",
    "mining",
    "metrics",
    "kernels",
    "encoders",
    "scoring",
    "testing",
    "sklearn",
    "client",
    "errors",
    "plugins",
)
INTRO = """\
# Public names

What other people's code may import: {count} names, where the methods count as one, the miners as one, and a name that
several modules have as one. They stay; a change is in the changelog. All other modules are private, however their names
begin: they move when the house is tidied ([architecture.md](architecture.md)).

This page is written by `tools/build_api.py` from the package.
"""


def main() -> int:
    """Write the page, or say whether it is stale."""
    return keep(PAGE, "\n".join([INTRO.format(count=count()), *(section(name) for name in MODULES)]), "build_api.py")


def count() -> int:
    """How many names there are, where the methods are one, and the miners one."""
    listed = {one.__name__ for registry in (DETECTORS, MINERS) for one in registry.values()}
    return 2 + len({name for module in MODULES for name in _module(module).__all__} - listed)


def _module(name: str) -> ModuleType:
    return import_module(f"outword.{name}" if name else "outword")


def section(name: str) -> str:
    """The names of a module, a line each."""
    module = _module(name)
    lines = "\n".join(_line(name, getattr(module, name)) for name in module.__all__)
    return f"## `{module.__name__}`\n\n{_first(module)}\n\n| name | what it is |\n|---|---|\n{lines}\n"


def _line(name: str, value: Any) -> str:
    called = f"`{name}{_arguments(value)}`" if inspect.isfunction(value) else f"`{name}`"
    return f"| {called} | {_first(value)} |"


def _arguments(function: Any) -> str:
    names = [_argument(parameter) for parameter in inspect.signature(function).parameters.values()]
    return f"({', '.join(names)})"


def _argument(parameter: inspect.Parameter) -> str:
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    mark = marks.get(parameter.kind, "")
    optional = "=" if parameter.default is not inspect.Parameter.empty else ""
    return f"{mark}{parameter.name}{optional}"


def _first(value: Any) -> str:
    """The first sentence of a docstring; of other values, their kind."""
    documented = inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value)
    text = inspect.getdoc(value) if documented else None
    if not text:
        return f"a {type(value).__name__}"
    return " ".join(next(_paragraphs(text)).split()).replace("|", r"\|")


def _paragraphs(text: str) -> Iterator[str]:
    yield from text.split("\n\n")


if __name__ == "__main__":
    sys.exit(main())
