"""Memory of a worker: how often the garbage collector runs, and how the memory of a backlog is given back.

By default the collector runs every 700 new objects, several times for each batch of records. Only the state of a
partition as a whole is in cycles, so here it runs less often. A full collection takes a second with a million pods: the
engine asks for one when a partition's state is dropped. glibc keeps freed memory for later: a worker that has read a
backlog would keep tens of megabytes for ever. So a worker without work gives them back.
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
    """Let the garbage collector run less often; call it once, when a worker starts."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


async def give_memory_back_in_pauses(partitions: Partitions[Any], interval_seconds: float) -> None:
    """Return freed memory to the system whenever no position has moved for one interval; ends by cancellation."""
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
