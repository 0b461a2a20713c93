"""The story of a pod in plain sentences, told from its decision records (docs/messages.md#decisions).

A sentence says what its record says, and no more: where the record does not hold a cause, none is named.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import UNSET

from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.models.kubernetes.handed_over import for_built_in
from evictstream.models.kubernetes.matching import bounded_seconds
from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.vocabulary import (
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
)

ON_TIME_US: Final = SECOND_US
"""Less is no lateness: a transaction and a clock take as much."""


class Teller(enum.StrEnum):
    """Where a sentence comes from."""

    RECORDED = "recorded"
    """The service has decided so: its own record says it."""
    REPLAY = "replay"
    """The service's rules decide so about a recording, without what held a worker up."""
    PLAYED = "played"
    """It follows from an executor that a replay plays: neither it nor the pod's end was recorded."""


class SourcedDecision(NamedTuple):
    """A decision with where it comes from.

    Attributes:
        came_us: when the record was written, or was decided in a replay; microseconds since 1970.
    """

    record: DecisionRecord
    came_us: int
    teller: Teller


class StoryLine(NamedTuple):
    """One sentence or a few; `at` is the instant of what led to it (RFC 3339)."""

    at: str
    teller: Teller
    text: str


class _OpenEviction(NamedTuple):
    """What has been said of an open eviction: its deadline and when that came, and the reason.

    Attributes:
        built_in_us: when the timer of Kubernetes' own controller fires, which it sets once in a window
            (semantics.md 12.12); None if it has none.
    """

    deadline: str
    came_us: int
    reason: tuple[object, ...]
    built_in_us: int | None


class Storyteller:
    """Tells decisions one after the other, those of one eviction in their order.

    It keeps some 200 bytes for each open eviction, so that a delay can be explained.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[Teller, str, str], _OpenEviction] = {}

    def tell(self, decision: SourcedDecision) -> StoryLine:
        """Tell the next decision."""
        it = decision.record
        about = (_run_of(decision.teller), it.cluster, it.eviction_id)
        earlier = self._open.get(about)
        text = " ".join(_sentences(decision, earlier))
        if it.decision in (DecisionKind.CANCELLED, DecisionKind.COMPLETED):
            self._open.pop(about, None)
        else:
            came_us = decision.came_us if earlier is None or earlier.deadline != it.deadline else earlier.came_us
            self._open[about] = _OpenEviction(it.deadline, came_us, _reason(it), _built_in_us(it, earlier))
        return StoryLine(it.cause.at, decision.teller, text)


def story(decisions: Iterable[SourcedDecision]) -> Iterator[StoryLine]:
    """Tell decisions, those of one eviction in their order."""
    return map(Storyteller().tell, decisions)


def _run_of(teller: Teller) -> Teller:
    """Return `REPLAY` for what a replay plays: both are one run."""
    return Teller.REPLAY if teller is Teller.PLAYED else teller


def _reason(it: DecisionRecord) -> tuple[object, ...]:
    return it.taint, it.toleration, it.window_start, it.outage_start


def _is_same_window(it: DecisionRecord, earlier: _OpenEviction) -> bool:
    taint, _, window_start, _ = earlier.reason
    return (taint, window_start) == (it.taint, it.window_start)


def _built_in_us(it: DecisionRecord, earlier: _OpenEviction | None) -> int | None:
    """Return when Kubernetes' own controller evicts the pod; an edit in the window changes nothing about that.

    Records of before, and of clusters where that controller is not known to be on, do not say it.
    """
    if it.built_in_at is not None:
        return instant_us(it.built_in_at)
    if earlier is not None and _is_same_window(it, earlier):
        return earlier.built_in_us
    if it.toleration is None or it.toleration.built_in_seconds is UNSET:
        return None
    (counted,) = for_built_in((it.toleration,))
    seconds = bounded_seconds(counted)
    return None if seconds is None else instant_us(it.window_start) + seconds * SECOND_US


def _goes_on(it: DecisionRecord, earlier: _OpenEviction | None) -> Iterator[str]:
    """Say that Kubernetes' own controller keeps to the time of before, if the deadline has moved behind it."""
    built_in_us = _built_in_us(it, earlier)
    if built_in_us is not None and built_in_us < instant_us(it.deadline):
        yield f"The built-in controller goes on at {instant_text(built_in_us)}: no edit moves its timer."


