"""From decision to action: the life of an eviction (semantics.md 12.6).

    from              to         when
    (none)            scheduled  the pod is due, now or later
    scheduled         (none)     nothing is due any more, or the pod leaves
    scheduled         issued     fire
    issued            retrying   fire, or a result other than `Succeeded` and `Gone`
    retrying          retrying   fire
    issued, retrying  scheduled  an event moves the deadline ahead
    issued, retrying  (none)     nothing is due any more
    issued, retrying  done       the pod leaves

An event can cause every transition except `fire`: it never issues an eviction. For a pod that is due at once an event
opens an eviction, without a `Schedule`, and asks for a wake-up. Only the timer step issues, when the gates allow it.
"""

import zlib
from typing import Final, assert_never

from evictstream.models.eviction.decision import NothingDue, decide
from evictstream.models.eviction.records import as_previous, issued_at_us, record, send
from evictstream.models.eviction.state import Due, Eviction, NodeAggregate, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.messages.vocabulary import Action, DecisionKind, EvictionState, Verdict

_SCHEDULED = EvictionState.SCHEDULED  # see `evictstream.models.eviction` for these constants
_ISSUED = EvictionState.ISSUED
_RETRYING = EvictionState.RETRYING
_DONE = EvictionState.DONE
_SCHEDULE = Action.SCHEDULE
_EVICT = Action.EVICT
_DECIDED_SCHEDULED = DecisionKind.SCHEDULED
_DECIDED_DUE = DecisionKind.DUE
_DECIDED_ISSUED = DecisionKind.ISSUED
_DECIDED_RETRIED = DecisionKind.RETRIED
_TOLERATION_EXPIRES = Verdict.TOLERATION_EXPIRES

_SPREAD_PARTS: Final = 10  # a wait is shortened by up to a tenth, which spreads 45,000 equal timers over seconds
_HASH_BITS: Final = 32  # of a CRC-32
# Most doublings of a wait. 2**40 microseconds are 12 days, above any ceiling; more would only make the number large
# after years of attempts.
_LARGEST_SHIFT: Final = 40

_LEAVING = frozenset({Verdict.POD_TERMINATING, Verdict.POD_FINISHED, Verdict.POD_GONE, Verdict.POD_REPLACED})


def has_to_decide(aggregate: NodeAggregate, pod: PodState) -> bool:
    """Return whether `reconcile` may change anything: without taints only an eviction that has to end."""
    return pod.eviction is not None or (aggregate.node is not None and bool(aggregate.node.taints))


def reconcile(step: Step, pod: PodState) -> Due | None:
    """Decide about a pod and change its eviction to match the decision; never issues.

    Returns:
        What is due for the pod; None if nothing is, or if its eviction is done.
    """
    eviction = pod.eviction
    if eviction is not None and eviction.state is _DONE:
        return None
    found = decide(step.aggregate.node, pod, step.rules, step.coverages)
    if isinstance(found, NothingDue):
        if eviction is not None:
            end(step, pod, eviction, _verdict(step, found, eviction))
        return None
    if eviction is None:
        _open(step, pod, found)
        return found
    if eviction.state is _SCHEDULED:
        _reschedule(step, pod, eviction, found)
    elif step.is_from_event and _is_ahead(found, step.at_us) and found.deadline_us > (eviction.issued_at_us or 0):
        _withdraw(step, pod, eviction, found)
    return found


def end(step: Step, pod: PodState, eviction: Eviction, verdict: Verdict) -> None:
    """End an eviction: complete it if it was issued and the pod leaves, otherwise cancel it.

    If it was announced or issued, cancelling sends exactly one `Cancel`. A completed eviction sends nothing and keeps
    the state `done` until the pod's row is deleted, so no later event of that pod can open another one.
    """
    previous = as_previous(eviction)
    is_issued = eviction.state in (_ISSUED, _RETRYING)
    eviction.next_attempt_us = eviction.unanswered_since_us = None
    if is_issued and verdict in _LEAVING:
        eviction.state = _DONE
        record(step, DecisionKind.COMPLETED, pod, eviction, verdict, previous)
        step.write_eviction(pod)
        return
    if is_issued or eviction.is_announced:
        send(step, Action.CANCEL, pod, eviction, verdict)
    record(step, DecisionKind.CANCELLED, pod, eviction, verdict, previous)
    pod.eviction = None
    step.write_eviction(pod)
    step.write_pod(pod)  # the count of opened evictions outlives the eviction's row


def issue(step: Step, pod: PodState, eviction: Eviction, due: Due) -> None:
    """Issue the next attempt, which is owed now. Only `fire` may call this."""
    previous = as_previous(eviction)
    is_first = eviction.state is _SCHEDULED
    _take(step, pod, eviction, due)
    eviction.attempt += 1
    eviction.state = _ISSUED if is_first else _RETRYING
    # The wait is counted from `issuedAt`, so that an executor that does the same sees no early repeat.
    eviction.issued_at_us = issued_at_us(step, due)
    eviction.outcome = None
    if eviction.unanswered_since_us is None:
        eviction.unanswered_since_us = eviction.issued_at_us
    send(step, _EVICT, pod, eviction, due.verdict)
    rules = step.rules
    eviction.next_attempt_us = eviction.issued_at_us + wait_us(
        rules.silence_us, rules.retry_ceiling_us, step.commands[-1].eviction_id, eviction.attempt
    )
    record(step, _DECIDED_ISSUED if is_first else _DECIDED_RETRIED, pod, eviction, due.verdict, previous)
    step.write_eviction(pod)
    step.wake(eviction.next_attempt_us, pod.uid)


