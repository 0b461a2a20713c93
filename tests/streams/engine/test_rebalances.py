"""Rebalances that follow close on one another: nothing that was read after the last seek is lost."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from kafka import KafkaProducer

from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.engine.core.batches import Batch
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.partitions import FLUSH_TIMEOUT_SECONDS
from evictstream.streams.engine.faust.app import EngineApp
from evictstream.streams.engine.faust.recovery import EngineTableManager
from evictstream.streams.engine.faust.transport import EngineConsumer
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.errors import PartitionLostError
from evictstream.streams.settings import Settings
from tests.harness.members import PATIENCE_SECONDS, is_flowing, member, new_app, owned, run, until
from tests.harness.offset_logic import OffsetLogic

FETCHED_SECONDS = 1.0  # after which a record that can be fetched has been


@pytest.fixture
def send(settings: Settings) -> Iterator[Callable[[str], None]]:
    producer = KafkaProducer(**client_arguments(settings))

    def send_one(topic: str) -> None:
        producer.send(topic, b"{}", partition=0).get(timeout=PATIENCE_SECONDS)

    yield send_one
    producer.close()


def test_batches_read_after_the_seek_survive_a_second_resume(config: EngineConfig, send: Callable[[str], None]) -> None:
    """Found by seed 47 on a real Kafka: a partition whose one batch was lost so fired nothing any more.

    The first rebalance ends while the second one goes on, so batches flow. One that was read after the second one's
    seek waits behind an agent that is busy when the second one ends.
    """
    topic = config.inputs[0]

    async def test() -> None:
        app = new_app(config)
        await app.start()
        try:
            partitions, consumer = app.partitions, cast("EngineConsumer", app.consumer)
            await until(lambda: len(list(partitions.live())) == config.partitions, "all taken over")
            await until(lambda: consumer.flow_active, "flowing")
            writer = next(partitions.live())
            logic = writer.logic
            assert isinstance(logic, OffsetLogic)
            is_free, seek_again, deliver, seek_all = (
                asyncio.Event(),
                asyncio.Event(),
                partitions.deliver,
                partitions.seek_all,
            )

            async def held(batch: Batch) -> None:
                await is_free.wait()
                await deliver(batch)

            async def slow_seek() -> None:
                await seek_all()
                await seek_again.wait()

            partitions.deliver = held  # type: ignore[method-assign]
            send(topic)  # the agent of this topic is busy with it from now on
            await asyncio.sleep(FETCHED_SECONDS)
            partitions.seek_all = slow_seek  # type: ignore[method-assign]
            recovery = cast("EngineTableManager", app.tables).recovery
            recovering = asyncio.ensure_future(recovery.on_recovery_completed(app.consumer_generation_id))
            await asyncio.sleep(FETCHED_SECONDS)
            send(topic)
            await asyncio.sleep(FETCHED_SECONDS)  # read after the seek, while batches flow: it waits in the queue
            seek_again.set()
            await recovering
            is_free.set()
            await until(lambda: logic.offsets == [0, 1], f"applied, but {logic.offsets}")
        finally:
            await app.stop()

    asyncio.run(asyncio.wait_for(test(), 3 * PATIENCE_SECONDS))


def test_a_member_that_stops_during_a_rebalance_leaves_the_group(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers that are stopped together: what the second had stayed with it until its session timed out."""

    async def test() -> None:
        app = new_app(config)
        await app.start()
        try:
            await until(lambda: len(list(app.partitions.live())) == config.partitions, "all taken over")
            with monkeypatch.context() as stopping:
                stopping.setattr(EngineApp, "should_stop", True)
                await app._on_partitions_revoked(set())
            member = app.consumer_thread._consumer
            assert member is not None
            assert not member._closed
            assert member._coordinator.member_id
        finally:
            await app.stop()

    asyncio.run(asyncio.wait_for(test(), PATIENCE_SECONDS))


def test_a_revocation_does_not_wait_for_agents(
    config: EngineConfig, send: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changelog without a leader, and all of the group would wait as long as a transaction may last."""

    async def test() -> None:
        one_row = dataclasses.replace(config, max_rows_per_transaction=1)
        async with member(one_row, lambda number: OffsetLogic(number, rows_per_record=1)) as app:
            await until(lambda: len(owned(app)) == config.partitions, "all taken over")
            await until(lambda: is_flowing(app), "flowing")

            async def never(*_: object) -> None:
                await asyncio.sleep(config.transaction_timeout_seconds)

            monkeypatch.setattr(PartitionProducer, "commit", never)
            writer = next(app.partitions.live())
            try:
                for _ in range(3):  # one in a transaction, one for the next, and one whose agent waits for room
                    await asyncio.to_thread(send, config.inputs[0])
                    await asyncio.sleep(FETCHED_SECONDS)
                assert not writer.has_room
                async with asyncio.timeout(FLUSH_TIMEOUT_SECONDS + 5.0):
                    await app._on_partitions_revoked(app.consumer.assignment())
            finally:
                for writer in app.partitions.live():
                    writer.fail(PartitionLostError(partition=0, reason="for a test"))

    run(test)
