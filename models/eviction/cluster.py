"""A cluster with its nodes, and what its signals change: heartbeats, epochs, forgetting, gaps in the input.

All of it depends on the log alone. Heartbeat times are append times: no clock of a feed counts. A cluster whose feed
never sent a heartbeat never counts as silent. A feed that begins a new epoch of resource versions ends the epoch
before: from then on records of the earlier epoch are stale, and its heartbeats do not count (docs/messages.md#epochs).

States are values; each function returns the next one, or `None` where a signal does not count.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.executor_queue import ExecutorQueue
from evictstream.models.eviction.losing_owners import LosingOwners
from evictstream.models.eviction.node_standing import known_nodes
from evictstream.models.eviction.workloads import Workloads
from evictstream.models.instants import MILLISECOND_US, instant_text
from evictstream.models.messages.fleet import ProfileRef
from evictstream.models.messages.signals import Heartbeat, Listed, QueueReport
from evictstream.models.steering.incidents import OpenIncident
from evictstream.models.steering.node_counts import KnownNodes, NodeHistory


class ClusterState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cluster as its partition knows it; instants are microseconds UTC. It is its own row, as JSON.

    Attributes:
        nodes_heartbeat_at_us: append time of the newest heartbeat on the node topic, 0 for none.
        pods_heartbeat_at_us: the same on the pod topic.
        forgotten_at_us: records up to this append time are ignored, 0 if the cluster was never forgotten.
        epoch: the newest epoch that its feed has named; records of earlier epochs are stale.
        uid: identifies the cluster in this epoch: the UID of its namespace `kube-system`; empty if not known.
        queue: what its executor last reported; `None` if it never has.
        labels: as its feed has last named them.
        published: sequence of its newest record on the fleet's topics; 0 if none stands there.
        published_zones: its zones of which records stand there.
        incidents: those that its guards hold, in the order in which they began.
        published_incidents: ids of incidents of which records stand on their topic.
        history: of the counts of its nodes; None while no policy may ask for it.
        profile: where it stands in an inventory, as its feed has last said.
    """

    nodes_heartbeat_at_us: int = 0
    pods_heartbeat_at_us: int = 0
    forgotten_at_us: int = 0
    epoch: int = 0
    uid: str = ""
    queue: ExecutorQueue | None = None
    labels: dict[str, str] = {}
    published: int = 0
    published_zones: tuple[str, ...] = ()
    incidents: tuple[OpenIncident, ...] = ()
    published_incidents: tuple[str, ...] = ()
    history: NodeHistory | None = None
    profile: ProfileRef | None = None

    @property
    def is_heard(self) -> bool:
        """Whether its feed sends heartbeats, since it was last forgotten."""
        return bool(self.nodes_heartbeat_at_us or self.pods_heartbeat_at_us)

    @property
    def heard_at_us(self) -> int | None:
        """The append time of the older of the two newest heartbeats; `None` for a feed that sends none."""
        return min(self.nodes_heartbeat_at_us, self.pods_heartbeat_at_us) if self.is_heard else None

    @property
    def first_ordinal(self) -> int:
        """Ordinal of a new pod's first eviction, above all from before the cluster was forgotten."""
        return self.forgotten_at_us // MILLISECOND_US

    def is_silent(self, older_than_us: int) -> bool:
        """Whether a feed that sends heartbeats has sent none on nodes, or none on pods, since `older_than_us`."""
        heard_at_us = self.heard_at_us
        return heard_at_us is not None and heard_at_us < older_than_us


NO_STATE = ClusterState()


class EpochBegun(NamedTuple):
    """A new epoch of a cluster (docs/messages.md#epochs).

    Attributes:
        cluster_uid: of its namespace `kube-system` from now on; empty if the feed does not say.
        at_us: event time of the signal that begins it, microseconds since 1970.
    """

    cluster: str
    epoch: int
    cluster_uid: str
    at_us: int

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.cluster} begins epoch {self.epoch} of its resource versions at {instant_text(self.at_us)}"


