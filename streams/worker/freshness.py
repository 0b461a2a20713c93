"""How fresh a partition's view is: when it was last known to have applied everything in the log.

At a takeover, and then every second, the worker asks the brokers where all inputs end. At the moment of asking the log
ended there, or earlier. Once the partition's positions have reached these ends, the view is at least as fresh as that
moment. Without an answer, or without progress, the view ages. So one number covers a slow worker, a slow consumer and a
silent broker. Comparing positions makes it right for transaction markers and compacted records, and it needs only the
worker's clock.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.engine.core.ports import KafkaClientError, Place
from evictstream.streams.errors import BrokerError
from evictstream.streams.worker.lag import Lag

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock, Group
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.served_partition import ServedPartition

log = structlog.get_logger(__name__)

ASK_SECONDS = 1.0  # between questions; each is one small ListOffsets request for each broker
ANSWER_TIMEOUT_SECONDS = 5.0  # half of the default `lag_limit_seconds`: one unanswered question closes no gate
SAMPLES_KEPT = 30  # most answers of one partition whose ends it has not reached: half a minute of them

ASK_NEWEST_AGAIN_SECONDS = 10.0  # seldom, since each question makes a client; each partition needs one answer

AskNewest = Callable[[list[Place]], Awaitable[Mapping[Place, int]]]


class Freshness:
    """Asks for the ends of inputs and keeps, by partition number, the answers whose ends are not reached yet.

    Attributes:
        lag: the lag of each input, from the same answers.
    """

    def __init__(self, partitions: Partitions[ServedPartition], group: Group, clock: Clock) -> None:
        self.lag = Lag()
        self._partitions = partitions
        self._group = group
        self._clock = clock
        self._samples: dict[int, collections.deque[tuple[float, dict[str, int]]]] = {}
        self._fresh_at: dict[int, float] = {}

    async def run(self) -> None:
        """Ask until cancelled. Logs only the first of several failures in a row; meanwhile the views age."""
        has_failed = False
        while True:
            try:
                await self.ask_once()
            except (KafkaClientError, OSError) as error:  # a TimeoutError is one
                if not has_failed:
                    log.warning("end offsets of inputs unavailable", error=str(error) or repr(error))
                has_failed = True
            else:
                has_failed = False
            await asyncio.sleep(ASK_SECONDS)

    async def ask_once(self) -> None:
        """Ask for the ends of all inputs of live partitions, and keep the answer until positions have reached them."""
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
            if (
                len(samples) < SAMPLES_KEPT
            ):  # the oldest stay: dropping them, a partition that lags by more would never reach one
                samples.append((asked_at, {topic: ends[topic, writer.partition] for topic in writer.positions}))

    async def watch_newest(self, ask_newest: AskNewest) -> None:
        """Ask until cancelled, once for each partition, for the time of the newest record that was in the log before.

        `ask_newest` returns the append times of newest records (microseconds), perhaps after seconds.
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
                log.warning("times of newest records unavailable", error=str(error))
            await asyncio.sleep(ASK_NEWEST_AGAIN_SECONDS)

    def note(self, writer: PartitionWriter[ServedPartition]) -> None:
        """Take in how far a partition has read: ends that it has reached prove how fresh its view is."""
        samples = self._samples.get(writer.partition, collections.deque())
        while samples and all(writer.positions.get(topic, -1) >= end for topic, end in samples[0][1].items()):
            self._fresh_at[writer.partition] = samples.popleft()[0]
        if writer.caught_up:
            known_at = self._fresh_at.get(writer.partition, float("-inf"))
            self._fresh_at[writer.partition] = max(known_at, writer.ends_asked_at)

    def age_seconds(self, partition: int) -> float:
        """Seconds since the partition was last known to have applied everything in the log; may be infinite."""
        return self._clock.monotonic() - self._fresh_at.get(partition, float("-inf"))
