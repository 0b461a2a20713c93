"""One simulated worker: the service's `WorkerCore` with a simulated Kafka, group and clock, and Faust's share.

Faust's share is simulated: joining the group, heartbeats, holding back at a revocation (stop the flow, flush, commit,
rejoin), one agent for each input, the fetching consumer with its seek epochs, and regular commits. What follows on an
assignment is `engine.core.ownership`, as it is in `engine.faust.recovery`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from evictstream.kit.oracle import KeyedRecord
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.ownership import Ownership
from evictstream.streams.engine.core.ports import Place
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.engine.kafka.errors import translated_errors
from evictstream.streams.errors import PartitionLostError
from evictstream.streams.partition.config import PartitionConfig
from evictstream.streams.worker.gates import GateLimits
from evictstream.streams.worker.worker_core import WorkerCore
from tests.faults.simulated.brakes import SimulatedBrakes, SimulatedPolicies
from tests.faults.simulated.broker import Broker
from tests.faults.simulated.clients import client_classes
from tests.faults.simulated.fetching import Fetching
from tests.faults.simulated.group import Group
from tests.faults.simulated.network import Connection
from tests.faults.simulated.world import VirtualLoop, World

RETRY_PAUSE_SECONDS = 1.0
LONGEST_SLEEP_SECONDS = 0.5  # of the timer service: an opened gate may be noticed later, and a run takes less time


class WorkerClock:
    """Implements `engine.core.ports.Clock` for one worker; wall clocks of workers may differ."""

    def __init__(self, world: World, worker: Worker) -> None:
        self._world = world
        self._worker = worker

    def monotonic(self) -> float:
        """Read the monotonic clock, seconds."""
        return self._world.monotonic_seconds

    def now_us(self) -> int:
        """Read the wall clock, microseconds since 1970 in UTC."""
        return self._world.now_us + self._worker.clock_off_us


class SimulatedGroup:
    """Implements `engine.core.ports.Group` for one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def is_rebalancing(self) -> bool:
        """Whether the group assigns anew."""
        return self._worker.rebalancing

    async def seek(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Read on from these offsets; gives the new epochs."""
        return await self._worker.fetching.seek(positions)

    async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask for the last stable offsets."""
        connection = self._worker.connection
        logs = connection.broker.log
        with translated_errors():
            return await connection.request(
                lambda: {place: logs(*place).readable_end("read_committed") for place in places}
            )

    def leave(self) -> None:
        """Nothing: simulated workers are never stuck."""


class Worker:
    """A process of the service.

    Attributes:
        loop: its event loop.
        clock_off_us: how far its wall clock is ahead.
        is_paused: whether its process is frozen.
        is_dead: whether its process has ended.
        crashed: the error that ended it, if one did.
    """

    def __init__(
        self,
        name: str,
        *,
        world: World,
        broker: Broker,
        group: Group,
        config: EngineConfig,
        service: PartitionConfig,
        limits: GateLimits,
        brakes: list[KeyedRecord],
        policies: list[KeyedRecord],
        on_end: Callable[[Worker], None],
    ) -> None:
        self.name = name
        self.clock_off_us = 0
        self.is_paused = False
        self.is_dead = False
        self.crashed: BaseException | None = None
        self.loop = VirtualLoop(lambda: world.monotonic_seconds)
        self.connection = Connection(self, broker)
        self.config = config
        self.generation = -1
        self.numbers: frozenset[int] = frozenset()
        self.fetching = Fetching(self)
        self.rebalancing = False
        self._world = world
        self._group = group
        self._service = service
        self._limits = limits
        self._brakes = brakes
        self._policies = policies
        self._on_end = on_end
        self._joins = itertools.count()
        self._stopping = False
        self._recovery: asyncio.Task[None] | None = None
        self._member = ""
        self._tasks = [self.loop.create_task(self._main())]

    @property
    def is_running(self) -> bool:
        """Whether its loop may run."""
        return not (self.is_paused or self.is_dead)

    def kill(self) -> None:
        """End at once."""
        if self.is_dead:
            return
        self.is_dead = True
        self._world.after(0.0, lambda: self._on_end(self))

    def stop(self) -> None:
        """Ask it to stop."""
        if not self.is_dead and not self._stopping:
            self._stopping = True
            self.loop.call_soon(self._spawn, self._stop())

    def _spawn(self, part: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self.loop.create_task(part))

    async def _main(self) -> None:
        clock, group = WorkerClock(self._world, self), SimulatedGroup(self)
        brakes = SimulatedBrakes(self.connection, self._brakes, clock, NO_BRAKES)
        policies = SimulatedPolicies(self.connection, self._policies, clock, NO_POLICIES)
        core = WorkerCore(
            self.config,
            dataclasses.replace(self._service, now_us=clock.now_us),
            self._limits,
            kafka=KafkaClients(self.config, clock=clock, classes=client_classes(self.connection)),
            group=group,
            clock=clock,
            brakes=brakes,
            policies=policies,
            crash=self._crash,
            longest_sleep_seconds=LONGEST_SLEEP_SECONDS,
        )
        self.partitions = core.partitions
        self._ownership = Ownership(core.partitions, group, clock)
        for part in (
            *core.parts().values(),
            brakes.run(),
            policies.run(),
            self._commit_regularly(),
            self._take_part(),
            self.fetching.run(),
            *(self.fetching.run_agent(topic) for topic in self.config.inputs),
        ):
            self._spawn(self._guard(part))

    async def _guard(self, part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - what ends a part ends the process
            await self._crash(error)

    async def _crash(self, error: BaseException) -> None:
        """End at once, as `run_worker` does after a crash."""
        self.crashed = error
        self.kill()

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.config.commit_interval_seconds)
            await self.commit()

    async def commit(self) -> None:
        """Commit group offsets."""
        await self._ownership.confirm(self._commit)

    async def _commit(self, positions: Mapping[Place, int]) -> bool:
        member, generation = self._member, self.generation
        wanted = {place: offset for place, offset in positions.items() if place[1] in self.numbers}
        if not wanted:
            return False
        broker = self.connection.broker

        def carry_out() -> bool:
            if not self._group.may_commit(member, generation):
                return False
            broker.committed.setdefault(self.config.application, {}).update(wanted)
            return True

        return await self.connection.request(carry_out)

    async def _take_part(self) -> None:
        """Take part in the group: join, send heartbeats, hold back when it rebalances, join again."""
        while True:
            if not self._member:
                self._member = f"{self.name}.{next(self._joins)}"
            member = self._member
            joined = await self._join(member)
            self.generation, self.numbers = joined
            self.fetching.forget_others()
            self.rebalancing = False
            await self._end_recovery()
            self._recovery = asyncio.create_task(self._guard(self._recover(self.generation)))
            answer = "ok"
            while answer == "ok":
                await asyncio.sleep(self.config.heartbeat_seconds)
                answer = await self._beat(member)
            self.rebalancing = True
            self.fetching.flows = False
            await self._end_recovery()
            if answer == "unknown":
                self._member = ""
            else:
                await self.partitions.flush()
                await self.commit()

    async def _join(self, member: str) -> tuple[int, frozenset[int]]:
        """Wait for the next generation; returns its number and this worker's partitions."""

        def defer(reply: Callable[[tuple[int, frozenset[int]]], None]) -> None:
            self._group.join(member, lambda generation, numbers: reply((generation, numbers)))

        return await self.connection.deferred(defer)

    async def _beat(self, member: str) -> str:
        return await self.connection.request(lambda: self._group.heartbeat(member, self.generation))

    async def _end_recovery(self) -> None:
        if self._recovery is not None:
            self._recovery.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._recovery
            self._recovery = None

    async def _recover(self, generation: int) -> None:
        """Take over what is assigned, as `engine.faust.recovery` does after each rebalance."""
        while True:
            try:
                await self._ownership.take_over(set(self.numbers), generation, resume=self._resume, commit=self.commit)
            except PartitionLostError as error:
                self._ownership.count_failure(error)
                await asyncio.sleep(RETRY_PAUSE_SECONDS)
            else:
                return

    async def _resume(self, _generation: int) -> None:
        await self.partitions.seek_all()
        self.fetching.flows = True

    async def _stop(self) -> None:
        """Do what the app does at SIGTERM: commit all steps and the group offsets, then leave."""
        await self._ownership.let_go(self.commit)
        member = self._member
        await self.connection.request(lambda: self._group.leave(member))
        self.kill()
