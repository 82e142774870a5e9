"""Things by name: ours by a decorator, those of other packages by an entry point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar

from outword.base import lab
from outword.base.checks import unknown
from outword.errors import OutwordError

T = TypeVar("T")
K = TypeVar("K")


class Registry(Mapping[str, T]):
    """Names and what they stand for, in the order of registering; those of other packages come last.

    A package offers its own in its `pyproject.toml`. They are loaded when all are listed, or when a name is looked up
    that is not ours; one that cannot be loaded or used, or takes a name of ours, is left out with a warning.

        [project.entry-points."outword.detectors"]
        topk = "outword_topk:TopK"

    An entry point may be a module instead, which registers several itself, under the names that it chooses, when it is
    imported.

    Messages call what a name stands for `kind`, and send to `see`, the command or page that lists the names. `problem`
    gives why a thing of another package cannot be used, "" if it can; `suffix` follows the name of an entry point.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        see: str,
        problem: Callable[[Any], str] | None = None,
        suffix: str = "",
    ) -> None:
        self.kind, self.group, self.see, self._suffix = kind, group, see, suffix
        self._problem = problem or (lambda thing: "" if callable(thing) else "it is no function")
        self._things: dict[str, T] = {}
        self._about: dict[str, str] = {}
        self._loaded, self._lock = False, RLock()

    def register(self, name: str, about: str = "") -> Callable[[K], K]:
        """Give what is decorated a name; `about` is a line for lists, by default its `summary`, or its docstring's."""

        def keep(thing: Any) -> Any:
            self._things[name] = thing
            self._about[name] = about or getattr(thing, "summary", "") or (thing.__doc__ or "").partition("\n")[0]
            return thing

        return keep

    def about(self) -> dict[str, str]:
        """A line on each, by name."""
        self._load()
        return dict(self._about)

    def unknown(self, name: str) -> OutwordError:
        """Say that nothing has the name, with the nearest one as a suggestion, or which package has it."""
        return lab.missing(self.group, name) or unknown(self.kind, name, [*self, *lab.names(self.group)], self.see)

    def get(self, name: str, default: Any = None) -> Any:
        """What has the name, or `default`."""
        return self._things[name] if name in self else default

    def __getitem__(self, name: str) -> T:
        """What has the name; `ParameterError` with the nearest name where nothing has."""
        if name not in self:
            raise self.unknown(name)
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._things:
            self._load()
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(dict(self._things))

    def __len__(self) -> int:
        self._load()
        return len(self._things)

    def _load(self) -> None:
        with self._lock:  # of the same thread: a plugin may look something up while it is imported
            if self._loaded:
                return
            self._loaded = True
            from importlib.metadata import entry_points  # slow to import, and rarely needed

            for point in sorted(entry_points(group=self.group)):
                name = point.name + self._suffix
                try:
                    thing = point.load()
                    if isinstance(thing, ModuleType):
                        continue
                    taken = self._things.get(name, thing) is not thing
                    problem = f"there is a {self.kind} of that name already" if taken else self._problem(thing)
                except Exception as error:  # a broken plugin must not take the others with it
                    problem = str(error) or type(error).__name__
                if problem:
                    warnings.warn(f"the {self.kind} {name} ({point.value}) is left out: {problem}", stacklevel=2)
                else:
                    self.register(name)(thing)


def _verb_problem(verb: Any) -> str:
    """Why something is no verb; "" if it is one."""
    from click import Command  # slow to import

    return "" if isinstance(verb, Command) else "it is no command of click"


# Verbs of the command line, and lists of `outword list`, that another package adds.
VERBS: Registry[Any] = Registry("verb", "outword.verbs", "outword --help", _verb_problem)
LISTS: Registry[Callable[[], list[dict[str, Any]]]] = Registry("list", "outword.lists", "outword list --help")
# Functions that another package adds to modules of this one, such as `outword.read_words_per_image`.
FUNCTIONS: Registry[Callable[..., Any]] = Registry("function", "outword.functions", "docs/api.md")
