"""Feeds one cluster: who it is, its epoch, its two kinds, and the heartbeats that say that nothing was missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import structlog

from evictstream.models.kubernetes.shapes import Kind
from evictstream.streams.broker.clients import may_pass
from evictstream.streams.broker.feed_states import FeedState, read_state
from evictstream.streams.errors import (
    BrokerError,
    ClusterNameTakenError,
    KubernetesError,
)
from evictstream.streams.feed.cluster_profile import FollowedProfile
from evictstream.streams.feed.feed_lease import FeedLease
from evictstream.streams.feed.feed_records import FeedRecords, ToldCluster
from evictstream.streams.feed.kind_feed import KindFeed
from evictstream.streams.feed.list_reader import newest_version
from evictstream.streams.feed.listing import pause_seconds
from evictstream.streams.feed.object_writer import KindCounts, ObjectWriter
from evictstream.streams.feed.progress import PROOF_SECONDS
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.feed.watched_objects import PATHS
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

_HEARTBEAT_SECONDS: Final = 10.0
"""Between heartbeats. The service holds evictions back when none has come for 60 s."""

_LOOK_SECONDS: Final = 0.5
"""Between looks at lease, threads and stop."""

_CREDENTIALS_SECONDS: Final = 5.0
"""Between tries to read credentials; each may run a plugin."""

FAILURE_SECONDS: Final = 30.0
"""After an error of no known kind, before the cluster is listed again."""

RELEASE_SECONDS: Final = 5.0
"""To leave the group of the cluster's feeds."""


