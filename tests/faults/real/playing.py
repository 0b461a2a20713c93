"""Plays a plan in real time: its changes to the topics, commands to the actor, the actor's answers back, and faults.

Brakes and policies too; the actor holds what a brake holds that it has read, and people answer incidents.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import itertools
import json
import time
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from evictstream.streams.settings import Settings
from tests.faults.actor import ClusterActor
from tests.faults.braking import held_by
from tests.faults.plan import SECOND_US, Change, Plan
from tests.faults.real.crew import Crew
from tests.faults.real.desk import SteeringDesk
from tests.faults.real.means import Faults
from tests.faults.real.reading import STEERING, new_consumer

TURN_MS = 40
"""How long one turn waits for commands, and so how late a change or a fault may be."""

FLUSH_SECONDS = 30.0

BLOCK_MS = 1_000
"""How long the producer may look for a broker before the turn goes on without it."""


class Player:
    """Plays one plan. `play` may be called again and again, each time up to a later moment.

    Attributes:
        desk: who writes brakes and policies.
        held: evictions that the actor has held by a brake.
    """

    def __init__(self, settings: Settings, plan: Plan, crew: Crew, faults: Faults) -> None:
        self._plan = plan
        self._crew = crew
        self._faults = faults
        self._prefix = settings.topic_prefix
        self._actor = ClusterActor(plan)
        self._order = itertools.count()
        self._due: list[tuple[int, int, bool, Change]] = []
        for change in plan.changes:
            self._push(change, is_planned=True)
        # Idempotent: while a broker is away records wait and keep their order. What is not written for good did not
        # happen: the oracle reads the log.
        self._producer = KafkaProducer(
            bootstrap_servers=settings.bootstrap_servers,
            linger_ms=0,
            max_block_ms=BLOCK_MS,
            max_request_size=settings.max_message_bytes,  # by default it refuses absurd records, and what follows them
        )
        for topic in (*settings.input_topics, settings.brakes_topic, settings.policies_topic):
            self._producer.partitions_for(topic)
        self._commands_topic = settings.commands_topic
        self._consumer = new_consumer(settings, [f"{self._prefix}{topic}" for topic in ("commands", *STEERING)])
        self.desk = SteeringDesk(settings, plan, self._producer)
        self.held = 0

    def play(self, until_us: int) -> None:
        """Go on until an instant on the wall clock."""
        while (now_us := time.time_ns() // 1000) < until_us:
            self._faults.tick((now_us - self._plan.start_at_us) / SECOND_US)
            self._crew.tick()
            self._send(now_us)
            self._answer()

    def beat(self) -> None:
        """Let the feeds that send heartbeats send one more round, now: the plan's own ones end with the plan."""
        last: dict[tuple[str, bytes, int | None], Change] = {}
        for change in self._plan.changes:
            if change.value is not None and b'"HEARTBEAT"' in change.value:
                last[change.topic, change.key, change.partition] = change
        now_us = time.time_ns() // 1000
        for change in last.values():
            self._push(dataclasses.replace(change, at_us=now_us), is_planned=False)

    def flush(self) -> None:
        """Wait until the log has all that was produced: what waited for a broker would change the case later."""
        with contextlib.suppress(KafkaTimeoutError):
            self._producer.flush(timeout=FLUSH_SECONDS)

    def close(self) -> None:
        """Disconnect."""
        self._producer.close(timeout=5)
        self._consumer.close()

    def _push(self, change: Change, *, is_planned: bool) -> None:
        heapq.heappush(self._due, (change.at_us, next(self._order), is_planned, change))

    def _send(self, now_us: int) -> None:
        with contextlib.suppress(KafkaError):  # the next turn tries again
            self.desk.tick(now_us)
        while self._due and self._due[0][0] <= now_us:
            entry = heapq.heappop(self._due)
            _, _, is_planned, change = entry
            if is_planned and not self._actor.admit(change):
                continue
            try:
                self._append(change)
            except KafkaError:  # no broker to ask where to write; the next turn tries again
                heapq.heappush(self._due, (entry[0], entry[1], False, change))
                return

    def _append(self, change: Change) -> None:
        topic = f"{self._prefix}{change.topic}"
        self._producer.send(topic, key=change.key, value=change.value, partition=change.partition)

    def _answer(self) -> None:
        found: dict[str, list[Any]] = {}
        for partition, records in self._consumer.poll(timeout_ms=TURN_MS).items():
            found.setdefault(partition.topic, []).extend(records)
        self.desk.take(found)
        now_us = time.time_ns() // 1000
        for record in found.get(self._commands_topic, ()):
            command = json.loads(record.value)
            brake = held_by(self.desk.brakes, command, now_us) if self.desk.brakes else None
            self.held += brake is not None and command["action"] == "Evict"
            for change in self._actor.on_command(command, now_us, brake):
                self._push(change, is_planned=False)
