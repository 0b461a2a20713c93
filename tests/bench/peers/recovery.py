"""How soon a program that starts with a million rows and 100,000 timers answers a new event.

A tenth of the pods stand on tainted nodes and tolerate that for a day, so each of them is a timer. The time runs from
the start of the process until a `read_committed` reader has seen the answers to new markers, one in each partition;
they were written before, so the process finds them when it has recovered. Stock Faust gets a tenth of everything on
topics of its own, because it would take minutes to load; its time is given as it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal
from tests.bench.fleet import MARKER_SECONDS, Fleet
from tests.bench.lab import Lab, say
from tests.bench.peers.comparing import in_turn, limit, ratio
from tests.bench.peers.programs import FAUST, PROGRAMS, STREAMS, Program, running
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter

PODS: Final = 1_000_000
PODS_PER_NODE: Final = 100
TAINTED_SHARE: Final = 0.1
FAUST_SHARE: Final = 0.1
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 180.0


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns."""
    pods = PODS // 20 if lab.is_quick else PODS
    fast = [program for program in PROGRAMS if program is not FAUST]
    grounds = [
        await _Ground.load(lab, "recovery", fast, pods),
        await _Ground.load(lab, "recovery-faust", [FAUST], int(pods * FAUST_SHARE)),
    ]
    taken: dict[Program, list[float]] = {program: [] for program in PROGRAMS}
    for number in range(1 if lab.is_quick else ROUNDS):
        for ground in grounds:
            for program, seconds in (await ground.round(number)).items():
                taken[program].append(seconds)
                say(f"recovery, round {number + 1}, {program.title}: {seconds:.1f} s")
    what = f"restart with {pods:,} rows and {pods * TAINTED_SHARE:,.0f} timers"
    return [
        ratio("recovery", what, "s", taken, STREAMS, Goal(Bound.BELOW, 1.0)),
        limit("recovery-seconds", f"{what}, in seconds", "s", taken, Goal(Bound.BELOW, 4.0)),
    ]


class _Ground:
    """Topics that some programs read, one after the other, each as if it were alone."""

    def __init__(self, lab: Lab, settings: Settings, programs: Sequence[Program], pods: int) -> None:
        self._lab = lab
        self._settings = settings
        self._programs = programs
        self._fleet = Fleet(nodes=pods // PODS_PER_NODE, pods_per_node=PODS_PER_NODE, partitions=settings.partitions)

    @classmethod
    async def load(cls, lab: Lab, name: str, programs: Sequence[Program], pods: int) -> _Ground:
        """Tell all programs of all nodes and pods, and wait until all timers are announced."""
        settings = lab.settings(name)
        ground = cls(lab, settings, programs, pods)
        fleet = ground._fleet
        tainted = fleet.nodes[: int(len(fleet.nodes) * TAINTED_SHARE)]
        waiting = [pod.name for pod in fleet.pods[: len(tainted) * PODS_PER_NODE]]
        markers = fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes[len(tainted) :], tainted=False))
            await writer.write(settings.nodes_topic, fleet.node_events(tainted, tainted=True))
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED", seconds=MARKER_SECONDS))
            await writer.write(settings.pods_topic, markers.entries)
        for program in programs:
            with CommandWatch(settings) as watch:
                watch.expect(len(waiting) + len(markers.pods), seconds=TIMEOUT_SECONDS)
                async with running(program, settings, lab.folder) as process:
                    with process.blamed():
                        await watch.seen(action="Schedule", pods=waiting + markers.pods)
            say(f"recovery: {program.title} knows {len(fleet.pods):,} pods, {len(waiting):,} of them scheduled")
        return ground

    async def round(self, number: int) -> dict[Program, float]:
        """Start each program once."""
        markers = self._fleet.markers()
        async with BulkWriter(self._settings) as writer:
            await writer.write(self._settings.pods_topic, markers.entries)
        return {program: await self._restart(program, markers.pods) for program in in_turn(self._programs, number)}

    async def _restart(self, program: Program, markers: Sequence[str]) -> float:
        with CommandWatch(self._settings) as watch:
            watch.expect(len(markers), seconds=TIMEOUT_SECONDS)
            began = time.time()
            async with running(program, self._settings, self._lab.folder) as process:
                with process.blamed():
                    seen = await watch.seen(action="Schedule", pods=markers)
        return max(one.seen_us for one in seen) / 1e6 - began
