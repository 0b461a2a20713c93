"""How many events each program takes in a second, and what of the processor a million of them costs.

A program finds a backlog: events to warm up on (a Java program compiles itself meanwhile), then three stretches with a
marker in each partition between them: trimmed objects that change nothing, whole ones that change nothing, trimmed
ones that each change a row. A stretch lasts from the mean of the moments at which the program answered the markers
before it (its own stamps on those commands) to the mean of those at which a `read_committed` reader had the answers
to the markers behind it: partitions proceed at different speeds, so neither the first nor the last one tells. All
programs read the same records, but for stock Faust, which gets a tenth of them on topics of its own.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from streams.settings import Settings
from tests.bench.figures import Figure, Goal, require
from tests.bench.fleet import TRIMMED, Entry, Fleet, Rest, now_us
from tests.bench.lab import Lab, say
from tests.bench.log import ends
from tests.bench.peers.comparing import in_turn, limit, ratio
from tests.bench.peers.programs import FAUST, PROGRAMS, STREAMS, CpuWatch, Program, running
from tests.bench.watching import CommandWatch, Seen
from tests.bench.whole_objects import WHOLE
from tests.bench.writing import BulkWriter

NODES: Final = 1_000
PODS_PER_NODE: Final = 30
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 120.0
FEWEST_ROWS: Final = 0.95  # of what changes; a row that changes twice before it is written is written once
MOST_ROWS: Final = 1.2  # what does not change must not be written; some records are marks and positions


class _Stretch(NamedTuple):
    name: str
    events: int
    rest: Rest
    is_change: bool


STRETCHES: Final = (
    _Stretch("warm-up-whole", 40_000, WHOLE, is_change=False),
    _Stretch("warm-up-changing", 90_000, TRIMMED, is_change=True),
    _Stretch("warm-up", 300_000, TRIMMED, is_change=False),
    _Stretch("trimmed", 400_000, TRIMMED, is_change=False),
    _Stretch("whole", 80_000, WHOLE, is_change=False),
    _Stretch("changing", 180_000, TRIMMED, is_change=True),
)
MEASURED: Final = tuple(stretch.name for stretch in STRETCHES if not stretch.name.startswith("warm-up"))


class _Taken(NamedTuple):
    """What one program did in one round, by name of the stretch."""

    events_per_second: dict[str, float]
    cpu_seconds_per_million: dict[str, float]


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns."""
    factor = 0.1 if lab.is_quick else 1.0
    fast = [program for program in PROGRAMS if program is not FAUST]
    grounds = [await _Ground.load(lab, "steady", fast, factor)]
    grounds.append(await _Ground.load(lab, "steady-faust", [FAUST], factor * FAUST.share))
    taken: dict[Program, list[_Taken]] = {program: [] for program in PROGRAMS}
    for number in range(1 if lab.is_quick else ROUNDS):
        for ground in grounds:
            for program, found in (await ground.round(number)).items():
                taken[program].append(found)
                rates = ", ".join(f"{name} {found.events_per_second[name]:,.0f}/s" for name in MEASURED)
                say(f"steady, round {number + 1}, {program.title}: {rates}")
    k_rates = {
        name: {one: [found.events_per_second[name] / 1000 for found in all_] for one, all_ in taken.items()}
        for name in MEASURED
    }
    costs = {
        name: {one: [found.cpu_seconds_per_million[name] for found in all_] for one, all_ in taken.items()}
        for name in MEASURED
    }
    cheap = Goal(0.7, is_floor=False)
    trimmed, whole = (len(grounds[0].sample(rest).value) for rest in (TRIMMED, WHOLE))
    return [
        ratio(
            "steady-trimmed",
            f"{trimmed} B events that change nothing",
            "k/s",
            k_rates["trimmed"],
            STREAMS,
            Goal(1.2, is_floor=True),
        ),
        ratio(
            "steady-whole",
            f"{whole:,} B events that change nothing",
            "k/s",
            k_rates["whole"],
            STREAMS,
            Goal(2.0, is_floor=True),
        ),
        ratio(
            "steady-changing",
            "events that each change a row",
            "k/s",
            k_rates["changing"],
            STREAMS,
            Goal(2.5, is_floor=True),
        ),
        ratio(
            "cpu-trimmed",
            "processor time per million events that change nothing",
            "s",
            costs["trimmed"],
            STREAMS,
            cheap,
        ),
        ratio(
            "cpu-changing",
            "processor time per million events that each change a row",
            "s",
            costs["changing"],
            STREAMS,
            cheap,
        ),
        limit("cpu-whole", "processor time per million whole objects that change nothing", "s", costs["whole"], None),
    ]


