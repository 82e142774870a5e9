"""Files that somebody names: those without an end are refused, and an error names what was named."""

import errno
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from outword.base import files
from outword.base.files import read_lines, read_small, whole_file, whole_folder
from outword.errors import InputError
from outword.scoring.marks import read_marks
from outword.words.corpora import corpus, get_corpus
from outword.words.label_lists import read_list
from outword_lab.benchmark.run.suite import read_suite
from outword_lab.learning.captions import read_captions
from outword_lab.learning.photo_words import read_words_per_image


def test_a_small_file(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_small(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ValueError, match="it has more than 0 MB"):
        read_small(tmp_path / "a", 4)


def test_lines(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"1\n22\r\n\n333")
    assert list(read_lines(tmp_path / "a")) == [b"1\n", b"22\r\n", b"\n", b"333"]
    monkeypatch.setattr(files, "MOST_IN_LINES", 7)
    with pytest.raises(ValueError, match="it has more than 0 GB"):
        list(read_lines(tmp_path / "a"))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "PIPE"])
@pytest.mark.parametrize(
    "read",
    [
        get_corpus,
        partial(read_list, column=None, say=print),
        read_marks,
        read_words_per_image,
        read_suite,
        read_captions,
    ],
)
def test_what_has_no_end_is_refused(tmp_path, monkeypatch, device, read):
    for place in ("outword.words.label_lists", "outword.scoring.marks", "outword_lab.benchmark.run.suite"):
        monkeypatch.setattr(f"{place}.LARGEST", 1 << 16)
    monkeypatch.setattr(corpus, "LARGEST", 1 << 16)
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 16)
    path = tmp_path / "endless.toml"
    path.symlink_to(device)
    if device == "PIPE":  # whose writer goes on until nobody reads
        path.unlink()
        os.mkfifo(path)
        with subprocess.Popen(f"tr '\\0' a < /dev/zero > {path}", shell=True, stderr=subprocess.DEVNULL):
            _refuses(read, path)
    else:
        _refuses(read, path)


def _refuses(read, path):
    with pytest.raises(InputError, match=r"endless\.toml"):
        read(path)


def test_an_error_names_what_was_asked_for(tmp_path, monkeypatch):
    target = tmp_path / "rows.csv"

    def fails(path, *args, **options):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", fails)
        for whole in (whole_file, whole_folder):
            with pytest.raises(PermissionError) as error, whole(target):
                pass
            assert error.value.filename == str(target)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(PermissionError) as error, whole_file(target) as temporary:
            temporary.write_text("a")
    assert error.value.filename == str(target)
    assert not list(tmp_path.iterdir())


def test_another_files_error_stays_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError) as error, whole_file(tmp_path / "a"):
        (tmp_path / "b").read_text()
    assert error.value.filename == str(tmp_path / "b")
