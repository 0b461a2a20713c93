"""How late each program's evictions go out: 20,000 deadlines in 20 s, one in each millisecond.

As in `tests.bench.timers`, node number i of 1,000 was tainted i milliseconds after the first one, and pods tolerate
that for whole seconds. All programs get all their deadlines beforehand, each in windows of its own, one after the
other: while one of them fires the others wait. Lateness is the wall clock of a `read_committed` reader when its poll
returned with the `Evict`, less the deadline in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, percentile, require
from tests.bench.fleet import Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.peers.comparing import in_turn, limit
from tests.bench.peers.programs import FAUST, PROGRAMS, Program, Running, running
from tests.bench.watching import CommandWatch, Seen
from tests.bench.writing import BulkWriter

NODES: Final = 1_000  # one for each millisecond of a second
SECONDS_PER_WINDOW: Final = 20
WARM_UP_SECONDS: Final = 5  # before each program's first window, in which it fires too: a Java program compiles itself
ROUNDS: Final = 3
FAUST_ROUNDS: Final = 1  # it is late by a tenth of a second, and a window of the whole run costs 20 s
FIRST_AFTER_SECONDS: Final = 45  # until then all is scheduled, by stock Faust too
LOADED_BEFORE_SECONDS: Final = 10  # a pod that is seen after a taint would begin its own time then
TIMEOUT_SECONDS: Final = 120.0


class _Window(NamedTuple):
    """When a program has deadlines, in seconds after the first one of all."""

    program: Program
    begin: int
    warm_up: int
    end: int


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns."""
    seconds, first_after, rounds = (3, 30, 1) if lab.is_quick else (SECONDS_PER_WINDOW, FIRST_AFTER_SECONDS, ROUNDS)
    windows = _windows(seconds, rounds)
    late: dict[Program, list[list[float]]] = {program: [] for program in PROGRAMS}
    async with contextlib.AsyncExitStack() as stack:
        sides = {}
        for program in PROGRAMS:
            settings = lab.settings(f"lateness-{program.name}")
            watch = stack.enter_context(CommandWatch(settings))
            process = await stack.enter_async_context(running(program, settings, lab.folder))
            mine = [window for window in windows if window.program is program]
            sides[program] = side = _Side(settings, watch, process, mine, first_after)
            with process.blamed():
                await side.load()
        first_us = now_us() - NODES * 1_000
        for side in sides.values():
            await side.taint(first_us)
        for side in sides.values():
            with side.process.blamed():
                await side.require_scheduled(first_us)
        say(f"lateness: all scheduled {(now_us() - first_us) / 1e6:.0f} s after the taint")
        longest = windows[-1].end + first_after + TIMEOUT_SECONDS
        for side in sides.values():
            side.expect_evictions(longest)
        for program, side in sides.items():
            with side.process.blamed():
                late[program] = await side.late_ms(first_us)
            for number, values in enumerate(late[program]):
                p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
                say(f"lateness, round {number + 1}, {program.title}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    p50s = {program: [percentile(values, 0.5) for values in found] for program, found in late.items()}
    p99s = {program: [percentile(values, 0.99) for values in found] for program, found in late.items()}
    what = f"lateness of {seconds * NODES:,} deadlines in {seconds} s"
    return [
        limit("lateness-p99", f"{what}, p99", "ms", p99s, Goal(Bound.BELOW, 20.0)),
        limit("lateness-p50", f"{what}, p50", "ms", p50s, None),
    ]


def _windows(seconds: int, rounds: int) -> list[_Window]:
    windows = list[_Window]()
    begin = 0
    for number in range(rounds):
        for program in in_turn(PROGRAMS, number):
            if program is FAUST and number >= FAUST_ROUNDS:
                continue
            warm_up = WARM_UP_SECONDS if number == 0 else 0
            windows.append(_Window(program, begin, warm_up, begin + warm_up + seconds))
            begin = windows[-1].end
    return windows


class _Side:
    """One program with a fleet of its own: on each node a pod for each second of its windows."""

    def __init__(
        self,
        settings: Settings,
        watch: CommandWatch,
        process: Running,
        windows: Sequence[_Window],
        first_after: int,
    ) -> None:
        self.process = process
        self._settings = settings
        self._watch = watch
        self._windows = windows
        self._first_after = first_after
        self._seconds = [second for window in windows for second in range(window.begin, window.end)]
        self._fleet = Fleet(nodes=NODES, pods_per_node=len(self._seconds), partitions=settings.partitions)
        self._pods = [pod.name for pod in self._fleet.pods]

    async def load(self) -> None:
        """Tell the program of all nodes and pods."""
        settings, fleet, seconds = self._settings, self._fleet, self._seconds
        at_us = now_us() - LOADED_BEFORE_SECONDS * 1_000_000
        entries = (
            fleet.pod_event(pod, b"ADDED", seconds=self._first_after + seconds[number % len(seconds)], at_us=at_us)
            for number, pod in enumerate(fleet.pods)
        )
        markers = fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, entries)
            self._watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
            await writer.write(settings.pods_topic, markers.entries)
            await self._watch.seen(action="Schedule", pods=markers.pods)

    async def taint(self, first_us: int) -> None:
        """Taint all nodes, one for each millisecond."""
        fleet = self._fleet
        self._watch.expect(len(self._pods), seconds=TIMEOUT_SECONDS)
        async with BulkWriter(self._settings) as writer:
            events = (
                fleet.node_event(node, tainted=True, at_us=first_us + number * 1_000)
                for number, node in enumerate(fleet.nodes)
            )
            await writer.write(self._settings.nodes_topic, events)

    async def require_scheduled(self, first_us: int) -> None:
        """Wait until all is scheduled; refuse if that took longer than until the first deadline."""
        await self._watch.seen(action="Schedule", pods=self._pods)
        require(now_us() < first_us + self._first_after * 1_000_000, "scheduling took too long for the first deadlines")

    def expect_evictions(self, seconds: float) -> None:
        """Start to watch all of them."""
        self._watch.expect(len(self._pods), seconds=seconds)

    async def late_ms(self, first_us: int) -> list[list[float]]:
        """Wait for all evictions; returns how late they were in each window, in milliseconds."""
        seen = await self._watch.seen(action="Evict", pods=self._pods)
        require(len({one.deadline_us for one in seen}) == len(self._pods), "deadlines are not spread evenly")
        require(all(one.seen_us >= one.deadline_us for one in seen), "an eviction was issued early")
        zero_us = first_us + self._first_after * 1_000_000
        return [self._in(window, seen, zero_us) for window in self._windows]

    @staticmethod
    def _in(window: _Window, seen: Sequence[Seen], zero_us: int) -> list[float]:
        begin_us = zero_us + (window.begin + window.warm_up) * 1_000_000
        end_us = zero_us + window.end * 1_000_000
        late = [(one.seen_us - one.deadline_us) / 1000 for one in seen if begin_us <= one.deadline_us < end_us]
        require(len(late) == NODES * (window.end - window.begin - window.warm_up), "deadlines are not spread evenly")
        return late
