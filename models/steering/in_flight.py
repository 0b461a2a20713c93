"""How many evictions may be in flight at once that a policy limits: slots of one scope, and who waits for one.

A pod is in flight from its first `Evict` until the feed tells that it is gone or has finished, or that its eviction was
cancelled. What an executor only observes is not, and its next attempt needs a slot as a first one does. All of it is in
rows, so a new owner counts the same as the one before. A pod that does not go counts no longer than the policy says:
else a dead kubelet would keep its slot for good.

A slot is taken by a pod, by a node with all its pods, or by a group with all its pods. Pods of a node or group that has
a slot do not wait. Who waits goes in the order in which it became due, as in a bucket (`limits.py`), and of those that
became due at once the highest priority first.
"""

import heapq
import sys
from collections.abc import Iterator
from typing import Final

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import NO_TRAITS
from evictstream.models.messages.policy_clauses import InFlightUnit, LimitScope, PolicyInFlight
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.node_counts import KnownNodes

PodPlace = tuple[bytes, str]
"""A node, and the UID of a pod on it."""

_Rank = tuple[int, int]
"""Since when it is due, and its priority, negative: the smallest goes first."""

_ALL: Final = 100  # percent
_LOOKS_AGAIN_US: Final = SECOND_US
"""So often a share is counted again while something waits: nodes come and go."""

_LEAST_SWEPT: Final = 1_000
"""Places in a line that are kept without looking whether anything needs them."""


def rank_of(subject: Subject) -> _Rank:
    """Return the place in a line: what became due first goes first, and of that the highest priority."""
    return subject.due_us, -(subject.traits or NO_TRAITS).priority


