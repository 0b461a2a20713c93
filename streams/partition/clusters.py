"""The cluster rows and the gap row of one partition; `models.eviction.cluster` decides what changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evictstream.models.eviction.cluster import NO_STATE, ClusterState, Gap, admit, capped, gap_of, heartbeat
from evictstream.streams.partition.epoch_news import EpochBegun, EpochNews

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evictstream.models.messages.signals import Heartbeat, Listed
    from evictstream.streams.engine.core.outbox import Outbox

CLUSTER_PREFIX = b"cluster\x00"
GAP_KEY = b"gap"


class Clusters:
    """Keeps the state of each cluster, and the gap.

    Attributes:
        gap: input that expired unread and was neither listed again nor accepted.
        any_forgotten: whether any cluster was ever forgotten here: a cheap check before each `is_forgotten`.
        any_epoch: whether any cluster has begun an epoch here other than the first: the same before each `is_stale`.
    """

    __slots__ = ("_news", "_states", "any_epoch", "any_forgotten", "gap")

    def __init__(self, news: EpochNews | None = None) -> None:
        """`news` says that an epoch begins; partitions share it, so that it is said once."""
        self._news = news or EpochNews()
        self._states: dict[str, ClusterState] = {}
        self.gap: Gap | None = None
        self.any_forgotten = False
        self.any_epoch = False

    def load(self, key: bytes, value: bytes | None) -> bool:
        """Load a row of a cluster or of the gap; returns `False` for any other row."""
        if key == GAP_KEY:
            self.gap = msgspec.json.decode(value, type=Gap) if value is not None else None
            return True
        if not key.startswith(CLUSTER_PREFIX):
            return False
        name = key[len(CLUSTER_PREFIX) :].decode()
        if value is None:
            self._states.pop(name, None)
        else:
            self._keep(name, msgspec.json.decode(value, type=ClusterState))
        return True

    @property
    def states(self) -> Mapping[str, ClusterState]:
        """The state of each cluster whose feed ever sent a signal, or that was forgotten."""
        return self._states

    def state(self, cluster: str) -> ClusterState:
        """Return the state of a cluster, without any sign for one that is not known."""
        return self._states.get(cluster, NO_STATE)

    def is_stale(self, cluster: str, epoch: int) -> bool:
        """Whether `epoch`, of a record, is earlier than the cluster's."""
        return epoch < self.state(cluster).epoch

    def is_forgotten(self, cluster: str, appended_at_us: int) -> bool:
        """Whether a record with this append time came before its cluster was forgotten."""
        return 0 < appended_at_us <= self.state(cluster).forgotten_at_us

    def heard(self) -> Iterator[str]:
        """Yield the clusters whose feed sends heartbeats, and that were not forgotten since."""
        return (name for name, state in self._states.items() if state.is_heard)

    def silent(self, older_than_us: int) -> Iterator[str]:
        """Yield the clusters whose feed sends heartbeats, but none on nodes, or none on pods, since `older_than_us`."""
        return (name for name, state in self._states.items() if state.is_silent(older_than_us))

    def admit(self, signal: Heartbeat | Listed, appended_at_us: int, outbox: Outbox) -> bool:
        """Take in a feed's signal; returns whether it counts."""
        return self._take(signal, admit(self.state(signal.cluster), signal, appended_at_us), outbox)

    def heartbeat(self, signal: Heartbeat, *, on_nodes: bool, appended_at_us: int, outbox: Outbox) -> bool:
        """Take in that a feed is alive and, if it says so, has listed all; returns whether the heartbeat counts."""
        following = heartbeat(self.state(signal.cluster), signal, on_nodes=on_nodes, appended_at_us=appended_at_us)
        counts = self._take(signal, following, outbox)
        if counts and self.gap is not None:
            self._set_gap(self.gap.after_listing(signal, on_nodes=on_nodes), outbox)
        return counts

    def forget(self, cluster: str, appended_at_us: int, outbox: Outbox) -> None:
        """Make all earlier records of a cluster void, heartbeats included."""
        self._write(cluster, ClusterState(forgotten_at_us=appended_at_us), outbox)
        if self.gap is not None:
            self._set_gap(self.gap.without(cluster), outbox)

    def open_gap(self, lost: dict[str, int], clusters: set[str], now_us: int, outbox: Outbox) -> None:
        """Hold evictions back until these clusters have been listed again, or an operator accepts the loss."""
        found = gap_of(lost, clusters, now_us)
        if found is not None:
            self._set_gap(found, outbox)

    def accept_gap(self, outbox: Outbox) -> None:
        """Let evictions go on: an operator accepts the loss."""
        self._set_gap(None, outbox)

    def cap_times(self, latest_us: int, present_us: int, outbox: Outbox) -> None:
        """Let every kept time that is later than `latest_us` be of now: it lies in the future."""
        for cluster, state in list(self._states.items()):
            self._write(cluster, capped(state, latest_us, present_us), outbox)

    def _take(self, signal: Heartbeat | Listed, following: ClusterState | None, outbox: Outbox) -> bool:
        if following is None:
            return False
        if following.epoch > self.state(signal.cluster).epoch:
            self._news.take(EpochBegun(signal.cluster, following.epoch, following.uid, signal.at_us))
        self._write(signal.cluster, following, outbox)
        return True

    def _write(self, cluster: str, state: ClusterState, outbox: Outbox) -> None:
        if state != self.state(cluster):
            self._keep(cluster, state)
            outbox.put(CLUSTER_PREFIX + cluster.encode(), msgspec.json.encode(state))

    def _keep(self, cluster: str, state: ClusterState) -> None:
        self._states[cluster] = state
        self.any_forgotten = self.any_forgotten or state.forgotten_at_us > 0
        self.any_epoch = self.any_epoch or state.epoch > 0

    def _set_gap(self, gap: Gap | None, outbox: Outbox) -> None:
        if gap != self.gap:
            self.gap = gap
            outbox.put(GAP_KEY, msgspec.json.encode(gap) if gap is not None else None)
