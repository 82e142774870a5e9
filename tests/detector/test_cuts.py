"""What a verdict rests on: the order of cuts, the method in force, p-values, kinds, looks like, records."""

import copy
import pickle
import sys
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

import outword
from conftest import PHOTOS
from helpers.cards import a_card, a_meaning
from outword.detector import artifact
from outword.detector.artifact import Saved
from outword.detector.cuts import cut_by_batch, cut_by_reference, pseudo_id, with_cut
from outword.detector.detector import Detector
from outword.detector.judge import judge
from outword.detector.saving import saved_form
from outword.detector.thresholds import estimated_thresholds
from outword.detectors import MCM, Grounded, MaxLogit
from outword.encoders import get_encoder
from outword.errors import ArtifactError, InputError, MissingExtraError
from outword.kernels import using
from outword.maths.reference import balanced_cut, p_values, reference_cut
from outword.maths.thresholds import by_hand, fit_reference
from outword.vectors.names import rival_names
from outword.vectors.reference import Reference, find_reference
from outword.vectors.vocabulary import Vocabulary
from outword.words.corpora import senses_of_things
from outword.words.kinds import are_below
from outword.words.nouns import nouns

CAT, WALL = PHOTOS / "cat.jpg", PHOTOS / "brick.jpg"
EYE = np.eye(3, dtype=np.float64)
NAMES = Vocabulary(["sea lion", "seal", "brick"], np.eye(3, dtype=np.float16))


@dataclass
class Lifted(MCM):
    """A method with a part that has a natural cut."""

    lift: float = 10.0

    def _score(self, images):
        return super()._score(images) + self.lift

    def relative(self):
        part = copy.copy(self)
        part.lift, part.default_threshold_ = 0.0, 0.5
        return part


def made(scorer=None, **options):
    card = a_card("lifted", {"lift": 10.0}, temperature=0.5, meanings=options.pop("meanings", ()))
    scorer = scorer or Lifted(temperature=0.5).fit(EYE)
    labels = ["cat", "dog", "cow"]
    options = {"labels": labels, "rows": labels, "wild": [], **options}
    return Detector(scorer=scorer, card=card, find_encoder=None, **options)


def test_the_order_of_cuts():
    reference, batch = fit_reference([10.0, 10.2]), fit_reference([10.1], method="batch")
    plain = made()
    assert (plain.cut, plain.basis, plain.threshold) == (None, "formula", 0.5)
    assert plain.verdict(0.6) == "in (uncalibrated)" and plain.verdict(0.4) == "out (uncalibrated)"
    cut = with_cut(plain, batch, [10.1])
    assert (cut.basis, cut.threshold, plain.basis) == ("batch", batch.value, "formula")
    fitted = with_cut(plain, reference, [10.2, 10.0])
    assert (fitted.basis, fitted.threshold) == ("reference", reference.value)
    assert (fitted.verdict(99.0), fitted.verdict(0.0)) == ("in", "out")
    chosen = fitted.with_threshold(by_hand(10.5))
    assert (chosen.basis, chosen.threshold, chosen.thresholds.estimated) == ("calibrated", 10.5, reference)
    assert made(MCM().fit(EYE)).verdict(0.5) == "uncalibrated"


def test_the_whole_method_scores_as_soon_as_there_is_a_cut():
    plain = made()
    alone = judge(plain, EYE).scores
    np.testing.assert_array_equal(judge(replace(plain, by_whole_method=True), EYE).scores, alone + 10)
    np.testing.assert_array_equal(judge(with_cut(plain, fit_reference([10.0]), [10.0]), EYE).scores, alone + 10)
    by_marks = plain.with_threshold(by_hand(0.7))  # on the scores that the page shows
    np.testing.assert_array_equal(judge(by_marks, EYE).scores, alone)
    assert by_marks.card.method.parameters["lift"] == 0 and plain.card.method.parameters["lift"] == 10
    assert plain.with_threshold(None).scorer is plain.scorer


def test_p_values_against_a_slow_twin():
    reference = [10.3, 10.1, 10.1, 10.2]
    detector = with_cut(made(), fit_reference(reference), reference)
    scores = np.array([9.0, 10.1, 10.15, 10.3, 11.0])
    slow = [(1 + sum(r >= s for r in reference)) / 5 for s in scores]
    assert detector.thresholds.p_values(scores).tolist() == slow
    assert made().thresholds.p_values(scores) is None
    uncut = estimated_thresholds(None, reference)
    assert made(thresholds=uncut).thresholds.p_values(scores) is None  # the part in force has other scores
    found = list(judge(detector, EYE))
    assert [one.p for one in found] == detector.thresholds.p_values([one.score for one in found]).tolist()


