"""Run the notebooks of docs/notebooks, without Jupyter, and keep what their cells print.

python tools/run_notebooks.py            (seconds; run it after a change of a notebook)
python tools/run_notebooks.py --check    exits 1 when a cell prints something else than the notebook shows
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

from generated import keep

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def main() -> int:
    """Run them all, each in a folder of its own; gives the exit code."""
    return max(keep(path, ran(path), Path(__file__).name) for path in sorted(NOTEBOOKS.glob("*.ipynb")))


def ran(path: Path) -> str:
    """A notebook with the outputs that its code prints now; what a cell shows without printing it is left out."""
    notebook, names = json.loads(path.read_text(encoding="utf-8")), {"__name__": "__main__"}
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    code = compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec")
                    cell |= {"execution_count": None, "metadata": {}, "outputs": _outputs(code, names)}
        finally:
            os.chdir(before)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(code: CodeType, names: dict[str, Any]) -> list[dict[str, Any]]:
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    lines = printed.getvalue().splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


if __name__ == "__main__":
    sys.exit(main())
