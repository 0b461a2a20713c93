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

from tests.bench.figures import Bound, Figure, Goal
from tests.bench.fleet import Fleet
from tests.bench.lab import Lab, say, settled_bytes
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter

PODS_PER_NODE: Final = 40
NODES: Final = 2_500
ROUNDS: Final = 3
AT_REST_SECONDS: Final = 12.0  # a worker with nothing to do gives back what a backlog has used, within ten seconds
TIMEOUT_SECONDS: Final = 90.0


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
                pid = worker.process.pid
                empty = await settled_bytes(pid)
                watch.expect(len(fleet.pods), seconds=TIMEOUT_SECONDS)
                await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=True, labelled=True))
                await writer.write(settings.nodes_topic, fleet.marker_nodes())
                await writer.write(settings.pods_topic, fleet.owned_pod_events(fleet.pods, b"ADDED", per_owner=4))
                await watch.seen(action="Schedule", pods=[pod.name for pod in fleet.pods])
                await asyncio.sleep(AT_REST_SECONDS)
                full = await settled_bytes(pid)
            await writer.write(settings.pods_topic, markers.entries)
        watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
        began = time.time()
        async with lab.worker(settings):
            seen = await watch.seen(action="Schedule", pods=markers.pods)
        return _Round(empty, full, max(one.seen_us for one in seen) / 1e6 - began)
