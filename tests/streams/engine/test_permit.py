"""Who is to be ended asks for nothing any more, and leaves its group; who has stood still waits to be looked at."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, encode_positions
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.permit import VALID_SECONDS, Permit
from evictstream.streams.engine.faust.app import EngineApp
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.harness.members import member, owned, run, until

HEARTBEAT_SECONDS = 0.5
# Nobody is thrown out in one of these tests: what one gives up it has left.
SESSION_SECONDS = 120.0
MEANWHILE_SECONDS = 4 * HEARTBEAT_SECONDS  # the time in which nothing may happen: several times what it would take
ALL = {0, 1}


@pytest.fixture
def config(settings: Settings) -> EngineConfig:
    declare_topics(settings).raise_if_breaking()
    return dataclasses.replace(
        engine_config(settings), heartbeat_seconds=HEARTBEAT_SECONDS, session_timeout_seconds=SESSION_SECONDS
    )


@asynccontextmanager
async def two_members(config: EngineConfig, second: EngineConfig) -> AsyncIterator[tuple[EngineApp, EngineApp]]:
    async with member(config) as staying, member(second) as watched:
        try:
            await until(lambda: len(owned(staying)) == len(owned(watched)) == 1, "shared by two")
            yield staying, watched
        finally:
            watched.clients.permit.is_withdrawn = False  # the process goes on, and so it can stop in order


@pytest.mark.parametrize("instance_id", [None, "static"])
def test_a_worker_without_permit_leaves_and_takes_nothing_over(config: EngineConfig, instance_id: str | None) -> None:
    """A static member too: its partitions had nobody who works for them since it is stuck."""

    async def test() -> None:
        async with two_members(config, dataclasses.replace(config, instance_id=instance_id)) as (staying, ending):
            ending.clients.permit.withdraw()
            ending.clients.permit.leave_group()
            await until(lambda: owned(staying) == ALL, "taken over by the one that stays")
            await asyncio.sleep(MEANWHILE_SECONDS)
            assert owned(staying) == ALL, "it came back"
            assert staying.partitions.failures == 0, "it has fenced the other"

    run(test)


def test_a_worker_that_stood_still_joins_after_the_next_look(config: EngineConfig) -> None:
    async def test() -> None:
        async with two_members(config, config) as (staying, woken):
            woken.clients.permit.extend(time.monotonic() - VALID_SECONDS)
            await staying.stop()
            await asyncio.sleep(MEANWHILE_SECONDS)
            assert owned(woken) != ALL, "nobody knew yet whether it is to be ended"
            woken.clients.permit.extend(time.monotonic() + SESSION_SECONDS)
            await until(lambda: owned(woken) == ALL, "taken over")

    run(test)


def test_a_worker_about_to_end_fences_nobody(config: EngineConfig) -> None:
    """Though its takeover has begun already."""

    async def test() -> None:
        permit = Permit(time.monotonic)
        owner, ending = PartitionProducer(0, config), PartitionProducer(0, config, permit)
        await owner.start()
        permit.withdraw()
        starting = asyncio.ensure_future(ending.start())
        await asyncio.wait([starting], timeout=1.0)
        await owner.commit(Outbox(), {POSITIONS_KEY: encode_positions(dict.fromkeys(config.inputs, 0))})
        assert not starting.done()
        starting.cancel()
        await asyncio.wait([starting])
        await owner.close()
        await ending.close()

    run(test)
