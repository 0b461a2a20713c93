"""What is due for a pod in one state on a node in one state (semantics.md 3, 4, 12.5)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.numbers import SECOND_US
from tests.faults.oracle.histories import HEALTH, NodeState, PodState, Taint
from tests.faults.oracle.reading import Json, to_us

LAST_US = to_us("9999-12-31T23:59:59.999999+00:00")
NEVER = None


@dataclass(frozen=True, slots=True)
class Due:
    """Something is due.

    Attributes:
        deadline_us: when. For an untolerated taint, which is due at once, the start of the window.
        is_untolerated: whether some taint is not tolerated at all.
        taint: key of the taint that decides.
        window_us: since when taint and pod are together.
    """

    deadline_us: int
    is_untolerated: bool
    taint: str
    window_us: int

    @property
    def verdict(self) -> str:
        """The word for it."""
        return "Untolerated" if self.is_untolerated else "TolerationExpires"


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is due, for these reasons; `keys` are the taints that are on the node all the same."""

    why: frozenset[str]
    keys: frozenset[str] = frozenset()

    @property
    def is_leaving(self) -> bool:
        """Whether the pod is on its way out, or gone: what was issued is done then."""
        return bool(self.why & {"PodTerminating", "PodFinished", "PodGone", "PodReplaced"})


def decide(node: NodeState, pod: PodState) -> Due | Idle:
    """Decide."""
    if pod.absent:
        return Idle(frozenset({pod.absent}))
    if pod.exempt:
        return Idle(pod.exempt)
    if node.uid is None:
        return Idle(frozenset({"NodeGone"}))
    for taint in node.taints:
        if in_use(pod.tolerations, taint) is None:
            window_us = max(taint.since_us, pod.since_us)
            return Due(window_us, is_untolerated=True, taint=taint.key, window_us=window_us)
    earliest: Due | None = None
    for taint in node.taints:
        time_us = _leaves_at_us(node, pod, taint)
        if time_us is not NEVER and time_us <= LAST_US and (earliest is None or time_us < earliest.deadline_us):
            earliest = Due(time_us, is_untolerated=False, taint=taint.key, window_us=max(taint.since_us, pod.since_us))
    if earliest is not None:
        return earliest
    return Idle(frozenset({"Tolerated", "TaintRemoved"}), frozenset(taint.key for taint in node.taints))


def in_use(tolerations: tuple[Json, ...], taint: Taint) -> Json | None:
    """Give the first toleration that matches (3.4); the operators `Gt` and `Lt` match nothing, their gate is off."""
    for toleration in tolerations:
        same_effect = toleration.get("effect") in (None, "", "NoExecute")
        same_key = toleration.get("key") in (None, "", taint.key)
        operator = toleration.get("operator") or "Equal"
        same_value = operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint.value)
        if same_effect and same_key and same_value:
            return toleration
    return None


def _stay_us(toleration: Json) -> int | None:
    seconds = toleration.get("tolerationSeconds")
    return NEVER if seconds is None else max(0, seconds) * SECOND_US


def _leaves_at_us(node: NodeState, pod: PodState, taint: Taint) -> int | None:
    """Until when this taint lets the pod stay (12.5, fourth rule)."""
    toleration = in_use(pod.tolerations, taint)
    stay_us = NEVER if toleration is None else _stay_us(toleration)
    if stay_us is NEVER:
        return NEVER
    time_us = max(taint.since_us, pod.since_us) + stay_us
    if taint.key not in HEALTH or node.outage_us is None:
        return time_us
    other_key = HEALTH[1 - HEALTH.index(taint.key)]
    there = next((found for found in node.taints if found.key == other_key), Taint(other_key, "", 0, None))
    other = in_use(pod.tolerations, there)
    other_us = 0 if other is None else _stay_us(other)
    if other_us is NEVER:
        return time_us
    return min(time_us, max(node.outage_us, pod.since_us) + max(stay_us, other_us))
