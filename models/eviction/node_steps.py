"""The steps about a node and all its pods: its watch events, deciding everything again, forgetting (semantics.md 12.7).

A node may have any number of pods, so most of these steps come in slices: an iterator of at least one `Changes`.
Between two slices the caller may do other work, but not on this aggregate. It writes all slices or none: together they
are one step.
"""

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.future_times import cap_times
from evictstream.models.eviction.leaving_pods import count_left
from evictstream.models.eviction.lifecycle import reconcile, remove
from evictstream.models.eviction.node_standing import node_left
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import NodeState, PodState
from evictstream.models.eviction.step import DUPLICATE, STALE, Changes, InputEffect, Step
from evictstream.models.eviction.taint_history import (
    NO_NODE_IS_READY,
    ReadySince,
    advance_outage,
    advance_ready,
    advance_taints,
)
from evictstream.models.kubernetes.resource_versions import Version, is_newer, is_older, read_version
from evictstream.models.kubernetes.traits import shared_node_labels
from evictstream.models.messages.events import NodeEvent, Origin
from evictstream.models.messages.vocabulary import CauseKind, EventType, Verdict

PODS_IN_SLICE: Final = 100
"""Usual decisions in one slice: some two milliseconds of work, if each pod gets a new deadline."""

DELETED_PODS_IN_SLICE: Final = 1_000
"""Deleted pods that are forgotten in one slice: a millisecond of work."""

_ENTRIES_LIKE_A_POD: Final = 32  # looking at this many taints and tolerations takes as long as one usual decision


def node_slices(
    aggregate: NodeAggregate,
    event: NodeEvent,
    rules: RuleParameters,
    has_ready_since: ReadySince = NO_NODE_IS_READY,
) -> Iterator[Changes]:
    """Apply a change of the node.

    The step decides about every pod if the node is new, has another UID or is deleted, or if its `NoExecute` taints
    changed. Every newer version is written to the node's row, even if nothing else changed: after a restart a taint
    list that arrives late must be recognised as old. The taints of a node that is itself beyond a limit are not kept,
    and the open evictions of its pods are cancelled.

    Args:
        aggregate: of this node; changed in place.
        event: a node whose name is the aggregate's.
        rules: parameters of the rules.
        has_ready_since: of its cluster; without it no outage goes on over a long gap.

    Yields:
        The changes, slice by slice; `DUPLICATE` or `STALE` if the event is not new. The effect of the first slice is
        the effect of the step.
    """
    seen = event.node
    version = read_version(seen.resource_version, event.epoch)
    node = aggregate.node
    if event.type is EventType.DELETED:
        yield from _delete(aggregate, event, version, rules)
        return
    if node is not None and node.uid == seen.uid:
        # An undecidable node is tried again with the same version: each of its records is said to be so.
        if version == node.version and not node.is_undecidable:
            yield _take_labels(_step(aggregate, event, rules), node, event)
        elif is_older(version, node.version):
            yield STALE
        else:
            yield from _update(_step(aggregate, event, rules), node, event, version, has_ready_since)
        return
    memory = aggregate.earlier_nodes.get(seen.uid)
    is_back = memory is not None and not is_newer(version, memory.version)
    if is_back or (node is not None and not is_newer(version, node.version)):  # or an earlier node with this name
        yield STALE
        return
    step = _step(aggregate, event, rules)
    if node is not None:
        yield from _remove(step, node, version)
    aggregate.earlier_nodes.pop(seen.uid, None)
    step.node_uid = seen.uid
    yield from _update(step, NodeState(uid=seen.uid, version=version), event, version, has_ready_since)


