"""Consumers name the leader's epoch, so a broker that is not the leader any more refuses them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NotLeaderForPartitionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from kafka.protocol.metadata import MetadataResponse

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.kafka.leader_epochs import (
    EpochClient,
    EpochFetchRequest,
    EpochOffsetRequest,
    EpochsLast,
)
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.streams.engine.transactions import POSITIONS, declared, rows_and_message, settled_reader

FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH = 74, 75
LATEST = -1


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


async def written(config: EngineConfig, settings: Settings) -> tuple[str, int]:
    producer = PartitionProducer(0, config)
    await producer.start()
    await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
    await producer.close()
    return settings.commands_topic, 0


@contextlib.asynccontextmanager
async def marked(config: EngineConfig, settings: Settings) -> AsyncIterator[tuple[KafkaLogReader, TopicPartition]]:
    """Write, and give a reader that has seen the marker, with where that is."""
    place = TopicPartition(*await written(config, settings))
    async with settled_reader(config, *place) as reader:
        yield reader, place


def client_of(reader: KafkaLogReader) -> EpochClient:
    client = reader._consumer._client
    assert isinstance(client, EpochClient)
    return client


async def asked(client: EpochClient, place: TopicPartition, epoch: int) -> int:
    """The error code of ListOffsets with an epoch, as the broker gives it."""
    request: Any = EpochOffsetRequest(_latest(place), {place: epoch})
    connection = await client._get_conn(client.cluster.leader_for_partition(place))
    answer = await connection.send(request)
    return int(answer.topics[0][1][0][1])


def _latest(place: TopicPartition) -> Any:
    return OffsetRequest(-1, 0, [(place.topic, [(place.partition, LATEST)])])


def test_an_epoch_that_nobody_has_is_refused_and_asked_again(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        async with marked(config, settings) as (reader, partition):
            client = client_of(reader)
            known = client.leader_epochs[partition]
            assert await asked(client, partition, known) == 0
            assert await asked(client, partition, known + 7) == UNKNOWN_LEADER_EPOCH
            client.leader_epochs[partition] = known + 7
            assert await reader.ends([partition]) == {partition: 2}, "as for a topic that was made anew"
            assert client.leader_epochs[partition] == known
            client.leader_epochs[partition] = known + 7
            assert [record.value for record in await reader.records(partition, 0, 2)] == [b"a"]

    run(test)


@pytest.mark.kafka
@pytest.mark.kit
def test_a_reader_follows_a_new_leader_with_its_epoch(three_nodes: EmbeddedBroker) -> None:
    settings = declared(three_nodes, replication_factor=3)
    config = engine_config(settings)

    async def test() -> None:
        async with marked(config, settings) as (reader, partition):
            client = client_of(reader)
            before = client.leader_epochs[partition]
            node = three_nodes.nodes[client.cluster.leader_for_partition(partition) - 1]
            node.kill()
            try:
                assert [record.value for record in await reader.records(partition, 0, 2)] == [b"a"]
                assert client.leader_epochs[partition] > before
                assert await asked(client, partition, before) == FENCED_LEADER_EPOCH
            finally:
                await asyncio.to_thread(three_nodes.start)

    run(test)


@pytest.mark.kafka
@pytest.mark.kit
def test_a_deposed_leader_refuses_who_knows_of_the_new_one(three_nodes: EmbeddedBroker) -> None:
    """It answers what was asked while it was frozen before it hears that it was deposed, and its log ends early."""
    settings = declared(three_nodes, replication_factor=3, topic_prefix="deposed.")
    config = engine_config(settings)

    async def test() -> None:
        async with marked(config, settings) as (reader, partition):
            client = client_of(reader)
            leader, before = client.cluster.leader_for_partition(partition), client.leader_epochs[partition]
            connection = await client._get_conn(leader)
            three_nodes.nodes[leader - 1].pause()
            try:
                client.leader_epochs[partition] = await newer_epoch(config, partition, before)
                await written(config, settings)
                blind = asyncio.ensure_future(connection.send(EpochOffsetRequest(_latest(partition), {})))
                knowing = asyncio.ensure_future(client.send(leader, _latest(partition)))
                await asyncio.sleep(0.1)  # until both are in the frozen broker's socket
            finally:
                three_nodes.nodes[leader - 1].resume()
            [(_, [(_, error_code, *_)])] = (await knowing).topics
            assert error_code == NotLeaderForPartitionError.errno
            [(_, [(_, error_code, _, end, _)])] = (await blind).topics
            assert (error_code, end) == (0, 2), "the old end; else this test has shown nothing"

    run(test)


async def newer_epoch(config: EngineConfig, place: TopicPartition, than: int) -> int:
    """Wait until brokers name a leader with a newer epoch."""
    async with KafkaLogReader(config) as reader:
        client = client_of(reader)
        while client.leader_epochs.get(place, than) <= than:
            with contextlib.suppress(TimeoutError):  # it asks any of the brokers, perhaps the frozen one
                await asyncio.wait_for(client.force_metadata_update(), 2)
            await asyncio.sleep(0.1)
        return client.leader_epochs[place]


def test_a_fetch_names_the_epochs_that_are_known() -> None:
    request = FetchRequest(100, 1, 1_000, 1, [("topic", [(0, 5, 100), (1, 6, 100)])])
    known = EpochFetchRequest(request, {TopicPartition("topic", 1): 3})
    assert known.prepare({1: (4, 16)}).topics == [("topic", [(0, -1, 5, -1, 100), (1, 3, 6, -1, 100)])]
    assert known.prepare({1: (4, 4)}).topics == [("topic", [(0, 5, 100), (1, 6, 100)])]


def test_metadata_of_an_older_leader_counts_only_again_and_again() -> None:
    async def test() -> None:
        client, place = EpochClient(bootstrap_servers="nowhere:1"), TopicPartition("topic", 0)
        known = []
        for epoch in (4, 5, 4, 5, *[4] * 6):
            partition: tuple[object, ...] = (0, 0, 1, epoch, [1], [1], [])
            answer = MetadataResponse(
                version=7, brokers=[(1, "nowhere", 1, None)], topics=[(0, "topic", False, [partition])]
            )
            client.cluster.update_metadata(EpochsLast.decode(answer.encode()))
            known.append(client.leader_epochs[place])
        assert known == [4, 5, 5, 5, 5, 5, 5, 5, 4, 4]
        await client.close()

    run(test)
