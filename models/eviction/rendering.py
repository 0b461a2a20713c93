"""From a transition to what is written and sent: rows, commands, decision records, wake-ups."""

from evictstream.models.eviction.state import Eviction, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.eviction.transitions import Transition, move
from evictstream.models.instants import LAST_INSTANT_US, instant_text
from evictstream.models.kubernetes.matching import is_shadowing
from evictstream.models.messages.command import COMMAND_KIND, CommandReason, EvictionCommand
from evictstream.models.messages.decision import DECISION_KIND, DecisionRecord, PolicyClause, PreviousDecision
from evictstream.models.messages.vocabulary import (
    API_VERSION,
    Action,
    DecisionKind,
    DecisionWarning,
    Outcome,
    written_outcome,
)
from evictstream.models.steering import holds

_SCHEDULED, _DUE, _MOVED = DecisionKind.SCHEDULED, DecisionKind.DUE, DecisionKind.MOVED
_ISSUED, _RETRIED = DecisionKind.ISSUED, DecisionKind.RETRIED
_OBSERVED = Outcome.OBSERVED


def render(step: Step, pod: PodState, change: Transition) -> None:
    """Change a pod's eviction, and add to the step all that follows from it.

    Each change writes the eviction's row, and asks for a wake-up if it moves the instant of the next decision.

    Raises:
        TransitionError: see `move`.
    """
    eviction = move(pod, change)
    step.moves.append((change.before, change.after))
    if step.aggregate.workloads is not None:
        step.aggregate.workloads.moved(step.aggregate, pod, change.before)
    if change.decision is not None:
        _tell(step, pod, eviction, change, change.decision)
    step.write_eviction(pod)
    before, after = change.before, change.after
    if after is None:
        step.write_pod(pod)  # the count of opened evictions outlives the eviction's row
        return
    wakeup_us = after.wakeup_us
    if wakeup_us is not None and (before is None or wakeup_us != before.wakeup_us):
        step.wake(wakeup_us, pod.uid)


def _tell(step: Step, pod: PodState, eviction: Eviction, change: Transition, decision: DecisionKind) -> None:
    """Add the command, if there is one, and the decision record, which has much in common with it."""
    due, before, aggregate = eviction.due, change.before, step.aggregate
    eviction_id = step.eviction_id(pod, eviction)
    namespace, _, name = pod.address.partition("/")
    verdict = due.verdict if change.verdict is None else change.verdict
    patience_us = step.patience_us if change.action is Action.EVICT else None
    window_start, deadline = instant_text(due.window_start_us), instant_text(due.deadline_us)
    if change.action is not None:
        step.commands.append(
            EvictionCommand(
                api_version=API_VERSION,
                kind=COMMAND_KIND,
                action=change.action,
                eviction_id=eviction_id,
                revision=eviction.revision,
                attempt=eviction.attempt,
                cluster=aggregate.cluster,
                namespace=namespace,
                pod=name,
                pod_uid=pod.uid,
                node=aggregate.name,
                node_uid=step.node_uid or "",
                reason=CommandReason(verdict, due.taint, due.toleration),
                window_start=window_start,
                deadline=deadline,
                issued_at=instant_text(step.issued_at_us(due)),
                delete_after=None if patience_us is None else _after(due.deadline_us, patience_us),
            )
        )
    is_observed = eviction.outcome is _OBSERVED  # no attempt follows before an executor reports
    next_attempt_us = None if change.after is None or is_observed else eviction.next_attempt_us
    is_issue = decision is _ISSUED or decision is _RETRIED
    held_by = step.held_by if is_issue else eviction.held_by
    is_of_policy = held_by is not None and holds.is_of_policy(held_by)
    heard_us = step.heard_us if is_issue else None
    has_new_deadline = decision is _SCHEDULED or decision is _DUE or decision is _MOVED
    step.decisions.append(
        DecisionRecord(
            api_version=API_VERSION,
            kind=DECISION_KIND,
            decision=decision,
            verdict=verdict,
            eviction_id=eviction_id,
            revision=eviction.revision,
            attempt=eviction.attempt,
            cluster=aggregate.cluster,
            namespace=namespace,
            pod=name,
            pod_uid=pod.uid,
            node=aggregate.name,
            cause=step.cause,
            taint=due.taint,
            window_start=window_start,
            deadline=deadline,
            node_uid=step.node_uid,
            toleration=due.toleration,
            outage_start=None if due.outage_since_us is None else instant_text(due.outage_since_us),
            known_at=None if eviction.known_us is None else instant_text(eviction.known_us),
            built_in_at=None if eviction.built_in_us is None else instant_text(eviction.built_in_us),
            next_attempt_at=None if next_attempt_us is None else instant_text(next_attempt_us),
            heard_at=None if heard_us is None else instant_text(heard_us),
            outcome=written_outcome(eviction.outcome),
            held_by=None if is_of_policy else held_by,
            policy=_policy_clause(held_by) if held_by is not None and is_of_policy else None,
            outcome_reason=change.outcome_reason or None,
            previous=None if before is None else _previous(before),
            warnings=_warnings(step, pod, eviction) if has_new_deadline else (),
        )
    )


def _after(deadline_us: int, patience_us: int) -> str:
    return instant_text(min(deadline_us + patience_us, LAST_INSTANT_US))


def _policy_clause(held_by: str) -> PolicyClause:
    _, name, revision, clause = held_by.split("/")
    return PolicyClause(name, int(revision), clause)


def _previous(eviction: Eviction) -> PreviousDecision:
    return PreviousDecision(
        state=eviction.state,
        deadline=instant_text(eviction.due.deadline_us),
        revision=eviction.revision,
        attempt=eviction.attempt,
    )


def _warnings(step: Step, pod: PodState, eviction: Eviction) -> tuple[DecisionWarning, ...]:
    operators = step.rules.comparison_operators
    if is_shadowing(pod.tolerations, eviction.due.taint, comparison_operators=operators):
        return (DecisionWarning.LATER_TOLERATION_DIFFERS,)
    return ()