class ClusterFeed(threading.Thread):
    """The thread of one cluster. It ends when it is stopped, or when Kafka cannot be used: see `failure`.

    Any other error is logged and ends a session, after which the cluster is listed again.

    Attributes:
        cluster: its name.
        counts: by kind.
        epochs: how often resource versions went back while it ran.
        heartbeats: how many were written.
        epoch: of its resource versions.
        looked_at: when its thread last looked around, on the monotonic clock.
        is_proven: whether nothing can have been missed for longer than `PROOF_SECONDS`.
        has_fed: whether it has ever fed.
        refusal: why it does not feed until something is changed: no configuration, or another cluster has this name.
        failures: how many sessions ended with an error that is not the API server's.
        failure: what ended it.
    """

    def __init__(
        self,
        cluster: str,
        access: ClusterAccess,
        *,
        settings: Settings,
        publisher: Publisher,
        keep_whole: bool,
        new_epoch: bool,
        relist_seconds: float,
        labels: Mapping[str, str] | None = None,
        profile: FollowedProfile | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the thread.

        Args:
            cluster: its name.
            access: to its API server.
            settings: which Kafka and topics.
            publisher: to the topics.
            keep_whole: whether objects are not trimmed.
            new_epoch: whether the cluster may take over the name of another one.
            relist_seconds: most between two listings.
            labels: of the cluster, for those who read of the fleet.
            profile: that gives it more of them, and these too; None for none.
            clock: monotonic, in seconds: when it is time to list again.
        """
        super().__init__(name=f"{cluster} feed", daemon=True)
        self.cluster = cluster
        self.counts: dict[Kind, KindCounts] = {"Node": KindCounts(), "Pod": KindCounts()}
        self.epochs = 0
        self.heartbeats = 0
        self.epoch = 0
        self.looked_at = time.monotonic()
        self.is_proven = False
        self.has_fed = False
        self.refusal: KubernetesError | None = None
        self.failures = 0
        self.failure: BaseException | None = None
        self._access = access
        self._settings = settings
        self._publisher = publisher
        self._keep_whole = keep_whole
        self._new_epoch = new_epoch
        self._relist_seconds = relist_seconds
        self._told = ToldCluster(labels or {})
        self._profile = profile
        self._clock = clock
        self._lease = FeedLease(settings, cluster)
        self._stopped = threading.Event()
        self._session_ended = threading.Event()
        self._state: FeedState | None = None
        self._kinds: list[KindFeed] = []
        self._trouble = ""
        self._log = log.bind(cluster=cluster)

    def stop(self) -> None:
        """Ask it to end; nothing is written from now on."""
        self._stopped.set()
        self._session_ended.set()

    @property
    def is_leader(self) -> bool:
        """Whether this feed may write, and no other one of the cluster."""
        return self._lease.is_held

    @property
    def why_not_proven(self) -> str:
        """What stands in the way, as it was seen last. For people."""
        troubles = (str(self.refusal or ""), self._trouble, *(kind.trouble for kind in tuple(self._kinds)))
        return next(filter(None, troubles), "it is being listed, or its watches lag behind etcd; see the log")

    def run(self) -> None:
        """Feed while the lease is held; wait for it otherwise."""
        self._lease.start()
        try:
            while not self._stopped.is_set():
                self.looked_at = time.monotonic()
                self._lease.raise_if_refused()
                if self._lease.is_held:
                    self._feed_safely()
                    self._stopped.wait(_LOOK_SECONDS)
                self._lease.wait_held(_LOOK_SECONDS)
        except BaseException as error:  # noqa: BLE001 - raised again by the command
            self.failure = error
        finally:
            self._session_ended.set()
            self._lease.release(RELEASE_SECONDS)

    def _feed_safely(self) -> None:
        """Run a session. Only Kafka, which all clusters share, may end more than that."""
        try:
            kept = read_state(self._settings, self.cluster)
        except BrokerError as error:
            if not may_pass(error):
                raise
            self._log.warning("Kafka request failed", error=str(error))
            return
        try:
            self._feed(kept)
        except Exception:
            if self._publisher.has_failed:
                raise
            self.failures += 1
            self._log.exception("cluster session failed", seconds=FAILURE_SECONDS)
            self._wait(FAILURE_SECONDS)

    def _feed(self, kept: FeedState | None) -> None:
        """One session: from the lease to its end, or to the end of an epoch."""
        # Another feed may have begun an epoch since this one fed last; what this one kept last may not be in Kafka yet.
        states = [state for state in (self._state, kept) if state is not None]
        self._state = max(states, key=lambda state: (state.epoch, state.resource_version), default=None)
        if self._profile is not None and self._state is not None:
            self._profile.recall(self._state.profile)
        self._session_ended = threading.Event()
        if self._stopped.is_set():
            return
        try:
            connection = Connection(self._access)
        except KubernetesError as error:
            self._refuse(error)
            self._wait(_CREDENTIALS_SECONDS)
            return
        try:
            state = self._identify(connection)
            if state is None:
                return
            connection.expect_cluster(state.cluster_uid)
            self.has_fed, self.refusal = True, None
            self._keep(state)
            self._log.info("feed started", epoch=state.epoch, uid=state.cluster_uid, host=connection.host)
            records = FeedRecords(cluster=self.cluster, uid=state.cluster_uid, epoch=state.epoch)
            self._kinds = [self._kind_feed(kind, connection, records) for kind in self.counts]
            for kind in self._kinds:
                kind.start()
            self._beat(connection, records)
        finally:
            self._session_ended.set()
            self.is_proven = False
            self._state = self._reached()
            self._kinds = []
            connection.close()

    def _kind_feed(self, kind: Kind, connection: Connection, records: FeedRecords) -> KindFeed:
        ended = self._session_ended
        writer = ObjectWriter(
            kind,
            publisher=self._publisher,
            topic=self._settings.nodes_topic if kind == "Node" else self._settings.pods_topic,
            records=records,
            may_write=lambda: self._lease.may_write(ended),
            keep_whole=self._keep_whole,
            largest_bytes=self._settings.max_object_bytes,
            counts=self.counts[kind],
        )
        return KindFeed(
            kind,
            connection=connection,
            writer=writer,
            is_stopped=self._session_ended.is_set,
            before_listing=lambda: self._check_epoch(connection),
            relist_seconds=self._relist_seconds,
            clock=self._clock,
        )

    def _identify(self, connection: Connection) -> FeedState | None:
        """Ask who the cluster is and where its versions stand, until it answers; None if the lease or time is over."""
        backoff = Backoff()
        reported = ""
        while self._lease.is_held and not self._stopped.is_set():
            try:
                return self._next_state(connection.cluster_uid(), newest_version(connection, PATHS["Node"]))
            except ClusterNameTakenError as error:
                self._refuse(error)
                self._wait(backoff.next_seconds())
            except KubernetesError as error:
                if str(error) != reported:
                    self._log.warning("API server unavailable", error=str(error))
                self._trouble = reported = str(error)
                self._wait(pause_seconds(error, backoff))
        return None

    def _refuse(self, error: KubernetesError) -> None:
        """Note why nothing is fed until something is changed; the log says so when the reason is new."""
        if str(error) != str(self.refusal):
            self._log.error("feed refused", error=str(error))
        self.refusal = error

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped.wait(min(left, _LOOK_SECONDS)):
            self.looked_at = time.monotonic()

    def _next_state(self, uid: str, version: int) -> FeedState:
        """Tell the epoch.

        Raises:
            ClusterNameTakenError: another cluster has this name, and without `--new-epoch` it keeps it. That
                counts when a process begins to feed; later only for a cluster whose versions are lower too, so that
                it was rebuilt.
        """
        state = self._state
        if state is None:
            return FeedState(cluster_uid=uid, epoch=0, resource_version=version)
        is_back = version < state.resource_version
        if state.cluster_uid != uid and not (self._new_epoch and (is_back or not self.has_fed)):
            raise ClusterNameTakenError(cluster=self.cluster, uid=uid, other_uid=state.cluster_uid)
        if state.cluster_uid != uid or is_back:
            self.epochs += 1
            self._log.warning(
                "resource versions went back: starting a new epoch",
                epoch=state.epoch + 1,
                before=state.resource_version,
                now=version,
                uid=uid,
                uid_before=state.cluster_uid,
            )
            return FeedState(cluster_uid=uid, epoch=state.epoch + 1, resource_version=version)
        return FeedState(cluster_uid=uid, epoch=state.epoch, resource_version=version)

    def _check_epoch(self, connection: Connection) -> int | None:
        """Ask etcd how far versions have come; end the session if they went back, or another cluster answers.

        The API server says nothing by itself: a watch from a version that lies ahead is only quiet. Each kind is asked
        for, since the question also has the cache of a quiet kind catch up, where no progress notification does.
        """
        state = self._reached()
        uid = connection.cluster_uid()
        if state is not None and uid == state.cluster_uid:
            versions = [self._ask_etcd(connection, kind) for kind in self._kinds]
            if min(versions) >= state.resource_version:
                return max(versions)
        if state is not None:
            self._keep(state)  # a start from what the last heartbeat has kept may not see that they went back
        self._session_ended.set()
        return None

    @staticmethod
    def _ask_etcd(connection: Connection, kind: KindFeed) -> int:
        asked_at = time.monotonic()
        version = newest_version(connection, PATHS[kind.kind])
        kind.progress.etcd_said(version, asked_at)
        return version

    def _reached(self) -> FeedState | None:
        """Return the state with how far the watches of this session have come since it was kept."""
        if self._state is None:
            return None
        versions = [kind.progress.version for kind in self._kinds]
        return msgspec.structs.replace(self._state, resource_version=max(self._state.resource_version, *versions, 0))

    def _keep(self, state: FeedState) -> None:
        """Write what the next start has to know, before anything that rests on it."""
        profile = None if self._profile is None else self._profile.known
        self._state = state = msgspec.structs.replace(state, profile=profile)
        self.epoch = state.epoch
        self._publisher.send(self._settings.feeds_topic, self.cluster.encode(), msgspec.json.encode(state), partition=0)

    def _beat(self, connection: Connection, records: FeedRecords) -> None:
        """Ask etcd every `_HEARTBEAT_SECONDS`, and write heartbeats while both kinds are proven."""
        backoff = Backoff()
        ask_at = beat_at = 0.0
        while not self._session_ended.wait(_LOOK_SECONDS) and self._lease.is_held:
            for kind in self._kinds:
                if kind.failure is not None:
                    raise kind.failure
            self.looked_at = now = time.monotonic()
            self.is_proven = self._are_proven(now)
            is_due = self.is_proven and now >= beat_at
            if now < ask_at and not (is_due and beat_at <= ask_at):
                continue
            at_us = time.time_ns() // 1000
            if not self._advance(connection):
                ask_at = beat_at = now + backoff.next_seconds()
                continue
            backoff.reset()
            ask_at = now + _HEARTBEAT_SECONDS
            if is_due and self._may_beat():
                beat_at = ask_at
                self._write_heartbeats(records, at_us)

    def _may_beat(self) -> bool:
        """Look again: the API server may have taken long to answer, and another feed may lead by now."""
        return self._lease.is_held and self._lease.is_sure and self._are_proven(time.monotonic())

    def _are_proven(self, now: float) -> bool:
        return all(now - kind.progress.proven_at < PROOF_SECONDS for kind in self._kinds)

    def _advance(self, connection: Connection) -> bool:
        """Ask etcd, and keep how far versions have come; tell whether it has answered."""
        try:
            version = self._check_epoch(connection)
        except KubernetesError as error:
            self._trouble = str(error)
            return False
        self._trouble = ""
        if version is None or self._state is None:
            return False
        self._keep(msgspec.structs.replace(self._state, resource_version=version))
        return True

    def _write_heartbeats(self, records: FeedRecords, at_us: int) -> None:
        told = self._told if self._profile is None else self._profile.told()
        places = ((self._settings.nodes_topic, told), (self._settings.pods_topic, None))
        for kind, (topic, about) in zip(self._kinds, places, strict=True):
            assert kind.progress.listed_at_us is not None  # noqa: S101 - it is proven
            self._publisher.send(topic, records.key, records.heartbeat(at_us, kind.progress.listed_at_us, about))
        self.heartbeats += 1
