import gzip
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outword.base.files import sha256_bytes
from outword.errors import InputError, ParameterError
from outword.words.corpora import CORPORA, LEXFILES, get_corpus
from outword.words.corpora.corpus import SUPERCLASSES, conjugate, make_corpus
from outword.words.corpora.wordnet import NEGLABEL_FILES, WORDNET_FILES, lemmas
from outword.words.forms import drop_labels, fold, normalise

ROOT = Path(__file__).parents[2]

# name: (words, nouns, adjectives, fingerprint)
PINNED = {
    "wordnet": (23681, 13317, 10364, "5d327fce672d0bc4a912d8f548725af03a7c72f18affbb2167d20549968de55c"),
    "wordnet-neglabel": (57493, 47287, 10206, "f6ceed957032230490ff5a173d756c8bc2b57cb2555d3603d3f2b1768e9fbc00"),
    "common": (16523, 11580, 4943, "c3b8911e1eca743bc25a067be4495a6688aabdf2eed1b1524470173a0a953b44"),
    "pos": (70000, 53366, 16634, "406fdd1fc92778ee285ca276682f8ac12fe85d25589f67f9d416ec7ae200c7c9"),
    "things": (2760, 2760, 0, "569d6d09e4f25f855d7d15168e6278c45cf8ff73b0072d2528f29b5d73853e3d"),
}


@pytest.fixture
def corpus_of(tmp_path):
    """Write a text file and read it as a corpus."""

    def read(data):
        path = tmp_path / "words.txt"
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return get_corpus(path)

    return read


# --- the named sets


def test_what_is_listed_is_what_is_pinned():
    assert [*CORPORA][: len(PINNED) + 1] == [*PINNED, "conjugated:NAME"]


@pytest.mark.parametrize("name", PINNED)
def test_named_corpora_are_pinned(name):
    corpus = get_corpus(name)
    found = (len(corpus), corpus.kinds.count("noun"), corpus.kinds.count("adj"), corpus.fingerprint)
    assert corpus.name == name
    assert found == PINNED[name]
    assert make_corpus(name, corpus.read()) == corpus  # what is said of it before it is read


@pytest.mark.parametrize("name", [*PINNED, "conjugated:common"])
def test_named_corpora_are_sorted_and_without_duplicates(name):
    corpus = get_corpus(name)
    keys = [fold(word) for word in corpus.words]
    assert keys == sorted(set(keys))
    assert corpus.words == tuple(map(normalise, corpus.words))
    assert len(corpus.kinds) == len(corpus.words)
    content = "".join(f"{kind}\t{word}\n" for word, kind in zip(corpus.words, corpus.kinds, strict=True))
    assert corpus.fingerprint == sha256_bytes(content.encode())


def test_the_packaged_list_holds_all_of_wordnet():
    nouns = {fold(x.word) for x in lemmas() if any(m.kind == "noun" for m in x.meanings)}
    adjectives = {fold(x.word) for x in lemmas() if any(m.kind == "adj" for m in x.meanings)}
    assert len(nouns) == 117_798
    assert sum(" " not in word for word in nouns) == 57_506
    assert len(adjectives) == 21_479
    spelled = defaultdict(int)
    for lemma in lemmas():
        for meaning in lemma.meanings:
            spelled[meaning.file] += 1
    assert set(spelled) == set(LEXFILES)
    known = {"animal": 14_323, "artifact": 16_344, "plant": 17_799, "food": 3_584, "object": 2_302}
    known |= {"person": 18_926, "substance": 4_635}
    assert {name: spelled[f"noun.{name}"] for name in known} == known


def test_the_packaged_list_is_small_and_carries_its_notice():
    data = resources.files("outword.words.corpora") / "data"
    assert len((data / "wordnet.tsv.gz").read_bytes()) <= 1_500_000
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in (data / "WORDNET-LICENSE.txt").read_text()


def test_neglabel_files_are_those_of_the_literature():
    left_out = {"noun.animal", "noun.food", "noun.person", "noun.quantity", "noun.group", "adj.pert"}
    assert len(LEXFILES) == 29
    assert set(NEGLABEL_FILES) == set(LEXFILES) - left_out
    words = get_corpus("wordnet-neglabel").words
    assert "entity" in words  # the first lemma of its synset
    assert "natural phenomenon" in words
    assert "animate thing" not in words  # second to "living thing"


