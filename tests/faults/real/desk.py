"""Who writes brakes and policies of a plan to a real Kafka, and what each of these records has become there."""

from __future__ import annotations

import functools
import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka import KafkaProducer
from kafka.errors import KafkaError

from evictstream.kit.oracle import KeyedRecord
from evictstream.streams.settings import Settings
from tests.faults.braking import as_policy
from tests.faults.people import People
from tests.faults.plan import Plan


class _Deed(NamedTuple):
    """Something to be written. `is_peoples`: it depends on what they have written before."""

    at_us: int
    order: int
    is_peoples: bool
    write: Callable[[], None]


class SteeringDesk:
    """Implements `people.Desk` on a real Kafka; call `tick` often, and `take` with what the topics say.

    Attributes:
        people: who write policies that guard, and answer incidents.
        brakes: those that have been read, as an executor does.
        known_us: when the writer of a record heard that it stands there, by topic and offset; microseconds since 1970.
    """

    def __init__(self, settings: Settings, plan: Plan, producer: KafkaProducer) -> None:
        self.people = People(plan, self)
        self.brakes: list[KeyedRecord] = []
        self.known_us: dict[tuple[str, int], int] = {}
        self._settings = settings
        self._names = {change.name.encode() for change in plan.policies}
        self._producer = producer
        self._order = itertools.count()
        self._due: list[_Deed] = []
        self._sent: Any = None  # the record of people that has not been read back
        for record in plan.brakes:
            self._push(record.append_at_us, functools.partial(self._write, record), is_peoples=False)
        self.people.plan_policies()

    @property
    def now_us(self) -> int:
        """The clock of the machine, which the brokers share."""
        return time.time_ns() // 1000

    def at(self, at_us: int, write: Callable[[], None]) -> None:
        """Let people write at an instant, or as soon after it as what they wrote before is read back."""
        self._push(at_us, write, is_peoples=True)

    def append(self, key: bytes, value: bytes) -> None:
        """Write a record of people."""
        self._sent = self._send(self._settings.policies_topic, key, value)

    def tick(self, now_us: int) -> None:
        """Write what is due.

        Raises:
            KafkaError: no broker says where to write; the next tick tries again.
        """
        waiting: list[_Deed] = []
        try:
            while self._due and self._due[0].at_us <= now_us:
                deed = heapq.heappop(self._due)
                if not (deed.is_peoples and self._is_unread):
                    try:
                        deed.write()
                    except KafkaError:
                        waiting.append(deed)
                        raise
                else:
                    waiting.append(deed)
        finally:
            for deed in waiting:
                heapq.heappush(self._due, deed)

    def take(self, records: Mapping[str, list[Any]]) -> None:
        """Take in records of the topics of brakes, policies and incidents."""
        for record in records.get(self._settings.brakes_topic, ()):
            self.brakes.append(KeyedRecord(append_at_us=record.timestamp * 1000, key=record.key, value=record.value))
        for record in records.get(self._settings.policies_topic, ()):
            if record.key in self._names:
                self._sent = None
                heard = KeyedRecord(append_at_us=record.timestamp * 1000, key=record.key, value=record.value)
                self.people.hear(heard)
        for record in records.get(self._settings.incidents_topic, ()):
            self.people.look(record.value)

    @property
    def _is_unread(self) -> bool:
        return self._sent is not None and not (self._sent.is_done and self._sent.failed())

    def _push(self, at_us: int, write: Callable[[], None], *, is_peoples: bool) -> None:
        heapq.heappush(self._due, _Deed(at_us, next(self._order), is_peoples, write))

    def _write(self, record: KeyedRecord) -> None:
        policy = as_policy(record)
        if policy is None:
            self._send(self._settings.brakes_topic, record.key, record.value)
        else:
            self._send(self._settings.policies_topic, policy.key, policy.value)

    def _send(self, topic: str, key: bytes, value: bytes | None) -> Any:
        sent = self._producer.send(topic, key=key, value=value, partition=0)
        sent.add_callback(self._stands)
        return sent

    def _stands(self, record: Any) -> None:
        self.known_us[record.topic, record.offset] = self.now_us  # in the thread of the producer
