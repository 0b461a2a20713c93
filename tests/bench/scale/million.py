"""A million pods with a million pending deadlines in one worker.

Loaded through the topics; then 20,000 more are due within 20 seconds, 100,000 are cancelled at once, and the worker is
stopped and another one takes everything over. The pauses of the event loop are the worker's own measure.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, percentile, require
from tests.bench.fleet import Entry, Fleet, Pod, now_us
from tests.bench.lab import Lab, say, settled_bytes
from tests.bench.scale.following import Follower
from tests.bench.scale.pauses import Pauses
from tests.bench.writing import BulkWriter

PODS_PER_NODE: Final = 40
PODS: Final = 1_000_000
QUICK_PODS: Final = 100_000
DUE: Final = 20_000
DUE_IN_SECONDS: Final = 20
CANCELLED: Final = 100_000
PENDING_SECONDS: Final = 86_400  # longer than any run
FIRST_AFTER_SECONDS: Final = 20
AT_REST_SECONDS: Final = 15.0
LOAD_SECONDS: Final = 900.0
LONGEST_PAUSE_MS: Final = 100.0
NICENESS: Final = 10  # of the writer that loads; see _load


async def measure(lab: Lab) -> list[Figure]:
    """Load, fire, cancel, restart."""
    count, due, cancelled = (QUICK_PODS, DUE // 10, CANCELLED // 10) if lab.is_quick else (PODS, DUE, CANCELLED)
    settings = lab.settings("million")
    fleet = Fleet(nodes=(count + due) // PODS_PER_NODE, pods_per_node=PODS_PER_NODE, partitions=settings.partitions)
    pending, soon = fleet.pods[:count], fleet.pods[count:]
    async with Follower(settings) as follower, BulkWriter(settings) as writer:
        async with lab.worker(settings) as worker:
            pauses = await asyncio.to_thread(Pauses, worker)
            empty = await settled_bytes(worker.process.pid)
            began = time.monotonic()
            with ThreadPoolExecutor(1, initializer=os.nice, initargs=(NICENESS,)) as thread:
                await asyncio.get_running_loop().run_in_executor(thread, _load, settings, fleet, pending)
            await follower.until("Schedule", count, seconds=LOAD_SECONDS)
            loaded_seconds = time.monotonic() - began
            say(f"{count:,} deadlines pending after {loaded_seconds:.0f} s")
            await asyncio.sleep(AT_REST_SECONDS)
            full = await settled_bytes(worker.process.pid)
            load_pause = await asyncio.to_thread(pauses.longest_ms)
            await asyncio.to_thread(pauses.mark)
            await writer.write(settings.pods_topic, _due(fleet, soon))
            await follower.until("Evict", due, seconds=FIRST_AFTER_SECONDS + DUE_IN_SECONDS + 60)
            fire_pause = await asyncio.to_thread(pauses.longest_ms)
            require(min(follower.late_ms) >= 0, "an eviction was issued early")
            say(f"{due:,} fired, p99 {percentile(follower.late_ms, 0.99):.1f} ms late")
            await asyncio.to_thread(pauses.mark)
            began = time.monotonic()
            await writer.write(
                settings.nodes_topic, fleet.node_events(fleet.nodes[: cancelled // PODS_PER_NODE], tainted=False)
            )
            await follower.until("Cancel", cancelled, seconds=LOAD_SECONDS)
            cancel_seconds = time.monotonic() - began
            cancel_pause = await asyncio.to_thread(pauses.longest_ms)
            say(f"{cancelled:,} cancelled in {cancel_seconds:.1f} s")
        markers = fleet.markers()
        await writer.write(settings.pods_topic, markers.entries)
        began = time.monotonic()
        async with lab.worker(settings):
            await follower.until("Schedule", count + due + len(markers.pods), seconds=LOAD_SECONDS)
            ready_seconds = time.monotonic() - began
            say(f"the next worker answers after {ready_seconds:.1f} s")
    return [
        Figure(
            "million-memory",
            f"resident memory by pod, of {count:,} with pending deadlines",
            "B",
            ((full - empty) / count,),
            Goal(Bound.BELOW, 1_000.0),
            {"full_mb": full / 1e6, "loaded_in_s": loaded_seconds},
        ),
        Figure(
            "million-lateness",
            f"{due:,} due within {DUE_IN_SECONDS} s beside them, p99 until read",
            "ms",
            (percentile(follower.late_ms, 0.99),),
            Goal(Bound.BELOW, 50.0),
            {"p50_ms": percentile(follower.late_ms, 0.5), "max_ms": max(follower.late_ms)},
        ),
        Figure("million-cancel", f"{cancelled:,} cancelled at once, until all are read", "s", (cancel_seconds,)),
        Figure("million-restart", "from the start of a worker until it answers a new event", "s", (ready_seconds,)),
        Figure(
            "million-pause",
            "longest pause of the event loop while all this goes on, the restart aside",
            "ms",
            (max(load_pause, fire_pause, cancel_pause),),
            Goal(Bound.AT_MOST, LONGEST_PAUSE_MS),
            {"fire_ms": fire_pause, "cancel_ms": cancel_pause, "load_ms": load_pause},
        ),
    ]


def _load(settings: Settings, fleet: Fleet, pending: tuple[Pod, ...]) -> None:
    """Write the million, in a thread that gives way to what is measured.

    A writer that goes as fast as it can takes a whole core, and broker and worker share the other: the worker's thread
    then waits for a core for up to 100 ms at a time, of which none is its own. On Linux a thread has a niceness.
    """
    asyncio.run(_write_all(settings, fleet, pending))


async def _write_all(settings: Settings, fleet: Fleet, pending: tuple[Pod, ...]) -> None:
    async with BulkWriter(settings) as writer:
        await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=True))
        await writer.write(settings.nodes_topic, fleet.marker_nodes())
        for some in _chunks(pending):
            await writer.write(settings.pods_topic, fleet.pod_events(some, b"ADDED", seconds=PENDING_SECONDS))


def _chunks(pods: tuple[Pod, ...], size: int = 10_000) -> Iterator[tuple[Pod, ...]]:
    for start in range(0, len(pods), size):
        yield pods[start : start + size]


def _due(fleet: Fleet, pods: tuple[Pod, ...]) -> Iterator[Entry]:
    """Make pods whose deadlines lie one millisecond apart."""
    base_us = now_us() - 2_000_000
    for number, pod in enumerate(pods):
        seconds, thousandth = divmod(number * DUE_IN_SECONDS * 1000 // len(pods), 1000)
        at_us = base_us + thousandth * 1000
        yield fleet.pod_event(pod, b"ADDED", seconds=FIRST_AFTER_SECONDS + seconds, at_us=at_us)
