"""The story of a pod in plain sentences, told from its decision records (docs/messages.md#decisions)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from evictstream.models.instants import MICROSECONDS_PER_SECOND, instant_us
from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.vocabulary import CauseKind, DecisionKind, DecisionWarning, Verdict

ENDED_BY: Final[dict[Verdict, str]] = {
    Verdict.TAINT_REMOVED: "the taint is gone",
    Verdict.TOLERATED: "the pod tolerates the taint for ever now",
    Verdict.POD_GONE: "the pod is deleted",
    Verdict.POD_REPLACED: "another pod has its name",
    Verdict.POD_FINISHED: "the pod has finished",
    Verdict.POD_TERMINATING: "the pod is terminating",
    Verdict.POD_MIRROR: "it stands for a static pod",
    Verdict.NODE_GONE: "the node is gone",
    Verdict.CLUSTER_FORGOTTEN: "an operator took the cluster out of the service",
    Verdict.UNDECIDABLE: "its lists are beyond a limit, so it is left alone",
}
CAUSES: Final[dict[CauseKind, str]] = {
    CauseKind.NODE: "a change of the node",
    CauseKind.POD: "a change of the pod",
    CauseKind.RESULT: "a result",
    CauseKind.TIMER: "the timer",
    CauseKind.CATCH_UP: "a take-over, which decides everything anew",
    CauseKind.FORGET: "an operator",
}


class StoryLine(NamedTuple):
    """One sentence; `at` is the instant of what led to it (RFC 3339)."""

    at: str
    text: str


def story(decisions: Iterable[DecisionRecord]) -> Iterator[StoryLine]:
    """Tell the decisions about one pod, in their order."""
    for decision in decisions:
        yield StoryLine(decision.cause.at, " ".join(_sentences(decision)))


def _sentences(it: DecisionRecord) -> Iterator[str]:
    if it.decision in _PLANNED:
        yield _stay(it)
        yield _PLANNED[it.decision](it)
    else:
        if it.due_cause is not None:
            yield _stay(it)
            yield f"It has to leave at once, because of {CAUSES[it.due_cause.kind]}."
        yield _DONE[it.decision](it)
    if DecisionWarning.LATER_TOLERATION_DIFFERS in it.warnings:
        yield "A later toleration of the pod matches the taint with another time; the first one decides."


def _reported(it: DecisionRecord) -> str:
    reason = f" ({it.outcome_reason})" if it.outcome_reason else ""
    again = (
        "" if it.next_attempt_at is None else f" Should the pod stay, the next attempt comes at {it.next_attempt_at}."
    )
    return f"The executor reports {it.outcome}{reason}.{again}"


def _ended(it: DecisionRecord) -> str:
    return ENDED_BY.get(it.verdict, str(it.verdict))


def _stay(it: DecisionRecord) -> str:
    taint, since = taint_text(it.taint), f"since {it.window_start}"
    if it.toleration is None:
        return f"No toleration covers the taint {taint} of {it.node}, there {since}."
    seconds = it.toleration.toleration_seconds
    stay = "for ever" if seconds is None else f"for {seconds} s"
    begin = "" if it.outage_start is None else f", counted from the begin of the outage at {it.outage_start}"
    return f"The toleration {_toleration(it.toleration)} covers the taint {taint} of {it.node} {stay} {since}{begin}."


def _toleration(toleration: Toleration) -> str:
    key = toleration.key or "of any key"
    value = f"={toleration.value}" if toleration.operator in {"", "Equal"} and toleration.key else ""
    return f"{key}{value}" + (f":{toleration.effect}" if toleration.effect else "")


def _moved(it: DecisionRecord) -> str:
    return "" if it.previous is None else f"from {it.previous.deadline} "


def _late(it: DecisionRecord) -> str:
    late = _seconds_after(it.known_at or it.deadline, it.cause.at)
    known = "" if it.known_at is None else f" was known, which was at {it.known_at}"
    if late < 1:
        return f"as soon as its deadline{known}" if known else "on time"
    return f"{late:.1f} s after its deadline{known}: a closed gate, a take-over or a backlog held it"


def _early(it: DecisionRecord) -> str:
    early = _seconds_after(it.cause.at, it.deadline)
    return f"{early:.1f} s before its deadline" if early >= 0 else "after its deadline"


def _seconds_after(one: str, other: str) -> float:
    return (instant_us(other) - instant_us(one)) / MICROSECONDS_PER_SECOND


_PLANNED: Final[dict[DecisionKind, Callable[[DecisionRecord], str]]] = {
    DecisionKind.SCHEDULED: lambda it: f"It has to leave at {it.deadline}.",
    DecisionKind.DUE: lambda _: "It has to leave at once.",
    DecisionKind.MOVED: lambda it: (
        f"Its deadline moves {_moved(it)}to {it.deadline}, because of {CAUSES[it.cause.kind]}."
    ),
    DecisionKind.WITHDRAWN: lambda it: f"What was issued is withdrawn; it has to leave at {it.deadline}.",
}
_DONE: Final[dict[DecisionKind, Callable[[DecisionRecord], str]]] = {
    DecisionKind.ISSUED: lambda it: f"The eviction is issued, {_late(it)}.",
    DecisionKind.RETRIED: lambda it: f"Attempt {it.attempt} is issued: the pod is still there, and the reason too.",
    DecisionKind.REPORTED: _reported,
    DecisionKind.CANCELLED: lambda it: f"The eviction is cancelled {_early(it)}: {_ended(it)}.",
    DecisionKind.COMPLETED: lambda it: f"The eviction is done: {_ended(it)}.",
}
