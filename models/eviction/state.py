"""What is known of nodes, pods and evictions, and what is remembered of deleted ones; `aggregate.py` joins them.

A fleet has hundreds of thousands of pods, so these are structs that the garbage collector does not track, tolerations
are shared, and nothing is stored that can be derived. Therefore there are no windows: `decision.py` derives them
(semantics.md 12.4).
"""

from typing import NamedTuple

import msgspec

from evictstream.models.kubernetes.resource_versions import Version
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations
from evictstream.models.kubernetes.traits import NodeLabels, Owner, PodTraits, zone_of
from evictstream.models.messages.vocabulary import EvictionState, Outcome, Verdict

# Why a pod is left alone; `PodState.exemptions` is the sum of all that hold.
TERMINATING = 1
FINISHED = 2
MIRROR = 4
OVER_LIMIT = 8

# `first_issued_us` of an eviction that an executor has only observed, until its next attempt: it is not in flight.
ONLY_OBSERVED_US = 0

_SCHEDULED = EvictionState.SCHEDULED  # see `evictstream.models.eviction` for these constants
_DONE = EvictionState.DONE
_HELD = Outcome.HELD
_UNTOLERATED = Verdict.UNTOLERATED


class TaintState(msgspec.Struct, frozen=True, gc=False):
    """One `NoExecute` taint of the node and since when it is there.

    Attributes:
        taint: key, value and effect; without `timeAdded`, so that it can be a reason in a message.
        since_us: when this instance of the taint was first seen on the node.
        value_since_us: when its value was last seen to change; `since_us` if never.
        time_added_us: the last `timeAdded` that was seen on it; used only to recognise a taint that was removed and
            added again.
    """

    taint: Taint
    since_us: int
    value_since_us: int
    time_added_us: int | None


class Outage(msgspec.Struct, frozen=True, gc=False):
    """A time during which the node is unhealthy, over swaps and gaps (semantics.md 12.4).

    Attributes:
        since_us: its start.
        gap_since_us: since when the node is without a health taint; None while it has one.
    """

    since_us: int
    gap_since_us: int | None = None


class NodeState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is known of the node.

    Attributes:
        uid: its UID.
        version: the newest resource version seen.
        taints: its `NoExecute` taints in node order.
        outage: the outage it is in, if any.
        ready_since_us: since when its condition `Ready` is known to be `True` without a break, if it counts for its
            zone; else None.
        is_undecidable: its taints are beyond a limit: none of them is kept, and its pods are left alone.
        labels: for policies; None if its row is of a version that kept none, until the node is told again.
        is_unready: its condition `Ready` is reported, and is not `True`; for policies.
    """

    uid: str
    version: Version
    taints: tuple[TaintState, ...] = ()
    outage: Outage | None = None
    ready_since_us: int | None = None
    is_undecidable: bool = False
    labels: NodeLabels | None = None
    is_unready: bool = False

    @property
    def zone(self) -> str | None:
        """By its label; empty if it has none, None if its labels are not known."""
        return zone_of(self.labels)


class Due(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is owed to a pod: when it has to leave, and why.

    Attributes:
        deadline_us: when.
        verdict: `Untolerated` or `TolerationExpires`.
        taint: the taint that decides.
        toleration: the toleration in use for it, None if there is none.
        window_start_us: since when the pod and this taint are together.
        outage_since_us: start of the outage, if the outage and not the window decides the deadline.
    """

    deadline_us: int
    verdict: Verdict
    taint: Taint
    toleration: Toleration | None
    window_start_us: int
    outage_since_us: int | None = None

    @property
    def reason_us(self) -> int:
        """Since when there is a reason: for an untolerated pod the latest of the changes that made it untolerated."""
        return self.deadline_us if self.verdict is _UNTOLERATED else self.window_start_us


