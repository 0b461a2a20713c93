"""The brakes topic of a simulation, and how each worker reads it, as `BrakesReader` does: asked for twice a second."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from typing import Any

from evictstream.kit.oracle import BrakeRecord
from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.holds import Subject, longest_hold
from evictstream.streams.broker.steering_readers import OLDEST_VIEW_SECONDS
from evictstream.streams.engine.core.ports import Clock
from tests.faults.simulated.network import Connection

ASK_SECONDS = 0.5


class SimulatedBrakes:
    """Implements `worker.gates.BrakesView` for one worker.

    Attributes:
        brakes: the newest that were read.
    """

    def __init__(self, connection: Connection, topic: list[BrakeRecord], clock: Clock) -> None:
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
        return "too old" if self.age_seconds() > OLDEST_VIEW_SECONDS else self.brakes.objection()

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


def held_by(records: Iterable[BrakeRecord], command: Mapping[str, Any], now_us: int) -> str | None:
    """Say which brake an executor holds a command for that has read these records; it takes zones for its own."""
    brakes = NO_BRAKES
    for entry in records:
        brakes = brakes.with_record(entry.key, entry.value, entry.append_at_us // 1000)
    subject = Subject(command["namespace"], command["podUid"], command["reason"]["taint"]["key"], 0, "a")
    hold = longest_hold(brakes.of_cluster(command["cluster"], now_us), subject, now_us)
    return None if hold is None else hold.by
