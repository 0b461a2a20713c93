"""Where the inputs are read on: at the positions of the changelog, whatever the group has committed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import IllegalStateError
from aiokafka.structs import TopicPartition

from streams.engine.consumer import StoppableConsumer
from streams.engine.transport import EngineConsumerThread
from streams.errors import PartitionLostError
from streams.settings import Settings

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