class Eviction(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The open, or done, eviction of a pod; `transitions.move` puts another one in its place.

    Attributes:
        state: where it is in its life.
        ordinal: how many evictions were opened for the pod before; with cluster and UID it makes the `evictionId`.
        due: deadline and reason; once issued, those of the newest attempt.
        revision: from 1; grows when the deadline moves.
        attempt: attempts made so far; the current one while issued or retrying.
        is_announced: a `Schedule` was sent.
        issued_at_us: when the newest attempt was issued, None before the first.
        next_attempt_us: when the next attempt is owed, None unless issued or retrying.
        outcome: the result that was counted for the current attempt, if any.
        unanswered_since_us: when the first attempt was issued since the last result; None if a result came since.
        known_us: when the deadline was known, if only after it, as an edit of tolerations may have it; else None.
        held_by: id of the brake for which the executor holds the current attempt, of the outcome `Held`; else None.
        first_issued_us: for policies, when the first attempt was issued, or the first one after one that was only
            observed; None before, and in rows of before.
        built_in_us: when the timer of Kubernetes' own controller fires, where that is on and seconds of the pod were
            moved; None elsewhere, for never, and in rows of before.
    """

    state: EvictionState
    ordinal: int
    due: Due
    revision: int = 1
    attempt: int = 0
    is_announced: bool = False
    issued_at_us: int | None = None
    next_attempt_us: int | None = None
    outcome: Outcome | None = None
    unanswered_since_us: int | None = None
    known_us: int | None = None
    held_by: str | None = None
    first_issued_us: int | None = None
    built_in_us: int | None = None

    @property
    def owed_us(self) -> int:
        """Since when the pod has to leave: lateness counts from here, as nothing could have been earlier."""
        return self.due.deadline_us if self.known_us is None else self.known_us

    @property
    def is_held_by_executor(self) -> bool:
        """Whether an attempt is outstanding and its executor holds it for a brake."""
        return self.outcome is _HELD and self.state is not _SCHEDULED and self.state is not _DONE

    @property
    def held_since_us(self) -> int:
        """Since when an attempt is due that a brake holds; what an executor holds, since it was issued."""
        if self.state is _SCHEDULED:
            return self.owed_us
        return (self.issued_at_us if self.outcome is _HELD else self.next_attempt_us) or 0

    @property
    def wakeup_us(self) -> int | None:
        """When to decide about it next: at the deadline, then at each next attempt; None once it is done.

        What an executor holds is looked at once, and then again as the brakes want it.
        """
        if self.state is _SCHEDULED:
            return self.due.deadline_us
        return self.issued_at_us if self.is_held_by_executor else self.next_attempt_us


class PodState(msgspec.Struct, gc=False, kw_only=True):
    """What is known of one pod on the node.

    Attributes:
        uid: its UID.
        address: `<namespace>/<name>`.
        version: the newest resource version seen. Newer versions that change nothing else are not written to its row,
            so after a restart it may be lower than before.
        tolerations: in pod order, shared.
        since_us: when the pod was first seen bound to the node.
        tolerations_since_us: since when they decide: when they were last seen to change, or the last exemption was
            seen to end; `since_us` if neither ever was.
        exemptions: sum of `TERMINATING`, `FINISHED`, `MIRROR` and `OVER_LIMIT`; 0 if none holds.
        opened: how many evictions were ever opened for it.
        eviction: the open or done one.
        traits: for policies, shared; None if its row is of a version that kept none, until the pod is told again.
    """

    uid: str
    address: str
    version: Version
    tolerations: Tolerations
    since_us: int
    tolerations_since_us: int
    exemptions: int = 0
    opened: int = 0
    eviction: Eviction | None = None
    traits: PodTraits | None = None


class TaintLeft(NamedTuple):
    """The `NoExecute` taints of one key that a node had when it was deleted.

    Attributes:
        key: of them.
        since_us: since when the newest of them was there.
        pods: how many pods had to leave for them, or had left.
    """

    key: str
    since_us: int
    pods: int


class NodeLeft(msgspec.Struct, frozen=True, gc=False):
    """A node as it was when it was deleted: it counts on for some time (`node_standing.py`).

    Attributes:
        at_us: when that was.
        zone: its zone; empty if it had none.
        is_unhealthy: whether it was.
        taints: that it had, of the keys that came last, those first.
    """

    at_us: int
    zone: str
    is_unhealthy: bool
    taints: tuple[TaintLeft, ...] = ()


class DeletionMemory(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of an earlier node or a deleted pod (semantics.md 12.3).

    Attributes:
        version: events up to this version are dropped.
        until_us: when it may be forgotten.
        opened: how many evictions were opened for the pod; kept so that no id is used twice if the delete was wrong.
        left: of a node, if it was known when it was deleted.
        evicted_for: of a pod whose eviction was issued: key of the taint; empty for others.
        evicted_us: when its newest attempt was issued.
        owner: of such a pod, its controller, shared; None if it had none, and in rows of before.
    """

    version: Version
    until_us: int
    opened: int = 0
    left: NodeLeft | None = None
    evicted_for: str = ""
    evicted_us: int = 0
    owner: Owner | None = None
