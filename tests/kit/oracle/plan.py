"""What will be decided about each pod, and when, read off the inputs alone (semantics.md 12.4 to 12.6).

The same histories and the same decision as in `judge`; but nothing is compared, and node and pod are taken in by their
append times, as a service does that is never late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evictstream.kit.oracle.decision import MayStay, MustLeave, expected_decision
from evictstream.kit.oracle.epochs import Epochs
from evictstream.kit.oracle.histories import HeardNode, HeardPod, node_history, pod_histories
from evictstream.kit.oracle.judging import by_node, read_all
from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.records import InputRecord


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time over which the decision about a pod stays the same. Instants are microseconds since 1970.

    Attributes:
        since_us: its begin.
        until_us: its end; `None` for the last one. It may be the begin: of what was observed at the same instant one
            came after the other.
        decision: what is decided. Of what is untolerated all along the first: edits move its deadline, and it is due.
    """

    since_us: int
    until_us: int | None
    decision: MustLeave | MayStay

    @property
    def deadline_us(self) -> int | None:
        """When the pod has to leave; may lie before `since_us`. `None`: nothing is due."""
        return None if isinstance(self.decision, MayStay) else self.decision.deadline_us

    @property
    def due_us(self) -> int | None:
        """From when on an eviction may be issued, if the span lasts until then."""
        return None if self.deadline_us is None else max(self.deadline_us, self.since_us)

    @property
    def is_announced(self) -> bool:
        """Whether the deadline lies ahead when the span begins, so that it has to be announced."""
        return self.deadline_us is not None and self.deadline_us > self.since_us


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a pod's eviction if no component fails or waits.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """One pod and everything that is decided about it, in order; `spans` leaves no time out once the pod is bound."""

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
            if isinstance(span.decision, MayStay):
                if announced_us is not None:
                    cancelled.append(span.decision.why)
                announced_us = None
                continue
            deadline_us = span.decision.deadline_us
            if span.is_announced and deadline_us != announced_us:
                (scheduled if announced_us is None else moved).append(deadline_us)
                announced_us = deadline_us
            if span.due_us is not None and (span.until_us is None or span.due_us < span.until_us):
                evicted_us = span.due_us
                break
        return Course(tuple(scheduled), tuple(moved), tuple(cancelled), evicted_us)


def plan(inputs: Sequence[InputRecord], limits: OracleLimits, partitions: int) -> dict[str, PodPlan]:
    """Say for each pod that is ever bound, by UID, what will be decided.

    Args:
        inputs: everything that was or will be appended to the inputs, each partition's records by offset. What an
            eviction causes ends the spans of its pod, as everything does that happens to the pod.
        limits: the settings of the service.
        partitions: of each topic.
    """
    statements, _ = read_all(inputs, limits, partitions)
    plans: dict[str, PodPlan] = {}
    for (cluster, node), of_node in by_node(Epochs(statements).counting, ()).items():
        nodes = node_history(of_node.nodes, limits, of_node.ready)
        for uid, history in pod_histories(node, of_node.pods).pods.items():
            plans[uid] = PodPlan(
                uid=uid,
                cluster=cluster,
                namespace=history.namespace,
                pod=history.name,
                node=node,
                spans=_spans(nodes, history.states),
            )
    return plans


def _spans(nodes: Sequence[HeardNode], pods: Sequence[HeardPod]) -> tuple[Span, ...]:
    """Decide again at each change of the pod or of its node, then merge equal stretches."""
    spans: list[Span] = []
    for at_us, decision in _decisions(nodes, pods):
        if spans and _is_same(spans[-1].decision, decision):
            continue
        if spans:
            spans[-1] = replace(spans[-1], until_us=at_us)
        spans.append(Span(at_us, None, decision))
    return tuple(spans)


def _decisions(nodes: Sequence[HeardNode], pods: Sequence[HeardPod]) -> Iterator[tuple[int, MustLeave | MayStay]]:
    """Give each decision from the first sight of the pod on. The first state of both is "not there"."""
    node = pod = 0
    while node + 1 < len(nodes) or pod + 1 < len(pods):
        is_node = pod + 1 == len(pods) or (
            node + 1 < len(nodes) and nodes[node + 1].append_at_us <= pods[pod + 1].append_at_us
        )
        if is_node:
            node += 1
        else:
            pod += 1
        if pod:
            yield (nodes[node] if is_node else pods[pod]).at_us, expected_decision(nodes[node], pods[pod])


def _is_same(before: MustLeave | MayStay, after: MustLeave | MayStay) -> bool:
    """Whether readers see the same. An untolerated pod stays due at once, whatever moves its deadline."""
    if isinstance(before, MayStay) or isinstance(after, MayStay):
        return before == after
    if before.taint != after.taint or before.is_untolerated != after.is_untolerated:
        return False
    return before.is_untolerated or before.deadline_us == after.deadline_us
