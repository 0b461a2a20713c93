"""What shows only after hours or weeks, or where a machine goes without a word: with shortened times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.waits import Wait
from evictstream.streams.engine.kafka import connection
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import engine_config
from tests.harness.members import group_member, is_in_reserve, member, owned, run, until
from tests.harness.offset_logic import OffsetLogic
from tests.streams.engine.transactions import POSITIONS, WITHOUT_KIP_890, declared, rows_and_message

ANSWER_SECONDS = 1.0
AUTHENTICATED_SECONDS = 3.0
PASSWORD = "of-a-test"
BROKERS = pytest.mark.parametrize(
    "features", [{}, pytest.param(WITHOUT_KIP_890, marks=pytest.mark.kit)], ids=["KIP-890", "before it"]
)


def test_nothing_is_kept_of_batches_that_were_taken(config: EngineConfig) -> None:
    """Faust keeps the offset of each message that was acked until it commits it, which it never does here."""

    async def test() -> None:
        async with member(config) as app, AIOKafkaProducer(bootstrap_servers=config.bootstrap_servers) as feed:
            await until(lambda: owned(app) == {0, 1}, "taken over")
            for _ in range(20):
                await feed.send_and_wait(config.inputs[0], b"x", partition=0)
            offsets = [cast("OffsetLogic", writer.logic).offsets for writer in app.partitions.live()]
            await until(lambda: sum(map(len, offsets)) == 20, "read")
            kept = {name: sum(map(len, getattr(app.consumer, name).values())) for name in ("_acked", "_acked_index")}
            assert kept == {"_acked": 0, "_acked_index": 0}
            assert not app.consumer.unacked

    run(test)


def test_a_worker_without_partitions_ages_while_its_group_is_silent(config: EngineConfig) -> None:
    """It asks aiokafka's old addresses forever, where all brokers have new ones."""

    async def test() -> None:
        async with member(config) as owner:
            await until(lambda: owned(owner) == {0, 1}, "taken over")
            async with member(config) as second, member(config) as reserve:
                apps = (owner, second, reserve)
                await until(lambda: any(is_in_reserve(app) for app in apps), "in reserve")
                idle = next(app for app in apps if is_in_reserve(app))
                waits = idle.partitions.waits
                await until(lambda: waits.heartbeat.since is not None, "confirmed")

                def age() -> float:
                    now = asyncio.get_running_loop().time()
                    committers = (writer.committer for writer in idle.partitions.live())
                    return waits.ages(now, committers, Wait())["heartbeat"]  # type: ignore[index]

                await asyncio.sleep(2 * config.heartbeat_seconds)
                assert age() < config.heartbeat_seconds + 2.0

                async def silent() -> bool:
                    return False

                group_member(idle)._coordinator._do_heartbeat = silent
                await asyncio.sleep(3 * config.heartbeat_seconds)
                assert age() > 2 * config.heartbeat_seconds

    run(test)


@pytest.mark.kafka
def test_sequence_numbers_begin_anew_as_brokers_count() -> None:
    """With KIP-890 they begin anew with each transaction."""
    with EmbeddedBroker(features=WITHOUT_KIP_890) as broker:

        async def test() -> None:
            config = engine_config(settings := declared(broker))
            producer = PartitionProducer(0, config)
            await producer.start()
            numbers = producer._producer._txn_manager._sequence_numbers
            numbers[TopicPartition(config.changelog, 0)] = 2**31 - 6
            for name in (b"a", b"b", b"c"):
                await producer.commit(rows_and_message(settings, name), POSITIONS)
            await producer.close()

        run(test)


@contextlib.asynccontextmanager
async def forgetful_way(own_port: int, broker_port: int) -> AsyncIterator[asyncio.Event]:
    """A way to a broker that swallows what comes over its older connections once the event is set."""
    forgotten = asyncio.Event()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_new: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65_536):
                if is_new or not forgotten.is_set():
                    writer.write(chunk)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_new = forgotten.is_set()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", broker_port)
        await asyncio.gather(carry(reader, far_writer, is_new=is_new), carry(far_reader, writer, is_new=is_new))

    server = await asyncio.start_server(accept, "127.0.0.1", own_port)
    try:
        yield forgotten
    finally:
        server.close()


@pytest.mark.kafka
@BROKERS
def test_connections_that_went_dead_without_a_word_lose_no_transaction(
    features: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the end of a machine, or behind a box that forgets idle connections."""
    monkeypatch.setattr(connection, "_ANSWER_SECONDS", ANSWER_SECONDS)
    with EmbeddedBroker(detours=1, features=features) as broker:
        detour = broker.nodes[0].address.detours[0]
        direct = declared(broker)

        async def test() -> None:
            async with forgetful_way(detour.told_port, detour.listen_port) as forgotten:
                servers = f"127.0.0.1:{detour.told_port}"
                settings = Settings.model_validate(
                    direct.model_dump(exclude_unset=True) | {"bootstrap_servers": servers}
                )
                producer = PartitionProducer(0, engine_config(settings))
                await producer.start()
                await producer.commit(rows_and_message(settings, b"before"), POSITIONS)
                forgotten.set()
                async with asyncio.timeout(10 * ANSWER_SECONDS):
                    await producer.commit(Outbox(), POSITIONS)
                await producer.close()

        run(test)


@pytest.mark.kafka
@BROKERS
def test_no_transaction_is_lost_where_clients_have_to_authenticate_anew(
    features: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers close a connection whose time is over with the next request; aiokafka does not authenticate again."""
    monkeypatch.setattr(connection, "RENEW_SECONDS", AUTHENTICATED_SECONDS / 3)
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,DETOUR0:SASL_PLAINTEXT"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_worker="{PASSWORD}";'
    properties = {
        "listener.security.protocol.map": protocols,
        "listener.name.detour0.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.detour0.plain.sasl.jaas.config": login,
        "connections.max.reauth.ms": f"{AUTHENTICATED_SECONDS * 1_000:.0f}",
    }
    with EmbeddedBroker(detours=1, properties=properties, features=features) as broker:
        detour = broker.nodes[0].address.detours[0]
        sasl = {
            "bootstrap_servers": f"127.0.0.1:{detour.told_port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "worker",
            "sasl_password": PASSWORD,
        }
        settings = Settings.model_validate(declared(broker).model_dump(exclude_unset=True) | sasl)

        async def test() -> None:
            async with forgetful_way(detour.told_port, detour.listen_port):
                producer = PartitionProducer(0, engine_config(settings))
                await producer.start()
                await producer.commit(rows_and_message(settings, b"young"), POSITIONS)
                await asyncio.sleep(AUTHENTICATED_SECONDS / 2)
                client = producer._producer
                ending, name = (client, "commit_transaction") if client.v2 is None else (client.v2, "end")
                end = getattr(ending, name)

                async def end_late(**how: object) -> object:
                    await asyncio.sleep(AUTHENTICATED_SECONDS * 2 / 3)
                    return await end(**how)

                monkeypatch.setattr(ending, name, end_late)
                await producer.commit(rows_and_message(settings, b"old"), POSITIONS)
                await producer.close()

        run(test)
