"""A zone goes dark: 1,500 nodes with 30 pods each are tainted in one go, in a fleet of 118,500 objects.

In each round a program's nodes get a taint that nobody tolerates, and all `Evict` have to come; are well again; get
one that is tolerated for 300 s, and all `Schedule` have to come; and are well again. The time runs from just before
the first node event is sent until a `read_committed` reader has seen the last command. All programs run all the time,
each on topics of its own, and wait while another one is measured. In the end each tells its peak of memory.
"""

from __future__ import annotations

import contextlib
from typing import Final, NamedTuple, Self

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import UNREACHABLE, UNTOLERATED, Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.peers.comparing import in_turn, limit, ratio
from tests.bench.peers.programs import BUSY, OURS_TWICE, STREAMS, Program, Running, running
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter
from tests.harness.cluster_names import clusters_apart, clusters_beside

NODES: Final = 1_500  # in the zone
OTHER_NODES: Final = 1_500
PODS_PER_NODE: Final = 30
PODS_PER_OTHER_NODE: Final = 47
TOLERATED_SECONDS: Final = 300
WARM_UP_ROUNDS: Final = 1
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 120.0


class _Taken(NamedTuple):
    evict_seconds: float
    schedule_seconds: float
    cancel_seconds: float


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns."""
    nodes = NODES // 5 if lab.is_quick else NODES
    taken: dict[Program, list[_Taken]] = {program: [] for program in BUSY}
    async with contextlib.AsyncExitStack() as stack:
        zones = {}
        for program in BUSY:
            settings = lab.settings(f"outage-{program.name}")
            watch = stack.enter_context(CommandWatch(settings))
            writer = await stack.enter_async_context(BulkWriter(settings))
            process = await stack.enter_async_context(running(program, settings, lab.folder))
            with process.blamed():
                zones[program] = await _Zone(settings, watch, writer, process, nodes).load()
            say(f"outage: {program.title} knows {zones[program].objects:,} objects")
        for number in range(-WARM_UP_ROUNDS, 1 if lab.is_quick else ROUNDS):
            for program in in_turn(BUSY, number):
                with zones[program].process.blamed():
                    found = await zones[program].round()
                if number >= 0:
                    taken[program].append(found)
                    times = f"{found.evict_seconds:.2f} s, scheduled {found.schedule_seconds:.2f} s"
                    say(f"outage, round {number + 1}, {program.title}: evicted {times}")
        for zone in zones.values():
            with zone.process.blamed():
                zone.process.require_shared()
        peaks = {program: [zone.process.peak_bytes() / 1e6] for program, zone in zones.items()}
        objects = zones[BUSY[0]].objects
    evict = {program: [one.evict_seconds for one in found] for program, found in taken.items()}
    schedule = {program: [one.schedule_seconds for one in found] for program, found in taken.items()}
    cancel = {program: [one.cancel_seconds for one in found] for program, found in taken.items()}
    pods = f"outage of {nodes * PODS_PER_NODE:,} pods"
    return [
        ratio(
            "outage-evict",
            f"{pods}, until all `Evict` are read",
            "s",
            evict,
            STREAMS,
            Goal(Bound.BELOW, 0.5),
        ),
        ratio(
            "outage-schedule",
            f"{pods}, until all `Schedule` are read",
            "s",
            schedule,
            STREAMS,
            Goal(Bound.BELOW, 1 / 3),
        ),
        limit(
            "outage-evict-seconds",
            f"{pods}, until all `Evict` are read, two workers",
            "s",
            evict,
            Goal(Bound.BELOW, 1.0),
            of=OURS_TWICE,
        ),
        limit("outage-cancel", f"end of the {pods}, until all `Cancel` are read", "s", cancel, None),
        limit("peak-memory", f"peak memory with {objects:,} objects", "MB", peaks, Goal(Bound.BELOW, 200.0)),
    ]


class _Zone:
    """One program with a fleet of its own."""

    def __init__(
        self, settings: Settings, watch: CommandWatch, writer: BulkWriter, process: Running, nodes: int
    ) -> None:
        self._settings = settings
        self._watch = watch
        self._writer = writer
        self.process = process
        self._fleet = Fleet(nodes=nodes, pods_per_node=PODS_PER_NODE, partitions=settings.partitions)
        apart = clusters_apart(settings.partitions)
        self._others = Fleet(
            nodes=OTHER_NODES * nodes // NODES,
            pods_per_node=PODS_PER_OTHER_NODE,
            partitions=settings.partitions,
            clusters=[beside for name in apart for beside in clusters_beside(name, 1, settings.partitions)],
        )
        self._pods = [pod.name for pod in self._fleet.pods]
        self.objects = sum(len(fleet.nodes) + len(fleet.pods) for fleet in (self._fleet, self._others))

    async def load(self) -> Self:
        """Tell the program of everything and wait until it has read it."""
        settings, write = self._settings, self._writer.write
        await write(settings.nodes_topic, self._fleet.marker_nodes())
        for fleet in (self._fleet, self._others):
            await write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED", seconds=TOLERATED_SECONDS))
        markers = self._fleet.markers()
        self._watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
        await write(settings.pods_topic, markers.entries)
        await self._watch.seen(action="Schedule", pods=markers.pods)
        return self

    async def round(self) -> _Taken:
        """Let the zone go dark twice."""
        evict = await self._change("Evict", taint=UNTOLERATED)
        cancel = await self._change("Cancel")
        schedule = await self._change("Schedule", taint=UNREACHABLE)
        await self._change("Cancel")
        return _Taken(evict, schedule, cancel)

    async def _change(self, action: str, *, taint: str | None = None) -> float:
        fleet = self._fleet
        self._watch.expect(len(self._pods), seconds=TIMEOUT_SECONDS)
        began_us = now_us()
        events = fleet.node_events(fleet.nodes, tainted=taint is not None, at_us=began_us, taint=taint or "")
        await self._writer.write(self._settings.nodes_topic, events)
        seen = await self._watch.seen(action=action, pods=self._pods)
        if action == "Schedule":
            due_us = {one.deadline_us for one in seen}
            require(due_us == {began_us + TOLERATED_SECONDS * 1_000_000}, f"wrong deadlines: {sorted(due_us)[:3]}")
        return (max(one.seen_us for one in seen) - began_us) / 1e6
