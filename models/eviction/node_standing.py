"""As what a node counts among those of its cluster (`steering.node_counts`)."""

from collections.abc import Iterable

from evictstream.models.eviction.state import NodeAggregate, NodeLeft, NodeState
from evictstream.models.steering.node_counts import KnownNodes, NodeHistory, NodeStanding


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
    left = [memory.left for memory in aggregate.earlier_nodes.values() if memory.left is not None]
    if not left:
        return None
    last = max(left, key=lambda one: one.at_us)
    return NodeStanding(last.zone, last.is_unhealthy, last.at_us)


def node_left(node: NodeState, at_us: int) -> NodeLeft:
    """Return what is remembered of a node that leaves."""
    return NodeLeft(at_us, node.zone or "", is_unhealthy(node))


def known_nodes(aggregates: Iterable[NodeAggregate], history: NodeHistory | None) -> KnownNodes:
    """Count all nodes of a cluster, as their rows say."""
    found = ((one.name, node_standing(one)) for one in aggregates)
    return KnownNodes(history, ((name, standing) for name, standing in found if standing is not None))