def _sentences(decision: SourcedDecision, earlier: _OpenEviction | None) -> Iterator[str]:
    it = decision.record
    if it.decision in _PLANNED:
        yield _stay(it)
        yield _PLANNED[it.decision](it)
        yield from _goes_on(it, earlier)
    elif it.decision in (DecisionKind.ISSUED, DecisionKind.RETRIED):
        yield from _attempt(decision, earlier)
    else:
        yield _DONE[it.decision](it)
    if DecisionWarning.LATER_TOLERATION_DIFFERS in it.warnings:
        yield "A later toleration of the pod matches the taint with another time; the first one decides."
    delay_us = decision.came_us - instant_us(it.cause.at)
    if delay_us >= ON_TIME_US:
        yield f"This came at {instant_text(decision.came_us)}, {_seconds(delay_us)} s later."


def _attempt(decision: SourcedDecision, earlier: _OpenEviction | None) -> Iterator[str]:
    it = decision.record
    if it.due_cause is not None:
        yield _stay(it)
        yield f"It has to leave at once, because of {CAUSES[it.due_cause.kind]}."
        earlier = _OpenEviction(it.deadline, decision.came_us, _reason(it), None)
    elif earlier is not None and earlier.reason != _reason(it):  # it changed without moving the deadline
        yield _stay(it)
    if it.decision is DecisionKind.RETRIED:
        yield f"Attempt {it.attempt} is issued. {_view(it)}"
        if (holder := _holder(it)) is not None:
            yield f"The {holder} has held it until then."
    else:
        again = "" if it.attempt == 1 else f" again, as attempt {it.attempt}"
        yield f"The eviction is issued{again}, {_late(decision, earlier)}."


def _view(it: DecisionRecord) -> str:
    """Say that a repeat rests on what the feed has said, which may be over."""
    if it.heard_at is None:
        return "In the service's view, of unknown age, the pod still exists and has to leave."
    age_us = max(0, instant_us(it.cause.at) - instant_us(it.heard_at))
    view = f"In the service's view, up to {_seconds(age_us)} s old (last heartbeats of its feed: {it.heard_at})"
    return f"{view}, the pod still exists and has to leave."


def _late(decision: SourcedDecision, earlier: _OpenEviction | None) -> str:
    """Say how late it is, from when it was owed (semantics.md 12.5), and why, where records hold that."""
    it = decision.record
    issued_us, owed_us = instant_us(it.cause.at), instant_us(it.known_at or it.deadline)
    since = "its deadline" if it.known_at is None else f"its deadline was known, which was at {it.known_at}"
    if issued_us - owed_us < ON_TIME_US:
        return "on time" if it.known_at is None else f"as soon as {since}"
    late = f"{_seconds(issued_us - owed_us)} s after {since}"
    if (holder := _holder(it)) is not None:
        return f"{late}: the {holder} has held it until then"
    if earlier is None or earlier.deadline != it.deadline:
        return f"{late}; these records do not show why"
    if earlier.came_us - owed_us < ON_TIME_US:
        return f"{late}: {_DELAYED_BY[decision.teller]}"
    if issued_us - earlier.came_us < ON_TIME_US:
        return f"{late}, as soon as that was decided"
    return f"{late}. It was decided only at {instant_text(earlier.came_us)}; after that, {_DELAYED_BY[decision.teller]}"


_DELAYED_BY: Final[dict[Teller, str]] = {
    Teller.RECORDED: "a closed gate, a takeover or a backlog delayed it",
    Teller.REPLAY: "its feed was silent",
    Teller.PLAYED: "its feed was silent",
}
"""A replay has no takeover, no backlog, and of all gates only that of a silent feed."""


def _reported(it: DecisionRecord) -> str:
    reason = f" ({it.outcome_reason})" if it.outcome_reason else ""
    again = ""
    if it.next_attempt_at is not None:
        again = f" If nothing changes, the next attempt is at {it.next_attempt_at} or later."
    elif it.outcome is Outcome.OBSERVED:
        again = " It is not repeated before an executor acts."
    if it.result is Outcome.HELD:
        again = f" The next attempt follows when the brake {it.held_by} has ended."
    return f"The executor reports {it.result} of attempt {it.attempt}{reason}.{again}"


def _cancelled(it: DecisionRecord) -> str:
    is_issued = it.previous is not None and it.previous.state is not EvictionState.SCHEDULED
    return f"The eviction is cancelled {f'after attempt {it.attempt}' if is_issued else _early(it)}: {_ended(it)}."


