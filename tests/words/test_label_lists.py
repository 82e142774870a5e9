"""Label lists as people have them: typed, files of all kinds, folders; what is guessed and merged is said."""

import io
import re

import pytest

import outword
from outword.errors import InputError
from outword.words import label_lists
from outword.words.labels import read_labels


@pytest.fixture
def read(tmp_path):
    """A function that reads a file of this name and content: the labels shown, with `.said` on the way."""

    def read(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        said.clear()
        return list(read_labels(path, say=said.append, **options))

    said = read.said = []
    return read


@pytest.mark.parametrize(
    ("typed", "labels"),
    [
        ("cat, dog", ["cat", "dog"]),
        ("cat", ["cat"]),
        ("cat,", ["cat"]),
        (" tabby cat ,, sofa | couch ", ["tabby cat", "sofa"]),
        ("crane: a crane, the bird", ["crane"]),
        ("track #5, C#, crane#bird", ["track #5", "C#", "crane"]),
        ("no/such/file,", ["no/such/file"]),
        ("cat\ndog # a pet\n", ["cat", "dog"]),
        ('["cat", "Washington, D.C."]', ["cat", "Washington, D.C."]),
        ("n02084071, cat", ["dog", "cat"]),
        ("cat;dog; fox", ["cat", "dog", "fox"]),
        ('"cat", "dog"', ["cat", "dog"]),
        ("- elephant\n* zebra\n\u2022 lion", ["elephant", "zebra", "lion"]),
        ("1. zebra\n2) lion\n", ["zebra", "lion"]),
        ("0: person\n1: bicycle", ["person", "bicycle"]),
        ("'cat'\n\u201cdog\u201d,\nrock 'n' roll", ["cat", "dog", "rock 'n' roll"]),
        ("7 up\n3.5 inch disk", ["7 up", "3.5 inch disk"]),
    ],
)
def test_typed_labels(typed, labels):
    assert list(read_labels(typed)) == labels


@pytest.mark.parametrize("typed", ["labls.txt", "no/such", "LABELS.CSV", "./x", "a\\b", "x.json", "gone.outword"])
def test_what_looks_like_a_path_is_no_label(typed):
    with pytest.raises(InputError, match="there is no label list") as error:
        read_labels(typed)
    assert f'"{typed},"' in error.value.hint


def test_a_path_that_exists_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cat, dog").write_text("fox")
    assert list(read_labels("cat, dog")) == ["fox"]
    with pytest.raises(InputError, match="there is no label list"):
        read_labels(tmp_path / "cat")  # a path, not a text


def test_standard_input_may_be_closed_or_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_labels("-")
    stdin, said = io.TextIOWrapper(io.BytesIO(b"cat\n")), []
    stdin.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", stdin)
    assert (list(read_labels("-", say=said.append)), said) == (
        ["cat"],
        ["class names, one a line; Ctrl-D ends the list"],
    )


def test_comments(read):
    text = "# pets\ncat # small\n\tdog\t# large\ncrane#bird\nC#\n   # \nC # another\n"
    assert read("l.txt", text) == ["cat", "dog", "crane", "C#", "C"]
    assert read("l.csv", "# of 2026\nid;label\n1;cat\n#2;dog\n") == ["cat"]


def test_one_line_has_commas_and_lines_may_end_in_them(read):
    assert read("l.txt", "cat, dog,bird\n") == ["cat", "dog", "bird"]
    assert read("l.txt", "cat,\ndog,\nbird") == ["cat", "dog", "bird"]


@pytest.mark.parametrize(
    ("name", "content", "labels", "column"),
    [
        ("a.csv", "id,Label,photos\n1,cat,3\n2,dog,4\n", ["cat", "dog"], "Label"),
        ("a.csv", '\ufeffid;"class name"\r\n1;"cat, small"\r\n2;dog\r\n', ["cat, small", "dog"], "class name"),
        ("a.tsv", "name\tcount\ncat\t3\n\t\ndog\t4\n", ["cat", "dog"], "name"),
        ("a.csv", "label,class_name\n0,cat\n1,dog\n", ["cat", "dog"], "class_name"),
        ("a.csv", "number,species\n1,cat\n2,dog\n", ["cat", "dog"], "species"),
        ("a.csv", ",label\n0,cat\n1,n02084071\n", ["cat", "dog"], "label"),
        ("a.jsonl", '{"name": "cat", "id": 1}\n\n{"name": "dog", "id": 2}\n', ["cat", "dog"], "name"),
        ("a.json", '[{"id": 1, "species": "cat"}, {"id": 2, "species": "dog"}]', ["cat", "dog"], "species"),
    ],
)
def test_tables_with_a_guessed_column(read, name, content, labels, column):
    assert read(name, content) == labels
    assert len(read.said) == 1
    assert f"labels are taken from the column '{column}'; --label-column names another" in read.said[0]


def test_tables_with_a_column_that_was_named(read):
    table = "genus,species,label\nFelis,cat,x\nCanis,dog,y\n"
    assert read("a.csv", table, column="species") == read("a.txt", table, column="Species") == ["cat", "dog"]
    assert not read.said
    with pytest.raises(InputError, match=r'a\.csv has no column "kind"\. hint: it has genus, species, label'):
        read("a.csv", table, column="kind")


def test_tables_without_a_header(read):
    assert read("a.csv", "cat,dog\n") == ["cat", "dog"]
    assert read("a.csv", "cat\ndog\n") == ["cat", "dog"]
    assert read("a.csv", "label\ncat\ndog\n") == ["cat", "dog"]
    assert "its first line, 'label', is taken for a header" in read.said[0]
    with pytest.raises(InputError, match="has no header: its first line is 1, cat"):
        read("a.csv", "1,cat\n2,dog\n")
    with pytest.raises(InputError, match=r"genus, species, and none that is surely of labels.*--label-column species"):
        read("a.csv", "genus,species\nFelis,cat\nCanis,dog\n")
    with pytest.raises(InputError, match="got 0 in"):
        read("a.csv", "id,label\n")


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ('["cat", "crane#bird"]', {"cat": "", "crane": ""}),
        ('{"labels": ["cat", "dog"]}', {"cat": "", "dog": ""}),
        ('{"0": "cat", "1": "dog"}', {"cat": "", "dog": ""}),
        ('{"0": ["n02123045", "tabby"], "1": ["n02084071", "dog"]}', {"tabby": "", "dog": ""}),
        ('{"cat": 0, "dog": 1}', {"cat": "", "dog": ""}),
        ('{"crane": "a crane, the bird", "cat": null}', {"crane": "a crane, the bird", "cat": ""}),
    ],
)
def test_json(tmp_path, content, labels):
    for name in ("l.json", "l.txt"):
        (tmp_path / name).write_text(content)
        assert {name: label.prompt for name, label in read_labels(tmp_path / name).items()} == labels


