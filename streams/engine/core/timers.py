"""Timers of one partition: a heap of wake-ups with lazy deletion.

A wake-up only says "look at this again then"; the caller that pops it decides whether something is due. So a timer that
moves or is cancelled needs no search: its old wake-up pops and has no effect. When a heap has doubled since it had no
outdated wake-ups, a new one is made from the wake-ups that are wanted, so flapping cannot make it grow without bound.
That goes on in slices, one with each push: with a hundred thousand wake-ups it would stop the event loop for 300 ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

Wakeup = tuple[int, bytes, str]
"""When (microseconds UTC), and two parts of a name: which aggregate, and what in it."""

Truth = Callable[[], Iterable[Iterable[Wakeup]]]
"""Lists the wake-ups that are wanted, aggregate by aggregate.

It takes the aggregates that exist when it is called, and each one's wake-ups when the iteration reaches it. Wake-ups
that an aggregate wants from then on have to be pushed.
"""

LEAN_FLOOR = 10_000  # below this many wake-ups a new heap saves nothing worth having


class TimerHeap:
    """Wake-ups in time order. In memory only: rows are the truth, and a takeover rebuilds it from them."""

    __slots__ = ("_former", "_heap", "_held", "_kept", "_lean", "_lean_floor", "_moving", "_truth")

    def __init__(self, truth: Truth, *, lean_floor: int = LEAN_FLOOR) -> None:
        """`truth` is called for each new heap; a heap of up to `lean_floor` wake-ups is never replaced."""
        self._truth = truth
        self._lean_floor = lean_floor
        self._heap: list[Wakeup] = []
        self._former: list[Wakeup] = []  # the heap that is being replaced, whole until the other one has everything
        self._moving: Iterator[Iterable[Wakeup]] | None = None
        self._lean = lean_floor
        self._held: set[bytes] = set()
        self._kept: list[Wakeup] = []

    def __len__(self) -> int:
        """Wake-ups held, outdated ones and copies included."""
        return len(self._heap) + len(self._former)

    def rebuild(self) -> None:
        """Make the heap from the truth, at once."""
        self._heap = [wakeup for part in self._truth() for wakeup in part]
        heapq.heapify(self._heap)
        self._replaced()

    def push(self, wakeup: Wakeup) -> None:
        """Add a wake-up; the same one may be added twice."""
        heapq.heappush(self._heap, wakeup)
        if self._moving is not None:
            self._move(self._moving)
        elif len(self._heap) > self._lean:
            self._former, self._heap = self._heap, []
            self._moving = iter(self._truth())

    def _move(self, parts: Iterator[Iterable[Wakeup]]) -> None:
        part = next(parts, None)
        if part is None:
            self._replaced()
            return
        for wakeup in part:
            heapq.heappush(self._heap, wakeup)

    def _replaced(self) -> None:
        self._former, self._moving = [], None
        self._lean = max(self._lean_floor, 2 * len(self._heap))

    def _earlier(self) -> list[Wakeup]:
        former, heap = self._former, self._heap
        return former if former and (not heap or former[0] < heap[0]) else heap

    def hold(self, aggregate: bytes) -> None:
        """Let an aggregate's wake-ups wait until `release`: it is in the middle of a step."""
        self._held.add(aggregate)

    def keeps(self, wakeup: Wakeup) -> bool:
        """Whether a wake-up that was taken has to wait; it comes back with `release`."""
        if wakeup[1] not in self._held:
            return False
        self._kept.append(wakeup)
        return True

    def release(self) -> None:
        """Let all aggregates' wake-ups come again: the step is whole."""
        self._held.clear()
        for wakeup in self._kept:
            self.push(wakeup)
        self._kept.clear()

    def next_at_us(self) -> int | None:
        """When the earliest wake-up is due, or `None`."""
        heap = self._earlier()
        return heap[0][0] if heap else None

    def due(self, now_us: int, limit: int) -> Iterator[Wakeup]:
        """Yield due wake-ups without taking them, in no order; looks at no more than `limit` wake-ups."""
        for heap in (self._heap, self._former):
            places = [0]
            while places and limit:
                limit -= 1
                place = places.pop()
                if place < len(heap) and heap[place][0] <= now_us:
                    yield heap[place]
                    places += (2 * place + 1, 2 * place + 2)

    def pop_due(self, now_us: int) -> Wakeup | None:
        """Take the earliest wake-up if it is due; while the heap is being replaced one may come twice."""
        heap = self._earlier()
        if heap and heap[0][0] <= now_us:
            return heapq.heappop(heap)
        return None
