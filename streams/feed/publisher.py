"""Writes input events to Kafka: to the right topic and partition, in order, acknowledged by all copies, none twice.

Partitions are chosen by Kafka's default partitioner (murmur2 of the key), so a cluster has one in each topic. An
idempotent producer keeps the order of a key over its retries. The first failure ends it: what is sent after a hole
would pass for complete.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka.errors import KafkaError

from evictstream.streams.broker.admin import check_topics
from evictstream.streams.broker.clients import as_our_error, our_errors, partitions_of
from evictstream.streams.broker.producers import DELIVERY_SECONDS, open_producer
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import BrokerError, TopicsDifferError
from evictstream.streams.settings import Settings

MOST_RECORDS_IN_FLIGHT: Final = 10_000
"""Records that may wait for their acknowledgement, so that a slow broker costs memory only up to here."""

MOST_BYTES_IN_FLIGHT: Final = 33_554_432
"""The same in bytes of values: 32 MiB, some twenty of the largest objects."""

LAST_CALLBACKS_SECONDS: Final = 5.0
"""For the callbacks of the last acknowledgements, which run after the producer's own `flush` has returned."""


class Publisher:
    """Sends events. Several threads may use it; the order of a key is that of the one thread which writes it.

    Attributes:
        partitions: the partition numbers of the inputs.
        acknowledged: records that Kafka has, by topic.
    """

    def __init__(self, producer: Any, settings: Settings, partitions: tuple[int, ...]) -> None:
        """Take a producer as it is; `open_publisher` makes one and checks the topics first."""
        self.partitions = partitions
        self.acknowledged: Counter[str] = Counter()
        self._producer = producer
        self._settings = settings
        self._changed = threading.Condition()
        self._records = 0
        self._bytes = 0
        self._failure: BrokerError | None = None

    def send(self, topic: str, key: bytes, value: bytes, partition: int | None = None) -> None:
        """Hand over a record; returns before Kafka has it, but not while too much is on its way.

        Args:
            topic: full name of an input topic.
            key: the cluster's name in UTF-8.
            value: a watch event.
            partition: its number; by default the key's.

        Raises:
            BrokerError: this record or one before could not be written.
        """
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self._failure is not None:
                raise self._failure
            self._records += 1
            self._bytes += len(value)
        size = len(value)
        try:
            with our_errors(self._settings, f"write to {topic}"):
                sent = self._producer.send(topic, key=key, value=value, partition=partition)
        except BrokerError:  # of this record alone: none is on its way after it that needed it
            with self._changed:
                self._landed(size)
            raise
        sent.add_callback(self._succeeded, topic, size)
        sent.add_errback(self._failed, topic, size)

    @property
    def in_flight(self) -> int:
        """How many records Kafka has not acknowledged yet."""
        return self._records

    @property
    def has_failed(self) -> bool:
        """Whether a record could not be written; nothing is written any more."""
        return self._failure is not None

    @property
    def is_full(self) -> bool:
        """Whether `send` would wait: too much is on its way."""
        return not self._has_room()

    def flush(self) -> None:
        """Return when Kafka has everything.

        Raises:
            BrokerError: a record could not be written.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
        with our_errors(self._settings, "accept the last records"):
            self._producer.flush(DELIVERY_SECONDS + self._settings.request_timeout_seconds)
        with self._changed:
            self._changed.wait_for(lambda: self._records == 0, timeout=LAST_CALLBACKS_SECONDS)
            if self._failure is not None:
                raise self._failure

    def _has_room(self) -> bool:
        return self._failure is not None or (
            self._records < MOST_RECORDS_IN_FLIGHT and self._bytes < MOST_BYTES_IN_FLIGHT
        )

    # The two below run in the producer's thread.

    def _succeeded(self, topic: str, size: int, _metadata: object) -> None:
        with self._changed:
            self.acknowledged[topic] += 1
            self._landed(size)

    def _failed(self, topic: str, size: int, error: Exception) -> None:
        with self._changed:
            if self._failure is None:
                failure = error if isinstance(error, KafkaError | OSError) else KafkaError(str(error))
                self._failure = as_our_error(failure, self._settings, f"write to {topic}")
                self._failure.__cause__ = error
            self._landed(size)

    def _landed(self, size: int) -> None:
        self._records -= 1
        self._bytes -= size
        self._changed.notify_all()


@contextlib.contextmanager
def open_publisher(
    settings: Settings, *, delivery_seconds: float = DELIVERY_SECONDS, also: Sequence[str] = ()
) -> Iterator[Publisher]:
    """Check the topics of nodes and pods, then yield a publisher. The caller flushes it.

    Args:
        settings: which Kafka.
        delivery_seconds: longest time until a record counts as failed.
        also: further topics that have to be there, and are read and written.

    The topics may have any number of partitions, as long as nodes and pods have the same.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused.
        TopicsDifferError: a topic is missing, or not as it must be.
    """
    names = [settings.nodes_topic, settings.pods_topic]
    report = check_topics(settings, [spec for spec in topic_specs(settings) if spec.name in (*names, *also)])
    report.raise_if_breaking(but="partitions")
    report.raise_if_forbidden("WRITE", (*names, *also))
    report.raise_if_forbidden("READ", also)
    with open_producer(settings, delivery_seconds=delivery_seconds) as producer:
        yield Publisher(producer, settings, _same_partitions(producer, settings, names))


def _same_partitions(producer: Any, settings: Settings, names: list[str]) -> tuple[int, ...]:
    with our_errors(settings, "describe topics"):
        nodes, pods = (partitions_of(producer, name) for name in names)
    if nodes != pods:
        difference = f"{names[0]} has {len(nodes)} partitions, {names[1]} has {len(pods)}"
        raise TopicsDifferError([difference], next_step="start again with new topics")
    return nodes
