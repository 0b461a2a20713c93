"""Each gate closes for its reason and for nothing else; a closed gate delays and never drops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.lease import Lease
from evictstream.streams.engine.core.partitions import Partitions
from evictstream.streams.engine.core.ports import KafkaClientError, Place
from evictstream.streams.engine.core.writer import PartitionWriter
from evictstream.streams.worker.clock_watch import ClockWatch
from evictstream.streams.worker.freshness import Freshness
from evictstream.streams.worker.gates import APPLIED, CONFIRMED, NOT_APPLIED, NOT_CONFIRMED, Closed, Gate, Gates
from evictstream.streams.worker.served_partition import ServedPartition
from evictstream.streams.worker.timer_service import TimerService
from tests.deploy.pages import ROOT
from tests.streams.worker.fakes import FakeBrakes, FakeGroup, FakePartitions, FakePolicies, FakeWriter


class World:
    """All gates open, and handles to close each."""

    def __init__(self) -> None:
        self.writer = FakeWriter(positions={"nodes": 10, "pods": 20})
        self.group = FakeGroup({("nodes", 0): 10, ("pods", 0): 20})
        self.lease = Lease(time.monotonic, session_timeout_seconds=10, margin_seconds=3)
        self.lease.renew(time.monotonic())
        self.clock = ClockWatch(5, 30, 300)
        self.partitions = cast("Partitions[ServedPartition]", FakePartitions(self.writer))
        self.freshness = Freshness(self.partitions, self.group, SYSTEM_CLOCK)
        asyncio.run(self.freshness.ask_once())
        self.brakes, self.policies = FakeBrakes(), FakePolicies()
        self.gates = Gates(
            lease=self.lease,
            group=self.group,
            clock_watch=self.clock,
            freshness=self.freshness,
            brakes=self.brakes,
            policies=self.policies,
            lag_limit_seconds=10,
            clock=SYSTEM_CLOCK,
        )
        self.timers = TimerService(self.partitions, self.gates, clock=SYSTEM_CLOCK, clock_watch=self.clock)

    def closed(self) -> Gate | None:
        writer = cast("PartitionWriter[ServedPartition]", self.writer)
        self.gates.note(writer)
        found = self.gates.closed(writer)
        return None if found is None else found.gate

    def age_seconds(self) -> float:
        self.freshness.note(cast("PartitionWriter[ServedPartition]", self.writer))
        return self.freshness.age_seconds(0)


def rebalance(world: World) -> None:
    world.group.is_rebalancing = True


def lose_lease(world: World) -> None:
    world.lease.drop()


def old_lease(world: World) -> None:
    world.lease.drop()
    world.lease.renew(time.monotonic() - 7.1)


def jump(world: World) -> None:
    world.clock.tick(SYSTEM_CLOCK.now_us(), time.monotonic())
    world.clock.tick(SYSTEM_CLOCK.now_us() + 60_000_000, time.monotonic())


def still_reading(world: World) -> None:
    world.writer.caught_up = False


def stale_view(world: World) -> None:
    world.freshness._fresh_at[0] = time.monotonic() - 10.1
    world.freshness._samples.clear()


def unread_brakes(world: World) -> None:
    world.brakes.problem = "never read"


def unread_policies(world: World) -> None:
    world.policies.problem = "never read"


def old_brakes(world: World) -> None:
    world.writer.ends_asked_at = time.monotonic()
    world.brakes.age = 1.0


def gap(world: World) -> None:
    world.writer.logic.gap = "input expired"


CLOSERS = [
    pytest.param(rebalance, Gate.OWNER, id="rebalancing"),
    pytest.param(lose_lease, Gate.OWNER, id="no confirmation since the rebalance"),
    pytest.param(old_lease, Gate.OWNER, id="confirmed longer ago than session less margin"),
    pytest.param(jump, Gate.CLOCK, id="clock jumped forward"),
    pytest.param(still_reading, Gate.CAUGHT_UP, id="not caught up"),
    pytest.param(stale_view, Gate.FRESH_VIEW, id="view too old"),
    pytest.param(unread_brakes, Gate.BRAKES, id="brakes cannot be read"),
    pytest.param(unread_policies, Gate.POLICIES, id="policies cannot be read"),
    pytest.param(old_brakes, Gate.BRAKES, id="brakes were read before the takeover"),
    pytest.param(gap, Gate.GAP, id="input expired unread"),
]


def test_all_gates_open() -> None:
    assert World().closed() is None


@pytest.mark.parametrize(("close", "gate"), CLOSERS)
def test_gate_closes(close: Callable[[World], None], gate: Gate) -> None:
    world = World()
    close(world)
    assert world.closed() is gate


@pytest.mark.parametrize(("close", "gate"), CLOSERS)
def test_a_due_timer_waits_behind_a_closed_gate(close: Callable[[World], None], gate: Gate) -> None:
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() - 1
    close(world)
    world.timers.turn()
    assert world.writer.fired == []
    assert world.timers.waiting[0].gate is gate
    assert world.writer.logic.due_at_us is not None


@pytest.mark.parametrize(
    ("close", "probes"), [pytest.param(jump, 1, id="clock"), pytest.param(still_reading, 0, id="another gate")]
)
def test_a_closed_clock_gate_asks_the_brokers_for_the_time(close: Callable[[World], None], probes: int) -> None:
    """Without input no transaction shows that the clocks agree again."""
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() - 1
    close(world)
    world.timers.turn()
    assert world.writer.probes == probes


def test_a_due_timer_fires_behind_open_gates() -> None:
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() - 1
    world.timers.turn()
    assert len(world.writer.fired) == 1
    assert world.timers.waiting == {}


def test_nothing_fires_before_it_is_due() -> None:
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() + 60_000_000
    world.timers.turn()
    assert world.writer.fired == []


def test_a_full_outbox_holds_firing_back() -> None:
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() - 1
    world.writer.has_room = False
    world.timers.turn()
    assert world.writer.fired == []


def test_a_full_outbox_does_not_make_the_timers_spin() -> None:
    """Found by the torture: the timer service spun for as long as a broker was away."""
    world = World()
    world.writer.logic.due_at_us = SYSTEM_CLOCK.now_us() - 1
    world.writer.has_room = False
    world.timers.turn()
    assert world.timers._planned_us > SYSTEM_CLOCK.now_us()


def test_an_infinite_age_is_said_in_words() -> None:
    world = World()
    writer = cast("PartitionWriter[ServedPartition]", world.writer)
    world.lease.drop()
    assert world.gates.closed(writer) == Closed(Gate.OWNER, NOT_CONFIRMED)
    world.lease.renew(time.monotonic() - 60)
    assert world.gates.closed(writer) == Closed(Gate.OWNER, CONFIRMED.format("60.0"))
    world.lease.renew(time.monotonic())
    world.freshness._fresh_at.clear()
    world.freshness._samples.clear()
    assert world.gates.closed(writer) == Closed(Gate.FRESH_VIEW, NOT_APPLIED)
    world.freshness._fresh_at[0] = time.monotonic() - 60
    assert world.gates.closed(writer) == Closed(Gate.FRESH_VIEW, APPLIED.format("60.0"))


def test_the_view_is_as_fresh_as_the_last_passed_answer() -> None:
    world = World()
    assert world.age_seconds() < 1
    world.freshness._fresh_at[0] -= 5
    world.group.ends["pods", 0] = 25  # five records are unread now
    asyncio.run(world.freshness.ask_once())
    assert world.age_seconds() > 5
    world.writer.positions["pods"] = 25
    assert world.age_seconds() < 1


def test_a_broker_that_does_not_answer_lets_the_view_age() -> None:
    world = World()

    class Refusing(FakeGroup):
        async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
            raise KafkaClientError

    freshness = Freshness(world.partitions, Refusing({}), SYSTEM_CLOCK)

    async def run_briefly() -> None:
        task = asyncio.create_task(freshness.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done(), "a failed answer must not end the watch"
        task.cancel()

    asyncio.run(run_briefly())
    assert freshness.age_seconds(0) == float("inf")


def test_every_gate_has_its_row_on_the_page() -> None:
    section = (
        (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8").split("## When firing waits")[1].split("\n## ")[0]
    )
    rows = {line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")} - {"gate"}
    assert rows == {f"`{gate}`" for gate in Gate}
