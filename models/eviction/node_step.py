"""The step for a change of the node (semantics.md 12.3 and 12.7)."""

from collections.abc import Iterator

from evictstream.models.eviction.accepting import Version, is_newer, is_older, read_version
from evictstream.models.eviction.changes import DUPLICATE, STALE, Changes, Note
from evictstream.models.eviction.limits import LONG_LIST
from evictstream.models.eviction.memory import remember_node
from evictstream.models.eviction.outage import advance_outage
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.slices import reconcile_all, whole
from evictstream.models.eviction.state import NodeAggregate, NodeState
from evictstream.models.eviction.step import Step
from evictstream.models.eviction.windows import advance_taints
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.messages.events import NodeEvent, Origin
from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.models.messages.vocabulary import CauseKind, EventType


def apply_node(aggregate: NodeAggregate, event: NodeEvent, rules: Rules) -> Changes:
    """Take in a node as it is now, at once; `node_slices` says what happens."""
    return whole(node_slices(aggregate, event, rules))


def node_slices(aggregate: NodeAggregate, event: NodeEvent, rules: Rules) -> Iterator[Changes]:
    """Take in a node as it is now.

    Decides for every pod if the node is new, another one or gone, or if its `NoExecute` taints changed.
    Every newer version is written to the node's row, even if nothing else changed: an old taint list that comes late
    after a restart must be seen to be old. With more to decide than `Rules.largest_work` the node is undecidable: its
    taints are not kept, and what was open about its pods is cancelled.

    Args:
        aggregate: of this node; changed in place.
        event: a node whose name is the aggregate's.
        rules: the numbers.

    Yields:
        The changes, slice by slice; `DUPLICATE` or `STALE` if the event is no news. The first one's note counts.
    """
    seen = event.node
    version = read_version(seen.resource_version)
    known = aggregate.node
    if event.type is EventType.DELETED:
        yield from _delete(aggregate, event, version, rules)
        return
    if known is not None and known.uid == seen.uid:
        if version == known.version and not known.is_undecidable:  # it may be within the limits by now: pods have gone
            yield DUPLICATE
        elif is_older(version, known.version):
            yield STALE
        else:
            step = Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin)
            _note_limit(step, event)
            yield from _update(step, known, event, version)
        return
    departed = aggregate.departed.get(seen.uid)
    is_back = departed is not None and not is_newer(version, departed.version)
    if is_back or (known is not None and not is_newer(version, known.version)):  # or an earlier node of this name
        yield STALE
        return
    step = Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin)
    _note_limit(step, event)
    if known is not None:
        yield from _leave(step, known, version)
    aggregate.departed.pop(seen.uid, None)
    step.node_uid = seen.uid
    yield from _update(step, NodeState(seen.uid, version), event, version)


def _update(step: Step, known: NodeState, event: NodeEvent, version: Version) -> Iterator[Changes]:
    """Carry the node over to what is seen; for a new one `known` is without taints and outage."""
    aggregate, seen = step.aggregate, event.node
    is_undecidable = step.note is Note.UNDECIDABLE
    taints = () if is_undecidable else advance_taints(known.taints, seen.taints, step.at_us)
    outage = advance_outage(known.outage, taints, seen.ready, step.at_us, step.rules.outage_gap_us)
    is_new = aggregate.node is None
    aggregate.node = NodeState(seen.uid, version, taints, outage, is_undecidable)
    step.write_node()
    if is_new or taints != known.taints:  # an outage begins, ends and swaps with its taints
        # One without taints had nothing to take back, and one that becomes undecidable has nothing due either.
        yield from reconcile_all(step)
    yield step.finish()


def is_crowded(aggregate: NodeAggregate, rules: Rules) -> bool:
    """Tell whether the node has too many pods for its taints, now that one more has come."""
    node = aggregate.node
    return node is not None and len(node.taints) * len(aggregate.pods) > rules.largest_work


def crowd_slices(aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin) -> Iterator[Changes]:
    """Make a crowded node undecidable, as its next change would: the order of pods and node does not matter.

    Args:
        aggregate: of the node, which is known; changed in place.
        at_us: the instant of the pod's record.
        rules: the numbers.
        origin: the record of the pod.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us, CauseKind.POD, origin)
    step.note = Note.UNDECIDABLE
    node = aggregate.node
    if node is not None:
        aggregate.node = NodeState(node.uid, node.version, is_undecidable=True)
        step.write_node()
        yield from reconcile_all(step)
    yield step.finish()


def _note_limit(step: Step, event: NodeEvent) -> None:
    """Note if there is too much to look at: of the node's taints for its pods, and of long lists of theirs."""
    if not event.node.taints:
        if event.is_undecidable:
            step.note = Note.UNDECIDABLE
        return
    pods, limit = step.aggregate.pods, step.rules.largest_work
    taints = sum(taint.effect == NO_EXECUTE for taint in event.node.taints)
    work = taints * len(pods)
    if taints and len(pods) * LARGEST_LIST > limit:  # fewer lists are not too much, however long
        work += sum(len(pod.tolerations) for pod in pods.values() if len(pod.tolerations) > LONG_LIST)
    if event.is_undecidable or work > limit:
        step.note = Note.UNDECIDABLE


def _delete(aggregate: NodeAggregate, event: NodeEvent, version: Version, rules: Rules) -> Iterator[Changes]:
    uid = event.node.uid
    known = aggregate.node
    step = Step(aggregate, rules, event.at_us, CauseKind.NODE, event.origin)
    if known is not None and known.uid == uid:
        if is_older(version, known.version):
            yield STALE
            return
        yield from _leave(step, known, version)
        yield step.finish()
        return
    departed = aggregate.departed.get(uid)
    if departed is not None and not is_newer(version, departed.version):
        yield DUPLICATE
        return
    remember_node(step, uid, version)  # of a node that is not the stored one: changes nothing about that
    yield step.finish()


def _leave(step: Step, known: NodeState, version: Version) -> Iterator[Changes]:
    """Let the known node go: nothing is due for its pods any more, and it may not come back below `version`."""
    step.aggregate.node = None
    yield from reconcile_all(step)
    remember_node(step, known.uid, version)
