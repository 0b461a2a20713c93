"""Whether this worker may join its group and fence: not once the watchdog ends it, nor before the watchdog has looked.

The watchdog (`streams.worker.watchdog`) ends a worker that is stuck. If that worker joined or took partitions over in
its last seconds, a healthy one would lose them to it, and they would have no owner until its session has timed out. So
the watchdog withdraws the permit first and lets the worker leave the group. A worker that wakes up after standing still
does not know yet whether it is stuck: it joins and fences only once the watchdog has looked again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

VALID_SECONDS = 2.0  # four looks of the watchdog, and half of the shortest stall limit
POLL_SECONDS = 0.05


class Permit:
    """The watchdog's thread extends it; clients that join or fence wait for it. Without a watchdog it is always valid.

    Attributes:
        is_withdrawn: whether the watchdog ends this worker; for good.
        leave_group: begins to leave the group, from any thread and without waiting.
    """

    def __init__(self, monotonic: Callable[[], float], leave_group: Callable[[], None] = lambda: None) -> None:
        self.is_withdrawn = False
        self.leave_group = leave_group
        self._monotonic = monotonic
        self._valid_until = math.inf

    def extend(self, looked_at: float) -> None:
        """Note when (monotonic seconds) the watchdog has looked and found nothing stuck."""
        self._valid_until = looked_at + VALID_SECONDS

    def withdraw(self) -> None:
        """Let no client of this worker join or fence any more."""
        self.is_withdrawn = True

    async def granted(self) -> None:
        """Return when it is valid: usually at once, half a second after a standstill, never once it is withdrawn."""
        while self.is_withdrawn or self._monotonic() >= self._valid_until:  # noqa: ASYNC110 - two threads wait, rarely
            await asyncio.sleep(POLL_SECONDS)
