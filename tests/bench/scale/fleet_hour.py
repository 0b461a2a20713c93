"""An hour of a fleet of a hundred clusters, played as fast as one worker takes it.

In each second of the fleet 2,000 changes of pods (edits of tolerations; pods replaced by others) and five times as many
status events that change nothing; in each minute some nodes go dark for a while, so that evictions are scheduled and
cancelled. What is watched is what must stay bounded: the worker's memory, and the changelog on the broker's disk.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import Entry, Fleet, Pod, make_pod, now_us
from tests.bench.lab import Lab, resident_bytes, say
from tests.bench.log import require_all_read, rows_since
from tests.bench.scale.backlog import Backlog
from tests.bench.writing import BulkWriter

CLUSTERS: Final = 100
NODES: Final = 50
PODS_PER_NODE: Final = 30
CHANGES_PER_SECOND: Final = 2_000
STATUS_PER_CHANGE: Final = 5
EDITS_SHARE: Final = 0.5
DARK_NODES_PER_MINUTE: Final = 20
MINUTES: Final = 60
QUICK_MINUTES: Final = 3
LARGEST_BACKLOG: Final = 400_000  # events written and not yet read; keeps the topics short
INPUT_RETENTION_BYTES: Final = 256 * 1024 * 1024  # of each partition: the backlog several times over
# UIDs of deleted pods are remembered for an hour, and so are tombstones. An hour that is played in some minutes keeps
# them for as many.
REMEMBERED_SECONDS: Final = 60.0
LARGEST_GROWTH: Final = 1.25  # of memory between the first third and the end, when it has to be level
CHANGELOG_BYTES_PER_ROW_KEPT: Final = 2_000.0


class _Hour:
    """Makes the events of one second after the other."""

    def __init__(self, fleets: list[Fleet]) -> None:
        self._random = random.Random(11)  # noqa: S311 - the same hour in each run
        self._fleets = fleets
        self._pods: list[list[Pod]] = [list(fleet.pods) for fleet in fleets]
        self._seconds: dict[Pod, int] = {}
        self._made = 0
        self.events = 0

    def second(self) -> Iterator[Entry]:
        """Make one second of pod events."""
        draw, at_us = self._random, now_us()
        changes = 0
        while changes < CHANGES_PER_SECOND:
            number = draw.randrange(len(self._fleets))
            fleet, pods = self._fleets[number], self._pods[number]
            place = draw.randrange(len(pods))
            pod = pods[place]
            if draw.random() < EDITS_SHARE:
                wait = self._seconds[pod] = 900 - self._seconds.get(pod, 300)
                yield fleet.pod_event(pod, b"MODIFIED", seconds=wait, at_us=at_us)
                made = 1
            else:
                wait = self._seconds.pop(pod, 300)
                yield fleet.pod_event(pod, b"DELETED", seconds=wait, at_us=at_us)
                self._made += 1
                new = pods[place] = make_pod(f"again-{self._made:021d}", pod.node)
                yield fleet.pod_event(new, b"ADDED", seconds=300, at_us=at_us)
                made = 2
            changes += made
            for _ in range(STATUS_PER_CHANGE * made):
                number = draw.randrange(len(self._fleets))
                pod = draw.choice(self._pods[number])
                wait = self._seconds.get(pod, 300)
                yield self._fleets[number].pod_event(pod, b"MODIFIED", seconds=wait, at_us=at_us)
        self.events += changes * (1 + STATUS_PER_CHANGE)

    def dark(self, *, tainted: bool, minute: int) -> Iterator[Entry]:
        """Let some nodes go dark, or come back."""
        draw = random.Random(minute)  # noqa: S311 - the same nodes again when they come back
        for _ in range(DARK_NODES_PER_MINUTE):
            fleet = draw.choice(self._fleets)
            yield fleet.node_event(draw.choice(fleet.nodes), tainted=tainted, at_us=now_us())


async def measure(lab: Lab) -> list[Figure]:
    """Play, and look at memory and disk after each minute of the fleet."""
    minutes = QUICK_MINUTES if lab.is_quick else MINUTES
    settings = lab.settings(
        "fleet-hour",
        remember_deleted_seconds=REMEMBERED_SECONDS,
        changelog_delete_retention_hours=REMEMBERED_SECONDS / 3600,
    )
    fleets = [
        Fleet(nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=settings.partitions, clusters=[f"prod-{number:03d}"])
        for number in range(CLUSTERS)
    ]
    hour = _Hour(fleets)
    pods = CLUSTERS * NODES * PODS_PER_NODE
    memory: list[int] = []
    disk: list[int] = []
    async with Backlog(settings, retention_bytes=INPUT_RETENTION_BYTES) as backlog, BulkWriter(settings) as writer:
        async with lab.worker(settings) as worker:
            for fleet in fleets:
                await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
                await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED"))
            await backlog.below(0)
            say(f"{pods:,} pods of {CLUSTERS} clusters loaded")
            began = time.monotonic()
            for minute in range(minutes):
                await writer.write(settings.nodes_topic, hour.dark(tainted=True, minute=minute))
                for _ in range(60):
                    await writer.write(settings.pods_topic, hour.second())
                    await backlog.below(LARGEST_BACKLOG)
                await writer.write(settings.nodes_topic, hour.dark(tainted=False, minute=minute))
                memory.append(resident_bytes(worker.process.pid))
                disk.append(_stored_bytes(lab.broker_folder, settings.changelog_topic))
                rate = hour.events / (time.monotonic() - began)
                say(
                    f"minute {minute + 1}: {hour.events:,} events, {rate:,.0f}/s, "
                    f"{memory[-1] / 1e6:.0f} MB, changelog {disk[-1] / 1e6:.0f} MB"
                )
            await backlog.below(0)
            seconds = time.monotonic() - began
        rows = await rows_since(settings, dict.fromkeys(range(settings.partitions), 0))
        await require_all_read(settings, rows)
    require(len(rows.pods) >= pods, f"only {len(rows.pods):,} of {pods:,} pods are in the changelog")
    level = max(memory[: max(1, minutes // 3)])
    return [
        Figure(
            "hour-rate", f"events of {minutes} minutes of {CLUSTERS} clusters", "events/s", (hour.events / seconds,)
        ),
        Figure(
            "hour-memory",
            "resident memory at the end, of the most in the first third",
            "x",
            (memory[-1] / level,),
            Goal(Bound.BELOW, LARGEST_GROWTH),
            {"end_mb": memory[-1] / 1e6, "most_mb": max(memory) / 1e6},
        ),
        Figure(
            "hour-changelog",
            "most bytes of changelog on disk, by pod",
            "B",
            (max(disk) / pods,),
            Goal(Bound.BELOW, CHANGELOG_BYTES_PER_ROW_KEPT),
            {"end_mb": disk[-1] / 1e6, "most_mb": max(disk) / 1e6, "events_m": hour.events / 1e6},
        ),
    ]


def _stored_bytes(folder: Path, topic: str) -> int:
    """What the broker keeps of a topic, as `du` tells it."""
    total = 0
    for file in folder.glob(f"**/{topic}-*/*.log"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue  # just cleaned
    return total
