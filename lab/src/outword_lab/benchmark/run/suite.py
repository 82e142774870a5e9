"""A suite: which sets, encoders, words and methods a benchmark takes; one TOML file each, in `suites/`.

A suite of parts names other suites, which are run one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from outword.base.checks import unknown, whole_number
from outword.base.files import PathLike, read_small
from outword.base.records import read_record
from outword.detector.recipe import Recipe, resolve
from outword.encoders import Encoder
from outword.errors import InputError, ParameterError
from outword.maths.methods import DETECTORS
from outword.maths.mining import MINERS
from outword_lab.benchmark.toml import tomllib

SUITES = Path(str(files("outword_lab"))) / "benchmark" / "suites"
FOLDER = "folder"  # as a set: ROOT/id, ROOT/train, or every folder in ROOT/ood
ALL = "all"
LARGEST = 4 << 20  # bytes of a TOML file
SEE = "lab/docs/benchmark.md"
TAKEN = ("..", "store", "tables")  # what no part is called: the parts lie beside these
Kind = Literal["methods", "sweep", "theorem", "vectors"]

# What a sweep may change: of the method, of the miner, or of the labels.
SWEPT = {
    "tau": ("params", "tau"),
    "sigma": ("params", "sigma"),
    "kappa": ("params", "temperature"),
    "B": ("params", "n_groups"),
    "alpha": ("miner_params", "alpha"),
    "L": ("miner_params", "size"),
    "K": ("labels", "K"),
}
WHOLE = ("B", "alpha", "L", "K")


@dataclass(frozen=True)
class Entry:
    """A method as it takes part; prompts, miner, corpus and kinds are as for `outword.fit`."""

    method: str  # as in `outword list methods`
    name: str = ""  # of its rows; the method's by default
    published: str = ""  # its row in the paper's table, if it has one there
    prompts: str | None = None
    miner: str | None = None
    corpus: str | None = None
    kinds: str | None = None
    keep_label_words: bool | None = None  # None for what the suite says
    params: Mapping[str, Any] = field(default_factory=dict)
    miner_params: Mapping[str, Any] = field(default_factory=dict)
    encoders: tuple[str, ...] = ()  # those of the suite that it takes part with; none stands for all
    shots: tuple[int, ...] = ()  # it takes part once with each of these, as the parameter of that name

    @property
    def base(self) -> str:
        """What it is called with any number of shots."""
        return self.name or self.method

    @property
    def shown(self) -> str:
        """What its rows are called."""
        return ", ".join([self.base, *(f"{n} shot{'s' * (n > 1)}" for n in self.shots)])

    def by_shots(self) -> list[Entry]:
        """An entry for each number of shots; itself where it has none."""
        return [replace(self, shots=(n,), params={**self.params, "shots": n}) for n in self.shots] or [self]

    def recipe(
        self,
        encoder: Encoder,
        *,
        corpus: str | None = None,
        words: PathLike | None = None,
        prompts: str | None = None,
        **rest: Any,
    ) -> Recipe:
        """How it is made where photos are scored by their vectors; `rest` is for `resolve`.

        A condition's corpus is for methods that take any words, `words` of the user's for those that want a list, and
        prompts for those that have none of their own.
        """
        kind = DETECTORS[self.method]
        return resolve(
            encoder,
            self.method,
            self.params,
            corpus=self.corpus or words if kind.corpus == "" else corpus or self.corpus,
            miner=self.miner,
            miner_params=self.miner_params,
            prompts=self.prompts or kind.prompts or prompts,
            kinds=self.kinds,
            vectors_only=True,
            **rest,
        )


@dataclass(frozen=True)
class Sweep:
    """One parameter, by the paper's letter, over some values; everything else stays."""

    parameter: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Theorem:
    """Sizes of the theorem's experiment (see `outword_lab.benchmark.theory.theory`)."""

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    tau: float = 0.5
    draws: int = 200
    images: int = 32


@dataclass(frozen=True)
class Suite:
    """A benchmark. Every ID set, encoder and corpus is one condition, in which all methods are measured."""

    name: str  # of the file
    title: str
    about: str = ""
    kind: Kind = "methods"  # a table; "sweep" gives figures, "vectors" asks a folder of vectors
    published: str = ""  # the paper's table beside which it is shown, such as "table1"
    id: tuple[str, ...] = ()  # sets of the catalogue, or `FOLDER`
    ood: tuple[str, ...] = ()
    train: str | None = None  # the ID photos that some methods are fitted on
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # OOD sets with an average of their own
    encoders: tuple[str, ...] = ("mini",)
    corpora: tuple[str, ...] = ()  # words for the methods that want some; none leaves each method its own
    prompts: str | None = None  # templates for the methods that name none
    keep_label_words: bool = False  # as for `outword.fit`
    seeds: int = 5  # how many runs; they are numbered from 0
    methods: tuple[Entry, ...] = ()
    sweep: tuple[Sweep, ...] = ()
    theorem: Theorem | None = None
    parts: tuple[str, ...] = ()  # other suites, by name or as TOML files; beside them are title and about alone


