"""What is due for a pod in one state on a node in one state (semantics.md 3, 4, 12.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evictstream.kit.oracle.histories import HEALTH, HeardNode, HeardPod, HeardTaint
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import shown

LAST_US = to_us("9999-12-31T23:59:59.999999+00:00")
NEVER = None


@dataclass(frozen=True, slots=True)
class MustLeave:
    """Something is due.

    Attributes:
        deadline_us: when. For an untolerated taint, which is due at once, the last fact that made it so.
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

    def __str__(self) -> str:
        """Say it in one line."""
        return f"the eviction by {self.taint} ({self.verdict}) with the deadline {shown(self.deadline_us)}"


@dataclass(frozen=True, slots=True)
class MayStay:
    """Nothing is due, for these reasons; `keys` are the taints that are on the node all the same."""

    why: frozenset[str]
    keys: frozenset[str] = frozenset()

    @property
    def is_leaving(self) -> bool:
        """Whether the pod is on its way out, or gone: what was issued is done then."""
        return bool(self.why & {"PodTerminating", "PodFinished", "PodGone", "PodReplaced"})

    def __str__(self) -> str:
        """Name the reasons."""
        return " or ".join(sorted(self.why))


def expected_decision(node: HeardNode, pod: HeardPod, *, is_built_in_on: bool = False) -> MustLeave | MayStay:
    """Decide; where Kubernetes' own controller is on, what it does as early is left to it (12.12)."""
    decided = _in_force(node, pod)
    if not is_built_in_on or isinstance(decided, MayStay):
        return decided
    counted = tuple(_as_counted(one) for one in pod.in_spec)
    theirs = _in_force(node, replace(pod, tolerations=counted))
    if isinstance(theirs, MayStay) or (not decided.is_untolerated and theirs.deadline_us > decided.deadline_us):
        return decided
    return MayStay(frozenset({"BuiltIn"}))


def _as_counted(toleration: Json) -> Json:
    """Give a toleration with its seconds as 64 bits of nanoseconds (13 row 33): those that are negative never end."""
    seconds = toleration.get("tolerationSeconds")
    if seconds is None or seconds < 2**63 // 10**9 + 1:
        return toleration
    wrapped = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    is_forever = wrapped < 0 or seconds >= 2**63 - 1
    return {**toleration, "tolerationSeconds": None if is_forever else wrapped // 10**9}


def _in_force(node: HeardNode, pod: HeardPod) -> MustLeave | MayStay:
    if pod.absent:
        return MayStay(frozenset({pod.absent}))
    if pod.exempt:
        return MayStay(pod.exempt)
    if node.uid is None:
        return MayStay(frozenset({"NodeGone"}))
    if not node.taints:
        return MayStay(frozenset({"TaintRemoved"}))
    for taint in node.taints:
        if in_use(pod.tolerations, taint) is None:
            facts = (taint.since_us, taint.value_since_us, pod.since_us, pod.tolerations_since_us)
            window_us = max(taint.since_us, pod.since_us)
            return MustLeave(max(facts), is_untolerated=True, taint=taint.key, window_us=window_us)
    earliest: MustLeave | None = None
    for taint in node.taints:
        time_us = _leaves_at_us(node, pod, taint)
        if time_us is not NEVER and time_us <= LAST_US and (earliest is None or time_us < earliest.deadline_us):
            earliest = MustLeave(time_us, is_untolerated=False, taint=taint.key, window_us=_window_us(taint, pod))
    if earliest is not None:
        return earliest
    return MayStay(frozenset({"Tolerated", "TaintRemoved"}), frozenset(taint.key for taint in node.taints))


def in_use(tolerations: Sequence[Json], taint: HeardTaint) -> Json | None:
    """Give the first toleration that matches (3.4); the operators `Gt` and `Lt` match nothing, their gate is off."""
    for toleration in tolerations:
        operator = toleration.get("operator") or "Equal"
        same_value = operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint.value)
        if _is_for(toleration, taint) and same_value:
            return toleration
    return None


def hangs_on_value(tolerations: Sequence[Json], taint: HeardTaint) -> bool:
    """Tell whether the toleration in use, or one before it, compares the value (12.4)."""
    operators = [toleration.get("operator") or "Equal" for toleration in tolerations if _is_for(toleration, taint)]
    return next((operator == "Equal" for operator in operators if operator in ("Equal", "Exists")), False)


def _is_for(toleration: Json, taint: HeardTaint) -> bool:
    return toleration.get("effect") in (None, "", "NoExecute") and toleration.get("key") in (None, "", taint.key)


def tolerated_us(toleration: Json) -> int | None:
    """Give for how long a toleration lets a pod stay (section 4): never less than nothing, `NEVER` for no end."""
    seconds = toleration.get("tolerationSeconds")
    return NEVER if seconds is None else max(0, seconds) * SECOND_US


def _window_us(taint: HeardTaint, pod: HeardPod) -> int:
    """Since when the toleration in use may count: the value that plays a part in it came no earlier."""
    came_us = taint.value_since_us if hangs_on_value(pod.tolerations, taint) else taint.since_us
    return max(came_us, pod.since_us)


def _is_another(pod: HeardPod, taint: HeardTaint) -> bool:
    """Whether the taint came with another value, and that plays a part."""
    return taint.value_since_us != taint.since_us and hangs_on_value(pod.tolerations, taint)


def _leaves_at_us(node: HeardNode, pod: HeardPod, taint: HeardTaint) -> int | None:
    """Until when this taint lets the pod stay (12.5, fourth rule)."""
    toleration = in_use(pod.tolerations, taint)
    own_us = NEVER if toleration is None else tolerated_us(toleration)
    if own_us is NEVER:
        return NEVER
    time_us = _window_us(taint, pod) + own_us
    if taint.key not in HEALTH or node.outage_us is None or _is_another(pod, taint):
        return time_us
    other_key = HEALTH[1 - HEALTH.index(taint.key)]
    absent = HeardTaint(key=other_key, value="", since_us=0, value_since_us=0, added_us=None)
    there = next((state for state in node.taints if state.key == other_key), absent)
    other = in_use(pod.tolerations, there)
    other_us = 0 if other is None else tolerated_us(other)
    if other_us is NEVER or _is_another(pod, there):
        return time_us
    return min(time_us, max(node.outage_us, pod.since_us) + max(own_us, other_us))
