"""Has each partition publish its clusters, once a second.

Its gates are not asked: what is published is in the log already, and people look when a gate is closed.
"""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.served_partition import ServedPartition

PUBLISH_SECONDS: Final = 1.0
"""Between two turns, and so between two records of a key. Programs that place pods elsewhere act on seconds."""

_OVER: Final = object()


class FleetPublisher:
    """Publishes the clusters of all live partitions."""

    def __init__(self, partitions: Partitions[ServedPartition], clock: Clock) -> None:
        self._partitions = partitions
        self._clock = clock

    async def run(self) -> None:
        """Run turns until cancelled."""
        while True:
            await asyncio.sleep(PUBLISH_SECONDS)
            await self._turn()

    async def _turn(self) -> None:
        """Let all partitions publish, a slice of each in turn, so that none waits for what a long one counts."""
        turns = collections.deque(
            (writer, writer.logic.published.turn(self._clock.now_us(), writer.committer.outbox))
            for writer in self._partitions.live()
            if writer.live
        )
        while turns:
            writer, turn = turns.popleft()
            if self._run_slice(writer, turn):
                await asyncio.sleep(0)
                if writer.live and writer.committer.has_room:  # a full outbox waits for the next turn
                    turns.append((writer, turn))

    @staticmethod
    def _run_slice(writer: PartitionWriter[ServedPartition], turn: Iterator[None]) -> bool:
        """Run one slice of a partition's turn; returns whether others may run before the next one."""
        if not writer.live:
            return False
        try:
            is_over = next(turn, _OVER) is _OVER
        except Exception as error:  # noqa: BLE001 - as in `PartitionWriter`: a bug must not move positions on
            writer.fail(error)
            return False
        writer.committer.wake()
        return not is_over
