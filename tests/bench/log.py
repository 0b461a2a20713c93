"""Reads the topics after a worker has stopped, to prove that it did the work that was timed."""

from __future__ import annotations

from typing import NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from evictstream.models.eviction.row_keys import split_row_key
from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, decode_positions
from evictstream.streams.partition.eviction_partition import POD_ROWS
from evictstream.streams.settings import Settings
from tests.bench.figures import require

Ends = dict[str, dict[int, int]]
"""Next offset by topic and partition."""


class Rows(NamedTuple):
    """A stretch of the changelog, as a `read_committed` reader sees it.

    Attributes:
        pods: the last row of each pod by UID.
        pods_written: how many rows of pods were written.
        positions: next offset to read by topic and partition.
    """

    pods: dict[str, bytes]
    pods_written: int
    positions: Ends


async def ends(settings: Settings, *topics: str) -> Ends:
    """Ask where topics end."""
    async with _Reader(settings) as reader:
        return {topic: await reader.ends(topic) for topic in topics}


async def rows_since(settings: Settings, first: dict[int, int]) -> Rows:
    """Read the changelog from these offsets to its end."""
    pods: dict[str, bytes] = {}
    written = 0
    positions: Ends = {topic: {} for topic in settings.input_topics}
    async with _Reader(settings) as reader:
        for partition, key, value in await reader.records(settings.changelog_topic, first):
            if key == POSITIONS_KEY and value is not None:
                for topic, offset in decode_positions(value).items():
                    positions[topic][partition] = offset
                continue
            if not key.startswith(POD_ROWS):
                continue
            _, _, uid = split_row_key(key)
            written += 1
            if value is None:
                pods.pop(uid, None)
            else:
                pods[uid] = value
    return Rows(pods, written, positions)


async def values(settings: Settings, topic: str) -> list[bytes]:
    """Read a whole topic, in order within each partition."""
    async with _Reader(settings) as reader:
        first = dict.fromkeys(range(settings.partitions), 0)
        return [value for _, _, value in await reader.records(topic, first) if value is not None]


async def require_all_read(settings: Settings, rows: Rows) -> None:
    """Refuse a run that left input unread, or found some of it unreadable."""
    found = await ends(settings, *settings.input_topics, settings.dead_letters_topic)
    require(not any(found.pop(settings.dead_letters_topic).values()), "there are dead letters")
    for topic, offsets in found.items():
        require(rows.positions[topic] == offsets, f"{topic} ends at {offsets}, read up to {rows.positions[topic]}")


class _Reader:
    def __init__(self, settings: Settings) -> None:
        self._partitions = settings.partitions
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
            max_partition_fetch_bytes=settings.max_fetch_bytes,
        )

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    def _all(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self._partitions)]

    async def ends(self, topic: str) -> dict[int, int]:
        found = await self._consumer.end_offsets(self._all(topic))
        return {partition.partition: offset for partition, offset in found.items()}

    async def records(self, topic: str, first: dict[int, int]) -> list[tuple[int, bytes, bytes | None]]:
        partitions = self._all(topic)
        self._consumer.assign(partitions)
        for partition in partitions:
            self._consumer.seek(partition, first[partition.partition])
        until = await self._consumer.end_offsets(partitions)
        found = []
        while any([await self._consumer.position(partition) < until[partition] for partition in partitions]):
            for partition, records in (await self._consumer.getmany(timeout_ms=200)).items():
                found += [(partition.partition, record.key, record.value) for record in records]
        return found