def decide_all_slices(
    aggregate: NodeAggregate,
    at_us: int,
    rules: RuleParameters,
    origin: Origin | None = None,
    *,
    latest_us: int | None = None,
) -> Iterator[Changes]:
    """Decide about every pod again, once after catching up (semantics.md 12.7, row "restart").

    Windows are as recorded, so this changes something only if the rules have changed, or if some lie in the future.

    Args:
        aggregate: of the node; changed in place.
        at_us: now, or the instant of the record that asked for it.
        rules: parameters of the rules.
        origin: the record that asked for it, if any.
        latest_us: what is kept as later than this lies in the future, and counts as begun at `at_us`.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us=at_us, kind=CauseKind.CATCH_UP, origin=origin)
    if latest_us is not None:
        cap_times(step, latest_us)
    yield from _reconcile_all(step)
    yield step.finish()


def forget_slices(
    aggregate: NodeAggregate, at_us: int, rules: RuleParameters, origin: Origin | None = None
) -> Iterator[Changes]:
    """Forget a node whose cluster was taken out of the service: cancel its open evictions, delete every row.

    The aggregate is empty afterwards. It does not even remember how many evictions were opened for a pod: if the
    cluster is fed again later, give its aggregates a `first_ordinal` above all ordinals that were used.

    Args:
        aggregate: of the node; changed in place.
        at_us: the instant of the record.
        rules: parameters of the rules.
        origin: the record that asked for it.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us=at_us, kind=CauseKind.FORGET, origin=origin)
    for number, pod in enumerate(list(aggregate.pods.values()), start=1):
        remove(step, pod, Verdict.CLUSTER_FORGOTTEN)
        if number % PODS_IN_SLICE == 0:
            yield step.finish_slice()
    for number, uid in enumerate(aggregate.deleted_pods, start=1):
        step.write_deleted_pod(uid, None)
        if number % DELETED_PODS_IN_SLICE == 0:
            yield step.finish_slice()
    aggregate.deleted_pods.clear()
    aggregate.left = None
    if aggregate.node is not None or aggregate.earlier_nodes:
        aggregate.node = None
        aggregate.earlier_nodes.clear()
        step.write_node()
    aggregate.orphans.clear()
    aggregate.purge_at_us = None
    yield step.finish()


def expire(aggregate: NodeAggregate, now_us: int, rules: RuleParameters) -> Changes:
    """Forget the deleted UIDs whose time is over, and ask for a wake-up when that of the next one is.

    Pods are forgotten in the order in which their deletions were read, so a step looks only at those that it forgets.
    If deletions came out of order, a UID may be kept until the one before it may be forgotten, for at most the longest
    delay of a feed. If there are more than `DELETED_PODS_IN_SLICE`, the rest waits for another wake-up, which is due at
    once.

    Args:
        aggregate: of the node; may be empty afterwards.
        now_us: now, microseconds since 1970.
        rules: a change of `remember_deleted_us` does not affect UIDs that are remembered already.
    """
    step = Step(aggregate, rules, at_us=now_us, kind=CauseKind.TIMER, origin=None)
    over = itertools.takewhile(lambda item: item[1].until_us <= now_us, aggregate.deleted_pods.items())
    for uid, _ in list(itertools.islice(over, DELETED_PODS_IN_SLICE)):
        count_left(aggregate, aggregate.deleted_pods.pop(uid), -1)
        step.write_deleted_pod(uid, None)
    earlier_nodes = {uid: memory for uid, memory in aggregate.earlier_nodes.items() if memory.until_us > now_us}
    if len(earlier_nodes) != len(aggregate.earlier_nodes):
        aggregate.earlier_nodes = earlier_nodes
        step.write_node()
    aggregate.purge_at_us = aggregate.next_purge_us
    if aggregate.purge_at_us is not None:
        step.wake(aggregate.purge_at_us, "")
    return step.finish()


def weight_of(node: NodeState | None, pod: PodState) -> int:
    """Return the cost of one decision, in usual ones: it looks at all taints of the node and all the pod's tolerations.

    A finished, terminating or mirror pod costs no look at either.
    """
    if node is None or not node.taints or pod.exemptions:
        return 1
    return 1 + (len(node.taints) + len(pod.tolerations)) // _ENTRIES_LIKE_A_POD


