"""Write docs/methods.md from the methods themselves: their needs, their docstrings, their defaults.

    python tools/build_methods.py            (seconds; run it after any change of a method's docstring)
    python tools/build_methods.py --check    exits 1 when the page is stale

Methods of other packages are left out.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from generated import keep
from outword.detectors import DETECTORS, Need, VectorDetector
from outword.maths.methods.needs import NEEDS

OURS = ("outword", "outword_lab")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
INTRO = """\
# Methods

Every method takes vectors and gives one number an image; higher means more in-distribution. Choose one with
`outword fit --method NAME`, set its parameters with `--set KEY=VALUE`, and give it what it needs:

```sh
outword fit labels.txt --method neglabel
outword fit labels.txt --method mahalanobis --id-images train/      # train/tabby_cat/1.jpg, ...; or a store
outword compare labels.txt --id pets/ --ood textures/ --id-images train/     # all that apply, on the same embeddings
```

Words come from the corpus, the miner and the prompts that a method was published with; `--corpus`, `--miner` and
`--prompts` change each of them alone. Add a method of your own: [CONTRIBUTING.md](../CONTRIBUTING.md).

**Calibrate on other photos than those that a method was fitted on.** It knows those: a threshold from them may accept
no other photo at all. A detector keeps hashes of what it was fitted on, of the files and of the vectors, 16 bytes a
photo (1.3 million: 21 MB), and `outword calibrate` and `Detector.calibrate` refuse a photo with one of them, under
whatever name, in a folder, a tar or a store. A detector that was saved before hashes were kept says that it cannot
tell; a photo that was resized or saved again is another one to it.

This page is written by `tools/build_methods.py` from the code.
"""


def main() -> int:
    """Write the page, or say whether it is stale."""
    return keep(PAGE, build(), "build_methods.py")


def build() -> str:
    """The page."""
    methods = {name: kind for name, kind in DETECTORS.items() if kind.__module__.split(".")[0] in OURS}
    needs = "\n".join(f"* **{need.value}**: {need.about}." for need in needs_of(methods))
    sections = [f"## {name}\n\n{_section(kind)}" for name, kind in methods.items()]
    return "\n".join([INTRO, "## What each needs\n", _table(methods), "", needs, "", "\n\n".join(sections), ""])


def _table(methods: dict[str, type[VectorDetector]]) -> str:
    needs = needs_of(methods)
    rows = [["method", "what it is", *(need.value for need in needs)], ["---", "---", *[":-:"] * len(needs)]]
    for name, kind in methods.items():
        ticks = ["✓" if need in kind.needs else "" for need in needs]
        rows.append([f"[{name}](#{name})", kind.summary.replace("|", "\\|"), *ticks])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def needs_of(methods: dict[str, type[VectorDetector]]) -> list[Need]:
    """Every need of some methods, those of the product first."""
    return [*dict.fromkeys([*NEEDS, *(need for kind in methods.values() for need in kind.needs)])]


def _section(kind: type[VectorDetector]) -> str:
    """The docstring as Markdown: formulas as code, parameters as a list with defaults, the example left away."""
    text = re.split(r"^>>> ", inspect.getdoc(kind) or "", maxsplit=1, flags=re.MULTILINE)[0]
    before, _, rest = text.partition("\nArgs:\n")
    arguments = re.match(r"(?:[ ].*\n|\n)*", rest + "\n").group(0)  # type: ignore[union-attr]
    parts = [
        _blocks(before),
        "\n".join(_parameters(kind, arguments)),
        _published(kind),
        _blocks(rest[len(arguments) :]),
    ]
    return "\n\n".join(part for part in parts if part)


def _blocks(text: str) -> str:
    """Paragraphs; those that are indented are formulas. A blank line between two formulas stays in the code."""
    blocks: list[str] = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if not block.startswith("    "):
            blocks.append(block)
        elif blocks and blocks[-1].endswith("```"):
            blocks[-1] = f"{blocks[-1][:-3]}\n{textwrap.dedent(block)}\n```"
        else:
            blocks.append(f"```text\n{textwrap.dedent(block)}\n```")
    return "\n\n".join(blocks).strip()


def _parameters(kind: type[VectorDetector], arguments: str) -> Iterator[str]:
    """A line for each parameter: its name, its default, and what the docstring says of it."""
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    for found in re.finditer(r"(\w+): (.*(?:\n {4,}.*)*)", textwrap.dedent(arguments)):
        name, about = found[1], re.sub(r"\s+", " ", found[2]).strip()
        default = f"`{defaults[name]}`"
        if name == "temperature" and not kind.own_temperature:
            default = "the encoder's"
        elif name in kind.in_pipeline:
            default += f", `{kind.in_pipeline[name]}` in `outword fit`"
        yield from textwrap.wrap(
            f"* `{name}` ({default}): {about}", 118, subsequent_indent="  ", break_on_hyphens=False
        )


def _published(kind: type[VectorDetector]) -> str:
    """The words that it is published with, where they are not the library's own choice."""
    found = {"miner": kind.miner if Need.WILD in kind.needs else None, "corpus": kind.corpus, "prompts": kind.prompts}
    told = [f"{what} `{name}`" for what, name in found.items() if name]
    told += ["a corpus of yours"] if kind.corpus == "" else []
    return f"Published with: {', '.join(told)}." if told else ""


if __name__ == "__main__":
    sys.exit(main())
