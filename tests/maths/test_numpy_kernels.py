"""The numpy backend: groups and neighbours against the float64 reference, on kind and on hostile input; its threads."""

import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from helpers.reference import neighbour_distance_sums
from outword.detectors import Debiased, NegLabel
from outword.errors import InputError
from outword.maths.kernels import numpy_blas, numpy_mining, threads
from outword.maths.kernels.numpy_blas import Bank
from outword.maths.kernels.numpy_mining import neighbour_density
from outword.maths.numerics import grouped_log_sum_exp, unit_rows
from outword.mining import Density

SIZES = {"one": [1], "ones": [1] * 7, "equal": [12] * 5, "ragged": [3, 1, 30, 7], "long": [5000, 2, 9000]}


@pytest.fixture
def two_threads(monkeypatch):
    """A pool of two threads, and BLAS with two of its own, on any machine."""
    pool = threads.ThreadPoolExecutor(2)
    monkeypatch.setattr(threads, "workers", lambda: 2)
    monkeypatch.setattr(numpy_blas, "workers", lambda: 2)
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    with threadpool_limits(2):
        yield
    pool.shutdown()


def world(sizes, n_images=150, dim=24, seed=0):
    """Unit images and vectors; some images are a vector, or its opposite, and the last vector equals the first."""
    rng = np.random.default_rng(seed)
    images = unit_rows(rng.standard_normal((n_images, dim)))
    vectors = unit_rows(rng.standard_normal((sum(sizes), dim)))
    vectors[-1], images[0] = vectors[0], vectors[0]
    images[1 % n_images] = -images[0]
    return images, vectors, np.cumsum([0, *sizes])


def expected(images, vectors, offsets, temperature):
    return grouped_log_sum_exp(images @ vectors.T / temperature, [slice(a, b) for a, b in pairwise(offsets)])


def largest_error(vectors, temperature, digit):
    """What `Bank` states."""
    reach = 1.0 if digit < 2**-50 else np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).max()
    return (vectors.shape[1] + 4) * digit * reach / temperature + (1e-14 if digit < 2**-50 else 1e-5)


def test_masses_by_hand():
    found = Bank(np.eye(2), [0, 2], temperature=0.5).log_masses(np.array([[0.6, 0.8]]))
    assert found[0, 0] == pytest.approx(np.log(np.exp(1.2) + np.exp(1.6)), abs=1e-15)


@pytest.mark.parametrize("temperature", [1.0, 0.01, 1e-3, 1e-6])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_masses_equal_the_reference(sizes, temperature):
    images, vectors, offsets = world(sizes)
    wanted = expected(images, vectors, offsets, temperature)
    exact = Bank(vectors, offsets, temperature=temperature).log_masses(images)
    assert (np.abs(exact - wanted) <= np.maximum(2 * largest_error(vectors, temperature, 2.0**-53), 1e-12)).all()
    np.testing.assert_allclose(exact, wanted, rtol=1e-10, atol=1e-12)
    quick = Bank(vectors, offsets, temperature=temperature, precision="float32").log_masses(images.astype(np.float32))
    assert quick.dtype == np.float64
    wanted = expected(images.astype(np.float32).astype(np.float64), vectors, offsets, temperature)
    assert np.abs(quick - wanted).max() <= largest_error(vectors, temperature, 2.0**-24)


def test_the_peak_of_labels_in_several_pieces():
    images, vectors, offsets = world([9000, 5])
    images[2] = vectors[8999]  # in the last piece of the labels
    found = Bank(vectors, offsets, temperature=0.01, peak=True).log_masses(images)
    np.testing.assert_allclose(found[:, 2], (images @ vectors[:9000].T).max(axis=1) / 0.01, rtol=1e-12)
    assert found[2, 2] == pytest.approx(100)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_equal_rows_and_sums_out_of_range(precision):
    # all logits are 1000 for the first image and -1000 for the second: e^1000 and e^-1000 are no float64
    vectors, images = np.tile([[0.6, 0.8]], (6, 1)), np.array([[0.6, 0.8], [-0.6, -0.8], [0.8, -0.6]])
    found = Bank(vectors, [0, 2, 6], temperature=1e-3, precision=precision).log_masses(images)
    wanted = np.array([[1000.0], [-1000.0], [0.0]]) + np.log([2, 4])
    np.testing.assert_allclose(found, wanted, atol=1e-11 if precision == "float64" else 1e-5)


