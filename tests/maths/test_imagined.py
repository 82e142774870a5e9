"""Imagined photos: the formula, values by hand, limits, what they reduce to, and what photos refine."""

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from outword.errors import OutwordError
from outword.maths import imagined
from outword.maths.imagined import FAMILIES, Imagination, Seen, Sight, imagined_cut, odds, refined, see
from outword.maths.methods import Grounded
from outword.maths.reference import balanced_cut, reference_cut
from outword.testing import planted_world

CLIP = FAMILIES["clip"]
T = 0.05


@pytest.fixture(scope="module")
def world():
    return planted_world(n_labels=7, n_wild=60, n_images=30)


@pytest.fixture(scope="module")
def made(world):
    return Imagination(world.labels, world.wild, T)


def slow_masses(labels, words, sight, photo, toward, z, chance, apart):
    """One photo by the formulas, in float64: unrelated, unrelated without a name, and of one more label."""
    texts = np.concatenate([labels, words])
    mean = texts.mean(axis=0)
    direction = (words[toward] - mean) / np.linalg.norm(words[toward] - mean)
    x = sight.gain * direction + sight.noise * z / np.sqrt(len(z))
    c = sight.level + sight.spread * chance
    h = [c + x @ (text - mean) / T for text in texts]
    assert np.mean(h) == pytest.approx(c)
    of_labels, of_words = h[: len(labels)], h[len(labels) :]
    left = [one for one, competes in zip(of_words, apart, strict=True) if competes]
    p, q, fewer = (np.log(np.sum(np.exp(some))) for some in (of_labels, of_words, left))
    own = of_words[toward]
    more = [np.log(np.exp(p) + np.exp(own)), fewer, max(*of_labels, own)]
    return [p, q, max(of_labels)], [p, fewer, max(of_labels)], more


def test_the_formulas(world, made):
    sight = Sight(0.3, 0.8, 4.0, 0.5)
    found = made.masses(sight)
    rng = np.random.default_rng([0, 0])
    shown = np.resize(rng.permutation(60), imagined.PHOTOS)
    noise = rng.standard_normal((imagined.PHOTOS, world.labels.shape[1]))
    chance = rng.standard_normal(imagined.PHOTOS)
    centred = world.wild - np.concatenate([world.labels, world.wild]).mean(axis=0)
    centred = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    for i in (0, 1, 47, 48, 1199):
        apart = centred @ centred[shown[i]] <= imagined.ALIKE
        assert not apart[shown[i]]
        want = slow_masses(world.labels, world.wild, sight, i, shown[i], noise[i], chance[i], apart)
        got = found.unrelated[i], found.unrelated[imagined.PHOTOS + i], found.one_more[i]
        np.testing.assert_allclose(got, want, atol=2e-5)


def test_by_hand():
    # the mean of both texts is (.5, .5), a name's direction (-1, 1) / sqrt(2): .5 along it are .5 / sqrt(2) / .1 logits
    sight = Sight(gain=0.5, noise=1e-9, level=3.0, spread=0.0)
    own, other = 3 + 0.5 / np.sqrt(2) / 0.1, 3 - 0.5 / np.sqrt(2) / 0.1
    made = Imagination([[1.0, 0.0]], [[0.0, 1.0]], 0.1)
    found = made.masses(sight)
    np.testing.assert_allclose(found.unrelated[0], [other, own, other], atol=1e-5)
    np.testing.assert_allclose(found.one_more[0][[0, 2]], [np.logaddexp(own, other), own], atol=1e-5)
    np.testing.assert_allclose(made.label_masses(sight)[0, 0], [own, other, own], atol=1e-5)


