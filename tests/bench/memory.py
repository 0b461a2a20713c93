"""What a pod with a pending deadline costs a worker in memory, and how soon the next worker has taken all over.

Resident memory of a worker that waits for input, and again when it keeps 100,000 pods on 2,500 tainted nodes, each
with its `Schedule` out and its deadline ahead; the difference by pods. Four pods have one owner, and nodes have thirty
labels. Whatever else has grown meanwhile (buffers,
the nodes, what Python does not give back) is in it. Then that worker is stopped and another one started, which has to
read all rows before it answers a new event.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal
from tests.bench.fleet import Fleet
from tests.bench.lab import Lab, say, settled_bytes
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter
from tests.harness.workers import WorkerProcess

PODS_PER_NODE: Final = 40
NODES: Final = 2_500
ROUNDS: Final = 3
DUE_SECONDS: Final = 60  # until then all are scheduled, on a slow machine too
AT_REST_SECONDS: Final = 12.0  # a worker with nothing to do gives back what a backlog has used, within ten seconds
TIMEOUT_SECONDS: Final = 90.0


class Grown(NamedTuple):
    """What a worker has in memory, before and after it got all pods."""

    empty_bytes: int
    full_bytes: int


class _Round(NamedTuple):
    empty_bytes: int
    full_bytes: int
    restart_seconds: float


async def measure(lab: Lab) -> list[Figure]:
    """Measure with new workers and new topics in each round."""
    pods = NODES * PODS_PER_NODE
    rounds = []
    for number in range(1 if lab.is_quick else ROUNDS):
        rounds.append(found := await _round(lab))
        sizes = f"{found.empty_bytes / 1e6:.0f} MB, then {found.full_bytes / 1e6:.0f} MB"
        say(f"memory, round {number + 1}: {sizes}; restart {found.restart_seconds:.1f} s")
    return [
        Figure(
            "memory",
            f"resident memory for each of {pods:,} pods with a pending deadline",
            "B",
            tuple((found.full_bytes - found.empty_bytes) / pods for found in rounds),
            Goal(Bound.BELOW, 1_000.0),
            {
                "empty_mb": max(found.empty_bytes for found in rounds) / 1e6,
                "full_mb": max(found.full_bytes for found in rounds) / 1e6,
            },
        ),
        Figure(
            "restart",
            f"from the start of a worker until it answers a new event, with {pods:,} deadlines kept",
            "s",
            tuple(found.restart_seconds for found in rounds),
        ),
    ]


async def _round(lab: Lab) -> _Round:
    settings = lab.settings("memory")
    fleet = Fleet(nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=settings.partitions)
    markers = fleet.markers()
    with CommandWatch(settings) as watch:
        async with BulkWriter(settings) as writer:
            async with lab.worker(settings) as worker:
                empty, full = await grow(settings, fleet, worker, writer, watch)
            await writer.write(settings.pods_topic, markers.entries)
        watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
        began = time.time()
        async with lab.worker(settings):
            seen = await watch.seen(action="Schedule", pods=markers.pods)
        return _Round(empty, full, max(one.seen_us for one in seen) / 1e6 - began)


async def grow(
    settings: Settings,
    fleet: Fleet,
    worker: WorkerProcess,
    writer: BulkWriter,
    watch: CommandWatch,
    *,
    are_due: bool = False,
) -> Grown:
    """Give a worker all pods of a fleet; measure when all are scheduled, or due, and the worker is at rest."""
    pid = worker.process.pid
    empty = await settled_bytes(pid)
    watch.expect(len(fleet.pods), seconds=TIMEOUT_SECONDS)
    await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=True, labelled=True))
    await writer.write(settings.nodes_topic, fleet.marker_nodes())
    entries = fleet.owned_pod_events(fleet.pods, b"ADDED", per_owner=4, seconds=DUE_SECONDS if are_due else 300)
    await writer.write(settings.pods_topic, entries)
    seen = await watch.seen(action="Schedule", pods=[pod.name for pod in fleet.pods])
    if are_due:
        await asyncio.sleep(max(one.deadline_us for one in seen) / 1e6 - time.time())
    await asyncio.sleep(AT_REST_SECONDS)
    return Grown(empty, await settled_bytes(pid))