def _open(step: Step, pod: PodState, due: Due) -> None:
    eviction = pod.eviction = Eviction(
        state=_SCHEDULED, ordinal=pod.opened, due=due, known_us=_known_us(step, pod, due)
    )
    pod.opened += 1
    if _is_ahead(due, step.at_us):
        eviction.is_announced = True
        send(step, _SCHEDULE, pod, eviction, due.verdict)
        record(step, _DECIDED_SCHEDULED, pod, eviction, due.verdict)
    else:
        record(step, _DECIDED_DUE, pod, eviction, due.verdict)
    step.write_eviction(pod)
    step.wake(due.deadline_us, pod.uid)


def _reschedule(step: Step, pod: PodState, eviction: Eviction, due: Due) -> None:
    if due == eviction.due:
        return
    previous = as_previous(eviction)
    if _take(step, pod, eviction, due):
        if _is_ahead(due, step.at_us):
            eviction.is_announced = True
            send(step, _SCHEDULE, pod, eviction, due.verdict)
        record(step, DecisionKind.MOVED, pod, eviction, due.verdict, previous)
        step.wake(due.deadline_us, pod.uid)
    step.write_eviction(pod)  # the reason alone may have changed; a later record then names the right one


def _withdraw(step: Step, pod: PodState, eviction: Eviction, due: Due) -> None:
    """Take an issued attempt back: the higher revision of the `Schedule` withdraws it."""
    previous = as_previous(eviction)
    eviction.state = _SCHEDULED
    eviction.due = due
    eviction.known_us = None
    eviction.revision += 1
    eviction.is_announced = True
    eviction.next_attempt_us = eviction.unanswered_since_us = None
    send(step, _SCHEDULE, pod, eviction, due.verdict)
    record(step, DecisionKind.WITHDRAWN, pod, eviction, due.verdict, previous)
    step.write_eviction(pod)
    step.wake(due.deadline_us, pod.uid)


def _take(step: Step, pod: PodState, eviction: Eviction, due: Due) -> bool:
    """Take over what is due now; returns whether the deadline has moved."""
    has_moved = due.deadline_us != eviction.due.deadline_us
    eviction.due = due
    if has_moved:
        eviction.revision += 1
        eviction.known_us = _known_us(step, pod, due)
    return has_moved


def _known_us(step: Step, pod: PodState, due: Due) -> int | None:
    """Return when a deadline that is new was known, if only after it.

    What makes a deadline may come after it: an edit of tolerations, a health taint that goes on with an older outage,
    and other rules, which a catch-up is the first to follow.
    """
    known_us = step.at_us if step.is_catch_up else max(pod.tolerations_since_us, due.window_start_us)
    return known_us if known_us > due.deadline_us else None


def _is_ahead(due: Due, at_us: int) -> bool:
    """Return whether the pod is due later. An untolerated pod is due now, whichever of node and pod was read first."""
    return due.verdict is _TOLERATION_EXPIRES and due.deadline_us > at_us


def _verdict(step: Step, found: NothingDue, eviction: Eviction) -> Verdict:
    match found:
        case NothingDue.TERMINATING:
            return Verdict.POD_TERMINATING
        case NothingDue.FINISHED:
            return Verdict.POD_FINISHED
        case NothingDue.MIRROR:
            return Verdict.POD_MIRROR
        case NothingDue.NODE_UNKNOWN:
            return Verdict.NODE_GONE
        case NothingDue.UNDECIDABLE:
            return Verdict.UNDECIDABLE
        case NothingDue.NO_TAINT:
            return Verdict.TAINT_REMOVED
        case NothingDue.TOLERATED:
            node = step.aggregate.node
            key = eviction.due.taint.key
            is_there = node is not None and any(state.taint.key == key for state in node.taints)
            return Verdict.TOLERATED if is_there else Verdict.TAINT_REMOVED
        case _:
            assert_never(found)


def wait_us(base_us: int, ceiling_us: int, eviction_id: str, attempt: int) -> int:
    """Compute the wait after an attempt.

    The wait is `base_us`, doubled for every attempt after the first, at most `ceiling_us`; then it is shortened by up
    to a tenth. A hash of eviction and attempt says by how much, not chance: a replay and a new owner compute the same
    instant.

    Args:
        base_us: wait after attempt 1, microseconds.
        ceiling_us: longest wait, microseconds.
        eviction_id: the eviction.
        attempt: the attempt that was made, from 1; there is no upper limit.

    Returns:
        Microseconds, at least one.
    """
    longest_us = min(base_us << min(attempt - 1, _LARGEST_SHIFT), ceiling_us)
    fraction = zlib.crc32(f"{eviction_id}:{attempt}".encode())  # spreads well enough, in a tenth of a digest's time
    return max(1, longest_us - longest_us * fraction // (_SPREAD_PARTS << _HASH_BITS))
