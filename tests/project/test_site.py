"""The docs as a site: built strictly, without a network and without importing what it describes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = """
import socket, sys
from mkdocs.__main__ import cli

def refuse(*_):
    raise OSError("the build asks another host")

socket.socket.connect = socket.getaddrinfo = refuse
cli(["build", "--strict", "--site-dir", sys.argv[1]], standalone_mode=False)
assert not {"torch", "outword"} & sys.modules.keys(), "the build imports what it describes"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built."""
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run([sys.executable, "-c", BUILD, folder], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def text(site, page):
    return (site / page / "index.html").read_text()


def test_every_page_of_the_docs_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix("") / "index.html").exists(), page
    for page in (ROOT / "lab/docs").glob("*.md"):
        assert (site / "lab" / page.stem / "index.html").exists(), page


def test_nothing_comes_from_another_host(site):
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r"""(?:src|href)=["']?(?:\w+:)?//""", tag), f"{page}: {tag}"


def test_home_is_the_readme_and_links_out_of_docs_lead_to_pages(site):
    assert "given nothing but their names?" in text(site, "")
    assert 'href="../../CONTRIBUTING/#add-a-method-in-four-steps"' in text(site, "how-to/method")
    assert "Add a source" in text(site, "CONTRIBUTING")
    assert "Apache-2.0" in (site / "NOTICE.txt").read_text()
    assert "<h1" in text(site, "src/outword/demo/photos/LICENSES")


def test_docstrings_are_the_reference(site):
    fit = text(site, "api/outword")
    assert 'id="outword.fit"' in fit and "Make a detector from class names" in fit
    ash = text(site, "api/outword.detectors")
    assert "&gt;&gt;&gt; " in ash and "<blockquote>" not in ash  # examples are code
    assert "one_of" not in ash  # the rule of a parameter is no part of its default
    assert re.search(r'href="outword.detectors/#outword.detectors.ASH"><code>ASH</code>', text(site, "api"))


def test_notebooks_are_pages(site):
    for notebook in (ROOT / "docs/notebooks").glob("*.ipynb"):
        page = text(site, f"notebooks/{notebook.stem}")
        assert "<h1" in page and f'href="../{notebook.name}"' in page
        assert (site / "notebooks" / notebook.name).read_bytes() == notebook.read_bytes()
