"""semantics.md 6.8, and the cases of Kubernetes' `pkg/controller/tainteviction/timed_workers_test.go`."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.taint_eviction import Added, Cancelled, TimerQueue

NOW, THEN = 5_000_000, 15_000_000
NAMES = ["1/1", "2/2", "3/3", "4/4", "5/5"]


def rung(queue: TimerQueue, until_us: int) -> list[str]:
    """Let the timers up to an instant fire, each eviction ending at once; gives their keys."""
    keys = []
    while (next_us := queue.next_ring_us()) is not None and next_us <= until_us:
        keys.append(queue.ring().address)
        queue.finish(keys[-1])
    return keys


def filled() -> TimerQueue:
    """Five keys, each added twice, as in the upstream tests."""
    queue = TimerQueue()
    assert [queue.add(name, NOW, THEN, NOW) for name in NAMES] == [Added.PENDING] * 5
    assert [queue.add(name, NOW, THEN, NOW) for name in NAMES] == [Added.SKIPPED] * 5
    return queue


def test_execute() -> None:
    """TestExecute: without delay each runs at once"""
    queue = TimerQueue()
    assert [queue.add(name, NOW, NOW, NOW) for name in NAMES] == [Added.RUNNING] * 5
    assert queue.next_ring_us() is None


def test_execute_delayed() -> None:
    """TestExecuteDelayed: five, not ten"""
    assert rung(filled(), THEN + 1_000_000) == NAMES


def test_cancel() -> None:
    """TestCancel"""
    queue = filled()
    assert [queue.cancel("2/2"), queue.cancel("4/4")] == [Cancelled.TIMER] * 2
    assert rung(queue, THEN + 1_000_000) == ["1/1", "3/3", "5/5"]


def test_cancel_and_read() -> None:
    """TestCancelAndRead"""
    queue = filled()
    queue.cancel("2/2")
    queue.cancel("4/4")
    assert queue.add("2/2", NOW, THEN, NOW) is Added.PENDING
    assert sorted(rung(queue, THEN + 1_000_000)) == ["1/1", "2/2", "3/3", "5/5"]


def test_nothing_fires_early() -> None:
    """timed_workers.go, TimedWorker: no earlier than the fire time"""
    assert rung(filled(), THEN - 1) == []


@pytest.mark.parametrize(
    ("created_us", "fire_us", "at_us", "rings_us"),
    [
        pytest.param(10, 30, 10, 30, id="6.8 added when created"),
        pytest.param(10, 30, 25, 45, id="6.8 delay is fire time minus creation time, not minus now"),
        pytest.param(10, 30, 99, 119, id="6.8 the fire time is over already and the delay still runs"),
        pytest.param(10, 11, 10, 11, id="6.8 the shortest delay"),
    ],
)
def test_delay(created_us: int, fire_us: int, at_us: int, rings_us: int) -> None:
    queue = TimerQueue()
    assert queue.add("k", created_us, fire_us, at_us) is Added.PENDING
    assert queue.next_ring_us() == rings_us


@pytest.mark.parametrize("fire_us", [10, 9, -5], ids=["no delay", "before its creation", "negative"])
def test_without_delay_it_runs_at_once(fire_us: int) -> None:
    """6.8, createWorker: a delay of 0 or less needs no timer"""
    queue = TimerQueue()
    assert queue.add("k", 10, fire_us, 10) is Added.RUNNING
    assert queue.get("k") is None
    assert "k" in queue


def test_cancel_of_an_absent_key() -> None:
    assert TimerQueue().cancel("k") is Cancelled.ABSENT


def test_cancel_of_an_eviction_that_started_without_timer() -> None:
    """6.8: the key goes, nothing is reported (TestRunningWorkerCompletion..., "immediate worker")"""
    queue = TimerQueue()
    queue.add("k", 0, 0, 0)
    assert queue.cancel("k") is Cancelled.RUNNING
    assert "k" not in queue
    assert queue.add("k", 2, 12, 2) is Added.PENDING


def test_cancel_of_an_eviction_whose_timer_has_fired() -> None:
    """timed_workers.go: reported as success (TestRunningWorkerCompletion..., "scheduled worker already firing")"""
    queue = TimerQueue()
    queue.add("k", 0, 1, 0)
    queue.ring()
    assert queue.add("k", 1, 9, 1) is Added.SKIPPED
    assert queue.cancel("k") is Cancelled.TIMER
    assert queue.add("k", 2, 12, 2) is Added.PENDING


def test_a_fired_timer_is_not_pending_but_present() -> None:
    queue = TimerQueue()
    queue.add("k", 0, 1, 0)
    assert queue.pending() == {"k": 1}
    queue.ring()
    assert queue.pending() == {}
    assert "k" in queue


def test_the_end_of_an_eviction_removes_a_newer_entry() -> None:
    """6.8, where master's TestRunningWorkerCompletionDoesNotRemoveReplacement wants it to stay"""
    queue = TimerQueue()
    queue.add("k", 0, 0, 0)
    queue.cancel("k")
    queue.add("k", 2, 12, 2)
    queue.finish("k")  # of the first
    assert "k" not in queue
    assert queue.cancel("k") is Cancelled.ABSENT
    assert queue.next_ring_us() == 12, "it fires, and nobody can stop it"


def test_timers_fire_in_order_of_time_then_of_adding() -> None:
    queue = TimerQueue()
    for key, fire_us in (("late", 9), ("first", 5), ("second", 5), ("early", 2)):
        queue.add(key, 0, fire_us, 0)
    assert rung(queue, 9) == ["early", "first", "second", "late"]


def test_ring_without_timer() -> None:
    queue = filled()
    for name in NAMES:
        queue.cancel(name)
    with pytest.raises(IndexError):
        queue.ring()
