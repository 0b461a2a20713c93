"""Why Kubernetes' own controller and the service let a pod leave at different times: rows of docs/semantics.md#13.

Told from what both hold at the very instant at which the first of the two lets it go: the controller its timer, set at
some instant for some pod and never moved; the service its windows, and what its rules make of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from evictstream.kit.replay.watched_tables import PodStanding
from evictstream.models.eviction import Due, NothingDue, PodState
from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.kubernetes.handed_over import has_moved
from evictstream.models.kubernetes.matching import bounded_seconds, first_match
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, Taint
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.messages.vocabulary import Verdict

OVERFLOWING_SECONDS: Final = 2**63 // 1_000_000_000
"""From here on upstream's seconds do not fit into its nanoseconds (docs/semantics.md, row 33)."""

_UNTOLERATED: Final = -1


class Reason(NamedTuple):
    """Why two runs differ; `row` is one of docs/semantics.md#13, None where no row says it."""

    row: int | None
    text: str


UNEXPLAINED: Final = Reason(None, "reason unknown")

_EDITED: Final = Reason(5, "its tolerations were edited")
_NODE_GONE: Final = Reason(9, "its node was deleted, but the timer kept running")
_NEW_NODE: Final = Reason(9, "its node was registered again, but the timer kept running")
_MOVED: Final = Reason(40, "a policy has moved its seconds: Kubernetes' controller counts those of its spec")
_OVERFLOWS: Final = Reason(33, "its toleration has more seconds than upstream can count")
_REVALUED: Final = Reason(37, "a taint's new value starts a window here, and moved no timer upstream")
_SILENT: Final = Reason(38, "its feed was silent, which delays the eviction")
LATE_FEED: Final = Reason(38, "its feed was late")

_LEFT_ALONE: Final = {
    NothingDue.MIRROR: Reason(13, "a mirror pod"),
    NothingDue.FINISHED: Reason(12, "the pod had finished"),
    NothingDue.TERMINATING: Reason(14, "the pod was already terminating"),
    NothingDue.UNDECIDABLE: Reason(39, "the pod or its node is over a limit"),
    NothingDue.BUILT_IN: Reason(None, "it is left to Kubernetes' own controller"),
}


class UpstreamTimer(NamedTuple):
    """A timer of the controller, which keeps its time whatever happens.

    Attributes:
        pod_uid: of the pod that had its name then.
        node: as it was then; None if the service did not know it.
        tolerations: of the pod, as they were then.
    """

    pod_uid: str
    node: NodeState | None
    tolerations: Tolerations


class UpstreamView(NamedTuple):
    """What the controller knows of a pod's name.

    Attributes:
        holder_uid: of the pod that has the name; None if it has none, or the last one was deleted.
        timer: the one that is pending, or whose eviction runs.
        has_left: the controller has deleted the pod before.
    """

    holder_uid: str | None
    timer: UpstreamTimer | None
    has_left: bool