def test_kinds_are_named_and_own_names_are_not():
    class Rows(MCM):
        def begin(self, images, top, temperature, *, patches=None):
            column = np.array([[0], [0], [1]])
            shares, none = np.ones((3, 1)), np.zeros((3, 0), np.int64)
            found = SimpleNamespace(labels=column, label_shares=shares, words=none, word_shares=none)
            found.kinds = np.array([[1], [0], [2]])
            return lambda: (np.ones(3), found)

    scorer = Rows().fit(EYE)
    scorer.owners_ = np.array([0, 0, 1])
    meanings = a_meaning("sofa", "couch"), a_meaning("dog")
    detector = made(scorer, rows=["couch", "davenport", "dog"], meanings=meanings)
    detector.labels = ["sofa", "dog"]
    found = list(judge(detector, EYE))
    assert [one.named for one in found] == ["sofa (davenport)", "sofa", "dog"]
    assert [(one.label, one.kind) for one in found] == [("sofa", "davenport"), ("sofa", ""), ("dog", "")]


def test_looks_like_by_hand_and_in_any_company():
    x = np.array([[0.9, 0.4, 0.1], [0.1, 0.2, 0.9], [0.5, 0.5, 0.1]])
    detector = made(vocabulary=NAMES)
    told = [one.looks_like for one in judge(detector, x, 2)]
    assert told == [("sea lion", "seal"), ("brick", "seal"), ("sea lion", "seal")]  # ties in order
    assert [next(iter(judge(detector, row[None], 2))).looks_like for row in x] == told
    assert next(one.looks_like for one in judge(detector, x, 9)) == ("sea lion", "seal", "brick")
    assert all(one.looks_like == () for one in judge(detector, x, 0))
    assert all(one.looks_like == () for one in judge(made(), x, 2))
    pytest.importorskip("torch")
    with using("torch-cpu"):
        assert [one.looks_like for one in judge(detector, x, 2)] == told
    assert NAMES._banks and not pickle.loads(pickle.dumps(NAMES))._banks
    with pytest.raises(InputError, match="a row of vectors a name, got 1 names"):
        Vocabulary(["one"], np.eye(2, dtype=np.float16))


@pytest.fixture(scope="module")
def whole(words_file):
    """A detector of the embedded encoder that has it all."""
    detector = outword.fit(["tabby cat", "pizza"], corpus=words_file, method="debiased", n_groups=3)
    names = ["cat", "wall"]
    detector.vocabulary = Vocabulary(names, detector.encoder.encode_texts(names).astype(np.float16))
    return with_cut(detector, fit_reference([0.5, 0.1, 0.2]), [0.5, 0.1, 0.2])


def test_all_of_it_is_saved(whole, tmp_path):
    whole.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    assert (back.basis, back.cut, back.rows) == ("reference", whole.cut, whole.rows)
    assert back.card.meanings == whole.card.meanings
    assert back.thresholds.reference_scores.tolist() == [0.1, 0.2, 0.5]
    assert back.vocabulary.names == ["cat", "wall"]
    assert back.fingerprint == whole.fingerprint
    assert back.explain(CAT) == whole.explain(CAT)


def test_what_does_not_agree_is_refused(whole, tmp_path):
    saved = saved_form(whole)
    change = lambda **new: replace(saved, **new)  # noqa: E731
    arrays = saved.arrays
    for wrong in (
        change(rows=saved.rows[1:]),
        change(vocabulary=[]),
        change(vocabulary=["cat"]),
        change(arrays={**arrays, "vocabulary": arrays["vocabulary"][:, :5]}),
        change(arrays={**arrays, "vocabulary": 0 * arrays["vocabulary"]}),
        change(arrays={**arrays, "vocabulary": arrays["vocabulary"].astype(np.float32)}),
        change(arrays={name: array for name, array in arrays.items() if name != "vocabulary"}),
        change(arrays={**arrays, "reference_scores": np.array([np.nan])}),
        change(arrays={**arrays, "reference_scores": np.array([1, 2])}),
        change(card={**saved.card, "meanings": saved.card["meanings"][:1]}),
        change(card={**saved.card, "cut": {}}),
    ):
        artifact.save(tmp_path / "d", Saved(**vars(wrong)))
        with pytest.raises(ArtifactError, match=r"cannot be understood|different number"):
            outword.load(tmp_path / "d")


