"""Decoding ahead of the encoder: threads load what comes next, and not more than there is room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import current_thread
from typing import TypeVar

from outword.base.ending import is_ending
from outword.errors import OutwordError
from outword.photos.budget import decoding
from outword.photos.decode import ROOM, Blob

Item = TypeVar("Item")
Result = TypeVar("Result")


def weight(item: object) -> int:
    """Bytes of a photo that is in memory before it is decoded."""
    return len(item.data) if isinstance(item, Blob) and isinstance(item.data, bytes) else 0


def decode_ahead(
    items: Iterable[Item],
    load: Callable[[Item], Result],
    *,
    workers: int,
    ahead: int,
    weigh: Callable[[Item], int] = weight,
) -> Iterator[tuple[Item, Result | OutwordError]]:
    """Run `load(item)` in `workers` threads ahead of the consumer and yield (item, result) in the order of `items`.

    An `OutwordError` is yielded in place of the result; any other exception ends the run. Items, which may be endless,
    are taken only as results are consumed: at most `ahead` are loading or loaded and not yet yielded, fewer where the
    bytes that they `weigh` come to more than `ROOM`.
    """
    decoding()  # a budget that cannot be is no fault of the first image, nor of all of them
    pending: deque[tuple[Item, Future[Result | OutwordError]]] = deque()
    held = 0
    with pool_of(workers, "outword-decode") as pool:
        for item in items:
            pending.append((item, pool.submit(attempt, load, item)))
            held += weigh(item)
            del item  # its file need not be in memory while the next one is read
            while len(pending) >= ahead or (held > ROOM and pending):
                first, future = pending.popleft()
                held -= weigh(first)
                yield first, future.result()
                del first, future
        while pending:
            first, future = pending.popleft()
            yield first, future.result()


def grouped(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Items in lists of `size`, the last as long as it comes: what a thread takes in one go."""
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group


@contextmanager
def pool_of(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """A pool for the length of a block, whose end waits for what has begun, and drops the rest.

    A block within a generator may be ended by the garbage collector in one of the pool's own threads, which cannot
    wait for itself. After Ctrl-C, or once a signal to end has come, nothing is waited for: it may hang.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    waits = True
    try:
        yield pool
    except KeyboardInterrupt:
        waits = False
        raise
    finally:
        waits = waits and not is_ending() and not current_thread().name.startswith(name)
        pool.shutdown(wait=waits, cancel_futures=True)


def attempt(load: Callable[[Item], Result], item: Item) -> Result | OutwordError:
    """What `load` makes of an item, or what is wrong with it."""
    try:
        return load(item)
    except OutwordError as error:
        return error.bare()


def sound(found: Result | OutwordError) -> Result:
    """What was loaded; an error of more than one item is raised."""
    if isinstance(found, OutwordError):
        raise found
    return found
