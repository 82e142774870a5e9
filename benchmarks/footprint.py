"""Size and start-up of a fresh core install: what a newcomer's machine pays.

python benchmarks/footprint.py            (a few minutes: it makes a new virtual environment)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PHOTO = ROOT / "src" / "outword" / "demo" / "photos" / "cat.jpg"


def main() -> None:
    """Install into a new environment and print size and times; each time is the best of three."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        python, command = home / "venv" / "bin" / "python", home / "venv" / "bin" / "outword"
        before = size(home / "venv")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, str(ROOT)], check=True)
        print(f"core install, without pip and .pyc files: {size(home / 'venv') - before:.0f} MB on disk")
        env = {"OUTWORD_CACHE": str(home / "cache"), "PATH": "/usr/bin:/bin"}
        for code, what in (("pass", "python alone"), ("import outword", "import outword")):
            print(f"{what}: {best([python, '-c', code], env):.2f} s")
        labels = home / "labels.txt"
        names = "import outword.words.corpora as c; print('\\n'.join(c.get_corpus('common').words[:8000:8]))"
        labels.write_text(
            subprocess.run([python, "-c", names], env=env, capture_output=True, text=True, check=True).stdout
        )
        count = len(labels.read_text().splitlines())
        print(f"outword fit, {count} labels: {best([command, 'fit', labels, '-o', home / 'd'], env):.1f} s")
        print(f"one photo to a verdict, cold process: {best([command, 'score', home / 'd', PHOTO], env):.2f} s")
        print(f"outword demo: {best([command, 'demo', '--html', home / 'demo.html'], env):.1f} s")


def size(folder: Path) -> float:
    """Megabytes of the files below a folder."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink()) / 1e6


def best(command: list[object], env: dict[str, str]) -> float:
    """The shortest of three runs, in seconds."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([str(c) for c in command], env=env, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