class Cluster:
    """One cluster of a partition.

    Attributes:
        name: of the cluster.
        key: the same in UTF-8, the key of all its records.
        state: what its signals have changed.
        nodes: its nodes by name.
        addresses: the node of each of its pods, by the pod's address; some 100 bytes for each pod.
        known: how many nodes it has, with those that were deleted not long ago; some 200 bytes for each.
        workloads: the owners of its pods; None if nobody publishes them.
        losing: those that lose all of their pods; None if no guard counts them.
    """

    __slots__ = ("addresses", "key", "known", "losing", "name", "nodes", "state", "workloads")

    def __init__(self, name: str, state: ClusterState = NO_STATE, *, counts_workloads: bool = False) -> None:
        self.name = name
        self.key = name.encode()
        self.state = state
        self.nodes: dict[str, NodeAggregate] = {}
        self.addresses: dict[str, NodeAggregate] = {}
        self.known = KnownNodes(None)
        self.workloads = Workloads() if counts_workloads else None
        self.losing: LosingOwners | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, so that the caller may drop it."""
        return not self.nodes and self.state == NO_STATE

    def has_ready_since(self, at_us: int) -> bool:
        """Whether one of its nodes has been Ready from then on: there was no full disruption (semantics.md 12.4)."""
        return one_is_ready_since(self.nodes.values(), at_us)

    def new_node(self, name: str) -> NodeAggregate:
        """Make a node of this cluster; it enters `nodes` once it has a row."""
        node = NodeAggregate(self.name, name, self.state.first_ordinal, addresses=self.addresses, known=self.known)
        node.workloads = self.workloads if self.losing is None else self.losing
        return node

    def count_losing(self, has_changed: Callable[[], None]) -> LosingOwners:
        """Begin to count the owners that lose all of their pods, if they are not counted yet."""
        if self.losing is None:
            self.losing = LosingOwners(self.nodes.values(), self.workloads, has_changed)
        return self.losing

    def leave_losing(self) -> None:
        """Count these owners no longer."""
        self.losing = None
        for node in self.nodes.values():
            node.workloads = self.workloads

    def forget_pods(self) -> None:
        """Forget what is known of all its pods; its nodes are gone."""
        self.addresses.clear()
        self.losing = None
        if self.workloads is not None:
            before, self.workloads = self.workloads, Workloads()
            self.workloads.changed.update(before.changed, before.owners())  # their records may stand

    def count_nodes(self) -> None:
        """Count its nodes, as its rows say; later changes change the counts."""
        self.known = known_nodes(self.nodes.values(), self.state.history)
        for node in self.nodes.values():
            node.known = self.known

    def add(self, node: NodeAggregate) -> None:
        """Take in a node that its rows have made, with its pods."""
        node.first_ordinal = self.state.first_ordinal
        node.addresses = self.addresses
        node.known = self.known
        self.nodes[node.name] = node
        node.workloads = self.workloads
        for pod in node.pods.values():
            self.addresses[pod.address] = node
            if self.workloads is not None:
                self.workloads.put(node, pod)


def one_is_ready_since(nodes: Iterable[NodeAggregate], at_us: int) -> bool:
    """Return whether a node has been Ready from then on; a look at each at most, which the first such node ends."""
    for aggregate in nodes:
        node = aggregate.node
        if node is not None and node.ready_since_us is not None and node.ready_since_us <= at_us:
            return True
    return False


def admit(state: ClusterState, signal: Heartbeat | Listed, appended_at_us: int) -> ClusterState | None:
    """Return the state after a feed's signal, with the later epoch that it may begin; `None` if it does not count.

    A signal from an earlier epoch, or from before its cluster was forgotten, does not count. Nor does a signal of
    another cluster with this name: its UID differs from the first one named in this epoch.
    """
    if appended_at_us <= state.forgotten_at_us or signal.epoch < state.epoch:
        return None
    if signal.epoch > state.epoch:
        return msgspec.structs.replace(state, epoch=signal.epoch, uid=signal.cluster_uid)
    if not state.uid:
        return msgspec.structs.replace(state, uid=signal.cluster_uid) if signal.cluster_uid else state
    return state if signal.cluster_uid in ("", state.uid) else None


def heartbeat(state: ClusterState, signal: Heartbeat, *, on_nodes: bool, appended_at_us: int) -> ClusterState | None:
    """Return the state of a cluster whose feed is alive; `None` if the heartbeat does not count."""
    admitted = admit(state, signal, appended_at_us)
    if admitted is None:
        return None
    if on_nodes:
        newest_at_us = max(admitted.nodes_heartbeat_at_us, appended_at_us)
        return msgspec.structs.replace(
            admitted,
            nodes_heartbeat_at_us=newest_at_us,
            labels=signal.cluster_labels,
            profile=signal.cluster_profile,
        )
    newest_at_us = max(admitted.pods_heartbeat_at_us, appended_at_us)
    return msgspec.structs.replace(admitted, pods_heartbeat_at_us=newest_at_us)


def reported(state: ClusterState, report: QueueReport, appended_at_us: int) -> ClusterState:
    """Return the state after a report of the cluster's executor: the newest one counts."""
    return msgspec.structs.replace(state, queue=ExecutorQueue(appended_at_us, report.read_to_us))


