"""The steps about one pod: its watch events and its wake-ups (semantics.md 12.3, 12.7, 12.8).

All steps are synchronous and deterministic: the same aggregate and the same arguments give the same changes. `fire`
alone issues evictions; the others only decide.
"""

from collections.abc import Sequence
from typing import Final

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.executor_queue import ExecutorQueue, held_until_us, is_only_observed
from evictstream.models.eviction.held_attempts import owed_after_held_us, subject_of
from evictstream.models.eviction.leaving_pods import count_left
from evictstream.models.eviction.lifecycle import issue, reconcile, remove
from evictstream.models.eviction.node_steps import expire
from evictstream.models.eviction.pod_rows import pod_value
from evictstream.models.eviction.rendering import render
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import FINISHED, MIRROR, OVER_LIMIT, TERMINATING, Due, Eviction, PodState
from evictstream.models.eviction.step import (
    DUPLICATE,
    STALE,
    UNCHANGED,
    UNDECIDABLE,
    Changes,
    InputEffect,
    Step,
)
from evictstream.models.eviction.transitions import Transition
from evictstream.models.kubernetes.handed_over import has_moved, in_spec, is_same_in_force
from evictstream.models.kubernetes.resource_versions import (
    Version,
    is_newer,
    is_of_later_epoch,
    is_older,
    read_version,
)
from evictstream.models.kubernetes.shapes import TERMINAL_PHASES
from evictstream.models.messages.events import PodEvent
from evictstream.models.messages.vocabulary import CauseKind, EventType, EvictionState, Verdict
from evictstream.models.steering.holds import Hold, Holder, longest_hold
from evictstream.models.steering.limits import Limits
from evictstream.models.steering.policies import limits_on, longest_patience_us

_CHANGED = InputEffect.CHANGED  # see `evictstream.models.eviction` for these constants
_POD = RowKind.POD
_DELETED = EventType.DELETED
_TIMER = CauseKind.TIMER
_DONE = EvictionState.DONE
_SCHEDULED = EvictionState.SCHEDULED
_TOLERATION_EXPIRES = Verdict.TOLERATION_EXPIRES

_LEAVING: Final = TERMINATING | FINISHED


def apply_pod(aggregate: NodeAggregate, event: PodEvent, rules: RuleParameters, opened: int = 0) -> Changes:
    """Apply a change of a pod.

    A newer version that changes nothing relevant (status) is kept in memory and not written: after a restart an older
    event can only restore values that lead to the same decisions. Traits are written, since a policy may select by
    them; nothing is decided for them.

    Args:
        aggregate: of the node that the pod is bound to; changed in place.
        event: a pod whose `nodeName` is the aggregate's name. A pod that is not bound is ignored.
        rules: parameters of the rules.
        opened: evictions that were opened for a pod with this UID on another node; etcd was restored since.

    Returns:
        The changes; `UNCHANGED`, `DUPLICATE`, `STALE` or `UNDECIDABLE` if there is nothing to write.
    """
    seen = event.pod
    version = read_version(seen.resource_version, event.epoch)
    if event.type is _DELETED:
        return _delete(aggregate, event, version, rules)
    pod = aggregate.pods.get(seen.uid)
    if pod is None:
        return _add(aggregate, event, version, rules, opened)
    if version == pod.version and not _tells_of_a_move(event, pod):
        return DUPLICATE if seen.traits == pod.traits else _take_traits(aggregate, pod, event)
    if is_older(version, pod.version):
        return STALE
    is_undone = is_of_later_epoch(version, pod.version)
    pod.version = version
    exemptions = _exemptions(event)
    tolerations = seen.tolerations
    is_other = tolerations is not pod.tolerations and tolerations != pod.tolerations
    if exemptions == pod.exemptions and not is_other:
        if seen.traits is not pod.traits and seen.traits != pod.traits:
            return _take_traits(aggregate, pod, event)
        return UNDECIDABLE if event.is_undecidable else UNCHANGED
    known = pod.tolerations
    _take(aggregate, pod, event, exemptions)
    node = aggregate.node
    if pod.eviction is None and (node is None or not node.taints) and not event.is_undecidable:
        # No eviction is open and nothing can be due, as with nearly all edits: no need to decide.
        return Changes(_CHANGED, ((row_key(_POD, aggregate.key, pod.uid), pod_value(pod)),))
    step = _step(aggregate, event, rules)
    if step.before is not None:
        step.before = step.before._replace(tolerations=known)
    step.write_pod(pod)
    if is_undone and pod.eviction is not None and pod.eviction.state is _DONE and not exemptions & _LEAVING:
        # etcd was restored to a time before the pod left: it runs again, and may be due again
        render(step, pod, Transition(pod.eviction, None))
    reconcile(step, pod)
    return step.finish()