def _step(aggregate: NodeAggregate, event: NodeEvent, rules: RuleParameters) -> Step:
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.NODE, origin=event.origin)
    if event.is_undecidable:
        step.effect = InputEffect.UNDECIDABLE
    return step


def _reconcile_all(step: Step) -> Iterator[Changes]:
    """Decide about every pod of the node again; the changes of the last slice stay in the step."""
    node = step.aggregate.node
    has_taints = node is not None and bool(node.taints)
    weight = 0
    for pod in step.aggregate.pods.values():
        if has_taints or pod.eviction is not None:  # `has_to_decide` of a million pods, with the node's part once
            reconcile(step, pod)
        weight += weight_of(node, pod) if has_taints else 1
        if weight >= PODS_IN_SLICE:
            yield step.finish_slice()
            weight = 0


def _update(
    step: Step, node: NodeState, event: NodeEvent, version: Version, has_ready_since: ReadySince
) -> Iterator[Changes]:
    """Update the node from the event; for a new node `node` is without taints and outage."""
    aggregate, seen, at_us, gap_us = step.aggregate, event.node, step.at_us, step.rules.outage_gap_us
    # What a listing tells may be another state than the one that came next, and without a gap there is none to bridge.
    is_listed = event.type is EventType.ADDED
    in_view = NO_NODE_IS_READY if is_listed or not gap_us else has_ready_since
    is_undecidable = step.effect is InputEffect.UNDECIDABLE
    taints = () if is_undecidable else advance_taints(node.taints, seen.taints, at_us)
    is_ready = seen.counts_as_ready and not is_undecidable
    is_new = aggregate.node is None
    aggregate.node = NodeState(
        uid=seen.uid,
        version=version,
        taints=taints,
        outage=advance_outage(node.outage, taints, seen.ready, at_us=at_us, gap_us=gap_us, has_ready_since=in_view),
        ready_since_us=advance_ready(node.ready_since_us, is_ready=is_ready, is_listed=is_listed, at_us=at_us),
        is_undecidable=is_undecidable,
        labels=shared_node_labels(seen.labels, node.labels),
        is_unready=seen.is_unready,
    )
    step.write_node()
    # With equal taints no decision changes. A health taint that stays means the same outage. A node that had no taints
    # has no open evictions to cancel when it becomes undecidable.
    if is_new or taints != node.taints:
        yield from _reconcile_all(step)
    yield step.finish()


def _take_labels(step: Step, node: NodeState, event: NodeEvent) -> Changes:
    """Take the labels of a known version of a node: its row is older than labels are, or its feed tells more now.

    The same goes for its condition.
    """
    labels, is_unready = shared_node_labels(event.node.labels, node.labels), event.node.is_unready
    if labels is node.labels and is_unready is node.is_unready:
        return DUPLICATE
    ready_us = node.ready_since_us if event.node.counts_as_ready else None
    step.aggregate.node = msgspec.structs.replace(node, labels=labels, ready_since_us=ready_us, is_unready=is_unready)
    step.write_node()
    return step.finish()


def _delete(aggregate: NodeAggregate, event: NodeEvent, version: Version, rules: RuleParameters) -> Iterator[Changes]:
    uid = event.node.uid
    node = aggregate.node
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.NODE, origin=event.origin)
    if node is not None and node.uid == uid:
        if is_older(version, node.version):
            yield STALE
            return
        yield from _remove(step, node, version)
        yield step.finish()
        return
    memory = aggregate.earlier_nodes.get(uid)
    if memory is not None and not is_newer(version, memory.version):
        yield DUPLICATE
        return
    step.remember_node(uid, version)  # an earlier node; the stored one stays as it is
    yield step.finish()


def _remove(step: Step, node: NodeState, version: Version) -> Iterator[Changes]:
    """Remove the known node, so that nothing is due for its pods; events of it up to `version` will be dropped."""
    left = node_left(step.aggregate, node, step.rules, step.at_us)
    step.aggregate.node = None
    yield from _reconcile_all(step)
    step.remember_node(node.uid, version, left)
