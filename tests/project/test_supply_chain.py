"""What is installed is locked, with hashes, and the bill of materials tells all of it."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "src" / "outword", ROOT / "lab" / "src" / "outword_lab"
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0", "sys_platform": "linux"}  # that of the locks


@pytest.fixture(scope="module")
def tools():
    """The tools `lock` and `sbom`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        import lock
        import sbom

        yield lock, sbom


@pytest.fixture(scope="module")
def lock(tools):
    return tools[0]


@pytest.fixture(scope="module")
def sbom(tools):
    return tools[1]


def versions(found):
    return {name: version for name, (version, _) in found.items()}


def test_all_is_locked_with_hashes_but_what_differs_by_machine(lock):
    pins, dev, serve = (lock.locked(path) for path in (lock.CONSTRAINTS, lock.DEV, lock.SERVE))
    assert pins.keys() - dev.keys() == {"torch", "triton"}
    assert versions(dev).items() <= versions(pins).items()
    assert serve.items() <= dev.items()
    for hashes in (hashes for _, hashes in dev.values()):
        assert hashes == sorted(set(hashes))
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in hashes)
        assert hashes
    assert not any("://" in path.read_text() for path in (lock.CONSTRAINTS, lock.DEV, lock.SERVE))


def test_the_locks_have_what_the_package_asks_for(lock):
    """A dependency that is added or moved needs `python tools/lock.py`."""
    about, lab = (tomllib.loads((ROOT / place / "pyproject.toml").read_text()) for place in (".", "lab"))
    extras = about["project"]["optional-dependencies"]
    of = {"outword": extras, "outword-lab": lab["project"]["optional-dependencies"]}
    core = [*about["project"]["dependencies"], *about["build-system"]["requires"]]

    def asked(names):
        for requirement in map(Requirement, names):
            if requirement.name in of:
                yield from asked(one for extra in requirement.extras for one in of[requirement.name][extra])
            elif requirement.marker is None or requirement.marker.evaluate(PYTHON):
                yield requirement

    for path, names in (
        (lock.CONSTRAINTS, [*core, *extras["dev"], *extras["bench"]]),
        (lock.SERVE, [*core[:-1], *extras["serve"]]),
    ):
        found = versions(lock.locked(path))
        for requirement in asked(names):
            assert found[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_hashes_are_those_of_every_file_of_the_version(lock, monkeypatch):
    files = ["a_b-1.0-py3-none-any.whl", "a_b-1.0.tar.gz", "a_b-1.0.1.tar.gz", "A.B-1.0-cp311-cp311-win32.whl", "a.exe"]
    links = [f'<a href="../{name}#sha256={i:064x}" data-x="&gt;=3">{name}</a>' for i, name in enumerate(files)]
    asked = []
    monkeypatch.setattr(
        "urllib.request.urlopen",
        lambda request, timeout: (asked.append(request.full_url), io.BytesIO("<br/>".join(links).encode()))[1],
    )
    assert lock.file_hashes("https://index.example/simple", ("a-b", "1.0")) == [f"{i:064x}" for i in (0, 1, 3)]
    assert asked == ["https://index.example/simple/a-b/"]
    with pytest.raises(SystemExit, match=r"has no file of a-b 2\.0"):
        lock.file_hashes("https://index.example/simple", ("a-b", "2.0"))


def test_a_lock_is_read_as_it_was_written(lock, tmp_path):
    (tmp_path / "lock").write_text(lock.lock("# Two files.", {"one": "1.0", "two": "2"}, {"one": ["ab"], "two": []}))
    assert lock.locked(tmp_path / "lock") == {"one": ("1.0", ["ab"]), "two": ("2", [])}


def test_the_bill_has_every_locked_package(lock, sbom):
    bill = sbom.bill_of_materials()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert bill["metadata"]["component"]["name"] == "outword"
    packages = {one["name"]: one for one in bill["components"] if one["type"] == "library"}
    pins, dev, serve = (lock.locked(path) for path in (lock.CONSTRAINTS, lock.DEV, lock.SERVE))
    assert {name: one["version"] for name, one in packages.items()} == versions(pins)
    for name, one in packages.items():
        assert one["purl"] == f"pkg:pypi/{name}@{one['version']}"
        assert [found["content"] for found in one.get("hashes", [])] == dev.get(name, ("", []))[1]
        assert one["scope"] == ("required" if name in serve else "optional")
    refs = re.findall('"bom-ref": "([^"]+)"', json.dumps(bill))
    assert len(refs) == len(set(refs))


def test_licences_are_what_packages_say(sbom, monkeypatch):
    said = {"Version": "1.0+cpu", "License-Expression": None, "License": "MIT\nand a long text"}

    class Said(dict):
        def get_all(self, name, otherwise):
            return self.get(name, otherwise)

    monkeypatch.setattr(sbom, "metadata", lambda name: Said(said))
    assert sbom.licences("a", "1.0") == [{"license": {"id": "MIT"}}]
    assert sbom.licences("a", "1.1") == []
    said["Classifier"] = ["Topic :: X", "License :: OSI Approved :: BSD License"]
    assert sbom.licences("a", "1.0") == [{"license": {"name": "BSD License"}}]
    said["License-Expression"] = "MIT OR Apache-2.0"
    assert sbom.licences("a", "1.0") == [{"expression": "MIT OR Apache-2.0"}]


def test_the_bill_has_what_lies_in_the_package_and_notice_tells_of_it(sbom):
    bill, notice = sbom.bill_of_materials(), (ROOT / "NOTICE").read_text()
    works = [one for one in bill["components"] if one["type"] != "library"]
    files = {file["name"] for one in works for file in one["components"]}
    kinds = {".onnx", ".safetensors", ".gz", ".tsv", ".jpg"}
    every = [path for package in PACKAGES for path in package.rglob("*")]
    there = {path.relative_to(ROOT).as_posix() for path in every if path.suffix in kinds}
    world = "lab/src/outword_lab/encoders/data/world/"  # trained from nothing of anyone's
    own = {path for path in there if path.startswith(world)}
    own |= {"src/outword/encoders/data/mini/matmul.onnx"}  # 148 bytes: a product that this project wrote
    assert files == (there - own) | {"src/outword/encoders/data/mini/vocab.txt"}
    for one in works:
        assert one["licenses"]
        assert one["name"].lower() in notice.lower()
        for ancestor in one.get("pedigree", {}).get("ancestors", []):
            assert re.search(rf"{ancestor['name']}(, version)? {re.escape(ancestor['version'])}", notice), ancestor


def test_the_bill_is_the_same_twice_and_has_a_time_only_where_one_is_given(sbom, monkeypatch, capsys):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    sbom.main()
    first = capsys.readouterr().out
    sbom.main()
    assert capsys.readouterr().out == first
    assert "timestamp" not in first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert sbom.bill_of_materials()["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"
