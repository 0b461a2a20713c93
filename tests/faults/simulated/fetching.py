"""The part of a simulated worker that fetches inputs and delivers whole batches to its agents, some of them late.

It does what `engine.faust.transport` does. A batch says where the reader was before and after it, and after which seek
it was read. A batch that was on its way when a seek came is dropped; one that waits over a rebalance is delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evictstream.streams.engine.core.batches import Batch
from tests.faults.simulated.log import Fetched

if TYPE_CHECKING:
    from tests.faults.simulated.worker import Worker

Place = tuple[str, int]
IDLE_SECONDS = 1.0
FLOW_SECONDS = 0.1
BATCHES_IN_QUEUE = 4
HOLD_SECONDS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.1, 0.7)  # how late an agent may get to a batch


class Fetching:
    """Positions, epochs and queues of one worker's inputs. `flows` is false from a revocation to the next seek."""

    def __init__(self, worker: Worker) -> None:
        self.flows = False
        self._worker = worker
        self._world = worker.connection.broker.world
        self._positions: dict[Place, int] = {}
        self._epochs: dict[Place, int] = {}
        self._queues: dict[str, asyncio.Queue[Batch]] = {
            topic: asyncio.Queue(BATCHES_IN_QUEUE) for topic in worker.config.inputs
        }
        self._sought = asyncio.Event()

    def forget_others(self) -> None:
        """Drop the positions of partitions that are not assigned any more."""
        self._positions = {place: at for place, at in self._positions.items() if place[1] in self._worker.numbers}

    async def seek(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Read on from these offsets; returns the new seek epochs."""
        for place, offset in positions.items():
            if place[1] not in self._worker.numbers:
                message = f"{place} is not assigned"
                raise RuntimeError(message)
            self._epochs[place] = self._epochs.get(place, 0) + 1
            self._positions[place] = offset
        self._sought.set()
        return {place: self._epochs[place] for place in positions}

    async def run(self) -> None:
        """Fetch forever."""
        broker = self._worker.connection.broker
        while True:
            wanted = dict(self._positions)
            epochs = dict(self._epochs)
            limit = self._world.chance.choice([1, 3, 10, 50])

            def read(wanted: dict[Place, int] = wanted, limit: int = limit) -> dict[Place, Fetched]:
                return {place: broker.log(*place).read(at, limit, "read_committed") for place, at in wanted.items()}

            fetched = await self._worker.connection.request(read) if wanted else {}
            some = False
            for place, found in fetched.items():
                start = wanted[place]
                if self._epochs[place] != epochs[place] or place not in self._positions or found.position == start:
                    continue
                some = True
                self._positions[place] = found.position
                batch = Batch(*place, found.records, start, found.position, epochs[place])
                while not self.flows:  # noqa: ASYNC110 - an event would have to be made anew at each turn
                    await asyncio.sleep(FLOW_SECONDS)
                await self._queues[place[0]].put(batch)
            if not some:
                await self._pause()

    async def _pause(self) -> None:
        """Wait for something new, as a long poll does."""
        self._sought.clear()
        try:
            await asyncio.wait_for(self._sought.wait(), IDLE_SECONDS)
        except TimeoutError:
            return

    def wake(self) -> None:
        """Fetch at once: there is something new."""
        self._sought.set()

    async def run_agent(self, topic: str) -> None:
        """Deliver batches of one topic, forever."""
        while True:
            batch = await self._queues[topic].get()
            held_seconds = self._world.chance.choice(HOLD_SECONDS)
            if held_seconds:
                await asyncio.sleep(held_seconds)
            await self._worker.partitions.deliver(batch)
