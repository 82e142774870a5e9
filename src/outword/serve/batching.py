"""Images of many requests go through the model together: a batch at a time in each thread, a bounded queue."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Generic, TypeVar

from outword.serve.pools import Pool
from outword.serve.refusals import Refusal, busy

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Collects items into batches for a function that runs in threads of its own, one or several.

    While a batch is at work the next ones gather, so under load batches fill by themselves. An item that finds a
    thread idle waits for others only if they are on their way (`room` was made for them), and no longer than `wait`.

    `work` makes of at most `most` items as many results, or exceptions, in order, and is called from `threads` at a
    time; `wait` is in seconds; at most `queue` items may be on their way, waiting or at work.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result | Exception]],
        *,
        most: int,
        wait: float,
        queue: int,
        threads: int = 1,
    ) -> None:
        self.on_their_way = 0
        self._at_work = 0  # of those on their way
        self._work, self._most, self._wait, self._queue = work, most, wait, queue
        self._todo: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._arrived = asyncio.Event()
        self.pool = Pool(threads, "outword-model")
        self._speed = 0.0  # items a second, lately
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A block in which items are worked on; the server has answered what it accepted before it ends."""
        self._tasks = [asyncio.create_task(self._run()) for _ in range(self.pool.count)]
        yield
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.pool.close()

    @property
    def alive(self) -> bool:
        """Whether it was started and goes on."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    @contextmanager
    def room(self, count: int) -> Iterator[None]:
        """Make room for so many items until the block ends, or refuse them all."""
        if refusal := self.refusal(count):
            raise refusal
        self.on_their_way += count
        try:
            yield
        finally:
            self.on_their_way -= count

    def refusal(self, count: int = 1) -> Refusal | None:
        """Why there is no room for so many items, and when the queue will have been worked off; None if there is."""
        if self.on_their_way + count <= self._queue:
            return None
        seconds = math.ceil(self.on_their_way / self._speed) if self._speed else 1
        return busy(f"{self.on_their_way} images are waiting, and {self._queue} are the most", min(max(seconds, 1), 60))

    async def submit(self, item: Item) -> Result:
        """The result of an item; called within `room`. What is cancelled is left out of the next batches."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._todo.append((item, future))
        self._arrived.set()
        return await future

    async def _run(self) -> None:
        while True:
            if not (batch := await self._next_batch()):
                continue
            began = time.monotonic()
            self._at_work += len(batch)
            results = await self.pool.run(partial(self._attempt, [item for item, _ in batch]))
            speed = self._at_work / max(time.monotonic() - began, 1e-9)  # of all threads together
            self._at_work -= len(batch)
            self._speed = speed if not self._speed else 0.9 * self._speed + 0.1 * speed
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)

    def _attempt(self, items: Sequence[Item]) -> list[Result | Exception]:
        """Results of a batch; if it fails, of its items one by one, so that none suffers from another."""
        try:
            results = list(self._work(items))
            if len(results) != len(items):
                raise AssertionError(f"{len(results)} results for {len(items)} items")
            return [*results]
        except Exception as error:
            return [error] if len(items) == 1 else [self._attempt([item])[0] for item in items]

    async def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        """The oldest items that someone still waits for."""
        deadline: float | None = None
        while len(self._todo) < self._most:
            self._arrived.clear()
            patience = None
            if self._todo:
                deadline = deadline or time.monotonic() + self._wait
                patience = deadline - time.monotonic()
                if patience <= 0 or len(self._todo) + self._at_work >= self.on_their_way:
                    break
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), patience)
        taken = [self._todo.popleft() for _ in range(min(self._most, len(self._todo)))]
        return [(item, future) for item, future in taken if not future.done()]