def test_a_photo_of_length_one_scores_as_any_other(world, made):
    # h(v) = x.t / T for a unit vector x whose level is x.m / T
    photos, centre = made.photos, np.concatenate([world.labels, world.wild]).mean(axis=0)
    texts = np.concatenate([world.labels, world.wild]) - centre
    vectors = np.linalg.lstsq(texts / T, (0.2 * photos.toward[0] + photos.beside[0]).astype(np.float64), rcond=None)[0]
    length = np.linalg.norm(vectors)
    x = vectors / length
    sight = Sight(0.2 / length, 1 / length, x @ centre / T, 0.0)
    scorer = Grounded(temperature=T).fit(world.labels, world.wild)
    np.testing.assert_allclose(made.masses(sight).unrelated[0], scorer.masses([x])[0], atol=1e-4)
    assert scorer.combine(made.masses(sight).unrelated)[0] == pytest.approx(scorer.score([x])[0], abs=1e-4)


def test_without_noise_photos_of_a_name_are_one(made):
    sight = Sight(0.2, 1e-9, 5.0, 0.0)
    found = made.masses(sight).one_more
    np.testing.assert_allclose(found[:60], found[60:120], atol=1e-5)  # 60 names, again and again
    labels = made.label_masses(sight)
    np.testing.assert_allclose(labels, np.broadcast_to(labels[:, :1], labels.shape), atol=1e-5)


def test_without_gain_it_does_not_matter_what_a_photo_shows(made):
    sight = Sight(1e-9, 1.0, 5.0, 1.0)
    labels = made.label_masses(sight)  # each label has the same noise
    levels = labels[:, :, 2] - labels[:1, :, 2]  # and another level
    np.testing.assert_allclose(labels - levels[:, :, None], np.broadcast_to(labels[:1], labels.shape), atol=1e-4)


def test_the_level_moves_all_alike(made):
    low, high = (made.masses(Sight(0.2, 1.0, level, 0.5)) for level in (3.0, 5.0))
    np.testing.assert_allclose(high.unrelated - low.unrelated, 2.0, atol=1e-9)
    np.testing.assert_allclose(high.one_more - low.one_more, 2.0, atol=1e-9)


def test_more_gain_tells_more(made):
    gaps = []
    for gain in (0.05, 0.2, 0.8):
        found = made.masses(Sight(gain, 1.0, 5.0, 0.0))
        gaps.append((found.one_more - found.unrelated[: imagined.PHOTOS]).mean(axis=0))
    assert (np.diff([gap[0] - gap[1] for gap in gaps]) > 0.5).all()


def test_kin_that_is_told_does_not_compete(world):
    kin = np.zeros((60, 60), bool)
    kin[:, :50] = True
    made = Imagination(world.labels, world.wild, T, kin=kin)
    alone = Imagination(world.labels, world.wild, T)
    logits = made.photos.logits(CLIP).astype(np.float64)[:, 7 + 50 :]
    left = made.masses(CLIP).one_more[:, 1] - made.photos.levels(CLIP)
    assert (left <= np.log(np.exp(logits).sum(axis=1)) + 1e-4).all()
    assert (left < alone.masses(CLIP).one_more[:, 1] - made.photos.levels(CLIP)).all()
    np.testing.assert_array_equal(made.masses(CLIP).unrelated[:1200], alone.masses(CLIP).unrelated[:1200])


def test_only_names_are_shown(world):
    made = Imagination(world.labels, world.wild, T, names=[3, 5])
    sharp = made.photos.logits(Sight(50.0, 1e-9, 0.0, 0.0))
    assert set(sharp.argmax(axis=1) - 7) == {3, 5}


def test_rows_of_a_label_are_shown_in_turn(world, made):
    owners = [0, 0, 1, 1, 1, 2, 2]
    sight = Sight(0.5, 1e-9, 0.0, 0.0)
    found, rows = made.label_masses(sight, owners), made.label_masses(sight)
    assert found.shape == (3, 64, 3)
    np.testing.assert_allclose(found[1, :4], rows[[2, 3, 4, 2], 0], atol=1e-5)
    np.testing.assert_array_equal(made.label_masses(CLIP, range(7)), made.label_masses(CLIP))


