"""From the state to what is sent: commands and decision records."""

from evictstream.models.eviction.state import Due, Eviction, PodState
from evictstream.models.eviction.step import Step
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.matching import is_shadowing
from evictstream.models.messages.vocabulary import API_VERSION, Action, DecisionKind, DecisionWarning, Verdict
from evictstream.models.messages.wire import (
    COMMAND_KIND,
    DECISION_KIND,
    DecisionRecord,
    EvictionCommand,
    Previous,
    Reason,
)

_UNTOLERATED = Verdict.UNTOLERATED
_KINDS_WITH_WARNINGS = frozenset({DecisionKind.SCHEDULED, DecisionKind.DUE, DecisionKind.MOVED})


def issued_at_us(step: Step, due: Due) -> int:
    """Give a command's `issuedAt`: the step's instant, but not before its reason.

    The later of two topics may have been read first, or our clock be behind. The deadline of what is untolerated is
    the instant from which on it is, so nothing about it is older.
    """
    reason_us = due.deadline_us if due.verdict is _UNTOLERATED else due.window_start_us
    return max(step.at_us, reason_us)


def send(step: Step, action: Action, pod: PodState, eviction: Eviction, verdict: Verdict) -> None:
    """Add a command to the step.

    Args:
        step: being made.
        action: what the executor shall do.
        pod: the pod.
        eviction: its eviction as it is after the decision.
        verdict: why.
    """
    due = eviction.due
    cluster = step.aggregate.cluster
    namespace, _, name = pod.address.partition("/")
    step.commands.append(
        EvictionCommand(
            API_VERSION,
            COMMAND_KIND,
            action,
            step.eviction_id(pod, eviction),
            eviction.revision,
            eviction.attempt,
            cluster,
            namespace,
            name,
            pod.uid,
            step.aggregate.name,
            step.node_uid or "",
            Reason(verdict, due.taint, due.toleration),
            instant_text(due.window_start_us),
            instant_text(due.deadline_us),
            instant_text(issued_at_us(step, due)),
        )
    )


def before(eviction: Eviction) -> Previous:
    """Keep what an eviction is, to be shown as the previous decision once it has changed."""
    return Previous(eviction.state, instant_text(eviction.due.deadline_us), eviction.revision, eviction.attempt)


def record(
    step: Step,
    kind: DecisionKind,
    pod: PodState,
    eviction: Eviction,
    verdict: Verdict,
    previous: Previous | None = None,
    *,
    outcome_reason: str | None = None,
) -> None:
    """Add a decision record to the step.

    Args:
        step: being made.
        kind: what was decided.
        pod: the pod.
        eviction: its eviction as it is after the decision.
        verdict: why.
        previous: the eviction as it was before, None if it is new.
        outcome_reason: the executor's explanation, if a result is the cause.
    """
    due = eviction.due
    cluster = step.aggregate.cluster
    namespace, _, name = pod.address.partition("/")
    step.decisions.append(
        DecisionRecord(
            API_VERSION,
            DECISION_KIND,
            kind,
            verdict,
            step.eviction_id(pod, eviction),
            eviction.revision,
            eviction.attempt,
            cluster,
            namespace,
            name,
            pod.uid,
            step.aggregate.name,
            step.cause,
            due.taint,
            instant_text(due.window_start_us),
            instant_text(due.deadline_us),
            step.node_uid,
            due.toleration,
            None if due.outage_since_us is None else instant_text(due.outage_since_us),
            None if eviction.next_attempt_us is None else instant_text(eviction.next_attempt_us),
            eviction.outcome,
            outcome_reason or None,
            previous,
            _warnings(step, kind, pod, eviction),
        )
    )


def _warnings(step: Step, kind: DecisionKind, pod: PodState, eviction: Eviction) -> tuple[DecisionWarning, ...]:
    if kind in _KINDS_WITH_WARNINGS and is_shadowing(
        pod.tolerations, eviction.due.taint, comparison_operators=step.rules.comparison_operators
    ):
        return (DecisionWarning.LATER_TOLERATION_DIFFERS,)
    return ()
