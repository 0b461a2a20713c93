"""Which of several feeds of a cluster writes.

They are a consumer group on the topic `feeds`, which has one partition: the member that owns it writes, the others
stand by. The one that writes says so in commits (`streams.member_beats`), and those that stand by or start remove it if
it is silent.
"""

from __future__ import annotations

import threading
import time
from typing import Final, NamedTuple

import structlog
from kafka import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import AuthorizationError, KafkaError

from evictstream.streams.broker.clients import as_our_error
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.broker.group_membership import GroupConsumer, Membership, finish_joining, subscribe
from evictstream.streams.broker.group_requests import GroupRequests
from evictstream.streams.broker.group_watch import GroupWatch
from evictstream.streams.errors import BrokerError, TopicsDifferError
from evictstream.streams.member_beats import UNSURE_SECONDS
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

LEASE_SESSION_SECONDS: Final = 10.0
"""A feed without heartbeats for so long is out of the group, whoever watches."""

LEASE_SECONDS: Final = 6.0
"""A feed whose group has not confirmed it for so long stops to write, well before another one may begin."""

_POLL_MS: Final = 250
"""How long a poll waits, and so how late a commit may be; nothing is read."""

_POSITION_MS: Final = 1_000

_DOUBT_SECONDS: Final = 0.02
"""Between two looks of a thread that must not write now."""


class _LeasePosition(NamedTuple):
    """What is committed: only that it is, and by whom, means something."""

    place: TopicPartition
    offset: int

    def to_commit(self) -> tuple[int, str]:
        return self.offset, ""


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
        self._polled_at = self._sure_until = float("-inf")
        self._changed = threading.Condition()

    @property
    def is_held(self) -> bool:
        """Whether this feed may write now."""
        return self._owns and time.monotonic() - self._confirmed_at < LEASE_SECONDS

    @property
    def is_sure(self) -> bool:
        """Whether no other feed can have been given the right meanwhile, so that this one may write."""
        return time.monotonic() < self._sure_until

    def wait_held(self, seconds: float) -> None:
        """Wait until this feed may write, for so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_held, seconds)

    def may_write(self, ended: threading.Event) -> bool:
        """Wait until that is sure; False if it ended before."""
        while not (is_over := ended.is_set()) and not self.is_sure:
            ended.wait(_DOUBT_SECONDS)
        return not is_over

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
        consumer = open_as(
            GroupConsumer,
            self._settings,
            partition_assignment_strategy=[CooperativeStickyAssignor],  # who joins takes nothing from who writes
            group_id=self._group,
            auto_offset_reset="latest",
            session_timeout_ms=int(LEASE_SESSION_SECONDS * 1000),
            heartbeat_interval_ms=int(LEASE_SESSION_SECONDS * 1000 / 4),
        )
        membership, requests = Membership(consumer), GroupRequests(consumer)
        commits = GroupCommits(consumer, requests)
        try:
            with GroupWatch(consumer, requests) as watch:
                subscribe(consumer, self._settings.feeds_topic)
                while not self._ended.is_set():
                    finish_joining(consumer)
                    consumer.poll(timeout_ms=_POLL_MS)
                    watch.is_acting = self._turn(consumer, commits)
                    membership.look()
                    self._is_failing = False
                    with self._changed:
                        self._confirmed_at = membership.confirmed_at
                        self._changed.notify_all()
        finally:
            self._owns = False
            consumer.close()

    def _turn(self, consumer: GroupConsumer, commits: GroupCommits) -> bool:
        """Commit while this feed owns the right, and let it write while that is sure; tell whether it owns it."""
        now = time.monotonic()
        if self._owns and now - self._polled_at > UNSURE_SECONDS:
            commits.doubt(now)
        self._polled_at = now
        place = TopicPartition(self._settings.feeds_topic, 0)
        self._owns = place in consumer.assignment()
        if self._owns:
            commits.send(_LeasePosition(place, consumer.position(place, timeout_ms=_POSITION_MS)), now)
            if not commits.is_in_doubt(now):
                self._sure_until = now + UNSURE_SECONDS
        return self._owns
