"""The guards of a takeover: no answer is not "nothing committed", and what was read is all that there is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from evictstream.streams.engine.core import takeover
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, encode_positions
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.errors import InputReplacedError, PartitionLostError, StateMissingError
from tests.harness.takeovers import take_over_once, taken_over

CONFIG = EngineConfig(
    application="app",
    bootstrap_servers="nowhere:1",
    security={},
    inputs=("nodes",),
    outputs=(),
    changelog="log",
    partitions=1,
)
FRESH: Any = [SimpleNamespace(partition=0)]


def ask(monkeypatch: pytest.MonkeyPatch, offsets: SimpleNamespace) -> None:
    async def nothing(_: object) -> None:
        pass

    async def send(_: object, request: object, node_id: int | None = None) -> SimpleNamespace:
        if type(request).__name__ == "FindCoordinatorRequest":
            return SimpleNamespace(error_code=0, coordinator_id=1)
        return offsets

    monkeypatch.setattr(AIOKafkaAdminClient, "start", nothing)
    monkeypatch.setattr(AIOKafkaAdminClient, "_send_request", send)

    async def run() -> None:
        await takeover._refuse_lost_state(FRESH, CONFIG, KafkaClients(CONFIG))

    asyncio.run(run())


def test_committed_offsets_beside_an_empty_changelog_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateMissingError):
        ask(monkeypatch, SimpleNamespace(topics=[("nodes", [(0, 7, "", 0)])], error_code=0))


@pytest.mark.parametrize("code", [14, 16])
def test_no_answer_of_a_coordinator_is_not_nothing_committed(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR come as an error of the whole answer, without topics."""
    with pytest.raises(KafkaClientError, match="GroupCoordinatorNotAvailable"):  # the takeover is tried again
        ask(monkeypatch, SimpleNamespace(topics=[], error_code=code))


def test_a_deposed_leaders_old_changelog_is_not_the_state(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that was frozen, and does not know yet that another has its place, answers with its old end."""
    row = Outbox()
    row.put(b"row", b"of today")
    positions = {POSITIONS_KEY: encode_positions(dict.fromkeys(config.inputs, 0))}
    right = StoppableConsumer.end_offsets

    async def test() -> None:
        owner = (await taken_over(config))[0]
        yesterday = owner.read_to + 1  # its first transaction has a row
        await owner.producer.commit(row, positions)
        await owner.producer.close()

        async def outdated(self: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
            ends: dict[TopicPartition, int] = await right(self, partitions)
            return {place: yesterday if place.topic == config.changelog else end for place, end in ends.items()}

        with monkeypatch.context() as patched:
            patched.setattr(StoppableConsumer, "end_offsets", outdated)
            with pytest.raises(PartitionLostError, match="was read up to"):
                await take_over_once(config)
        again = (await taken_over(config))[0]
        assert again.rows == owner.rows + 5, (
            "the row, and positions and number twice; nothing of who had read too little"
        )
        await again.producer.close()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_an_input_end_before_the_position_is_asked_for_again(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be that of a deposed leader; an input that was really cut is refused only after some seconds."""
    monkeypatch.setattr(takeover, "LOOK_AGAIN_SECONDS", 0.01)
    right = StoppableConsumer.end_offsets
    feed, asked = config.inputs[0], 0

    async def outdated(self: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        nonlocal asked
        ends: dict[TopicPartition, int] = await right(self, partitions)
        asked += any(place.topic == feed for place in ends)
        return {
            place: 0 if place.topic == feed and asked <= takeover.LOOKS_AGAIN else end for place, end in ends.items()
        }

    async def test() -> None:
        async with AIOKafkaProducer(bootstrap_servers=config.bootstrap_servers) as producer:
            await producer.send_and_wait(feed, b"x", partition=0)
        owner = (await taken_over(config))[0]
        at_end = {POSITIONS_KEY: encode_positions({**dict.fromkeys(config.inputs, 0), feed: 1})}
        await owner.producer.commit(Outbox(), at_end)
        await owner.producer.close()
        monkeypatch.setattr(StoppableConsumer, "end_offsets", outdated)
        again = (await taken_over(config))[0]
        assert again.positions[feed] == 1
        await again.producer.close()
        nonlocal asked
        asked = -takeover.LOOKS_AGAIN
        with pytest.raises(InputReplacedError):
            await take_over_once(config)

    asyncio.run(asyncio.wait_for(test(), 60))