def test_the_mean_taken_out_makes_float32_more_exact():
    rng = np.random.default_rng(0)
    vectors = unit_rows(rng.standard_normal(64) + 0.1 * rng.standard_normal((300, 64)))  # texts that are all alike
    images, offsets = unit_rows(rng.standard_normal((50, 64)) + 2 * vectors[0]), np.array([0, 100, 300])
    found = Bank(vectors, offsets, temperature=0.01, precision="float32").log_masses(images)
    plain = (images / 0.01).astype(np.float32) @ vectors.astype(np.float32).T
    wanted = expected(images, vectors, offsets, 0.01)
    naive = grouped_log_sum_exp(plain.astype(np.float64), [slice(0, 100), slice(100, 300)])
    assert np.abs(found - wanted).max() < 0.5 * np.abs(naive - wanted).max()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_blocks_threads_and_company_change_nothing(two_threads, monkeypatch, precision):
    images, vectors, offsets = world(SIZES["ragged"], n_images=300)
    bank = Bank(vectors, offsets, temperature=0.01, precision=precision)
    whole = bank.log_masses(images)
    most = 0 if precision == "float64" else 2 * largest_error(vectors, 0.01, 2.0**-24)  # float32: but for rounding
    found = [bank.log_masses(images, block=block) for block in (1, 7, 100)]
    found.append(np.concatenate([bank.log_masses(images[i : i + 1]) for i in range(300)]))
    monkeypatch.setattr(threads, "workers", lambda: 1)
    found.append(bank.log_masses(images))
    for other in found:
        assert np.abs(other - whole).max() <= most


def test_columns_in_several_products_give_the_same_masses(monkeypatch):
    images, vectors, offsets = world(SIZES["ragged"])
    whole = Bank(vectors, offsets, temperature=0.01).log_masses(images)
    monkeypatch.setattr(numpy_blas, "PIECE", 10)
    parts = Bank(vectors, offsets, temperature=0.01).log_masses(images)
    assert np.abs(parts - whole).max() <= 2 * largest_error(vectors, 0.01, 2.0**-53)


def test_no_images_have_no_masses():
    assert Bank(np.eye(3), [0, 1, 3]).log_masses(np.empty((0, 3))).shape == (0, 2)


def test_rows_are_dealt_evenly(two_threads):
    assert [s.start for s in numpy_blas.row_blocks(4000, 1024)] == [0, 1000, 2000, 3000]
    assert len(numpy_blas.row_blocks(numpy_blas.FEWEST_ROWS, 1024)) == 1


def clustered(n_words, dim=32, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((50, dim))[rng.integers(0, 50, n_words)] + 0.7 * rng.standard_normal((n_words, dim))


@pytest.fixture
def searched(monkeypatch):
    """Few words are enough for the search; the words that it left to the plain way."""
    monkeypatch.setattr(numpy_mining, "FEWEST_WORDS", 100)
    left, plain = [], numpy_mining._sums_over_all
    monkeypatch.setattr(
        numpy_mining, "_sums_over_all", lambda w, n, rows, alpha: left.extend(rows) or plain(w, n, rows, alpha)
    )
    return left


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_search_is_exact(searched, kind):
    words = clustered(3000).astype(kind)  # of many lengths
    found = neighbour_density(words, 20, block=256)
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), 20), rtol=1e-12)
    assert len(searched) < 30  # nearly all words were found


def test_blocks_and_threads_change_no_digit(searched, two_threads):
    words = clustered(2000)
    found = [neighbour_density(words, 20, block=block) for block in (100, 333, 2000)]
    decided = np.setdiff1d(np.arange(2000), searched)
    assert len(decided) > 1900
    for other in found[1:]:
        np.testing.assert_array_equal(other[decided], found[0][decided])


def test_words_of_opposite_sign_and_copies(searched):
    words = clustered(700)
    words = np.concatenate([words, -words, words, 3 * words])
    found = neighbour_density(words, 10, block=300)
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), 10), rtol=1e-12, atol=1e-12)


def test_equal_words_are_left_to_the_plain_way(searched):
    words = np.tile(clustered(1), (2100, 1))
    words[:50] = clustered(50, seed=1)
    found = neighbour_density(words, 10, block=500)
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), 10), atol=1e-12)
    assert set(range(50, 2100)) <= set(searched)


@pytest.mark.parametrize(("n_words", "alpha"), [(2, 1), (50, 49), (1000, 999), (1000, 1)])
def test_as_many_neighbours_as_there_are(searched, n_words, alpha):
    words = clustered(n_words)
    found = neighbour_density(words, alpha)
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), alpha), rtol=1e-12)


def test_two_words_by_hand():
    np.testing.assert_allclose(neighbour_density(np.array([[2.0, 0.0], [0.0, 5.0]]), 1), [2, 2])


def test_a_sample_that_misleads_costs_time_only(searched, monkeypatch):
    monkeypatch.setattr(numpy_mining, "_sample_rank", lambda size, share: 1)  # a cosine that too few words reach
    words = clustered(800)
    found = neighbour_density(words, 60)
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), 60), rtol=1e-12)
    assert len(searched) > 400


