"""How many events one worker takes in each second, in parts of what a bare consumer reads.

A worker finds a backlog: a marker in each partition, the events, and another marker. The time runs from the moment
at which the worker answers the first marker (its own stamp on that command) until a `read_committed` reader has seen
the last answer, so start-up and takeover are not in it and the last transaction is. A bare consumer reads the same
records before and after the worker; their mean is what counts.

Fleets have a cluster in each partition, so that all are used. One fleet is a single cluster: it lives in one partition,
and its rate is the most that a cluster can have.
"""

from __future__ import annotations

import contextlib
import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Final, Self

from evictstream.models.eviction.pod_rows import read_pod_value
from evictstream.streams.settings import Settings
from tests.bench.bare import bare_rate
from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import Entry, Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.log import Rows, ends, require_all_read, rows_since
from tests.bench.watching import CommandWatch
from tests.bench.writing import BulkWriter
from tests.harness.topics import alter_topics

NODES: Final = 1_000
PODS_PER_NODE: Final = 30
ROUNDS: Final = 3
TIMEOUT_SECONDS: Final = 60.0
ALONE: Final = ("bench-eu-1",)

# A row that changes twice before its transaction begins is written once. All pods have their turn before one has its
# next, so hardly any does, and what is written is counted.
FEWEST_ROWS: Final = 0.95

# In the third round a segment of the changelog is full, and the cleaner would take older rows of a pod away before they
# are counted.
COMPACTION_LAG_MS: Final = 3_600_000


class _Backlog:
    """Events over all pods in a shuffled order, again and again."""

    def __init__(self, fleet: Fleet, *, edits: bool) -> None:
        self._fleet = fleet
        self._order = list(fleet.pods)
        random.Random(7).shuffle(self._order)  # noqa: S311 - the same order in each run
        self._edits = edits
        self._turns = 0
        self.versions: dict[str, int] = {}

    def events(self, count: int) -> Iterator[Entry]:
        """Make events; the newest version of each pod is kept in `versions`."""
        fleet, order, versions = self._fleet, self._order, self.versions
        at_us = now_us()
        for number in range(self._turns, self._turns + count):
            turn, place = divmod(number, len(order))
            pod = order[place]
            # Loaded with 300: the first turn already edits.
            seconds = 600 - 300 * (turn % 2) if self._edits else 300
            yield fleet.pod_event(pod, b"MODIFIED", seconds=seconds, at_us=at_us)
            versions[pod.uid] = fleet.version
        self._turns += count


async def measure(lab: Lab) -> list[Figure]:
    """Measure events that change nothing, those that each change a row, and those of one cluster alone, in turns."""
    counts = {"unchanged": 300_000, "changing": 150_000, "alone": 300_000}
    if lab.is_quick:
        counts = {name: count // 3 for name, count in counts.items()}
    ratios: dict[str, list[float]] = {name: [] for name in counts}
    rates: dict[str, list[float]] = {name: [] for name in counts}
    bare: list[float] = []
    # A service for each, so that the one's rows are not in the other's way.
    with contextlib.ExitStack() as stack:
        benches = {}
        for name in counts:
            settings = lab.settings(name)
            alter_topics(settings, {settings.changelog_topic: {"min.compaction.lag.ms": str(COMPACTION_LAG_MS)}})
            watch = stack.enter_context(CommandWatch(settings))
            benches[name] = await _Bench.load(
                lab, settings, watch, edits=name == "changing", clusters=ALONE if name == "alone" else None
            )
        for number in range(ROUNDS):
            for name, bench in benches.items():
                rate, bare_one = await bench.round(counts[name])
                say(f"{name}, round {number + 1} of {ROUNDS}: {rate:,.0f}/s, bare consumer {bare_one:,.0f}/s")
                ratios[name].append(rate / bare_one)
                rates[name].append(rate)
                bare.append(bare_one)
    goals = {"unchanged": Goal(Bound.AT_LEAST, 1 / 3), "changing": Goal(Bound.AT_LEAST, 1 / 6)}
    sentences = {
        "unchanged": "events that change nothing, compared with a bare consumer",
        "changing": "events that each change a row, compared with a bare consumer",
        "alone": "events of one cluster that change nothing, compared with a bare consumer",
    }
    return [
        Figure(
            name,
            sentences[name],
            "x bare",
            tuple(ratios[name]),
            goals.get(name),
            {
                "worker_per_s": statistics.median(rates[name]),
                "bare_per_s": statistics.median(bare),
                "bytes_per_event": benches[name].bytes_per_event,
            },
        )
        for name in counts
    ]


class _Bench:
    """One service with its fleet loaded, which is given one backlog after another."""

    def __init__(self, lab: Lab, settings: Settings, watch: CommandWatch, fleet: Fleet, *, edits: bool) -> None:
        self._lab = lab
        self._settings = settings
        self._watch = watch
        self._fleet = fleet
        self._backlog = _Backlog(fleet, edits=edits)
        self._edits = edits
        self.bytes_per_event = len(next(fleet.pod_events(fleet.pods, b"MODIFIED")).value)

    @classmethod
    async def load(
        cls, lab: Lab, settings: Settings, watch: CommandWatch, *, edits: bool, clusters: Sequence[str] | None
    ) -> Self:
        """Tell a worker of all nodes and pods."""
        partitions = settings.partitions
        fleet = Fleet(nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=partitions, clusters=clusters)
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED"))
            markers = fleet.markers()
            await writer.write(settings.pods_topic, markers.entries)
        watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
        async with lab.worker(settings):
            await watch.seen(action="Schedule", pods=markers.pods)
        say(f"{len(fleet.pods):,} pods on {len(fleet.nodes):,} nodes loaded")
        return cls(lab, settings, watch, fleet, edits=edits)

    async def round(self, count: int) -> tuple[float, float]:
        """Take one backlog in; returns events per second of the worker and of a bare consumer."""
        settings, topic = self._settings, self._settings.pods_topic
        before = await ends(settings, topic, settings.changelog_topic)
        start, end = self._fleet.markers(), self._fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(topic, start.entries)
            await writer.write(topic, self._backlog.events(count))
            await writer.write(topic, end.entries)
        after = await ends(settings, topic)
        stretch = (settings, topic, before[topic], after[topic])
        bare = [await bare_rate(*stretch)]
        rate = await self._drain(count, start.pods, end.pods)
        bare.append(await bare_rate(*stretch))
        await self._check(await rows_since(settings, before[settings.changelog_topic]), count)
        return rate, statistics.mean(bare)

    async def _drain(self, count: int, start: list[str], end: list[str]) -> float:
        self._watch.expect(len(start) + len(end), seconds=TIMEOUT_SECONDS)
        async with self._lab.worker(self._settings):
            seen = await self._watch.seen(action="Schedule", pods=start + end)
        began_us = min(one.stamped_us for one in seen if one.pod in start)
        ended_us = max(one.seen_us for one in seen if one.pod in end)
        return count * 1e6 / (ended_us - began_us)

    async def _check(self, rows: Rows, count: int) -> None:
        await require_all_read(self._settings, rows)
        ours = {uid: row for uid, row in rows.pods.items() if uid in self._backlog.versions}
        written = rows.pods_written - (len(rows.pods) - len(ours))  # less the markers
        if not self._edits:
            require(not written, f"{written} rows were written for events that change nothing")
            return
        require(written >= FEWEST_ROWS * count, f"only {written} rows were written for {count} events")
        for uid, version in self._backlog.versions.items():
            if uid in ours:
                found = read_pod_value(b"", ours[uid], uid).version
                require(found == version, f"the row of {uid} has version {found} instead of {version}")
