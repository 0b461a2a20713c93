"""Has each partition publish its clusters, once a second.

Its gates are not asked: what is published is in the log already, and people look when a gate is closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.served_partition import ServedPartition

PUBLISH_SECONDS: Final = 1.0
"""Between two turns, and so between two records of a key. Programs that place pods elsewhere act on seconds."""


class FleetPublisher:
    """Publishes the clusters of all live partitions."""

    def __init__(self, partitions: Partitions[ServedPartition], clock: Clock) -> None:
        self._partitions = partitions
        self._clock = clock

    async def run(self) -> None:
        """Run turns until cancelled."""
        while True:
            await asyncio.sleep(PUBLISH_SECONDS)
            for writer in list(self._partitions.live()):
                if writer.live:
                    await self._turn(writer)

    async def _turn(self, writer: PartitionWriter[ServedPartition]) -> None:
        """Let one partition publish, and others run between its slices; a full outbox waits for the next turn."""
        committer = writer.committer
        try:
            for _ in writer.logic.published.turn(self._clock.now_us(), committer.outbox):
                committer.wake()
                await asyncio.sleep(0)
                if not (writer.live and committer.has_room):
                    return
        except Exception as error:  # noqa: BLE001 - as in `PartitionWriter`: a bug must not move positions on
            writer.fail(error)
            return
        committer.wake()
