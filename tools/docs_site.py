"""What mkdocs.yml needs beside the pages of docs/: hooks of MkDocs, called while `make docs` builds the site.

* README.md is the home page. A file of the repository that a page links to (`../CONTRIBUTING.md`) becomes a page or a
  file of the site, and the link leads there: links work on the site, and where the repository is browsed.
* A notebook of docs/notebooks becomes a page, and stays there to be downloaded.
* Each module of docs/api.md gets a page with the docstrings of its names, read by mkdocstrings without an import.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS, LAB_DOCS = "docs/", "lab/docs/"
API = "api.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")  # the target of a relative link, without its anchor
MODULE = re.compile(r"^## `([\w.]+)`\n\n(.*?)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\| (`(\w+)[^`]*`)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from something else, and the files that pages link to."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = f"{notebook.src_uri.removesuffix('.ipynb')}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    _bring([DOCS + file.src_uri for file in files.documentation_pages()], files, config)
    pages = api_pages(files.src_uris[API].content_string)
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    _section(config.nav, API).extend(pages)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where things are on the site, and the names of the API to their docstrings."""
    uri = page.file.src_uri
    if uri == API:
        markdown = MODULE.sub(lambda found: NAME.sub(rf"| [\1][{found[1]}.\2]", found[0]), markdown)
    places = (DOCS + uri, uri, LAB_DOCS + uri.removeprefix("lab/"))
    here = next((path for path in places if (ROOT / path).exists()), DOCS + uri)
    here = "README.md" if uri == "index.md" else here

    def moved(link: re.Match[str]) -> str:
        path = _target(here, link[1])
        return posixpath.relpath(_uri(path), posixpath.dirname(uri) or ".") if (ROOT / path).is_file() else link[1]

    return LINK.sub(moved, markdown)


def _bring(pages: Iterable[str], files: Files, config: MkDocsConfig) -> None:
    """Add README.md, CHANGELOG.md, the lab's pages, and files outside of docs/ that are linked to, by their paths."""
    of_lab = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / LAB_DOCS).glob("*.md"))]
    wanted, seen = [*pages, *of_lab, "README.md", "CHANGELOG.md"], set[str]()
    while wanted:
        path = wanted.pop()
        if path in seen or not (ROOT / path).is_file():
            continue
        seen.add(path)
        if not path.startswith(DOCS):
            files.append(File.generated(config, _uri(path), abs_src_path=str(ROOT / path)))
        if path.endswith(".md"):
            wanted += [_target(path, link) for link in LINK.findall((ROOT / path).read_text(encoding="utf-8"))]


def _target(here: str, link: str) -> str:
    """Where a link of the page at `here` leads, as a path in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def _uri(path: str) -> str:
    """What a file of the repository is on the site."""
    if path == "README.md":
        return "index.md"
    if path.startswith(LAB_DOCS):
        return f"lab/{path.removeprefix(LAB_DOCS)}"
    return path.removeprefix(DOCS) if Path(path).suffix else f"{path}.txt"  # NOTICE: browsers show it as text


def notebook_page(notebook: File) -> str:
    """A notebook as Markdown: its texts, its code and what the code printed."""
    parts = []
    for cell in json.loads(notebook.content_string)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [f"```text\n{''.join(output['text']).rstrip()}\n```" for output in cell.get("outputs", [])]
    title, *rest = parts
    return "\n\n".join([title, f"[This notebook as a file]({notebook.name}.ipynb)", *rest])


def api_pages(markdown: str) -> dict[str, str]:
    """A page for each module of the list of public names, by its place."""
    pages = {}
    for module, about, table in MODULE.findall(markdown):
        names = [f"::: {module}.{name}" for _, name in NAME.findall(table)]
        pages[f"api/{module}.md"] = "\n\n".join([f"# {module}", about, *names])
    return pages


def _section(nav: list[Any], uri: str) -> list[Any]:
    """The section of the nav that has a page."""
    sections = [section for entry in nav if isinstance(entry, dict) for section in entry.values()]
    return next(section for section in sections if isinstance(section, list) and uri in section)