def test_a_zero_word_is_named():
    words = clustered(10)
    words[7] = 0
    with pytest.raises(InputError, match="words must have no zero row, row 7 is zero"):
        neighbour_density(words, 2)


def test_progress_rises_to_the_number_of_words(searched, two_threads):
    seen = []
    neighbour_density(clustered(900), 5, block=100, progress=lambda done, total: seen.append((done, total)))
    done = [d for d, _ in seen]
    assert done == sorted(done) and done[-1] == 900 and {t for _, t in seen} == {900} and 0 < done[0] < 900


def test_the_search_must_pay_and_fit():
    assert numpy_mining._worthwhile(70_000, 512, 100)
    assert not numpy_mining._worthwhile(1000, 512, 100)
    assert not numpy_mining._worthwhile(70_000, 512, 10_000)


def blas_threads():
    return [library.num_threads for library in threads._libraries()]


def test_an_error_drops_the_rest_and_frees_blas(two_threads):
    before, done = blas_threads(), []

    def work(item):
        if item == 3:
            raise KeyboardInterrupt
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        threads.parallel_for(work, range(2000))
    assert len(done) < 2000
    assert blas_threads() == before


def test_blas_is_held_by_the_first_and_freed_by_the_last(two_threads):
    before, inside = blas_threads(), []
    meet = threading.Barrier(2, timeout=30)

    def work(item):
        if item == 0:
            meet.wait()  # both are within
        inside.append(max(blas_threads()))

    def call():
        threads.parallel_for(work, range(20))

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert inside == [1] * 40
    assert blas_threads() == before


def test_one_blas_thread_means_one_worker(monkeypatch):
    monkeypatch.setattr(threads, "usable_cpus", lambda: 2)
    with threadpool_limits(2):
        assert threads.workers() == 2
    with threadpool_limits(1):
        assert threads.workers() == 1
        here = []
        threads.parallel_for(lambda item: here.append(threading.get_ident()), range(3))
    assert here == [threading.get_ident()] * 3


def test_a_call_within_a_call_does_not_wait_for_itself(two_threads):
    done = []
    threads.parallel_for(lambda item: threads.parallel_for(done.append, range(3)), range(4))
    assert sorted(done) == [0] * 4 + [1] * 4 + [2] * 4


def test_work_goes_on_when_the_main_thread_has_ended():
    code = """
import threading, time
from outword.maths.kernels import threads
threads.usable_cpus = lambda: 2
threads.blas.threads = lambda: 2
threads.parallel_for(lambda item: None, range(4))
def late():
    threading.main_thread().join()
    done = []
    threads.parallel_for(done.append, range(4))
    print(sorted(done))
threading.Thread(target=late).start()
"""
    found = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert found.stdout == "[0, 1, 2, 3]\n", found.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own():
    code = """
import os, warnings
import numpy as np
from outword.maths.kernels import threads
warnings.simplefilter("ignore")
threads.usable_cpus = lambda: 2
threads.blas.threads = lambda: 2
threads.parallel_for(lambda item: None, range(4))
child = os.fork()
if not child:
    done = []
    threads.parallel_for(done.append, range(4))
    os._exit(sorted(done) != [0, 1, 2, 3])
raise SystemExit(os.waitpid(child, 0)[1])
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.fixture
def released(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from baselines import released

    return released


def test_the_released_score_is_ours_without_noise(released):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y, u = (unit_rows(rng.standard_normal((n, 16))) for n in (20, 30, 40))
    groups = np.arange(40).reshape(4, 10)
    ours = Debiased(temperature=0.1, sigma=0.0, policy="paper").fit(labels=y, wild=u, groups=groups).score(x)
    np.testing.assert_allclose(released.score(x, y, u[groups], temperature=0.1), ours, rtol=1e-12)
    tensors = [torch.from_numpy(values) for values in (x, y, u[groups])]
    np.testing.assert_allclose(released.score(*tensors, temperature=0.1).numpy(), ours, rtol=1e-12)
    ours = NegLabel(temperature=0.1).fit(labels=y, wild=u, groups=groups).score(x)
    np.testing.assert_allclose(released.score(x, y, u[groups], tau=0, temperature=0.1), ours, rtol=1e-12)


def test_the_released_mining_is_our_preset(released):
    torch = pytest.importorskip("torch")
    words = clustered(300)
    ours = Density(alpha=50, preset="released").rep(words)
    found = released.rep(torch.from_numpy(words), 50).numpy()
    np.testing.assert_allclose(found, ours, atol=0.1)  # the log of a word's distance to itself is rounding
    assert np.corrcoef(found, ours)[0, 1] > 0.999
