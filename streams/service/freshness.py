"""How fresh a partition's view is: when we last knew that we had applied everything there was.

Every second the brokers are asked for the ends of all inputs. An answer says "at the moment we asked, the log
ended here"; once the partition's positions have passed it, the view is known to be at least as fresh as that
moment. No answer, or no progress, and the view ages. This one number covers a slow worker, a slow consumer and a
silent broker, counts markers and holes right because it looks at positions, and needs no clock but our own.
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

ASK_SECONDS = 1.0  # one ListOffsets request per broker and second costs nothing
ANSWER_TIMEOUT_SECONDS = 5.0
SAMPLES_KEPT = 30  # unmet answers by partition; newer ones wait until the oldest has been passed

ASK_NEWEST_AGAIN_SECONDS = 10.0  # it takes a client of its own, and only one answer by partition is needed

AskNewest = Callable[[list[Place]], Awaitable[Mapping[Place, int]]]


class Freshness:
    """Asks for ends and remembers, by partition number, which answers have been passed.

    Attributes:
        lag: what the answers say of the lag of inputs.

    """

    def __init__(self, partitions: Partitions[EvictionPartition], group: Group, clock: Clock) -> None:
        self.lag = Lag()
        self._partitions = partitions
        self._group = group
        self._clock = clock
        self._samples: dict[int, collections.deque[tuple[float, dict[str, int]]]] = {}
        self._fresh_at: dict[int, float] = {}

    async def run(self) -> None:
        """Ask for ever. The first failed answer of a row is only logged: the views age by themselves."""
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
        """Ask for the ends of all inputs of live partitions and keep the answer until it is passed."""
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
            if len(samples) < SAMPLES_KEPT:  # or none would ever be passed by who is always behind by more than these
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
        """Seconds since a moment at which everything in the log is known to be applied; may be infinite."""
        samples = self._samples.get(writer.partition, collections.deque())
        while samples and all(writer.positions.get(topic, -1) >= end for topic, end in samples[0][1].items()):
            self._fresh_at[writer.partition] = samples.popleft()[0]
        return self._clock.monotonic() - self._fresh_at.get(writer.partition, float("-inf"))
