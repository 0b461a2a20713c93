"""A topic of brakes or policies in this process, with a clock of its own, for what needs others to write in between."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from evictstream.models.instants import MILLISECOND_US, SECOND_US
from evictstream.streams.broker.steering_readers import SteeringReader
from evictstream.streams.cli.steering_records import SteeringWriter
from evictstream.streams.settings import Settings

KAFKA_US = 1_800_000_000 * SECOND_US
"""What Kafka's clock shows at first: in 2027, so the clock of this machine differs."""

TOPIC = "steering"


class SteeringTopic:
    """Takes records as Kafka does, for a real writer and a real reader.

    Attributes:
        now_us: Kafka's clock.
        reader: has read what was appended; nobody follows a Kafka.
        writer: appends.
        written: keys and values, in order.
    """

    def __init__(self, reader_of: Callable[[Settings], SteeringReader[Any]]) -> None:
        settings = Settings(bootstrap_servers="127.0.0.1:1")
        self.now_us = KAFKA_US
        self.reader: Any = reader_of(settings)
        self.writer = SteeringWriter(settings, TOPIC, self, self.reader)
        self._steps: collections.deque[Callable[[], object] | None] = collections.deque()
        self.written: list[tuple[bytes, bytes | None]] = []
        self._befores: collections.deque[tuple[int, Any]] = collections.deque(maxlen=100)

    def at_once(self, *steps: Callable[[], object], first: int = 0) -> None:
        """Let others act before the next records; `first` is how many are appended before that."""
        self._steps = collections.deque([*[None] * first, *steps])

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> Any:
        """Append a record, as a producer does."""
        assert topic == TOPIC
        step = self._steps.popleft() if self._steps else None
        if step is not None:
            step()
        self.put(key, value)
        sent = SimpleNamespace(offset=len(self.written) - 1, timestamp=self.now_us // MILLISECOND_US)
        return SimpleNamespace(get=lambda _seconds: sent)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Append a record of anybody."""
        self.now_us += MILLISECOND_US
        self._befores.append((len(self.written), self.reader.view))
        self.written.append((key, value))
        self.reader.view = self.reader.view.with_record(key, value, self.now_us // MILLISECOND_US)
        self.reader._befores = tuple(self._befores)

    def forget_time(self) -> None:
        """Know no more of Kafka's clock than a reader of a topic does to which nobody has written for long."""
        self.reader.kafka_time = type(self.reader.kafka_time)()
        self.reader.kafka_time.note_record(0)


def set_clock(monkeypatch: Any, ahead_seconds: int) -> None:
    """Set the clock of this machine ahead of Kafka's."""
    monkeypatch.setattr(time, "time_ns", lambda: (KAFKA_US + ahead_seconds * SECOND_US) * 1_000)
