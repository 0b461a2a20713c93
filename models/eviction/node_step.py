"""The step for a change of the node (semantics.md 12.3 and 12.7)."""

from models.eviction.accepting import Version, is_newer, is_older, read_version
from models.eviction.changes import DUPLICATE, STALE, Changes
from models.eviction.events import NodeEvent
from models.eviction.lifecycle import reconcile
from models.eviction.memory import remember_node
from models.eviction.outage import advance_outage
from models.eviction.rules import Rules
from models.eviction.state import NodeAggregate, NodeState
from models.eviction.step import Step
from models.eviction.windows import advance_taints
from models.kubernetes.objects import Node
from models.messages.vocabulary import CauseKind, EventType


def apply_node(aggregate: NodeAggregate, event: NodeEvent, rules: Rules) -> Changes:
    """Take in a node as it is now.

    Decides for every pod if the node is new, another one or gone, or if its `NoExecute` taints changed.
    Every newer version is written to the node's row, even if nothing else changed: an old taint list that comes late
    after a restart must be seen to be old.

    Args:
        aggregate: of this node; changed in place.
        event: a node whose name is the aggregate's.
        rules: the numbers.

    Returns:
        The changes; `DUPLICATE` or `STALE` if the event is no news.
    """
    seen = event.node
    version = read_version(seen.resource_version)
    known = aggregate.node
    if event.type is EventType.DELETED:
        return _delete(aggregate, event, version, rules)
    if known is not None and known.uid == seen.uid:
        if version == known.version:
            return DUPLICATE
        if is_older(version, known.version):
            return STALE
        return _update(Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin), known, seen, version)
    departed = aggregate.departed.get(seen.uid)
    if departed is not None and not is_newer(version, departed.version):
        return STALE
    if known is not None and not is_newer(version, known.version):
        return STALE  # an earlier node of this name
    step = Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin)
    if known is not None:
        _leave(step, known, version)
    aggregate.departed.pop(seen.uid, None)
    step.node_uid = seen.uid
    return _update(step, NodeState(seen.uid, version), seen, version)


def _update(step: Step, known: NodeState, seen: Node, version: Version) -> Changes:
    """Carry the node over to what is seen; for a new one `known` is without taints and outage."""
    aggregate = step.aggregate
    taints = advance_taints(known.taints, seen.taints, step.at_us)
    outage = advance_outage(known.outage, taints, seen.ready, step.at_us, step.rules.outage_gap_us)
    is_new = aggregate.node is None
    aggregate.node = NodeState(seen.uid, version, taints, outage)
    step.write_node()
    if is_new or taints != known.taints:  # an outage begins, ends and swaps with its taints
        for pod in aggregate.pods.values():
            reconcile(step, pod)
    return step.finish()


def _delete(aggregate: NodeAggregate, event: NodeEvent, version: Version, rules: Rules) -> Changes:
    uid = event.node.uid
    known = aggregate.node
    step = Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin)
    if known is not None and known.uid == uid:
        if is_older(version, known.version):
            return STALE
        _leave(step, known, version)
        return step.finish()
    departed = aggregate.departed.get(uid)
    if departed is not None and not is_newer(version, departed.version):
        return DUPLICATE
    remember_node(step, uid, version)  # of a node that is not the stored one: changes nothing about that
    return step.finish()


def _leave(step: Step, known: NodeState, version: Version) -> None:
    """Let the known node go: nothing is due for its pods any more, and it may not come back below `version`."""
    step.aggregate.node = None
    for pod in step.aggregate.pods.values():
        reconcile(step, pod)
    remember_node(step, known.uid, version)
