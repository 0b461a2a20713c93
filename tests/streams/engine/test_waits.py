"""Ages count from when work began to wait: idle is not stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.waits import PAUSE_PROBE_SECONDS, Wait, WaitKind, WorkerWaits, set_within


class FakeWriter:
    """What is asked of a writer."""

    def __init__(self, unacknowledged: float, uncommitted: float) -> None:
        self._unacknowledged = unacknowledged
        self._uncommitted = uncommitted

    def unacknowledged_seconds(self, now: float) -> float:
        return self._unacknowledged if now else 0

    def uncommitted_seconds(self, now: float) -> float:
        return self._uncommitted if now else 0


def ages(waits: WorkerWaits, now: float, *writers: FakeWriter) -> dict[WaitKind, float]:
    found = waits.ages(now, writers, Wait())
    return {wait: age for wait, age in found.items() if age}


def begun_twice(wait: Wait) -> None:
    wait.begin(10)
    wait.begin(15)


def got_on(wait: Wait) -> None:
    wait.begin(10)
    wait.progress(18)


def has_come(wait: Wait) -> None:
    wait.begin(10)
    wait.end()


def got_on_without_waiting(wait: Wait) -> None:
    wait.progress(10)


@pytest.mark.parametrize(
    ("steps", "age"),
    [
        pytest.param(begun_twice, 10.0, id="the oldest work counts"),
        pytest.param(got_on, 2.0, id="progress starts anew"),
        pytest.param(has_come, 0.0, id="what has come is not waited for"),
        pytest.param(got_on_without_waiting, 0.0, id="what nobody waits for has no age"),
    ],
)
def test_age_of_a_wait_at_20_s(steps: Callable[[Wait], None], age: float) -> None:
    wait = Wait()
    steps(wait)
    assert wait.age_seconds(20) == age


def test_a_worker_that_has_done_nothing_yet_waits_for_nothing() -> None:
    assert ages(WorkerWaits(), 1_000_000) == {}


def test_a_stuck_loop_does_not_count_as_stuck_timers() -> None:
    waits, timers = WorkerWaits(), Wait()
    timers.begin(10)
    waits.loop.begin(11)
    found = waits.ages(75, (), timers)
    assert (found[WaitKind.LOOP], found[WaitKind.TIMERS]) == (64, 1)


def test_of_several_partitions_the_longest_wait_counts() -> None:
    found = ages(WorkerWaits(), 50, FakeWriter(1, 20), FakeWriter(3, 4))
    assert found == {WaitKind.CHANGELOG: 3, WaitKind.COMMIT: 20}


def test_a_rebalance_is_waited_for_until_all_is_owned() -> None:
    waits = WorkerWaits()
    waits.rebalancing(10)
    assert ages(waits, 15) == {WaitKind.OWNERSHIP: 5}
    waits.owned(20, 2)
    assert ages(waits, 21) == {WaitKind.HEARTBEAT: 1}
    waits.heartbeat.progress(25)
    assert ages(waits, 27) == {WaitKind.HEARTBEAT: 2}
    waits.rebalancing(30)
    assert ages(waits, 31) == {WaitKind.OWNERSHIP: 1}


def test_a_worker_without_partitions_waits_for_no_confirmation() -> None:
    waits = WorkerWaits()
    waits.rebalancing(10)
    waits.owned(11, 0)
    assert ages(waits, 1_000) == {}


def test_a_batch_has_an_age_until_its_partition_takes_it() -> None:
    waits = WorkerWaits()
    waits.handed_over(10)
    waits.handed_over(12)
    assert ages(waits, 15) == {WaitKind.INPUT: 5}
    waits.taken(16)
    assert ages(waits, 18) == {WaitKind.INPUT: 2}
    waits.taken(19)
    assert ages(waits, 30) == {}


def test_batches_that_a_rebalance_dropped_are_not_waited_for() -> None:
    waits = WorkerWaits()
    waits.owned(0, 0)
    waits.handed_over(10)
    waits.rebalancing(11)
    waits.handed_over(12)  # given to Faust before it stopped the flow, and dropped by it
    waits.owned(13, 0)
    assert ages(waits, 100) == {}
    waits.taken(101)  # one that was kept after all
    waits.handed_over(102)
    assert ages(waits, 103) == {WaitKind.INPUT: 1}


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, 0), (0.1, 0), (0.1001, 1), (2.0, 1), (2.1, 2)],
    ids=["nothing", "on the first bound", "above it", "on the last bound", "above all"],
)
def test_bounds_are_inclusive(value: float, bucket: int) -> None:
    found = Histogram((0.1, 2.0))
    found.observe(value)
    assert found.counts == [int(place == bucket) for place in range(3)]
    assert found.total == value


def test_waiting_ends_with_the_event_or_the_time() -> None:
    async def test() -> None:
        event = asyncio.Event()
        began_at = time.monotonic()
        await set_within(0.01, event)
        assert not event.is_set()
        asyncio.get_running_loop().call_soon(event.set)
        await set_within(60, event)
        assert event.is_set()
        assert time.monotonic() - began_at < 30

    asyncio.run(test())


@pytest.mark.parametrize("turns", range(5))
def test_a_cancellation_is_never_taken_away(turns: int) -> None:
    """Not by an event that was set some turns of the loop before: a worker that stops would wait for it forever."""

    async def test() -> None:
        event = asyncio.Event()

        async def wait_again_and_again() -> None:
            while True:
                event.clear()
                await set_within(60, event)

        task = asyncio.create_task(wait_again_and_again())
        for _ in range(5):
            await asyncio.sleep(0)
        event.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=1)
        ended = task.done()
        task.cancel()
        assert ended

    asyncio.run(test())


def test_a_loop_that_stood_still_has_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps by half a second while the loop does not run."""

    async def stand_still() -> Histogram:
        loop, waits, now = asyncio.get_running_loop(), WorkerWaits(), 1_000.0
        monkeypatch.setattr(loop, "time", lambda: now)
        measuring = asyncio.create_task(waits.measure_pauses())
        for _ in range(3):
            await asyncio.sleep(0)
        now += 0.5
        for _ in range(3):
            await asyncio.sleep(0)
        measuring.cancel()
        return waits.pauses

    pauses = asyncio.run(stand_still())
    assert sum(pauses.counts) == 2
    assert pauses.total == pytest.approx(0.5 - PAUSE_PROBE_SECONDS)
