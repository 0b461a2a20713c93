"""How late evictions go out when deadlines come evenly, 1,000 in each second.

Node number i of 1,000 was tainted i milliseconds after the first one, and pod number j of each tolerates that for
j seconds longer than the first one, so one deadline falls into each millisecond. Lateness is the wall clock of a
`read_committed` reader when its poll returned with the `Evict`, less the deadline in the command.
"""

from __future__ import annotations

from typing import Final

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, percentile, require
from tests.bench.fleet import Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.watching import CommandWatch, Seen
from tests.bench.writing import BulkWriter

NODES: Final = 1_000  # one for each millisecond of a second
SECONDS_PER_ROUND: Final = 15
ROUNDS: Final = 3
WARM_UP_SECONDS: Final = 45  # a broker that has just started compiles its transaction path meanwhile, on our two cores
FIRST_AFTER_SECONDS: Final = 17  # until then all 90,000 are scheduled, on a slow machine too
LOADED_BEFORE_SECONDS: Final = 10  # a pod that is seen after a taint would begin its own time then
TIMEOUT_SECONDS: Final = 60.0


async def measure(lab: Lab) -> list[Figure]:
    """Measure three stretches of fifteen seconds, one after the other, after a stretch that does not count."""
    late = await latenesses_ms(lab, lab.settings("timers"))
    for number, stretch in enumerate(late):
        say(
            f"timers, round {number + 1}: p50 {percentile(stretch, 0.5):.1f} ms, p99 {percentile(stretch, 0.99):.1f} ms"
        )
    everything = [value for stretch in late for value in stretch]
    return [
        Figure(
            "timers",
            "lateness of 1,000 deadlines a second, p99, until read",
            "ms",
            tuple(percentile(stretch, 0.99) for stretch in late),
            Goal(Bound.BELOW, 50.0),
            {"p50_ms": percentile(everything, 0.5), "max_ms": max(everything)},
        )
    ]


async def latenesses_ms(lab: Lab, settings: Settings) -> list[list[float]]:
    """Return how late each eviction of each round was."""
    seconds, first_after, warm_up = (
        (3, 6, 9) if lab.is_quick else (SECONDS_PER_ROUND, FIRST_AFTER_SECONDS, WARM_UP_SECONDS)
    )
    lasting = warm_up + seconds * ROUNDS
    fleet = Fleet(nodes=NODES, pods_per_node=lasting, partitions=settings.partitions)
    pods = [pod.name for pod in fleet.pods]
    with CommandWatch(settings) as watch:
        async with BulkWriter(settings) as writer, lab.worker(settings):
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            at_us = now_us() - LOADED_BEFORE_SECONDS * 1_000_000
            entries = (
                fleet.pod_event(pod, b"ADDED", seconds=first_after + number % lasting, at_us=at_us)
                for number, pod in enumerate(fleet.pods)
            )
            await writer.write(settings.pods_topic, entries)
            markers = fleet.markers()
            watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
            await writer.write(settings.pods_topic, markers.entries)
            await watch.seen(action="Schedule", pods=markers.pods)
            watch.expect(len(pods), seconds=first_after - 1)
            first_us = now_us() - NODES * 1_000
            taints = (
                fleet.node_event(node, tainted=True, at_us=first_us + number * 1_000)
                for number, node in enumerate(fleet.nodes)
            )
            await writer.write(settings.nodes_topic, taints)
            await watch.seen(action="Schedule", pods=pods)
            say(f"{len(pods):,} evictions scheduled")
            watch.expect(len(pods), seconds=TIMEOUT_SECONDS + lasting)
            seen = await watch.seen(action="Evict", pods=pods)
    due_us = first_us + (first_after + warm_up) * 1_000_000
    stretches: list[list[Seen]] = [[] for _ in range(ROUNDS)]
    for one in seen:
        if one.deadline_us >= due_us:
            stretches[(one.deadline_us - due_us) // (seconds * 1_000_000)].append(one)
    require({len(stretch) for stretch in stretches} == {1_000 * seconds}, "deadlines are not spread evenly")
    require(len({one.deadline_us for one in seen}) == len(pods), "deadlines are not spread evenly")
    require(all(one.seen_us >= one.deadline_us for one in seen), "an eviction was issued early")
    return [[(one.seen_us - one.deadline_us) / 1000 for one in stretch] for stretch in stretches]