def end_elsewhere(other: NodeAggregate, event: PodEvent, rules: RuleParameters) -> Changes:
    """End the pod of another node whose address a new pod has by now; its deletion was missed.

    Args:
        other: the node on which the address is known; changed in place.
        event: a change of a pod with this address, which is bound to the event's node and not known there.
        rules: parameters of the rules.

    Returns:
        The changes; `STALE` if the event is older than the pod that is known, and so is of an earlier pod.
    """
    seen = event.pod
    version = read_version(seen.resource_version, event.epoch)
    replaced = other.pod_at(f"{seen.namespace}/{seen.name}")
    if replaced is None:
        return UNCHANGED
    if not is_newer(version, replaced.version):
        return STALE
    step = Step(other, rules, at_us=event.at_us, kind=CauseKind.POD, origin=event.origin)
    _remove(step, replaced, version, Verdict.POD_REPLACED)
    return step.finish()


def fire(
    aggregate: NodeAggregate,
    pod_uid: str,
    now_us: int,
    rules: RuleParameters,
    *,
    heard_us: int | None = None,
    queue: ExecutorQueue | None = None,
    holders: Sequence[Holder] = (),
    held_by: str | None = None,
    limits: Limits | None = None,
) -> Changes:
    """Apply a wake-up: decide again with the newest facts, and issue the attempt that is owed to this pod now.

    Call it only while the gates are open. Stale, early, late and repeated calls are harmless: the step issues an
    attempt only if it is owed at `now_us`, each attempt once, and otherwise asks for another wake-up.

    Args:
        aggregate: of the node; changed in place.
        pod_uid: the UID in the wake-up; empty for the node itself, whose step is `expire`.
        now_us: now, microseconds since 1970.
        rules: parameters of the rules.
        heard_us: when the cluster's feed was last heard, for the record of an attempt; None if it never was.
        queue: what the cluster's executor last reported; what waits there is not issued again. None without a report.
            What was only observed has no wake-up of its own: call this for it after each report.
        holders: brakes and policies that may hold evictions of the cluster now. Whatever has a hold has no wake-up of
            its own before the hold ends: call this for it after each change of what holds it.
        held_by: what has held it until now, for the record of an attempt.
        limits: the buckets of the partition; what is issued takes its tokens. Without them no limit binds.

    Returns:
        The changes: an `Evict`; or a `Cancel` or a moved deadline, if the rules have changed; or only a wake-up or a
        hold, with the effect `unchanged`; or `UNCHANGED`.
    """
    if not pod_uid:
        return expire(aggregate, now_us, rules)
    pod = aggregate.pods.get(pod_uid)
    if pod is None or pod.eviction is None or pod.eviction.state is _DONE:
        return UNCHANGED
    step = Step(aggregate, rules, at_us=now_us, kind=_TIMER, origin=None, heard_us=heard_us)
    due = reconcile(step, pod)
    eviction = pod.eviction
    if due is not None and eviction is not None:
        owed_us = _owed_us(pod, eviction, due, rules, queue=queue, holders=holders)
        if owed_us is not None and owed_us <= now_us:
            step.hold = _hold(step, pod, eviction, due, holders=holders, limits=limits)
            if step.hold is None:
                step.held_by = held_by or (eviction.held_by if eviction.is_held_by_executor else None)
                issue(step, pod, eviction, due)
            elif step.hold.until_us is not None:
                step.wake(step.hold.until_us, pod_uid)
        elif owed_us is not None:
            if eviction.is_held_by_executor and eviction.held_by is not None:
                step.hold = Hold(eviction.held_by, owed_us)
            if not step.wakeups:
                step.wake(owed_us, pod_uid)
    return step.finish()


def _hold(
    step: Step, pod: PodState, eviction: Eviction, due: Due, *, holders: Sequence[Holder], limits: Limits | None
) -> Hold | None:
    """Return what an attempt that is owed now waits for; else take its tokens, and note the patience of policies."""
    if not holders:
        return None
    subject = subject_of(step.aggregate, pod, eviction, due)
    hold = longest_hold(holders, subject, step.at_us)
    if hold is None and limits is not None:
        place = (step.aggregate.timer_key, pod.uid)
        by = limits.ask(place, subject, limits_on(holders, subject), step.at_us)
        hold = None if by is None else Hold(by, None)
    if hold is None:
        step.patience_us = longest_patience_us(holders, subject)
    return hold


def _owed_us(
    pod: PodState,
    eviction: Eviction,
    due: Due,
    rules: RuleParameters,
    *,
    queue: ExecutorQueue | None,
    holders: Sequence[Holder],
) -> int | None:
    """Return when the next attempt is owed, if nothing that the worker knows holds it; None for what was observed."""
    if eviction.is_held_by_executor:
        return owed_after_held_us(pod, eviction, holders, rules)
    owed_us = None if is_only_observed(eviction, queue) else eviction.wakeup_us
    # A repeat waits for the deadline too: the worker's clock may be behind the record that moved the deadline.
    if owed_us is not None and due.verdict is _TOLERATION_EXPIRES:
        owed_us = max(owed_us, due.deadline_us)
    if owed_us is not None and queue is not None:
        owed_us = max(owed_us, held_until_us(queue, eviction, rules))
    return owed_us


