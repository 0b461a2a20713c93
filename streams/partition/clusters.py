"""The clusters of one partition: heartbeats of their feeds, forgotten clusters, and gaps in the input.

All of it is kept in rows, so it survives take-overs and depends on the log alone. Heartbeat times are append times: no
clock of a feed counts. A cluster whose feed never sent a heartbeat never counts as silent.

A feed that begins a new epoch of resource versions ends the epoch before. From then on records of the earlier epoch are
stale, late ones of another feed too, and its heartbeats do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evictstream.models.instants import MILLISECOND_US
from evictstream.streams.partition.epoch_news import EpochBegun, EpochNews

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evictstream.models.messages.signals import Heartbeat, Listed
    from evictstream.streams.engine.core.outbox import Outbox

CLUSTER_PREFIX = b"cluster\x00"
GAP_KEY = b"gap"


class ClusterState(msgspec.Struct, omit_defaults=True):
    """One cluster as one partition knows it; instants are microseconds UTC.

    Attributes:
        nodes_heartbeat_at_us: append time of the newest heartbeat on the node topic, 0 for none.
        pods_heartbeat_at_us: the same on the pod topic.
        forgotten_at_us: records up to this append time are ignored, 0 if the cluster was never forgotten.
        epoch: the newest epoch that its feed has named; records of earlier epochs are stale.
        uid: identifies the cluster in this epoch: the UID of its namespace `kube-system`; empty if not known.
    """

    nodes_heartbeat_at_us: int = 0
    pods_heartbeat_at_us: int = 0
    forgotten_at_us: int = 0
    epoch: int = 0
    uid: str = ""

    @property
    def is_heard(self) -> bool:
        """Whether its feed sends heartbeats, since it was last forgotten."""
        return bool(self.nodes_heartbeat_at_us or self.pods_heartbeat_at_us)

    def silent_since_us(self) -> int | None:
        """Return the append time of the older of the two newest heartbeats; `None` for a feed that sends none."""
        if not self.is_heard:
            return None
        return min(self.nodes_heartbeat_at_us, self.pods_heartbeat_at_us)


class Gap(msgspec.Struct):
    """Input expired before this partition read it.

    Attributes:
        found_at_us: when a worker noticed it.
        lost: count of lost records, by topic.
        unlisted: for each cluster the topics (`nodes`, `pods`) that its feed has not listed again since.
    """

    found_at_us: int
    lost: dict[str, int]
    unlisted: dict[str, set[str]]

    @property
    def reason(self) -> str:
        """Why firing waits, and what an operator can do."""
        lost = ", ".join(f"{count} of {topic}" for topic, count in sorted(self.lost.items()))
        return f"input expired unread ({lost}); list again, or run `evictstream accept-gap`"


class Clusters:
    """Cluster rows and the gap row of one partition.

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
            state = self._states[name] = msgspec.json.decode(value, type=ClusterState)
            self.any_forgotten = self.any_forgotten or state.forgotten_at_us > 0
            self.any_epoch = self.any_epoch or state.epoch > 0
        return True

    def uid(self, cluster: str) -> str:
        """Return the UID of the cluster's namespace `kube-system` in this epoch; empty if no feed has said it."""
        state = self._states.get(cluster)
        return "" if state is None else state.uid

    def is_stale(self, cluster: str, epoch: int) -> bool:
        """Whether `epoch`, of a record, is earlier than the cluster's."""
        state = self._states.get(cluster)
        return state is not None and epoch < state.epoch

    def admit(self, signal: Heartbeat | Listed, appended_at_us: int, outbox: Outbox) -> bool:
        """Return whether a feed's signal counts; if it does, a later epoch that it names begins.

        A signal from an earlier epoch, or from before its cluster was forgotten, does not count. Nor does a signal of
        another cluster with this name: its UID differs from the first one named in this epoch.
        """
        cluster = signal.cluster
        state = self._states.setdefault(cluster, ClusterState())
        known = (state.epoch, state.uid)
        if appended_at_us <= state.forgotten_at_us or signal.epoch < state.epoch:
            return False
        if signal.epoch > state.epoch:
            self._news.take(EpochBegun(cluster, signal.epoch, signal.cluster_uid, signal.at_us))
            state.epoch, state.uid = signal.epoch, signal.cluster_uid
            self.any_epoch = True
        elif not state.uid:
            state.uid = signal.cluster_uid
        elif signal.cluster_uid not in ("", state.uid):
            return False
        if (state.epoch, state.uid) != known:
            self._write(cluster, outbox)
        return True

    def heartbeat(self, signal: Heartbeat, *, on_nodes: bool, appended_at_us: int, outbox: Outbox) -> bool:
        """Store that a feed is alive and, if it says so, has listed all; returns whether the heartbeat counts."""
        if not self.admit(signal, appended_at_us, outbox):
            return False
        cluster, listed_at_us = signal.cluster, signal.listed_at_us
        state = self._states[cluster]
        if on_nodes:
            state.nodes_heartbeat_at_us = max(state.nodes_heartbeat_at_us, appended_at_us)
        else:
            state.pods_heartbeat_at_us = max(state.pods_heartbeat_at_us, appended_at_us)
        self._write(cluster, outbox)
        gap = self.gap
        if gap is not None and listed_at_us is not None and listed_at_us >= gap.found_at_us and cluster in gap.unlisted:
            gap.unlisted[cluster].discard("nodes" if on_nodes else "pods")
            if not gap.unlisted[cluster]:
                del gap.unlisted[cluster]
            self._write_gap(gap if gap.unlisted else None, outbox)
        return True

    def heard_us(self, cluster: str) -> int | None:
        """Return until when all that a feed has written of its cluster was read; None if it sends no heartbeats."""
        state = self._states.get(cluster)
        return None if state is None else state.silent_since_us()

    def forget(self, cluster: str, appended_at_us: int, outbox: Outbox) -> None:
        """Store that all earlier records of a cluster are void, heartbeats included."""
        self._states[cluster] = ClusterState(forgotten_at_us=appended_at_us)
        self.any_forgotten = True
        self._write(cluster, outbox)
        if self.gap is not None and self.gap.unlisted.pop(cluster, None) is not None:
            self._write_gap(self.gap if self.gap.unlisted else None, outbox)

    def is_forgotten(self, cluster: str, appended_at_us: int) -> bool:
        """Whether a record with this append time came before its cluster was forgotten."""
        state = self._states.get(cluster)
        return state is not None and appended_at_us <= state.forgotten_at_us

    def first_ordinal(self, cluster: str) -> int:
        """Return the ordinal of a new pod's first eviction, above all from before the cluster was forgotten."""
        state = self._states.get(cluster)
        return 0 if state is None else state.forgotten_at_us // MILLISECOND_US

    def open_gap(self, lost: dict[str, int], clusters: set[str], now_us: int, outbox: Outbox) -> None:
        """Hold evictions back until these clusters have been listed again, or an operator accepts the loss.

        Without clusters no eviction waits: the lost records could have changed none.
        """
        unlisted = {cluster: {"nodes", "pods"} for cluster in sorted(clusters)}
        if unlisted:
            self._write_gap(Gap(now_us, lost, unlisted), outbox)

    def accept_gap(self, outbox: Outbox) -> None:
        """Let evictions go on: an operator accepts the loss."""
        if self.gap is not None:
            self._write_gap(None, outbox)

    def cap_times(self, latest_us: int, present_us: int, outbox: Outbox) -> None:
        """Let what is kept as later than `latest_us` be of now: it lies in the future."""
        for cluster, state in self._states.items():
            times = (state.nodes_heartbeat_at_us, state.pods_heartbeat_at_us, state.forgotten_at_us)
            if max(times) > latest_us:
                state.nodes_heartbeat_at_us, state.pods_heartbeat_at_us, state.forgotten_at_us = (
                    present_us if at_us > latest_us else at_us for at_us in times
                )
                self._write(cluster, outbox)

    def heard(self) -> Iterator[str]:
        """Yield the clusters whose feed sends heartbeats, and that were not forgotten since."""
        return (name for name, state in self._states.items() if state.is_heard)

    @property
    def states(self) -> Mapping[str, ClusterState]:
        """The state of each cluster whose feed ever sent a signal, or that was forgotten."""
        return self._states

    def silent(self, older_than_us: int) -> Iterator[str]:
        """Yield the clusters whose feed sends heartbeats, but none on nodes, or none on pods, since `older_than_us`."""
        return (name for name in self._states if self.is_silent(name, older_than_us))

    def is_silent(self, cluster: str, older_than_us: int) -> bool:
        """Whether a feed that sends heartbeats has sent none on nodes, or none on pods, since `older_than_us`."""
        state = self._states.get(cluster)
        since_us = None if state is None else state.silent_since_us()
        return since_us is not None and since_us < older_than_us

    def _write(self, cluster: str, outbox: Outbox) -> None:
        outbox.put(CLUSTER_PREFIX + cluster.encode(), msgspec.json.encode(self._states[cluster]))

    def _write_gap(self, gap: Gap | None, outbox: Outbox) -> None:
        self.gap = gap
        outbox.put(GAP_KEY, msgspec.json.encode(gap) if gap is not None else None)
