"""What the feed of a cluster has to know when it starts again, and which of several feeds writes.

Both are on the topic `feeds`, which has one partition and is compacted: a record for each cluster. The feeds of one
cluster are a consumer group on it: the member that owns the partition writes, the others stand by.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaError

from evictstream.streams.broker.clients import client_arguments, our_errors
from evictstream.streams.settings import Settings

SESSION_SECONDS: Final = 10.0
"""A feed that is silent for so long has lost its place to one that stands by."""

LEASE_SECONDS: Final = 6.0
"""A feed that has not heard from Kafka for so long stops to write, well before another one may begin."""

POLL_MS: Final = 1_000


class FeedState(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is kept of one cluster.

    Attributes:
        cluster_uid: UID of its namespace `kube-system`.
        epoch: of its resource versions.
        resource_version: the highest one that its feed has seen in this epoch.
    """

    cluster_uid: str
    epoch: int
    resource_version: int


def read_state(settings: Settings, cluster: str) -> FeedState | None:
    """Read what is kept of a cluster; None if nothing is.

    Raises:
        BrokerError: the topic cannot be read.
    """
    partition = TopicPartition(settings.feeds_topic, 0)
    found = None
    with our_errors(settings, f"read {settings.feeds_topic}"):
        consumer = KafkaConsumer(
            **client_arguments(settings), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        try:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                for records in consumer.poll(timeout_ms=POLL_MS).values():
                    for record in records:
                        if record.key == cluster.encode():
                            found = record.value
        finally:
            consumer.close()
    return None if found is None else msgspec.json.decode(found, type=FeedState)


class FeedLease(threading.Thread):
    """Holds, or waits for, the right to write about one cluster."""

    def __init__(self, settings: Settings, cluster: str) -> None:
        super().__init__(name=f"{cluster} lease", daemon=True)
        self._settings = settings
        self._cluster = cluster
        self._ended = threading.Event()
        self._heard_at = 0.0
        self._owns = False

    @property
    def is_held(self) -> bool:
        """Whether this feed may write now."""
        return self._owns and time.monotonic() - self._heard_at < LEASE_SECONDS

    def release(self, timeout_seconds: float) -> None:
        """Leave the group, so that another feed need not wait for the session to end."""
        self._ended.set()
        self.join(timeout_seconds)

    def run(self) -> None:
        """Stay in the group; join again after failures of Kafka."""
        while not self._ended.is_set():
            try:
                self._hold()
            except (KafkaError, OSError):
                self._owns = False
                self._ended.wait(1)

    def _hold(self) -> None:
        consumer: Any = KafkaConsumer(
            **client_arguments(self._settings),
            partition_assignment_strategy=[CooperativeStickyAssignor],  # who joins takes nothing from who writes
            group_id=f"{self._settings.application_id}-feed-{self._cluster}",
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=int(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=int(SESSION_SECONDS * 1000 / 4),
        )
        try:
            consumer.subscribe([self._settings.feeds_topic])
            while not self._ended.is_set():
                consumer.poll(timeout_ms=POLL_MS)
                self._owns = bool(consumer.assignment())
                if self._owns:
                    consumer.position(TopicPartition(self._settings.feeds_topic, 0), timeout_ms=POLL_MS)
                self._heard_at = time.monotonic()
        finally:
            self._owns = False
            consumer.close()