def _add(aggregate: NodeAggregate, event: PodEvent, version: Version, rules: RuleParameters, opened: int) -> Changes:
    """Add a pod with an unknown UID. If a known pod has its name, that pod is gone and its deletion was missed."""
    seen = event.pod
    if not seen.node_name:
        return UNCHANGED
    memory = aggregate.deleted_pods.get(seen.uid)
    if memory is not None and not is_newer(version, memory.version):
        return STALE
    address = f"{seen.namespace}/{seen.name}"
    replaced = aggregate.pod_at(address)
    if replaced is not None and not is_newer(version, replaced.version):
        return STALE  # an earlier pod with this name
    step = _step(aggregate, event, rules)
    if replaced is not None:
        _remove(step, replaced, version, Verdict.POD_REPLACED)
    if memory is not None:
        del aggregate.deleted_pods[seen.uid]
        count_left(aggregate, memory, -1)
        step.write_deleted_pod(seen.uid, None)
    pod = PodState(
        uid=seen.uid,
        address=address,
        version=version,
        tolerations=seen.tolerations,
        since_us=event.at_us,
        tolerations_since_us=event.at_us,
        exemptions=_exemptions(event),
        opened=max(opened, memory.opened if memory is not None else aggregate.first_ordinal),
        traits=seen.traits,
    )
    aggregate.put_pod(pod)
    step.write_pod(pod)
    reconcile(step, pod)
    return step.finish()


def _tells_of_a_move(event: PodEvent, pod: PodState) -> bool:
    """Return whether a record of the known version has an annotation that a feed of before has left out."""
    seen, known = event.pod.tolerations, pod.tolerations
    return seen is not known and has_moved(seen) and in_spec(seen) == known


def _take(aggregate: NodeAggregate, pod: PodState, event: PodEvent, exemptions: int) -> None:
    """Take what has changed of a pod."""
    aggregate.discount(pod)
    seen = event.pod
    # Seconds that only moved between spec and annotation decide as before, and since then.
    is_edited = not is_same_in_force(seen.tolerations, pod.tolerations)
    if is_edited or (exemptions != pod.exemptions and not exemptions):  # or it is left alone no longer
        pod.tolerations_since_us = event.at_us
    pod.tolerations, pod.traits, pod.exemptions = seen.tolerations, seen.traits, exemptions
    aggregate.count(pod)


def _take_traits(aggregate: NodeAggregate, pod: PodState, event: PodEvent) -> Changes:
    """Take the traits of a pod of which nothing else has changed; of the same version too, if a feed tells more now."""
    aggregate.discount(pod)
    pod.traits = event.pod.traits
    aggregate.count(pod)
    effect = InputEffect.UNDECIDABLE if event.is_undecidable else _CHANGED
    return Changes(effect, ((row_key(_POD, aggregate.key, pod.uid), pod_value(pod)),))


def _delete(aggregate: NodeAggregate, event: PodEvent, version: Version, rules: RuleParameters) -> Changes:
    uid = event.pod.uid
    pod = aggregate.pods.get(uid)
    if pod is not None:
        if is_older(version, pod.version):
            return STALE
        step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.POD, origin=event.origin)
        _remove(step, pod, version, Verdict.POD_GONE)
        return step.finish()
    memory = aggregate.deleted_pods.get(uid)
    if memory is not None and not is_newer(version, memory.version):
        return DUPLICATE
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.POD, origin=event.origin)
    step.remember_pod(uid, version, aggregate.first_ordinal)
    return step.finish()


def _remove(step: Step, pod: PodState, version: Version, verdict: Verdict) -> None:
    """Remove a pod with its eviction; events of it up to `version` will be dropped."""
    remove(step, pod, verdict)
    step.remember_pod(pod.uid, version, pod.opened, pod)


def _step(aggregate: NodeAggregate, event: PodEvent, rules: RuleParameters) -> Step:
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.POD, origin=event.origin)
    if event.is_undecidable:
        step.effect = InputEffect.UNDECIDABLE
    return step


def _exemptions(event: PodEvent) -> int:
    seen = event.pod
    exemptions = TERMINATING if seen.is_terminating else 0
    if seen.phase in TERMINAL_PHASES:
        exemptions |= FINISHED
    if seen.is_mirror:
        exemptions |= MIRROR
    if event.is_undecidable:
        exemptions |= OVER_LIMIT
    return exemptions
