"""Windows: since when a certain taint and a certain pod have been together (semantics.md 12.4).

A window opens at the later of two events, the taint's arrival on the node and the pod's first sight there, and closes
with either. So it need not be stored: each taint keeps its own beginning and each pod keeps its own. Node and pod
events can then interleave in any way and give the same windows, and there is nothing to bring up to date.
"""

from collections.abc import Iterable, Sequence

import msgspec

from evictstream.models.eviction.state import PodState, TaintState
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint


def window_start_us(taint: TaintState, pod: PodState) -> int:
    """Compute when the window of a taint and a pod opened, microseconds since 1970."""
    return max(taint.since_us, pod.since_us)


def untolerated_since_us(taint: TaintState, pod: PodState) -> int:
    """Compute when the last of the facts came about that make a pod untolerated: it was due from then on."""
    return max(taint.since_us, taint.value_since_us, pod.since_us, pod.tolerations_since_us)


def advance_taints(known: Sequence[TaintState], seen: Iterable[Taint], at_us: int) -> tuple[TaintState, ...]:
    """Carry the beginnings of the taints over to what is seen on the node now.

    Only `NoExecute` taints are kept, so a taint whose effect changes is removed. A change of the value keeps the
    window. A later `timeAdded` than the last one seen tells of a removal that was missed, and begins a new window; one
    that appears or vanishes tells nothing.

    Args:
        known: the taints so far, of the same node (UID).
        seen: all taints on the node now, in node order.
        at_us: the instant of the event.

    Returns:
        The `NoExecute` taints in node order.
    """
    left = _Left(known)
    return tuple(_carry(left.take(taint), taint, at_us) for taint in seen if taint.effect == NO_EXECUTE)


class _Left:
    """The known taints that none of those seen has taken yet, by key: each costs a few look-ups, however many."""

    __slots__ = ("_by_key", "_by_value", "_known", "_taken")

    def __init__(self, known: Sequence[TaintState]) -> None:
        self._known = known
        self._by_key: dict[str, list[int]] = {}
        self._by_value: dict[tuple[str, str], list[int]] = {}
        self._taken: set[int] = set()
        for place in range(len(known) - 1, -1, -1):  # so that the first of a key is the last of its places
            taint = known[place].taint
            self._by_key.setdefault(taint.key, []).append(place)
            self._by_value.setdefault((taint.key, taint.value), []).append(place)

    def take(self, seen: Taint) -> TaintState | None:
        """Take the known taint with the same key, the one with the same value first if an object lists a key twice."""
        for places in (self._by_value.get((seen.key, seen.value)), self._by_key.get(seen.key)):
            while places:
                place = places.pop()
                if place not in self._taken:
                    self._taken.add(place)
                    return self._known[place]
        return None


def _carry(known: TaintState | None, seen: Taint, at_us: int) -> TaintState:
    added_us = seen.time_added_us
    if known is None or _is_later(added_us, known.time_added_us):
        return TaintState(_without_time(seen), at_us, at_us, added_us)
    if added_us is None:
        added_us = known.time_added_us  # what was seen last stays seen; the next one is compared with it
    if known.taint.value == seen.value:
        return known if added_us == known.time_added_us else msgspec.structs.replace(known, time_added_us=added_us)
    return TaintState(_without_time(seen), known.since_us, at_us, added_us)


def _is_later(added_us: int | None, recorded_us: int | None) -> bool:
    return added_us is not None and recorded_us is not None and added_us > recorded_us


def _without_time(taint: Taint) -> Taint:
    return Taint(taint.key, taint.value, taint.effect)
