"""From a taint to its command at 2,000 events a second, beside the floor: producing and consuming a command's bytes.

Each event taints a node with one pod, which tolerates it for 300 s, so each is answered with one `Schedule`. The time
runs from when the event is given to the producer (which sends at once) until a `read_committed` reader has the
command. For the floor the same producer writes commands themselves, at the same rate.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Self

import msgspec
from aiokafka import AIOKafkaProducer

from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, percentile
from tests.bench.fleet import Entry, Fleet, now_us
from tests.bench.lab import Lab, say
from tests.bench.log import values
from tests.bench.peers.comparing import in_turn, limit, ratio
from tests.bench.peers.programs import PROGRAMS, STREAMS_EXACTLY_ONCE, Program, Running, running
from tests.bench.watching import CommandWatch, Seen
from tests.bench.writing import BulkWriter

EVENTS_PER_SECOND: Final = 2_000
SECONDS: Final = 5
WARM_UP_ROUNDS: Final = 1
ROUNDS: Final = 3
STEP_SECONDS: Final = 0.002
TIMEOUT_SECONDS: Final = 120.0

FLOOR: Final = Program("floor", "produce to consume")


class _Command(msgspec.Struct):
    action: str
    pod: str


class _Round(NamedTuple):
    p50_ms: float
    p99_ms: float


async def measure(lab: Lab) -> list[Figure]:
    """Measure all programs in turns, and the floor in each round."""
    count = EVENTS_PER_SECOND * (2 if lab.is_quick else SECONDS)
    taken: dict[Program, list[_Round]] = {program: [] for program in (*PROGRAMS, FLOOR)}
    async with contextlib.AsyncExitStack() as stack:
        sides = dict[Program, _Side]()
        for program in PROGRAMS:
            settings = lab.settings(f"latency-{program.name}")
            watch = stack.enter_context(CommandWatch(settings))
            sender = await stack.enter_async_context(_Sender(settings))
            process = await stack.enter_async_context(running(program, settings, lab.folder))
            sides[program] = _Side(settings, watch, sender, process, count)
            with process.blamed():
                await sides[program].load()
        settings = lab.settings("latency-floor")
        watch = stack.enter_context(CommandWatch(settings))
        sender = await stack.enter_async_context(_Sender(settings))
        floor: _Floor | None = None
        for number in range(-WARM_UP_ROUNDS, 1 if lab.is_quick else ROUNDS):
            for program in in_turn(PROGRAMS, number):
                with sides[program].process.blamed():
                    _keep(taken, program, number, await sides[program].round())
            if floor is None:  # from the warm-up round on there are commands
                floor = _Floor(settings, watch, sender, await sides[STREAMS_EXACTLY_ONCE].commands())
            _keep(taken, FLOOR, number, await floor.round())
    p50 = {program: [one.p50_ms for one in found] for program, found in taken.items()}
    p99 = {program: [one.p99_ms for one in found] for program, found in taken.items()}
    what = f"taint to command at {EVENTS_PER_SECOND:,} events a second"
    return [
        limit("latency-p50", f"{what}, p50", "ms", p50, Goal(Bound.BELOW, 12.0)),
        ratio(
            "latency-p50-ratio",
            f"{what}, p50, beside exactly once",
            "ms",
            p50,
            STREAMS_EXACTLY_ONCE,
            Goal(Bound.BELOW, 0.2),
        ),
        limit("latency-p99", f"{what}, p99", "ms", p99, Goal(Bound.BELOW, 40.0)),
    ]


def _keep(taken: dict[Program, list[_Round]], program: Program, number: int, found: _Round) -> None:
    if number >= 0:
        taken[program].append(found)
        say(f"latency, round {number + 1}, {program.title}: p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms")


class _Sender:
    """Sends records one by one at a steady rate, each at once."""

    def __init__(self, settings: Settings) -> None:
        self._producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers, acks="all", linger_ms=0)

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def send(self, topic: str, entries: Iterator[Entry]) -> list[int]:
        """Send all; returns when each was given to the producer, in microseconds since 1970."""
        began, sent_us = time.monotonic(), list[int]()
        while True:
            due = int((time.monotonic() - began) * EVENTS_PER_SECOND)
            while len(sent_us) < due:
                entry = next(entries, None)
                if entry is None:
                    await self._producer.flush()
                    return sent_us
                sent_us.append(now_us())
                await self._producer.send(topic, entry.value, key=entry.key, partition=entry.partition)
            await asyncio.sleep(STEP_SECONDS)


class _Side:
    """One program with a fleet of its own."""

    def __init__(self, settings: Settings, watch: CommandWatch, sender: _Sender, process: Running, count: int) -> None:
        self.process = process
        self._settings = settings
        self._watch = watch
        self._sender = sender
        self._fleet = Fleet(nodes=count, pods_per_node=1, partitions=settings.partitions)
        self._pods = [pod.name for pod in self._fleet.pods]

    async def load(self) -> None:
        settings, fleet = self._settings, self._fleet
        markers = fleet.markers()
        async with BulkWriter(settings) as writer:
            await writer.write(settings.nodes_topic, fleet.node_events(fleet.nodes, tainted=False))
            await writer.write(settings.nodes_topic, fleet.marker_nodes())
            await writer.write(settings.pods_topic, fleet.pod_events(fleet.pods, b"ADDED"))
            self._watch.expect(len(markers.pods), seconds=TIMEOUT_SECONDS)
            await writer.write(settings.pods_topic, markers.entries)
            await self._watch.seen(action="Schedule", pods=markers.pods)

    async def commands(self) -> dict[str, bytes]:
        """Give a `Schedule` that the program has sent, by name of the pod."""
        sent = await values(self._settings, self._settings.commands_topic)
        decoder = msgspec.json.Decoder(_Command)
        by_pod = {command.pod: value for value in sent if (command := decoder.decode(value)).action == "Schedule"}
        return {name: by_pod[name] for name in self._pods}

    async def round(self) -> _Round:
        """Taint all nodes, one by one; then let them be well again."""
        topic, fleet = self._settings.nodes_topic, self._fleet
        self._watch.expect(len(self._pods), seconds=TIMEOUT_SECONDS)
        sent_us = await self._sender.send(topic, fleet.node_events(fleet.nodes, tainted=True))
        seen = await self._watch.seen(action="Schedule", pods=self._pods)
        self._watch.expect(len(self._pods), seconds=TIMEOUT_SECONDS)
        async with BulkWriter(self._settings) as writer:
            await writer.write(topic, fleet.node_events(fleet.nodes, tainted=False))
        await self._watch.seen(action="Cancel", pods=self._pods)
        return _late(seen, self._pods, sent_us)


class _Floor:
    """Commands that nobody decided."""

    def __init__(self, settings: Settings, watch: CommandWatch, sender: _Sender, commands: dict[str, bytes]) -> None:
        self._settings = settings
        self._watch = watch
        self._sender = sender
        self._commands = commands

    async def round(self) -> _Round:
        """Send all commands again."""
        partitions, pods = self._settings.partitions, list(self._commands)
        entries = (Entry(number % partitions, b"", self._commands[name]) for number, name in enumerate(pods))
        self._watch.expect(len(pods), seconds=TIMEOUT_SECONDS)
        sent_us = await self._sender.send(self._settings.commands_topic, entries)
        return _late(await self._watch.seen(action="Schedule", pods=pods), pods, sent_us)


def _late(seen: Sequence[Seen], pods: Sequence[str], sent_us: Sequence[int]) -> _Round:
    by_pod = dict(zip(pods, sent_us, strict=True))
    late_ms = [(one.seen_us - by_pod[one.pod]) / 1000 for one in seen]
    return _Round(percentile(late_ms, 0.5), percentile(late_ms, 0.99))
