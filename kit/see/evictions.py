"""Evictions as a list shows them: those that are open in the rows, and those whose decisions say that they ended."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from evictstream.kit.replay.standing_holds import StandingHold, standing_hold
from evictstream.kit.see.steering import UNSTEERED, Steering
from evictstream.kit.see.stored_state import StoredNode, StoredState
from evictstream.models.eviction import Eviction, EvictionState, PodState
from evictstream.models.eviction.backstop import outruns_deadline_us
from evictstream.models.eviction.cluster import ClusterState
from evictstream.models.eviction.executor_queue import is_only_observed
from evictstream.models.eviction.step import eviction_id
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.vocabulary import DecisionKind, Outcome, Verdict


class SeenState(enum.StrEnum):
    """Where an eviction is."""

    SCHEDULED = "Scheduled"
    """Its deadline lies ahead."""
    DUE = "Due"
    """The pod has to leave, and no `Evict` was issued yet: a gate is closed, or no worker runs."""
    ISSUED = "Issued"
    """The first `Evict` was issued."""
    RETRYING = "Retrying"
    """An `Evict` failed, or nobody answered it; it is repeated."""
    COMPLETED = "Completed"
    """It was issued, and the pod leaves."""
    CANCELLED = "Cancelled"
    """Nothing is due any more."""
    ENDED = "Ended"
    """It was open at the last look, and is not any more."""


class SeenGate(enum.StrEnum):
    """Gates that the rows show; those of a worker itself show in its health alone."""

    FEED = "feed"
    GAP = "gap"


OPEN_STATES = frozenset({SeenState.SCHEDULED, SeenState.DUE, SeenState.ISSUED, SeenState.RETRYING})


class ListedEviction(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One eviction.

    Attributes:
        verdict: why the pod has to leave; of one that has ended, why it ended.
        taint: the one that decides.
        toleration: the one in use for it, None if there is none.
        deadline: when the pod has to leave.
        known_at: when that was known, if only afterwards.
        attempt: attempts issued so far.
        issued_at: of the newest attempt.
        next_attempt_at: when the next attempt is owed.
        unanswered_since: when the first attempt was issued that no executor has answered.
        queued: whether the executor has reported that it waits in its queue.
        last_result: the result that was counted for the newest attempt.
        gate: the closed gate that holds it back.
        held_by: what holds it: a brake, by its id, or a policy, as `policy/NAME/REVISION/CLAUSE`; of those that were
            given, or the brake for which an executor holds it.
        built_in_at: when Kubernetes' own controller goes on with the pod: before what holds it ends, or before the
            deadline, if that was moved in an open window.
        ended_at: when it ended.
    """

    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    eviction_id: str
    state: SeenState
    verdict: Verdict
    taint: BareTaint
    deadline: str
    toleration: Toleration | None = None
    known_at: str | None = None
    attempt: int = 0
    issued_at: str | None = None
    next_attempt_at: str | None = None
    unanswered_since: str | None = None
    queued: bool = False
    last_result: Outcome | None = None
    gate: SeenGate | None = None
    held_by: str | None = None
    built_in_at: str | None = None
    ended_at: str | None = None

    @property
    def address(self) -> str:
        """NAMESPACE/NAME of the pod."""
        return f"{self.namespace}/{self.pod}"

    @property
    def at(self) -> str:
        """The instant that matters now: of the end, or since when the pod has to leave. Sorts as a text."""
        return self.ended_at or self.known_at or self.deadline


class Silences(NamedTuple):
    """For how long a sign counts, microseconds.

    Attributes:
        feed_us: heartbeats of a feed; once they are older, the gate `feed` is closed.
        report_us: a report of an executor's queue.
    """

    feed_us: int
    report_us: int


def pending_evictions(
    state: StoredState, now_us: int, silences: Silences, steering: Steering = UNSTEERED
) -> list[ListedEviction]:
    """List the evictions that have not ended, the first to be done first; `now_us` in microseconds since 1970."""
    found = [one for node in state.nodes() for one in of_node(node, now_us, silences, steering)]
    return sorted(found, key=lambda one: (one.at, one.cluster, one.address))


