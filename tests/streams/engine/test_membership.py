"""Several members of one group on a real Kafka, in one process: who stays in it, and how often it assigns."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import cast

import pytest
from aiokafka.errors import UnknownError

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.faust.recovery import EngineTableManager
from evictstream.streams.errors import InternalFailureError, PartitionLostError
from evictstream.streams.member_beats import COME_BACK_SECONDS, NO_BEAT_SECONDS
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.conftest import MakeSettings
from tests.harness.members import group_member, member, owned, owner_and_reserve, run, until

HEARTBEAT_SECONDS = 0.5
DAY_SECONDS = 86_400.0


@pytest.fixture
def quick(make_settings: MakeSettings) -> Callable[[int], EngineConfig]:
    def of(partitions: int) -> EngineConfig:
        settings = make_settings(partitions=partitions)
        declare_topics(settings).raise_if_breaking()
        return dataclasses.replace(engine_config(settings), heartbeat_seconds=HEARTBEAT_SECONDS)

    return of


def test_a_worker_without_partitions_takes_over_after_a_day(quick: Callable[[int], EngineConfig]) -> None:
    """aiokafka leaves the group for who asks for no records, and joins again only for who does."""

    async def test() -> None:
        async with owner_and_reserve(quick(1)) as (owner, reserve):
            generation = reserve.consumer_generation_id
            await until(lambda: owner.consumer_generation_id == generation, "of one generation")
            group_member(reserve)._subscription._last_fetch_ended -= DAY_SECONDS
            await asyncio.sleep(4 * HEARTBEAT_SECONDS)
            assert owner.consumer_generation_id == generation, "one has left"
            await owner.stop()
            await until(lambda: owned(reserve) == {0}, "taken over by the one in reserve")

    run(test)


def test_a_worker_without_partitions_crashes_when_its_member_fails(
    quick: Callable[[int], EngineConfig],
) -> None:
    """aiokafka tells who fetches, and does nothing more for the group until it has."""

    async def test() -> None:
        async with owner_and_reserve(quick(1)) as (_, reserve):

            async def odd() -> bool:
                raise UnknownError

            group_member(reserve)._coordinator._do_heartbeat = odd
            await until(lambda: reserve.crash_reason is not None, "crashed")
            assert isinstance(reserve.crash_reason, UnknownError)

    run(test)


def test_a_worker_without_beats_crashes(quick: Callable[[int], EngineConfig]) -> None:
    """Its peers would remove it each time that it gets partitions."""

    async def test() -> None:
        async with owner_and_reserve(quick(1)) as (_, reserve):

            async def odd() -> None:
                raise ArithmeticError

            group_member(reserve)._beats.turn = odd
            await until(lambda: reserve.crash_reason is not None, "crashed")
            assert isinstance(reserve.crash_reason, InternalFailureError)

    run(test)


def test_a_member_that_waits_to_join_causes_no_second_rebalance(
    quick: Callable[[int], EngineConfig],
) -> None:
    """A commit that is sent meanwhile is looked at in the next generation; it is refused, and aiokafka joins anew."""

    async def test() -> None:
        config = quick(4)
        async with member(config) as first, member(config) as slow:
            await until(lambda: len(owned(first)) == len(owned(slow)) == 2, "shared by two")
            generation = first.consumer_generation_id
            flush = slow.partitions.flush

            async def flush_slowly() -> None:
                slow.partitions.flush = flush  # type: ignore[method-assign]
                await asyncio.sleep(4 * config.commit_interval_seconds)

            slow.partitions.flush = flush_slowly  # type: ignore[method-assign]
            async with member(config) as third:
                apps = (first, slow, third)
                await until(lambda: bool(owned(third)) and sum(len(owned(app)) for app in apps) == 4, "shared by three")
                await asyncio.sleep(6 * HEARTBEAT_SECONDS)
                assert {app.consumer_generation_id for app in apps} == {generation + 1}

    run(test)


def test_a_failed_take_over_waits_for_the_groups_confirmation(
    quick: Callable[[int], EngineConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was thrown out meanwhile would fence the new owner."""

    async def test() -> None:
        async with member(quick(1)) as app:
            await until(lambda: owned(app) == {0}, "taken over")
            tried, confirmed = 0, asyncio.Event()
            assign = app.partitions.assign

            async def assign_late(numbers: set[int], generation: int) -> None:
                nonlocal tried
                tried += 1
                if tried == 1:
                    raise PartitionLostError(partition=0, reason="for a test")
                await assign(numbers, generation)

            async def wait(_moment: float) -> None:
                await confirmed.wait()

            monkeypatch.setattr(app.partitions, "assign", assign_late)
            monkeypatch.setattr(app.partitions, "confirmed_since", wait)
            cast("EngineTableManager", app.tables).recovery.signal_recovery_start.set()
            await until(lambda: tried == 1, "tried")
            await asyncio.sleep(3.0)
            assert tried == 1
            confirmed.set()
            await until(lambda: tried == 2, "tried again")

    run(test)


@pytest.mark.kit
@pytest.mark.parametrize("fault", ["frozen", "killed"])
def test_a_broker_outage_costs_the_group_no_member(own_broker: EmbeddedBroker, fault: str) -> None:
    """All beats stood still as long as the broker did, and members do not come back at the same moment."""
    settings = Settings(bootstrap_servers=own_broker.bootstrap_servers, partitions=2, session_timeout_seconds=60.0)
    declare_topics(settings).raise_if_breaking()

    async def test() -> None:
        config = engine_config(settings)
        async with member(config) as first, member(config) as second:
            await until(lambda: len(owned(first)) == len(owned(second)) == 1, "shared by two")
            generation = first.consumer_generation_id
            await asyncio.sleep(2 * NO_BEAT_SECONDS)
            await asyncio.to_thread(own_broker.pause if fault == "frozen" else own_broker.kill)
            await asyncio.sleep(2 * NO_BEAT_SECONDS)
            await asyncio.to_thread(own_broker.resume if fault == "frozen" else own_broker.start)
            await asyncio.sleep(COME_BACK_SECONDS + 2 * NO_BEAT_SECONDS)
            assert first.consumer_generation_id == second.consumer_generation_id == generation

    run(test)
