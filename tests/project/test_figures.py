"""`make figures`: every figure of the docs is registered, and tables are compared as they should be."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import figure_tables as tables  # noqa: E402
from common import Task  # noqa: E402
from figure_claims import CLAIM, numbered_tables, wrong_claims  # noqa: E402
from figures import CACHED_BY, NEEDS, Figure, Figures, read_figures, scripts, summary  # noqa: E402
from fpr95 import differences, nearest_recall_fpr  # noqa: E402
from outword.detectors import Debiased  # noqa: E402
from outword.metrics import fpr_at_tpr  # noqa: E402
from outword.testing import planted_world  # noqa: E402
from outword_lab.benchmark.toml import tomllib  # noqa: E402
from short_lists import printed  # noqa: E402

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/docs/*.md")]
}
FIGURES = read_figures()
OTHERS = tomllib.loads((ROOT / "benchmarks/figures.toml").read_text())["other"]
PAGE = """Words.

<!-- figure: made -->
### A heading

| K | AUROC | s |
|---|---:|---|
| 5 | 98.1 | 3 |
| 6 | 97.0 | 3 |

Told by hand.
<!-- /figure -->

| K | AUROC | s |
"""
OUTPUT = "### A heading\n\n| K | AUROC | s |\n| --- | --- | --- |\n| 5 | 98.1 | 4 |\n| 6 | 97.0 | 3 |\n"


# what the docs quote


def test_figures_and_markers_belong_together():
    quoted = {(page, block.name) for page, text in PAGES.items() for block in tables.blocks(text)}
    assert quoted == {(figure.page, figure.name) for figure in FIGURES}
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    for page, text in PAGES.items():
        assert text.count("<!-- figure:") == text.count("<!-- /figure -->") == len(tables.blocks(text)), page


def test_figures_are_complete():
    for figure in FIGURES:
        assert set(figure.needs) <= set(NEEDS), figure.name
        assert ("{data}" in figure.command) == ("photos" in figure.needs), figure.name
        for folder in ("vectors", "validation"):
            assert (f"{{{folder}}}" in figure.command) == (folder in figure.needs), figure.name
        assert scripts(figure.command), figure.name  # a script that is there
        assert all((ROOT / place).exists() for place in figure.pictures), figure.name


def test_no_table_of_numbers_is_left_out():
    """A table half of whose cells are numbers is a figure, or the registry says what it is."""
    known = {(other["page"], other["head"]) for other in OTHERS}
    found = set()
    for page, text in PAGES.items():
        for table in tables.tables(tables.BLOCK.sub("", text)):
            cells = [bool(re.match(r"\W*\d", cell)) for row in table[1:] for cell in row[1:]]
            if page != "docs/methods.md" and np.mean(cells) >= 0.5:
                found.add((page, " | ".join(table[0][:2])))
    assert found <= known
    assert all(any(head == " | ".join(t[0][:2]) for t in tables.tables(PAGES[page])) for page, head in known)


def test_no_benchmark_that_the_docs_name_is_left_out():
    ran = {path.relative_to(ROOT).as_posix() for figure in FIGURES for path in scripts(figure.command)}
    builders = (
        "build_api",
        "build_corpora",
        "build_everyday",
        "build_methods",
        "build_mini",
        "build_plots",
        "build_world",
    )
    no_figures = {f"tools/{name}.py" for name in (*builders, "check_architectures", "train_world", "counts")}
    for page, text in PAGES.items():
        named = set(re.findall(r"(?:benchmarks|tools)/\w+\.py", text))
        named |= {f"benchmarks/perf/{name}.py" for name in re.findall(r"perf\.(\w+)", text)}
        assert named - no_figures <= ran, page


# sentences


def test_sentences_say_what_their_tables_say():
    known = numbered_tables(PAGES.values())
    assert [problem for text in PAGES.values() for problem in wrong_claims(text, known)] == []
    assert {page for page, text in PAGES.items() if CLAIM.search(text)} >= {"docs/compare.md", "lab/docs/benchmark.md"}


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("It leads by 1.1. <!-- holds: made 1 | AUROC | 5 - 6 = 1.1 -->", ""),
        ("It leads by 1.2. <!-- holds: made 1 | AUROC | 5 - 6 = 1.2 -->", "it is 1.100"),
        ("It leads by a point. <!-- holds: made 1 | AUROC | 5 - 6 = 1.1 -->", "1.1 is not in the paragraph before it"),
        ("It leads. <!-- holds: made 1 | AUROC |\n 6 - * > 0 -->", "it is -1.100"),
        ("It leads. <!-- holds: made 1 | AUROC | 5 @ AUROC - 6 @ s > 90 -->", ""),
        ("It leads. <!-- holds: made 1 | AUROC | 5 - 7 > 0 -->", "no such place in the table: 7"),
        ("It leads. <!-- holds: made 1 | FPR | 5 - 6 > 0 -->", "no such place in the table: 'FPR' is not in list"),
        ("It leads. <!-- holds: made 2 | AUROC | 5 - 6 > 0 -->", "there is no table made 2"),
        ("It leads. <!-- holds: made 1 | AUROC | 5 before 6 -->", "no rule such as `a - b > 0`"),
    ],
)
def test_a_sentence_that_its_table_contradicts(sentence, problem):
    found = wrong_claims(f"{PAGE}\n{sentence}", numbered_tables([PAGE]))
    assert [one.partition(": ")[2] for one in found] == ([problem] if problem else [])


# the comparison


@pytest.fixture
def made(tmp_path):
    """A project of one page with one figure, and its output."""
    for room in CACHED_BY:
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "benchmarks/results").mkdir(parents=True)
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "output").write_text(OUTPUT)
    figure = Figure("made", "page.md", "cat output", speed_columns=("s",))
    return tmp_path, figure


def measured(root, figure):
    work = Figures(root, None, [])
    state = work.bring(figure)
    work.compare(figure, state)
    return work, state


def test_the_same_tables(made):
    root, figure = made
    _, state = measured(root, figure)
    assert (state.run, state.result, state.differs) == ("ran", "same", [])
    assert measured(root, figure)[1].run == "kept"
    (root / "src/outword/new.py").write_text("")
    assert measured(root, figure)[1].run == "ran"  # the code has changed
    assert len(list((root / "build/figures").glob("made@*"))) == 1


def test_another_digit(made):
    root, figure = made
    (root / "output").write_text(OUTPUT.replace("97.0", "97.1"))
    work, state = measured(root, figure)
    assert (state.result, state.differs) == ("DIFFERS", ["-| 6 | 97.0 |", "+| 6 | 97.1 |"])
    assert "made" in summary({"made": (figure, state)})
    work.write(figure)
    text = (root / "page.md").read_text()
    assert "| 6 | 97.1 | 3 |" in text and "Told by hand." in text and text.endswith("| K | AUROC | s |\n")
    assert measured(root, figure)[1].result == "same"


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (OUTPUT.replace("A heading", "Another"), ["+### Another"]),
        ("### A heading\n", ["-| K | AUROC |", "-| 5 | 98.1 |", "-| 6 | 97.0 |"]),
        (OUTPUT + "| 7 | 96.0 | 3 |\n", ["+| 7 | 96.0 |"]),
    ],
)
def test_other_lines(made, output, told):
    root, figure = made
    (root / "output").write_text(output)
    assert measured(root, figure)[1].differs == told


def test_speed_is_told_and_never_fails(made):
    root, _ = made
    slow = Figure("made", "page.md", "cat output", kind="speed")
    _, state = measured(root, slow)
    assert (state.result, state.differs) == ("changed: 1.00 to 1.33 times", [])
    (root / "output").write_text(OUTPUT.replace("| 6 | 97.0 | 3 |\n", ""))
    (root / "src/outword/new.py").write_text("")
    assert measured(root, slow)[1].result == "changed: other rows or columns"


def test_an_output_that_the_page_digests(made):
    root, _ = made
    digest = Figure("made", "page.md", "cat output", printed=False)
    (root / digest.committed).write_text("### A heading\n")
    work, state = measured(root, digest)
    assert state.result == "DIFFERS" and "+| 6 | 97.0 | 3 |" in state.differs
    work.write(digest)
    assert measured(root, digest)[1].result == "same"


def test_what_cannot_be_run(made):
    root, _ = made
    lacking = measured(root, Figure("made", "page.md", "cat output", needs=("gpu",)))[1]
    assert (lacking.run, lacking.result) == ("not run", f"needs {NEEDS['gpu']}")
    failed = measured(root, Figure("made", "page.md", "echo half; exit 3"))[1]
    assert (failed.run, failed.result) == ("FAILED", "exit code 3")


def test_one_table_of_several():
    page = "<!-- figure: two 2 -->\n| b |\n| --- |\n| 1 |\n<!-- /figure -->\n"
    output = "| a |\n|---|\n| 7 |\n\n| b |\n|---|\n| 2 |\n"
    (block,) = tables.blocks(page)
    assert tables.differences(tables.tables(block.body), tables.printed(block, output)) == ["-| 1 |", "+| 2 |"]
    assert tables.tables(tables.written(page, "two", output)) == [[["b"], ["2"]]]
    assert tables.written(page, "one", output) == page


def test_the_command_line_names_what_differs():
    run = [sys.executable, ROOT / "benchmarks/figures.py", "--check", "--only"]
    done = subprocess.run([*run, "performance-goals"], capture_output=True, text=True)
    assert done.returncode == 0 and "performance-goals  quality  docs/performance.md  checked" in done.stdout
    assert "no figure is called nothing" in subprocess.run([*run, "nothing"], capture_output=True, text=True).stderr


def test_what_makes_vectors_and_rankings_names_the_cache(made):
    assert Figures(ROOT, None, []).cache().name.startswith("cache@")  # every place of it is there
    root, _ = made
    before = Figures(root, None, []).cache()
    (root / "src/outword/maths/mining/density.py").write_text("")
    assert Figures(root, None, []).cache() != before
    (root / "src/outword/photos").rmdir()
    with pytest.raises(FileNotFoundError, match=r"photos is gone. hint: CACHED_BY"):
        Figures(root, None, []).cache()


# benchmarks that compute a score by themselves


@pytest.mark.parametrize("images", ["id_images", "ood_images"])
def test_the_formula_without_a_guard_is_that_of_the_library_where_none_is_needed(images):
    world = planted_world(n_labels=50, n_wild=2000, n_images=20)
    task = Task([], world.labels, world.id_images, np.arange(20), {})
    detector = Debiased(temperature=0.05, sigma=0.0, policy="paper").fit(world.labels, world.wild)
    found = printed(task, world.wild, 0.05)(getattr(world, images))
    np.testing.assert_allclose(found, detector.score(getattr(world, images)), rtol=1e-9)


# the rules of FPR95


def test_the_nearest_share_by_hand():
    inside, outside = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 1.5, 2.5, 3.5])
    # Of the shares 1, 3/4, 1/2 the second is nearest to 0.8; scores from 1.5 on have it, and 2 is the highest.
    assert nearest_recall_fpr(inside, outside, 0.8) == 0.75
    assert fpr_at_tpr(inside, outside, 0.75) == 0.5
    assert nearest_recall_fpr(inside, outside, 1.0) == fpr_at_tpr(inside, outside, 1.0) == 0.75


def test_the_rules_part_where_id_images_are_few():
    few, many = (np.subtract(*reversed(differences(n, draws))) for n, draws in ((50, 100), (20_000, 3)))
    assert 6 < few.mean() < 10
    assert 0 <= many.mean() < 0.1
