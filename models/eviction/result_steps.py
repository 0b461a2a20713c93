"""The step about what an executor did with an attempt (semantics.md 12.8)."""

from typing import assert_never

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.lifecycle import report, wait_us
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import Eviction, PodState
from evictstream.models.eviction.step import DUPLICATE, STALE, Changes, Step
from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.models.messages.events import ResultEvent
from evictstream.models.messages.vocabulary import CauseKind, Outcome

_ACCEPTED = Outcome.ACCEPTED
_OBSERVED = Outcome.OBSERVED
_HELD = Outcome.HELD
_REPEATABLE = frozenset({_ACCEPTED, _HELD})
_NOT_FINAL = frozenset({None, _OBSERVED, *_REPEATABLE})

# Outcomes after which the pod is expected to go, so the next attempt waits for `RuleParameters.success_grace_us`.
_DELETION_EXPECTED = frozenset({Outcome.SUCCEEDED, Outcome.GONE})


def apply_result(aggregate: NodeAggregate, event: ResultEvent, rules: RuleParameters) -> Changes:
    """Apply what an executor did with an attempt (semantics.md 12.8).

    No result ends an eviction. It ends when a watch event shows the pod leaving, or when nothing is due any more. After
    `Succeeded` or `Gone` the next attempt waits for a grace time, after every other outcome for the retry wait.
    `Observed` is none, as no executor has tried: the first one is recorded. The attempt stays open, and `fire` does not
    repeat it before an executor that acts reports.

    A result counts only for the current attempt of the current eviction while that attempt is outstanding, and only
    once: a repeated result must not move the next attempt. Two exceptions. An executor that runs an attempt twice may
    fail first and succeed then, so a success counts after a failure. `Accepted` and `Held` come before any other
    outcome, and as often as the executor repeats them: each one moves the next attempt, `Accepted` up to a limit, and
    the first one is recorded.

    Returns:
        The changes; `STALE` for a result of something else, `DUPLICATE` if this attempt's result was counted.
    """
    pod = aggregate.pods.get(event.pod_uid)
    eviction = pod.eviction if pod is not None else None
    if pod is None or eviction is None:
        return STALE
    step = Step(aggregate, rules, at_us=event.at_us, kind=CauseKind.RESULT, origin=event.origin)
    if not _is_current(step, event, pod, eviction):
        return STALE
    counted, reported = eviction.outcome, event.outcome
    is_final = counted not in _NOT_FINAL
    if is_final and (counted in _DELETION_EXPECTED or reported not in _DELETION_EXPECTED):
        return DUPLICATE
    if reported is _OBSERVED and counted is not None:
        return DUPLICATE
    next_attempt_us = event.at_us + _pause_us(event, rules)
    if reported is _ACCEPTED:
        next_attempt_us = min(next_attempt_us, (eviction.issued_at_us or 0) + rules.accepted_limit_us)
    is_repeated = reported is counted and event.held_by == eviction.held_by
    if is_repeated and reported in _REPEATABLE and next_attempt_us <= (eviction.next_attempt_us or 0):
        return DUPLICATE
    report(step, pod, eviction, event, next_attempt_us)
    return step.finish()


def _is_current(step: Step, event: ResultEvent, pod: PodState, eviction: Eviction) -> bool:
    return (
        eviction.state in OUTSTANDING
        and eviction.attempt == event.attempt
        and step.eviction_id(pod, eviction) == event.eviction_id
    )


def _pause_us(event: ResultEvent, rules: RuleParameters) -> int:
    match event.outcome:
        case Outcome.ACCEPTED | Outcome.HELD:
            return rules.accepted_silence_us
        case Outcome.SUCCEEDED | Outcome.GONE:
            return rules.success_grace_us
        case Outcome.FAILED | Outcome.OBSOLETE | Outcome.REFUSED | Outcome.OBSERVED:  # the last one moves nothing
            return wait_us(rules.retry_base_us, rules.retry_ceiling_us, event.eviction_id, event.attempt)
        case _:
            assert_never(event.outcome)