def suite_names() -> list[str]:
    """The suites that come with outword."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def read_suite(name: PathLike) -> Suite:
    """A suite by name, or from a TOML file of the user's; an unknown key is an error."""
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in suite_names():
            raise unknown("suite", str(name), suite_names(), "outword list suites")
        path = SUITES / f"{name}.toml"
    try:
        table = tomllib.loads(read_small(path, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no suite {path}", hint='see "outword list suites"') from None
    except (OSError, ValueError, RecursionError) as error:  # a number or a nest without end is no error of TOML's
        raise InputError(f"{path} cannot be read as TOML: {error}", hint="correct it") from None
    if "methods" in table:
        table["methods"] = _entries(table["methods"])
    suite = read_record(Suite, {"name": path.stem, **table}, str(path), SEE)
    suite = replace(suite, methods=tuple(one for entry in suite.methods for one in entry.by_shots()))
    if "parts" in table:
        _check_parts(table, str(path))
    else:
        _check(suite, str(path))
    return suite


def read_parts(name: PathLike) -> list[Suite]:
    """The suites that a suite consists of, in order: its parts, or itself where it has none.

    A part that is a TOML file of the user's lies beside the file that names it.
    """
    suite = read_suite(name)
    parts = [read_suite(Path(name).parent / part if part.endswith(".toml") else part) for part in suite.parts]
    names = [part.name for part in parts]
    for part in parts:
        if part.parts:
            raise InputError(f"a part of {suite.name} must have no parts, got {part.name}", hint="name its parts")
        if Path(part.name).name != part.name or part.name in TAKEN:
            raise InputError(f"{part.name!r} must be fit for a folder, to be a part of {suite.name}", hint="rename it")
        if names.count(part.name) > 1:
            raise InputError(f"parts of {suite.name} must have different names, got two {part.name}", hint="rename one")
    return parts or [suite]


def _entries(methods: Any) -> Any:
    """The methods of a table, those that are named by a word alone as tables; "all" stands for every one there is."""
    listed = list(DETECTORS) if methods == ALL else methods
    return [{"method": one} if isinstance(one, str) else one for one in listed] if isinstance(listed, list) else listed


def _check_parts(table: Mapping[str, Any], where: str) -> None:
    """See that a suite of parts has some, and nothing that is for the parts to say."""
    if stray := [key for key in table if key not in ("name", "title", "about", "parts")]:
        raise InputError(f"{where} must have no key {stray[0]} beside parts", hint="write it into the suite of a part")
    if not table["parts"]:
        raise InputError(f"parts in {where} must name a suite, got none", hint='see "outword list suites"')


def _check(suite: Suite, where: str) -> None:
    """See that a suite names what exists, nothing twice, and lacks nothing."""
    whole_number(f"seeds in {where}", suite.seeds, hint="the paper's is 5")
    if not suite.name.strip():
        raise InputError(f"name in {where} must not be empty", hint="leave it out: it is that of the file")
    for key in ("id", "ood", "encoders", "corpora"):
        if len(set(getattr(suite, key))) < len(getattr(suite, key)):
            raise InputError(f"{key} in {where} must name nothing twice", hint="remove one of them")
    _check_methods(suite, where)
    for sweep in suite.sweep:
        _check_sweep(sweep, where)
    for group, sets in suite.groups.items():
        if stray := [name for name in sets if name not in suite.ood]:
            raise InputError(
                f"{group} in {where} must name OOD sets of the suite, got {stray[0]}", hint="add it to ood"
            )
    measured = ("id", "ood", "encoders", "methods", *(["sweep"] if suite.kind == "sweep" else []))
    keys: dict[str, tuple[str, ...]] = {"theorem": ("theorem",), "vectors": ()}
    for key in keys.get(suite.kind, measured):
        if not getattr(suite, key):
            raise InputError(f"{where} must have the key {key}", hint=f"see {SEE}")


def _check_methods(suite: Suite, where: str) -> None:
    for entry in suite.methods:
        if entry.method not in DETECTORS:
            raise unknown(f"method in {where}", entry.method, DETECTORS, "outword list methods")
        if entry.miner is not None and entry.miner not in MINERS:
            raise unknown(f"miner in {where}", entry.miner, MINERS, "outword list miners")
        if stray := [name for name in entry.encoders if name not in suite.encoders]:
            raise InputError(
                f"{entry.shown} in {where} must name encoders of the suite, got {stray[0]}", hint="add it to encoders"
            )
    for encoder in suite.encoders:
        shown = [entry.shown for entry in suite.methods if encoder in (entry.encoders or suite.encoders)]
        if len(set(shown)) < len(shown):
            raise ParameterError(
                f"methods in {where} must have different names, got {', '.join(shown)}", hint="add name="
            )


def _check_sweep(sweep: Sweep, where: str) -> None:
    if sweep.parameter not in SWEPT:
        raise unknown(f"parameter in {where}", sweep.parameter, SWEPT, "lab/docs/benchmark.md")
    if len({f"{value:g}" for value in sweep.values}) < len(sweep.values):
        raise InputError(f"{sweep.parameter} in {where} must have no value twice", hint="remove one of them")
    for value in sweep.values if sweep.parameter in WHOLE else ():
        whole_number(f"{sweep.parameter} in {where}", value, hint="write it without a point")
