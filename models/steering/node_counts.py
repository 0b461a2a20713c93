"""How many nodes a cluster and its zones have, how many of them are unhealthy, and until when more were.

Each node counts as its state says, cordoned or not. A node that is deleted counts for ten minutes as it was then: else
those that a cloud takes away in an outage would make the rest look healthier. Steps change the counts; to ask for them
costs a look-up.

What a clause lets go when a zone has recovered is spread from that instant on, so it has to be known afterwards, and by
a new owner too. A zone so keeps its peaks: each earlier count that no later one has reached, and until when it was. By
them any share is answered. They are kept only while a policy may ask for them: the cluster's row then has a history.
"""

import heapq
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy_clauses import LONGEST_POLICY_SPREAD_SECONDS

DELETED_NODE_COUNTS_US: Final = 600 * SECOND_US
"""So long a deleted node counts on, for holds and guards: within minutes an autoscaler has replaced it, or the outage
has shown. A storm that deletes nodes does not make a guard stricter at once."""

STILL: Final = 1 << 62
"""Until when something is so that is so now."""

MOST_PEAKS: Final = 24
"""Peaks of a zone. With more, the two that lie closest become one, which ends with the later one."""

MOST_ZONES_WITH_PEAKS: Final = 100
"""Zones of a cluster that keep peaks: those that changed last. Others are forgotten: what they held goes at once."""

_LONGEST_SPREAD_US: Final = LONGEST_POLICY_SPREAD_SECONDS * SECOND_US
_ALL: Final = 100  # percent


class NodeStanding(NamedTuple):
    """As what a node counts.

    Attributes:
        zone: by its label; empty for one without, or of which it is not known.
        is_unhealthy: it has a taint of node health, or its condition `Ready` is not `True`.
        left_at_us: when it was deleted; None while it is there.
    """

    zone: str
    is_unhealthy: bool
    left_at_us: int | None = None


class Peak(NamedTuple):
    """A count of a zone's nodes that no later one has reached.

    Attributes:
        until_us: when it ended.
        unhealthy: how many of them.
        known: of how many.
    """

    until_us: int
    unhealthy: int
    known: int

    def reaches(self, other: "Peak") -> bool:
        """Whether each share and number that the other one reaches is reached."""
        return self.unhealthy >= other.unhealthy and self.unhealthy * other.known >= other.unhealthy * self.known


class NodeHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a new owner has to know of earlier counts; it is in the cluster's row while a policy may ask for it.

    Attributes:
        counted_us: deleted nodes that counted until then, or less long, are in no count.
        full_until_us: until when all nodes were unhealthy; 0 if they were not, as far as it is known.
        peaks: of each zone, the first to end first.
    """

    counted_us: int = 0
    full_until_us: int = 0
    peaks: dict[str, tuple[Peak, ...]] = {}


NO_HISTORY: Final = NodeHistory()


class _Zone:
    """The nodes of one zone."""

    __slots__ = ("known", "peaks", "unhealthy")

    def __init__(self) -> None:
        self.known = self.unhealthy = 0
        self.peaks: tuple[Peak, ...] = ()

    def end(self, at_us: int) -> None:
        """Note that its count ends."""
        if not self.unhealthy:
            return
        peak = Peak(at_us, self.unhealthy, self.known)
        oldest_us = at_us - _LONGEST_SPREAD_US
        left = [one for one in self.peaks if one.until_us >= oldest_us and not peak.reaches(one)]
        left.append(peak)
        if len(left) > MOST_PEAKS:
            place = min(range(1, len(left) - 1), key=lambda n: left[n + 1].until_us - left[n - 1].until_us)
            first, second = left[place : place + 2]
            # It reaches what either did, so that nothing goes sooner.
            left[place : place + 2] = [
                Peak(second.until_us, max(first.unhealthy, second.unhealthy), min(first.known, second.known))
            ]
        self.peaks = tuple(left)


class KnownNodes:
    """The nodes of one cluster, as they count.

    Attributes:
        changes: grows with each change of a count.
        is_changed: `history` says another thing than when `saved` was called last.
        keeps_history: whether it notes what ends; else a change of a node costs two numbers, and `history` is None.
    """

    __slots__ = (
        "_full_until_us",
        "_leaving",
        "_nodes",
        "_now_us",
        "_present",
        "_present_unhealthy",
        "_zones",
        "changes",
        "is_changed",
        "keeps_history",
    )

    def __init__(
        self, history: NodeHistory | None = NO_HISTORY, nodes: Iterable[tuple[str, NodeStanding]] = ()
    ) -> None:
        """Take what the rows of a cluster say: of earlier counts, and of each node that is there or was deleted.

        Without a history none is kept.
        """
        self.changes = 0
        self.is_changed = False
        self.keeps_history = history is not None
        history = history or NO_HISTORY
        self._zones: dict[str, _Zone] = {}
        self._nodes: dict[str, NodeStanding] = {}
        self._leaving: list[tuple[int, str]] = []
        self._present = self._present_unhealthy = 0
        self._now_us = history.counted_us
        self._full_until_us = history.full_until_us
        for name, standing in nodes:
            if _counts_until_us(standing) > history.counted_us:
                self._put(name, standing)
        for zone, peaks in history.peaks.items():
            if zone in self._zones:
                self._zones[zone].peaks = tuple(peaks)

    def take(self, name: str, standing: NodeStanding | None, at_us: int) -> None:
        """Count a node as it is since an instant; None for one of which nothing is known any more."""
        if self._nodes.get(name) == standing:
            return
        self.advance(at_us)
        if standing is not None and _counts_until_us(standing) <= self._now_us:
            standing = None
        before = self._nodes.get(name)
        if before != standing:
            self._change(name, standing, self._now_us)

    def advance(self, now_us: int) -> None:
        """Let time pass: deleted nodes count no longer."""
        while self._leaving and self._leaving[0][0] <= now_us:
            until_us, name = heapq.heappop(self._leaving)
            standing = self._nodes.get(name)
            if standing is not None and _counts_until_us(standing) == until_us:
                self._change(name, None, max(until_us, self._now_us))
        self._now_us = max(self._now_us, now_us)

    def _change(self, name: str, standing: NodeStanding | None, at_us: int) -> None:
        before = self._nodes.get(name)
        was_full = self.keeps_history and self.is_full
        has_more_peaks = self.keeps_history and self._end((before, standing), at_us)
        if before is not None:
            self._drop(name, before)
        if standing is not None:
            self._put(name, standing)
        if before is not None and not self._zones[before.zone].known:
            del self._zones[before.zone]
        if was_full and not self.is_full:
            self._full_until_us = at_us
            self.is_changed = True
        if has_more_peaks:
            self._forget_peaks()
        self.changes += 1

    def _end(self, standings: tuple[NodeStanding | None, ...], at_us: int) -> bool:
        """Note that the counts of these zones end; returns whether one has peaks that had none."""
        has_more_peaks = False
        for zone in {one.zone for one in standings if one is not None}:
            if zone in self._zones:
                had_peaks = bool(self._zones[zone].peaks)
                self._zones[zone].end(at_us)
                has_more_peaks = has_more_peaks or (not had_peaks and bool(self._zones[zone].peaks))
                self.is_changed = self.is_changed or bool(self._zones[zone].peaks)
        return has_more_peaks

    def _put(self, name: str, standing: NodeStanding) -> None:
        self._nodes[name] = standing
        zone = self._zones.get(standing.zone)
        if zone is None:
            zone = self._zones[standing.zone] = _Zone()
        self._add(zone, standing, 1)
        if standing.left_at_us is not None:
            heapq.heappush(self._leaving, (_counts_until_us(standing), name))

    def _drop(self, name: str, standing: NodeStanding) -> None:
        del self._nodes[name]
        self._add(self._zones[standing.zone], standing, -1)

    def _add(self, zone: _Zone, standing: NodeStanding, by: int) -> None:
        zone.known += by
        zone.unhealthy += by * standing.is_unhealthy
        if standing.left_at_us is None:
            self._present += by
            self._present_unhealthy += by * standing.is_unhealthy

    def _forget_peaks(self) -> None:
        if len(self._zones) > MOST_ZONES_WITH_PEAKS:
            those = sorted((zone for zone in self._zones.values() if zone.peaks), key=lambda zone: zone.peaks[-1])
            for zone in those[:-MOST_ZONES_WITH_PEAKS]:
                zone.peaks = ()

    @property
    def is_full(self) -> bool:
        """Whether all nodes that are there are unhealthy: each zone is in full disruption. Not without nodes."""
        return 0 < self._present == self._present_unhealthy

    def known(self, zone: str | None, now_us: int) -> int:
        """Count the nodes of a zone, or of the cluster for None, with those that were deleted not long ago."""
        self.advance(now_us)
        if zone is None:
            return len(self._nodes)
        return self._zones[zone].known if zone in self._zones else 0

    def unhealthy(self, zone: str | None, now_us: int) -> int:
        """Count those of them that are unhealthy."""
        self.advance(now_us)
        zones = self._zones.values() if zone is None else [self._zones[zone]] if zone in self._zones else []
        return sum(one.unhealthy for one in zones)

    def zones(self, now_us: int) -> tuple[str, ...]:
        """Return the names of the zones that have nodes; an empty one is of nodes without a zone."""
        self.advance(now_us)
        return tuple(self._zones)

    def unhealthy_until_us(self, zone: str | None, percent: int, at_least: int, now_us: int) -> int | None:
        """Return until when so many nodes of a zone were unhealthy.

        Args:
            zone: its name; None where it is not known: then the zone counts in which it was so last.
            percent: of its nodes. What share is unhealthy is rounded down: 1 of 3 is 33 percent.
            at_least: no fewer.
            now_us: now.

        Returns:
            `STILL` if they are; None if they were not in the longest time of a spread.
        """
        self.advance(now_us)
        if zone is None:
            found = (self.unhealthy_until_us(name, percent, at_least, now_us) for name in self._zones)
            return max((one for one in found if one is not None), default=None)
        of_zone = self._zones.get(zone)
        if of_zone is None:
            return None
        if of_zone.unhealthy >= at_least and of_zone.unhealthy * _ALL >= percent * of_zone.known:
            return STILL
        for peak in reversed(of_zone.peaks):
            if peak.unhealthy >= at_least and peak.unhealthy * _ALL >= percent * peak.known:
                return peak.until_us
        return None

    def full_until_us(self, now_us: int) -> int | None:
        """Return until when all nodes were unhealthy: `STILL` if they are, None if they were not."""
        self.advance(now_us)
        return STILL if self.is_full else self._full_until_us or None

    def history(self) -> NodeHistory | None:
        """Return what a new owner has to know; None if it is not kept."""
        if not self.keeps_history:
            return None
        peaks = {name: zone.peaks for name, zone in self._zones.items() if zone.peaks}
        return NodeHistory(self._now_us, self._full_until_us, peaks)

    def begin_history(self, now_us: int) -> None:
        """Note what ends from now on; of what has ended before, nothing is known."""
        self.advance(now_us)
        self.keeps_history = self.is_changed = True

    def end_history(self) -> None:
        """Note nothing any more, and forget what has ended."""
        self.keeps_history = self.is_changed = False
        self._full_until_us = 0
        for zone in self._zones.values():
            zone.peaks = ()

    def saved(self) -> None:
        """Note that the history is in the row."""
        self.is_changed = False

    def cap_times(self, latest_us: int, now_us: int) -> None:
        """Let what ended later than `latest_us` have ended now: it lies in the future."""
        if self._now_us > latest_us:
            self._now_us, self.is_changed = now_us, self.keeps_history
        if self._full_until_us > latest_us:
            self._full_until_us, self.is_changed = now_us, True
        for zone in self._zones.values():
            if zone.peaks and zone.peaks[-1].until_us > latest_us:
                zone.peaks = tuple(
                    one._replace(until_us=_capped(one.until_us, latest_us, now_us)) for one in zone.peaks
                )
                self.is_changed = True


def _counts_until_us(standing: NodeStanding) -> int:
    return STILL if standing.left_at_us is None else standing.left_at_us + DELETED_NODE_COUNTS_US


def _capped(at_us: int, latest_us: int, now_us: int) -> int:
    return now_us if at_us > latest_us else at_us
