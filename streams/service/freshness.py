"""How fresh a partition's view is: when it was last known to have applied everything in the log.

Every second the worker asks the brokers where all inputs end. An answer says "at the moment of asking, the log ended
here". Once the partition's positions have passed it, the view is at least as fresh as that moment. Without an answer,
or without progress, the view ages. This one number covers a slow worker, a slow consumer and a silent broker. It counts
transaction markers and compacted records right, because it compares positions, and it needs only the worker's clock.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.engine.core.ports import KafkaClientError, Place
from evictstream.streams.errors import BrokerError
from evictstream.streams.service.lag import Lag

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock, Group
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.service.eviction_partition import EvictionPartition

log = structlog.get_logger(__name__)

ASK_SECONDS = 1.0  # one ListOffsets request for each broker: it costs nothing
ANSWER_TIMEOUT_SECONDS = 5.0
SAMPLES_KEPT = 30  # answers not passed yet, by partition

ASK_NEWEST_AGAIN_SECONDS = 10.0  # each question takes a client of its own, and each partition needs one answer

AskNewest = Callable[[list[Place]], Awaitable[Mapping[Place, int]]]


class Freshness:
    """Asks for ends and keeps, by partition number, the answers that are not passed yet.

    Attributes:
        lag: the lag of each input, from the same answers.
    """

    def __init__(self, partitions: Partitions[EvictionPartition], group: Group, clock: Clock) -> None:
        self.lag = Lag()
        self._partitions = partitions
        self._group = group
        self._clock = clock
        self._samples: dict[int, collections.deque[tuple[float, dict[str, int]]]] = {}
        self._fresh_at: dict[int, float] = {}

    async def run(self) -> None:
        """Ask for ever. Of failures in a row only the first is logged; the views age by themselves."""
        has_failed = False
        while True:
            try:
                await self.ask_once()
            except (KafkaClientError, OSError) as error:  # a TimeoutError is one
                if not has_failed:
                    log.warning("the brokers do not tell where inputs end", error=str(error) or repr(error))
                has_failed = True
            else:
                has_failed = False
            await asyncio.sleep(ASK_SECONDS)

    async def ask_once(self) -> None:
        """Ask for the ends of all inputs of live partitions and keep the answer until they have passed it."""
        writers = list(self._partitions.live())
        asked_at = self._clock.monotonic()
        wanted = [(topic, writer.partition) for writer in writers for topic in writer.positions]
        if not wanted:
            return
        asked_us = self._clock.now_us()
        async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
            ends = await self._group.end_offsets(wanted)
        self.lag.note_ends(ends, asked_us)
        for writer in writers:
            samples = self._samples.setdefault(writer.partition, collections.deque())
            if len(samples) < SAMPLES_KEPT:  # else a partition that is always behind by more would never pass one
                samples.append((asked_at, {topic: ends[topic, writer.partition] for topic in writer.positions}))

    async def watch_newest(self, ask_newest: AskNewest) -> None:
        """Ask for ever, once by partition, for the time of the newest record that stood in the log before.

        `ask_newest` gives the append times of the newest records, microseconds, and may take seconds.
        """
        while True:
            await asyncio.sleep(ASK_SECONDS)
            positions = {(t, w.partition): offset for w in self._partitions.live() for t, offset in w.positions.items()}
            unknown = self.lag.unknown(positions)
            if not unknown:
                continue
            try:
                self.lag.note_newest(await ask_newest(unknown))
            except BrokerError as error:
                log.warning("the brokers do not tell the times of newest records", error=str(error))
            await asyncio.sleep(ASK_NEWEST_AGAIN_SECONDS)

    def age_seconds(self, writer: PartitionWriter[EvictionPartition]) -> float:
        """Seconds since the partition was last known to have applied everything in the log; may be infinite."""
        samples = self._samples.get(writer.partition, collections.deque())
        while samples and all(writer.positions.get(topic, -1) >= end for topic, end in samples[0][1].items()):
            self._fresh_at[writer.partition] = samples.popleft()[0]
        return self._clock.monotonic() - self._fresh_at.get(writer.partition, float("-inf"))
