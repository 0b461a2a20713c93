"""The topics of brakes and policies of a simulation, and how each worker reads them: asked for twice a second."""

from __future__ import annotations

import asyncio
import math
from typing import Generic, TypeVar

from evictstream.kit.oracle import KeyedRecord
from evictstream.models.steering.brakes import Brakes
from evictstream.models.steering.policies import Policies
from evictstream.streams.broker.steering_readers import OLDEST_VIEW_SECONDS
from evictstream.streams.engine.core.ports import Clock
from tests.faults.simulated.network import Connection

ASK_SECONDS = 0.5


_View = TypeVar("_View", Brakes, Policies)


class SimulatedView(Generic[_View]):
    """Implements `worker.gates.SteeringView` for one worker.

    Attributes:
        view: the newest that was read.
    """

    def __init__(self, connection: Connection, topic: list[KeyedRecord], clock: Clock, nothing: _View) -> None:
        self.view: _View = nothing
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
        return "too old" if self.age_seconds() > OLDEST_VIEW_SECONDS else self.view.objection()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            asked_at = self._clock.monotonic()
            found = await self._connection.request(lambda: self._topic[self._read :])
            for entry in found:
                self.view = self.view.with_record(entry.key, entry.value, entry.append_at_us // 1000)
            self._read += len(found)
            self._fresh_at = asked_at
            await asyncio.sleep(ASK_SECONDS)


class SimulatedBrakes(SimulatedView[Brakes]):
    """Implements `worker.gates.BrakesView`."""

    @property
    def brakes(self) -> Brakes:
        """The newest that were read."""
        return self.view


class SimulatedPolicies(SimulatedView[Policies]):
    """Implements `worker.gates.PoliciesView`."""

    @property
    def policies(self) -> Policies:
        """The newest that were read."""
        return self.view
