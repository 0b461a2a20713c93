"""What has to happen to each pod, and when: semantics 12.4 to 12.7 as loops over histories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeVar

from evictstream.streams.demo.oracle.history import Histories, NodeAt, PodAt, PodHistory
from evictstream.streams.demo.oracle.rules import HEALTH, LAST_US, Json, allowed_us, in_use, to_us

State = TypeVar("State", NodeAt, PodAt)

OUTAGE_GAP_US = 5_000_000
"""A node's outage goes on over a gap this long without a health taint while it is not ready (12.4)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time over which the decision about a pod stays the same. Instants are microseconds since 1970.

    Attributes:
        since_us: its begin.
        until_us: its end; `None` for the last one. It may be the begin: what was observed at the same instant still
            came one after the other.
        deadline_us: when the pod has to leave; may lie before `since_us`. `None`: nothing is due.
        floor_us: the earliest instant that a command may name as the deadline. Only for an untolerated taint, which is
            due at once, is it another than the deadline: then it is the time since when taint and pod are together.
        why: verdicts that a command may name.
        taints: keys of taints: when something is due, those that a command may name as the reason; otherwise those
            with the effect NoExecute that are on the node.
    """

    since_us: int
    until_us: int | None
    deadline_us: int | None
    floor_us: int | None
    why: frozenset[str]
    taints: frozenset[str] = frozenset()

    @property
    def due_us(self) -> int | None:
        """From when on an eviction may be issued, if the span lasts until then."""
        return None if self.deadline_us is None else max(self.deadline_us, self.since_us)

    @property
    def is_announced(self) -> bool:
        """Whether the deadline lies ahead when the span begins, so that it has to be announced."""
        return self.deadline_us is not None and self.deadline_us > self.since_us

    def same_decision(self, other: Span) -> bool:
        """Whether the other one says the same."""
        if (self.why, self.taints) != (other.why, other.taints):
            return False
        return self.deadline_us == other.deadline_us or "Untolerated" in self.why


@dataclasses.dataclass(frozen=True, slots=True)
class Course:
    """What happens to a pod if nobody ever fails or waits.

    Attributes:
        scheduled: deadlines announced, one for each time that an eviction was opened.
        moved: later deadlines of the same evictions.
        cancelled: acceptable verdicts of each cancellation.
        evicted_us: when the eviction is issued, microseconds since 1970; `None` for never.
    """

    scheduled: tuple[int, ...]
    moved: tuple[int, ...]
    cancelled: tuple[frozenset[str], ...]
    evicted_us: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """One pod and everything that is decided about it, in order; `spans` leaves no time out once the pod is known."""

    uid: str
    cluster: str
    namespace: str
    pod: str
    node: str
    spans: tuple[Span, ...]

    def course(self) -> Course:
        """Follow the spans as if commands took no time and every eviction worked."""
        scheduled: list[int] = []
        moved: list[int] = []
        cancelled: list[frozenset[str]] = []
        evicted_us = None
        announced_us: int | None = None
        for span in self.spans:
            if span.deadline_us is None:
                if announced_us is not None:
                    cancelled.append(span.why)
                announced_us = None
                continue
            if span.is_announced and span.deadline_us != announced_us:
                (scheduled if announced_us is None else moved).append(span.deadline_us)
                announced_us = span.deadline_us
            if span.due_us is not None and (span.until_us is None or span.due_us < span.until_us):
                evicted_us = span.due_us
                break
        return Course(tuple(scheduled), tuple(moved), tuple(cancelled), evicted_us)


def expected(events: Iterable[Json]) -> dict[str, Expectation]:
    """Say for each pod, by UID, what has to happen.

    Args:
        events: watch events with `cluster`, `type`, `observedAt` and `object`, in the order in which they were
            observed. What the eviction itself causes must not be among them.
    """
    histories = Histories(events)
    return {
        uid: Expectation(
            uid=uid,
            cluster=pod.cluster,
            namespace=pod.namespace,
            pod=pod.name,
            node=pod.node,
            spans=_spans(pod, histories.nodes.get((pod.cluster, pod.node), [])),
        )
        for uid, pod in histories.pods.items()
    }


def _spans(pod: PodHistory, node: Sequence[NodeAt]) -> tuple[Span, ...]:
    """Decide anew at each change of the pod or of its node, then join what did not change."""
    states: list[NodeAt | PodAt] = [*pod.states, *node]
    moments = sorted((state.turn, state.at_us) for state in states)
    pairs = [(_latest(pod.states, turn), _latest(node, turn)) for turn, _ in moments]
    spans: list[Span] = []
    for count, (turn, at_us) in enumerate(moments, start=1):
        if pod.states[0].turn > turn:
            continue
        now = _decide(_Past(pairs[:count], [state for state in node if state.turn <= turn]), at_us)
        if spans and spans[-1].same_decision(now):
            continue
        if spans:
            spans[-1] = dataclasses.replace(spans[-1], until_us=at_us)
        spans.append(now)
    return tuple(spans)


class _Past:
    """Everything about one pod and its node up to a moment: both states at each change of either, oldest first."""

    def __init__(self, pairs: list[tuple[PodAt | None, NodeAt | None]], node_states: list[NodeAt]) -> None:
        self.pairs, self.node_states = pairs, node_states
        self.pod, self.node = pairs[-1]

    def bound_since_us(self) -> int:
        """When the pod was first seen bound."""
        return next(pod.at_us for pod, _ in self.pairs if pod is not None and pod.is_bound)

    def window_start_us(self, taint: Json) -> int:
        """Since when this taint and this pod have been together without a break (12.4)."""
        start_us = 0
        together: Json | None = None
        uid = None
        for pod, node in self.pairs:
            there = None
            if pod is not None and pod.is_bound and node is not None:
                there = next((found for found in node.taints if found["key"] == taint["key"]), None)
            if there is None or node is None or pod is None:
                together = None
                continue
            if together is None or node.uid != uid or _is_renewed(together, there):
                start_us = max(pod.at_us, node.at_us)
            # What was recorded last stays known when a later sight of the taint does not tell it.
            together = there if there.get("timeAdded") or together is None else together
            uid = node.uid
        return start_us

    def outage_start_us(self) -> int | None:
        """When the outage began that the node is in; `None` if it is in none (12.4)."""
        start_us: int | None = None
        gap_us: int | None = None  # since when there has been no health taint, within an outage
        uid = None
        for state in self.node_states:
            if state.uid is None or state.uid != uid:
                start_us = gap_us = None
            uid = state.uid
            if any(taint["key"] in HEALTH for taint in state.taints):
                too_long = gap_us is not None and state.at_us - gap_us > OUTAGE_GAP_US
                if start_us is None or too_long:
                    start_us = state.at_us
                gap_us = None
            elif start_us is not None:
                gap_us = state.at_us if gap_us is None else gap_us
                if state.ready is None or state.ready == "True":
                    start_us = gap_us = None
        return start_us


def _latest(states: Sequence[State], turn: int) -> State | None:
    return next((state for state in reversed(states) if state.turn <= turn), None)


def _is_renewed(before: Json, after: Json) -> bool:
    """Whether a removal between two sights of a taint was missed: both tell when it was added, the new one later."""
    if not before.get("timeAdded") or not after.get("timeAdded"):
        return False
    return to_us(after["timeAdded"]) > to_us(before["timeAdded"])


def _decide(past: _Past, at_us: int) -> Span:
    """Decide about the pod at one moment (12.5)."""
    pod, node = past.pod, past.node
    if pod is None or pod.exempt or not pod.is_bound:
        return _nothing(at_us, pod.exempt if pod is not None else frozenset(), node)
    if node is None or node.uid is None:
        return _nothing(at_us, {"NodeGone"}, node)
    if not node.taints:
        is_another = len({state.uid for state in past.node_states if state.uid is not None}) > 1
        return _nothing(at_us, {"TaintRemoved", "NodeGone"} if is_another else {"TaintRemoved"}, node)
    for taint in node.taints:
        if in_use(pod.tolerations, taint) is None:
            since_us = past.window_start_us(taint)
            return Span(
                since_us=at_us,
                until_us=None,
                deadline_us=at_us,
                floor_us=since_us,
                why=frozenset({"Untolerated"}),
                taints=frozenset({taint["key"]}),
            )
    times = {taint["key"]: _time_us(past, taint, pod.tolerations) for taint in node.taints}
    deadline_us = min((time_us for time_us in times.values() if time_us is not None), default=LAST_US + 1)
    if deadline_us > LAST_US:
        return _nothing(at_us, {"Tolerated", "TaintRemoved"}, node)
    reasons = frozenset(key for key, time_us in times.items() if time_us == deadline_us)
    return Span(
        since_us=at_us,
        until_us=None,
        deadline_us=deadline_us,
        floor_us=deadline_us,
        why=frozenset({"TolerationExpires"}),
        taints=reasons,
    )


def _nothing(at_us: int, why: Iterable[str], node: NodeAt | None) -> Span:
    taints = () if node is None else node.taints
    return Span(
        since_us=at_us,
        until_us=None,
        deadline_us=None,
        floor_us=None,
        why=frozenset(why),
        taints=frozenset(taint["key"] for taint in taints),
    )


def _time_us(past: _Past, taint: Json, tolerations: Sequence[Json]) -> int | None:
    """Return until when this taint lets the pod stay; `None` for ever (12.5, fourth rule)."""
    toleration = in_use(tolerations, taint)
    stay_us = None if toleration is None else allowed_us(toleration)
    if stay_us is None:
        return None
    time_us = past.window_start_us(taint) + stay_us
    outage_us = past.outage_start_us()
    if taint["key"] not in HEALTH or outage_us is None:
        return time_us
    other_key = HEALTH[1 - HEALTH.index(taint["key"])]
    other = in_use(tolerations, {"key": other_key, "effect": "NoExecute"})
    other_us = 0 if other is None else allowed_us(other)
    if other_us is None:  # tolerated for ever under its other name: no bound
        return time_us
    return min(time_us, max(outage_us, past.bound_since_us()) + max(stay_us, other_us))
