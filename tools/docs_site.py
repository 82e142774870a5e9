"""What mkdocs.yml needs beside the pages of docs/: hooks of MkDocs, called while `make docs` builds the site.

* README.md is the home page. A file of the repository that a page links to (`../CONTRIBUTING.md`) becomes a page or a
  file of the site, and the link leads there, so that links work on the site and where the repository is browsed.
* A notebook of docs/notebooks becomes a page, and stays there to be downloaded.
* Each module of docs/api.md gets a page with the docstrings of its names, read by mkdocstrings without an import.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
API = "api.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")  # the target of a relative link, without its anchor
MODULE = re.compile(r"^## `([\w.]+)`\n\n(.*?)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\| (`(\w+)[^`]*`)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from something else, and the files that pages link to."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = f"{notebook.src_uri.removesuffix('.ipynb')}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook.src_uri, notebook.content_string)))
    pages = api_pages(files.get_file_from_path(API).content_string)
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    in_nav(config.nav, API).extend(pages)
    _bring(["README.md", "CHANGELOG.md"], files, config)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where things are on the site, and the names of the API to their docstrings."""
    if page.file.src_uri == API:
        markdown = MODULE.sub(lambda found: NAME.sub(rf"| [\1][{found[1]}.\2]", found[0]), markdown)
    here = _place(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
        return posixpath.relpath(_uri(there), posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(moved, markdown)


def _bring(paths: list[str], files: Files, config: MkDocsConfig) -> None:
    """Add files of the repository, and all that they and the pages of docs/ link to outside of docs/."""
    wanted = paths + [path for file in files.documentation_pages() for path in _outside(_place(file.src_uri), file.content_string)]
    while wanted:
        path = wanted.pop()
        if not files.get_file_from_path(_uri(path)) and (ROOT / path).is_file():
            files.append(File.generated(config, _uri(path), abs_src_path=str(ROOT / path)))
            if path.endswith(".md"):
                wanted += _outside(path, (ROOT / path).read_text(encoding="utf-8"))


def _outside(here: str, markdown: str) -> Iterator[str]:
    """The paths outside of docs/ that a page at `here` links to."""
    for target in LINK.findall(markdown):
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if not there.startswith(DOCS):
            yield there


def _uri(path: str) -> str:
    """Where a path of the repository is on the site."""
    if path == "README.md":
        return "index.md"
    named = path.removeprefix(DOCS)
    return named if Path(named).suffix else f"{named}.txt"  # NOTICE: browsers show it as text


def _place(uri: str) -> str:
    """The path in the repository of what is `uri` on the site; of a page that was made, one beside its source."""
    if uri == "index.md":
        return "README.md"
    return uri if not (ROOT / DOCS / uri).exists() and (ROOT / uri).exists() else DOCS + uri


def notebook_page(uri: str, text: str) -> str:
    """A notebook as Markdown: its texts, its code and what the code printed."""
    parts = [f"[This notebook as a file]({posixpath.basename(uri)})"]
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [f"```text\n{''.join(output['text']).rstrip()}\n```" for output in cell.get("outputs", [])]
    title = parts.pop(1)  # a notebook begins with its heading
    return "\n\n".join([title, *parts])


def api_pages(markdown: str) -> dict[str, str]:
    """A page for each module of the list of public names, by its place."""
    return {
        f"api/{module}.md": "\n\n".join([f"# {module}", about, *(f"::: {module}.{name}" for _, name in NAME.findall(table))])
        for module, about, table in MODULE.findall(markdown)
    }


def in_nav(nav: Any, uri: str) -> list[Any]:
    """The section of the nav that begins with a page."""
    for entry in nav:
        section = next(iter(entry.values())) if isinstance(entry, dict) else None
        if isinstance(section, list):
            if uri in section:
                return section
    raise LookupError(f"no section of the nav has {uri}")
