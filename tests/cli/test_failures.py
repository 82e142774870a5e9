"""What goes wrong on the command line: one style, suggestions, exit codes for scripts; and help that is whole."""

import re
import shutil

import click
import pytest

from conftest import PHOTOS, call, rows_of
from outword.cli import VERBS, main


def commands(command=main, path=()):
    """All commands, with the words that call each."""
    yield path, command
    with click.Context(command, info_name="outword") as context:
        for name in command.list_commands(context) if isinstance(command, click.Group) else ():
            yield from commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("width", [80, 60])
def test_help_is_never_cut(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    for path, command in commands():
        text = call(*path, "--help").stdout
        if isinstance(command, click.Group):
            listed = " ".join(text.partition("Commands:")[2].split())
            for name, found in commands(command, path):
                first = re.split(r"\.(?:\s|$)", " ".join(found.help.split()), maxsplit=1)[0]
                assert len(name) != len(path) + 1 or first in listed, name


@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["scroe"], 'unknown verb "scroe"', 'did you mean "score"? see "main --help"'),
        (["xyzzy"], 'unknown verb "xyzzy"', 'see "main --help"'),
        (["data", "chek"], 'unknown verb "chek"', 'did you mean "check"? see "main data --help"'),
        (
            ["score", "--lables", "cat", "x"],
            'unknown option "--lables"',
            'did you mean "--labels"? see "main score --help"',
        ),
        (["--versoin"], 'unknown option "--versoin"', 'did you mean "--version"? see "main --help"'),
        (["fit"], "missing argument 'LABELS'", 'see "main fit --help"'),
        (["score", "a", "b", "--format", "cvs"], "invalid value for '--format': 'cvs' is not one of", "see "),
        (["score", "a", "b", "-o"], "option '-o' requires an argument", 'see "main score --help"'),
        (
            ["tune", "cat", "--id", "a.jpg", "b.jpg"],
            "got unexpected extra argument (b.jpg)",
            'an option is given once for each path: --id A --id B; see "main tune --help"',
        ),
        (
            ["fit", "cat", "dog"],
            "got unexpected extra argument (dog)",
            "commas separate class names: outword fit 'cat, dog'; see \"main fit --help\"",
        ),
        (["explain", "a", "b", "--top", "0"], "invalid value for '--top': 0 is not in the range 1<=x<=1000", "see "),
    ],
)
def test_errors_of_the_command_line_have_the_style_of_all_others(args, error, hint):
    told = call(*args, code=2)
    first, second = told.stderr.splitlines()
    assert first.startswith(f"error: {error}") and second.startswith(f"hint: {hint}") and not told.stdout


def test_the_first_help_fits_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, call("--help").stdout.splitlines())) <= 80


def test_nothing_at_all_is_answered_with_the_help():
    assert all(verb in call(code=2).output for verb in VERBS)


# Exit codes


def test_they_are_in_the_help():
    assert "Exit codes:" in call("--help").stdout
    for verb in ("score", "filter", "explain", "embed"):
        assert "Exits with" in call(verb, "--help").stdout


@pytest.mark.parametrize("verb", ["score", "explain", "embed", "filter"])
def test_what_could_not_be_read_at_all_is_1(verb, saved, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jpg").write_bytes(b"junk")
    (tmp_path / "bad" / "b.jpg").write_bytes(b"")
    before, after = {
        "score": ([saved], []),
        "explain": ([saved], []),
        "embed": ([], ["-o", tmp_path / "store"]),
        "filter": ([], ["--detector", saved, "-o", tmp_path / "kept"]),
    }[verb]
    assert "error: no images found\nhint: " in call(verb, *before, tmp_path / "empty", *after, code=1).stderr
    shutil.rmtree(tmp_path / "kept", ignore_errors=True)
    told = call(verb, *before, tmp_path / "bad", *after, code=1).stderr
    assert "error: none of 2 images could be judged\nhint: " in told
    shutil.copy(PHOTOS / "cat.jpg", tmp_path / "bad" / "c.jpg")
    shutil.rmtree(tmp_path / "kept", ignore_errors=True)
    call(verb, *before, tmp_path / "bad", *after)


@pytest.mark.parametrize("path", ["nope.jpg", "nope/", "none-*.jpg", "{0..3}.tar"])
def test_a_path_that_does_not_exist_is_1_and_its_row_is_written(saved, path):
    found = call("score", saved, PHOTOS / "cat.jpg", path, code=1)
    first, *others = rows_of(found.stdout)
    assert first["verdict"] == "in" and others and all("no such file" in row["error"] for row in others)
    assert f"error: there is nothing at {path}\nhint: check the path" in found.stderr
    alone = call("score", saved, path, code=1)
    assert rows_of(alone.stdout) == others
    assert f"there is nothing at {path}" in call("explain", saved, path, PHOTOS / "cat.jpg", code=1).stderr


def test_of_several_paths_with_nothing_the_first_is_named(saved, tmp_path):
    told = "there is nothing at nope.jpg, and at 1 more\nhint: check the path"
    assert told in call("score", saved, "nope.jpg", PHOTOS / "cat.jpg", "none.jpg", code=1).stderr
    assert told in call("score", saved, "nope.jpg", "none.jpg", "-o", f"{tmp_path}/rows/", code=2).stderr
    assert told in call("filter", "nope.jpg", "none.jpg", "--detector", saved, "-o", tmp_path / "x", code=2).stderr


def test_rows_with_errors_among_others_are_0(saved, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"junk")
    assert "2 images: 1 error, 1 in" in call("score", saved, PHOTOS / "cat.jpg", tmp_path / "bad.jpg").stderr


def test_strict_has_the_same_style(saved):
    told = call("score", saved, "nope.jpg", "--strict", code=1).stderr
    assert "error: 'nope.jpg': no such file (--strict)\nhint: without --strict" in told


# Files that are passed over


@pytest.mark.parametrize("output", [[], ["-o", "rows/"]])
def test_files_that_are_passed_over_are_counted(saved, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    names = ["a.MOV", "b.mov", "sub/c.mov", "notes.txt", "README", ".hidden.txt", "sub/.git/x.txt"]
    for name in names:
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).touch()
    shutil.copy(PHOTOS / "cat.jpg", tmp_path / "photos" / "cat.jpg")
    told = "3 .mov files, 1 .txt file, 1 file without a suffix are not read: see docs/scale.md\n"
    assert told in call("score", saved, "photos", *output).stderr
    if not output:
        assert told in call("explain", saved, "photos").stderr
        embedded = call("embed", "photos", "-o", "store").stderr
        assert told in embedded and "1 image: 1 encoded, 0 reused, 0 errors; the store has 1" in embedded
        assert "not read" not in call("score", saved, "photos/cat.jpg").stderr


def test_they_are_counted_where_nothing_else_is_found(saved, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.psd").touch()
    told = call("score", saved, tmp_path / "photos", code=1).stderr
    assert "1 .psd file is not read: see docs/scale.md\nerror: no images found" in told
