"""What a guard counts: nodes of one cluster whose taints of one key came within some time, or the pods that leave them.

Only instants of taints count, zones, and pods that leave or have left, all of which are in rows. So every owner finds
the same, in whatever order records came. What has left the nodes meanwhile does not change the count.
"""

import bisect
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import GuardMeasure, GuardScope, PolicyGuard
from evictstream.models.steering.guarded_nodes import (
    ALL_NODES,
    Covered,
    GuardedNode,
    GuardedPart,
    NodePatterns,
    uncovered,
)
from evictstream.models.steering.node_counts import DELETED_NODE_COUNTS_US
from evictstream.models.steering.patterns import Patterns

LOOK_AROUND_US: Final = SECOND_US
"""So long what is due at once waits under a guard: a storm shows how large it is. Taints of one cause come within it,
as long as their writer is not slowed down on purpose."""


class Exceeded(NamedTuple):
    """More than a guard allows.

    Attributes:
        taint: key of the taint.
        part: the nodes that were counted.
        from_us: when the first of its taints came.
        counted: how many nodes, pods or owners, of nodes whose taints came within the time of the guard.
        limit: how many are allowed.
        known: how many nodes are known, of those that are counted together.
    """

    taint: str
    part: GuardedPart
    from_us: int
    counted: int
    limit: int
    known: int


