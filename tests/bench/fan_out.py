"""A zone goes dark: 1,500 nodes with 30 pods each are tainted in one go, and 45,000 evictions have to be scheduled.

The time runs from just before the first node event is sent until a `read_committed` reader has seen the last
`Schedule`. Rows and input positions are in the same transactions, so by then all of it is persisted too. Then the
nodes recover, all is cancelled, and the next round begins.
"""

from __future__ import annotations

from typing import Final

from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter

NODES: Final = 1_500
PODS_PER_NODE: Final = 30
TOLERATED_SECONDS: Final = 300
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 60.0


async def measure(lab: Lab) -> list[Figure]:
    """Measure how long it takes to schedule, and beside it to cancel."""
    settings = lab.settings("fan-out")
    fleet = Fleet(nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=settings.partitions)
    pods = [pod.name for pod in fleet.pods]
    scheduled, cancelled = [], []
    with CommandWatch(settings) as watch:
        async with BulkWriter(settings) as writer, lab.worker(settings):
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED", seconds=TOLERATED_SECONDS))
            markers = fleet.markers()
            watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
            await writer.write(settings.pods_topic, markers.entries)
            await watch.seen(action="Schedule", pods=markers.pods)
            say(f"{len(pods):,} pods on {NODES:,} nodes loaded")
            for number in range(1 if lab.is_quick else ROUNDS):
                watch.expect(len(pods), seconds=TIMEOUT_SECONDS)
                began_us = now_us()
                await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=True, at_us=began_us))
                seen = await watch.seen(action="Schedule", pods=pods)
                due_us = {one.deadline_us for one in seen}
                require(due_us == {began_us + TOLERATED_SECONDS * 1_000_000}, f"wrong deadlines: {sorted(due_us)[:3]}")
                scheduled.append((max(one.seen_us for one in seen) - began_us) / 1e6)
                watch.expect(len(pods), seconds=TIMEOUT_SECONDS)
                began_us = now_us()
                await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
                seen = await watch.seen(action="Cancel", pods=pods)
                cancelled.append((max(one.seen_us for one in seen) - began_us) / 1e6)
                say(f"fan-out, round {number + 1}: {scheduled[-1]:.2f} s; cancelled in {cancelled[-1]:.2f} s")
    return [
        Figure(
            "fan-out",
            "from a taint on 1,500 nodes with 30 pods each until all are scheduled, persisted and announced",
            "s",
            tuple(scheduled),
            Goal(Bound.BELOW, 3.0),
            {"cancelled_in_s": sorted(cancelled)[len(cancelled) // 2]},
        )
    ]
