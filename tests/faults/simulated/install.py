"""Puts the simulated clients and clocks in the place of the real ones while a run lasts, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from evictstream.streams.engine.core import markers, partitions, takeover
from evictstream.streams.service import clock, freshness, gates, timers
from tests.faults.simulated.world import World

NANOSECONDS = 1000
LONGEST_SLEEP_SECONDS = 0.5  # of the timer service: an opened gate may be noticed later, and a run takes less time
TIMED = (clock, freshness, gates, timers)
TALKING = (takeover, markers, partitions, timers, freshness)


class VirtualTime:
    """Stands in for the module `time`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic(self) -> float:
        """Give the monotonic clock."""
        return self._world.monotonic_seconds

    def time_ns(self) -> int:
        """Give the wall clock of whoever asks: the worker that runs, or nobody in particular."""
        running = self._world.running
        return (self._world.now_us + (running.clock_off_us if running is not None else 0)) * NANOSECONDS


class Silence:
    """Stands in for a logger: thousands of runs would say thousands of things."""

    def info(self, event: str, **_: object) -> None:
        """Say nothing."""

    warning = error = info


@contextlib.contextmanager
def installed(world: World) -> Iterator[None]:
    """Install for one run."""
    time = VirtualTime(world)
    with contextlib.ExitStack() as stack:
        for module in TIMED:
            stack.enter_context(mock.patch.object(module, "time", time))
        for module in TALKING:
            stack.enter_context(mock.patch.object(module, "log", Silence()))
        stack.enter_context(mock.patch.object(timers, "LONGEST_SLEEP_SECONDS", LONGEST_SLEEP_SECONDS))
        yield
