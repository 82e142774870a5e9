"""A threshold from imagined photos, and the photos that refine it, with a made-up encoder that has no reference."""

import re
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import outword
from conftest import PHOTOS
from helpers.contrastive import NAMES, Contrastive, colour, paint, photo, photo_vector, register
from outword.base.cache import cache_dir
from outword.base.odds import Odds
from outword.choosing.compare import Tried, applicable
from outword.choosing.photos import numbered
from outword.choosing.tune import OUTSIDE, tune_vectors
from outword.detector import artifact
from outword.detector.batches import REFINING, look
from outword.detector.imagining import can_be_imagined, imagination
from outword.detector.saving import saved_form
from outword.errors import ArtifactError
from outword.maths.imagined import FAMILIES, Sight
from outword.maths.thresholds import by_hand
from outword.vectors.id_images import IdImages
from outword.words.corpora import senses_of_things
from outword.words.labels import check_labels
from outword.words.nouns import nouns

LABELS = ["car", "boat", "chair", "lamp"]
KINDS = ["sports car", "convertible", "speedboat", "canoe", "rocking chair", "folding chair", "table lamp", "boat"]
OTHERS = ["tabby", "volcano", "banana", "wall clock", "violin", "castle", "goldfish", "daisy", "pizza", "zebra"]


def photos(names, each):
    return [photo(name, chance) for name in names for chance in range(each)]


def vectors(names, each):
    return np.stack([photo_vector(*colour(name, chance)) for name in names for chance in range(each)])


def inside(records):
    return np.mean([record.verdict == "in" for record in records])


def threshold_of(records):
    """The one threshold of records that rest on imagined photos."""
    (found,) = {(record.basis, record.threshold) for record in records if not record.error}
    assert found[0] == "imagined"
    return found[1]


def refined(detector, some):
    """The threshold that the photos of some vectors make."""
    return look(detector, some).applied(detector).threshold


@pytest.fixture(scope="module")
def made(own_cache):
    return outword.fit(LABELS, encoder=Contrastive())


@pytest.fixture
def known(monkeypatch):
    register(monkeypatch)


# what it is


def test_names_of_things_compete_and_the_threshold_is_imagined(made):
    assert (made.basis, made.card.corpus.name, made.method) == ("imagined", "things", "grounded")
    assert "imagined threshold" in repr(made) and made.how_cut == "from 1,200 photos imagined from names"
    (record,) = made.predict(photo("canoe"))
    assert (record.verdict, record.basis, record.label, record.kind) == ("in", "imagined", "boat", "canoe")
    assert re.search(r" % of imagined unrelated photos; [0-9.]+ % are needed$", record.fits) and 0 < record.p < 0.2


def test_photos_of_the_labels_are_in_and_others_are_out(made):
    own, other = photos(KINDS, 12), photos(OTHERS, 12)
    for detector in (made, made.fixed()):
        records = detector.predict(own + other)
        assert inside(records[: len(own)]) > 0.7
        assert inside(records[len(own) :]) < 0.3


def test_what_shows_a_label_or_its_kin_is_not_imagined(made):
    texts = imagination(made)
    names = {made.wild[place - len(made.rows)] for place in texts._shown.tolist()}
    net, visible = nouns(), senses_of_things()
    senses = {visible[label] for label in ("car", "boat", "chair")}
    assert not senses & {visible[name] for name in names}
    assert not [name for name in names if senses.intersection(net.above(visible[name]))]
    assert not [name for name in names if any(visible[name] in net.above(sense) for sense in senses)]
    assert len(names) > 1000


def test_of_phrases_and_of_few_names_none_are_imagined(tmp_path, own_cache):
    words = tmp_path / "words.txt"
    for lines in ([f"{how} {what}" for how in ("red", "old", "wet") for what in NAMES[:100]], OTHERS * 3):
        words.write_text("\n".join(lines))
        detector = outword.fit(LABELS, encoder=Contrastive(), corpus=words, miner="all")
        assert (detector.basis, detector.odds, can_be_imagined(detector)) == ("formula", (), False)
        assert {record.basis for record in detector.predict(photos(OTHERS, 1))} == {"formula"}
        assert {record.basis for record in detector.predict(photos(OTHERS + KINDS, 12))} == {"batch"}


