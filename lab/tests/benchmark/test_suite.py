"""Suites: those that come along can be read and name what exists; a slip in a TOML file is an error that says where."""

from dataclasses import fields
from pathlib import Path

import pytest

from conftest import call
from outword.detector.recipe import make_detector, make_miner
from outword.encoders.names import KNOWN
from outword.errors import InputError, ParameterError
from outword.words.corpora import get_corpus
from outword.words.prompts import get_prompts
from outword_lab.benchmark.run.catalogue import catalogue, world_catalogue
from outword_lab.benchmark.run.suite import (
    FOLDER,
    SUITES,
    SWEPT,
    Entry,
    Suite,
    Sweep,
    read_parts,
    read_suite,
    suite_names,
)
from outword_lab.benchmark.show.published import published
from outword_lab.encoders import WORLD

WANTED = {
    "table1-imagenet1k",
    "table2-backbones",
    "table3-resolution",
    "table4-corpora",
    "table5-domain-shift",
    "fig1-alpha-tau-sigma",
    "fig2-kappa-L",
    "theorem2",
    "near-far",
    "small-k",
    "folder",
    "world",
    *(f"world-{part}" for part in ("table1", "table2", "table3", "table4", "table5", "fig1", "fig2", "mining")),
    "world-few-shot",
    "vectors",
}
GOOD = """
title = "T"
id = ["folder"]
ood = ["folder"]
[[methods]]
method = "mcm"
"""


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "own.toml"
        path.write_text(text)
        return path

    return written


def test_the_promised_suites_are_there():
    assert set(suite_names()) >= WANTED
    assert suite_names() == sorted(path.stem for path in SUITES.iterdir())


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_names_what_exists(name):
    suite = read_suite(name)
    assert suite.name == name
    assert set(suite.encoders) <= {"mini", *KNOWN, *WORLD}
    sets = {*suite.id, *suite.ood, *([suite.train] if suite.train else [])}
    assert sets <= {FOLDER, *catalogue(), *world_catalogue()}
    for corpus in suite.corpora:
        get_corpus(corpus)
    printed = published(suite.published) if suite.published else []
    rows = {row.method for row in printed} | {f"{row.method} ({row.section})" for row in printed}
    for entry in suite.methods:
        make_detector(entry.method, 0.01, entry.params)
        make_miner(entry.miner or "density", entry.miner_params)
        if entry.corpus:
            get_corpus(entry.corpus)
        if entry.prompts:
            get_prompts(entry.prompts)
        assert not entry.published or entry.published in rows
        assert set(entry.encoders) <= set(suite.encoders)


def test_the_papers_values_stand_in_table_1():
    (ours,) = [entry for entry in read_suite("table1-imagenet1k").methods if entry.published == "Ours"]
    assert ours.params == {"tau": 0.5, "sigma": 0.001, "n_groups": 100, "policy": "paper"}
    assert ours.miner_params == {"alpha": 100, "size": 12000}
    assert get_prompts(read_suite("table1-imagenet1k").prompts).label == ("The nice {}.",)


def test_every_learned_row_of_table_1_is_there():
    learned = {"LSN", "LoCoOp", "LAPT", "NegPrompt", "ZOC", "CLIPN"}
    found = {entry.published: entry for entry in read_suite("table1-imagenet1k").methods if entry.published in learned}
    assert set(found) == learned
    assert {name: entry.shots for name, entry in found.items()} == {
        **{"LSN": (64,), "LoCoOp": (16,), "LAPT": (16,), "NegPrompt": (16,), "ZOC": (), "CLIPN": ()},
    }
    assert make_detector("locoop", 0.01, found["LoCoOp"].params).weight == 1  # the published row is GL-MCM's score


def test_a_method_takes_part_once_for_each_number_of_shots(write):
    more = '[[methods]]\nmethod = "coop"\nshots = [1, 4]\nparams = { context = 4 }\n'
    first, one, four = read_suite(write(GOOD + more)).methods
    assert (first.base, first.shown, first.shots) == ("mcm", "mcm", ())
    assert (one.shown, four.shown) == ("coop, 1 shot", "coop, 4 shots")
    assert one.base == four.base == "coop"
    assert four.params == {"context": 4, "shots": 4}


def test_a_file_of_ones_own(write):
    suite = read_suite(write(GOOD + '[[sweep]]\nparameter = "tau"\nvalues = [0, 0.5]\n'))
    assert suite.name == "own"
    assert suite.seeds == 5
    assert suite.methods == (Entry("mcm"),)
    assert suite.sweep == (Sweep("tau", (0, 0.5)),)


