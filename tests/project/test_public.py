"""Public names: those of `__all__` in the modules that make promises, and no others."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import outword
from outword.base.extras import install
from outword.errors import MissingExtraError

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


def test_there_are_about_sixty():
    assert 55 <= len({(public(name).__name__, one) for name in MODULES for one in public(name).__all__}) <= 105


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
