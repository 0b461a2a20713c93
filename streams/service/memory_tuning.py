"""Memory of a worker: how often the collector looks, and giving back what a backlog has used.

The collector looks for cycles every 700 new objects by default, several times for each batch of records. None of ours
are in cycles but the state of a partition as a whole, so it may look less often, and through everything (a second with
a million pods) only when partitions have been given away: the engine asks for that then. glibc keeps freed memory for
later; a worker that has read a backlog would hold on to tens of megabytes for ever, so a worker that has nothing to do
gives them back.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions

COLLECTOR_THRESHOLDS = (10_000, 5, 10_000)  # new objects, then rounds; 50,000 stopped the loop for up to 100 ms


def calm_collector() -> None:
    """Let the collector look less often; once, when a worker starts."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


async def give_memory_back_in_pauses(partitions: Partitions[Any], interval_seconds: float) -> None:
    """Return freed memory to the system whenever nothing was stepped for one interval; ends by cancellation."""
    steps_before = -1
    while True:
        await asyncio.sleep(interval_seconds)
        steps = sum(sum(writer.positions.values()) for writer in partitions.live())
        if steps == steps_before:
            give_memory_back()
        steps_before = steps


def give_memory_back() -> None:
    """Return freed memory to the system; some milliseconds, so call it when there is nothing to do. glibc only."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