def capped(state: ClusterState, latest_us: int, present_us: int) -> ClusterState:
    """Return the state with every time that is later than `latest_us`, and so lies in the future, set to now."""
    queue = state.queue
    if queue is not None:
        reported_at_us = _capped_time(queue.reported_at_us, latest_us, present_us)
        queue = msgspec.structs.replace(queue, reported_at_us=reported_at_us)
    return msgspec.structs.replace(
        state,
        queue=queue,
        nodes_heartbeat_at_us=_capped_time(state.nodes_heartbeat_at_us, latest_us, present_us),
        pods_heartbeat_at_us=_capped_time(state.pods_heartbeat_at_us, latest_us, present_us),
        forgotten_at_us=_capped_time(state.forgotten_at_us, latest_us, present_us),
    )


def _capped_time(at_us: int, latest_us: int, present_us: int) -> int:
    return present_us if at_us > latest_us else at_us


class Gap(msgspec.Struct, frozen=True):
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
        lost = ", ".join(f"{count} records of {topic}" for topic, count in sorted(self.lost.items()))
        return f"input expired before it was read ({lost}); have its feeds list again, or run `evictstream accept-gap`"

    def after_listing(self, signal: Heartbeat, *, on_nodes: bool) -> "Gap | None":
        """Return what is left of the gap after a heartbeat that counts; `None` if nothing is."""
        listed_at_us, unlisted = signal.listed_at_us, self.unlisted.get(signal.cluster)
        if unlisted is None or listed_at_us is None or listed_at_us < self.found_at_us:
            return self
        return self._with(signal.cluster, unlisted - {"nodes" if on_nodes else "pods"})

    def without(self, cluster: str) -> "Gap | None":
        """Return the gap without a cluster that is forgotten; `None` if no other waits."""
        return self._with(cluster, set())

    def _with(self, cluster: str, unlisted: set[str]) -> "Gap | None":
        others = {name: topics for name, topics in self.unlisted.items() if name != cluster}
        left = {**others, cluster: unlisted} if unlisted else others
        return msgspec.structs.replace(self, unlisted=left) if left else None


def gap_of(lost: dict[str, int], clusters: set[str], found_at_us: int) -> Gap | None:
    """Return the gap that holds evictions back until each of these clusters is listed again, or it is accepted.

    Without clusters there is none: the lost records could have changed no eviction.
    """
    unlisted = {cluster: {"nodes", "pods"} for cluster in sorted(clusters)}
    return Gap(found_at_us, lost, unlisted) if unlisted else None
