"""Since when a node has its taints, updated from the taints that are seen now (semantics.md 12.4, starts only).

When a window opens and how long it lasts is decided by `decision.py`, from these starts and the pod's.

A start is kept for each taint, and for the outage that the two health taints show. The controller that sets `not-ready`
and `unreachable` swaps one for the other, sometimes with both on the node for some milliseconds. When it is restarted,
it takes the taint off and puts it back within 0.1 s, or later at its eviction rate. All of that is one outage. Only the
end of a full disruption leaves a gap on purpose, after which a new outage begins. While one node of the cluster is
Ready there is no full disruption, so a start is kept for that too.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from evictstream.models.eviction.state import Outage, TaintState
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, Taint

ReadySince: TypeAlias = Callable[[int], bool]
"""Tells whether some node of the cluster has been Ready from an instant on (`Cluster.has_ready_since`)."""


def _is_not_known(_: int) -> bool:
    return False


NO_NODE_IS_READY: Final[ReadySince] = _is_not_known
"""For a node whose cluster is not known, or was not watched without a break."""


def advance_taints(before: Sequence[TaintState], seen: Iterable[Taint], at_us: int) -> tuple[TaintState, ...]:
    """Carry the starts of the known taints over to the taints that are seen on the node now.

    Only `NoExecute` taints are kept, so a taint whose effect changes is removed. A change of the value keeps the
    window. A later `timeAdded` than the last one seen shows that a removal was missed, and begins a new window; a
    `timeAdded` that appears or vanishes shows nothing.

    Args:
        before: the taints so far, of the same node (UID).
        seen: all taints on the node now, in node order.
        at_us: the instant of the event.

    Returns:
        The `NoExecute` taints in node order.
    """
    unclaimed = _Unclaimed(before)
    return tuple(_carry(unclaimed.claim(taint), taint, at_us) for taint in seen if taint.effect == NO_EXECUTE)


def advance_ready(before_us: int | None, *, is_ready: bool, is_listed: bool, at_us: int) -> int | None:
    """Update since when a node has been Ready without a break.

    Args:
        before_us: since when it was Ready so far; None if it was not, or if the node is new.
        is_ready: it is Ready now, and counts for its zone.
        is_listed: this is another version from a listing: the states before it may be missing.
        at_us: the instant of the event.
    """
    if not is_ready:
        return None
    return at_us if before_us is None or is_listed else before_us


def advance_outage(
    before: Outage | None,
    taints: Iterable[TaintState],
    ready: str | None,
    *,
    at_us: int,
    gap_us: int,
    has_ready_since: ReadySince = NO_NODE_IS_READY,
) -> Outage | None:
    """Update the outage of a node from what is seen on it now.

    Args:
        before: the outage so far; None if there was none, or if the node is new.
        taints: the `NoExecute` taints on the node now.
        ready: status of its condition `Ready`, None if it is not reported.
        at_us: the instant of the event.
        gap_us: longest gap without a health taint that belongs to the outage whatever the cluster shows, microseconds.
        has_ready_since: asked about the start of the outage in a longer gap: whether the gap belongs to it all the
            same.

    Returns:
        The outage, which may be in a gap, or None.
    """
    is_tainted = any(state.taint.key in HEALTH_KEYS for state in taints)
    if before is None:
        return Outage(at_us) if is_tainted else None
    is_too_long = (
        before.gap_since_us is not None
        and at_us - before.gap_since_us > gap_us
        and not has_ready_since(before.since_us)
    )
    if is_tainted:
        if is_too_long:
            return Outage(at_us)
        return before if before.gap_since_us is None else msgspec.structs.replace(before, gap_since_us=None)
    if is_too_long or ready is None or ready == "True":
        return None
    return before if before.gap_since_us is not None else msgspec.structs.replace(before, gap_since_us=at_us)


class _Unclaimed:
    """The known taints that no seen taint has claimed yet; a claim costs a few look-ups, however many there are."""

    __slots__ = ("_before", "_by_key", "_by_value", "_claimed")

    def __init__(self, before: Sequence[TaintState]) -> None:
        self._before = before
        self._by_key: dict[str, list[int]] = {}
        self._by_value: dict[tuple[str, str], list[int]] = {}
        self._claimed: set[int] = set()
        for place in range(len(before) - 1, -1, -1):  # reversed, so that `pop()` returns the first place
            taint = before[place].taint
            self._by_key.setdefault(taint.key, []).append(place)
            self._by_value.setdefault((taint.key, taint.value), []).append(place)

    def claim(self, seen: Taint) -> TaintState | None:
        """Claim the known taint with the same key; of several, the one with the same value first."""
        for places in (self._by_value.get((seen.key, seen.value)), self._by_key.get(seen.key)):
            while places:
                place = places.pop()
                if place not in self._claimed:
                    self._claimed.add(place)
                    return self._before[place]
        return None


def _carry(before: TaintState | None, seen: Taint, at_us: int) -> TaintState:
    added_us = seen.time_added_us
    if before is None or _is_later(added_us, before.time_added_us):
        return TaintState(_without_time(seen), at_us, at_us, added_us)
    if added_us is None:
        added_us = before.time_added_us  # kept, to be compared with the next one that is seen
    if before.taint.value == seen.value:
        return before if added_us == before.time_added_us else msgspec.structs.replace(before, time_added_us=added_us)
    return TaintState(_without_time(seen), before.since_us, at_us, added_us)


def _is_later(added_us: int | None, recorded_us: int | None) -> bool:
    return added_us is not None and recorded_us is not None and added_us > recorded_us


def _without_time(taint: Taint) -> Taint:
    return Taint(taint.key, taint.value, taint.effect)