def test_a_word_list_with_names_is_imagined_from(tmp_path, own_cache):
    words = tmp_path / "words.txt"
    words.write_text("\n".join([*NAMES[::12], *(f"red {name}" for name in NAMES[:100])]))
    detector = outword.fit(LABELS, encoder=Contrastive(), corpus=words, miner="all")
    names = {detector.wild[place - len(detector.rows)] for place in imagination(detector)._shown.tolist()}
    assert detector.basis == "imagined" and names < set(NAMES[::12])


def test_other_methods_have_no_imagined_threshold(own_cache):
    assert outword.fit(LABELS, encoder=Contrastive(), method="mcm").basis == "formula"


# scores, and the photos that are asked about


def test_scores_do_not_depend_on_what_else_is_asked(made):
    own, others = photos(KINDS, 2), photos(OTHERS, 8)
    alone = made.score(own).tolist()
    assert [record.score for record in made.predict(own)] == alone
    assert [record.score for record in made.predict(others + own)[len(others) :]] == alone
    assert threshold_of(made.predict(own)) != threshold_of(made.predict(others + own)) != made.threshold
    assert made.verdict(alone[0]) == ("in" if alone[0] >= made.threshold else "out")


def test_a_fixed_threshold_stays(made):
    fixed = made.fixed()
    assert fixed.fingerprint == made.fingerprint
    for some in (photos(OTHERS, 1), photos(KINDS, 9), [photo("zebra")]):
        assert threshold_of(fixed.predict(some)) == made.threshold
    assert not fixed.relabel(["dog"]).refines and made.relabel(["dog"]).refines


