"""What only transactions with KIP-890 do, on real brokers: what is lost is asked again, and what is late is refused."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.engine_rows import TRANSACTION_KEY
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.engine.kafka.transaction_requests import (
    EndTransaction,
    TransactionalProduce,
    transaction_version,
)
from evictstream.streams.engine.kafka.transaction_v2 import PRODUCER_FENCED, BatchEntry, TransactionsV2, packed
from evictstream.streams.errors import PartitionLostError, ProduceRefusedError
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.conftest import SERVERS
from tests.faults.real.arena import AUTHORIZER
from tests.faults.real.means import forbid_writing
from tests.streams.engine.transactions import (
    POSITIONS,
    SETTLED_SECONDS,
    WITHOUT_KIP_890,
    declared,
    read,
    rows_and_message,
    settled_reader,
)

LAST_EPOCH = 2**15 - 1

pytestmark = pytest.mark.skipif(
    EmbeddedBroker.usual_features.get("transaction.version", 2) < 2, reason="brokers of this run are without KIP-890"
)


def run(test: Callable[[], Awaitable[None]], within_seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(test(), within_seconds))


async def started(config: EngineConfig, partition: int = 0) -> tuple[PartitionProducer, TransactionsV2]:
    producer = PartitionProducer(partition, config)
    await producer.start()
    v2 = producer._producer.v2
    if v2 is None and SERVERS is not None:
        await producer.close()
        pytest.skip(f"the Kafka at {SERVERS} is without KIP-890")
    assert isinstance(v2, TransactionsV2)
    return producer, v2


class Losing:
    """Lets requests of one kind be carried out and loses the first answers; keeps all requests of that kind."""

    def __init__(self, v2: TransactionsV2, kind: type, answers: int) -> None:
        self.requests: list[Any] = []
        self.leaders: list[int] = []
        self._kind, self._left = kind, answers
        self._send = v2._client.send
        v2._client.send = self.send

    async def send(self, node: int, request: object, **how: object) -> object:
        answer = await self._send(node, request, **how)
        if isinstance(request, self._kind):
            self.requests.append(request)
            self.leaders.append(node)
            if self._left:
                self._left -= 1
                raise kafka_errors.KafkaConnectionError
        return answer

    async def again(self, number: int) -> Any:
        """Let a request arrive once more."""
        return await self._send(self.leaders[number], self.requests[number])


def test_commit_whose_answers_are_lost_is_asked_for_again(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer, v2 = await started(config)
        losing = Losing(v2, EndTransaction, answers=2)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert len(losing.requests) >= 3
        await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"a", b"b"}
        await producer.close()

    run(test)


def test_commit_that_was_asked_for_again_looks_for_its_markers(config: EngineConfig, settings: Settings) -> None:
    """Here another application's open transaction looks like a marker that was left out; the takeover tells them."""

    async def test() -> None:
        producer, v2 = await started(config)
        other, open_one = await started(dataclasses.replace(config, application=f"{config.application}-other"))
        await open_one.append(0, {settings.commands_topic: [(b"key", b"open", [])]})
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        Losing(v2, EndTransaction, answers=1)
        with pytest.raises(PartitionLostError, match="without a marker"):
            await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
        for each in (producer, other):
            await each.close()

    run(test)


def test_produce_whose_answers_are_lost_is_appended_once(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer, v2 = await started(config)
        losing = Losing(v2, TransactionalProduce, answers=2)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert len(losing.requests) >= 3
        place = (settings.commands_topic, 0)
        async with settled_reader(config, *place) as reader:
            assert await reader.ends([place]) == {place: 2}, "one message and one marker"
        await producer.close()

    run(test)


def test_late_end_does_not_end_the_next_transaction(config: EngineConfig, settings: Settings) -> None:
    """Without KIP-890 it would: rows of a transaction without their messages."""

    async def test() -> None:
        producer, v2 = await started(config)
        ends = Losing(v2, EndTransaction, answers=0)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        await v2.append(0, {settings.commands_topic: [(b"key", b"half", [])]})
        late = await ends.again(0)
        assert late.error_code == PRODUCER_FENCED
        place = (settings.commands_topic, 0)
        async with KafkaLogReader(config) as reader:  # up to the open one, which began after the marker of the first
            seen = await reader.records(place, 0, (await reader.ends([place]))[place])
        assert [record.value for record in seen] == [b"a"]
        await v2.end(commit=False)
        await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"a", b"b"}
        await producer.close()

    run(test)


