"""How far the worker is behind: what was written less the group's offsets, which follow the state by a second."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from evictstream.streams.settings import Settings
from tests.bench.figures import require
from tests.harness.topics import alter_topics

ASK_SECONDS: Final = 0.5
STUCK_SECONDS: Final = 120.0
SEGMENT_BYTES: Final = 32 * 1024 * 1024  # only whole segments are deleted


class Backlog:
    """Asks for it. Inputs are cut to some bytes by partition meanwhile: an hour of a fleet would fill the disk."""

    def __init__(self, settings: Settings, *, retention_bytes: int) -> None:
        self._settings = settings
        self._retention_bytes = retention_bytes
        self._places = [
            TopicPartition(topic, number) for topic in settings.input_topics for number in range(settings.partitions)
        ]
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers, group_id=settings.faust_app_id, enable_auto_commit=False
        )

    async def __aenter__(self) -> Self:
        limits = {"retention.bytes": str(self._retention_bytes), "segment.bytes": str(SEGMENT_BYTES)}
        alter_topics(self._settings, {self._settings.pods_topic: limits})
        self._consumer.assign(self._places)
        await self._consumer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def below(self, count: int) -> None:
        """Wait until at most that many records are unread."""
        clock = asyncio.get_running_loop().time
        behind, since = await self._behind(), clock()
        while behind > count:
            await asyncio.sleep(ASK_SECONDS)
            before, behind = behind, await self._behind()
            if behind < before:
                since = clock()
            require(clock() - since < STUCK_SECONDS, f"the worker stands still {behind:,} records behind")

    async def _behind(self) -> int:
        ends = await self._consumer.end_offsets(self._places)
        behind = 0
        for place in self._places:
            behind += int(ends[place]) - int(await self._consumer.committed(place) or 0)
        return behind
