"""The transactional producer on real brokers, with KIP-890 (`transaction.version` 2) and without.

Commit, abort, fencing, refusal, answers that are lost or late, and an owner that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.transaction import EndTxnRequest
from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.engine_rows import TRANSACTION_KEY
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.errors import PartitionLostError, ProduceRefusedError
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.conftest import MakeSettings
from tests.faults.real.arena import AUTHORIZER
from tests.faults.real.means import forbid_writing
from tests.streams.engine.transactions import (
    POSITIONS,
    SETTLED_SECONDS,
    WITHOUT_KIP_890,
    declared,
    read,
    rows_and_message,
)


@pytest.fixture(scope="module")
def old_kafka() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(features=WITHOUT_KIP_890) as broker:
        yield broker


@pytest.fixture(params=["KIP-890", pytest.param("before it", marks=pytest.mark.kit)])
def settings(request: pytest.FixtureRequest, make_settings: MakeSettings) -> Settings:
    """Each test of this file runs with both kinds of transactions."""
    if request.param == "KIP-890":
        return make_settings()
    return make_settings(bootstrap_servers=request.getfixturevalue("old_kafka").bootstrap_servers)


@pytest.fixture
def old_settings(make_settings: MakeSettings, old_kafka: EmbeddedBroker) -> Settings:
    settings = make_settings(bootstrap_servers=old_kafka.bootstrap_servers)
    declare_topics(settings).raise_if_breaking()
    return settings


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_commit_makes_rows_messages_and_positions_visible_together(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        ahead = time.time() - time.monotonic()
        committed = await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        assert (await read(config, config.changelog)).keys() == {b"a-0", b"a-1", b"a-2", *POSITIONS, TRANSACTION_KEY}
        assert (await read(config, settings.commands_topic)).keys() == {b"a"}
        appended_at = committed.broker_ms / 1000 - ahead
        assert committed.sent_at - 0.002 <= appended_at <= committed.acked_at + 0.001
        await producer.close()

    run(test)


def test_a_new_owner_fences_the_old_one(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        old, new = PartitionProducer(0, config), PartitionProducer(0, config)
        await old.start()
        await old.commit(rows_and_message(settings, b"before"), POSITIONS)
        await new.start()
        with pytest.raises(PartitionLostError):
            await old.commit(rows_and_message(settings, b"zombie"), POSITIONS)
        await new.commit(rows_and_message(settings, b"after"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"before", b"after"}
        await old.close()
        await new.close()

    run(test)


def test_other_partitions_are_not_fenced(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        first, second = PartitionProducer(0, config), PartitionProducer(1, config)
        await first.start()
        await second.start()
        await first.commit(rows_and_message(settings, b"first"), POSITIONS)
        await second.commit(rows_and_message(settings, b"second"), POSITIONS)
        assert (await read(config, settings.commands_topic, 1)).keys() == {b"second"}
        await first.close()
        await second.close()

    run(test)


def test_one_record_too_large_aborts_the_whole_transaction(config: EngineConfig, settings: Settings) -> None:
    """aiokafka would commit the other batches: the producer has to see the failure before it commits."""

    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        outbox = rows_and_message(settings, b"good")
        outbox.send(settings.decisions_topic, b"key", b"x" * (settings.max_message_bytes + 100_000), [])
        with pytest.raises(ProduceRefusedError):
            await producer.commit(outbox, POSITIONS)
        await producer.close()
        again = PartitionProducer(0, config)
        await again.start()
        assert not await read(config, config.changelog)
        assert not await read(config, settings.commands_topic)
        await again.close()

    run(test)


def test_many_batches_in_one_transaction(config: EngineConfig, settings: Settings) -> None:
    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        outbox = Outbox()
        for number in range(20_000):
            outbox.put(b"row-%05d" % number, b"v" * 150)
        await producer.commit(outbox, POSITIONS)
        assert len(await read(config, config.changelog)) == 20_002
        await producer.close()

    run(test)


KILLED_OWNER = textwrap.dedent(
    """
    import asyncio, sys
    from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
    from evictstream.streams.worker.service_config import engine_config
    from evictstream.streams.settings import Settings

    async def main():
        settings = Settings.model_validate_json(sys.argv[1])
        producer = PartitionProducer(0, engine_config(settings))
        await producer.start()
        kafka = producer._producer
        await kafka.begin_transaction()
        await (await kafka.send(settings.commands_topic, b"half", partition=0))
        print("open", flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
    """
)


def test_an_owner_killed_in_mid_transaction_leaves_nothing_behind(config: EngineConfig, settings: Settings) -> None:
    """Its open transaction is aborted by the next owner, before that one reads."""
    shown = settings.model_dump_json(exclude_defaults=True)
    owner = subprocess.Popen([sys.executable, "-c", KILLED_OWNER, shown], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"open\n"
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()

    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        assert not await read(config, settings.commands_topic)
        await producer.commit(rows_and_message(settings, b"next"), POSITIONS)
        assert (await read(config, settings.commands_topic)).keys() == {b"next"}
        await producer.close()

    run(test)


def test_reading_ends_by_position_where_the_log_ends_in_markers(config: EngineConfig, settings: Settings) -> None:
    """The end of the changelog is always a marker or a hole, never a record: stock recovery would wait forever."""

    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        await producer.commit(rows_and_message(settings, b"a", rows=1), {})
        outbox = Outbox()
        outbox.put(b"a-0", None)
        await producer.commit(outbox, {})
        assert await read(config, config.changelog) == {b"a-0": None, TRANSACTION_KEY: b"2"}
        await producer.close()

    run(test)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(kafka_errors.TopicAuthorizationFailedError(), ProduceRefusedError, id="refused: seed 542"),
        pytest.param(None, PartitionLostError, id="nobody says why"),
    ],
)
def test_transaction_that_fails_while_batches_are_added(
    old_settings: Settings, outcome: Exception | None, expected: type[Exception]
) -> None:
    """The second topic's batch finds no transaction any more; what is told is why, not that."""

    async def test() -> None:
        producer = PartitionProducer(0, engine_config(old_settings))
        await producer.start()
        sent: list[asyncio.Future[object]] = []

        async def send_batch(*_: object, **__: object) -> asyncio.Future[object]:
            if sent:
                raise kafka_errors.IllegalOperation("Can't send messages while not in transaction")
            sent.append(asyncio.get_running_loop().create_future())
            if outcome is None:
                sent[0].set_result(None)
            else:
                sent[0].set_exception(outcome)
            return sent[0]

        producer._producer.send_batch = send_batch
        with pytest.raises(expected):
            await producer.commit(rows_and_message(old_settings, b"a"), POSITIONS)
        await producer.close()

    run(test)


@pytest.mark.kafka
def test_a_transaction_with_a_forbidden_topic_sends_nothing(tmp_path: Path) -> None:
    """Nor into the transaction before: seed 124 found rows and positions there, whose commands were refused.

    The broker of this test takes whatever it is sent, as a partition does in which that transaction is still open.
    """
    trusting = {"transaction.partition.verification.enable": "false"}
    with EmbeddedBroker(data=tmp_path / "kafka", properties=AUTHORIZER | trusting, features=WITHOUT_KIP_890) as broker:
        settings = declared(broker)
        config = engine_config(settings)

        places = [TopicPartition(config.changelog, 0), TopicPartition(settings.decisions_topic, 0)]
        with contextlib.closing(KafkaConsumer(**client_arguments(settings))) as log:

            async def test() -> None:
                producer = PartitionProducer(0, config)
                await producer.start()
                await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
                await asyncio.sleep(SETTLED_SECONDS)
                before = log.end_offsets(places)  # of all, aborted and open transactions included
                await asyncio.to_thread(forbid_writing, settings, settings.commands_topic)
                outbox = rows_and_message(settings, b"b")
                outbox.send(settings.decisions_topic, b"key", b"why", [])
                with pytest.raises(ProduceRefusedError):
                    await producer.commit(outbox, POSITIONS)
                await asyncio.sleep(SETTLED_SECONDS)
                await producer.close()
                successor = PartitionProducer(0, config)
                await successor.start()
                assert log.end_offsets(places) == before
                await successor.close()

            run(test)


def test_a_producer_whose_broker_answers_no_more_leaves_no_connection(own_broker: EmbeddedBroker) -> None:
    """Each partition that is lost in an outage would leave its own until the process ends."""
    settings = declared(own_broker, partitions=2, transaction_timeout_seconds=1.0)

    async def test() -> None:
        before = open_files()
        producer = PartitionProducer(0, engine_config(settings))
        busy = PartitionProducer(1, dataclasses.replace(engine_config(settings), transaction_timeout_seconds=30.0))
        for each in (producer, busy):
            await each.start()
            await each.commit(rows_and_message(settings, b"a"), POSITIONS)
        own_broker.pause()
        try:
            with pytest.raises(PartitionLostError):
                await producer.commit(rows_and_message(settings, b"b"), POSITIONS)
            assert open_files() > before
            await producer.close()
            await busy._producer.begin_transaction()
            batch = busy._producer.create_batch()
            batch.append(timestamp=None, key=b"key", value=b"value")
            await busy._producer.send_batch(batch, settings.commands_topic, partition=1)
            await busy.close()  # while somebody else waits for the batch
            await asyncio.sleep(1)  # in which one that lives on would connect anew
            assert open_files() == before
        finally:
            own_broker.resume()

    run(test)


def test_a_commit_that_is_cancelled_ends_at_once(own_broker: EmbeddedBroker) -> None:
    """Also one that was adding batches; whoever closes a partition waited for as long as a transaction may last."""
    settings = declared(own_broker)
    config = engine_config(settings)

    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        await producer.commit(rows_and_message(settings, b"a"), POSITIONS)
        large = Outbox()
        for number in range(3):
            large.put(b"%d" % number, bytes(config.max_batch_bytes * 3 // 4))
        own_broker.pause()
        try:
            committing = asyncio.create_task(producer.commit(large, POSITIONS))
            await asyncio.sleep(0.5)
            committing.cancel()
            _, late = await asyncio.wait([committing], timeout=1)
            assert not late
            await producer.close()
        finally:
            own_broker.resume()

    run(test)


def test_a_commit_without_answer_is_not_asked_for_again(old_settings: Settings) -> None:
    """The first request could be carried out after the next transaction has begun, and commit a part of that one."""
    asked: list[object] = []
    config = engine_config(old_settings)

    async def test() -> None:
        producer = PartitionProducer(0, config)
        await producer.start()
        send = producer._producer._send_request

        async def answer_is_lost(node: int, request: object, **how: object) -> object:
            answer = await send(node, request, **how)
            if isinstance(request, EndTxnRequest):
                asked.append(request)
                raise kafka_errors.KafkaConnectionError
            return answer

        producer._producer._send_request = answer_is_lost
        with pytest.raises(PartitionLostError):
            await producer.commit(rows_and_message(old_settings, b"a"), POSITIONS)
        await producer.close()
        assert len(asked) == 1
        assert (await read(config, old_settings.commands_topic)).keys() == {b"a"}, "it was carried out all the same"

    run(test)


def open_files() -> int:
    """How many of this process, sockets included."""
    return len(list(Path("/dev/fd").iterdir()))


def test_a_broker_that_names_no_broker_is_asked_again(config: EngineConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that has just been resumed; aiokafka fails an assertion then, which must not end the worker."""

    async def start(_client: object) -> None:
        raise AssertionError("Did we not perform bootstrap?")

    async def test() -> None:
        monkeypatch.setattr(AIOKafkaClient, "bootstrap", start)
        producer = PartitionProducer(0, config)
        with pytest.raises(PartitionLostError):
            await producer.start()
        await producer.close()
        with pytest.raises(KafkaClientError, match="KafkaConnectionError"):
            async with KafkaLogReader(config):
                pass

    run(test)