def test_the_same_bits_with_any_number_of_threads(world):
    def bits():
        made = Imagination(world.labels, world.wild, T, seed=3)
        found = made.masses(made.refined(CLIP, world.id_images))
        return found.unrelated.tobytes() + found.one_more.tobytes() + made.label_masses(CLIP).tobytes()

    several = bits()
    with threadpool_limits(1):
        assert bits() == several
    assert bits() == several


def test_photos_refine_by_the_same_bits_in_any_order_and_company():
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((700, 96))
    made, photos = Imagination(texts[:7], texts[7:], T), rng.standard_normal((90, 96)).astype(np.float32)
    wanted = made.see(photos)
    assert made.see(photos[rng.permutation(90)]) == wanted
    with threadpool_limits(1):
        assert made.see(np.asfortranarray(photos[::-1])) == wanted
    alone = [made.see(photo[None]).lead for photo in photos]
    assert wanted.lead == math.fsum(alone) / 90


def test_another_seed_is_another_photo(world, made):
    other = Imagination(world.labels, world.wild, T, seed=1)
    assert not np.array_equal(other.masses(CLIP).one_more, made.masses(CLIP).one_more)


# what photos show


def test_moments_by_hand():
    found = see(np.concatenate([[[11.0, 7.0]], [[9.0, 9.0]]]))
    assert found == Seen(photos=2, level=9.0, lead=1.0, tenth=2.0)
    twenty = see([np.arange(20.0)])
    assert (twenty.lead, twenty.tenth) == (9.5, 9.0)


@pytest.mark.parametrize("true", [(0.8, 1.0), (0.5, 0.5), (2.0, 2.5)])
def test_moments_say_gain_and_noise(true):
    rng = np.random.default_rng(5)
    texts = rng.standard_normal((400, 32)) + 2
    made, other = (Imagination(texts[:10], texts[10:], 0.05, seed=seed) for seed in (0, 1))
    gain, noise = true
    found = made.moments(see(other.photos.logits(Sight(gain, noise, 0.0, 0.0))))
    np.testing.assert_allclose(found, true, rtol=0.15)
    assert made.moments(see(made.photos.logits(Sight(gain, noise, 9.0, 1.0))[:300])) == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize("seen", [Seen(1, 0.0, 3.0, 3.0), Seen(1, 0.0, 3.0, 0.0), Seen(1, 0.0, 0.0, 0.0)])
def test_moments_that_no_sight_has_give_one_at_the_end(made, seen):
    gain, noise = made.moments(seen)
    assert 0.04 < gain / noise < 10.1
    assert noise > 0


def test_no_photo_leaves_the_constants(made):
    assert refined(CLIP, None, 9.0, 9.0) is CLIP
    assert made.refined(CLIP, np.zeros((0, 16))) is CLIP


def test_refined_by_hand():
    sight = refined(CLIP, Seen(100, 20.0, 0.0, 0.0), gain=0.8, noise=4.0)
    assert sight.level == pytest.approx((2 * 18.7 + 100 * 20) / 102)
    assert (sight.gain, sight.noise) == (pytest.approx(np.sqrt(0.2 * 0.8)), pytest.approx(2.0))
    assert sight.spread == CLIP.spread


def test_nothing_jumps_and_many_photos_decide():
    seen = [refined(CLIP, Seen(n, 25.0, 0.0, 0.0), 0.4, 3.0) for n in range(1, 400)]
    for name, most in (("gain", 0.0025), ("noise", 0.025), ("level", 1.1)):
        steps = np.diff([getattr(one, name) for one in seen])
        assert (steps >= 0).all()
        assert steps.max() < most
    last = refined(CLIP, Seen(10**9, 25.0, 0.0, 0.0), 0.4, 3.0)
    assert (last.gain, last.noise, last.level) == (pytest.approx(0.4), pytest.approx(3.0), pytest.approx(25.0))


