"""Waiting for an event, but not for ever."""

from __future__ import annotations

import asyncio
import contextlib


async def set_within(seconds: float, event: asyncio.Event) -> None:
    """Return when the event is set, or after so many seconds.

    Always ends when it is cancelled. `asyncio.wait_for` does not before Python 3.12: an event that is set right before
    takes the cancellation away, and whoever stops a task that waits in a loop then waits for it for ever.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
