"""The step for what an executor did with an attempt (semantics.md 12.8).

No result ends an eviction. `Succeeded` and `Gone` merely stop repeats for a grace time; everything else leaves it owed
with a next attempt. Only what happens to the pod, which the watch tells, is the end.
"""

from typing import assert_never

from evictstream.models.eviction.backoff import wait_us
from evictstream.models.eviction.changes import DUPLICATE, STALE, Changes
from evictstream.models.eviction.identity import eviction_id
from evictstream.models.eviction.records import before, record
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.state import Eviction, NodeAggregate
from evictstream.models.eviction.step import Step
from evictstream.models.messages.events import ResultEvent
from evictstream.models.messages.vocabulary import CauseKind, DecisionKind, EvictionState, Outcome

_GRANTING = frozenset({Outcome.SUCCEEDED, Outcome.GONE})


def apply_result(aggregate: NodeAggregate, event: ResultEvent, rules: Rules) -> Changes:
    """Take in a result.

    Counts only for the current attempt of the current eviction while that is outstanding, and once: a repeated result
    must not move the next attempt. One exception: an executor that runs an attempt twice may fail first and succeed
    then, so a success counts after a failure.

    Returns:
        The changes; `STALE` for a result of something else, `DUPLICATE` if this attempt's result was counted.
    """
    pod = aggregate.pods.get(event.pod_uid)
    eviction = pod.eviction if pod is not None else None
    if pod is None or eviction is None or not _is_current(aggregate, event, eviction):
        return STALE
    if eviction.outcome is not None and (eviction.outcome in _GRANTING or event.outcome not in _GRANTING):
        return DUPLICATE
    step = Step(aggregate, rules, event.at_us, CauseKind.RESULT, event.origin)
    previous = before(eviction)
    eviction.outcome = event.outcome
    eviction.next_attempt_us = event.at_us + _pause_us(event, rules)
    if event.outcome not in _GRANTING:
        eviction.state = EvictionState.RETRYING
    record(
        step,
        DecisionKind.REPORTED,
        pod,
        eviction,
        eviction.due.verdict,
        previous,
        outcome_reason=event.reason,
    )
    step.write_eviction(pod)
    step.wake(eviction.next_attempt_us, pod.uid)
    return step.finish()


def _is_current(aggregate: NodeAggregate, event: ResultEvent, eviction: Eviction) -> bool:
    return (
        eviction.state in (EvictionState.ISSUED, EvictionState.RETRYING)
        and eviction.attempt == event.attempt
        and eviction_id(aggregate.cluster, event.pod_uid, eviction.ordinal) == event.eviction_id
    )


def _pause_us(event: ResultEvent, rules: Rules) -> int:
    match event.outcome:
        case Outcome.SUCCEEDED | Outcome.GONE:
            return rules.success_grace_us
        case Outcome.FAILED | Outcome.OBSOLETE | Outcome.REFUSED | Outcome.OBSERVED:
            return wait_us(rules.retry_base_us, rules.retry_ceiling_us, event.eviction_id, event.attempt)
        case _:
            assert_never(event.outcome)
