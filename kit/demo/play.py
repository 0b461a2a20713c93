"""The recording is played at its pace, commands are carried out, and a worker is killed when most is pending.

One loop in one thread does it, so nothing here needs a lock.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from statistics import median_high
from typing import Any, Final

import msgspec

from evictstream.kit.demo.judgement import PATIENCE_US
from evictstream.kit.demo.workers import DemoWorker, owners
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.simulated_executor import AnsweringEvent, SimulatedExecutor
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings

TURN_MS: Final = 20
"""The longest wait for commands, and so how late a recorded event may be sent."""

LOOK_US: Final = 1_000_000
"""Between looks at the workers, lines about evictions, and heartbeats of the feed that this stands for."""

LONGEST_TAKEOVER_US: Final = 60_000_000
"""Six times the usual session timeout; who has not taken over by then will not."""

LONGEST_TAIL_SECONDS: Final = 120.0
"""How long after the recording deadlines may lie to be waited for."""


def moved(records: Iterable[RecordedRecord], by_ms: int) -> list[RecordedRecord]:
    """Move the times of recorded watch events."""
    found = []
    for record in records:
        at_ms = record.timestamp + by_ms
        event = json.loads(record.value or b"{}") | {"observedAt": instant_text(at_ms * 1_000)}
        found.append(msgspec.structs.replace(record, timestamp=at_ms, value=msgspec.json.encode(event)))
    return found


def expected(records: list[RecordedRecord], settings: Settings) -> tuple[EvictionsOfRun, int]:
    """Replay what will be played: the evictions without a kill, and when the last thing happens (microseconds)."""
    replay = Replay(settings, partitions=settings.partitions, plays_executor=True)
    evictions, end_us = EvictionsOfRun(), records[-1].appended_us
    for message in (*replay.run(records), *replay.run_on(LONGEST_TAIL_SECONDS)):
        if message.topic == "commands":
            evictions.take(message.value)
            end_us = max(end_us, message.at_us)
    return evictions, end_us


def kill_moment_us(evictions: EvictionsOfRun, end_us: int) -> int | None:
    """Choose when many deadlines are pending: the median of the middles of their waits; None if none ever is."""
    waits = [
        (one.scheduled_at_us, one.cancelled_at_us or one.issued_at_us or end_us)
        for one in evictions
        if one.scheduled_at_us is not None
    ]
    return median_high((since_us + until_us) // 2 for since_us, until_us in waits) if waits else None


class Play:
    """The play while it runs.

    Attributes:
        evictions: what the commands came to so far.
        killed: the worker that was killed, if one was.
        outage: when it was, and when another one had all its partitions, which is 0 before; microseconds since 1970.
    """

    def __init__(self, settings: Settings, workers: list[DemoWorker], publisher: Publisher, commands: Any) -> None:
        """Take who plays; `commands` is a consumer of that topic."""
        self.evictions = EvictionsOfRun()
        self.killed: DemoWorker | None = None
        self.outage = (0, 0)
        self._settings, self._workers, self._publisher, self._commands = settings, workers, publisher, commands
        self._executor = SimulatedExecutor()
        self._status = ""

    def run(self, records: list[RecordedRecord], *, kill_us: int | None, end_us: int) -> Iterator[str]:
        """Play to the end, and on for as long as anything may still come in time; give a line for what happens.

        Args:
            records: watch events in the order of their times, the first of which is now.
            kill_us: when to kill the worker that has most to lose; None for never.
            end_us: when the last thing has to happen if no worker is killed.

        Raises:
            FoundProblemError: a worker has ended by itself.
        """
        clusters = {record.cluster for record in records}
        coming, now, look_us = deque(records), wall_clock_us(), 0
        while now < end_us + PATIENCE_US:
            self._send_until(now, coming)
            for command in (one for batch in self._commands.poll(TURN_MS).values() for one in batch):
                self._carry_out(command.key, command.value)
            if now >= look_us:
                look_us = now + LOOK_US
                self._beat(clusters, now)
                for worker in self._workers:
                    worker.check()
                if kill_us is not None and now >= kill_us:
                    kill_us = None
                    yield self._kill(clusters)
                if self.killed is not None and not self.outage[1]:
                    yield from self._find_heir(self.killed)
                    end_us = max(end_us, min(now, self.outage[0] + LONGEST_TAKEOVER_US))
                yield from self._new_status()
            now = wall_clock_us()

    def _send_until(self, now: int, coming: deque[RecordedRecord]) -> None:
        """Send what was recorded until then, and what the executor's deletes lead to."""
        while coming and coming[0].appended_us <= now:
            record = coming.popleft()
            value = record.value or b""
            before = self._executor.admit(value, now)
            if before is not None:  # else it did not happen here
                self._send_pods(before)
                topic = self._settings.nodes_topic if record.topic == "nodes" else self._settings.pods_topic
                self._publisher.send(topic, record.key or b"", value)
        self._send_pods(self._executor.gone(now))

    def _send_pods(self, events: Iterable[AnsweringEvent]) -> None:
        for event in events:
            self._publisher.send(self._settings.pods_topic, event["cluster"].encode(), msgspec.json.encode(event))

    def _beat(self, clusters: Iterable[str], now: int) -> None:
        for cluster in clusters:
            beat = msgspec.json.encode({"cluster": cluster, "type": "HEARTBEAT", "observedAt": instant_text(now)})
            for topic in (self._settings.nodes_topic, self._settings.pods_topic):
                self._publisher.send(topic, cluster.encode(), beat)

    def _carry_out(self, key: bytes, value: bytes) -> None:
        """Count a command, and do as an executor does."""
        self.evictions.take(value)
        command = json.loads(value)
        if command["action"] == "Evict":
            answer = self._executor.evict(command, wall_clock_us())
            self._publisher.send(self._settings.results_topic, key, msgspec.json.encode(answer.result))
            self._send_pods(answer.events)

    def _new_status(self) -> Iterator[str]:
        issued, pending = sum(bool(one.attempts) for one in self.evictions), sum(one.is_open for one in self.evictions)
        cancelled = len(self.evictions) - issued - pending
        before, self._status = self._status, f"evictions: {pending} pending, {issued} issued, {cancelled} cancelled"
        if len(self.evictions) and self._status != before:
            yield self._status

    def _kill(self, clusters: Iterable[str]) -> str:
        pending = Counter(dict.fromkeys(clusters, 0))
        pending.update(one.cluster for one in self.evictions if one.is_open)
        ((cluster, count),) = pending.most_common(1)
        _, self.killed = owners(self._workers)[partition_of(cluster.encode(), self._settings.partitions)]
        self.outage = (wall_clock_us(), 0)
        self.killed.kill()
        return f"{self.killed.name} decides for cluster {cluster}; it is killed with {count} deadlines pending"

    def _find_heir(self, killed: DemoWorker) -> Iterator[str]:
        """Look whether another worker has taken over all that the killed one had."""
        found = owners(self._workers).values()
        if all(owner is not killed for _, owner in found):
            taken_us, heir = max(found, key=lambda one: one[0])
            self.outage = (self.outage[0], taken_us)
            yield f"{heir.name} has taken over, {(taken_us - self.outage[0]) / SECOND_US:.1f} s after the kill"


def wall_clock_us() -> int:
    """Wall clock, microseconds since 1970; the workers' logs and commands use the same."""
    return time.time_ns() // 1_000
