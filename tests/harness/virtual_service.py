"""One partition of the service under virtual time: events at their instants, timers when due, a played executor.

The logic gets recorded events at their recorded times, timers fire exactly when they are due, and the stand-in for
executor and cluster answers. Everything else, Kafka included, is left out, so a minute of history takes a second. The
same with restarts: after every so many events all memory is thrown away and built anew from the rows.
"""

from __future__ import annotations

import collections
import datetime as dt
import json
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from evictstream.kit.demo.judgement import oracle_limits
from evictstream.kit.oracle import InputRecord, MessageRecord, Promptness, Violation, judge
from evictstream.kit.oracle.records import InputTopic, OutputTopic
from evictstream.kit.replay.simulated_executor import SimulatedExecutor
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.settings import Settings
from tests.harness.plans import one_partition, taken_over

SECOND_US = 1_000_000
AFTERMATH_US = 60 * SECOND_US
FIRE_LIMIT = 100_000

Event = dict[str, Any]


class FakeRecord(NamedTuple):
    """A consumed record."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes


class VirtualService:
    """One partition that holds everything, with a clock that only moves when told."""

    def __init__(self) -> None:
        self.now_us = 0
        self.rows: dict[bytes, bytes] = {}
        self.inputs: list[InputRecord] = []
        self.messages: list[MessageRecord] = []
        self.stand_in = SimulatedExecutor()
        self.plan = one_partition(lambda: self.now_us)
        self.logic = EvictionPartition(0, self.plan)

    def restart(self) -> None:
        """Throw all memory away and build it anew from the rows."""
        self.logic, outbox = taken_over(self.plan, self.rows)
        self._commit(outbox)

    def take(self, event: Event, at_us: int) -> None:
        """Let time pass until an event that was recorded, and append it unless its pod has been evicted since."""
        self.advance(at_us)
        before = self.stand_in.admit(json.dumps(event).encode(), at_us)
        for one in [] if before is None else [*before, event]:
            self.feed(one, at_us)

    def feed(self, event: dict[str, object], at_us: int) -> None:
        """Append a watch event to the log at an instant and apply it."""
        self.advance(at_us)
        obj = event["object"]
        assert isinstance(obj, dict)
        is_node = obj["kind"] == "Node"
        self._append("nodes" if is_node else "pods", event)

    def advance(self, to_us: int) -> None:
        """Let time pass: timers fire when they are due, terminating pods vanish when their time has come."""
        while True:
            due = [
                at for at in (self.logic.next_due_at_us(), self.stand_in.next_us()) if at is not None and at <= to_us
            ]
            if not due:
                break
            self.now_us = max(self.now_us, min(due))
            outbox = Outbox()
            self.logic.fire(self.now_us, FIRE_LIMIT, outbox)
            self._commit(outbox)
            for event in self.stand_in.gone(self.now_us):
                self._append("pods", event)
        self.now_us = max(self.now_us, to_us)

    def of(self, topic: OutputTopic) -> list[dict[str, object]]:
        """Give the messages of a topic."""
        return [json.loads(message.value) for message in self.messages if message.topic == topic]

    def commands(self) -> list[tuple[int, dict[str, object]]]:
        """Give each command with its instant."""
        return [(one.append_at_us, json.loads(one.value)) for one in self.messages if one.topic == "commands"]

    def _append(self, topic: InputTopic, value: dict[str, object]) -> None:
        heard = InputRecord(
            topic=topic,
            partition=0,
            offset=len(self.inputs),
            append_at_us=self.now_us,
            key=str(value["cluster"]).encode(),
            value=json.dumps(value).encode(),
        )
        self.inputs.append(heard)
        # The service gets whole milliseconds, rounded up, so that the time of observation counts for it too.
        record = FakeRecord(heard.offset, self.now_us // 1000 + 1, heard.key, heard.value or b"")
        outbox = Outbox()
        collections.deque(self.logic.apply(topic, [record], outbox), maxlen=0)
        self._commit(outbox)

    def _commit(self, outbox: Outbox) -> None:
        """Do what a transaction does, then let the executor answer."""
        for key, value in outbox.rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        for topic in get_args(OutputTopic):
            for message in outbox.messages.get(topic, ()):
                told = MessageRecord(
                    topic=topic,
                    partition=0,
                    offset=len(self.messages),
                    append_at_us=self.now_us,
                    key=message.key,
                    headers=dict(message.headers),
                    value=message.value,
                )
                self.messages.append(told)
        for message in outbox.messages.get("commands", ()):
            command = json.loads(message.value)
            if command["action"] == "Evict":
                answer = self.stand_in.evict(command, self.now_us)
                for event in answer.events:
                    self._append("pods", event)
                self._append("results", answer.result)


def play(events: Sequence[Event], restart_every: int) -> VirtualService:
    """Play an incident."""
    service = VirtualService()
    for number, event in enumerate(events, start=1):
        service.take(event, _instant_us(str(event["observedAt"])))
        if restart_every and number % restart_every == 0:
            service.restart()
    service.advance(service.now_us + AFTERMATH_US)
    return service


def _instant_us(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * SECOND_US)


def violations(service: VirtualService) -> list[Violation]:
    return judge(
        service.inputs,
        service.messages,
        ended_at_us=service.now_us,
        partitions=1,
        limits=oracle_limits(Settings()),
        early_us=0,
        promptness=Promptness(late_us=0, view_us=0),
    )
