"""Ages count from when work began to wait: idle is not stuck."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from evictstream.streams.engine.core.histogram import Distribution
from evictstream.streams.engine.core.waits import Vital, Vitals, Wait
from evictstream.streams.engine.core.writer import PartitionWriter


class FakeWriter:
    """What is asked of a writer."""

    def __init__(self, unacknowledged: float, uncommitted: float) -> None:
        self._unacknowledged = unacknowledged
        self._uncommitted = uncommitted

    def unacknowledged_seconds(self, now: float) -> float:
        return self._unacknowledged if now else 0

    def uncommitted_seconds(self, now: float) -> float:
        return self._uncommitted if now else 0


def ages(vitals: Vitals, now: float, *writers: FakeWriter) -> dict[Vital, float]:
    found = vitals.ages(now, cast("tuple[PartitionWriter, ...]", writers), Wait())
    return {vital: age for vital, age in found.items() if age}


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
    assert ages(Vitals(), 1_000_000) == {}


def test_the_timers_are_not_named_for_a_loop_that_stands_still() -> None:
    vitals, timers = Vitals(), Wait()
    timers.begin(10)
    vitals.loop.begin(11)
    found = vitals.ages(75, (), timers)
    assert (found[Vital.LOOP], found[Vital.TIMERS]) == (64, 1)


def test_of_several_partitions_the_longest_wait_counts() -> None:
    found = ages(Vitals(), 50, FakeWriter(1, 20), FakeWriter(3, 4))
    assert found == {Vital.CHANGELOG: 3, Vital.COMMIT: 20}


def test_a_rebalance_is_waited_for_until_all_is_owned() -> None:
    vitals = Vitals()
    vitals.rebalancing(10)
    assert ages(vitals, 15) == {Vital.OWNERSHIP: 5}
    vitals.owned(20, 2)
    assert ages(vitals, 21) == {Vital.HEARTBEAT: 1}
    vitals.heartbeat.progress(25)
    assert ages(vitals, 27) == {Vital.HEARTBEAT: 2}
    vitals.rebalancing(30)
    assert ages(vitals, 31) == {Vital.OWNERSHIP: 1}


def test_a_worker_without_partitions_waits_for_no_confirmation() -> None:
    vitals = Vitals()
    vitals.rebalancing(10)
    vitals.owned(11, 0)
    assert ages(vitals, 1_000) == {}


def test_a_batch_is_waited_for_until_its_partition_has_taken_it() -> None:
    vitals = Vitals()
    vitals.handed_over(10)
    vitals.handed_over(12)
    assert ages(vitals, 15) == {Vital.INPUT: 5}
    vitals.taken(16)
    assert ages(vitals, 18) == {Vital.INPUT: 2}
    vitals.taken(19)
    assert ages(vitals, 30) == {}


def test_batches_that_a_rebalance_dropped_are_not_waited_for() -> None:
    vitals = Vitals()
    vitals.owned(0, 0)
    vitals.handed_over(10)
    vitals.rebalancing(11)
    vitals.handed_over(12)  # given to Faust before it stopped the flow, and dropped by it
    vitals.owned(13, 0)
    assert ages(vitals, 100) == {}
    vitals.taken(101)  # one that was kept after all
    vitals.handed_over(102)
    assert ages(vitals, 103) == {Vital.INPUT: 1}


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, 0), (0.1, 0), (0.1001, 1), (2.0, 1), (2.1, 2)],
    ids=["nothing", "on the first bound", "above it", "on the last bound", "above all"],
)
def test_bounds_are_inclusive(value: float, bucket: int) -> None:
    found = Distribution((0.1, 2.0))
    found.observe(value)
    assert found.counts == [int(place == bucket) for place in range(3)]
    assert found.total == value
