"""Commands and Python snippets of the docs are run, and their printed output compared (`...` stands for anything)."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PHOTOS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
OURS = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("lab/docs/*.md"))]
TRIED = [README, *(page for page in OURS if page.name != "serving.md")]  # tests/serve tries that
CHECK = doctest.OutputChecker()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def playgrounds(tmp_path_factory):
    """By page, a folder with the photos that the pages speak of."""
    photos = shutil.copytree(PHOTOS, tmp_path_factory.mktemp("docs") / "photos")
    folders = {page: tmp_path_factory.mktemp(page.stem) for page in TRIED}
    for folder in folders.values():
        (folder / "photos").symlink_to(photos)
    return folders


def commands():
    for page in TRIED:
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if not command.startswith(("make ", "source ")):  # run by hand and by CI itself
                    yield pytest.param(page, command, output, id=f"{page.stem}: {command[:40]}")


@pytest.mark.parametrize(("page", "command", "output"), list(commands()))
def test_commands(page, command, output, playgrounds):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "150", "NO_COLOR": "1"}
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=playgrounds[page],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    got = "\n".join(line.rstrip() for line in run.stdout.splitlines()) + "\n"
    wanted = "\n".join(line.rstrip() for line in output.strip("\n").splitlines()) + "\n"
    assert CHECK.check_output(wanted, got, doctest.ELLIPSIS), f"wanted:\n{wanted}\ngot:\n{got}"


@pytest.mark.parametrize("page", [page for page in TRIED if blocks(page, "pycon")], ids=lambda page: page.stem)
def test_python(page, playgrounds, monkeypatch):
    monkeypatch.chdir(playgrounds[page])
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(parser.get_doctest("\n".join(blocks(page, "pycon")), {}, page.stem, page.name, 0))
    assert runner.summarize(verbose=False).failed == 0


def test_the_first_thirty_lines_give_a_result():
    top = "\n".join(README.read_text().splitlines()[:30])
    assert "make demo" in top
    assert '$ outword score --labels "cat, dog' in top
    assert re.search(r"^photos/cat.jpg +in +cat", top, flags=re.MULTILINE) and "images: 4 in" in top
    assert re.search(r"!\[.+\]\(docs/images/page.png\)", top)


def test_every_photo_has_its_licence():
    licences = (PHOTOS / "LICENSES.md").read_text()
    for photo in PHOTOS.glob("*.jpg"):
        assert f"| {photo.name} |" in licences
    assert len(list(PHOTOS.glob("*.jpg"))) >= 12


def test_links_in_the_docs_lead_somewhere():
    for page in [README, ROOT / "CONTRIBUTING.md", ROOT / "lab/README.md", *OURS, *DOCS.rglob("*.ipynb")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_of_methods_is_what_the_code_says():
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "build_methods.py", "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_a_stale_page_of_methods_is_noticed(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import build_methods

    monkeypatch.setattr(build_methods, "PAGE", tmp_path / "methods.md")
    for arguments, code in ([["--check"], 1], [[], 0], [["--check"], 0]):
        monkeypatch.setattr(sys, "argv", ["build_methods.py", *arguments])
        assert build_methods.main() == code
    page = (tmp_path / "methods.md").read_text()
    assert "| [knn](#knn) | distance to the k-th nearest ID image |  |  | ✓ |" in page
    assert "* `k` (`50`, `1` in `outword fit`): which neighbour" in page
    (tmp_path / "methods.md").write_text(page.replace("✓", "x"))
    monkeypatch.setattr(sys, "argv", ["build_methods.py", "--check"])
    assert build_methods.main() == 1
    assert "methods.md is stale" in capsys.readouterr().err


def test_notebooks_print_what_they_show():
    run = [sys.executable, "-W", "error", ROOT / "tools" / "run_notebooks.py", "--check"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
