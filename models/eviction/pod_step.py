"""The step for a change of a pod (semantics.md 12.3 and 12.7). By far the most frequent one."""

from evictstream.models.eviction.accepting import Version, is_newer, is_older, read_version
from evictstream.models.eviction.changes import DUPLICATE, STALE, UNCHANGED, UNDECIDABLE, Changes, Note
from evictstream.models.eviction.lifecycle import end, reconcile
from evictstream.models.eviction.memory import remember_pod
from evictstream.models.eviction.row_keys import RowKind, row_key
from evictstream.models.eviction.row_layout import pod_value
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.state import FINISHED, MIRROR, OVER_LIMIT, TERMINATING, NodeAggregate, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.kubernetes.objects import TERMINAL_PHASES
from evictstream.models.messages.events import PodEvent
from evictstream.models.messages.vocabulary import CauseKind, EventType, EvictionState, Verdict

_CHANGED = Note.CHANGED
_POD = RowKind.POD
_DELETED = EventType.DELETED  # bound once: an enum looks its members up slowly, and this is the hot path


def apply_pod(aggregate: NodeAggregate, event: PodEvent, rules: Rules) -> Changes:
    """Take in a pod as it is now.

    A newer version that changes nothing relevant (status, labels) is remembered in memory and not written: after a
    restart an old event could only bring back what is the same in all that decides.

    Args:
        aggregate: of the node that the pod is bound to; changed in place.
        event: a pod whose `nodeName` is the aggregate's name. One that is not bound is ignored.
        rules: the numbers.

    Returns:
        The changes; `UNCHANGED`, `DUPLICATE`, `STALE` or `UNDECIDABLE` if there is nothing to write.
    """
    seen = event.pod
    version = read_version(seen.resource_version)
    if event.type is _DELETED:
        return _delete(aggregate, event, version, rules)
    pod = aggregate.pods.get(seen.uid)
    if pod is None:
        return _add(aggregate, event, version, rules)
    if version == pod.version:
        return DUPLICATE
    if is_older(version, pod.version):
        return STALE
    pod.version = version
    marks = _marks(event)
    tolerations = seen.tolerations
    is_edited = tolerations is not pod.tolerations and tolerations != pod.tolerations
    if marks == pod.marks and not is_edited:
        return UNDECIDABLE if event.is_undecidable else UNCHANGED
    pod.marks = marks
    if is_edited:
        pod.tolerations = tolerations
        pod.tolerations_since_us = event.at_us
    node = aggregate.node
    if pod.eviction is None and (node is None or not node.taints) and not event.is_undecidable:
        # Nothing is open and nothing can be due, which holds for nearly all edits: no need to decide.
        return Changes(_CHANGED, ((row_key(_POD, aggregate.key, pod.uid), pod_value(pod)),))
    step = _step(aggregate, event, rules)
    step.write_pod(pod)
    reconcile(step, pod)
    return step.finish()


def _add(aggregate: NodeAggregate, event: PodEvent, version: Version, rules: Rules) -> Changes:
    """Take in a UID that is not known; it may have the name of one that is, whose end was then missed."""
    seen = event.pod
    if not seen.node_name:
        return UNCHANGED
    gone = aggregate.gone.get(seen.uid)
    if gone is not None and not is_newer(version, gone.version):
        return STALE
    address = f"{seen.namespace}/{seen.name}"
    replaced = aggregate.pod_at(address)
    if replaced is not None and not is_newer(version, replaced.version):
        return STALE  # an earlier pod of this name
    step = _step(aggregate, event, rules)
    if replaced is not None:
        _leave(step, replaced, version, Verdict.POD_REPLACED)
    if gone is not None:
        del aggregate.gone[seen.uid]
        step.write_gone(seen.uid, None)
    pod = PodState(
        seen.uid,
        address,
        version,
        seen.tolerations,
        event.at_us,
        event.at_us,
        _marks(event),
        gone.opened if gone is not None else aggregate.first_ordinal,
    )
    aggregate.put_pod(pod)
    step.write_pod(pod)
    reconcile(step, pod)
    return step.finish()


def _delete(aggregate: NodeAggregate, event: PodEvent, version: Version, rules: Rules) -> Changes:
    uid = event.pod.uid
    pod = aggregate.pods.get(uid)
    if pod is not None:
        if is_older(version, pod.version):
            return STALE
        step = Step(aggregate, rules, event.at_us, CauseKind.POD, event.origin)
        _leave(step, pod, version, Verdict.POD_GONE)
        return step.finish()
    gone = aggregate.gone.get(uid)
    if gone is not None and not is_newer(version, gone.version):
        return DUPLICATE
    step = Step(aggregate, rules, event.at_us, CauseKind.POD, event.origin)
    remember_pod(step, uid, version, aggregate.first_ordinal)
    return step.finish()


def _leave(step: Step, pod: PodState, version: Version, verdict: Verdict) -> None:
    """Let a pod go, with its eviction; it may not come back below `version`."""
    eviction = pod.eviction
    if eviction is not None:
        if eviction.state is not EvictionState.DONE:
            end(step, pod, eviction, verdict)
        pod.eviction = None
        step.write_eviction(pod)
    step.aggregate.drop_pod(pod)
    step.delete_pod(pod.uid)
    remember_pod(step, pod.uid, version, pod.opened)


def _step(aggregate: NodeAggregate, event: PodEvent, rules: Rules) -> Step:
    step = Step(aggregate, rules, event.at_us, CauseKind.POD, event.origin)
    if event.is_undecidable:
        step.note = Note.UNDECIDABLE
    return step


def _marks(event: PodEvent) -> int:
    seen = event.pod
    marks = TERMINATING if seen.is_terminating else 0
    if seen.phase in TERMINAL_PHASES:
        marks |= FINISHED
    if seen.is_mirror:
        marks |= MIRROR
    if event.is_undecidable:
        marks |= OVER_LIMIT
    return marks
