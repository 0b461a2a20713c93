"""Markers that a broker has left out: a real one of the versions that do, whose partitions are without a leader.

With a Kafka that leaves none out there is nothing to see here: a transaction would end only when the broker is back.

Each partition number has a transaction that is on its way when the only copy of its changelog, of its commands or of
both goes away. It is committed or aborted meanwhile; then the broker comes back, and the partition is taken over.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaError
from kafka.admin import KafkaAdminClient, NewTopic

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.kafka_node import KafkaNode
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, TRANSACTION_HEADER, encode_header
from evictstream.streams.engine.core.markers import newest_message
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.takeover import Takeover
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.errors import PartitionLostError
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.harness.offset_logic import OffsetLogic
from tests.harness.takeovers import taken_over

POSITIONS = {POSITIONS_KEY: b"{}"}


class Case(NamedTuple):
    """What is done with the transaction while which topics are without a leader, and whether it counts in the end."""

    commit: bool
    rows_hang: bool
    messages_hang: bool
    counts: bool


# In the fifth nothing of a transaction that was committed can be seen by anybody: it is decided anew, once.
CASES = {
    "committed without its messages": Case(commit=True, rows_hang=False, messages_hang=True, counts=True),
    "aborted without its messages": Case(commit=False, rows_hang=False, messages_hang=True, counts=False),
    "committed without its rows": Case(commit=True, rows_hang=True, messages_hang=False, counts=True),
    "aborted without its rows": Case(commit=False, rows_hang=True, messages_hang=False, counts=False),
    "committed nowhere": Case(commit=True, rows_hang=True, messages_hang=True, counts=False),
    "aborted nowhere": Case(commit=False, rows_hang=True, messages_hang=True, counts=False),
}


def test_what_another_application_has_written_is_not_ours() -> None:
    """After a new state version, or beside a second application, its messages stand on the same topics."""
    messages: list[Any] = [
        SimpleNamespace(headers=[("ce_id", b"x"), (TRANSACTION_HEADER, value)])
        for value in (encode_header("own-v1-1", 7), encode_header("own-v2-1", 9), b"own-v1-1/x", b"own-v1-1", b"9")
    ]
    assert newest_message(messages, "own-v1-1") == 7
    assert newest_message(messages, "own-v3-1") == 0


def test_a_marker_is_not_given_up_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition is added to a transaction, then the transaction ends: between them the next owner would abort."""

    async def test() -> None:
        done = asyncio.Event()

        async def mark(_partition: TopicPartition, *, commit: bool) -> None:
            await asyncio.sleep(0.05)
            assert commit
            done.set()

        producer = PartitionProducer(0, engine_config(Settings(bootstrap_servers="nowhere:1")))
        monkeypatch.setattr(producer._producer, "mark", mark)
        marking = asyncio.create_task(producer.mark("commands", commit=True))
        await asyncio.sleep(0)
        marking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await marking
        await producer.close()
        assert done.is_set()

    asyncio.run(test())


class Outcome(NamedTuple):
    """What a partition's next owner reads, and what everybody reads before and after it has sent something."""

    rows: list[bytes]
    messages_before: list[bytes]
    messages_after: list[bytes]


