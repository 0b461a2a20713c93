"""From decision to action: which transition of `transitions` a decision or a result means (semantics.md 12.6).

An event can cause every transition except those by `fire`: it never issues an eviction. For a pod that is due at once
an event opens an eviction, without a `Schedule`, and asks for a wake-up. Only the timer step issues, when the gates
allow it.
"""

import zlib
from typing import Final, assert_never

import msgspec

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.built_in_timer import Before, next_timer_us
from evictstream.models.eviction.decision import NothingDue, decide
from evictstream.models.eviction.rendering import render
from evictstream.models.eviction.state import ONLY_OBSERVED_US, Due, Eviction, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.eviction.transitions import OUTSTANDING, Transition
from evictstream.models.messages.events import ResultEvent
from evictstream.models.messages.vocabulary import Action, DecisionKind, EvictionState, Outcome, Verdict

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

_LEAVING = (Verdict.POD_TERMINATING, Verdict.POD_FINISHED, Verdict.POD_GONE, Verdict.POD_REPLACED)
FAILURES = (Outcome.FAILED, Outcome.OBSOLETE, Outcome.REFUSED)


def has_to_decide(aggregate: NodeAggregate, pod: PodState) -> bool:
    """Return whether `reconcile` may change anything: without taints only an eviction that has to end."""
    return pod.eviction is not None or (aggregate.node is not None and bool(aggregate.node.taints))


def reconcile(step: Step, pod: PodState) -> Due | None:
    """Decide about a pod and change its eviction to match the decision; never issues.

    Returns:
        What is due for the pod; None if nothing is, or if its eviction is done.
    """
    if pod.eviction is not None and pod.eviction.state is _DONE:
        return None
    due = decide(step.aggregate.node, pod, step.rules, step.coverages)
    change = _change(step, pod, due)
    if step.before is not None:
        change = _timed(step, pod, change, step.before)
    if change is not None:
        render(step, pod, change)
    return None if isinstance(due, NothingDue) else due


def _timed(step: Step, pod: PodState, change: Transition | None, before: Before) -> Transition | None:
    """Let the eviction that a pod has afterwards keep the timer of Kubernetes' own controller."""
    after = pod.eviction if change is None else change.after
    if after is None or after.state is _DONE:
        return change
    timer_us = next_timer_us(
        before, step.aggregate.node, pod, at_us=step.at_us, rules=step.rules, coverages=step.coverages
    )
    if timer_us == after.built_in_us:
        return change
    after = msgspec.structs.replace(after, built_in_us=timer_us)
    return Transition(pod.eviction, after) if change is None else msgspec.structs.replace(change, after=after)


def issue(step: Step, pod: PodState, eviction: Eviction, due: Due) -> None:
    """Issue the next attempt, which is owed now. Only `fire` may call this."""
    is_first, is_observed = eviction.state is _SCHEDULED, eviction.first_issued_us == ONLY_OBSERVED_US
    attempt = eviction.attempt + 1
    # The wait is counted from `issuedAt`, so that an executor that does the same sees no early repeat.
    issued_at_us = step.issued_at_us(due)
    rules, eviction_id = step.rules, step.eviction_id(pod, eviction)
    revision, known_us = _newest(step, pod, eviction, due)
    after = msgspec.structs.replace(
        eviction,
        state=_ISSUED if is_first else _RETRYING,
        due=due,
        revision=revision,
        attempt=attempt,
        issued_at_us=issued_at_us,
        first_issued_us=issued_at_us if is_first or is_observed else eviction.first_issued_us,
        next_attempt_us=issued_at_us + wait_us(rules.silence_us, rules.retry_ceiling_us, eviction_id, attempt),
        outcome=None,
        held_by=None,
        unanswered_since_us=issued_at_us if eviction.unanswered_since_us is None else eviction.unanswered_since_us,
        known_us=known_us,
    )
    render(step, pod, Transition(eviction, after, _DECIDED_ISSUED if is_first else _DECIDED_RETRIED, _EVICT))


def report(step: Step, pod: PodState, eviction: Eviction, result: ResultEvent, next_attempt_us: int) -> None:
    """Count a result of the current attempt; `Observed` leaves the attempt open."""
    outcome = result.outcome
    if outcome is Outcome.OBSERVED:
        after = msgspec.structs.replace(eviction, outcome=outcome, first_issued_us=ONLY_OBSERVED_US)
    else:
        after = msgspec.structs.replace(
            eviction,
            state=_RETRYING if outcome in FAILURES else eviction.state,
            next_attempt_us=next_attempt_us,
            outcome=outcome,
            held_by=result.held_by if outcome is Outcome.HELD else None,
            unanswered_since_us=None,
        )
    # `Accepted` and `Held` are repeated: only the first one is worth a record.
    is_repeated = eviction.outcome is outcome and eviction.held_by == after.held_by
    decision = None if is_repeated else DecisionKind.REPORTED
    render(step, pod, Transition(eviction, after, decision, outcome_reason=result.reason))


