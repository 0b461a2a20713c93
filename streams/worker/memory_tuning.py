"""Memory of a worker: how often the garbage collector runs, and when freed memory returns to the system.

By default the collector runs every 700 new objects, several times for each batch of records. Only the state of a whole
partition contains cycles, so here the collector runs less often. A full collection takes a second with a million pods:
the engine asks for one when it drops a partition's state. glibc keeps freed memory for later use: after a backlog a
worker would keep tens of megabytes forever. So an idle worker returns them.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evictstream.streams.engine.core.partitions import Partitions

COLLECTOR_THRESHOLDS = (10_000, 5, 10_000)  # new objects, then collections; with 50,000 one took up to 100 ms


def calm_collector() -> None:
    """Make the garbage collector run less often; call it once, before a worker begins."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


async def give_memory_back_in_pauses(partitions: Partitions[Any], interval_seconds: float) -> None:
    """Return freed memory to the system whenever no position has moved for one interval, until cancelled."""
    steps_before = -1
    while True:
        await asyncio.sleep(interval_seconds)
        steps = sum(sum(writer.positions.values()) for writer in partitions.live())
        if steps == steps_before:
            give_memory_back()
        steps_before = steps


def give_memory_back() -> None:
    """Return freed memory to the system (glibc only). Takes some milliseconds, so call it in a pause."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