class Keeping(OffsetLogic):
    """Keeps the keys of the rows that it was given."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.rows: list[bytes] = []

    def load(self, key: bytes, _value: bytes | None) -> None:
        self.rows.append(key)


@pytest.fixture(scope="module", params=[2, 1], ids=["KIP-890", "before it"])
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[str, Outcome]]:
    """Let it happen to all of them at once."""
    features = {"transaction.version": request.param}
    internal = {"transaction.state.log.num.partitions": "1"}  # one coordinator, which is not the one to be killed
    with EmbeddedBroker(nodes=3, heap_megabytes=256, properties=internal, features=features) as broker:
        yield asyncio.run(asyncio.wait_for(happen(broker), 120))


@pytest.mark.kafka
@pytest.mark.kit
@pytest.mark.parametrize("case", CASES)
def test_rows_and_messages_of_a_transaction_count_together(case: str, outcomes: dict[str, Outcome]) -> None:
    counted = [b"second"] if CASES[case].counts else []
    assert outcomes[case] == Outcome(
        rows=[b"first", *counted],
        messages_before=[b"first", *counted],
        messages_after=[b"first", *counted, b"third"],
    )


async def happen(broker: EmbeddedBroker) -> dict[str, Outcome]:
    settings = Settings(
        bootstrap_servers=broker.bootstrap_servers,
        partitions=len(CASES),
        replication_factor=3,
        session_timeout_seconds=10,
        transaction_timeout_seconds=60,
    )
    config = engine_config(settings)
    client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
    await client.bootstrap()
    try:
        coordinator = await find_coordinator(client, config)
        lost = next(number for number, _ in enumerate(broker.nodes, 1) if number != coordinator)
        declare(settings, lost, coordinator)
        owners = await taken_over(config, range(len(CASES)), Keeping)
        transactions = [await begun(owner, settings) for owner in owners]
        gone = [
            TopicPartition(topic, number)
            for number, case in enumerate(CASES.values())
            for topic, hangs in ((config.changelog, case.rows_hang), (settings.commands_topic, case.messages_hang))
            if hangs
        ]
        await leaders(client, gone, broker.nodes[lost - 1], there=False)
        ends = zip(CASES.values(), transactions, strict=True)
        await asyncio.gather(*(transaction.end(config, commit=case.commit) for case, transaction in ends))
        await leaders(client, gone, broker.nodes[lost - 1], there=True)
    finally:
        await client.close()
    owners = await taken_over(config, range(len(CASES)), Keeping)
    rows = [owner.logic.rows for owner in owners if isinstance(owner.logic, Keeping)]
    before = [await messages(config, settings, number) for number in range(len(CASES))]
    for owner in owners:
        await owner.producer.commit(outbox(settings, b"third"), POSITIONS)
    after = [await messages(config, settings, number) for number in range(len(CASES))]
    await asyncio.gather(*(owner.producer.close() for owner in owners))
    return dict(zip(CASES, map(Outcome, rows, before, after), strict=True))


async def find_coordinator(client: AIOKafkaClient, config: EngineConfig) -> int:
    while True:
        try:
            return int(await client.coordinator_lookup(CoordinationType.TRANSACTION, config.transactional_id(0)))
        except KafkaError:
            await asyncio.sleep(0.2)


def declare(settings: Settings, lost: int, kept: int) -> None:
    """Put the only copy of what is to hang on the node that will be lost, and the other's elsewhere."""
    admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    for spec in topic_specs(settings):
        if spec.name in {settings.changelog_topic, settings.commands_topic}:
            hangs = [c.rows_hang if spec.name == settings.changelog_topic else c.messages_hang for c in CASES.values()]
            copies = {number: [lost if each else kept] for number, each in enumerate(hangs)}
            configs = {**spec.configs, "min.insync.replicas": "1"}
            admin.create_topics([NewTopic(spec.name, -1, -1, replica_assignments=copies, topic_configs=configs)])
    admin.close()
    declare_topics(settings).raise_if_breaking()


def outbox(settings: Settings, name: bytes) -> Outbox:
    outbox = Outbox()
    outbox.put(name, b"row")
    outbox.send(settings.commands_topic, b"key", name, [])
    return outbox


@dataclasses.dataclass
class Transaction:
    """One that has been written, and waits to be ended."""

    producer: PartitionProducer
    written: asyncio.Task[object]
    may_commit: asyncio.Event
    asked_again: list[object]

    async def end(self, config: EngineConfig, *, commit: bool) -> None:
        """Commit it, or leave it to the next one who fences its owner."""
        if commit:
            self.may_commit.set()
            try:
                await self.written
            except PartitionLostError:
                # A coordinator that has just lost a copy may have to be asked again. The producer then looks for its
                # markers in vain, and its partition is lost; what the next owner makes of that is what is tested.
                assert self.asked_again == [True]
        else:
            self.written.cancel()
            await asyncio.wait([self.written])
            next_one = PartitionProducer(self.producer.partition, config)
            await next_one.start()
            await next_one.close()
        await self.producer.close()


async def begun(owner: Takeover[Any], settings: Settings) -> Transaction:
    """Commit a first transaction, and write a second one."""
    await owner.producer.commit(outbox(settings, b"first"), POSITIONS)
    is_written, may_commit, asked_again = asyncio.Event(), asyncio.Event(), list[object]()
    producer = owner.producer
    assert isinstance(producer, PartitionProducer)
    inner = producer._producer
    end = inner.commit_transaction if inner.v2 is None else inner.v2.end

    async def end_later(**how: object) -> object:
        is_written.set()
        await may_commit.wait()
        asked_again.append(await end(**how))
        return asked_again[-1]

    if inner.v2 is None:
        inner.commit_transaction = end_later
    else:
        inner.v2.end = end_later
    written = asyncio.create_task(owner.producer.commit(outbox(settings, b"second"), POSITIONS))
    await is_written.wait()
    return Transaction(producer, written, may_commit, asked_again)


async def leaders(client: AIOKafkaClient, places: list[TopicPartition], node: KafkaNode, *, there: bool) -> None:
    """Kill or start a node and wait until partitions have no leader any more, or have one again."""
    if there:
        node.start()
    else:
        node.kill()
    while any((client.cluster.leader_for_partition(place) in {None, -1}) == there for place in places):
        await asyncio.sleep(0.2)
        await client.force_metadata_update()


async def messages(config: EngineConfig, settings: Settings, number: int) -> list[bytes]:
    async with KafkaLogReader(config) as reader:
        place = (settings.commands_topic, number)
        while True:
            found = await reader.records(place, *(await reader.starts_and_ends([place]))[place])
            if found:
                return [record.value for record in found if record.value is not None]