def test_late_produce_is_no_part_of_the_next_transaction(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer, v2 = await started(config)
        produces = Losing(v2, TransactionalProduce, answers=0)
        await v2.append(0, {settings.commands_topic: [(b"key", b"aborted", [])]})
        await v2.end(commit=False)
        await asyncio.sleep(SETTLED_SECONDS)  # until the marker is written, the broker says that it has the batch
        late = await produces.again(0)
        ((found,),) = (topic.partition_responses for topic in late.responses)
        assert kafka_errors.for_code(found.error_code) is kafka_errors.InvalidProducerEpoch
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"a"}
        await producer.close()

    run(test)


def test_what_is_aborted_stays_invisible(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer, v2 = await started(config)
        contents: dict[str, list[BatchEntry]] = {
            config.changelog: [(b"row", b"value", [])],
            settings.commands_topic: [(b"key", b"aborted", [])],
        }
        await v2.append(0, contents)
        await v2.end(commit=False)
        await producer.commit(rows_and_message(settings, b"a", rows=0), {})
        assert (await read(config, settings.commands_topic)).keys() == {b"a"}
        assert (await read(config, config.changelog)).keys() == {TRANSACTION_KEY}
        await producer.close()

    run(test)


def test_transactions_without_a_rest_between_them(config: EngineConfig, settings: Settings) -> None:
    """Each meets markers of the one before that are not written yet."""

    async def test() -> None:
        producer, v2 = await started(config)
        for number in range(50):
            await v2.append(0, {settings.commands_topic: [(b"key", b"%d" % number, [])]})
            await v2.end(commit=True)
        assert len(await read(config, settings.commands_topic)) == 50
        await producer.close()

    run(test)


def test_an_owner_that_was_fenced_is_refused_at_its_produce(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        old, v2 = await started(config)
        new, _ = await started(config)
        with pytest.raises(kafka_errors.InvalidProducerEpoch):
            await v2.append(0, {settings.commands_topic: [(b"key", b"zombie", [])]})
        with pytest.raises(PartitionLostError, match="InvalidProducerEpoch"):
            await old.commit(rows_and_message(settings, b"zombie"), POSITIONS)
        for each in (old, new):
            await each.close()

    run(test)


def test_marker_of_ones_own_after_transactions(config: EngineConfig, settings: Settings) -> None:
    """It goes the old way, with the epoch that the last EndTxn gave; so may the transactions after it."""

    async def test() -> None:
        producer, _ = await started(config)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        await producer.mark(settings.commands_topic, commit=True)
        await producer.mark(settings.commands_topic, commit=False)
        await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"a", b"b"}
        await producer.close()

    run(test)


@pytest.mark.kit
@pytest.mark.slow
def test_an_epoch_that_overflows_gives_a_new_producer_id(config: EngineConfig, settings: Settings) -> None:
    """After 32,767 transactions, some minutes of a busy partition."""

    async def test() -> None:
        producer, v2 = await started(config)
        first = v2._epochs.producer_id
        while v2._epochs.producer_id == first:
            await v2.append(0, {config.changelog: [(b"row", b"value", [])]})
            await v2.end(commit=True)
            assert v2._epochs.producer_epoch < LAST_EPOCH
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"a"}
        await producer.close()

    run(test, within_seconds=900)


async def spread(config: EngineConfig) -> tuple[PartitionProducer, TransactionsV2]:
    """A producer of a partition whose changelog and commands are led by different brokers."""
    for partition in range(config.partitions):
        producer, v2 = await started(config, partition)
        places = [TopicPartition(topic, partition) for topic in (config.changelog, config.outputs[0])]
        if len({await v2._leader(place) for place in places}) == 2:
            return producer, v2
        await producer.close()
    pytest.fail("one broker leads both topics in every partition")


def on_three(broker: EmbeddedBroker, prefix: str) -> Settings:
    return declared(broker, partitions=12, topic_prefix=prefix, application_id=prefix.rstrip("."), replication_factor=3)


