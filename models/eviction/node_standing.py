"""As what a node counts among those of its cluster (`steering.node_counts`)."""

import heapq
from collections.abc import Iterable
from typing import Final

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.leaving_pods import leaving_pods, newest_taints_us
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import NodeLeft, NodeState, TaintLeft
from evictstream.models.steering.node_counts import KnownNodes, NodeHistory, NodeStanding

MOST_TAINTS_LEFT: Final = 16
"""Keys of taints that are remembered of a deleted node, those that came last: each is some 45 bytes of its row."""


def is_unhealthy(node: NodeState) -> bool:
    """Whether a node has a taint of node health, or reports a condition `Ready` that is not `True`.

    The condition alone is enough: Kubernetes' controller taints the dead nodes of a zone one after the other.
    """
    return node.is_unready or (node.outage is not None and node.outage.gap_since_us is None)


def node_standing(aggregate: NodeAggregate) -> NodeStanding | None:
    """Return as what a node counts; None if it does not.

    One that was deleted counts as it was then. The caller knows for how long.
    """
    node = aggregate.node
    if node is not None:
        return NodeStanding(node.zone or "", is_unhealthy(node))
    left = last_left(aggregate)
    return None if left is None else NodeStanding(left.zone, left.is_unhealthy, left.at_us)


def last_left(aggregate: NodeAggregate) -> NodeLeft | None:
    """Return what is remembered of the node of this name that was deleted last; None if nothing is."""
    left = (memory.left for memory in aggregate.earlier_nodes.values() if memory.left is not None)
    return max(left, key=lambda one: one.at_us, default=None)


def node_left(aggregate: NodeAggregate, node: NodeState, rules: RuleParameters, at_us: int) -> NodeLeft:
    """Return what is remembered of the node of an aggregate, which leaves with its pods."""
    taints: tuple[TaintLeft, ...] = ()
    if node.taints:
        since_us = newest_taints_us(aggregate)
        last = heapq.nlargest(MOST_TAINTS_LEFT, since_us, key=lambda key: (since_us[key], key))
        pods = leaving_pods(aggregate, rules)
        taints = tuple(TaintLeft(key, since_us[key], pods[key]) for key in last)
        aggregate.left = None
    return NodeLeft(at_us, node.zone or "", is_unhealthy(node), taints)


def known_nodes(aggregates: Iterable[NodeAggregate], history: NodeHistory | None) -> KnownNodes:
    """Count all nodes of a cluster, as their rows say."""
    found = ((one.name, node_standing(one)) for one in aggregates)
    return KnownNodes(history, ((name, standing) for name, standing in found if standing is not None))
