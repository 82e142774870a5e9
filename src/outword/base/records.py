"""What JSON and TOML files say, checked: records by their annotations, and cards by a table of kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from outword.base.checks import unknown
from outword.errors import InputError, OutwordError

T = TypeVar("T")


def read_record(kind: type[T], table: Mapping[str, Any], where: str, see: str = "the file") -> T:
    """A dataclass from a table: unknown keys, missing keys and values of the wrong kind are errors.

    Lists become tuples, and tables dataclasses, as the annotations say; a number must be finite. Messages call the
    table `where`, and hints send to `see`, where its keys are explained.
    """
    hints, known = get_type_hints(kind), {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise unknown(f"key in {where}", key, known, see)
    for name, field in known.items():
        if name not in table and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{where} must have the key {name}", hint=f"see {see}")
    return kind(**{key: _value(hints[key], value, f"{key} in {where}", see) for key, value in table.items()})


def _value(hint: Any, value: Any, where: str, see: str) -> Any:
    """A value as its annotation wants it."""
    hint = getattr(hint, "__supertype__", hint)  # of a `NewType`
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, UnionType):
        return _first(args, value, where, see)
    if origin is Literal and value not in args:
        raise unknown(where, value, args, see)
    if origin is tuple:
        if not isinstance(value, list):
            raise InputError(f"{where} must be a list, got {_told(value)}", hint="write it in brackets")
        if args[-1] is not Ellipsis and len(value) != len(args):
            raise InputError(f"{where} must have {len(args)} entries, got {len(value)}", hint=f"see {see}")
        return tuple(_value(args[0], one, where, see) for one in value)
    if is_dataclass(hint) and isinstance(value, dict):
        return read_record(hint, value, where, see)  # type: ignore[arg-type]
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: _value(args[1], one, where, see) for key, one in value.items()}
    if origin is not Literal and (not isinstance(hint, type) or not _is_kind(value, hint)):
        name = hint.__name__ if hint in (str, int, float, bool) else "table"
        raise InputError(f"{where} must be of type {name}, got {_told(value)}", hint=f"see {see}")
    return value


def _first(choices: tuple[Any, ...], value: Any, where: str, see: str) -> Any:
    """A value as the first annotation that it suits wants it."""
    errors = []
    for hint in choices:
        try:
            return None if hint is NoneType and value is None else _value(hint, value, where, see)
        except OutwordError as error:
            errors.append(error)
    raise errors[0]


def mistyped(value: Any, kind: Any, name: str = "it") -> str:
    """The first thing in what a file says that is not of its kind, in words; "" if all is.

    A kind is a type, where float is any finite number and nothing but bool takes true and false; a tuple of kinds, one
    of which will do; `[kind]` for a list; `{str: kind}` for a table with any keys; a table of kinds by key, which other
    keys may join, and whose keys that end in "?" may be missing.

    >>> mistyped({"dim": "8", "mean": [0.5]}, {"mean": [float], "dim": int})
    "dim is '8'"
    """
    if isinstance(kind, tuple):
        wrong = [mistyped(value, one, name) for one in kind]
        return wrong[0] if all(wrong) else ""
    if not _is_kind(value, kind):
        return f"{name} is {_told(value)}"
    if isinstance(kind, list):
        parts = [(one, kind[0], f"{name}[{at}]") for at, one in enumerate(value)]
    elif not isinstance(kind, dict):
        return ""
    elif str in kind:
        parts = [(one, kind[str], _told(key)) for key, one in value.items()]
    else:
        lacking = [key for key in kind if not key.endswith("?") and key not in value]
        if lacking:
            return f"{name} has no {lacking[0]}"
        known = {key.removesuffix("?"): one for key, one in kind.items()}
        parts = [(value[key], one, key) for key, one in known.items() if key in value]
    return next(filter(None, (mistyped(*part) for part in parts)), "")


def _is_kind(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300
    wanted = kind if isinstance(kind, type) or kind is None else type(kind)
    if wanted is None:
        return value is None
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _told(value: Any) -> str:
    """A value in few words; digits without end cannot even be printed."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} without end"
