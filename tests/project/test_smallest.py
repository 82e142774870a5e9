"""The smallest case of each benchmark runs on the CPU: it calls nothing that the package no longer has.

What makes it small stands in benchmarks/figures.toml: arguments, and other values of constants.
"""

import re
import shlex
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from outword.encoders import get_encoder
from outword.maths.numerics import unit_rows
from outword.vectors.shards import Shard
from outword.vectors.store import make_store
from outword.words.corpora import get_corpus
from outword_lab.benchmark.run.imagenet import classes

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import figure_tables as tables  # noqa: E402
from figures import read_figures  # noqa: E402

SMALL = [figure for figure in read_figures() if figure.smallest]
KIND = "safetensors"
FEW = {"textures": 20, "scenes": 60, "flowers": 20}


@pytest.fixture(scope="module")
def bench_mini(tmp_path_factory):
    """A store in place of bench-mini's photos: 600 names of ImageNet and some noise, beside vectors at random."""
    encoder, rng = get_encoder("mini"), np.random.default_rng(0)
    store, folder = make_store(tmp_path_factory.mktemp("bench") / "store", encoder), Path("/bench-mini")
    named = classes()[:600]
    photos = [folder / "imagenet" / f"{wnid}_{name.replace(' ', '_')}.jpg" for wnid, name in named]
    vectors = encoder.encode_texts([f"a photo of a {name}" for _, name in named])
    photos += [folder / kind / f"thing_{number}.jpg" for kind, count in FEW.items() for number in range(count)]
    vectors = np.concatenate([vectors, rng.normal(size=(sum(FEW.values()), encoder.dim)) / 20])
    rows = unit_rows(vectors + rng.normal(size=vectors.shape) / 20).astype(np.float32)
    paths = [str(photo).encode() for photo in photos]
    store.append(
        Shard(paths, [f"{number:032}".encode() for number in range(len(paths))], [""] * len(paths), rows), KIND
    )
    return store.folder.parent


def numbered(value):
    """A value of TOML; keys that are numbers are so."""
    if not isinstance(value, dict):
        return value
    return {int(key) if key.isdigit() else key: numbered(one) for key, one in value.items()}


@pytest.mark.parametrize("figure", SMALL, ids=lambda figure: figure.name)
def test_the_smallest_case(figure, bench_mini, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    script = ROOT / re.search(r"(?:benchmarks|tools)/[\w/]+\.py", figure.command)[0]
    spec = spec_from_file_location(f"smallest_{script.stem}", script)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    for name, value in figure.smallest.get("constants", {}).items():
        home, _, constant = name.rpartition(".")
        monkeypatch.setattr(import_module(home) if home else module, constant, numbered(value))
    (tmp_path / "words").write_text("\n".join(get_corpus("wordnet").words[::20]), encoding="utf-8")
    paths = {"data": bench_mini, "out": tmp_path / "out", "words": tmp_path / "words"}
    places = {name: shlex.quote(str(path)) for name, path in paths.items()}
    monkeypatch.setattr(sys, "argv", [str(script), *shlex.split(figure.smallest["arguments"].format(**places))])
    module.main()
    assert tables.tables(capsys.readouterr().out)