def of_node(
    node: StoredNode, now_us: int, silences: Silences, steering: Steering = UNSTEERED
) -> Iterator[ListedEviction]:
    """Yield the open evictions of a node's pods."""
    gate = gate_of(node.cluster, now_us, silences, has_gap=node.has_gap)
    held_us = steering.now_us(now_us)
    standing = steering.of_cluster(node.aggregate.cluster, held_us, node.cluster.incidents)
    for pod in node.aggregate.pods.values():
        eviction = pod.eviction
        if eviction is not None and eviction.state is not EvictionState.DONE:
            one = _seen(node, pod, eviction, gate=gate, now_us=now_us, silences=silences)
            hold = standing_hold(node.aggregate, pod, standing, held_us, rules=steering.rules)
            yield one if hold is None else _held(one, hold)


def _held(one: ListedEviction, hold: StandingHold) -> ListedEviction:
    built_in_at = None if hold.built_in_us is None else instant_text(hold.built_in_us)
    return msgspec.structs.replace(one, held_by=hold.by, built_in_at=built_in_at)


def gate_of(cluster: ClusterState, now_us: int, silences: Silences, *, has_gap: bool) -> SeenGate | None:
    """Return the gate that is closed for a cluster, by its rows alone."""
    if has_gap:
        return SeenGate.GAP
    return SeenGate.FEED if cluster.is_silent(now_us - silences.feed_us) else None


def heard_at(cluster: ClusterState) -> str | None:
    """Return when the cluster's feed was last heard; None for one that sends no heartbeats."""
    heard_at_us = cluster.heard_at_us
    return instant_text(heard_at_us) if heard_at_us else None


def _seen(
    node: StoredNode, pod: PodState, eviction: Eviction, *, gate: SeenGate | None, now_us: int, silences: Silences
) -> ListedEviction:
    due, queue = eviction.due, node.cluster.queue
    namespace, _, name = pod.address.partition("/")
    is_reported = queue is not None and queue.reported_at_us > now_us - silences.report_us
    is_issued = eviction.state is not EvictionState.SCHEDULED
    # Behind a gate is what would be issued next: not what an executor still has to answer.
    next_attempt_us = None if is_only_observed(eviction, queue) else eviction.next_attempt_us
    is_held = not is_issued or (next_attempt_us is not None and next_attempt_us <= now_us)
    built_in_us = outruns_deadline_us(eviction)
    return ListedEviction(
        cluster=node.aggregate.cluster,
        namespace=namespace,
        pod=name,
        pod_uid=pod.uid,
        node=node.aggregate.name,
        eviction_id=eviction_id(node.aggregate.cluster, pod.uid, eviction.ordinal),
        state=_state(eviction, now_us),
        verdict=due.verdict,
        taint=due.taint,
        deadline=instant_text(due.deadline_us),
        toleration=due.toleration,
        known_at=None if eviction.known_us is None else instant_text(eviction.known_us),
        attempt=eviction.attempt,
        issued_at=None if eviction.issued_at_us is None else instant_text(eviction.issued_at_us),
        next_attempt_at=None if next_attempt_us is None else instant_text(next_attempt_us),
        unanswered_since=None if eviction.unanswered_since_us is None else instant_text(eviction.unanswered_since_us),
        queued=is_issued
        and queue is not None
        and is_reported
        and eviction.outcome in (None, Outcome.ACCEPTED)
        and queue.holds(eviction.issued_at_us or 0),
        last_result=eviction.outcome,
        gate=gate if is_held else None,
        built_in_at=None if built_in_us is None else instant_text(built_in_us),
    )


def _state(eviction: Eviction, now_us: int) -> SeenState:
    if eviction.state is EvictionState.ISSUED:
        return SeenState.ISSUED
    if eviction.state is EvictionState.RETRYING:
        return SeenState.RETRYING
    return SeenState.DUE if eviction.owed_us <= now_us else SeenState.SCHEDULED


def ended_eviction(decision: DecisionRecord) -> ListedEviction | None:
    """Return the eviction that a decision has ended; None for any other decision."""
    if decision.decision not in (DecisionKind.COMPLETED, DecisionKind.CANCELLED):
        return None
    return ListedEviction(
        cluster=decision.cluster,
        namespace=decision.namespace,
        pod=decision.pod,
        pod_uid=decision.pod_uid,
        node=decision.node,
        eviction_id=decision.eviction_id,
        state=SeenState.COMPLETED if decision.decision is DecisionKind.COMPLETED else SeenState.CANCELLED,
        verdict=decision.verdict,
        taint=decision.taint,
        deadline=decision.deadline,
        toleration=decision.toleration,
        known_at=decision.known_at,
        attempt=decision.attempt,
        last_result=decision.result,
        ended_at=decision.cause.at,
    )
