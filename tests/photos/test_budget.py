"""Room for images that are being decoded: small ones side by side, large ones one at a time, neither starved."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PHOTOS, call
from outword.errors import ImageError, ParameterError
from outword.photos.budget import MB, SMALL, VARIABLE, Budget, decoding

LARGE = SMALL + MB


class Threads:
    """Threads that each hold some room until they are told to let it go."""

    def __init__(self, budget):
        self._budget, self._pool = budget, ThreadPoolExecutor(20)

    def hold(self, cost):
        inside, leave = threading.Event(), threading.Event()

        def run():
            with self._budget.room(cost):
                inside.set()
                assert leave.wait(30)

        self._pool.submit(run)
        return inside, leave


def waits(inside):
    return not inside.wait(0.05)


def test_small_ones_share_the_whole_budget_and_wait_beyond_it():
    threads = Threads(Budget(3 * SMALL))
    held = [threads.hold(SMALL) for _ in range(3)]
    assert all(inside.wait(30) for inside, _ in held)
    more, leave = threads.hold(1)
    assert waits(more)
    held[0][1].set()
    assert more.wait(30)
    for _, leave_one in [*held[1:], (more, leave)]:
        leave_one.set()


def test_large_ones_go_one_at_a_time_and_small_ones_pass_them():
    threads = Threads(Budget(10 * SMALL))
    first, leave_first = threads.hold(LARGE)
    assert first.wait(30)
    second, leave_second = threads.hold(LARGE)
    small, leave_small = threads.hold(SMALL)
    assert small.wait(30)
    assert waits(second)
    leave_first.set()
    assert second.wait(30)
    leave_second.set()
    leave_small.set()


def test_a_stream_of_small_ones_does_not_starve_a_large_one():
    budget = Budget(4 * SMALL)
    threads = Threads(budget)
    held = [threads.hold(SMALL) for _ in range(4)]
    assert all(inside.wait(30) for inside, _ in held)
    large, leave_large = threads.hold(3 * SMALL)
    until = time.monotonic() + 30
    while not budget._large and time.monotonic() < until:
        time.sleep(0.001)
    late, leave_late = threads.hold(MB)
    held[0][1].set()  # there is room for the late one now, but the large one came before it
    assert waits(late)
    for _, leave in held[1:]:
        leave.set()
    assert large.wait(30)
    assert late.wait(30)  # the share of the small ones
    leave_large.set()
    leave_late.set()


def test_room_comes_back_after_an_error():
    budget = Budget(2 * SMALL)
    for cost in (SMALL, SMALL, LARGE - MB, budget.most):
        with pytest.raises(ZeroDivisionError), budget.room(cost):
            raise ZeroDivisionError
    with budget.room(budget.most):
        pass


def test_what_never_fits_is_refused_with_the_limit_and_the_way_on():
    with pytest.raises(ImageError, match=r"takes 1,000 MB, over 816 MB.*OUTWORD_DECODE_MB"):
        Budget(880 * MB).room(1000 * MB).__enter__()


@pytest.mark.parametrize("given", ["much", "-5", "127", "1e3", "880 ", "٣٣٣", "9" * 5000])
def test_a_wrong_budget_is_told(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(ParameterError, match="OUTWORD_DECODE_MB must be a whole number from 128 on"):
        decoding.__wrapped__()


def test_a_wrong_budget_ends_a_run_before_a_row_is_written(monkeypatch, saved, tmp_path):
    monkeypatch.setenv(VARIABLE, "much")
    decoding.cache_clear()
    try:
        for out in ("rows.csv", "parts/"):
            assert (
                "OUTWORD_DECODE_MB must be"
                in call("score", saved, PHOTOS / "cat.jpg", "-o", f"{tmp_path}/{out}", code=2).stderr
            )
        assert not (tmp_path / "rows.csv").exists()
    finally:
        monkeypatch.undo()
        decoding.cache_clear()
    assert "1 in" in call("score", saved, PHOTOS / "cat.jpg", "-o", f"{tmp_path}/parts/").stderr


def test_the_budget_can_be_set(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    assert decoding.__wrapped__().most == 816 * MB
    monkeypatch.setenv(VARIABLE, "2000")
    assert decoding.__wrapped__().most == 1936 * MB