class UpstreamReasons:
    """The rules. `compares` is the gate `TaintTolerationComparisonOperators`, which both sides follow."""

    def __init__(self, *, compares: bool) -> None:
        self._compares = compares

    def of_upstream(self, pod_uid: str, at_us: int, it: PodStanding, timer: UpstreamTimer | None) -> Reason:
        """Say why upstream lets a pod leave at an instant, and the service does not.

        Args:
            pod_uid: the pod.
            at_us: the instant, microseconds since 1970.
            it: what the service knows then.
            timer: the last one that upstream has set under the pod's name.
        """
        if it.pod is None:
            return UNEXPLAINED
        if isinstance(it.due, NothingDue) and it.due in _LEFT_ALONE:
            return _LEFT_ALONE[it.due]
        if isinstance(it.due, Due) and it.due.deadline_us <= at_us:
            return _SILENT if it.is_silent else _otherwise(it)
        if timer is None or has_moved(it.pod.tolerations):
            return _otherwise(it)
        if timer.pod_uid != pod_uid:
            return Reason(8, "the timer belonged to an earlier pod with the same name")
        if it.due is NothingDue.NODE_UNKNOWN:
            return _NODE_GONE
        if self._overflows(timer.node, timer.tolerations):
            return _OVERFLOWS
        return self._kept(it, it.pod, timer) or _otherwise(it)

    def of_service(
        self, pod_uid: str, at_us: int, it: PodStanding, there: UpstreamView, *, is_last: bool
    ) -> Reason | None:
        """Say why the service lets a pod leave at an instant, and upstream does not.

        Args:
            pod_uid: the pod.
            at_us: the instant, microseconds since 1970.
            it: what the service knows then.
            there: what upstream knows then.
            is_last: all that was heard of at the instant is known.

        Returns:
            None if the pod need not leave by what is known, and more may be heard of.
        """
        if there.has_left:
            return Reason(2, "its eviction was not carried out, and is due again")
        if it.pod is None or not isinstance(it.due, Due) or it.due.deadline_us > at_us:
            return _otherwise(it) if is_last else None
        if there.holder_uid != pod_uid:
            return Reason(3, "another pod has its name; here pods are identified by UID")
        timer = there.timer
        if timer is None or has_moved(it.pod.tolerations):
            return _OVERFLOWS if self._overflows(it.node, it.pod.tolerations) else _otherwise(it)
        if timer.pod_uid != pod_uid or it.due.verdict is Verdict.UNTOLERATED:
            return Reason(3, "the timer of an earlier pod with the same name was kept instead")
        if self._overflows(timer.node, timer.tolerations):
            return _OVERFLOWS
        return self._moved(it, it.pod, it.due, timer) or _otherwise(it)

    def _kept(self, it: PodStanding, pod: PodState, timer: UpstreamTimer) -> Reason | None:
        """Say why a timer that was kept fires before the service's deadline, or without one."""
        if it.node is None or timer.node is None or it.node.uid != timer.node.uid:
            return _NEW_NODE
        for then in self._deciding(timer):
            now = _taint(it.node, then.taint.key)
            if now is None and not it.node.taints:
                return Reason(32, "the taint was gone, but an eviction that had fired was not cancelled")
            if now is None or (now.since_us != then.since_us and then.taint.key not in it.renewed):
                return Reason(4, "the deciding taint was gone, but its timer was kept")
            if now.since_us != then.since_us:
                return Reason(7, "a later timeAdded: the taint was removed and added again, but its timer was kept")
            change = self._changed(then.taint, now.taint, timer.tolerations, pod.tolerations)
            if change is not None or now.value_since_us != then.value_since_us:
                return change or _REVALUED
        return None

    def _moved(self, it: PodStanding, pod: PodState, due: Due, timer: UpstreamTimer) -> Reason | None:
        """Say why the service's deadline comes before that of a timer that was kept."""
        if it.node is None or timer.node is None or it.node.uid != timer.node.uid:
            return _NEW_NODE
        key = due.taint.key
        then, now = _taint(timer.node, key), _taint(it.node, key)
        if now is None:
            return None
        if due.outage_since_us is not None:
            health = [Taint(key, effect=NO_EXECUTE) for key in HEALTH_KEYS]
            is_edited = any(self._changed(taint, taint, timer.tolerations, pod.tolerations) for taint in health)
            return _EDITED if is_edited else Reason(31, "the window started again when the taint came back")
        if then is None or then.since_us != now.since_us:
            before, after = (self._seconds(one, now.taint) for one in (timer.tolerations, pod.tolerations))
            is_shorter = after is not None and (before is None or after < before)
            return _EDITED if is_shorter else Reason(6, "a later taint leaves it less time")
        change = self._changed(then.taint, now.taint, timer.tolerations, pod.tolerations)
        if change is not None:
            return change
        if pod.tolerations_since_us > due.window_start_us:
            return _EDITED
        return _REVALUED if now.value_since_us > due.window_start_us else None

    def _changed(self, before: Taint, after: Taint, earlier: Tolerations, later: Tolerations) -> Reason | None:
        """Tell what has changed how long a taint is tolerated: an edit of the pod, or the taint's value."""
        seconds = self._seconds(earlier, before)
        if self._seconds(later, before) != seconds:
            return _EDITED
        return _REVALUED if self._seconds(later, after) != seconds else None

    def _deciding(self, timer: UpstreamTimer) -> Iterator[TaintState]:
        """Give the taints whose tolerations gave a timer its time."""
        taints = () if timer.node is None else timer.node.taints
        seconds = [(self._seconds(timer.tolerations, taint.taint), taint) for taint in taints]
        least = min((number for number, _ in seconds if number is not None), default=None)
        return (one for number, one in seconds if number == least)

    def _overflows(self, node: NodeState | None, tolerations: Tolerations) -> bool:
        taints = () if node is None else node.taints
        return any((self._seconds(tolerations, taint.taint) or 0) >= OVERFLOWING_SECONDS for taint in taints)

    def _seconds(self, tolerations: Tolerations, taint: Taint) -> int | None:
        """Return how long a taint is tolerated; None forever."""
        match = first_match(tolerations, taint, comparison_operators=self._compares)
        return _UNTOLERATED if match is None else bounded_seconds(match)


def _taint(node: NodeState | None, key: str) -> TaintState | None:
    taints = () if node is None else node.taints
    return next((taint for taint in taints if taint.taint.key == key), None)


def _otherwise(it: PodStanding) -> Reason:
    if it.pod is not None and has_moved(it.pod.tolerations):
        return _MOVED
    return LATE_FEED if it.is_late else UNEXPLAINED
