"""Counts commands as they become readable, a million of them, and keeps what little is asked of each."""

from __future__ import annotations

import asyncio
import collections
import time
from types import TracebackType
from typing import Final, Self

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.streams.settings import Settings
from tests.bench.figures import require
from tests.bench.fleet import now_us

POLL_MS: Final = 20


class _Command(msgspec.Struct):
    action: str
    deadline: Moment


class Follower:
    """A `read_committed` reader of the commands.

    Attributes:
        counts: commands seen by action.
        late_ms: how late each `Evict` was when the poll returned with it.
    """

    def __init__(self, settings: Settings) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.late_ms: list[float] = []
        self._decoder = msgspec.json.Decoder(_Command)
        self._places = [TopicPartition(settings.commands_topic, number) for number in range(settings.partitions)]
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    async def __aenter__(self) -> Self:
        self._consumer.assign(self._places)
        await self._consumer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def until(self, action: str, count: int, *, seconds: float) -> None:
        """Read until that many commands of an action were seen since the beginning."""
        deadline = time.monotonic() + seconds
        while self.counts[action] < count:
            require(time.monotonic() < deadline, f"{self.counts[action]:,} of {count:,} {action} in {seconds:g} s")
            fetched = await self._consumer.getmany(timeout_ms=POLL_MS)
            at_us = now_us()
            for records in fetched.values():
                for record in records:
                    command = self._decoder.decode(record.value)
                    self.counts[command.action] += 1
                    if command.action == "Evict":
                        self.late_ms.append((at_us - microseconds(command.deadline)) / 1000)
            await asyncio.sleep(0)
        require(self.counts[action] == count, f"{self.counts[action]:,} {action} instead of {count:,}")