def test_a_word_that_is_noun_and_adjective_counts_as_noun():
    kinds = dict(zip(get_corpus("pos").words, get_corpus("pos").kinds, strict=True))
    assert (kinds["orange"], kinds["huge"], kinds["cat"]) == ("noun", "adj", "noun")


def test_default_corpus_leaves_out_proper_names_and_other_files():
    words = set(get_corpus("wordnet").words)
    assert {"raccoon", "espresso", "tabby", "volcano", "huge"} <= words
    assert not {"tabby cat", "Felis", "northern flicker"} & words
    assert not {"Everest", "Mount Everest", "Atlantic", "teacher", "Tuesday"} & words


def test_common_words_are_tagged_and_spelled_in_lower_case():
    words = get_corpus("common").words
    assert {"house", "dog", "large", "china"} <= set(words)
    assert "pangolin" not in words


def test_excluded_files_are_left_out_but_words_filed_elsewhere_stay():
    whole = get_corpus("wordnet")
    less = get_corpus("wordnet", exclude_files=("noun.animal",))
    assert set(map(fold, less.words)) < set(map(fold, whole.words))
    assert "aardvark" not in less.words
    assert "crane" in less.words  # also an artifact
    assert less.fingerprint != whole.fingerprint
    assert get_corpus("wordnet", exclude_files=["noun.person"]) == whole  # never in it
    assert get_corpus("wordnet", exclude_files=[]) == whole


def test_exclusions_make_a_noun_an_adjective_again():
    nouns = [file for file in LEXFILES if file.startswith("noun.")]
    assert set(get_corpus("common", exclude_files=nouns).kinds) == {"adj"}


def test_bad_exclusions_are_named():
    with pytest.raises(ParameterError, match=r'unknown lexicographer file.*"noun.animals".*did you mean "noun.animal"'):
        get_corpus("wordnet", exclude_files=["noun.animals"])
    with pytest.raises(ParameterError, match=r'exclude_files=\["noun.animal"\]'):
        get_corpus("wordnet", exclude_files="noun.animal")
    with pytest.raises(ParameterError, match="leaves no word"):
        get_corpus("wordnet", exclude_files=WORDNET_FILES)


def test_unknown_corpus_suggests_the_nearest_name():
    with pytest.raises(ParameterError, match=r'unknown corpus "wordnt". hint: did you mean "wordnet"'):
        get_corpus("wordnt")


