"""From the state to what is sent: commands and decision records."""

from evictstream.models.eviction.state import Due, Eviction, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.matching import is_shadowing
from evictstream.models.messages.command import COMMAND_KIND, CommandReason, EvictionCommand
from evictstream.models.messages.decision import DECISION_KIND, DecisionRecord, PreviousDecision
from evictstream.models.messages.vocabulary import API_VERSION, Action, DecisionKind, DecisionWarning, Verdict

_UNTOLERATED = Verdict.UNTOLERATED
_SCHEDULED, _DUE, _MOVED = DecisionKind.SCHEDULED, DecisionKind.DUE, DecisionKind.MOVED
_ISSUED, _RETRIED = DecisionKind.ISSUED, DecisionKind.RETRIED


def issued_at_us(step: Step, due: Due) -> int:
    """Return a command's `issuedAt`: the step's instant, but not before the reason for the command.

    The step's instant may be earlier than the reason, if the later of two records was read first or if the worker's
    clock is behind. An untolerated pod's reason dates from its deadline, the latest of the changes that made it
    untolerated; otherwise the reason dates from the start of the window.
    """
    reason_us = due.deadline_us if due.verdict is _UNTOLERATED else due.window_start_us
    return step.at_us if step.at_us > reason_us else reason_us  # noqa: FURB136 - max() costs twice as much here


def send(step: Step, action: Action, pod: PodState, eviction: Eviction, verdict: Verdict) -> None:
    """Add a command to the step.

    Args:
        step: collects the command.
        action: what the executor has to do.
        pod: the pod.
        eviction: its eviction as it is after the decision.
        verdict: why.
    """
    due = eviction.due
    namespace, _, name = pod.address.partition("/")
    step.commands.append(
        EvictionCommand(
            api_version=API_VERSION,
            kind=COMMAND_KIND,
            action=action,
            eviction_id=step.eviction_id(pod, eviction),
            revision=eviction.revision,
            attempt=eviction.attempt,
            cluster=step.aggregate.cluster,
            namespace=namespace,
            pod=name,
            pod_uid=pod.uid,
            node=step.aggregate.name,
            node_uid=step.node_uid or "",
            reason=CommandReason(verdict, due.taint, due.toleration),
            window_start=instant_text(due.window_start_us),
            deadline=instant_text(due.deadline_us),
            issued_at=instant_text(issued_at_us(step, due)),
        )
    )


def as_previous(eviction: Eviction) -> PreviousDecision:
    """Describe the eviction as it is now, for `previous` of the next decision record."""
    return PreviousDecision(
        state=eviction.state,
        deadline=instant_text(eviction.due.deadline_us),
        revision=eviction.revision,
        attempt=eviction.attempt,
    )


def record(
    step: Step,
    kind: DecisionKind,
    pod: PodState,
    eviction: Eviction,
    verdict: Verdict,
    previous: PreviousDecision | None = None,
    *,
    outcome_reason: str | None = None,
) -> None:
    """Add a decision record to the step.

    Args:
        step: collects the record.
        kind: what was decided.
        pod: the pod.
        eviction: its eviction as it is after the decision.
        verdict: why.
        previous: the eviction as it was before, None if it is new.
        outcome_reason: the executor's explanation, if a result is the cause.
    """
    due = eviction.due
    heard_us = step.heard_us if kind is _ISSUED or kind is _RETRIED else None
    namespace, _, name = pod.address.partition("/")
    step.decisions.append(
        DecisionRecord(
            api_version=API_VERSION,
            kind=DECISION_KIND,
            decision=kind,
            verdict=verdict,
            eviction_id=step.eviction_id(pod, eviction),
            revision=eviction.revision,
            attempt=eviction.attempt,
            cluster=step.aggregate.cluster,
            namespace=namespace,
            pod=name,
            pod_uid=pod.uid,
            node=step.aggregate.name,
            cause=step.cause,
            taint=due.taint,
            window_start=instant_text(due.window_start_us),
            deadline=instant_text(due.deadline_us),
            node_uid=step.node_uid,
            toleration=due.toleration,
            outage_start=None if due.outage_since_us is None else instant_text(due.outage_since_us),
            known_at=None if eviction.known_us is None else instant_text(eviction.known_us),
            next_attempt_at=None if eviction.next_attempt_us is None else instant_text(eviction.next_attempt_us),
            heard_at=None if heard_us is None else instant_text(heard_us),
            outcome=eviction.outcome,
            outcome_reason=outcome_reason or None,
            previous=previous,
            warnings=_warnings(step, pod, eviction) if kind is _SCHEDULED or kind is _DUE or kind is _MOVED else (),
        )
    )


def _warnings(step: Step, pod: PodState, eviction: Eviction) -> tuple[DecisionWarning, ...]:
    operators = step.rules.comparison_operators
    if is_shadowing(pod.tolerations, eviction.due.taint, comparison_operators=operators):
        return (DecisionWarning.LATER_TOLERATION_DIFFERS,)
    return ()