def test_json_with_kinds(read, tmp_path):
    assert read("l.json", '{"pet": ["cat", "hamster"], "fox": ""}') == ["pet", "fox"]
    assert read_labels(tmp_path / "l.json")["pet"].kinds == ("cat", "hamster")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        ("3", "must be a list of labels, got 3"),
        ('["cat", 3]', r"l\.json, entry 2: a label must be one line of printable text, got 3"),
        ('{"cat": 1.5}', "entry 1: a label takes a prompt or a list of kinds, got 1.5"),
        ('{"cat": {"a": 1}}', "a label takes a prompt or a list of kinds"),
        ("[" * 100_000, "cannot be read as JSON: it is nested too deeply"),
        ("[]", "got 0 in"),
    ],
)
def test_json_that_is_no_list(read, content, message):
    with pytest.raises(InputError, match=message):
        read("l.json", content)


def test_class_folders(tmp_path):
    for name in ("n02012849", "n03126707", "n02084071", "SpaceShuttle", "tabby_cat", "sea-lion", "n99999999", "iPhone"):
        (tmp_path / name).mkdir()
    labels = read_labels(tmp_path)
    assert set(labels) == {
        *("crane#n02012849", "crane#n03126707", "dog", "space shuttle"),
        *("tabby cat", "sea lion", "n99999999", "iPhone"),
    }
    assert labels["dog"].hint == "n02084071"
    (tmp_path / "iPhone" / "1.txt").write_text("x")
    with pytest.raises(InputError, match="iPhone has no class folders in it"):
        read_labels(tmp_path / "iPhone")


def test_duplicates_are_merged_and_told_with_their_lines(read):
    assert read("l.txt", "cat\n\ndog\nCats\nthe cat\ndog\ncrane#bird\ncrane#machine\n") == [
        *("cat", "dog", "crane#bird", "crane#machine")
    ]
    (told,) = read.said
    assert told.endswith(
        "l.txt: what is named more than once is merged: cat = Cats = the cat (lines 1, 4, 5), dog (lines 3, 6)"
    )


def test_a_table_of_photos_names_a_class_often(read):
    rows = "".join(f"{number}.jpg,{'cat' if number % 2 else 'dog'}\n" for number in range(2000))
    assert read("train.csv", f"file,label\n{rows}") == ["dog", "cat"]
    assert read.said[1].endswith("dog (lines 2, 4, 6, 8 and 996 more), cat (lines 3, 5, 7, 9 and 996 more)")


def test_folders_that_mean_the_same_are_merged(tmp_path):
    said = []
    for name in ("SpaceShuttle", "space_shuttle", "cat"):
        (tmp_path / name).mkdir()
    assert list(read_labels(tmp_path, say=said.append)) == ["space shuttle", "cat"]
    assert "space shuttle (folders SpaceShuttle, space_shuttle)" in said[0]


