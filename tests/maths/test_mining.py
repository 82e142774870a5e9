"""Miners: golden arrays, a slow reference, a value by hand, limits, ties, blocks."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from helpers.reference import neighbour_distance_sums, rep
from helpers.reference_labels import conjugated_order
from outword.errors import InputError, ParameterError
from outword.maths.kernels.numpy_mining import neighbour_density
from outword.maths.numerics import unit_rows
from outword.mining import MINERS, Conjugated, Density, Every, Quantile, Random
from outword.testing import check_miner, planted_world

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "mining_1500.npz")
TEXT, ALPHA, N_NOUNS = GOLDEN["text"], int(GOLDEN["alpha"]), int(GOLDEN["n_nouns"])


@pytest.mark.parametrize("name", MINERS)
def test_public_checks(name):
    check_miner(MINERS[name]())


def test_golden_rep():
    np.testing.assert_allclose(Density(alpha=ALPHA).rep(TEXT), GOLDEN["paper_rep"], atol=1e-9)


def test_golden_released_ranking_with_quotas():
    miner = Density(alpha=ALPHA, preset="released")
    np.testing.assert_allclose(-miner.rep(TEXT), GOLDEN["released_log_density"], atol=1e-9)
    key = GOLDEN["released_log_density"]
    chosen = miner.select(TEXT, adjectives=np.arange(len(TEXT)) >= N_NOUNS)
    nouns, adjectives = int(0.23 * N_NOUNS), int(0.13 * (len(TEXT) - N_NOUNS))
    assert len(chosen) == nouns + adjectives
    np.testing.assert_array_equal(chosen[:nouns], np.argsort(key[:N_NOUNS], kind="stable")[:nouns])
    np.testing.assert_array_equal(chosen[nouns:], N_NOUNS + np.argsort(key[N_NOUNS:], kind="stable")[:adjectives])


def test_rep_equals_the_formula_as_printed():
    words = unit_rows(TEXT[:80])
    np.testing.assert_allclose(Density(alpha=7).rep(words), rep(words, 7), rtol=1e-9)


def test_rep_by_hand():
    # distances on the circle: |a-b|^2 = 2 - 2 cos; words at 0, 60 and 180 degrees, one neighbour each: 1, 1 and 3
    words = [[1.0, 0.0], [0.5, np.sqrt(0.75)], [-1.0, 0.0]]
    np.testing.assert_allclose(Density(alpha=1).rep(words), -np.log([1, 1, 3]), atol=1e-12)
    np.testing.assert_array_equal(Density(alpha=1, size=9).select(words), [0, 1, 2])  # a tie goes by index


def test_all_neighbours_is_the_limit():
    words = unit_rows(TEXT[:50])
    total = (2 - 2 * words @ words.T).sum(axis=1)
    np.testing.assert_allclose(Density(alpha=49).rep(words), -np.log(total))


def test_fewer_words_than_neighbours():
    words = unit_rows(TEXT[:20])
    for preset in ("paper", "released"):
        few, all_others = (Density(alpha=a, preset=preset).rep(words) for a in (100, 19))
        np.testing.assert_array_equal(few, all_others)
    assert Density().select(words[:1]).tolist() == [0]


def test_released_distance_reduces_to_the_papers_on_unit_rows():
    words = unit_rows(TEXT[:60])
    released = np.exp(-Density(alpha=1, preset="released").rep(words))
    nearest = neighbour_distance_sums(words, 1)
    np.testing.assert_allclose(
        released, np.sqrt(nearest * np.finfo(float).eps), rtol=1
    )  # self, clipped to eps, is one of two


@pytest.mark.parametrize("block", [1, 7, 64, 5000])
def test_blocks_change_nothing(block):
    whole = neighbour_distance_sums(unit_rows(TEXT), ALPHA)
    np.testing.assert_allclose(neighbour_density(TEXT, ALPHA, block=block), whole, rtol=1e-12)


def test_equal_words_are_no_trouble_and_ties_go_by_index():
    words = np.repeat(unit_rows(TEXT[:5]), 40, axis=0)
    chosen = Density(alpha=10, size=200).select(words)
    np.testing.assert_array_equal(chosen, np.arange(200))


def test_the_ranking_does_not_depend_on_the_order_of_the_corpus():
    order = np.random.default_rng(0).permutation(len(TEXT))
    first, second = Density(alpha=20, size=300).select(TEXT), Density(alpha=20, size=300).select(TEXT[order])
    np.testing.assert_array_equal(order[second], first)


def test_memory_stays_within_a_block():
    words = np.random.default_rng(0).standard_normal((6000, 64)).astype(np.float32)
    tracemalloc.start()
    neighbour_density(words, 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # a 6000 x 6000 matrix would be 288 MB; at 70,000 words this grows to about 150 MB


def test_progress_reaches_the_end():
    for miner in (Density(alpha=5), Density(alpha=5, preset="released"), Quantile(), Conjugated()):
        seen = []
        miner.select(TEXT, labels=TEXT[:3], progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1] == (len(TEXT), len(TEXT))


def test_quantile_by_hand_and_its_limits():
    words, labels = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0]]
    # cosines: (1, 0), (0, 1), (.6, .8); the median is .5, .5, .7
    np.testing.assert_allclose(Quantile(quantile=0.5).closeness(words, labels), [0.5, 0.5, 0.7])
    np.testing.assert_allclose(Quantile(quantile=1.0).closeness(words, labels), [1, 1, 0.8])
    np.testing.assert_array_equal(Quantile(quantile=0.5, share=1.0).select(words, labels=labels), [0, 1, 2])
    chosen = Quantile(quantile=1.0, share=1.0).select(words, labels=labels, adjectives=[True, False, False])
    np.testing.assert_array_equal(chosen, [2, 1, 0])  # nouns first, farthest first


def test_quantile_agrees_with_numpy_on_one_matrix():
    world = planted_world()
    closeness = np.quantile(world.wild @ world.labels.T, 0.95, axis=1)
    expected = np.argsort(closeness, kind="stable")[: int(0.15 * len(world.wild))]
    np.testing.assert_array_equal(Quantile().select(world.wild, labels=world.labels), expected)


def test_conjugated_by_hand():
    words, labels = [[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    # cosines: (1, 0, 0), (.8, .6, -.6), (.6, .8, -.8); medians 0, .6, .6; largest 1, .8, .8
    np.testing.assert_allclose(Quantile(quantile=0.5).closeness(words, labels), [0, 0.6, 0.6])
    np.testing.assert_allclose(Conjugated(quantile=0.5).closeness(words, labels), [1, 0.6, 0.6])  # 1 > .95
    np.testing.assert_array_equal(Conjugated(quantile=0.5, share=1.0).select(words, labels=labels), [1, 2, 0])
    np.testing.assert_array_equal(Conjugated(quantile=0.5, share=0.7).select(words, labels=labels), [1, 2])
    below = Conjugated(quantile=0.5, share=1.0, guard=0.79)
    np.testing.assert_array_equal(below.select(words, labels=labels), [0, 1, 2])  # all are guarded: their own order


def test_a_guard_of_one_is_the_quantile_rule_even_for_words_that_are_labels():
    world = planted_world()
    words = np.concatenate([world.labels * 3.7, world.wild])  # the lengths make cosines of 1 and a little more
    adjectives = np.arange(len(words)) % 4 == 0
    ours, theirs = Conjugated(guard=1.0, share=0.9), Quantile(share=0.9)
    np.testing.assert_array_equal(ours.closeness(words, world.labels), theirs.closeness(words, world.labels))
    np.testing.assert_array_equal(
        ours.select(words, labels=world.labels, adjectives=adjectives),
        theirs.select(words, labels=world.labels, adjectives=adjectives),
    )


@pytest.mark.parametrize("guard", [0.3, 0.5, 0.95])
def test_conjugated_equals_the_rule_word_by_word(guard):
    world = planted_world(n_labels=9, n_wild=80, dim=12)
    words = np.concatenate([world.labels, world.wild])
    found = Conjugated(share=1.0, guard=guard).select(words, labels=world.labels)
    np.testing.assert_array_equal(found, conjugated_order(words, world.labels, 0.95, guard))


def test_conjugated_does_not_depend_on_blocks(monkeypatch):
    world = planted_world(n_labels=9, n_wild=80, dim=12)
    miner = Conjugated(guard=0.4)
    whole = miner.closeness(world.wild, world.labels)
    monkeypatch.setattr("outword.maths.mining.quantile.CELLS", 30)  # three words at a time
    np.testing.assert_allclose(miner.closeness(world.wild, world.labels), whole, rtol=1e-12)


def test_every_word_is_kept_in_order():
    np.testing.assert_array_equal(Every().select(TEXT[:7], labels=TEXT[:2], adjectives=[True] * 7), np.arange(7))


def test_random_is_seeded():
    words = np.ones((50, 2))
    first = Random(size=10, seed=1).select(words)
    np.testing.assert_array_equal(first, Random(size=10, seed=1).select(words))
    assert not np.array_equal(first, Random(size=10, seed=2).select(words))


@pytest.mark.parametrize(
    ("miner", "message"),
    [
        (Density(alpha=0), "alpha must be a whole number"),
        (Density(alpha=2.5), "alpha must be a whole number"),
        (Density(alpha=5, size=0), "size must be"),
        (Density(alpha=5, preset="mine"), "preset must be"),
        (Density(alpha=5, preset="released", noun_share=0), "noun_share must be"),
        (Quantile(quantile=2), "quantile must be"),
        (Quantile(share=0), "share must be"),
        (Random(size=True), "size must be"),
        (Conjugated(guard=0), "guard must be above 0 and at most 1, got 0"),
        (Conjugated(guard=1.5), "guard must be"),
        (Conjugated(quantile=2), "quantile must be"),
    ],
)
def test_bad_parameters(miner, message):
    with pytest.raises(ParameterError, match=message):
        miner.select(TEXT, labels=TEXT[:2])


def test_bad_input():
    with pytest.raises(InputError, match="labels must be given"):
        Quantile().select(TEXT)
    with pytest.raises(InputError, match="labels must be given"):
        Conjugated().select(TEXT)
    with pytest.raises(ParameterError, match="one entry a word"):
        Quantile().select(TEXT, labels=TEXT[:2], adjectives=[True])
    with pytest.raises(InputError, match="words must be a two-dimensional"):
        Density().rep([1.0, 2.0])
