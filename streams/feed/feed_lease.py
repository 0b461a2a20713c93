"""Which of several feeds of a cluster writes.

They are a consumer group on the topic `feeds`, which has one partition: the member that owns it writes, the others
stand by.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import structlog
from kafka import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import AuthorizationError, KafkaError

from evictstream.streams.broker.clients import as_our_error
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.broker.group_membership import Membership, finish_joining, subscribe
from evictstream.streams.errors import BrokerError, TopicsDifferError
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

LEASE_SESSION_SECONDS: Final = 10.0
"""A feed that is silent for so long has lost its place to one that stands by."""

LEASE_SECONDS: Final = 6.0
"""A feed whose group has not confirmed it for so long stops to write, well before another one may begin."""

_POLL_MS: Final = 1_000


class FeedLease(threading.Thread):
    """Holds, or waits for, the right to write about one cluster."""

    def __init__(self, settings: Settings, cluster: str) -> None:
        super().__init__(name=f"{cluster} lease", daemon=True)
        self._settings = settings
        self._cluster = cluster
        self._group = f"{settings.application_id}-feed-{cluster}"
        self._is_failing = False
        self._refusal: BrokerError | None = None
        self._ended = threading.Event()
        self._confirmed_at = float("-inf")
        self._owns = False

    @property
    def is_held(self) -> bool:
        """Whether this feed may write now."""
        return self._owns and time.monotonic() - self._confirmed_at < LEASE_SECONDS

    def raise_if_refused(self) -> None:
        """Raise `BrokerRefusedError` if Kafka forbids the group, so that the lease can never be held."""
        if self._refusal is not None:
            raise self._refusal

    def release(self, timeout_seconds: float) -> None:
        """Leave the group, so that another feed need not wait for the session to end."""
        self._ended.set()
        self.join(timeout_seconds)

    def run(self) -> None:
        """Stay in the group; join again after failures of Kafka, unless it forbids the group."""
        while not self._ended.is_set():
            try:
                self._hold()
            except AuthorizationError as error:
                self._owns = False
                self._refusal = as_our_error(error, self._settings, f"join the group {self._group}")
                return
            except (KafkaError, OSError, TopicsDifferError) as error:
                self._owns = False
                if not self._is_failing:
                    log.warning("Kafka request failed", cluster=self._cluster, error=str(error) or type(error).__name__)
                self._is_failing = True
                self._ended.wait(1)

    def _hold(self) -> None:
        consumer: Any = open_consumer(
            self._settings,
            partition_assignment_strategy=[CooperativeStickyAssignor],  # who joins takes nothing from who writes
            group_id=self._group,
            auto_offset_reset="latest",
            session_timeout_ms=int(LEASE_SESSION_SECONDS * 1000),
            heartbeat_interval_ms=int(LEASE_SESSION_SECONDS * 1000 / 4),
        )
        membership = Membership(consumer)
        try:
            subscribe(consumer, self._settings.feeds_topic)
            while not self._ended.is_set():
                finish_joining(consumer)
                consumer.poll(timeout_ms=_POLL_MS)
                self._owns = bool(consumer.assignment())
                if self._owns:
                    consumer.position(TopicPartition(self._settings.feeds_topic, 0), timeout_ms=_POLL_MS)
                membership.look()
                self._is_failing = False
                self._confirmed_at = membership.confirmed_at
        finally:
            self._owns = False
            consumer.close()
