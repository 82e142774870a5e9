"""tools/counts.py: what it counts of a tree made up here, and what the house promises of itself."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import counts  # noqa: E402

JUDGE = '''"""A module."""

Said = tuple


class Verdict:
    """A type."""

    verdict: str = ""

    def side(self, score, cut):
        """In or out."""
        if score is None or cut is None:
            return "uncalibrated"
        return "in" if score >= cut else "out"


class Explanation(Verdict):
    """It has the verdict of the other one."""


def plain(score):
    return score
'''


def made_up(root, judge=JUDGE):
    """A tree with one module that tells something of photos."""
    package = root / "src" / "outword"
    (package / "detector").mkdir(parents=True)
    (package / "__init__.py").write_text('__all__ = ["fit", "load"]\n')
    (package / "mining.py").write_text('__all__ = ["MINERS", "Density", "Miner", "Random"]\n')
    (package / "detector" / "judge.py").write_text(judge)
    (package / "page.html").write_text("{{ row.looks_like }}")
    (root / "tools").mkdir()
    (root / "tools" / "build_api.py").write_text('MODULES = ("", "mining")\n')
    return root


def test_what_is_counted_of_a_small_tree(tmp_path):
    root = made_up(tmp_path)
    package = root / "src" / "outword"
    figures = counts.count_package(package)
    assert figures["rooms"] == {"detector": (1, 10), "outword": (2, 2)}
    assert (figures["modules"], figures["code lines"], figures["functions"]) == (3, 12, 2)
    assert figures["complexity, most"] == 4  # one, an if, an or, and a conditional expression
    assert counts.photo_forms(package) == [f"detector/judge.py: {name}" for name in ("Explanation", "Said", "Verdict")]
    assert counts.verdict_types(package) == ["detector/judge.py: Verdict"]
    assert counts.files_with(package, "looks_like") == [package / "page.html"]
    assert counts.public_names(root) == {"fit", "load", "mining", "MINERS", "Miner"}


def test_two_trees_stand_side_by_side(tmp_path):
    before = made_up(tmp_path / "before", f"{JUDGE}\n\nclass Scored:\n    verdict: str\n")
    table = counts.compare_trees(before, made_up(tmp_path / "after"))
    assert "| types with a verdict of their own | 2 | 1 |" in table
    assert "| detector | 12 | 10 |" in table
    assert "| public names | 5 | 5 |" in table


def test_one_type_has_the_verdict_and_the_page_of_names_counts_alike():
    assert counts.verdict_types(ROOT / "src" / "outword") == ["base/prediction.py: Prediction"]
    (told,) = re.findall(r"may import: (\d+) names", (ROOT / "docs" / "api.md").read_text())
    assert len(counts.public_names(ROOT)) == int(told)