def remove(step: Step, pod: PodState, verdict: Verdict) -> None:
    """Remove a pod from its node, and end its eviction."""
    eviction = pod.eviction
    if eviction is not None and eviction.state is not _DONE:
        render(step, pod, _ending(eviction, verdict))
    step.aggregate.drop_pod(pod)
    step.delete_pod(pod)


def _change(step: Step, pod: PodState, due: Due | NothingDue) -> Transition | None:
    """Return what a decision means for the eviction of a pod, which is not done; None if it stays as it is."""
    eviction = pod.eviction
    if isinstance(due, NothingDue):
        return None if eviction is None else _ending(eviction, _verdict(step, due, eviction))
    if eviction is None:
        return _opening(step, pod, due)
    if eviction.state is _SCHEDULED:
        return None if due == eviction.due else _rescheduling(step, pod, eviction, due)
    if step.is_from_event and _is_ahead(due, step.at_us) and due.deadline_us > (eviction.issued_at_us or 0):
        return _withdrawal(eviction, due)
    return None


def _opening(step: Step, pod: PodState, due: Due) -> Transition:
    is_ahead = _is_ahead(due, step.at_us)
    after = Eviction(
        state=_SCHEDULED, ordinal=pod.opened, due=due, is_announced=is_ahead, known_us=_known_us(step, pod, due)
    )
    if is_ahead:
        return Transition(None, after, _DECIDED_SCHEDULED, _SCHEDULE)
    return Transition(None, after, _DECIDED_DUE)


def _rescheduling(step: Step, pod: PodState, eviction: Eviction, due: Due) -> Transition:
    if due.deadline_us == eviction.due.deadline_us:  # the reason alone has changed: a later record names the right one
        return Transition(eviction, msgspec.structs.replace(eviction, due=due))
    is_ahead = _is_ahead(due, step.at_us)
    revision, known_us = _newest(step, pod, eviction, due)
    after = msgspec.structs.replace(
        eviction, due=due, revision=revision, is_announced=is_ahead or eviction.is_announced, known_us=known_us
    )
    return Transition(eviction, after, DecisionKind.MOVED, _SCHEDULE if is_ahead else None)


def _withdrawal(eviction: Eviction, due: Due) -> Transition:
    """Take an issued attempt back: the higher revision of the `Schedule` withdraws it."""
    after = msgspec.structs.replace(
        eviction,
        state=_SCHEDULED,
        due=due,
        revision=eviction.revision + 1,
        is_announced=True,
        next_attempt_us=None,
        unanswered_since_us=None,
        known_us=None,
    )
    return Transition(eviction, after, DecisionKind.WITHDRAWN, _SCHEDULE)


def _ending(eviction: Eviction, verdict: Verdict) -> Transition:
    """Complete an eviction if it was issued and the pod leaves, otherwise cancel it.

    If it was announced or issued, cancelling sends exactly one `Cancel`. A completed eviction sends nothing and keeps
    the state `done` until the pod's row is deleted, so no later event of that pod can open another one.
    """
    is_issued = eviction.state in OUTSTANDING
    if is_issued and verdict in _LEAVING:
        done = msgspec.structs.replace(eviction, state=_DONE, next_attempt_us=None, unanswered_since_us=None)
        return Transition(eviction, done, DecisionKind.COMPLETED, verdict=verdict)
    action = Action.CANCEL if is_issued or eviction.is_announced else None
    return Transition(eviction, None, DecisionKind.CANCELLED, action, verdict=verdict)


def _newest(step: Step, pod: PodState, eviction: Eviction, due: Due) -> tuple[int, int | None]:
    """Return revision and `known_us` of an eviction whose due is now this one: other ones if the deadline moves."""
    if due.deadline_us == eviction.due.deadline_us:
        return eviction.revision, eviction.known_us
    return eviction.revision + 1, _known_us(step, pod, due)


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


def _verdict(step: Step, reason: NothingDue, eviction: Eviction) -> Verdict:
    match reason:
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
        case NothingDue.BUILT_IN:
            return Verdict.BUILT_IN
        case NothingDue.NO_TAINT:
            return Verdict.TAINT_REMOVED
        case NothingDue.TOLERATED:
            node = step.aggregate.node
            key = eviction.due.taint.key
            is_there = node is not None and any(state.taint.key == key for state in node.taints)
            return Verdict.TOLERATED if is_there else Verdict.TAINT_REMOVED
        case _:
            assert_never(reason)


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
