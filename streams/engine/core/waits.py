"""Signs of life of a worker: how long each thing that it waits for has been awaited.

An age counts from the moment at which work began to wait, not from the last time that something happened: a worker with
nothing to commit is idle, not stuck. Marks are single floats on the monotonic clock, set by whoever does the work, so
any thread may read them at any moment, also while the event loop stands still.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Iterable
from typing import Protocol

from evictstream.streams.engine.core.histogram import Histogram

PAUSE_BOUNDS_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.07, 0.09, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0)
# A pause may be longer by that than it is said to be. A hundred looks a second cost less than a hundredth of a core.
PAUSE_PROBE_SECONDS = 0.01


class WaitKind(enum.StrEnum):
    """What is watched, those first that explain the ones after them."""

    LOOP = "loop"
    """The event loop comes round."""
    TIMERS = "timers"
    """The timer service takes its turn."""
    CHANGELOG = "changelog"
    """Rows and messages that were sent are acknowledged."""
    COMMIT = "commit"
    """What was stepped is committed."""
    INPUT = "input"
    """A batch that was read is taken by its partition."""
    OWNERSHIP = "ownership"
    """The group assigns, and what it assigns is taken over; a take-over that reads rows gets on."""
    FETCH = "fetch"
    """A broker answers a fetch."""
    HEARTBEAT = "heartbeat"
    """The group confirms us as the owner of what we own, or in reserve."""


class Wait:
    """Since when one thing is waited for, if it is. Instants are of the monotonic clock, seconds."""

    __slots__ = ("since",)

    def __init__(self) -> None:
        """Begin waiting for nothing."""
        self.since: float | None = None

    def begin(self, now: float) -> None:
        """Wait from now on, or go on waiting since before."""
        if self.since is None:
            self.since = now

    def progress(self, now: float) -> None:
        """Start counting anew if it is waited for: it gets on, or it is always waited for."""
        if self.since is not None:
            self.since = now

    def end(self) -> None:
        """Wait no longer: it has come, or is not needed any more."""
        self.since = None

    def age_seconds(self, now: float) -> float:
        """How long it has been waited for; 0 if it is not."""
        since = self.since
        return 0.0 if since is None else max(0.0, now - since)


async def set_within(seconds: float, event: asyncio.Event) -> None:
    """Return when the event is set, or after so many seconds.

    Always ends when it is cancelled. `asyncio.wait_for` does not before Python 3.12: an event that is set right before
    takes the cancellation away, and whoever stops a task that waits in a loop then waits for it for ever.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class WaitingWriter(Protocol):
    """What is asked of a partition's writer: how long its work has waited at a moment of the monotonic clock."""

    def uncommitted_seconds(self, now: float) -> float:
        """Age of the oldest change that is not committed."""

    def unacknowledged_seconds(self, now: float) -> float:
        """Age of the oldest record that was sent and is not acknowledged."""


class WorkerWaits:
    """The waits of one worker, but for those of the partition writers and of the timers.

    Attributes:
        pauses: how long the event loop stood still, seconds; see :meth:`measure_pauses`.

    """

    def __init__(self) -> None:
        """Begin waiting for nothing."""
        self.loop = Wait()
        self.input = Wait()
        self.ownership = Wait()
        self.fetch = Wait()
        self.heartbeat = Wait()
        self.pauses = Histogram(PAUSE_BOUNDS_SECONDS)
        self._batches = 0

    async def measure_pauses(self) -> None:
        """Sleep a little, again and again, and note by how much each sleep was too long."""
        clock = asyncio.get_running_loop().time
        while True:
            until = clock() + PAUSE_PROBE_SECONDS
            await asyncio.sleep(PAUSE_PROBE_SECONDS)
            self.pauses.observe(max(0.0, clock() - until))

    def handed_over(self, now: float) -> None:
        """Note that a batch is on its way to its partition."""
        self._batches += 1
        self.input.begin(now)

    def taken(self, now: float) -> None:
        """Note that a batch was taken or dropped by its partition."""
        self._batches = max(0, self._batches - 1)
        if self._batches:
            self.input.progress(now)
        else:
            self.input.end()

    def rebalancing(self, now: float) -> None:
        """Note that the group assigns anew: until it has, nobody confirms us and batches may be dropped."""
        self.ownership.begin(now)
        self.heartbeat.end()
        self._forget_batches()

    def owned(self, now: float, partitions: int) -> None:
        """Note that everything assigned is taken over: ``partitions`` of them, perhaps none."""
        self.ownership.end()
        self._forget_batches()
        if partitions:
            self.heartbeat.begin(now)

    def confirmed_in_reserve(self, now: float, confirmed_at: float) -> None:
        """Note when the group has last confirmed a member that owns nothing, and so commits nothing."""
        self.heartbeat.begin(now)
        if self.heartbeat.age_seconds(confirmed_at) > 0:
            self.heartbeat.progress(confirmed_at)

    def _forget_batches(self) -> None:
        self._batches = 0
        self.input.end()

    def ages(self, now: float, writers: Iterable[WaitingWriter], timers: Wait) -> dict[WaitKind, float]:
        """Seconds of waiting by what is waited for; of several partitions the longest."""
        loop = self.loop.age_seconds(now)
        acknowledge, commit = 0.0, 0.0
        for writer in writers:
            acknowledge = max(acknowledge, writer.unacknowledged_seconds(now))
            commit = max(commit, writer.uncommitted_seconds(now))
        return {
            WaitKind.LOOP: loop,
            # As far as the loop came round: with the loop stuck, the loop is to be named.
            WaitKind.TIMERS: max(0.0, timers.age_seconds(now) - loop),
            WaitKind.CHANGELOG: acknowledge,
            WaitKind.COMMIT: commit,
            WaitKind.INPUT: self.input.age_seconds(now),
            WaitKind.OWNERSHIP: self.ownership.age_seconds(now),
            WaitKind.FETCH: self.fetch.age_seconds(now),
            WaitKind.HEARTBEAT: self.heartbeat.age_seconds(now),
        }
