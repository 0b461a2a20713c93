"""What a worker waits for, and since when: from these ages the watchdog tells a stuck worker from an idle one.

An age counts from the moment at which work began to wait, not from the last time that something happened: a worker with
nothing to commit is idle, not stuck. A `Wait` holds one float on the monotonic clock, so any thread may read it at any
moment, also while the event loop stands still.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Iterable
from typing import Protocol

from evictstream.streams.engine.core.histogram import Histogram

PAUSE_BOUNDS_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.07, 0.09, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0)
# A measured pause may be short by that much. Each look wakes the loop: a hundred a second, of a task that sleeps, took
# 2 % of a slow core, nearly half of what an idle worker uses; fifty calls take less than 1 %.
PAUSE_PROBE_SECONDS = 0.02


class WaitKind(enum.StrEnum):
    """What a worker waits for. An earlier one explains the later ones: a stuck loop stops the timers too."""

    LOOP = "loop"
    """The event loop runs its tasks."""
    TIMERS = "timers"
    """The timer service takes its turn."""
    CHANGELOG = "changelog"
    """Rows and messages that were sent are acknowledged."""
    COMMIT = "commit"
    """Applied records are committed."""
    INPUT = "input"
    """A batch that was read is taken by its partition."""
    OWNERSHIP = "ownership"
    """The group assigns, and what it assigns is taken over. A takeover that reads rows makes progress."""
    FETCH = "fetch"
    """A broker answers a fetch."""
    HEARTBEAT = "heartbeat"
    """The group confirms this worker as a member."""


class Wait:
    """Since when one thing is waited for, if it is (monotonic seconds)."""

    __slots__ = ("since",)

    def __init__(self) -> None:
        self.since: float | None = None

    def begin(self, now: float) -> None:
        """Wait from now on, or go on waiting since before."""
        if self.since is None:
            self.since = now

    def progress(self, now: float) -> None:
        """Count from now if it is waited for: it makes progress, or comes again and again."""
        if self.since is not None:
            self.since = now

    def end(self) -> None:
        """Wait no longer: it has come, or nothing needs it any more."""
        self.since = None

    def age_seconds(self, now: float) -> float:
        """How long it has been waited for; 0 if it is not."""
        since = self.since
        return 0.0 if since is None else max(0.0, now - since)


async def set_within(seconds: float, event: asyncio.Event) -> None:
    """Return when the event is set, or after so many seconds.

    Always ends when it is cancelled. `asyncio.wait_for` does not before Python 3.12: when the event is set right before
    the cancellation, the cancellation is lost, and a caller that stops a task with such a wait in a loop never returns.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class WaitingWriter(Protocol):
    """What a partition's committer is asked: how long its work has waited at a moment of the monotonic clock."""

    def uncommitted_seconds(self, now: float) -> float:
        """Age of the oldest change that is not committed."""

    def unacknowledged_seconds(self, now: float) -> float:
        """Age of the oldest record that was sent and is not acknowledged."""


class WorkerWaits:
    """The waits of one worker, without those of the partition writers and of the timers.

    Attributes:
        pauses: how long the event loop stood still, seconds; `measure_pauses` fills it.
    """

    def __init__(self) -> None:
        self.loop = Wait()
        self.input = Wait()
        self.ownership = Wait()
        self.fetch = Wait()
        self.heartbeat = Wait()
        self.pauses = Histogram(PAUSE_BOUNDS_SECONDS)
        self._batches = 0

    async def measure_pauses(self) -> None:
        """Note again and again by how much the loop calls too late; a call costs less than a task that sleeps."""
        loop = asyncio.get_running_loop()
        calling: asyncio.Handle = loop.call_soon(lambda: look(loop.time()))

        def look(due_at: float) -> None:
            nonlocal calling
            now = loop.time()
            self.pauses.observe(max(0.0, now - due_at))
            calling = loop.call_at(now + PAUSE_PROBE_SECONDS, look, now + PAUSE_PROBE_SECONDS)

        try:
            await loop.create_future()
        finally:
            calling.cancel()

    def handed_over(self, now: float) -> None:
        """Note that a batch is on its way to its partition."""
        self._batches += 1
        self.input.begin(now)

    def taken(self, now: float) -> None:
        """Note that a partition has taken or dropped a batch."""
        self._batches = max(0, self._batches - 1)
        if self._batches:
            self.input.progress(now)
        else:
            self.input.end()

    def rebalancing(self, now: float) -> None:
        """Note that a rebalance has begun: until it ends the group confirms no member, and batches may be dropped."""
        self.ownership.begin(now)
        self.heartbeat.end()
        self._forget_batches()

    def owned(self, now: float, partitions: int) -> None:
        """Note that everything assigned is taken over; `partitions` counts it and may be 0."""
        self.ownership.end()
        self._forget_batches()
        if partitions:
            self.heartbeat.begin(now)

    def confirmed_in_reserve(self, now: float, confirmed_at: float) -> None:
        """Note when the group has last confirmed a member without partitions, which commits nothing."""
        self.heartbeat.begin(now)
        if self.heartbeat.age_seconds(confirmed_at) > 0:
            self.heartbeat.progress(confirmed_at)

    def _forget_batches(self) -> None:
        self._batches = 0
        self.input.end()

    def ages(self, now: float, writers: Iterable[WaitingWriter], timers: Wait) -> dict[WaitKind, float]:
        """Return the seconds of each wait; of several partitions the longest."""
        loop = self.loop.age_seconds(now)
        acknowledge, commit = 0.0, 0.0
        for writer in writers:
            acknowledge = max(acknowledge, writer.unacknowledged_seconds(now))
            commit = max(commit, writer.uncommitted_seconds(now))
        return {
            WaitKind.LOOP: loop,
            # Only up to when the loop last ran: with the loop stuck, the loop is to be named.
            WaitKind.TIMERS: max(0.0, timers.age_seconds(now) - loop),
            WaitKind.CHANGELOG: acknowledge,
            WaitKind.COMMIT: commit,
            WaitKind.INPUT: self.input.age_seconds(now),
            WaitKind.OWNERSHIP: self.ownership.age_seconds(now),
            WaitKind.FETCH: self.fetch.age_seconds(now),
            WaitKind.HEARTBEAT: self.heartbeat.age_seconds(now),
        }