def test_the_page_has_the_constants():
    page = (Path(__file__).resolve().parents[2] / "docs/imagined.md").read_text()
    for name, sight in FAMILIES.items():
        cells = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |")).split("|")[3:7]
        assert [float(cell) for cell in cells] == [sight.gain, sight.noise, sight.level, sight.spread]


# cuts and odds


def test_the_lower_of_both_cuts():
    near, far = np.arange(100.0), np.arange(1000.0, 1100.0)
    assert imagined_cut(near, far) == reference_cut(near) < balanced_cut(near, far)
    assert imagined_cut(near, near + 10) == balanced_cut(near, near + 10) < reference_cut(near)


def test_odds_of_labels_that_are_seen_and_one_that_is_not():
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((300, 48))
    texts[1:100] = texts[0] + 0.01 * rng.standard_normal((99, 48))  # words that are nearly the label
    labels, words = texts[[0, 299]], texts[1:299]
    made = Imagination(labels, words, T)
    scorer, sight = Grounded(temperature=T).fit(labels, words), Sight(0.8, 1.2, 5.0, 0.0)
    found = made.masses(sight)
    cut = imagined_cut(scorer.combine(found.unrelated), scorer.combine(found.one_more))
    hidden, clear = odds([scorer.combine(one) for one in made.label_masses(sight)], cut)
    assert clear > 0.85
    assert hidden < 0.5


def test_odds_slowly():
    scores, cut = np.random.default_rng(1).standard_normal((4, 7)), 0.3
    means = [sum(row) / 7 for row in scores]
    middle = sum(means) / 4
    within = [sum((s - mean) ** 2 for s in row) / 7 for row, mean in zip(scores, means, strict=True)]
    shift = math.sqrt(sum(within) / 4)
    slow = []
    for row, mean in zip(scores, means, strict=True):
        nearer = [s - 0.3 * (mean - middle) for s in row]
        slow.append(sum(NormalDist(cut, shift).cdf(s) for s in nearer) / 7)
    np.testing.assert_allclose(odds(scores, cut), slow, rtol=1e-12)
    np.testing.assert_allclose(odds(100 * scores, 100 * cut), slow, rtol=1e-12)  # whatever the scale


def test_odds_of_one_label_by_hand():
    np.testing.assert_allclose(odds([[-1.0, 1.0]], 0.0), [0.5], rtol=1e-12)
    assert odds([[1.0, 3.0]], 1.0)[0] == pytest.approx((0.5 + 0.97725) / 2, abs=1e-5)


def test_odds_of_labels_whose_photos_all_score_the_same_are_a_count():
    np.testing.assert_array_equal(odds([[1.0, 1.0], [3.0, 3.0]], 2.0), [0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda y, u: Imagination(y, u, 0.0), "temperature must be a number"),
        (lambda y, u: Imagination(y, u[:, :3]), "words must have"),
        (lambda y, u: Imagination(y, u, names=[60]), "names must be places from 0 to 59, got 60 to 60"),
        (lambda y, u: Imagination(y, u, names=[]), "names must be places of words"),
        (lambda y, u: Imagination(y, u, kin=np.zeros((2, 60), bool)), "kin must be an array of flags of shape"),
        (lambda y, u: Imagination(y, u, seed=-1), "seed must be"),
        (lambda y, u: Imagination(0 * y + 1, 0 * u + 1), "labels and words must have different vectors"),
        (lambda *_: see(np.zeros((0, 3))), "logits must be of one photo at least"),
        (lambda *_: Sight(0.0, 1.0, 0.0, 0.0), "gain must be a number above 0, got 0.0"),
        (lambda *_: Sight(0.1, 1.0, 0.0, -1.0), "spread must be a number of at least 0, got -1.0"),
        (lambda *_: Sight(0.1, 1.0, np.nan, 0.0), "level must be a number"),
    ],
)
def test_what_is_refused(world, make, says):
    with pytest.raises(OutwordError, match=says):
        make(world.labels, world.wild)
