"""`scheduler/rate_limited_queue_test.go` and what section 8.5 of semantics.md adds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import Again, NoTokens, RateLimitedTimedQueue, TimedValue, TokenBucket
from evictstream.kit.upstream.lifecycle.steps import Steps, at_once

MILLISECOND_US = 1000
SECOND_US = 1_000_000


def unlimited() -> RateLimitedTimedQueue:
    return RateLimitedTimedQueue(TokenBucket(math.inf))


def filled(*values: str) -> RateLimitedTimedQueue:
    """Make a queue whose entries are added a second apart."""
    queue = unlimited()
    for at_s, value in enumerate(values):
        queue.add(value, f"uid-{value}", at_s * SECOND_US)
    return queue


def names(queue: RateLimitedTimedQueue) -> list[str]:
    return [entry.value for entry in queue.waiting]


def work_off(queue: RateLimitedTimedQueue, at_us: int, handle: Callable[[TimedValue], Again | None]) -> None:
    """Work off in one instant, with a handler that waits for nothing."""

    def steps(entry: TimedValue, _: int) -> Steps[Again | None]:
        yield from ()
        return handle(entry)

    at_once(queue.work_off(at_us, steps), at_us)


def handled(queue: RateLimitedTimedQueue, at_us: int) -> list[str]:
    """Work off and name what was handled; everything is done at once."""
    seen: list[str] = []
    work_off(queue, at_us, lambda entry: seen.append(entry.value))
    return seen


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        pytest.param(None, ["first", "second", "third"], id="TestAddNode"),
        pytest.param("first", ["second", "third"], id="TestDelNode: first"),
        pytest.param("second", ["first", "third"], id="TestDelNode: second"),
        pytest.param("third", ["first", "second"], id="TestDelNode: third"),
        pytest.param("fourth", ["first", "second", "third"], id="UniqueQueue.Remove: not present"),
    ],
)
def test_add_and_remove(removed: str | None, left: list[str]) -> None:
    queue = filled("first", "second", "third")
    if removed is not None:
        assert queue.remove(removed) is (removed != "fourth")
    assert names(queue) == left
    assert queue.known == set(left)
    assert len(queue) == len(left)


def test_try() -> None:
    """TestTry: what was removed is not handled."""
    queue = filled("first", "second", "third")
    queue.remove("second")
    assert handled(queue, 9 * SECOND_US) == ["first", "third"]
    assert names(queue) == []


def test_try_ordering() -> None:
    """TestTryOrdering: the clock moves by 1 ms at each look, and second asks to be looked at again in 2 ms."""
    queue = unlimited()
    for at_ms, value in enumerate(["first", "second", "third"], start=1):
        queue.add(value, "11111", at_ms * MILLISECOND_US)
    first = queue.take(4 * MILLISECOND_US)
    assert first == TimedValue("first", "11111", MILLISECOND_US, MILLISECOND_US)
    queue.settle(first, None, 4 * MILLISECOND_US)
    second = queue.take(4 * MILLISECOND_US)
    assert second is not None
    assert (second.value, second.added_at_us) == ("second", 2 * MILLISECOND_US)
    queue.settle(second, Again(2 * MILLISECOND_US), 4 * MILLISECOND_US)
    third = queue.take(5 * MILLISECOND_US)
    assert third is not None
    assert (third.value, third.added_at_us) == ("third", 3 * MILLISECOND_US)
    queue.settle(third, None, 5 * MILLISECOND_US)
    assert queue.take(6 * MILLISECOND_US) is None
    again = queue.take(6 * MILLISECOND_US + 1)
    assert again == TimedValue("second", "11111", 2 * MILLISECOND_US, 6 * MILLISECOND_US + 1)


def test_removing_while_trying() -> None:
    """TestTryRemovingWhileTry: an entry that is removed while its handler runs is not put back."""
    queue = filled("first", "second", "third")
    order: list[str] = []

    def handle(entry: TimedValue) -> Again | None:
        if entry.value == "second":
            queue.remove("second")
            return Again(MILLISECOND_US)
        order.append(entry.value)
        return None

    work_off(queue, 9 * SECOND_US, handle)
    assert order == ["first", "third"]
    assert names(queue) == []
    assert "second" not in queue.known


def test_clear() -> None:
    """TestClear, and everything can be added again."""
    queue = filled("first", "second", "third")
    queue.clear()
    assert (len(queue), queue.known) == (0, frozenset())
    assert queue.add("first", "11111", 0)


def test_swap_limiter() -> None:
    """TestSwapLimiter."""
    queue = unlimited()
    queue.swap_limiter(0, 0)
    assert queue.rate == NoTokens().rate
    queue.swap_limiter(5.5, 0)
    assert queue.rate == 5.5


def test_add_after_try() -> None:
    """TestAddAfterTry: the same entry is handled once unless it is explicitly removed."""
    queue = filled("first", "second", "third")
    queue.remove("second")
    assert handled(queue, 9 * SECOND_US) == ["first", "third"]
    assert not queue.add("first", "11111", 10 * SECOND_US)
    assert handled(queue, 11 * SECOND_US) == []
    assert queue.remove("first")
    assert queue.add("first", "11111", 12 * SECOND_US)
    assert handled(queue, 12 * SECOND_US) == ["first"]


def test_adding_twice_changes_nothing() -> None:
    queue = filled("first", "second")
    assert not queue.add("first", "other", 9 * SECOND_US)
    assert queue.waiting[0] == TimedValue("first", "uid-first", 0, 0)


def test_equal_times_take_turns_in_the_order_of_adding() -> None:
    queue = unlimited()
    for value in ("c", "a", "b"):
        queue.add(value, "", 0)
    assert handled(queue, 0) == ["c", "a", "b"]


def test_added_again_goes_to_the_end() -> None:
    """markNodeForTainting removes and adds a node in each round."""
    queue = filled("first", "second")
    queue.remove("first")
    queue.add("first", "", 9 * SECOND_US)
    assert handled(queue, 9 * SECOND_US) == ["second", "first"]


def test_nothing_is_handled_before_its_time() -> None:
    queue = filled("first")
    work_off(queue, SECOND_US, lambda _: Again(50 * MILLISECOND_US))
    assert handled(queue, SECOND_US + 50 * MILLISECOND_US) == []
    assert handled(queue, SECOND_US + 50 * MILLISECOND_US + 1) == ["first"]


def test_again_at_once_lets_the_pass_end() -> None:
    queue = filled("first")
    tries: list[int] = []

    def handle(entry: TimedValue) -> Again:
        tries.append(entry.process_at_us)
        return Again()

    work_off(queue, SECOND_US, handle)
    work_off(queue, SECOND_US + 1, handle)
    assert tries == [0, SECOND_US + 1]


def test_without_a_token_the_pass_ends() -> None:
    queue = RateLimitedTimedQueue(TokenBucket(0.1))
    for value in ("first", "second"):
        queue.add(value, "", 0)
    assert handled(queue, 0) == ["first"]
    assert handled(queue, 10 * SECOND_US - 1) == []
    assert handled(queue, 10 * SECOND_US) == ["second"]


def test_looking_at_an_entry_too_early_costs_a_token() -> None:
    """The limiter is asked before the time is compared."""
    queue = RateLimitedTimedQueue(TokenBucket(0.1))
    queue.add("later", "", 100 * MILLISECOND_US)
    assert handled(queue, 0) == []
    assert handled(queue, 100 * MILLISECOND_US) == []
    assert handled(queue, 10 * SECOND_US) == ["later"]


def test_an_empty_queue_costs_no_token() -> None:
    queue = RateLimitedTimedQueue(TokenBucket(0.1))
    assert handled(queue, 0) == []
    queue.add("first", "", 0)
    assert handled(queue, 0) == ["first"]


def test_rate_of_zero_keeps_everything_waiting() -> None:
    queue = filled("first")
    queue.swap_limiter(0, 0)
    assert handled(queue, 3600 * SECOND_US) == []
    queue.swap_limiter(0.1, 3600 * SECOND_US)
    assert handled(queue, 3600 * SECOND_US) == []
    assert handled(queue, 3610 * SECOND_US) == ["first"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "work"]), st.sampled_from("abcd"), st.integers(0, 20)), max_size=40
)


@given(STEPS)
def test_each_is_handled_once_per_adding(steps: list[tuple[str, str, int]]) -> None:
    """Against the simplest model: a set of those known and a list of those waiting."""
    queue, now_us = unlimited(), 0
    known: set[str] = set()
    waiting: list[str] = []
    for step, value, wait_us in steps:
        now_us += wait_us
        if step == "add":
            assert queue.add(value, "", now_us) is (value not in known)
            waiting += [value] if value not in known else []
            known.add(value)
        elif step == "remove":
            assert queue.remove(value) is (value in known)
            known.discard(value)
            waiting = [one for one in waiting if one != value]
        else:
            assert handled(queue, now_us) == waiting
            waiting = []
        assert names(queue) == waiting
        assert queue.known == known
