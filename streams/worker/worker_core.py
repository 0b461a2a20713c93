"""The parts of a worker, wherever its records come from: partitions, clock watch, freshness, gates and timers.

`worker.app` runs it with Kafka, the machine's clock and Faust's member of the group; the simulation of `tests/faults`
runs it with a simulated broker and a virtual clock. Both use the same object, put together only here.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from evictstream.streams.engine.core.partitions import Partitions
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.worker.clock_watch import ClockWatch
from evictstream.streams.worker.fleet_publisher import FleetPublisher
from evictstream.streams.worker.freshness import Freshness
from evictstream.streams.worker.gates import Gates
from evictstream.streams.worker.snapshot import Snapshot, view_of
from evictstream.streams.worker.timer_service import LONGEST_SLEEP_SECONDS, TimerService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from typing import Any

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ports import Clock, Group, Kafka
    from evictstream.streams.engine.core.waits import WaitKind
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.worker.gates import BrakesView, GateLimits, PoliciesView
    from evictstream.streams.worker.served_partition import ServedPartition


class WorkerCore:
    """One worker without its membership and its endpoint. Make it inside a running event loop.

    Attributes:
        clock_watch: whether the wall clock may be trusted.
        freshness: how old the view of each partition is.
        partitions: the partitions that the group has assigned.
        gates: decide whether a partition's timers may fire.
        timers: fires due timers.
    """

    def __init__(
        self,
        engine: EngineConfig,
        service: PartitionConfig,
        limits: GateLimits,
        *,
        kafka: Kafka,
        group: Group,
        clock: Clock,
        brakes: BrakesView,
        policies: PoliciesView,
        crash: Callable[[BaseException], Awaitable[None]],
        longest_sleep_seconds: float = LONGEST_SLEEP_SECONDS,
    ) -> None:
        """`crash` ends the worker with an error."""
        service = dataclasses.replace(service, brakes=lambda: brakes.brakes, policies=lambda: policies.policies)
        self.partitions: Partitions[ServedPartition] = Partitions(
            engine,
            new_logic=lambda number: EvictionPartition(number, service, brokers_now_us=self._brokers_now_us),
            kafka=kafka,
            group=group,
            clock=clock,
            crash=crash,
            on_step=self._stepped,
        )
        self.clock_watch = ClockWatch(
            limits.clock_skew_limit_seconds, limits.clock_jump_limit_seconds, limits.clock_jump_hold_seconds
        )
        self.freshness = Freshness(self.partitions, group, clock)
        self.gates = Gates(
            lease=self.partitions.lease,
            group=group,
            clock_watch=self.clock_watch,
            freshness=self.freshness,
            brakes=brakes,
            policies=policies,
            lag_limit_seconds=limits.lag_limit_seconds,
            clock=clock,
        )
        self.timers = TimerService(
            self.partitions,
            self.gates,
            clock=clock,
            clock_watch=self.clock_watch,
            longest_sleep_seconds=longest_sleep_seconds,
        )
        self._clock = clock
        self._position_interval_seconds = engine.position_interval_seconds

    def _stepped(self, writer: PartitionWriter[ServedPartition]) -> None:
        self.timers.stepped(writer)

    def _brokers_now_us(self) -> int:
        for writer in self.partitions.live():
            if writer.last_commit is not None:
                self.clock_watch.observe(writer.last_commit)
        return self.clock_watch.brokers_now_us(self._clock.monotonic())

    def ages(self, now: float) -> Mapping[WaitKind, float]:
        """Return how long each thing has been waited for at `now`; both are monotonic seconds."""
        return self.partitions.waits.ages(now, (w.committer for w in self.partitions.live()), self.timers.turn_wait)

    def snapshot(self) -> Snapshot:
        """Take a snapshot of all live partitions. Call it on the event loop's thread."""
        now_us = self._clock.now_us()
        is_settled = self.partitions.waits.ownership.since is None
        views = []
        for writer in self.partitions.live():
            self.gates.note(writer)
            views.append(view_of(writer, self.gates.closed(writer), self.freshness, now_us))
        return Snapshot(is_settled, tuple(views), now_us)

    def parts(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Return the background coroutines by name. None ends by itself; an error ends the worker."""
        return {
            "timers": self.timers.run(),
            "freshness": self.freshness.run(),
            "positions": self._write_positions(),
            "fleet": FleetPublisher(self.partitions, self._clock).run(),
        }

    async def _write_positions(self) -> None:
        """Commit positions regularly where nothing else is written."""
        while True:
            await asyncio.sleep(self._position_interval_seconds)
            for writer in self.partitions.live():
                writer.committer.keep_alive()
