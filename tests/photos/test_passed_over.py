"""Files that are passed over: counted by kind, in memory that does not grow with them."""

from outword.photos import passed_over
from outword.photos.passed_over import PassedOver
from outword.photos.sources import find_pieces


def test_only_the_most_frequent_kinds_are_named():
    passed = PassedOver()
    for number in range(1, 9):
        for _ in range(number):
            passed.add(f".k{number}")
    shown = ", ".join(f"{number} .k{number} files" for number in (8, 7, 6, 5, 4))
    assert passed.told() == f"{shown}, 6 other files are not read: see docs/scale.md"


def test_there_is_an_end_to_the_kinds(monkeypatch):
    monkeypatch.setattr(passed_over, "KINDS", 3)
    passed = PassedOver()
    for suffix in (*(f".{number}" for number in range(1000)), ".1", ".averylongsuffix", ".\x1b[31m"):
        passed.add(suffix)
    assert len(passed.counts) == 4 and passed.counts.total() == 1003
    assert "999 other files" in passed.told() and "\x1b" not in passed.told()


def test_a_listing_counts_and_nothing_is_told_of_nothing(tmp_path):
    passed = PassedOver()
    (tmp_path / "a.jpg").touch()
    assert len(list(find_pieces([tmp_path], passed_over=passed))) == 1 and passed.told() == ""
    (tmp_path / "b.psd").touch()
    list(find_pieces([f"file://{tmp_path}", tmp_path], passed_over=passed))
    assert passed.told() == "2 .psd files are not read: see docs/scale.md"
