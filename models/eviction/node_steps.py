"""The steps about a node and all its pods: its watch events, deciding everything again, forgetting (semantics.md 12.7).

A node may have any number of pods to decide about, so most of these steps also come in slices: an iterator of changes,
at least one. Between two of them the caller may do other work, but not on this aggregate. It writes all of them or
none: together they are one step, which `merged` puts together.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from evictstream.models.eviction.lifecycle import end, reconcile
from evictstream.models.eviction.rules import LONG_LIST, Rules
from evictstream.models.eviction.state import NodeAggregate, NodeState
from evictstream.models.eviction.step import DUPLICATE, STALE, Changes, Note, Step, merged
from evictstream.models.eviction.taint_history import advance_outage, advance_taints
from evictstream.models.kubernetes.resource_versions import Version, is_newer, is_older, read_version
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.messages.events import NodeEvent, Origin
from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.models.messages.vocabulary import CauseKind, EventType, EvictionState, Verdict

PODS_IN_SLICE: Final = 100
"""Some two milliseconds of work, if each gets a new deadline."""

GONE_IN_SLICE: Final = 1_000
"""Remembered UIDs that are forgotten at once: a millisecond."""

_ENTRIES_LIKE_A_POD: Final = 64  # to look at so many takes as long as to decide about a usual pod


def apply_node(aggregate: NodeAggregate, event: NodeEvent, rules: Rules) -> Changes:
    """Step a change of the node at once; `node_slices` says what happens."""
    return merged(node_slices(aggregate, event, rules))


def node_slices(aggregate: NodeAggregate, event: NodeEvent, rules: Rules) -> Iterator[Changes]:
    """Step a change of the node.

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
        if version == known.version and not known.is_undecidable:  # its pods may have become few enough
            yield DUPLICATE
        elif is_older(version, known.version):
            yield STALE
        else:
            step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.NODE, origin=event.origin)
            _note_limit(step, event)
            yield from _update(step, known, event, version)
        return
    departed = aggregate.departed.get(seen.uid)
    is_back = departed is not None and not is_newer(version, departed.version)
    if is_back or (known is not None and not is_newer(version, known.version)):  # or an earlier node with this name
        yield STALE
        return
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.NODE, origin=event.origin)
    _note_limit(step, event)
    if known is not None:
        yield from _remove(step, known, version)
    aggregate.departed.pop(seen.uid, None)
    step.node_uid = seen.uid
    yield from _update(step, NodeState(uid=seen.uid, version=version), event, version)


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
    step = Step(aggregate, rules, at_us=at_us, kind=CauseKind.POD, origin=origin)
    step.note = Note.UNDECIDABLE
    node = aggregate.node
    if node is not None:
        aggregate.node = NodeState(uid=node.uid, version=node.version, is_undecidable=True)
        step.write_node()
        yield from _reconcile_all(step)
    yield step.finish()


def decide_all(aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None) -> Changes:
    """Decide about every pod anew, at once; `decide_all_slices` says what happens."""
    return merged(decide_all_slices(aggregate, at_us, rules, origin))


def decide_all_slices(
    aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None
) -> Iterator[Changes]:
    """Decide about every pod anew, as is done once after catching up (semantics.md 12.7, row "restart").

    Windows are as recorded, so this changes something only if the rules are other ones than before.

    Args:
        aggregate: of the node; changed in place.
        at_us: now, or the instant of the record that asked for it.
        rules: the numbers.
        origin: the record that asked for it, if any.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us=at_us, kind=CauseKind.CATCH_UP, origin=origin)
    yield from _reconcile_all(step)
    yield step.finish()


def forget(aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None) -> Changes:
    """Forget a node, at once; `forget_slices` says what happens."""
    return merged(forget_slices(aggregate, at_us, rules, origin))


def forget_slices(
    aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None
) -> Iterator[Changes]:
    """Forget a node whose cluster was taken out of the service: cancel what is open, delete every row.

    The aggregate is empty afterwards. Nothing is remembered, not even how many evictions were opened for a pod: if the
    cluster is fed again later, give its aggregates a `first_ordinal` above all that were used.

    Args:
        aggregate: of the node; changed in place.
        at_us: the instant of the record.
        rules: the numbers.
        origin: the record that asked for it.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us=at_us, kind=CauseKind.FORGET, origin=origin)
    for number, pod in enumerate(list(aggregate.pods.values()), start=1):
        if pod.eviction is not None:
            if pod.eviction.state is not EvictionState.DONE:
                end(step, pod, pod.eviction, Verdict.CLUSTER_FORGOTTEN)
            pod.eviction = None
            step.write_eviction(pod)
        aggregate.drop_pod(pod)
        step.delete_pod(pod.uid)
        if number % PODS_IN_SLICE == 0:
            yield step.finish_slice()
    for number, uid in enumerate(aggregate.gone, start=1):
        step.write_gone(uid, None)
        if number % GONE_IN_SLICE == 0:
            yield step.finish_slice()
    aggregate.gone.clear()
    if aggregate.node is not None or aggregate.departed:
        aggregate.node = None
        aggregate.departed.clear()
        step.write_node()
    aggregate.orphans.clear()
    aggregate.purge_at_us = None
    yield step.finish()