def _ended(it: DecisionRecord) -> str:
    return ENDED_BY[it.verdict](it) if it.verdict in ENDED_BY else str(it.verdict)


def _stay(it: DecisionRecord) -> str:
    taint = taint_text(it.taint)
    if it.toleration is None:
        return f"No toleration of the pod covers the taint {taint} of {it.node}, as of {it.deadline}."
    seconds = bounded_seconds(it.toleration)
    stay = "forever" if seconds is None else f"for {seconds} s"
    built_in = it.toleration.built_in_seconds
    if built_in is not UNSET:
        stay += f" (built-in: {'forever' if built_in is None else f'{built_in} s'})"
    covers = f"The toleration {toleration_text(it.toleration)} covers the taint {taint} of {it.node} {stay}"
    if it.outage_start is None:
        return f"{covers} since {it.window_start}."
    return f"{covers}, but the node's outage began before it, at {it.outage_start}, and leaves the pod less time."


def toleration_text(toleration: Toleration) -> str:
    """Write a toleration as `kubectl` writes taints, without its seconds."""
    key = toleration.key or "of any key"
    sign = _SIGNS.get(toleration.operator, "") if toleration.key else ""
    value = f"{sign}{toleration.value}" if sign else ""
    return f"{key}{value}" + (f":{toleration.effect}" if toleration.effect else "")


_SIGNS: Final = {"": "=", "Equal": "=", "Gt": ">", "Lt": "<"}


def _moved(it: DecisionRecord) -> str:
    before = "" if it.previous is None else f"from {it.previous.deadline} "
    return f"Its deadline moves {before}to {it.deadline}, because of {CAUSES[it.cause.kind]}."


def _early(it: DecisionRecord) -> str:
    early_us = instant_us(it.deadline) - instant_us(it.cause.at)
    return f"{_seconds(early_us)} s before its deadline" if early_us >= 0 else "after its deadline"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / SECOND_US:.1f}"


CAUSES: Final[dict[CauseKind, str]] = {
    CauseKind.NODE: "a change of the node",
    CauseKind.POD: "a change of the pod",
    CauseKind.RESULT: "a result",
    CauseKind.TIMER: "its timer, when the service decides again",
    CauseKind.CATCH_UP: "a takeover, after which everything is decided again",
    CauseKind.FORGET: "an operator",
}
ENDED_BY: Final[dict[Verdict, Callable[[DecisionRecord], str]]] = {
    Verdict.TAINT_REMOVED: lambda it: f"the taint {taint_text(it.taint)} is gone",
    # By its key alone: its value may be another now.
    Verdict.TOLERATED: lambda it: f"the pod tolerates the taint {it.taint.key} forever now",
    Verdict.POD_GONE: lambda _: "the pod is gone",
    Verdict.POD_REPLACED: lambda _: "another pod has its name",
    Verdict.POD_FINISHED: lambda _: "the pod has finished",
    Verdict.POD_TERMINATING: lambda _: "the pod is terminating",
    Verdict.POD_MIRROR: lambda _: "it is a mirror pod",
    Verdict.NODE_GONE: lambda _: "the node is gone",
    Verdict.CLUSTER_FORGOTTEN: lambda _: "an operator removed the cluster from the service",
    Verdict.UNDECIDABLE: lambda _: "the pod or its node has too many or too long taints or tolerations",
    Verdict.BUILT_IN: lambda _: "it is left to Kubernetes' own controller",
}
_PLANNED: Final[dict[DecisionKind, Callable[[DecisionRecord], str]]] = {
    DecisionKind.SCHEDULED: lambda it: f"It has to leave at {it.deadline}.",
    DecisionKind.DUE: lambda it: f"It has to leave at once{'' if it.toleration is None else f', since {it.deadline}'}.",
    DecisionKind.MOVED: _moved,
    DecisionKind.WITHDRAWN: lambda it: f"The issued eviction is withdrawn; it has to leave at {it.deadline}.",
}
_DONE: Final[dict[DecisionKind, Callable[[DecisionRecord], str]]] = {
    DecisionKind.REPORTED: _reported,
    DecisionKind.CANCELLED: _cancelled,
    DecisionKind.COMPLETED: lambda it: f"The eviction is over: {_ended(it)}.",
}


def _holder(it: DecisionRecord) -> str | None:
    """Name what has held an attempt until it was issued."""
    if it.policy is not None:
        return f"policy {it.policy.name} (revision {it.policy.revision}, {it.policy.clause})"
    return None if it.held_by is None else f"brake {it.held_by}"
