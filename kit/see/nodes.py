"""Nodes as a list shows them: their `NoExecute` taints, their pods, and what is pending on them."""

from __future__ import annotations

import msgspec

from evictstream.kit.see.evictions import Silences, of_node
from evictstream.kit.see.stored_state import StoredNode, StoredState
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.taints import BareTaint


class ListedTaint(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """A `NoExecute` taint, and since when it is on the node."""

    taint: BareTaint
    since: str


class ListedNode(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One node.

    Attributes:
        uid: None where the service knows its pods alone.
        taints: those with the effect `NoExecute`, in node order.
        outage_since: start of the time in which it is unhealthy.
        undecidable: its taints are beyond a limit, and its pods are left alone.
        pods: pods on it.
        pending: open evictions of them.
        next_at: since when, or when, the first of these pods has to leave.
    """

    cluster: str
    node: str
    uid: str | None = None
    taints: tuple[ListedTaint, ...] = ()
    outage_since: str | None = None
    undecidable: bool = False
    pods: int = 0
    pending: int = 0
    next_at: str | None = None


def listed_nodes(state: StoredState, now_us: int, silences: Silences) -> list[ListedNode]:
    """List the nodes that exist, and those of which only pods are known, by cluster and name."""
    found = [listed_node(one, now_us, silences) for one in state.nodes() if one.aggregate.node or one.aggregate.pods]
    return sorted(found, key=lambda one: (one.cluster, one.node))


def listed_node(stored: StoredNode, now_us: int, silences: Silences) -> ListedNode:
    """Describe one node."""
    aggregate = stored.aggregate
    node = aggregate.node
    pending = list(of_node(stored, now_us, silences))
    return ListedNode(
        cluster=aggregate.cluster,
        node=aggregate.name,
        uid=None if node is None else node.uid,
        taints=()
        if node is None
        else tuple(ListedTaint(taint=one.taint, since=instant_text(one.since_us)) for one in node.taints),
        outage_since=None if node is None or node.outage is None else instant_text(node.outage.since_us),
        undecidable=node is not None and node.is_undecidable,
        pods=len(aggregate.pods),
        pending=len(pending),
        next_at=min((one.at for one in pending), default=None),
    )