def test_results_do_not_depend_on_locale_or_hash_seed():
    code = "from outword.words.corpora import get_corpus; print(get_corpus('common').fingerprint)"
    for language, seed in (("C", "1"), ("tr_TR.UTF-8", "2")):
        env = {**os.environ, "LC_ALL": language, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")}
        out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        assert out.strip() == PINNED["common"][3]


# --- conjugated words


def test_adjectives_are_joined_to_a_superclass_and_nouns_stay():
    plain, joined = get_corpus("wordnet"), get_corpus("conjugated:wordnet")
    nouns, adjectives = (
        [w for w, k in zip(plain.words, plain.kinds, strict=True) if k == kind] for kind in ("noun", "adj")
    )
    kinds = dict(zip(joined.words, joined.kinds, strict=True))
    assert len(joined) == len(plain)
    assert all(kinds[noun] == "noun" for noun in nouns)
    pairs = [word for word, kind in kinds.items() if kind == "adj"]
    assert {pair.rpartition(" ")[0] for pair in pairs} == set(adjectives)
    ends = Counter(pair.rpartition(" ")[2] for pair in pairs)
    assert set(ends) == set(SUPERCLASSES)
    assert min(ends.values()) > 0.8 * len(pairs) / 14  # each gets its share


def test_conjugated_words_are_the_same_on_every_machine():
    joined = get_corpus("conjugated:wordnet")
    assert joined.name == "conjugated:wordnet"
    assert joined.fingerprint == "c8d62dc151341a7a0dc395024f5b1dc39522639a26c61ef899239626ef84742e"
    assert int(sha256_bytes(b"huge"), 16) % 14 == SUPERCLASSES.index("environment")
    assert "huge environment" in joined.words
    assert "huge" not in joined.words


def test_an_adjective_has_the_same_superclass_in_every_corpus():
    first, second = (get_corpus(f"conjugated:{name}") for name in ("wordnet", "pos"))
    plain = set(get_corpus("wordnet").words) & set(get_corpus("pos").words)
    assert "huge" in plain
    assert "huge environment" in set(first.words) & set(second.words)


def test_a_pair_that_is_a_noun_already_is_one_word():
    corpus = conjugate(make_corpus("x", [("huge", "adj"), ("Huge environment", "noun"), ("cat", "noun")]))
    assert corpus.words == ("cat", "huge environment")
    assert corpus.kinds == ("noun", "noun")


def test_conjugated_corpora_take_exclusions():
    whole, less = (get_corpus("conjugated:wordnet", exclude_files=files) for files in ((), ["noun.animal"]))
    assert "aardvark" in whole.words
    assert "aardvark" not in less.words
    assert "huge environment" in less.words


def test_bad_conjugated_corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("w.txt").write_text("cat\nhuge\n")
    with pytest.raises(InputError, match=r"the corpus w.txt holds no adjective .* hint: use w.txt itself"):
        get_corpus("conjugated:w.txt")
    with pytest.raises(ParameterError, match=r'unknown corpus "wordnt". hint: did you mean "wordnet"'):
        get_corpus("conjugated:wordnt")
    for name in ("conjugated:", "conjugated:conjugated:wordnet"):
        with pytest.raises(ParameterError, match=r"one corpus must be named, .* for example conjugated:wordnet"):
            get_corpus(name)
    Path("conjugated:w").write_text("cat\n")
    assert get_corpus("./conjugated:w").words == ("cat",)


# --- the build script


WORDNET_DATA = {
    "data.noun": "00000001 05 n 02 Dog 0 cat 0 000 | a beast\n00000002 18 n 01 dog 0 001 @i 00000001 n 0000 | a name\n",
    "index.noun": "dog n 2 0 2 1 00000001 00000002\ncat n 1 0 1 0 00000001\n",
    "data.adj": "00000003 00 a 01 red_hot(a) 0 000 | hot\n",
    "index.adj": "red_hot a 1 0 1 0 00000003\n",
    "cntlist.rev": "dog%1:05:00:: 1 7\n",
}


def test_build_script_writes_the_same_bytes_each_time(tmp_path):
    for name, text in WORDNET_DATA.items():
        (tmp_path / name).write_text("  1 a licence line\n" * (name != "cntlist.rev") + text)
    outputs = []
    for number in (1, 2):
        out = tmp_path / f"out{number}.gz"
        command = [sys.executable, str(ROOT / "tools/build_corpora.py"), "--wordnet", str(tmp_path), "-o", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    rows = gzip.decompress(outputs[0]).decode().splitlines()
    expected = [
        "Dog\tnoun.animal!\t7\t0",
        "cat\tnoun.animal\t0\t0",
        "dog\tnoun.person!~\t0\t0",
        "red hot\tadj.all!\t0\t0",
    ]
    assert rows == expected


# --- text files


def test_text_file_rules(corpus_of):
    corpus = corpus_of("\ufeffzebra\r\n\r\n  Space_Shuttle \rspace   shuttle\n\tｃａｆé\nzebra\ncafe\u0301\n\u200b\n")
    assert corpus.words == ("café", "space shuttle", "zebra")
    assert corpus.kinds == ("noun",) * 3
    assert corpus.name == "words.txt"


def test_only_line_ends_end_a_line(corpus_of):
    assert corpus_of("ice\u2028cream\n").words == ("ice cream",)


def test_text_file_order_does_not_matter(corpus_of):
    words = ["Bull", "bull", "état", "Zoo", "zoo", "ß", "SS", "a_b"]
    first = corpus_of("\n".join(words))
    random.Random(3).shuffle(words)
    assert corpus_of("\n".join(words)) == first
    assert "bull" in first.words
    assert "Bull" not in first.words


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "holds no word"),
        (b"\xef\xbb\xbf\n \n\t\n___\n", "holds no word"),
        (b"cat\ndog\r\n\xff\xfe\n", "line 3 .* is not valid UTF-8. hint: save the file as UTF-8"),
        ("cat\n".encode("utf-16"), "line 1 .* is not valid UTF-8"),
        (b"cat\r\rd\x00g\n", "line 3 .* holds a control character"),
        (b"cat\n" + b"x" * 401, r"line 2 .* is longer than 400 characters \(401\)"),
    ],
)
def test_bad_text_files_are_refused_with_the_line(corpus_of, data, message):
    with pytest.raises(InputError, match=message):
        corpus_of(data)


