"""Read the topics of brakes and policies, as long as a process may issue or carry out evictions.

One thread for each topic keeps its newest records. It also proves that they are the newest: twice a second it asks
Kafka where the topic ends, and the view is as fresh as the last question whose end has been read. Who acts on evictions
asks for that age first. Without an answer the view ages, so who cannot read brakes or policies stops.
"""

from __future__ import annotations

import collections
import contextlib
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import structlog
from kafka import TopicPartition

from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.policies import NO_POLICIES, Policies
from evictstream.streams.broker.clients import may_pass, our_errors
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.broker.kafka_time import KafkaTime
from evictstream.streams.errors import BrokerError
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

_POLL_MS: Final = 250
"""How long a poll waits; a record ends the wait."""

_ASK_SECONDS: Final = 0.5
"""Between two questions where the topic ends."""

OLDEST_VIEW_SECONDS: Final = 3.0
"""A view that is older counts as none. Six questions have had no answer by then; whoever sets a brake while a process
is cut off from Kafka waits no longer for it."""

_STOP_SECONDS: Final = 1.0
"""For the poll that runs, and to close the connections."""

_READ_JUST_NOW: Final = 100
"""Records for which it is known what stood before: who writes one asks within moments."""

_RETRY_SECONDS: Final = 0.5
"""After an error of Kafka."""


class _Steering(Protocol):
    """All records of a topic, as a value."""

    def with_record(self, key: bytes | None, value: bytes | None, appended_ms: int) -> Self:
        """Return them after one more record."""

    def objection(self) -> str | None:
        """Return why nothing may be evicted at all; None if all can be read."""


_View = TypeVar("_View", bound=_Steering)


class SteeringReader(Generic[_View]):
    """Keeps what a topic of one partition says. Use as a context manager; any thread may ask.

    Attributes:
        view: the newest that was read. A value: keep it for as long as one decision takes.
        kafka_time: as the records of the topic tell it.
    """

    def __init__(self, settings: Settings, topic: str, nothing: _View) -> None:
        """`nothing` is what an empty topic says."""
        self.view = nothing
        self.kafka_time = KafkaTime()
        self._nothing = nothing
        self._settings = settings
        self._place = TopicPartition(topic, 0)
        self._fresh_at = -math.inf
        self._befores: tuple[tuple[int, _View], ...] = ()
        self._left_out = 0
        self._is_available = True
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"read {topic}", daemon=True)

    def __enter__(self) -> Self:
        """Begin to read; nothing is known until `age_seconds` is finite."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End. A thread that waits for Kafka ends with the process."""
        self._stopped.set()
        self._thread.join(_STOP_SECONDS)

    def age_seconds(self) -> float:
        """Return how long ago all records are known to have been read; infinite before the first time."""
        return time.monotonic() - self._fresh_at

    def before(self, offset: int) -> _View | None:
        """Return what stood before a record that was read just now; None if it is not read yet, or long ago."""
        return next((view for at, view in self._befores if at == offset), None)

    def objection(self) -> str | None:
        """Return why nothing may be evicted now; None if `view` says all."""
        age = self.age_seconds()
        if age > OLDEST_VIEW_SECONDS:
            since = "never" if math.isinf(age) else f"{age:.1f} s ago"
            return (
                f"{self._place.topic} was last read to its end {since};"
                " check the connection to Kafka, and the right to read it"
            )
        return self.unreadable()

    def unreadable(self) -> str | None:
        """Return what of the topic cannot be read, because of which nothing may be evicted; None if all can."""
        if self._left_out:
            return f"{self._left_out} records of {self._place.topic} are in batches that cannot be used"
        return self.view.objection()

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(BrokerError):
                consumer = self._told(self._open)
                try:
                    self._follow(consumer)
                finally:
                    consumer.close()
            self._stopped.wait(_RETRY_SECONDS)

    def _open(self) -> Any:
        # Uncommitted: a brake holds as soon as it is written, whatever its writer leaves open.
        consumer = open_consumer(
            self._settings,
            isolation="read_uncommitted",
            group_id=None,
            auto_offset_reset="earliest",
        )
        consumer.assign([self._place])
        consumer.seek_to_beginning(self._place)
        return consumer

    def _told(self, ask: Callable[[], Any]) -> Any:
        """Return what Kafka answers; of several errors in a row only the first is logged.

        Raises:
            BrokerError: there is no answer.
        """
        try:
            with our_errors(self._settings, f"read {self._place.topic}"):
                answer = ask()
        except BrokerError as error:
            if self._is_available:
                log.warning("topic cannot be read", topic=self._place.topic, error=str(error))
            self._is_available = False
            raise
        self._is_available = True
        return answer

    def _follow(self, consumer: Any) -> None:
        """Read from the beginning until stopped. A record that goes by compaction went after its successor came.

        Raises:
            BrokerError: there was no answer, and another consumer is needed.
        """
        view, is_whole = self._nothing, False
        end, asked_at = None, -math.inf
        befores: collections.deque[tuple[int, _View]] = collections.deque(maxlen=_READ_JUST_NOW)
        while not self._stopped.is_set():
            try:
                now = time.monotonic()
                if end is None and now >= asked_at + _ASK_SECONDS:
                    asked_at = now
                    end = self._told(lambda: consumer.end_offsets([self._place]))[self._place]
                polled = self._told(lambda: consumer.poll(timeout_ms=_POLL_MS))
                position = self._told(lambda: consumer.position(self._place))
            except BrokerError as error:
                if not may_pass(error):
                    raise
                self._stopped.wait(_RETRY_SECONDS)  # the consumer connects again by itself, with pauses that grow
                continue
            for record in polled.get(self._place, ()):
                self.kafka_time.note_record(record.timestamp)
                befores.append((record.offset, view))
                view = view.with_record(record.key, record.value, record.timestamp)
            is_read = end is not None and position is not None and position >= end
            is_whole |= is_read
            self._left_out = consumer.left_out
            if is_whole:  # a part would release what the rest holds
                self.view = view
                self._befores = tuple(befores)
            if is_read:
                self._fresh_at, end = asked_at, None


class BrakesReader(SteeringReader[Brakes]):
    """Keeps the brakes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, settings.brakes_topic, NO_BRAKES)

    @property
    def brakes(self) -> Brakes:
        """The newest that were read."""
        return self.view


class PoliciesReader(SteeringReader[Policies]):
    """Keeps the policies."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, settings.policies_topic, NO_POLICIES)

    @property
    def policies(self) -> Policies:
        """The newest that were read."""
        return self.view