class _Ground:
    """Topics that some programs read, one after the other, each as if it were alone."""

    def __init__(self, lab: Lab, settings: Settings, programs: Sequence[Program], factor: float) -> None:
        self._lab = lab
        self._settings = settings
        self._programs = programs
        self._fleet = Fleet(
            nodes=int(NODES * min(1, factor * 5)), pods_per_node=PODS_PER_NODE, partitions=settings.partitions
        )
        self._stretches = [stretch._replace(events=int(stretch.events * factor)) for stretch in STRETCHES]
        self._order = list(range(len(self._fleet.pods)))
        random.Random(7).shuffle(self._order)  # noqa: S311 - the same order in each run
        self._seconds = [300] * len(self._order)
        self._turn = 0

    @classmethod
    async def load(cls, lab: Lab, name: str, programs: Sequence[Program], factor: float) -> _Ground:
        """Tell all programs of all nodes and pods."""
        settings = lab.settings(name)
        ground = cls(lab, settings, programs, factor)
        fleet = ground._fleet
        markers = fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED"))
            await writer.write(settings.pods_topic, markers.entries)
        for program in programs:
            with CommandWatch(settings) as watch:
                watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
                async with running(program, settings, lab.folder) as process:
                    with process.blamed():
                        await watch.seen(action="Schedule", pods=markers.pods)
        return ground

    def sample(self, rest: Rest) -> Entry:
        """Make an event to be looked at."""
        return self._fleet.pod_event(self._fleet.pods[0], b"MODIFIED", seconds=300, at_us=now_us(), whole=rest)

    async def round(self, number: int) -> dict[Program, _Taken]:
        """Write a backlog and let each program take it in."""
        settings, fleet = self._settings, self._fleet
        markers = [fleet.markers() for _ in range(len(self._stretches) + 1)]
        async with BulkWriter(settings) as writer:
            await writer.write(settings.pods_topic, markers[0].entries)
            for stretch, end in zip(self._stretches, markers[1:], strict=True):
                await writer.write(settings.pods_topic, self._events(stretch))
                await writer.write(settings.pods_topic, end.entries)
        names = [set(one.pods) for one in markers]
        return {program: await self._take(program, names) for program in in_turn(self._programs, number)}

    def _events(self, stretch: _Stretch) -> Iterator[Entry]:
        # All pods have their turn before one has its next.
        pods, order, seconds, at_us = self._fleet.pods, self._order, self._seconds, now_us()
        for _ in range(stretch.events):
            number = order[self._turn % len(order)]
            self._turn += 1
            if stretch.is_change:
                seconds[number] = 900 - seconds[number]
            yield self._fleet.pod_event(
                pods[number], b"MODIFIED", seconds=seconds[number], at_us=at_us, whole=stretch.rest
            )

    async def _take(self, program: Program, markers: Sequence[set[str]]) -> _Taken:
        settings, changelog = self._settings, program.changelog(self._settings)
        before = await ends(settings, changelog)
        with CommandWatch(settings) as watch:
            watch.expect(sum(map(len, markers)), seconds=TIMEOUT_SECONDS)
            async with running(program, settings, self._lab.folder) as process, CpuWatch(process).watching() as cpu:
                with process.blamed():
                    seen = await watch.seen(action="Schedule", pods=sorted(set().union(*markers)))
        after = await ends(settings, changelog)
        written = sum(after[changelog].values()) - sum(before[changelog].values())
        changes = sum(stretch.events for stretch in self._stretches if stretch.is_change)
        require(written >= FEWEST_ROWS * changes, f"{program.title} wrote {written} records for {changes} changes")
        most = MOST_ROWS * changes + 2_000
        require(written <= most, f"{program.title} wrote {written} records for {changes} changes")
        taken = _Taken({}, {})
        for stretch, start, end in zip(self._stretches, markers, markers[1:], strict=False):
            began = statistics.mean(one.stamped_us for one in _of(seen, start)) / 1e6
            ended = statistics.mean(one.seen_us for one in _of(seen, end)) / 1e6
            taken.events_per_second[stretch.name] = stretch.events / (ended - began)
            taken.cpu_seconds_per_million[stretch.name] = cpu.between(began, ended) * 1e6 / stretch.events
        return taken


def _of(seen: Sequence[Seen], pods: set[str]) -> list[Seen]:
    return [one for one in seen if one.pod in pods]