def limit_of(guard: PolicyGuard, known: int) -> int:
    """Return how many nodes, pods or owners a guard allows where so many nodes are known.

    A share of nodes is rounded down; the lower one of count and share binds.
    """
    limits = [] if guard.count is None else [guard.count]
    if guard.share_percent is not None:
        limits.append(known * guard.share_percent // 100)
    return min(limits, default=0)


class GuardCount:
    """The nodes of one cluster as one guard counts them, each as one, or as many as its pods that leave.

    What counts owners is of `owner_counts.py`.

    A guard of evictions of some namespaces, owners or priorities counts each node that the rest of its selection
    matches, and all of its pods that leave: whose they are is not looked at.

    Attributes:
        spec: of the policy.
    """

    __slots__ = (
        "_arrivals",
        "_changed",
        "_ends",
        "_excluded",
        "_gone",
        "_known",
        "_limits",
        "_names_labels",
        "_recount",
        "_selected",
        "_taints",
        "_zones",
        "spec",
    )

    def __init__(self, spec: PolicySpec, cluster: str) -> None:
        """Count nothing yet; `spec` has a guard, and selects something of the cluster."""
        self.spec = spec
        self._selected = NodePatterns(spec.selected, is_unknown_in=True)
        excluded = spec.excluded
        if excluded is not None and (
            excluded.namespaces
            or excluded.owners
            or excluded.priority is not None
            or not Patterns(excluded.clusters).match(cluster)
        ):
            excluded = None  # it leaves out some pods of a node, or nothing here
        self._excluded = None if excluded is None else NodePatterns(excluded, is_unknown_in=False)
        self._names_labels = self._selected.names_labels or (self._excluded is not None and self._excluded.names_labels)
        self._taints: dict[str, dict[str, tuple[int, int]]] = {}  # of all that count: since when, as how much
        self._gone: dict[str, int] = {}  # until when deleted nodes count
        self._zones: dict[str, str] = {}  # of all these
        self._known: Counter[GuardedPart] = Counter()
        self._arrivals: dict[str, dict[GuardedPart, list[tuple[int, str]]]] = {}  # by key
        self._changed: dict[tuple[str, GuardedPart], tuple[int, int]] = {}  # first and last arrival to be looked at
        self._recount: set[GuardedPart] = set()  # where other nodes are known than at the last look
        self._limits: dict[GuardedPart, int] = {}
        self._ends: list[tuple[int, str]] = []  # a heap of the same, with what has become outdated

    @property
    def guard(self) -> PolicyGuard:
        """The clause."""
        assert self.spec.guard is not None  # noqa: S101 - as its maker promises
        return self.spec.guard

    def known(self, part: GuardedPart = ALL_NODES) -> int:
        """Count the nodes of a part that are known, with those that were deleted just now."""
        return self._known[part]

    @property
    def forgets_at_us(self) -> int | None:
        """When a deleted node may count no longer, so that fewer nodes are allowed; None if none counts."""
        return self._ends[0][0] if self._ends else None

    @property
    def counts_pods(self) -> bool:
        """Whether it has to see a node again when other pods of it leave."""
        return self.guard.of is GuardMeasure.PODS

    def _part(self, name: str, zone: str) -> GuardedPart:
        """Return with which nodes one of a zone is counted."""
        if self.guard.by is GuardScope.ZONE:
            return GuardedPart(zone)
        return GuardedPart(node=name) if self.guard.by is GuardScope.NODE else ALL_NODES

    def see(self, node: GuardedNode) -> bool:
        """Take in a node that is new, has changed, or is gone; returns whether that changes anything."""
        before, zone = self._taints.get(node.name), node.zone or ""
        taints = dict(self._keys(node)) if self._is_counted(node) else None
        was_in, was_gone = self._zones.get(node.name), node.name in self._gone
        if taints is not None and taints == before and zone == was_in and node.gone_us is None and not was_gone:
            return False
        if node.gone_us is not None and taints is not None and before is not None:
            taints = {key: since for key, since in taints.items() if key in before}  # its labels may have said more
        self._forget(node.name)
        if taints is None:
            return True
        self._taints[node.name] = taints
        self._know(node.name, zone)
        if node.gone_us is not None:
            until_us = self._gone[node.name] = node.gone_us + DELETED_NODE_COUNTS_US
            heapq.heappush(self._ends, (until_us, node.name))
        part = self._part(node.name, zone)
        for key, (since_us, weight) in taints.items():
            bisect.insort(self._arrivals.setdefault(key, {}).setdefault(part, []), (since_us, node.name))
            earlier = (before or {}).get(key)
            if earlier is None or earlier[0] != since_us or earlier[1] < weight or zone != was_in:
                self._look_from(key, part, since_us, since_us)
        return True

    def _is_counted(self, node: GuardedNode) -> bool:
        """Whether it counts. The labels of a node that is gone are gone too: it does if nothing is said of these."""
        if node.gone_us is None:
            return self._counts(node)
        was_known = node.name in self._zones  # then it did before
        return bool(node.gone_us) and (was_known or (not self._names_labels and self._counts(node)))

    def _know(self, name: str, zone: str) -> None:
        part = self._part(name, zone)
        self._zones[name] = zone
        self._known[part] += 1
        self._recount.add(part)

    def _forget(self, name: str) -> None:
        zone = self._zones.pop(name, None)
        if zone is None:
            return
        part = self._part(name, zone)
        self._known[part] -= 1
        self._recount.add(part)
        self._gone.pop(name, None)
        for key, (since_us, _) in self._taints.pop(name, {}).items():
            parts = self._arrivals[key]
            arrivals = parts[part]
            del arrivals[bisect.bisect_left(arrivals, (since_us, name))]
            if not arrivals:
                del parts[part]
            if not parts:
                del self._arrivals[key]

    def _counts(self, node: GuardedNode) -> bool:
        """Whether it is a node of the selection, whatever its taints."""
        excluded = self._excluded
        return self._selected.match(node) and (excluded is None or excluded.names_taints or not excluded.match(node))

    def _keys(self, node: GuardedNode) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the keys of its taints that count, each once, since when its newest is there, and as how much."""
        excluded = self._excluded if self._excluded is not None and self._excluded.match(node) else None
        for key, since_us in sorted(dict(sorted(node.taints, key=lambda taint: taint[1])).items()):
            if self._selected.match_taint(key) and not (excluded is not None and excluded.match_taint(key)):
                yield key, (since_us, 1 if node.pods is None or not self.counts_pods else node.pods.get(key, 0))

    def exceeded(self, now_us: int, covered: Mapping[str, Sequence[Covered]]) -> list[Exceeded]:
        """Return what exceeds the guard since the last look, one for each key and part.

        Args:
            now_us: now; it says which deleted nodes still count.
            covered: by key, what belongs to incidents that stand: it is not counted again.
        """
        while self._ends and (self._ends[0][0] <= now_us or self._gone.get(self._ends[0][1]) != self._ends[0][0]):
            until_us, name = heapq.heappop(self._ends)
            if self._gone.get(name) == until_us:
                self._forget(name)
        self._take_limits()
        changed, self._changed = self._changed, {}
        found = (self._of_part(key, part, span, covered.get(key, ())) for (key, part), span in sorted(changed.items()))
        return [one for one in found if one is not None]

    def _take_limits(self) -> None:
        """Take in how many nodes are known; where fewer are allowed than before, all arrivals are looked at."""
        stricter: set[GuardedPart] = set()
        for part in self._recount:
            known = self._known[part]
            limit = limit_of(self.guard, known)
            if limit < self._limits.get(part, -1):
                stricter.add(part)
            if known:
                self._limits[part] = limit
            else:
                del self._known[part]
                self._limits.pop(part, None)
        self._recount.clear()
        for key, parts in self._arrivals.items() if stricter else ():
            for part in parts.keys() & stricter:
                self._look_from(key, part, parts[part][0][0], parts[part][-1][0])

    def _of_part(
        self, key: str, part: GuardedPart, changed: tuple[int, int], covered: Sequence[Covered]
    ) -> Exceeded | None:
        """Return the first time in which more taints came than are allowed, if what has changed may be in it.

        One of the nodes has to be there: an incident of deleted nodes alone would end at once.

        What belongs to an incident that no person has answered counts for taints that came before it, as their records
        may be late: then the incident begins with these.
        """
        within_us, limit = self.guard.within_seconds * SECOND_US, self._limits.get(part, 0)
        arrivals, from_us = self._slices(key).get(part, []), changed[0] - within_us
        if self.guard.of is GuardMeasure.NODES and len(arrivals) - bisect.bisect_left(arrivals, (from_us, "")) <= limit:
            return None
        unanswered = [one for one in covered if one.span[1] is None and one.part in (part, ALL_NODES)]
        open_from_us = min((one.span[0] for one in unanswered), default=None)
        others = [one for one in covered if one not in unanswered]
        counts = self._uncovered(key, part, from_us, others)
        free: list[tuple[int, int, bool]] = []
        begin = counted = there = 0
        for at_us, weight, is_there in counts:
            free.append((at_us, weight, is_there))
            counted += weight
            there += is_there
            while at_us - free[begin][0] > within_us:
                counted -= free[begin][1]
                there -= free[begin][2]
                begin += 1
            from_us = free[begin][0]
            if from_us > changed[1] or (open_from_us is not None and from_us >= open_from_us):
                return None
            if counted > limit and there:
                for later_us, more, _ in counts:
                    if later_us > from_us + within_us:
                        break
                    counted += more
                return Exceeded(
                    taint=key, part=part, from_us=from_us, counted=counted, limit=limit, known=self.known(part)
                )
        return None

    def _uncovered(
        self, key: str, part: GuardedPart, from_us: int, covered: Sequence[Covered]
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield when taints came that are not covered, as how much, and whether the node is there, from an instant."""
        for at_us, name in uncovered(self._slices(key).get(part, []), from_us, part, covered, self._zones):
            yield at_us, self._taints[name][key][1], name not in self._gone

    def look_again(self, key: str, part: GuardedPart) -> None:
        """Look at all arrivals of a key at some nodes with the next look: incidents cover others than before."""
        for one in self._counted_in(key, part):
            arrivals = self._slices(key)[one]
            self._look_from(key, one, arrivals[0][0], arrivals[-1][0])

    def look_at_all(self) -> None:
        """Look at all arrivals with the next look."""
        for key in self._arrivals:
            self.look_again(key, ALL_NODES)

    def _look_from(self, key: str, part: GuardedPart, first_us: int, last_us: int) -> None:
        first, last = self._changed.get((key, part), (first_us, last_us))
        self._changed[key, part] = min(first_us, first), max(last_us, last)

    def of_span(self, key: str, covered: Covered) -> list[str]:
        """Return the names of the nodes that are there whose taint of a key is covered, the first ones first."""
        return [name for _, name in heapq.merge(*self._covered(key, covered))]

    def has_any(self, key: str, covered: Covered) -> bool:
        """Whether there is such a node."""
        return any(next(arrivals, None) is not None for arrivals in self._covered(key, covered))

    def _covered(self, key: str, covered: Covered) -> list[Iterator[tuple[int, str]]]:
        """Return what is covered of each part; a policy that counted otherwise before has left incidents of others."""
        return [self._in_span(self._slices(key)[part], covered) for part in self._counted_in(key, covered.part)]

    def _in_span(self, arrivals: Sequence[tuple[int, str]], covered: Covered) -> Iterator[tuple[int, str]]:
        from_us, to_us = covered.span
        end = len(arrivals) if to_us is None else bisect.bisect_left(arrivals, (to_us + 1, ""))
        for place in range(bisect.bisect_left(arrivals, (from_us, "")), end):
            name = arrivals[place][1]
            if name not in self._gone and covered.part.has(name, self._zones[name]):
                yield arrivals[place]

    def _counted_in(self, key: str, part: GuardedPart) -> list[GuardedPart]:
        """Return where arrivals of a key at some nodes are counted: in one part, or some in each of several."""
        parts = self._slices(key)
        if part.zone is not None and self.guard.by is GuardScope.NODE:
            return [one for one in parts if part.zone == self._zones[one.node or ""]]
        if part.node is not None and self.guard.by is GuardScope.ZONE:
            part = GuardedPart(self._zones.get(part.node))
        return list(parts) if part == ALL_NODES else [one for one in (part, ALL_NODES) if one in parts]

    def _slices(self, key: str) -> dict[GuardedPart, list[tuple[int, str]]]:
        return self._arrivals.get(key, {})
