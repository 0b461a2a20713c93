"""Timers of one partition: a heap of wake-ups with lazy deletion.

A wake-up only says "look at this again then"; whether something is due is decided by whoever looks. So moved and
cancelled timers need no search: their old wake-ups pop and come to nothing. A heap that has doubled since it was
last known to be lean is rebuilt from the truth, so flapping cannot make it grow without bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

Wakeup = tuple[int, bytes, str]
"""When (microseconds UTC), and two parts of a name: which aggregate, and what in it."""

LEAN_FLOOR = 10_000  # below this many wake-ups a rebuild saves nothing worth having


class TimerHeap:
    """Wake-ups in time order. In memory only: rows are the truth, and a take-over rebuilds it from them."""

    __slots__ = ("_heap", "_lean", "_truth")

    def __init__(self, truth: Callable[[], Iterable[Wakeup]]) -> None:
        """``truth`` lists the wake-ups that are really wanted; it is asked at each rebuild."""
        self._truth = truth
        self._heap: list[Wakeup] = []
        self._lean = LEAN_FLOOR

    def __len__(self) -> int:
        """Wake-ups held, outdated ones included."""
        return len(self._heap)

    def rebuild(self) -> None:
        """Start over from the truth."""
        self._heap = list(self._truth())
        heapq.heapify(self._heap)
        self._lean = max(LEAN_FLOOR, 2 * len(self._heap))

    def push(self, wakeup: Wakeup) -> None:
        """Add a wake-up; the same one may be added twice."""
        heapq.heappush(self._heap, wakeup)
        if len(self._heap) > self._lean:
            self.rebuild()

    def next_at_us(self) -> int | None:
        """When the earliest wake-up is due, or ``None``."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_us: int, limit: int) -> Iterator[Wakeup]:
        """Show what is due without taking it, in no order; looks at no more than ``limit`` wake-ups."""
        heap = self._heap
        places = [0]
        for _ in range(limit):
            if not places:
                return
            place = places.pop()
            if place < len(heap) and heap[place][0] <= now_us:
                yield heap[place]
                places += (2 * place + 1, 2 * place + 2)

    def pop_due(self, now_us: int) -> Wakeup | None:
        """Take the earliest wake-up if it is due."""
        if self._heap and self._heap[0][0] <= now_us:
            return heapq.heappop(self._heap)
        return None