class Slots:
    """Slots of one scope; it is asked as a bucket is (`limits.py`).

    Attributes:
        called: those that have got a slot and have not taken it yet.
        look_at_us: when `Limits` looks at it next; None while it has no reason to.
        number: it is the n-th that was made.
        period_us: longer than that of any bucket: a slot comes when a pod has gone.
    """

    period_us: Final = sys.maxsize

    __slots__ = (
        "_asked",
        "_ends",
        "_flying",
        "_known",
        "_limit",
        "_line",
        "_now_us",
        "_opened",
        "_unit_of",
        "_units",
        "_waiting",
        "_zone",
        "look_at_us",
        "number",
    )

    def __init__(self, limit: PolicyInFlight, value: str, known: KnownNodes | None, number: int) -> None:
        """Take the clause, what the scope is of, and the counts of nodes, for a share."""
        self._limit = limit
        self._known = known
        self._zone = value if limit.per is LimitScope.ZONE else None
        self._flying: dict[PodPlace, int] = {}  # until when each counts
        self._units: dict[object, int] = {}  # how many places of each are in flight, or have got a slot
        self._ends: list[tuple[int, PodPlace]] = []
        self._opened: dict[object, set[PodPlace]] = {}  # places that have got a slot, by unit
        self._waiting: dict[object, dict[PodPlace, _Rank]] = {}
        self._line: list[tuple[_Rank, int, object]] = []
        self._unit_of: dict[PodPlace, object] = {}  # of all that are here
        self._now_us = self._asked = 0
        self.look_at_us: int | None = None
        self.number = number

    def know(self, known: KnownNodes | None) -> None:
        """Take the counts of nodes as they are kept now: a cluster that was forgotten or left empty has other ones."""
        if known is not None:
            self._known = known

    def _most(self, now_us: int) -> int:
        """Return how many slots there are: a share is rounded down, and at least one."""
        limit = self._limit
        most = limit.count
        if limit.share_percent is not None and self._known is not None:
            share = max(1, self._known.known(self._zone, now_us) * limit.share_percent // _ALL)
            most = share if most is None else min(most, share)
        return 1 if most is None else most

    def _free(self, now_us: int) -> int:
        self._now_us = max(self._now_us, now_us)
        while self._ends and self._ends[0][0] <= now_us:
            until_us, place = heapq.heappop(self._ends)
            if self._flying.get(place) == until_us:
                self.land(place)
        return self._most(now_us) - len(self._units)

    def _count(self, unit: object, by: int) -> None:
        self._units[unit] = self._units.get(unit, 0) + by
        if not self._units[unit]:
            del self._units[unit]

    def _unit(self, place: PodPlace, subject: Subject) -> object:
        of = self._limit.of
        group = (subject.traits or NO_TRAITS).group
        if of is InFlightUnit.NODES:
            return place[0]
        return (subject.namespace, group) if of is InFlightUnit.GROUPS and group else place

    def get(self, place: PodPlace, subject: Subject, now_us: int) -> bool:
        """Whether it has got a slot, now or before. Who is in flight already needs none, stuck or not."""
        if place in self._flying or subject.first_issued_us is not None:
            return True
        unit = self._unit(place, subject)
        if place in self._opened.get(unit, ()):
            return True
        free = self._free(now_us)
        if unit not in self._units and (self._waiting or free <= 0):
            return False
        self.leave(place)
        self._opened.setdefault(unit, set()).add(place)
        self._count(unit, 1)
        self._unit_of[place] = unit
        return True

    def wait(self, place: PodPlace, subject: Subject) -> None:
        """Wait for a slot, behind those that have been due for longer."""
        unit, rank = self._unit(place, subject), rank_of(subject)
        if self._unit_of.get(place) == unit and self._waiting.get(unit, {}).get(place) == rank:
            return
        self.leave(place)
        self._unit_of[place] = unit
        self._waiting.setdefault(unit, {})[place] = rank
        self._asked += 1
        heapq.heappush(self._line, (rank, self._asked, unit))
        if len(self._line) > _LEAST_SWEPT + 2 * len(self._waiting):  # most of it has left
            ranks = {one: min(places.values()) for one, places in self._waiting.items()}
            self._line = [(first, number, one) for number, (one, first) in enumerate(ranks.items())]
            heapq.heapify(self._line)

    def take(self, place: PodPlace, subject: Subject, now_us: int) -> None:
        """Take the slot that it has got: it is in flight from now on, or has been since its first attempt."""
        self.leave(place)
        since_us = now_us if subject.first_issued_us is None else subject.first_issued_us
        until_us = since_us + self._limit.counts_seconds * SECOND_US
        if place in self._flying or until_us <= now_us:
            return
        unit = self._unit_of[place] = self._unit(place, subject)
        self._flying[place] = until_us
        self._count(unit, 1)
        heapq.heappush(self._ends, (until_us, place))

    def leave(self, place: PodPlace) -> None:
        """Wait no longer, and give back a slot that was not taken."""
        if place in self._flying or place not in self._unit_of:
            return
        unit = self._unit_of.pop(place)
        opened, waiting = self._opened.get(unit), self._waiting.get(unit)
        if opened is not None and place in opened:
            opened.remove(place)
            self._count(unit, -1)
            if not opened:
                del self._opened[unit]
        if waiting is not None:
            waiting.pop(place, None)
            if not waiting:
                del self._waiting[unit]

    def land(self, place: PodPlace) -> None:
        """Count it no longer: it is gone."""
        if self._flying.pop(place, None) is not None:
            self._count(self._unit_of.pop(place), -1)

    def call(self, now_us: int, most: int) -> Iterator[PodPlace]:
        """Give the free slots to those that have waited longest, to some `most` of them, and yield their pods."""
        while self._waiting and most > 0 and self._free(now_us) > 0:
            _, _, unit = heapq.heappop(self._line)
            places = self._waiting.pop(unit, None)
            if places is None:  # it has left, or has got a slot
                continue
            self._opened.setdefault(unit, set()).update(places)
            self._count(unit, len(places))
            most -= len(places)
            yield from places

    def next_us(self) -> int | None:
        """When the next one may get a slot; None if none waits."""
        if not self._waiting:
            return None
        if self._free(self._now_us) > 0:
            return self._now_us
        again_us = [self._now_us + _LOOKS_AGAIN_US] if self._limit.share_percent is not None else []
        return min([one[0] for one in self._ends[:1]] + again_us, default=None)

    def is_as_new(self, _now_us: int) -> bool:
        """Whether nothing is in flight and nothing waits, so that one made later does the same."""
        return not self._unit_of

    def here(self) -> Iterator[PodPlace]:
        """Yield those that wait, or have got a slot and not taken it."""
        return (place for place in self._unit_of if place not in self._flying)
