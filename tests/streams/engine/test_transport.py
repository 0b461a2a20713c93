"""Where the inputs are read on: at the positions of the changelog, whatever the group has committed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalStateError, KafkaConnectionError
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.types import TP

from evictstream.streams.engine.core.waits import WorkerWaits
from evictstream.streams.engine.faust.transport import EngineConsumerThread
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.errors import PartitionLostError
from evictstream.streams.settings import Settings

PLACE = TopicPartition("pods", 3)


class Consumer:
    """A group member that would begin where its group has committed."""

    def __init__(self, committed: int | None) -> None:
        self._committed = committed
        self.reads_from = committed

    async def committed(self, place: TopicPartition) -> int | None:
        assert place == PLACE
        return self._committed

    def seek(self, place: TopicPartition, offset: int) -> None:
        assert place == PLACE
        self.reads_from = offset


@pytest.mark.parametrize(
    "committed",
    [
        pytest.param(None, id="nothing"),
        pytest.param(7, id="less: the commit of offsets follows by a second"),
        pytest.param(50, id="more: somebody has set them"),
    ],
)
def test_inputs_are_sought_to_the_positions_not_to_what_the_group_has_committed(
    committed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Consumer(committed)
    thread: Any = EngineConsumerThread.__new__(EngineConsumerThread)  # its thread and its group are not needed
    thread._epochs, thread._seen = {}, {}
    monkeypatch.setattr(thread, "_ensure_consumer", lambda: consumer)
    assert asyncio.run(thread._seek_inputs({PLACE: 42})) == {PLACE: 1}
    assert consumer.reads_from == 42


def test_a_partition_that_is_no_longer_ours_is_lost_and_no_reason_to_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The member's thread knows of a new assignment before anybody else is told."""

    class Stranger:
        def seek(self, place: TopicPartition, offset: int) -> None:
            raise IllegalStateError(place, offset)

    thread: Any = EngineConsumerThread.__new__(EngineConsumerThread)
    thread._epochs, thread._seen = {}, {}
    monkeypatch.setattr(thread, "_ensure_consumer", Stranger)
    with pytest.raises(PartitionLostError):
        asyncio.run(thread._seek_inputs({PLACE: 42}))


def test_who_stops_a_consumer_that_waits_to_fetch_again_is_not_cancelled(settings: Settings) -> None:
    """aiokafka lets the cancellation of its own fetches out, which ended a repair, or left a stop waiting."""

    async def test() -> None:
        consumer = StoppableConsumer(bootstrap_servers=settings.bootstrap_servers)
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
        consumer = StoppableConsumer(bootstrap_servers=settings.bootstrap_servers, group_id=settings.application_id)
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
    member: Any = SimpleNamespace(
        _fetcher=SimpleNamespace(_subscriptions=subscriptions, _closed=False, fetched_records=answered), _closed=False
    )
    waits = WorkerWaits()
    thread: Any = EngineConsumerThread.__new__(EngineConsumerThread)
    thread.__dict__.update(
        app=SimpleNamespace(partitions=SimpleNamespace(waits=waits)),
        consumer=SimpleNamespace(flow_active=True),
        _epochs={tuple(PLACE): 1},
        _seen={tuple(PLACE): 7},
        _answered_ms=0,
    )
    for _ in range(2):
        asyncio.run(thread._fetch_records(member, {TP(*PLACE)}, 0.2))
        asyncio.run(thread._fetch_records(member, {TP(*PLACE)}, 0.2))
        assert waits.fetch.since is None
        state.timestamp -= 600_000