def test_duplicates_that_say_different_things_are_not_merged(read):
    with pytest.raises(
        InputError, match=r"labels must differ, got 'sofa' \(line 1\) and 'sofa \| couch' \(line 3\) in"
    ):
        read("l.txt", "sofa\ncat\nsofa | couch\n")
    with pytest.raises(InputError, match="labels must differ"):
        read("l.txt", "crane: a bird\ncrane: a machine\n")


def test_utf16_is_read_where_it_says_so(read):
    assert read("l.txt", "cat\r\ncafé\r\n".encode("utf-16")) == ["cat", "café"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got 0 in"),
        (b"\xef\xbb\xbf", "got 0 in"),
        (b"\xff\xfe", "got 0 in"),
        (b"# nothing\n\n", "got 0 in"),
        ("cat\ndog".encode("utf-16-le"), "cannot be read as text: it has null bytes"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "cannot be read as text"),
        (b"caf\xe9\n", "cannot be read as text"),
        (b"cat\n" + b"x" * 100_000 + b"\n", r"l\.txt, line 2: a label must have at most 200 characters, got 100000"),
        (b"cat\n" + b"\x01" * 100_000 + b"\n", r"l\.txt, line 2: a label must be one line of printable text"),
    ],
)
def test_files_that_are_no_lists(read, content, message):
    with pytest.raises(InputError, match=message) as error:
        read("l.txt", content)
    assert len(str(error.value)) < 500 and str(error.value).count("l.txt") == str(error.value).count("hint: ") == 1


def test_tables_that_are_none(read):
    with pytest.raises(InputError, match=r"cannot be read as a table, line 2"):
        read("l.csv", 'id,label\n1,"cat" x\n')
    either = r"line 1: field larger than|entry 1: a label must have at most 200"  # others may have set csv's own limit
    with pytest.raises(InputError, match=either):
        read("l.csv", "x" * 200_000)


def test_a_list_has_an_end(read, monkeypatch):
    monkeypatch.setattr(label_lists, "LARGEST", 1 << 20)
    with pytest.raises(InputError, match="is too large for a list of labels: over 1 MB"):
        read("l.txt", b"cat\n" * (1 << 18) + b"x")


def test_a_table_on_standard_input_is_one(monkeypatch):
    table = b"id,name,count\n1,cat,5\n2,dog,7\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table)))
    assert [*read_labels("-")] == ["cat", "dog"]


def test_several_prompts_in_one_line_are_refused():
    with pytest.raises(InputError, match="a typed list takes one prompt, got several"):
        read_labels("cat: a cat, dog: a dog")
    assert read_labels("crane: a crane, the bird")["crane"].prompt == "a crane, the bird"


def test_python_is_told_how_a_file_is_read(tmp_path):
    (tmp_path / "l.txt").write_text("cat\ndog\n")
    with pytest.raises(InputError, match=r"outword\.read_labels\("):
        outword.fit(str(tmp_path / "l.txt"))
    assert [*outword.read_labels(tmp_path / "l.txt")] == ["cat", "dog"]


def test_lines_without_end_are_refused_early(read, monkeypatch):
    monkeypatch.setattr(label_lists, "LINES", 100)
    with pytest.raises(InputError, match="more than 100 lines"):
        read("l.txt", "cat\n" * 101)
    assert read("l.txt", "cat\n" * 100) == ["cat"]


@pytest.mark.parametrize(
    "names",
    [
        "names: ['person', \"hot dog\", it's]  # three",
        "names: [person,  # the first\n  hot dog,\n  it's,\n]\nroboflow:\n  project: x",
        "names: {0: person, 1: 'hot dog', 2: it's}",
        "names:\n- person\n- 'hot dog'\n- it's\ntest: ../images",
        "names:\n  0: person\n  1: \"hot dog\"  # to eat\n\n  2: 'it''s'\nurl: x",
    ],
)
def test_names_of_a_data_yaml(read, names):
    text = f"train: ../train/images\nnc: 3\n{names}\n"
    assert read("data.yaml", text) == read("names.txt", text) == ["person", "hot dog", "it's"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("train: x\n", "has no line that begins with names:"),
        ("names: [cat, dog\n", "have no end: ] is missing"),
        ("names: cats.txt\n", "must be a list or a mapping, got 'cats.txt'"),
        ("names:\n  cat: 0\n", "must be a list or a mapping, got 'cat: 0'"),
        ("names: []\n", "there are no names"),
        ("names: [" + " " * 100_000, "have no end"),
    ],
)
def test_a_yaml_file_without_names_that_can_be_read(read, content, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read("data.yaml", content)
