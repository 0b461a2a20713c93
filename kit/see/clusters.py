"""Clusters as a list shows them: what they hold, what is pending, and whether feed and executor are heard."""

from __future__ import annotations

import msgspec

from evictstream.kit.see.evictions import SeenGate, SeenState, Silences, gate_of, heard_at, of_node
from evictstream.kit.see.stored_state import StoredCluster, StoredNode, StoredState
from evictstream.models.instants import instant_text


class ListedCluster(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One cluster.

    Attributes:
        partition: number of the partition that it lives in.
        nodes: nodes that exist.
        pods: pods on nodes.
        pending: open evictions.
        due: those of them whose pod has to leave now, issued or not.
        unanswered: those that were issued, have no answer, and are not said to wait in an executor's queue.
        heard_at: when its feed was last heard, the older of its newest heartbeats; None for one that sends none.
        gate: the closed gate that holds its evictions back.
        queue_reported_at: when its executor last reported a queue, which it does only while things wait for long.
        epoch: of its resource versions.
        uid: of its namespace `kube-system`, where its feed says it.
    """

    cluster: str
    partition: int
    nodes: int = 0
    pods: int = 0
    pending: int = 0
    due: int = 0
    unanswered: int = 0
    heard_at: str | None = None
    gate: SeenGate | None = None
    queue_reported_at: str | None = None
    epoch: int = 0
    uid: str | None = None


def listed_clusters(state: StoredState, now_us: int, silences: Silences) -> list[ListedCluster]:
    """List the clusters by name; `now_us` in microseconds since 1970."""
    return [_seen(cluster, now_us, silences) for cluster in state.clusters()]


def _seen(cluster: StoredCluster, now_us: int, silences: Silences) -> ListedCluster:
    state = cluster.state
    pending = [
        one
        for aggregate in cluster.nodes.values()
        for one in of_node(StoredNode(aggregate, state, cluster.has_gap), now_us, silences)
    ]
    return ListedCluster(
        cluster=cluster.name,
        partition=cluster.partition,
        nodes=sum(aggregate.node is not None for aggregate in cluster.nodes.values()),
        pods=sum(len(aggregate.pods) for aggregate in cluster.nodes.values()),
        pending=len(pending),
        due=sum(one.state is not SeenState.SCHEDULED for one in pending),
        unanswered=sum(one.unanswered_since is not None and not one.queued for one in pending),
        heard_at=heard_at(state),
        gate=gate_of(state, now_us, silences, has_gap=cluster.has_gap),
        queue_reported_at=None if state.queue is None else instant_text(state.queue.reported_at_us),
        epoch=state.epoch,
        uid=state.uid or None,
    )
