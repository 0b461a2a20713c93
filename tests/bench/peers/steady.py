"""How many events each program takes in a second, and what of the processor a million of them costs.

Each program has topics of its own with the same events. It first takes in some to warm up on (a Java program compiles
itself meanwhile). Then it is frozen while a stretch is written: trimmed objects that change nothing, whole ones that
change nothing, trimmed ones that each change a row; a marker in each partition ends it. The time runs from when the
program is let go until a `read_committed` reader has its answers to all markers. Stock Faust gets a part of the events.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import Entry, Fleet, Rest, now_us
from tests.bench.lab import Lab, say
from tests.bench.log import ends
from tests.bench.peers.comparing import in_turn, limit, ratio
from tests.bench.peers.programs import BUSY, OURS, OURS_TWICE, STREAMS, STREAMS_EXACTLY_ONCE, Program, Running, running
from tests.bench.watching import CommandWatch
from tests.bench.whole_objects import KEPT, WHOLE
from tests.bench.writing import BulkWriter

NODES: Final = 1_000
PODS_PER_NODE: Final = 30
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 120.0
FEWEST_ROWS: Final = 0.95  # of what changes; a row that changes twice before it is written is written once
MOST_ROWS: Final = 1.2  # what does not change must not be written; some records are markers and positions


class _Stretch(NamedTuple):
    name: str
    events: int
    rest: Rest
    is_change: bool


WARM_UP: Final = (
    _Stretch("warm-up-whole", 40_000, WHOLE, is_change=False),
    _Stretch("warm-up-changing", 90_000, KEPT, is_change=True),
    _Stretch("warm-up", 300_000, KEPT, is_change=False),
)
STRETCHES: Final = (
    _Stretch("trimmed", 400_000, KEPT, is_change=False),
    _Stretch("whole", 80_000, WHOLE, is_change=False),
    _Stretch("changing", 180_000, KEPT, is_change=True),
)
MEASURED: Final = tuple(stretch.name for stretch in STRETCHES)


class _Taken(NamedTuple):
    """What one program did in one round, by name of the stretch."""

    events_per_second: dict[str, float]
    cpu_seconds_per_million: dict[str, float]


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns."""
    factor = 0.1 if lab.is_quick else 1.0
    grounds = {program: await _Ground.load(lab, program, factor * program.share) for program in BUSY}
    taken: dict[Program, list[_Taken]] = {program: [] for program in BUSY}
    for number in range(1 if lab.is_quick else ROUNDS):
        for program in in_turn(BUSY, number):
            taken[program].append(found := await grounds[program].round())
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
    cheap = Goal(Bound.BELOW, 0.7)
    alike = "two workers beside two threads, exactly once"
    trimmed, whole = (len(grounds[OURS].sample(rest).value) for rest in (KEPT, WHOLE))
    return [
        ratio(
            "steady-trimmed",
            f"{trimmed} B events that change nothing",
            "k/s",
            k_rates["trimmed"],
            STREAMS,
            Goal(Bound.AT_LEAST, 1.2),
        ),
        ratio(
            "steady-whole",
            f"{whole:,} B events that change nothing",
            "k/s",
            k_rates["whole"],
            STREAMS,
            Goal(Bound.AT_LEAST, 2.0),
        ),
        ratio(
            "steady-changing",
            "events that each change a row",
            "k/s",
            k_rates["changing"],
            STREAMS,
            Goal(Bound.AT_LEAST, 2.5),
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
        *(
            ratio(
                f"steady-{name}-alike",
                f"{what}, {alike}",
                "k/s",
                k_rates[name],
                STREAMS_EXACTLY_ONCE,
                Goal(Bound.AT_LEAST, least),
                of=OURS_TWICE,
            )
            for name, what, least in (
                ("trimmed", f"{trimmed} B events that change nothing", 1.2),
                ("whole", f"{whole:,} B events that change nothing", 1.5),
                ("changing", "events that each change a row", 1.2),
            )
        ),
        ratio(
            "steady-trimmed-one",
            f"{trimmed} B events that change nothing, one worker beside two threads, exactly once",
            "k/s",
            k_rates["trimmed"],
            STREAMS_EXACTLY_ONCE,
            Goal(Bound.AT_LEAST, 0.75),
        ),
        limit(
            "cpu-trimmed-seconds",
            "processor time per million events that change nothing, in seconds",
            "s",
            costs["trimmed"],
            Goal(Bound.BELOW, 4.0),
        ),
        limit("cpu-whole", "processor time per million whole objects that change nothing", "s", costs["whole"], None),
    ]


class _Ground:
    """The topics of one program."""

    def __init__(self, lab: Lab, settings: Settings, program: Program, factor: float) -> None:
        self._lab = lab
        self._settings = settings
        self._program = program
        self._factor = factor
        self._fleet = Fleet(
            nodes=int(NODES * min(1, factor * 5)), pods_per_node=PODS_PER_NODE, partitions=settings.partitions
        )
        self._order = list(range(len(self._fleet.pods)))
        random.Random(7).shuffle(self._order)  # noqa: S311 - the same order in each run
        self._seconds = [300] * len(self._order)
        self._turn = 0

    @classmethod
    async def load(cls, lab: Lab, program: Program, factor: float) -> _Ground:
        """Tell a program of all nodes and pods."""
        settings = lab.settings(f"steady-{program.name}")
        ground = cls(lab, settings, program, factor)
        fleet = ground._fleet
        markers = fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED", whole=KEPT))
            await writer.write(settings.pods_topic, markers.entries)
        with CommandWatch(settings) as watch:
            watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
            async with running(program, settings, lab.folder) as process:
                with process.blamed():
                    await watch.seen(action="Schedule", pods=markers.pods)
        return ground

    def sample(self, rest: Rest) -> Entry:
        """Make an event to be looked at."""
        return self._fleet.pod_event(self._fleet.pods[0], b"MODIFIED", seconds=300, at_us=now_us(), whole=rest)

    async def round(self) -> _Taken:
        """Start the program, let it warm up, and take the time of each stretch."""
        program, settings = self._program, self._settings
        changelog = program.changelog(settings)
        before = await ends(settings, changelog)
        taken = _Taken({}, {})
        with CommandWatch(settings) as watch:
            async with BulkWriter(settings) as writer, running(program, settings, self._lab.folder) as process:
                with process.blamed():
                    await self._pass(watch, writer, process, WARM_UP)
                    for stretch in STRETCHES:
                        process.freeze()
                        seconds, cpu_seconds = await self._pass(watch, writer, process, (stretch,))
                        taken.events_per_second[stretch.name] = self._count(stretch) / seconds
                        taken.cpu_seconds_per_million[stretch.name] = cpu_seconds * 1e6 / self._count(stretch)
                    process.require_shared()
        after = await ends(settings, changelog)
        written = sum(after[changelog].values()) - sum(before[changelog].values())
        changes = sum(self._count(stretch) for stretch in (*WARM_UP, *STRETCHES) if stretch.is_change)
        require(written >= FEWEST_ROWS * changes, f"{program.title} wrote {written} records for {changes} changes")
        most = MOST_ROWS * changes + 2_000
        require(written <= most, f"{program.title} wrote {written} records for {changes} changes")
        return taken

    def _events(self, stretch: _Stretch) -> Iterator[Entry]:
        # All pods have their turn before one has its next.
        pods, order, seconds, at_us = self._fleet.pods, self._order, self._seconds, now_us()
        for _ in range(self._count(stretch)):
            number = order[self._turn % len(order)]
            self._turn += 1
            if stretch.is_change:
                seconds[number] = 900 - seconds[number]
            yield self._fleet.pod_event(
                pods[number], b"MODIFIED", seconds=seconds[number], at_us=at_us, whole=stretch.rest
            )

    async def _pass(
        self, watch: CommandWatch, writer: BulkWriter, process: Running, stretches: Sequence[_Stretch]
    ) -> tuple[float, float]:
        """Write stretches with a marker in each partition behind them, and let the program go.

        Returns:
            How long it took from then on, and its processor time, both in seconds.
        """
        topic, markers = self._settings.pods_topic, self._fleet.markers()
        for stretch in stretches:
            await writer.write(topic, self._events(stretch))
        await writer.write(topic, markers.entries)
        watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
        cpu_before, began = process.cpu_seconds(), time.time()
        process.thaw()
        seen = await watch.seen(action="Schedule", pods=markers.pods)
        return max(one.seen_us for one in seen) / 1e6 - began, process.cpu_seconds() - cpu_before

    def _count(self, stretch: _Stretch) -> int:
        return int(stretch.events * self._factor)
