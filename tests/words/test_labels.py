"""Label lists: what is read, and what is refused in one line."""

import io

import pytest

from outword.errors import InputError
from outword.words.labels import Label, TooManyLabels, check_labels, parse, read_labels


def test_text_file(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufefftabby cat\r\n\r\ncrane: a crane, the bird\n  espresso  \nratio 3:1\n".encode())
    prompts = {name: label.prompt for name, label in read_labels(path).items()}
    assert prompts == {"tabby cat": "", "crane": "a crane, the bird", "espresso": "", "ratio 3:1": ""}


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"cat\ncrane#bird: a bird\n")))
    assert read_labels("-") == {
        "cat": Label("cat", "cat"),
        "crane": Label("crane#bird", "crane", hint="bird", prompt="a bird"),
    }


def test_folder_of_class_folders(tmp_path):
    for name in ("space_shuttle", "cat", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "readme.txt").write_text("x")
    assert list(read_labels(tmp_path)) == ["cat", "space shuttle"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "1 to 50,000 labels, got 0"),
        (["cat", "dog", "CAT"], "labels must differ, got 'cat' and 'CAT'"),
        (["sofa", "sofa | couch"], "labels must differ, got 'sofa' and 'sofa | couch'"),
        (["sofa |"], "a name is missing in the label 'sofa |'"),
        (["pet > "], "a name is missing in the label 'pet >'"),
        (["crane#bird | heron#bird"], "only the first name of a label takes a hint"),
        ({"pet": ["cat", 3]}, "printable text, got 3"),
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


def test_mapping_gives_prompts_or_kinds_and_may_be_given_again():
    labels = check_labels({"crane": " a bird ", "cat": "", "pet": ["dog", "hamster "]})
    assert [label.prompt for label in labels.values()] == ["a bird", "", ""]
    assert (
        labels["pet"] == Label("pet > dog | hamster", "pet", kinds=("dog", "hamster")) == parse("pet > dog | hamster")
    )
    assert check_labels(labels) == labels


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("crane", Label("crane", "crane")),
        ("animal > -dog | - bird", Label("animal > -dog | - bird", "animal", without=("dog", "bird"))),
        (" crane#bird ", Label("crane#bird", "crane", hint="bird")),
        ("sofa|couch | settee", Label("sofa|couch | settee", "sofa", others=("couch", "settee"))),
        ("pet#2 | beast > cat", Label("pet#2 | beast > cat", "pet", ("beast",), "2", ("cat",))),
        ("C#", Label("C#", "C#")),
        ("track #5", Label("track #5", "track #5")),
        ("#1", Label("#1", "#1")),
    ],
)
def test_what_is_typed(text, label):
    assert parse(text) == label


def test_the_first_name_is_shown_or_what_was_typed_where_two_share_it():
    labels = check_labels(["crane#bird", "crane#machine", "pet > cat | hamster", "sofa | couch"])
    assert list(labels) == ["crane#bird", "crane#machine", "pet", "sofa"]
    assert labels["sofa"].names == ("sofa", "couch")
    assert list(check_labels(["crane#bird"])) == ["crane"]


def test_files_that_are_no_lists(tmp_path):
    with pytest.raises(InputError, match="there is no label list"):
        read_labels(tmp_path / "no.txt")
    (tmp_path / "x.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_labels(tmp_path / "x.png")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(InputError, match=r"got 0 in .*empty.txt"):
        read_labels(tmp_path / "empty.txt")


@pytest.mark.parametrize("sign", [">", "|"])
def test_names_and_kinds_count_as_labels(sign):
    text = f"pet {sign} {' | '.join(f'kind {i}' for i in range(9))}"
    assert len(check_labels([text], most=10)) == 1
    assert len(check_labels(["animal > -dog | -cat"], most=1)) == 1
    with pytest.raises(TooManyLabels, match="1 to 9 labels, got 1 with 10 names and kinds in the list"):
        check_labels([text], most=9)
    with pytest.raises(TooManyLabels, match="1 to 3 labels, got 1 with 4 names and kinds"):
        check_labels({"pet": ["cat", "dog", "hamster"]}, most=3)


def test_a_file_with_too_many_kinds(tmp_path):
    (tmp_path / "labels.txt").write_text(f"cat\npet > {' | '.join(f'kind {i}' for i in range(50_000))}\n")
    with pytest.raises(TooManyLabels, match="1 to 50,000 labels, got 2 with 50,002 names and kinds in"):
        read_labels(tmp_path / "labels.txt")


@pytest.mark.parametrize(
    ("label", "broader"),
    [
        ("not a dog", "animal > -dog"),
        ("No cats", "animal > -cat"),
        ("non-truck", "vehicle > -truck"),
        ("without a hat", "clothing > -hat"),
        ("everything but dogs", "animal > -dog"),
        ("no person", "animal > -dog"),  # an example, as nothing common is broader
    ],
)
def test_a_label_says_what_is_there(label, broader):
    with pytest.raises(InputError, match="a label must say what is to be seen") as error:
        check_labels([label])
    assert f'"{broader}"' in error.value.hint


def test_names_that_only_begin_like_a_denial_are_names():
    names = ["no entry sign", "nonfat milk", "notebook", "Notting Hill", "face without a mask", "northern lights"]
    assert list(check_labels(names)) == names
