"""Which nodes of a cluster carry which taints, and since when, after each record of the nodes topic that counts.

A worker applies the records of a cluster's nodes in their order. So what it can know at a moment is one of these views.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from evictstream.kit.oracle.histories import HeardNode
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.reading import Json

_DELETED_COUNTS_US: Final = 600 * SECOND_US


class ClusterView(NamedTuple):
    """A cluster from a record on.

    Attributes:
        offset: of the record.
        append_us: its append time.
        known: how many nodes are there, or were deleted less than ten minutes before.
        arrivals: by taint key, since when nodes carry it, the first ones first.
    """

    offset: int
    append_us: int
    known: int
    arrivals: Mapping[str, Sequence[int]]

    def any_within(self, key: str, from_us: int, to_us: int) -> bool:
        """Tell whether a node carries the taint since an instant in a span, both ends in it."""
        arrivals = self.arrivals.get(key, ())
        return bisect.bisect_left(arrivals, from_us) < bisect.bisect_right(arrivals, to_us)

    def count_from(self, key: str, from_us: int, within_us: int) -> int:
        """Count the nodes whose taint came within a time after an instant; 0 if none came at it."""
        arrivals = self.arrivals.get(key, ())
        first = bisect.bisect_left(arrivals, from_us)
        if first == len(arrivals) or arrivals[first] != from_us:
            return 0
        return bisect.bisect_right(arrivals, from_us + within_us) - first

    def allowed(self, guard: Json) -> int:
        """Say how many nodes a guard allows: a share is rounded down, the lower of count and share counts."""
        limits = [guard["count"]] if "count" in guard else []
        if "sharePercent" in guard:
            limits.append(self.known * guard["sharePercent"] // 100)
        return int(min(limits))

    def first_excess_us(self, key: str, guard: Json) -> int | None:
        """Say when the first of more nodes than a guard allows got the taint; None if there are not more."""
        arrivals, allowed = self.arrivals.get(key, ()), self.allowed(guard)
        for first, last in zip(arrivals, arrivals[allowed:], strict=False):
            if last - first <= guard["withinSeconds"] * SECOND_US:
                return first
        return None


def cluster_views(histories: Mapping[str, Sequence[HeardNode]]) -> list[ClusterView]:
    """Give the views of a cluster in the order of the records; `histories` are those of its nodes, by name."""
    turns = sorted(
        (
            (state.offset, place, name, state)
            for name, states in histories.items()
            for place, state in enumerate(states)
            if place
        ),
        key=lambda turn: turn[:2],
    )
    carried: dict[str, dict[str, int]] = {}
    left_us: dict[str, int] = {}
    arrivals: dict[str, tuple[int, ...]] = {}
    views = []
    for offset, _, name, state in turns:
        before = carried.pop(name, {})
        if state.uid is None:
            left_us[name] = state.at_us
        else:
            left_us.pop(name, None)
            carried[name] = {taint.key: taint.since_us for taint in state.taints}
        for key in before.keys() | carried.get(name, {}).keys():
            if before.get(key) != carried.get(name, {}).get(key):
                arrivals = {**arrivals, key: _sorted(taints.get(key) for taints in carried.values())}
        gone = sum(state.append_at_us < at_us + _DELETED_COUNTS_US for at_us in left_us.values())
        views.append(ClusterView(offset, state.append_at_us, len(carried) + gone, arrivals))
    return views


def _sorted(instants: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted(at_us for at_us in instants if at_us is not None))