def expire(aggregate: NodeAggregate, now_us: int, rules: Rules) -> Changes:
    """Forget the deleted UIDs whose time has passed, and ask for a wake-up when the next one's has.

    Pods are forgotten in the order in which they were deleted, so a step looks only at those that it forgets. If events
    came out of order, an earlier one waits for a later one, at most for the longest delay of a feed. Beyond
    `GONE_IN_SLICE` the rest waits for another wake-up, which is due at once.

    Args:
        aggregate: of the node; may be empty afterwards.
        now_us: now, microseconds since 1970.
        rules: the numbers; what is remembered keeps the time that it was given.
    """
    step = Step(aggregate, rules, at_us=now_us, kind=CauseKind.TIMER, origin=None)
    over = itertools.takewhile(lambda known: known[1].until_us <= now_us, aggregate.gone.items())
    for uid, _ in list(itertools.islice(over, GONE_IN_SLICE)):
        del aggregate.gone[uid]
        step.write_gone(uid, None)
    departed = {uid: gone for uid, gone in aggregate.departed.items() if gone.until_us > now_us}
    if len(departed) != len(aggregate.departed):
        aggregate.departed = departed
        step.write_node()
    aggregate.purge_at_us = aggregate.next_purge_us
    if aggregate.purge_at_us is not None:
        step.wake(aggregate.purge_at_us, "")
    return step.finish()


def weight_of(node: NodeState | None, tolerations: Tolerations) -> int:
    """Tell how many usual decisions one costs: it looks at all taints of the node and all of these tolerations."""
    if node is None or not node.taints:
        return 1
    return 1 + (len(node.taints) + len(tolerations)) // _ENTRIES_LIKE_A_POD


def _reconcile_all(step: Step) -> Iterator[Changes]:
    """Decide about every pod of the node again; the changes of the last slice are left in the step."""
    node = step.aggregate.node
    weight = 0
    for pod in step.aggregate.pods.values():
        reconcile(step, pod)
        weight += weight_of(node, pod.tolerations)
        if weight >= PODS_IN_SLICE:
            yield step.finish_slice()
            weight = 0


def _update(step: Step, known: NodeState, event: NodeEvent, version: Version) -> Iterator[Changes]:
    """Carry the node over to what is seen; for a new one `known` is without taints and outage."""
    aggregate, seen = step.aggregate, event.node
    is_undecidable = step.note is Note.UNDECIDABLE
    taints = () if is_undecidable else advance_taints(known.taints, seen.taints, step.at_us)
    outage = advance_outage(known.outage, taints, seen.ready, at_us=step.at_us, gap_us=step.rules.outage_gap_us)
    is_new = aggregate.node is None
    aggregate.node = NodeState(
        uid=seen.uid, version=version, taints=taints, outage=outage, is_undecidable=is_undecidable
    )
    step.write_node()
    if is_new or taints != known.taints:  # an outage begins, ends and swaps with its taints
        # One without taints had nothing to take back, and one that becomes undecidable has nothing due either.
        yield from _reconcile_all(step)
    yield step.finish()


def _note_limit(step: Step, event: NodeEvent) -> None:
    """Note if deciding is too much work: taints times pods, and the tolerations of pods with long lists."""
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
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.NODE, origin=event.origin)
    if known is not None and known.uid == uid:
        if is_older(version, known.version):
            yield STALE
            return
        yield from _remove(step, known, version)
        yield step.finish()
        return
    departed = aggregate.departed.get(uid)
    if departed is not None and not is_newer(version, departed.version):
        yield DUPLICATE
        return
    step.remember_node(uid, version)  # not the stored node, which stays as it is
    yield step.finish()


def _remove(step: Step, known: NodeState, version: Version) -> Iterator[Changes]:
    """Remove the known node: nothing is due for its pods; older events of it than `version` will be dropped."""
    step.aggregate.node = None
    yield from _reconcile_all(step)
    step.remember_node(known.uid, version)
