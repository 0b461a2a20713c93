"""Whether this worker may join its group and fence: not once it is to be ended, nor before it knows that it is not.

A worker that is stuck is ended by whoever watches it (`streams.service.watchdog`). If it joined or took partitions over
in its last seconds, a healthy peer would lose them to it, and nobody would have them until its session has timed out.
So who is to be ended asks for nothing any more, and leaves the group. One that wakes up after standing still does not
know yet whether it is to be ended: what it asked for before is long out of date, and it waits to be looked at first.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

VALID_SECONDS = 2.0  # four looks of the watchdog, and half of the shortest standstill that ends a worker
POLL_SECONDS = 0.05


class Permit:
    """Extended by a thread that watches, asked for by those that join and fence; without a watch it is always valid.

    Attributes:
        is_withdrawn: whether this worker is to be ended; for good.
        leave_group: begins to leave the group, from any thread and without waiting.

    """

    def __init__(self, monotonic: Callable[[], float], leave_group: Callable[[], None] = lambda: None) -> None:
        self.is_withdrawn = False
        self.leave_group = leave_group
        self._monotonic = monotonic
        self._valid_until = math.inf

    def extend(self, looked_at: float) -> None:
        """Be told when (``time.monotonic``) the worker was last looked at and nothing was found."""
        self._valid_until = looked_at + VALID_SECONDS

    def withdraw(self) -> None:
        """Give it to nobody any more."""
        self.is_withdrawn = True

    async def granted(self) -> None:
        """Return when it is valid: at once as a rule, half a second after a standstill, never once it is withdrawn."""
        while self.is_withdrawn or self._monotonic() >= self._valid_until:  # noqa: ASYNC110 - two threads wait, rarely
            await asyncio.sleep(POLL_SECONDS)