@pytest.mark.kafka
@pytest.mark.kit
def test_one_transaction_with_several_leaders(three_nodes: EmbeddedBroker) -> None:
    settings = on_three(three_nodes, "several.")
    config = engine_config(settings)

    async def test() -> None:
        producer, v2 = await spread(config)
        sent = Losing(v2, TransactionalProduce, answers=0)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert len(set(sent.leaders)) == 2
        assert (await read(config, settings.commands_topic, producer.partition)).keys() == {b"a"}
        await producer.close()

    run(test)


@pytest.mark.kafka
@pytest.mark.kit
def test_what_one_leader_did_not_append_goes_to_its_successor(three_nodes: EmbeddedBroker) -> None:
    """The other leader may be asked again for what it has: it knows the batch."""
    settings = on_three(three_nodes, "moved.")
    config = engine_config(settings)

    async def test() -> None:
        producer, v2 = await spread(config)
        place = TopicPartition(settings.commands_topic, producer.partition)
        gone = await v2._leader(place)
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        node = three_nodes.nodes[gone - 1]
        node.kill()
        try:
            await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
            assert await v2._leader(place) != gone
            # Not by offsets: a coordinator writes a marker again if a leader did not answer in time.
            keys: list[bytes] = []
            async with settled_reader(config, config.changelog, producer.partition) as reader:
                await reader.read_rows({producer.partition: lambda key, _value: keys.append(key)})
            assert len(keys) == 2 * 5, "five rows of each transaction, once"
            assert (await read(config, settings.commands_topic, producer.partition)).keys() == {b"a", b"b"}
        finally:
            await producer.close()
            await asyncio.to_thread(three_nodes.start)

    run(test)


@pytest.mark.kafka
def test_transaction_of_which_one_topic_is_forbidden_stays_invisible(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "kafka", properties=AUTHORIZER) as broker:
        settings = declared(broker)
        config = engine_config(settings)

        async def test() -> None:
            producer, _ = await started(config)
            await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
            await asyncio.to_thread(forbid_writing, settings, settings.commands_topic)
            outbox = rows_and_message(settings, b"b")
            outbox.send(settings.decisions_topic, b"key", b"why", [])
            with pytest.raises(ProduceRefusedError):
                await producer.commit(outbox, POSITIONS)
            await producer.close()
            successor, _ = await started(config)
            rows = await read(config, config.changelog)
            assert rows.keys() == {b"a-0", b"a-1", b"a-2", *POSITIONS, TRANSACTION_KEY}
            assert rows[TRANSACTION_KEY] == b"1"
            assert not await read(config, settings.decisions_topic)
            await successor.close()

        run(test)


@pytest.mark.kafka
def test_cluster_without_the_feature_has_the_old_transactions() -> None:
    with EmbeddedBroker(features=WITHOUT_KIP_890) as broker:
        settings = declared(broker)

        async def test() -> None:
            producer = PartitionProducer(0, engine_config(settings))
            await producer.start()
            assert producer._producer.v2 is None
            client = producer._producer.client
            assert await transaction_version(client, client.get_random_node()) == 1
            await producer.close()

        run(test)


def test_broker_that_has_become_older_loses_the_partition(config: EngineConfig, settings: Settings) -> None:
    """The takeover asks anew which transactions there are."""

    async def test() -> None:
        producer, v2 = await started(config)
        send = v2._client.send

        async def older(node: int, request: Any, **how: object) -> object:
            request.prepare({0: (0, 9), 26: (0, 3)})
            return await send(node, request, **how)

        v2._client.send = older
        with pytest.raises(PartitionLostError, match="version 12"):
            await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        await producer.close()

    run(test)


def test_records_are_packed_in_order_and_within_the_limit() -> None:
    entries: list[BatchEntry] = [(b"%d" % number, b"x" * 100, []) for number in range(100)]
    batches = list(packed(entries, 1_000))
    assert sum(records for _, records in batches) == 100
    assert all(batch.size() <= 1_000 for batch, _ in batches)


def test_record_larger_than_a_batch_has_one_of_its_own() -> None:
    entries: list[BatchEntry] = [(b"a", b"x", []), (b"b", b"x" * 5_000, []), (b"c", b"x", [])]
    assert [records for _, records in packed(entries, 1_000)] == [1, 1, 1]