def test_no_photo_and_photos_that_cannot_be_read_leave_the_threshold(made, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no photo")
    bad = [tmp_path / "bad.png", "nope.jpg"]
    assert len(made.predict([])) == 0
    assert [record.threshold for record in made.predict(bad)] == [None, None]
    (there,) = paint(tmp_path / "some", [("canoe", 1)]).iterdir()
    records = made.predict([*bad, there])
    assert [bool(record.error) for record in records] == [True, True, False]
    assert threshold_of(records) == threshold_of(made.predict(there)) == refined(made, vectors(["canoe"], 2)[1:])


def test_the_threshold_moves_by_less_and_less(made):
    one = vectors(["canoe"], 1)

    def at(n):
        return refined(made, np.repeat(one, n, axis=0)) if n else made.threshold

    for n in (*range(12), 98, 99, 100, 198, 199, 200):
        assert abs(at(n + 1) - at(n)) < 2.5 / (n + 1) + 0.1, n
    assert 0.1 < abs(at(200) - made.threshold) < 4


def test_so_many_photos_refine_it_in_any_order(made, tmp_path):
    shown = [(name, chance) for name in KINDS + OTHERS for chance in range(14)]
    files = sorted(paint(tmp_path / "photos", shown).iterdir())
    assert len(files) > REFINING
    mixed = [files[place] for place in np.random.default_rng(0).permutation(len(files))]
    encoder = made.encoder
    before = encoder.seen
    wanted = threshold_of(made.predict(files))
    assert encoder.seen - before <= REFINING + len(files)
    assert threshold_of(made.predict(mixed)) == wanted
    some = photos(OTHERS, 3)
    before = encoder.seen
    wanted = threshold_of(made.predict(some))
    assert encoder.seen - before == len(some)  # none is encoded twice
    assert threshold_of(made.predict(some[::-1])) == wanted
    assert threshold_of(made.predict([*files[:5], *files[:3]])) == threshold_of(made.predict(files[:5]))


def test_threads_change_no_bit(made):
    some, bits = vectors(KINDS + OTHERS, 10), set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            again = outword.fit(LABELS, encoder=Contrastive())
            bits.add((again.fingerprint, again.odds, refined(again, some)))
    assert bits == {(made.fingerprint, made.odds, refined(made, some))}


# how an encoder sees


class Measured(Contrastive):
    """One that says how it sees."""

    name, fingerprint, sight = "measured", "ae" * 32, Sight(0.24, 0.96, 18.6, 5.0)


class Odd(Contrastive):
    """One of no known family: the demo's photos say how it sees."""

    name, fingerprint, temperature = "odd", "af" * 32, 0.013


def kept_sights():
    """Those in the cache, of encoders of other tests, too."""
    return {path.stem for path in (cache_dir() / "sight").glob("*")}


def test_an_encoder_has_its_own_sight_or_its_familys_or_that_of_the_demo(made, monkeypatch):
    assert made.thresholds.sight == FAMILIES["clip"]
    own = outword.fit(LABELS, encoder=Measured())
    assert own.thresholds.sight == Measured.sight and own.threshold != made.threshold
    warm = outword.fit(LABELS, encoder=Measured(), temperature=0.02)
    assert warm.thresholds.sight == Measured.sight.at(0.01, 0.02)
    encoder, before = Odd(), kept_sights()
    odd = outword.fit(LABELS, encoder=encoder)
    demo = sorted(PHOTOS.glob("*.jpg"))
    assert odd.basis == "imagined" and encoder.seen == len(demo)
    assert odd.thresholds.sight == imagination(odd).sight_of(encoder.encode_images(demo))
    assert kept_sights() - before == {Odd.fingerprint[:32]}
    monkeypatch.setattr(Odd, "encode_pixels", None)
    assert outword.fit(LABELS, encoder=Odd()).fingerprint == odd.fingerprint


def test_an_encoder_of_texts_alone_has_no_imagined_threshold(own_cache):
    class Texts(Odd):
        name, fingerprint = "texts", "b0" * 32

        def encode_pixels(self, pixels):
            raise NotImplementedError

    assert outword.fit(LABELS, encoder=Texts()).basis == "formula"


# what stays ahead of it


def test_a_calibrated_threshold_stays_ahead(made):
    by_number = made.with_threshold(by_hand(40.0))
    assert (by_number.basis, by_number.threshold, by_number.odds) == ("calibrated", 40.0, ())
    for some in (photos(OTHERS, 1), photos(KINDS, 2)):
        (found,) = {(record.basis, record.threshold, record.p) for record in by_number.predict(some)}
        assert found == ("calibrated", 40.0, None)
    again = by_number.with_threshold(None)
    assert (again.threshold, again.odds) == (made.threshold, made.odds)
    own = outword.fit(LABELS, encoder=Contrastive())
    with pytest.warns(UserWarning, match="16 photos leave the threshold uncertain"):
        own.calibrate(photos(KINDS, 2), tpr=0.9)
    assert own.basis == "calibrated" and threshold_is_still(own, own.threshold)


def threshold_is_still(detector, threshold):
    return {record.threshold for record in detector.predict(photos(OTHERS, 3))} == {threshold}


def test_a_reference_stays_ahead(tmp_path, own_cache):
    class Known(Contrastive):
        name, fingerprint = "known", "b1" * 32

    shown = [(name, chance) for name in NAMES[::10] for chance in range(2)]
    outword.reference(paint(tmp_path / "photos", shown), encoder=Known())
    detector = outword.fit(LABELS, encoder=Known())
    assert (detector.basis, detector.odds, detector.thresholds.sight) == ("reference", (), None)
    assert threshold_is_still(detector, detector.threshold)


# what it goes through


def test_a_saved_detector_says_the_same(made, tmp_path, known):
    made.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    assert (back.threshold, back.basis, back.how_cut) == (made.threshold, made.basis, made.how_cut)
    assert (back.odds, back.thresholds.sight) == (made.odds, made.thresholds.sight)
    assert back.fingerprint == made.fingerprint
    some = vectors(OTHERS, 3)
    assert refined(back, some) == refined(made, some)
    scores = made.scorer.score(some)
    assert back.thresholds.p_values(scores).tolist() == made.thresholds.p_values(scores).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"sight": None},
        {"sight": {"gain": -1, "noise": 1, "level": 1, "spread": 1}},
        {"sight": {"gain": 1}},
        {"odds": {"car": 0.5}},
        {"odds": dict.fromkeys(LABELS, 1.5)},
        {"cut": None},
    ],
)
def test_a_saved_detector_that_was_tampered_with(made, tmp_path, known, change):
    form = saved_form(made)
    card = {name: value for name, value in {**form.card, **change}.items() if value is not None or name == "cut"}
    artifact.save(tmp_path / "d", replace(form, card=card))
    with pytest.raises(ArtifactError, match="cannot be understood"):
        outword.load(tmp_path / "d")


