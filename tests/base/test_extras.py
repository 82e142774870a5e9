"""A missing extra is named by the command that brings it, from where the package itself came."""

import importlib.metadata
import json
from pathlib import Path

import pytest

from outword.base.extras import install, missing


@pytest.fixture
def installed_from(monkeypatch):
    """A function that makes it look as if the package was installed with this in its direct_url.json."""

    def pretend(origin):
        told = None if origin is None else json.dumps(origin)
        found = type("Found", (), {"read_text": lambda self, name: told})
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found())

    return pretend


def test_from_an_index(installed_from):
    installed_from(None)
    assert install("clip") == 'pip install "outword[clip]"'
    assert missing("torch", ImportError("x")).hint == 'pip install "outword[clip]"'


def test_from_a_clone(installed_from, tmp_path, monkeypatch):
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    installed_from(origin)
    assert install("clip") == f'pip install -e "{tmp_path}[clip]"'
    monkeypatch.chdir(tmp_path)
    assert install("clip,export") == 'pip install -e ".[clip,export]"'
    installed_from({**origin, "dir_info": {}})
    assert install("clip") == 'pip install ".[clip]"'


def test_the_lab_comes_from_where_the_package_did(installed_from, tmp_path, monkeypatch):
    installed_from(None)
    assert install("lab") == 'pip install "outword[lab]"'
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    installed_from(origin)
    assert install("lab") == 'pip install "outword[lab]"'  # a folder without it
    (tmp_path / "lab").mkdir()
    assert (install("lab"), install("bench")) == (f"pip install {tmp_path}/lab", f'pip install "{tmp_path}/lab[bench]"')
    monkeypatch.chdir(tmp_path)
    assert (install("lab"), install("bench")) == ("pip install ./lab", 'pip install "./lab[bench]"')
    installed_from({"url": "https://example.org/o.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}})
    assert install("lab") == 'pip install "outword-lab @ git+https://example.org/o.git@0a1b#subdirectory=lab"'


def test_from_a_file_or_a_repository(installed_from, tmp_path):
    wheel = tmp_path / "outword-1.whl"
    wheel.touch()
    installed_from({"url": wheel.as_uri(), "archive_info": {}})
    assert install("hf") == f'pip install "outword[hf] @ {wheel.as_uri()}"'
    installed_from({"url": "https://example.org/o.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}})
    assert install("hf") == 'pip install "outword[hf] @ git+https://example.org/o.git@0a1b"'


@pytest.mark.parametrize("origin", [{"url": "file:///no/such/clone", "dir_info": {}}, {}, [], {"url": 3}, "x"])
def test_what_is_gone_or_odd_counts_as_an_index(installed_from, origin):
    installed_from(origin)
    assert install("hf") == 'pip install "outword[hf]"'


def test_a_package_that_was_never_installed(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    assert install("hf") == 'pip install "outword[hf]"'


def test_the_command_names_where_this_very_package_is():
    command = install("clip")
    assert command.startswith("pip install ") and "[clip]" in command
    if "-e" in command:
        path = Path(command.partition('"')[2].partition("[")[0])
        assert (path / "pyproject.toml").is_file()