def test_400_characters_are_enough(corpus_of):
    assert len(corpus_of("x" * 400 + " " * 50).words[0]) == 400


def test_a_folder_is_not_a_corpus(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        get_corpus(tmp_path)


def test_exclude_files_is_refused_for_a_text_file(tmp_path):
    (tmp_path / "w.txt").write_text("cat\n")
    with pytest.raises(ParameterError, match="exclude_files is for named corpora"):
        get_corpus(tmp_path / "w.txt", exclude_files=["noun.animal"])


def test_a_name_wins_over_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("common").write_text("cat\n")
    assert len(get_corpus("common")) == PINNED["common"][0]
    assert get_corpus("./common").words == ("cat",)
    assert get_corpus(Path("common")).words == ("cat",)


def test_a_million_lines(tmp_path):
    path = tmp_path / "million.txt"
    path.write_text("".join(f"Word_{(i * 7919) % 1_000_000} é\n" for i in range(1_000_000)), encoding="utf-8")
    corpus = get_corpus(path)
    assert len(corpus) == 1_000_000


# --- folding and labels


@given(st.text())
def test_fold_and_normalise_are_idempotent(text):
    assert fold(fold(text)) == fold(text)
    assert normalise(normalise(text)) == normalise(text)
    assert fold(normalise(text)) == fold(text)


def test_fold_is_idempotent_for_every_character():
    characters = (chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)
    changed = {c: folded for c in characters if (folded := fold(c)) != c}  # what stays itself does so twice
    assert [c for c, folded in changed.items() if fold(folded) != folded] == []


@given(st.lists(st.text()), st.randoms(use_true_random=False))
def test_a_corpus_does_not_depend_on_order_and_is_its_own_corpus(texts, chance):
    pairs = [(text, chance.choice(["noun", "adj"])) for text in texts]
    corpus = make_corpus("x", pairs)
    chance.shuffle(pairs)
    assert make_corpus("x", pairs) == corpus
    assert make_corpus("x", zip(corpus.words, corpus.kinds, strict=True)) == corpus
    assert {fold(t) for t in texts} - {""} == {fold(w) for w in corpus.words}


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("tabby cat", "Tabby_Cats"),
        ("egg-cup", "egg  cup"),
        ("foxes", "fox"),
        ("berry", "Berries"),
        ("cookie", "cookies"),
        ("horse", "horses"),
        ("bench", "benches"),
        ("knife", "knives"),
        ("bookshelves", "Bookshelf"),
        ("firewoman", "firewomen"),
        ("fungi", "fungus"),
        ("ﬁsh", "FISH"),
    ],
)
def test_words_that_equal_a_label_are_dropped(word, label):
    assert drop_labels([word], [label]) == ([], [word])
    assert drop_labels([label], [word]) == ([], [label])


@pytest.mark.parametrize(
    ("word", "label"), [("pin", "pines"), ("glass", "glas"), ("cat", "tabby cat"), ("ga", "gas"), ("cafe", "caves")]
)
def test_other_words_are_kept(word, label):
    assert drop_labels([word], [label]) == ([0], [])


@given(st.lists(st.text(max_size=8)), st.lists(st.text(max_size=8)))
def test_drop_labels_parts_the_words(words, labels):
    kept, dropped = drop_labels(words, labels)
    assert len(kept) + len(dropped) == len(words)
    assert kept == sorted(kept)
    assert {fold(w) for w in (words[i] for i in kept)}.isdisjoint(map(fold, labels))


# --- the page


def test_the_page_states_the_counts():
    page = (ROOT / "docs/corpora.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| `(\w+)` \|$", page, flags=re.MULTILINE)
    found = {name: (*(int(n.replace(",", "")) for n in numbers), mark) for name, *numbers, mark in rows}
    assert found == {name: (*numbers, mark[:12]) for name, (*numbers, mark) in PINNED.items()}
