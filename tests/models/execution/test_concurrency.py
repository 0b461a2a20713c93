"""The number of evictions at once against servers of many kinds, under a clock that is handed in."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest

from evictstream.models.execution.concurrency import (
    FEWEST_AT_ONCE,
    FIRST_AT_ONCE,
    MANY_WAITING,
    MOST_AT_ONCE,
    REFUSAL_SECONDS,
    Concurrency,
)


class Server:
    """Works on so many requests at once, each for so long; the others wait in it, in order.

    Attributes:
        answered: how many were answered.
    """

    def __init__(self, workers: int, seconds: float, slow: Callable[[int], float] = lambda _: 0.0) -> None:
        self.seconds = seconds
        self.answered = 0
        self._free_at = [0.0] * workers
        self._slow = slow
        self._random = random.Random(7)  # noqa: S311 - a model of a server
        self._sent = 0

    def ends_at(self, now: float) -> float:
        """Take a request, and say when its answer is there."""
        self._sent += 1
        extra = self._slow(self._sent)
        begins_at = max(now, heapq.heappop(self._free_at))
        works_until = begins_at + self.seconds * self._random.uniform(0.8, 1.2)
        heapq.heappush(self._free_at, works_until)
        return works_until + extra


def storm(found: Concurrency, server: Server, *, until: float, now: float = 0.0) -> float:
    """Send as many requests at once as it says, for some time; returns the answers a second in the second half."""
    running: list[tuple[float, float]] = []
    began_at, half = now, 0
    while now < until:
        while len(running) < found.limit:
            heapq.heappush(running, (server.ends_at(now), now))
        now, sent_at = heapq.heappop(running)
        found.note_answer(now - sent_at, len(running) + 1, now)
        server.answered += 1
        half += now > (began_at + until) / 2
    return half / ((until - began_at) / 2)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [
        pytest.param(1, 0.03, id="one busy core"),
        pytest.param(2, 0.04, id="two cores"),
        pytest.param(16, 0.01, id="a large server"),
        pytest.param(100, 0.05, id="a far server with many workers"),
    ],
)
def test_a_server_is_kept_busy_and_little_waits_in_it(workers: int, seconds: float) -> None:
    found = Concurrency()
    assert storm(found, Server(workers, seconds), until=60.0) >= 0.93 * workers / seconds
    assert found.limit <= workers * 1.3 + 2 * MANY_WAITING[0]


def test_slow_objects_leave_room_for_the_others() -> None:
    found = Concurrency()
    server = Server(4, 0.02, slow=lambda number: 10.0 if number % 3 == 0 else 0.0)
    storm(found, server, until=120.0)
    assert found.limit == MOST_AT_ONCE


def test_writes_that_all_take_long_run_at_the_ceiling() -> None:
    found = Concurrency()
    storm(found, Server(MOST_AT_ONCE, 10.0), until=300.0)
    assert found.limit == MOST_AT_ONCE


def test_a_server_that_becomes_slower_is_not_given_more() -> None:
    found, server = Concurrency(), Server(8, 0.02)
    storm(found, server, until=30.0)
    server.seconds = 0.2
    storm(found, server, now=30.0, until=300.0)
    assert FEWEST_AT_ONCE <= found.limit <= 8 * 1.3 + 2 * MANY_WAITING[0]


def test_refusals_of_one_moment_shrink_it_once() -> None:
    found = Concurrency()
    for number in range(10):
        found.note_refusal(1.0 + number / 100)
    assert found.limit == int(FIRST_AT_ONCE * 0.7)


def test_refusals_without_end_leave_the_fewest() -> None:
    found = Concurrency()
    for number in range(100):
        found.note_refusal(number * REFUSAL_SECONDS)
    assert found.limit == FEWEST_AT_ONCE


def test_it_grows_again_after_refusals() -> None:
    found = Concurrency()
    found.note_refusal(0.0)
    assert storm(found, Server(100, 0.05), until=60.0) >= 0.93 * 100 / 0.05


def test_it_does_not_grow_while_places_are_free() -> None:
    found = Concurrency()
    for number in range(1_000):
        found.note_answer(0.01, 3, number / 100)
    assert found.limit == FIRST_AT_ONCE
