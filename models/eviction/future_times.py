"""Times of a node and its pods that lie in the future, capped (semantics.md 12.2).

Event times come from append times. While a broker's clock was ahead, windows began that are not over for as long as it
was ahead. Only the caller knows what lies in the future: it has the clocks.
"""

import msgspec

from evictstream.models.eviction.state import NodeLeft, NodeState, Outage, TaintState
from evictstream.models.eviction.step import Step


def cap_times(step: Step, latest_us: int) -> None:
    """Let what is kept as later than `latest_us` have begun at the step's instant. Decides nothing."""
    aggregate, now_us = step.aggregate, step.at_us
    if aggregate.node is not None:
        node = _capped_node(aggregate.node, latest_us, now_us)
        if node is not aggregate.node:
            aggregate.node = node
            step.write_node()
    for uid, memory in aggregate.earlier_nodes.items():
        left = None if memory.left is None else _capped_left(memory.left, latest_us, now_us)
        if left is not memory.left:
            aggregate.earlier_nodes[uid] = msgspec.structs.replace(memory, left=left)
            step.write_node()
    for pod in aggregate.pods.values():
        if pod.since_us > latest_us or pod.tolerations_since_us > latest_us:
            pod.since_us = _capped(pod.since_us, latest_us, now_us)
            pod.tolerations_since_us = _capped(pod.tolerations_since_us, latest_us, now_us)
            step.write_pod(pod)


def _capped_node(node: NodeState, latest_us: int, now_us: int) -> NodeState:
    taints = tuple(_capped_taint(taint, latest_us, now_us) for taint in node.taints)
    outage = node.outage
    if outage is not None:
        gap_us = outage.gap_since_us
        outage = Outage(
            _capped(outage.since_us, latest_us, now_us),
            None if gap_us is None else _capped(gap_us, latest_us, now_us),
        )
    ready_us = node.ready_since_us
    if ready_us is not None:
        ready_us = _capped(ready_us, latest_us, now_us)
    if (taints, outage, ready_us) == (node.taints, node.outage, node.ready_since_us):
        return node
    return msgspec.structs.replace(node, taints=taints, outage=outage, ready_since_us=ready_us)


def _capped_left(left: NodeLeft, latest_us: int, now_us: int) -> NodeLeft:
    taints = tuple(one._replace(since_us=_capped(one.since_us, latest_us, now_us)) for one in left.taints)
    at_us = _capped(left.at_us, latest_us, now_us)
    if (at_us, taints) == (left.at_us, left.taints):
        return left
    return msgspec.structs.replace(left, at_us=at_us, taints=taints)


def _capped_taint(taint: TaintState, latest_us: int, now_us: int) -> TaintState:
    since_us = _capped(taint.since_us, latest_us, now_us)
    value_since_us = _capped(taint.value_since_us, latest_us, now_us)
    if (since_us, value_since_us) == (taint.since_us, taint.value_since_us):
        return taint
    return msgspec.structs.replace(taint, since_us=since_us, value_since_us=value_since_us)


def _capped(at_us: int, latest_us: int, now_us: int) -> int:
    return now_us if at_us > latest_us else at_us