def test_predict_gives_a_record_a_photo(whole, tmp_path, monkeypatch):
    (tmp_path / "bad.jpg").write_bytes(b"none")
    found = whole.predict([CAT, str(tmp_path / "bad.jpg"), WALL.read_bytes()])
    assert [(one.path, one.verdict, one.looks_like) for one in found] == [
        (str(CAT), "in", ("cat", "wall")),
        (str(tmp_path / "bad.jpg"), "", ()),
        ("photos[2]", "out", ("wall", "cat")),
    ]
    cat, bad, _ = found
    assert (cat.label, cat.kind, cat.p) == ("tabby cat", "", 0.25)
    assert (cat.basis, cat.threshold) == ("reference", whole.threshold)
    assert bad.error and bad.score is None
    assert [one.path for one in found[1:]] == [one.path for one in found][1:]
    assert whole.predict(CAT)[0] == cat and len(whole.predict([])) == 0
    table = found.to_pandas()
    assert table[table.verdict == "in"].path.tolist() == [str(CAT)]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="to_pandas needs pandas"):
        found.to_pandas()


def test_one_label_is_a_fine_list(tmp_path):
    found = outword.fit(["cat"])
    assert [(one.verdict, one.label, one.nearest) for one in found.predict([CAT, WALL])] == [
        ("in", "cat", "cat"),
        ("out", "", "cat"),
    ]
    assert found.explain(CAT).kind and found.cut.tpr > 0.9 and found.cut.fpr < 0.1
    found.save(tmp_path / "d")
    assert outword.load(tmp_path / "d").relabel(["brick wall"]).labels == ["brick wall"]
    with pytest.raises(InputError, match=r"^mcm gives every photo the same score\. hint: .* need two"):
        outword.fit(["cat"], method="mcm")  # 1 / 1 for any photo


@pytest.fixture(scope="module")
def reference():
    found = find_reference(get_encoder("mini"))
    rows = np.flatnonzero(np.array(found.sets) == "imagenet")[::4]
    names, wnids, sets = (tuple(of[i] for i in rows) for of in (found.names, found.wnids, found.sets))
    return Reference(found.vectors[rows], names, wnids, sets, "some")


def test_one_more_label_is_a_refit_with_it_and_without_its_kin_among_the_words(reference):
    detector = outword.fit(["tabby", "violin"], kinds="off")
    net, senses, x = nouns(), senses_of_things(), reference.vectors.astype(np.float32)
    rivals = {name: senses[name] for name in rival_names(detector.encoder)}
    found = pseudo_id(detector, x, reference.wnids)
    parents = {above for sense in rivals.values() for above in net.above(sense)}
    own = {net.wnid(rivals[word]): word for word in detector.wild if word in rivals and rivals[word] not in parents}
    photos = [row for row, wnid in enumerate(reference.wnids) if wnid in own]
    assert len(photos) == len(found)
    for place in (0, 30, 60):
        word = own[reference.wnids[photos[place]]]
        kin = {rivals[word], *net.above(rivals[word])}
        kept = [rivals.get(other) not in kin for other in detector.wild]
        more = detector.scorer.wild_[detector.wild.index(word)][None]
        again = Grounded(temperature=detector.scorer.temperature)
        again.fit(np.concatenate([detector.scorer.labels_, more]), detector.scorer.wild_[kept])
        assert found[place] == pytest.approx(again.score(x[photos[place]][None])[0], abs=1e-9)


def test_the_cut_leaves_out_what_shows_a_label(reference):
    dog = outword.fit(["dog"])
    cut = cut_by_reference(dog, reference)
    shown = np.array(are_below(reference.wnids, dog.card.meanings))
    scores = dog.scorer.score(reference.vectors[~shown].astype(np.float32))
    assert shown.sum() > 5 and cut.thresholds.reference_scores.tolist() == np.sort(scores).tolist()
    assert (cut.basis, cut.cut.n_reference, cut.cut.target_fpr) == ("reference", (~shown).sum(), 0.05)
    pseudo = pseudo_id(dog, reference.vectors[~shown].astype(np.float32), np.array(reference.wnids)[~shown].tolist())
    assert cut.threshold == min(reference_cut(scores), balanced_cut(scores, pseudo)) == reference_cut(scores)
    asked = cut_by_reference(dog, reference, 0.1).cut
    assert (asked.target_fpr, asked.fpr <= 0.1, asked.tpr) == (0.1, True, None)
    names = [*dict.fromkeys(reference.names)][:120]
    long = outword.fit(names).cut  # the balanced cut is the lower one
    assert long.target_fpr is None and long.tpr == pytest.approx(1 - long.fpr, abs=0.01) and long.fpr > 0.05
    few = Reference(*(of[:90] for of in (reference.vectors, reference.names, reference.wnids, reference.sets)), "few")
    assert cut_by_reference(dog, few).cut is dog.cut  # too few: the detector as it was


# photos that nobody named


