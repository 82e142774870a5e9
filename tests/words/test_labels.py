"""Label lists: what is read, and what is refused in one line."""

import pytest

from outword.errors import InputError
from outword.words.labels import check_labels, read_labels


def test_text_file(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufefftabby cat\r\n\r\ncrane: a crane, the bird\n  espresso  \nratio 3:1\n".encode())
    assert read_labels(path) == {"tabby cat": "", "crane": "a crane, the bird", "espresso": "", "ratio 3:1": ""}


def test_folder_of_class_folders(tmp_path):
    for name in ("space_shuttle", "cat", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "readme.txt").write_text("x")
    assert list(read_labels(tmp_path)) == ["cat", "space shuttle"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "2 to 50,000 labels, got 0"),
        (["cat"], "2 to 50,000 labels, got 1"),
        (["cat", "dog", "CAT"], "labels must differ, got 'cat' and 'CAT'"),
        (["space shuttle", "space_shuttle"], "labels must differ"),
        (["cat", ""], "one line of printable text, got ''"),
        (["cat", "a\nb"], "one line"),
        (["cat", 3], "got 3"),
        (["cat", "x" * 400], "at most 200 characters, got 400"),
        ("cat", "must be a list of names, got the text 'cat'"),
        (None, "must be a list of names, got None"),
    ],
)
def test_refused(labels, message):
    with pytest.raises(InputError, match=message) as error:
        check_labels(labels)
    assert error.value.hint


def test_too_many_labels():
    with pytest.raises(InputError, match="got 100,000"):
        check_labels([f"class {i}" for i in range(100_000)])


def test_mapping_keeps_prompts():
    assert check_labels({"crane": " a bird ", "cat": ""}) == {"crane": "a bird", "cat": ""}


def test_files_that_are_no_lists(tmp_path):
    with pytest.raises(InputError, match="there is no label list"):
        read_labels(tmp_path / "no.txt")
    (tmp_path / "x.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_labels(tmp_path / "x.png")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(InputError, match=r"got 0 in .*empty.txt"):
        read_labels(tmp_path / "empty.txt")