def test_every_method(write):
    from outword.detectors import DETECTORS

    text = 'title = "T"\nid = ["folder"]\nood = ["folder"]\nmethods = "all"\n'
    assert [entry.shown for entry in read_suite(write(text)).methods] == list(DETECTORS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sedes = 3\n" + GOOD, 'unknown key in .*"sedes".*did you mean "seeds"'),
        (GOOD + "parms = { tau = 0.5 }\n", 'unknown key in methods in .*"parms".*did you mean "params"'),
        (GOOD.replace("mcm", "mmc"), 'unknown method in .*"mmc"'),
        (GOOD + 'miner = "dense"\n', 'unknown miner in .*"dense"'),
        (GOOD.replace('title = "T"', ""), "must have the key title"),
        (GOOD.replace('ood = ["folder"]', ""), "must have the key ood"),
        (GOOD.replace('["folder"]', '"folder"'), "must be a list, got \"?'folder'"),
        ("seeds = true\n" + GOOD, "seeds in .* must be of type int, got True"),
        ('seeds = "5"\n' + GOOD, "seeds in .* must be of type int, got '5'"),
        ("seeds = 0\n" + GOOD, "seeds in .* must be"),
        ('kind = "table"\n' + GOOD, 'unknown kind in .*"table"'),
        ('kind = "sweep"\n' + GOOD, "must have the key sweep"),
        (GOOD + '[[sweep]]\nparameter = "rho"\nvalues = [1]\n', 'unknown parameter in .*"rho"'),
        (GOOD + "shots = 4\n", "shots in methods in .* must be a list, got 4"),
        (GOOD + 'shots = ["4"]\n', "shots in methods in .* must be of type int"),
        (GOOD + "shots = [4, 4]\n", "must have different names, got mcm, 4 shots, mcm, 4 shots"),
        (GOOD + '[[methods]]\nmethod = "mcm"\n', "methods in .* must have different names, got mcm, mcm"),
        (GOOD + '[groups]\nnear = ["sun"]\n', "near in .* must name OOD sets of the suite, got sun"),
        ('name = ""\n' + GOOD, "name in .* must not be empty"),
        (GOOD.replace('ood = ["folder"]', 'ood = ["sun", "sun"]'), "ood in .* must name nothing twice"),
        (GOOD + '[[sweep]]\nparameter = "tau"\nvalues = [0.5, 0.50]\n', "tau in .* must have no value twice"),
        (GOOD + '[[sweep]]\nparameter = "K"\nvalues = [2.5]\n', "K in .* must be"),
        (GOOD + "params = 3\n", "params in methods in .* must be of type table, got 3"),
        ("title = ", "cannot be read as TOML"),
        ("\x00", "cannot be read as TOML"),
    ],
)
def test_a_slip_is_told(write, text, told):
    with pytest.raises((InputError, ParameterError), match=told):
        read_suite(write(text))


def test_parts(write, tmp_path):
    assert [part.name for part in read_parts("world")] == list(read_suite("world").parts)
    assert read_parts("folder") == [read_suite("folder")]
    (tmp_path / "one.toml").write_text(GOOD)
    whole = write('title = "T"\nparts = ["one.toml", "small-k"]\n')
    assert [part.name for part in read_parts(whole)] == ["one", "small-k"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("parts = []", "parts in .* must name a suite, got none"),
        ('parts = ["folder"]\nseeds = 3', "must have no key seeds beside parts.*write it into the suite of a part"),
        ('parts = ["foldr"]', 'unknown suite "foldr"'),
        ('parts = ["none.toml"]', "there is no suite .*none.toml"),
        ('parts = ["world"]', "a part of own must have no parts, got world"),
        ('parts = ["folder", "folder"]', "parts of own must have different names, got two folder"),
        ('parts = ["up.toml"]', "'../x' must be fit for a folder"),
    ],
)
def test_a_slip_in_parts_is_told(write, tmp_path, text, told):
    (tmp_path / "up.toml").write_text('name = "../x"\n' + GOOD)
    with pytest.raises((InputError, ParameterError), match=told):
        read_parts(write(f'title = "T"\n{text}\n'))


def test_an_unknown_suite_and_a_missing_file(tmp_path):
    with pytest.raises(ParameterError, match='did you mean "table1-imagenet1k"'):
        read_suite("table1-imagenet")
    with pytest.raises(InputError, match="there is no suite"):
        read_suite(tmp_path / "none.toml")


def test_names_may_be_the_same_for_different_encoders(write):
    both = '[[methods]]\nmethod = "mcm"\nencoders = ["{}"]\n'
    head = 'title = "T"\nid = ["folder"]\nood = ["folder"]\nencoders = ["mini", "clip-rn50"]\n'
    assert len(read_suite(write(head + both.format("mini") + both.format("clip-rn50"))).methods) == 2
    with pytest.raises(ParameterError, match="different names"):
        read_suite(write(head + both.format("mini") + both.format("mini")))
    with pytest.raises(InputError, match="must name encoders of the suite, got clip-vit-l-14"):
        read_suite(write(head + both.format("clip-vit-l-14")))


def test_the_page_names_every_suite_and_key():
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    for name in suite_names():
        assert f"`{name}`" in page
    for field in [*fields(Suite), *fields(Entry), *fields(Sweep)]:
        assert field.name == "name" or f"`{field.name}`" in page
    for parameter in SWEPT:
        assert f"`{parameter}`" in page


def test_list_suites():
    assert "table5-domain-shift" in call("list", "suites").stdout
    assert "sweep: alpha=[10, " in call("list", "suites", "--long").stdout