def test_a_detector_from_before_loads_and_is_not_refined(made, tmp_path, known):
    """Before there were imagined photos, a detector of an encoder without a reference had no cut."""
    before = replace(made, thresholds=type(made.thresholds)())
    form = saved_form(before)
    assert not {"sight", "odds"} & set(form.card) and "imagined_scores" not in form.arrays
    before.save(tmp_path / "d")
    back = outword.load(tmp_path / "d")
    assert (back.basis, back.odds) == ("formula", ())
    assert back.predict(photos(OTHERS, 1))[0].basis == "formula"
    some = photos(KINDS + OTHERS, 13)
    wanted = before.predict(some)
    assert [*back.predict(some)] == [*wanted] and wanted[0].basis == "batch"


def test_a_detector_with_a_reference_is_saved_as_before(detector):
    """So a run that an earlier version began goes on: with a detector of its own, which has no odds."""
    form = saved_form(replace(detector, thresholds=replace(detector.thresholds, odds=())))
    assert not {"sight", "odds"} & set(form.card) and "imagined_scores" not in form.arrays
    assert "n_asked" not in form.card["cut"]


def test_other_labels_have_their_own_threshold_and_odds(made):
    other = made.relabel(["dog", "cat"])
    assert other.fingerprint == outword.fit(["dog", "cat"], encoder=Contrastive()).fingerprint
    assert [one.label for one in other.odds] == ["dog", "cat"]


def test_a_guard_and_an_explanation(made):
    guard = outword.Guard(lambda one: "asked", made)
    records = made.predict(photos(KINDS[:2] + OTHERS[:2], 1))
    checked = guard.check(photos(KINDS[:2] + OTHERS[:2], 1))
    assert [one.prediction for one in checked] == [*records]
    assert [one.answer for one in checked] == ["asked" if one.verdict == "in" else None for one in records]
    told = made.explain(photo("canoe"))
    assert (told.basis, told.threshold, told.cut) == ("imagined", made.threshold, made.how_cut)
    assert told.score == made.score([photo("canoe")])[0]


def test_tune_and_compare_take_part_with_it(made):
    own = IdImages(vectors(KINDS, 6), None, {}, [])
    others = numbered(OUTSIDE, vectors(OTHERS, 6))
    recipes = applicable([Tried("grounded"), Tried("mcm")], made.encoder, id_images=own)
    found = tune_vectors(recipes, check_labels(LABELS), own, others)
    assert found.detector.basis == "calibrated" and found.candidates[0].auroc > 0.8
    assert {one.name for one in found.candidates} == {"grounded", "mcm"}


# the odds of labels


def test_odds_are_told_of_each_label_in_its_order(made):
    assert [one.label for one in made.odds] == LABELS
    assert all(0.3 < one.share < 1 for one in made.odds)
    turned = outword.fit(LABELS[::-1], encoder=Contrastive())
    assert [one.label for one in turned.odds] == LABELS[::-1]


def test_a_label_that_the_encoder_confuses_has_worse_odds(own_cache):
    detector = outword.fit({"car": "", "golden thing": "goldfish"}, encoder=Contrastive())
    seen, hidden = (one.share for one in detector.odds)
    assert hidden < seen


@pytest.mark.parametrize(
    ("share", "word", "expected"),
    [
        (1.0, "good", "nearly all of its photos will be in"),
        (0.85, "good", "about 8 of 10 of its photos will be in"),
        (0.8499, "fair", "about 8 of 10 of its photos will be in"),
        (0.65, "fair", "about 6 of 10 of its photos will be in"),
        (0.6499, "poor", "about 6 of 10 of its photos will be in"),
        (0.35, "poor", "about 3 of 10 of its photos will be in"),
        (0.3499, "not seen", "about 3 of 10 of its photos will be in"),
        (0.0, "not seen", "hardly any of its photos will be in"),
    ],
)
def test_words_for_odds(share, word, expected):
    found = Odds("lamp", share)
    assert (found.word, found.expected, str(found)) == (word, expected, f"lamp: {word}, {expected}")
    assert found.is_weak == (word in ("poor", "not seen"))
