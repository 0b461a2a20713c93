"""Virtual time: the order of events in the simulated world, and the event loops of its workers.

Each worker has an event loop of its own, which runs only when the world runs it. So a worker can freeze (its loop is
not run), end at once (it is never run again), and have a wall clock of its own, while all share one time.
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import itertools
import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.simulated.worker import Worker

SECOND_US = 1_000_000
TOO_MANY_TURNS = 20_000  # of one loop at one instant: something spins


class World:
    """The time, and the events that are planned.

    Attributes:
        now_us: the brokers' clock, microseconds since 1970; the true time.
        running: the worker whose loop is being run, None between turns.
    """

    def __init__(self, seed: int, start_at_us: int) -> None:
        self.now_us = start_at_us
        self.chance = random.Random(f"world {seed}")
        self.workers: list[Worker] = []
        self.running: Worker | None = None
        self._start_at_us = start_at_us
        self._planned: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    @property
    def monotonic_seconds(self) -> float:
        """The monotonic clock, the same for all."""
        return (self.now_us - self._start_at_us) / SECOND_US

    def at(self, at_us: int, action: Callable[[], None]) -> None:
        """Plan something; events of one instant happen in the order of planning."""
        heapq.heappush(self._planned, (max(at_us, self.now_us), next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Plan something for later."""
        self.at(self.now_us + int(seconds * SECOND_US), action)

    def run_until(self, end_us: int) -> None:
        """Let time pass."""
        while (next_us := self._next_us()) <= end_us:
            self.now_us = max(self.now_us, next_us)
            while self._planned and self._planned[0][0] <= self.now_us:
                heapq.heappop(self._planned)[2]()
            for worker in list(self.workers):
                if worker.is_running and self._start_at_us + worker.loop.next_us() <= self.now_us:
                    self._let_run(worker)
        self.now_us = end_us

    def _next_us(self) -> int:
        next_us = self._planned[0][0] if self._planned else 1 << 62
        for worker in self.workers:
            if worker.is_running:
                next_us = min(next_us, self._start_at_us + worker.loop.next_us())
        return next_us

    def _let_run(self, worker: Worker) -> None:
        """Run one worker's loop until it has nothing more to do at this instant."""
        self.running = worker
        elapsed_us = self.now_us - self._start_at_us
        if not worker.loop.turn(lambda: worker.is_running, elapsed_us):
            message = f"a worker spins at {self.now_us}"
            raise AssertionError(message)
        self.running = None


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without input and output, whose time is given and which is run turn by turn."""

    # What CPython's base class keeps to itself; there is no other way to run a loop turn by turn.
    _ready: collections.deque[asyncio.Handle]
    _scheduled: list[Any]
    _timer_cancelled_count: int
    _run_once: Callable[[], None]

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic_seconds = monotonic_seconds
        self._selector = self
        self._clock_resolution = 1e-6
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        """Give the virtual time."""
        return self._monotonic_seconds()

    def select(self, timeout: float | None) -> list[object]:
        """Replace a selector: nothing comes from outside, and nothing waits for it."""
        del timeout
        return []

    def _process_events(self, event_list: list[object]) -> None:
        """Nothing: there is no input and output."""

    def _write_to_self(self) -> None:
        """Nothing: the loop never sleeps."""

    def next_us(self) -> int:
        """When something is next to be done, microseconds of the loop's time; far away if nothing is."""
        if self._ready:
            return 0
        while self._scheduled and self._scheduled[0]._cancelled:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._timer_cancelled_count -= 1
        return math.ceil(self._scheduled[0]._when * SECOND_US) if self._scheduled else 1 << 61

    def turn(self, may_run: Callable[[], bool], now_us: int) -> bool:
        """Do what is to be done now, as long as it may run; `False` if that has no end."""
        asyncio._set_running_loop(self)
        try:
            for _ in range(TOO_MANY_TURNS):
                self._run_once()
                if not may_run() or not (self._ready or self.next_us() <= now_us):
                    return True
        finally:
            asyncio._set_running_loop(None)
        return False

    def bury(self) -> None:
        """End all tasks of a worker that has ended, so that the garbage collector finds none."""
        horizon = [self.time()]
        self._monotonic_seconds = lambda: horizon[0]
        for _ in range(200):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            horizon[0] += 10
            self.turn(lambda: False, 0)
        self.close()
