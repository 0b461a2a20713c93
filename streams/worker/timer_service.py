"""The timer service: the only code that issues `Evict`.

It sleeps until the earliest wake-up of any partition, asks the gates right before firing, and lets the partition's
logic decide again what is really due. A turn is bounded, so input and commits come between two turns. A timer behind a
closed gate stays on the heap and is tried again a few times a second. The service reads the wall clock at each turn and
sleeps by the monotonic clock: a step of the wall clock cannot stall it, and a jump forward closes the gate `clock`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evictstream.models.instants import SECOND_US
from evictstream.streams.engine.core.waits import Wait, set_within
from evictstream.streams.worker.gates import Gate

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions
    from evictstream.streams.engine.core.ports import Clock
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.clock_watch import ClockWatch
    from evictstream.streams.worker.gates import Closed, Gates
    from evictstream.streams.worker.served_partition import ServedPartition

FIRED_PER_TURN = 100  # usual timers of one partition, about 4 ms; then come other partitions and the input
LONGEST_SLEEP_SECONDS = 0.2  # longest time until an opened gate is noticed, and between comparisons of the clocks


class TimerService:
    """Fires due timers of live partitions while their gates are open.

    Attributes:
        waiting: the closed gate that holds back due timers, by partition number.
        turn_wait: since when the next turn is waited for.
    """

    def __init__(
        self,
        partitions: Partitions[ServedPartition],
        gates: Gates,
        *,
        clock: Clock,
        clock_watch: ClockWatch,
        longest_sleep_seconds: float = LONGEST_SLEEP_SECONDS,
    ) -> None:
        self.waiting: dict[int, Closed] = {}
        self.turn_wait = Wait()
        self._partitions = partitions
        self._gates = gates
        self._clock = clock
        self._clock_watch = clock_watch
        self._longest_sleep_seconds = longest_sleep_seconds
        self._wake = asyncio.Event()
        self._planned_us = 0

    def stepped(self, writer: PartitionWriter[ServedPartition]) -> None:
        """Fire at once the timers that a step has made due, so that their messages go into the same transaction."""
        due_us = writer.logic.next_due_at_us()
        if due_us is None:
            return
        now = self._clock.now_us()
        if due_us <= now and writer.partition not in self.waiting:
            self._clock_watch.tick(now, self._clock.monotonic())
            self._fire(writer, now, {})
            due_us = writer.logic.next_due_at_us() if writer.live else None
        if due_us is not None and due_us < self._planned_us and writer.has_room:
            self._planned_us = due_us
            self._wake.set()

    def _fire(self, writer: PartitionWriter[ServedPartition], now: int, waiting: dict[int, Closed]) -> bool:
        """Fire one bounded turn of a partition if its gates are open; returns whether more timers may be due."""
        self._gates.note(writer)
        closed = self._gates.closed(writer)
        if closed is not None:
            if closed.gate is Gate.CLOCK and not waiting:
                # Without a transaction a quiet worker never learns that the clocks agree again.
                writer.committer.probe()
            waiting[writer.partition] = closed
            return False
        if not writer.has_room:
            return False
        return writer.fire(now, FIRED_PER_TURN) >= FIRED_PER_TURN

    async def run(self) -> None:
        """Run turns until cancelled."""
        self.turn_wait.begin(self._clock.monotonic())
        while True:
            more = self.turn()
            delay = (
                0.0 if more else min(self._longest_sleep_seconds, (self._planned_us - self._clock.now_us()) / SECOND_US)
            )
            if delay <= 0:
                await asyncio.sleep(0)
                continue
            self._wake.clear()
            await set_within(delay, self._wake)

    def turn(self) -> bool:
        """Fire due timers of each partition, up to a limit; returns whether more timers may fire at once."""
        now = self._clock.now_us()
        monotonic = self._clock.monotonic()
        self._clock_watch.tick(now, monotonic)
        self.turn_wait.progress(monotonic)
        latest = now + int(self._longest_sleep_seconds * SECOND_US)
        self._planned_us = latest
        more = False
        waiting: dict[int, Closed] = {}
        for writer in list(self._partitions.live()):
            due_us = writer.logic.next_due_at_us()
            if due_us is not None and due_us <= now:
                more = self._fire(writer, now, waiting) or more
                due_us = writer.logic.next_due_at_us() if writer.live else None
            # A writer without room calls `stepped` as soon as it has some; trying it meanwhile would waste time.
            if due_us is not None and writer.partition not in waiting and writer.has_room:
                self._planned_us = min(self._planned_us, due_us)
        self.waiting = waiting
        return more
