"""How a cluster stands, in numbers: its nodes by health, its open evictions by state and deadline.

Steps change the counts, half a microsecond for each change of an eviction; only a new owner of a partition counts what
it has loaded. Both ways lead to the same numbers (`tests/faults/simulated/state.py` compares them).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.lifecycle import FAILURES
from evictstream.models.eviction.state import Eviction
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.fleet import (
    MOST_BUCKETS,
    MOST_HOLDERS,
    DeadlineBucket,
    EvictionCounts,
    HeldBy,
    NodeCounts,
)
from evictstream.models.messages.vocabulary import EvictionState, Outcome

MINUTE_US: Final = 60 * SECOND_US

_ABSENT: Final = 0
_HEALTHY: Final = 1
_UNHEALTHY: Final = 2
_UNKNOWN: Final = 3
_TAINTED: Final = 4
"""Added to `_HEALTHY` or `_UNHEALTHY`."""

_HEALTH: Final = 3

_SCHEDULED = EvictionState.SCHEDULED  # see `evictstream.models.eviction` for these constants
_ISSUED = EvictionState.ISSUED
_RETRYING = EvictionState.RETRYING
_DONE = EvictionState.DONE
_OBSERVED = Outcome.OBSERVED


Move: TypeAlias = tuple[Eviction | None, Eviction | None]
"""An eviction as it was and as it is; None where there is none."""


def standing_of(aggregate: NodeAggregate) -> int:
    """Return as what a node counts; `_ABSENT` for one of which nothing but memories is left.

    It depends on the node's state, which is replaced and never changed, and on whether there are pods.
    """
    node = aggregate.node
    if node is None:
        return _UNKNOWN if aggregate.pods else _ABSENT
    if node.is_undecidable:
        return _UNKNOWN
    if not node.taints:
        return _HEALTHY
    outage = node.outage  # without a gap it has a health taint now; to look at a thousand taints would cost more
    return _TAINTED + (_UNHEALTHY if outage is not None and outage.gap_since_us is None else _HEALTHY)


def has_to_count(aggregate: NodeAggregate) -> bool:
    """Whether a node has changed since it was counted; for one that is known, a look at one reference."""
    node = aggregate.node
    return aggregate.counted_node is not node or (node is None and standing_of(aggregate) != aggregate.counted_as)


class Deadlines:
    """Counts instants, so that those before any instant are counted without looking at each."""

    __slots__ = ("_minutes",)

    def __init__(self) -> None:
        self._minutes: dict[int, dict[int, int]] = {}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._minutes)

    def count(self, at_us: int, by: int) -> None:
        """Count one more (1) or one less (-1)."""
        minute = at_us // MINUTE_US
        of_minute = self._minutes.get(minute)
        if of_minute is None:
            of_minute = self._minutes[minute] = {}
        count = of_minute.get(at_us, 0) + by
        if count:
            of_minute[at_us] = count
            return
        del of_minute[at_us]
        if not of_minute:
            del self._minutes[minute]

    def earliest_us(self) -> int | None:
        """Return the first instant; None if there is none."""
        return min(self._minutes[min(self._minutes)]) if self._minutes else None

    def split(self, now_us: int) -> tuple[int, list[tuple[int, int]]]:
        """Return how many have come, and those ahead by the minute: its end, and how many."""
        come, ahead = 0, []
        for minute in sorted(self._minutes):
            of_minute = self._minutes[minute]
            begin_us, end_us = minute * MINUTE_US, (minute + 1) * MINUTE_US
            count = sum(of_minute.values())
            if begin_us <= now_us:
                left = 0 if end_us <= now_us else sum(n for at_us, n in of_minute.items() if at_us > now_us)
                come += count - left
                count = left
            if count:
                ahead.append((end_us, count))
        return come, ahead


class HeldCount(NamedTuple):
    """What one brake or policy holds.

    Attributes:
        by: the id of the brake, or `policy/NAME`.
        evictions: how many.
        oldest_at_us: since when the one is due that was held first.
        clauses: of a policy: how many of them each clause holds.
    """

    by: str
    evictions: int
    oldest_at_us: int
    clauses: tuple[tuple[str, int], ...] = ()


class Levels:
    """Counts of some nodes.

    Attributes:
        changes: grows with each change.
        scheduled: deadlines of the evictions that were not issued.
    """

    __slots__ = (
        "_built_in",
        "_failing",
        "_issued",
        "_nodes",
        "_observed",
        "_owed",
        "_retrying",
        "changes",
        "scheduled",
    )

    def __init__(self) -> None:
        self.changes = 0
        self.scheduled = Deadlines()
        self._owed = Deadlines()  # of those that were issued
        self._built_in = Deadlines()  # timers of Kubernetes' own controller
        self._nodes = [0] * (_TAINTED + _HEALTH)
        self._issued = self._retrying = self._failing = self._observed = 0

    @property
    def has_nodes(self) -> bool:
        """Whether any node is counted."""
        return any(self._nodes[_HEALTHY:])

    def count_node(self, before: int, after: int) -> None:
        """Count a node as another standing than before."""
        if before != after:
            self.changes += 1
            self._nodes[before] -= 1
            self._nodes[after] += 1

    def count_evictions(self, moves: Iterable[Move]) -> None:
        """Count what has become of evictions."""
        for before, after in moves:
            self.changes += 1
            if before is not None:
                self._count(before, -1)
            if after is not None:
                self._count(after, 1)

    def _count(self, eviction: Eviction, by: int) -> None:
        state = eviction.state
        if eviction.built_in_us is not None and state is not _DONE:
            self._built_in.count(eviction.built_in_us, by)
        if state is _SCHEDULED:
            self.scheduled.count(eviction.due.deadline_us, by)
            return
        if state is _RETRYING:
            self._retrying += by
            if eviction.outcome in FAILURES:
                self._failing += by
        elif state is _ISSUED:
            self._issued += by
        else:
            return
        self._owed.count(eviction.owed_us, by)
        if eviction.outcome is _OBSERVED:
            self._observed += by

    def nodes(self) -> NodeCounts:
        """Return the nodes by their standing."""
        counts = self._nodes
        return NodeCounts(
            healthy=counts[_HEALTHY] + counts[_HEALTHY + _TAINTED],
            unhealthy=counts[_UNHEALTHY] + counts[_UNHEALTHY + _TAINTED],
            unknown=counts[_UNKNOWN],
            tainted=counts[_HEALTHY + _TAINTED] + counts[_UNHEALTHY + _TAINTED],
        )

    def evictions(self, now_us: int, held: int, holders: Sequence[HeldCount] = ()) -> EvictionCounts:
        """Return the open evictions as they are at an instant; `holders` have the `held` ones, most of them first."""
        due, ahead = self.scheduled.split(now_us)
        scheduled = sum(count for _, count in ahead)
        first, last = self.scheduled.earliest_us() if due else None, self._owed.earliest_us()
        oldest_us = min((at_us for at_us in (first, last) if at_us is not None), default=None)
        built_in_us = self._built_in.earliest_us()
        return EvictionCounts(
            open=scheduled + due + self._issued + self._retrying,
            scheduled=scheduled,
            due=due,
            issued=self._issued,
            retrying=self._retrying,
            failing=self._failing,
            observed=self._observed,
            held=held,
            deadlines=tuple(
                DeadlineBucket(before=instant_text(end_us), evictions=count) for end_us, count in ahead[:MOST_BUCKETS]
            ),
            later=sum(count for _, count in ahead[MOST_BUCKETS:]),
            held_by=tuple(
                HeldBy(
                    by=one.by,
                    evictions=one.evictions,
                    oldest_at=instant_text(one.oldest_at_us),
                    clauses=dict(one.clauses),
                )
                for one in holders[:MOST_HOLDERS]
            ),
            oldest_due_at=None if oldest_us is None else instant_text(oldest_us),
            built_in_at=None if built_in_us is None else instant_text(built_in_us),
        )


class ClusterLevels(Levels):
    """Counts of one cluster.

    Attributes:
        zones: the same of its nodes in each zone, by the zone's name; nodes without a zone are in none.
    """

    __slots__ = ("zones",)

    def __init__(self) -> None:
        super().__init__()
        self.zones: dict[str, Levels] = {}

    def take(self, aggregate: NodeAggregate, moves: Sequence[Move]) -> None:
        """Count what has become of a node, and of evictions of its pods.

        A node that has changed its zone takes its evictions along. Those that the rest of its step has not decided yet
        are as they were, and count where it is now.
        """
        zone, before_as = aggregate.counted_in, aggregate.counted_as
        self.count_evictions(moves)
        if zone:
            self.zones[zone].count_evictions(moves)
        if not has_to_count(aggregate):
            return
        standing, node = standing_of(aggregate), aggregate.node
        self.count_node(before_as, standing)
        zone_now = "" if node is None else node.zone or ""
        if zone_now == zone:
            if zone:
                self.zones[zone].count_node(before_as, standing)
        else:
            here = [pod.eviction for pod in aggregate.pods.values() if pod.eviction is not None]
            self._move(zone, before_as, _ABSENT, [(eviction, None) for eviction in here])
            self._move(zone_now, _ABSENT, standing, [(None, eviction) for eviction in here])
        aggregate.counted_node, aggregate.counted_as, aggregate.counted_in = node, standing, zone_now

    def _move(self, zone: str, before: int, after: int, moves: Sequence[Move]) -> None:
        """Let a node leave a zone, or enter one; the empty name is none."""
        if not zone:
            return
        levels = self.zones.get(zone)
        if levels is None:
            levels = self.zones[zone] = Levels()
        levels.count_node(before, after)
        levels.count_evictions(moves)
        if not levels.has_nodes:
            del self.zones[zone]
