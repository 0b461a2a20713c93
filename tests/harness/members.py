"""Members of one group on a real Kafka, all in the process of the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.logic import LogicFactory
from evictstream.streams.engine.core.partitions import Partitions
from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.faust.app import EngineApp, FaustGroup
from evictstream.streams.engine.faust.transport import EngineConsumer
from evictstream.streams.engine.kafka.clients import KafkaClients
from tests.harness.offset_logic import OffsetLogic

PATIENCE_SECONDS = 30.0


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test that waits some times, bounded."""
    asyncio.run(asyncio.wait_for(test(), 3 * PATIENCE_SECONDS))


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what nothing tells of."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():  # noqa: ASYNC110 - a test looks
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"never {what}")


def new_app(config: EngineConfig, new_logic: LogicFactory[Any] = OffsetLogic) -> EngineApp:
    """Put one together, not started."""
    group = FaustGroup()
    clients = KafkaClients(config, Permit(SYSTEM_CLOCK.monotonic, group.leave))

    async def crash(error: BaseException) -> None:
        await app.crash(error)

    partitions = Partitions(config, new_logic=new_logic, kafka=clients, group=group, clock=SYSTEM_CLOCK, crash=crash)
    app = EngineApp(config, partitions, clients=clients, group=group)
    app.finalize()
    return app


@contextlib.asynccontextmanager
async def member(config: EngineConfig, new_logic: LogicFactory[Any] = OffsetLogic) -> AsyncIterator[EngineApp]:
    """Start one, and stop it in the end."""
    app = new_app(config, new_logic)
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


@contextlib.asynccontextmanager
async def owner_and_reserve(config: EngineConfig) -> AsyncIterator[tuple[EngineApp, EngineApp]]:
    """Start one that owns the only partition, and one that owns none."""
    async with member(config) as owner:
        await until(lambda: owned(owner) == {0}, "taken over")
        async with member(config) as reserve:
            await until(lambda: is_in_reserve(reserve), "in reserve")
            yield owner, reserve


def owned(app: EngineApp) -> set[int]:
    """Give the partitions that it may write."""
    return {writer.partition for writer in app.partitions.live()}


def is_flowing(app: EngineApp) -> bool:
    """Whether batches may come."""
    return cast("EngineConsumer", app.consumer).flow_active


def is_in_reserve(app: EngineApp) -> bool:
    """Whether it has been assigned, and nothing."""
    return app.consumer_generation_id > 0 and not app.rebalancing and not app.partitions.numbers and is_flowing(app)


def group_member(app: EngineApp) -> Any:
    """Give its aiokafka consumer."""
    consumer = app.consumer_thread._consumer
    assert consumer is not None
    return consumer
