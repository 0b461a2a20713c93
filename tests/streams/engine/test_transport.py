"""Where the inputs are read on: at the positions of the changelog, whatever the group has committed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalStateError, KafkaConnectionError
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.types import TP

from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.core.waits import WorkerWaits
from evictstream.streams.engine.faust.transport import EngineConsumerThread
from evictstream.streams.engine.kafka import group_member
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.engine.kafka.group_member import GroupMember
from evictstream.streams.errors import BrokerUnreachableError, PartitionLostError
from evictstream.streams.settings import Settings

PLACE = TopicPartition("pods", 3)


class Unconnected(GroupMember):
    """Was never started, and has nothing to close."""

    def __del__(self) -> None:
        pass


def fetching_member(**state: object) -> Any:
    """A group member without connections, with this state."""
    member: Any = Unconnected.__new__(Unconnected)
    member.__dict__.update(_epochs={}, _seen={}, _answered_ms=0, _closed=False, **state)
    return member


def thread_of(member: Any, **more: object) -> Any:
    """Faust's thread for a member, not started."""
    thread: Any = EngineConsumerThread.__new__(EngineConsumerThread)
    thread.__dict__.update(_ensure_consumer=lambda: member, **more)
    return thread


@pytest.mark.parametrize(
    "committed",
    [
        pytest.param(None, id="nothing"),
        pytest.param(7, id="less: the commit of offsets follows by a second"),
        pytest.param(50, id="more: somebody has set them"),
    ],
)
def test_inputs_are_sought_to_positions_not_to_group_offsets(committed: int | None) -> None:
    read_from = [committed]  # where a member begins by itself

    async def group_offset(place: TopicPartition) -> int | None:
        assert place == PLACE
        return committed

    member = fetching_member(seek=lambda _, offset: read_from.append(offset), committed=group_offset)
    assert asyncio.run(thread_of(member)._seek_inputs({PLACE: 42})) == {PLACE: 1}
    assert read_from[-1] == 42


def test_seeking_an_unassigned_partition_loses_it_without_a_crash() -> None:
    """The member's thread knows of a new assignment before anybody else is told."""

    def refuse(place: TopicPartition, offset: int) -> None:
        raise IllegalStateError(place, offset)

    with pytest.raises(PartitionLostError):
        asyncio.run(thread_of(fetching_member(seek=refuse))._seek_inputs({PLACE: 42}))


def test_stopping_a_consumer_that_fetches_does_not_cancel_the_caller(settings: Settings) -> None:
    """aiokafka lets the cancellation of its own fetches out, which ended a repair, or left a stop waiting."""

    async def test() -> None:
        consumer = StoppableConsumer(
            bootstrap_servers=settings.bootstrap_servers, largest_batch_bytes=settings.largest_batch_bytes
        )
        await consumer.start()
        consumer._fetcher._pending_tasks.add(asyncio.create_task(asyncio.sleep(60)))
        await consumer.stop()
        assert not consumer._client._conns

    asyncio.run(test())


def test_a_commit_that_was_given_up_may_fail_later(settings: Settings) -> None:
    """aiokafka goes on with it; asyncio reported its error, once in some hundred workers that had to end."""

    async def test() -> list[dict[str, Any]]:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        permit = Permit(time.monotonic)
        servers, group = settings.bootstrap_servers, settings.application_id
        consumer = GroupMember(
            permit, bootstrap_servers=servers, group_id=group, beat_places=[], largest_batch_bytes=1 << 20
        )
        await consumer.start()
        ends = asyncio.Event()

        async def send(_: object) -> None:
            await ends.wait()
            raise KafkaConnectionError

        consumer._coordinator.coordinator_id = 0
        consumer._coordinator._send_req = send
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await consumer._coordinator.commit_offsets(None, {PLACE: OffsetAndMetadata(7, "")})
        ends.set()
        await asyncio.sleep(0.1)
        gc.collect()
        await consumer.stop()
        return reported

    assert asyncio.run(test()) == []


def member_by(address: str, settings: Settings) -> GroupMember:
    """A member that finds the brokers by an address."""
    return GroupMember(
        Permit(time.monotonic),
        bootstrap_servers=address,
        group_id=settings.application_id,
        beat_places=[],
        largest_batch_bytes=1 << 20,
    )


def test_member_waits_for_a_broker_that_restarts_just_then(settings: Settings) -> None:
    """The worker ended as after an internal failure, where the checks before had found Kafka."""
    host, _, port = settings.required_bootstrap_servers().rpartition(":")

    async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while some := await source.read(65_536):
                target.write(some)
        target.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection(host, int(port))
        async with asyncio.TaskGroup() as both:
            both.create_task(pipe(reader, broker_writer))
            both.create_task(pipe(broker_reader, writer))

    async def test() -> None:
        with socket.socket() as held:  # bound and not listening: connections are refused
            held.bind(("127.0.0.1", 0))
            own_port = held.getsockname()[1]
            member = member_by(f"127.0.0.1:{own_port}", settings)
            starting = asyncio.create_task(member.start())
            await asyncio.sleep(0.5)
            assert not starting.done()
        async with await asyncio.start_server(accept, "127.0.0.1", own_port):
            await starting
            await member.stop()

    asyncio.run(test())


def test_member_gives_up_with_no_kafka_answered(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_member, "START_PATIENCE_SECONDS", 0.3)

    async def test() -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            member = member_by(f"127.0.0.1:{held.getsockname()[1]}", settings)
            with pytest.raises(BrokerUnreachableError, match="no Kafka answered"):
                await member.start()
            await member.stop()

    asyncio.run(test())


def test_answers_to_fetches_count_after_the_clock_was_set_back() -> None:
    """An idle worker ended itself after five minutes, with a broker that answers ten times a second."""
    state = SimpleNamespace(has_valid_position=True, position=7, timestamp=1_700_000_000_000)

    async def answered(*_: object, **__: object) -> dict[object, object]:
        state.timestamp += 100  # what aiokafka notes of each answer, with records or without
        return {}

    subscriptions = SimpleNamespace(
        subscription=SimpleNamespace(assignment=SimpleNamespace(state_value=lambda _: state)),
        fetch_context=contextlib.nullcontext,
    )
    member = fetching_member(
        _fetcher=SimpleNamespace(_subscriptions=subscriptions, _closed=False, fetched_records=answered)
    )
    member._epochs, member._seen = {tuple(PLACE): 1}, {tuple(PLACE): 7}
    waits = WorkerWaits()
    app = SimpleNamespace(partitions=SimpleNamespace(waits=waits))
    thread = thread_of(member, app=app, consumer=SimpleNamespace(flow_active=True))
    for _ in range(2):
        asyncio.run(thread._fetch_records(member, {TP(*PLACE)}, 0.2))
        asyncio.run(thread._fetch_records(member, {TP(*PLACE)}, 0.2))
        assert waits.fetch.since is None
        state.timestamp -= 600_000
