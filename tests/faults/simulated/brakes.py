"""The brakes topic of a simulation, and how each worker reads it, as `BrakesReader` does: asked for twice a second."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.streams.broker.brakes_reader import OLDEST_BRAKES_SECONDS
from evictstream.streams.engine.core.ports import Clock
from tests.faults.simulated.network import Connection

ASK_SECONDS = 0.5


class BrakeEntry(NamedTuple):
    """A record of the topic; `append_at_us` by the brokers' clock."""

    append_at_us: int
    key: bytes
    value: bytes | None


class SimulatedBrakes:
    """Implements `worker.gates.BrakesView` for one worker.

    Attributes:
        brakes: the newest that were read.
    """

    def __init__(self, connection: Connection, topic: list[BrakeEntry], clock: Clock) -> None:
        self.brakes: Brakes = NO_BRAKES
        self._connection = connection
        self._topic = topic
        self._clock = clock
        self._fresh_at = -math.inf
        self._read = 0

    def age_seconds(self) -> float:
        """Say how long ago all were known to have been read."""
        return self._clock.monotonic() - self._fresh_at

    def objection(self) -> str | None:
        """Say why nothing may be evicted."""
        return "too old" if self.age_seconds() > OLDEST_BRAKES_SECONDS else self.brakes.objection()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            asked_at = self._clock.monotonic()
            found = await self._connection.request(lambda: self._topic[self._read :])
            for entry in found:
                self.brakes = self.brakes.with_record(entry.key, entry.value, entry.append_at_us // 1000)
            self._read += len(found)
            self._fresh_at = asked_at
            await asyncio.sleep(ASK_SECONDS)