def anything(n, rng):
    rows = rng.standard_normal((n, 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def strange():
    """A detector of three labels among 24 names, in directions that photos show by chance."""
    names = Vocabulary([f"name {number}" for number in range(24)], np.eye(24, dtype=np.float16))
    scorer = MaxLogit(temperature=0.1).fit(np.eye(24)[:3])
    detector = made(scorer, vocabulary=names)
    detector.labels = detector.rows = names.names[:3]
    return detector


def nameless(vectors):
    nothing = ("",) * len(vectors)
    return Reference(vectors, nothing, nothing, nothing, "nobody")


def test_p_holds_where_nobody_named_the_reference(strange):
    """Unrelated photos that look like a label are left out of the cut, and they are those with the highest scores."""
    rng, shares, before = np.random.default_rng(0), [], []
    for _ in range(20):
        cut = cut_by_reference(strange, nameless(anything(200, rng)))
        scores = cut.scorer.score(anything(200, rng))
        named, alike = cut.thresholds.reference_scores, cut.thresholds.alike_scores
        assert len(named) + len(alike) == 200 and 5 < len(alike) < 60
        before.append((np.array([p_values(scores, cut.thresholds.reference_scores)]) <= 0.05).mean())
        shares.append([(cut.thresholds.p_values(scores) <= share).mean() for share in (0.01, 0.05, 0.1)])
    assert (np.mean(shares, axis=0) <= [0.02, 0.06, 0.11]).all()
    assert np.mean(before) > 0.1


def test_a_share_that_was_asked_for_holds_without_names(strange):
    rng = np.random.default_rng(0)
    let_in = []
    for _ in range(20):
        cut = cut_by_reference(strange, nameless(anything(200, rng)), 0.05)
        let_in.append((cut.scorer.score(anything(200, rng)) >= cut.threshold).mean())
    assert np.mean(let_in) < 0.06
    assert cut.how_cut.endswith(
        f"200 unrelated photos, with {len(cut.thresholds.alike_scores)} without names that look like the labels"
    )
    rule = cut_by_reference(strange, nameless(anything(200, rng)))
    assert f", apart from {len(rule.thresholds.alike_scores)} without names" in rule.how_cut
    assert rule.with_threshold(by_hand(1.0)).how_cut == "set by hand"


def test_names_leave_nobody_out_by_looks(strange):
    vectors = anything(200, np.random.default_rng(0))
    named = Reference(vectors, ("brick",) * 200, ("",) * 200, ("",) * 200, "all are bricks")
    cut = cut_by_reference(strange, named)
    assert cut.thresholds.alike_scores is None and len(cut.thresholds.reference_scores) == 200
    assert cut.thresholds.counted_scores is cut.thresholds.reference_scores


def test_a_batch_has_no_p(strange):
    cut, like = cut_by_batch(strange, anything(300, np.random.default_rng(0)))
    assert 0 < like < 0.5 and cut.basis == "batch"
    assert cut.thresholds.p_values([0.0, 9.0]) is None and cut.thresholds.reference_scores is None
    assert [one.p for one in judge(cut, anything(3, np.random.default_rng(1)))] == [None] * 3
    assert cut.cut.fpr is None and cut.how_cut.endswith("how many unrelated photos get in is not known")


def test_photos_without_names_are_saved(whole, tmp_path):
    cut = with_cut(whole, fit_reference([0.5, 0.1, 0.2]), [0.5, 0.1, 0.2], [0.9, 0.7])
    assert cut.thresholds.p_values([0.6]).tolist() == [0.5] and whole.thresholds.p_values([0.6]).tolist() == [0.25]
    cut.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    assert back.thresholds.alike_scores.tolist() == [0.7, 0.9] and back.fingerprint == cut.fingerprint
    assert back.thresholds.p_values([0.6]).tolist() == [0.5]


def test_a_batch_that_an_older_version_saved_has_no_p_any_more(whole, tmp_path):
    old = {**asdict(fit_reference([0.5, 0.1, 0.2], method="batch")), "fpr": 0.05}
    saved = saved_form(whole)
    artifact.save(tmp_path / "d", replace(saved, card={**saved.card, "cut": old}))
    back = outword.load(tmp_path / "d")
    assert (back.basis, back.threshold) == ("batch", old["value"]) and back.thresholds.p_values([0.6]) is None
    back.save(tmp_path / "again")
    assert outword.load(tmp_path / "again").cut == back.cut


def test_words_that_compete_are_no_kin_of_a_label():
    made = outword.fit(["dog", "poodle"])
    assert not {"dog", "beagle", "toy poodle", "canine", "carnivore"} & set(made.wild[:1500])
    assert "wolf" in made.wild and len(made.wild) == 12_000
    meanings = {meaning.label: meaning for meaning in made.card.meanings}
    assert "toy poodle" in meanings["poodle"].kinds and "toy poodle" not in meanings["dog"].kinds
    assert [made.labels[i] for i in made.scorer.owners_[:2]] == ["dog", "dog"]
