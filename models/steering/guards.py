"""What a guard counts: nodes of one cluster whose taints of one key came within some time.

Only instants of taints count, which are in rows, so every owner finds the same, in whatever order records came. What
has left the nodes meanwhile does not change the count.
"""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import NodeLabels
from evictstream.models.messages.policy import PolicyGuard, PolicySelection, PolicySpec
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.node_counts import DELETED_NODE_COUNTS_US
from evictstream.models.steering.patterns import Patterns, trait_patterns

LOOK_AROUND_US: Final = SECOND_US
"""So long what is due at once waits under a guard: a storm shows how large it is. Taints of one cause come within it,
as long as their writer is not slowed down on purpose."""

Span = tuple[int, int | None]
"""From an instant to another one, both in it; None for no end."""

_PURGE_US: Final = SECOND_US  # between two looks for deleted nodes that do not count any more


class GuardedNode(NamedTuple):
    """A node as guards see it.

    Attributes:
        name: of the node.
        taints: keys of its `NoExecute` taints, and since when they are there; a key may be there more than once.
        zone: as in `Subject`, and `labels`.
        gone_us: when it was deleted; None while it is known.
    """

    name: str
    taints: Sequence[tuple[str, int]] = ()
    zone: str | None = None
    labels: NodeLabels | None = None
    gone_us: int | None = None


class Exceeded(NamedTuple):
    """More than a guard allows.

    Attributes:
        taint: key of the taint.
        from_us: when the first of its taints came.
        nodes: how many, of those whose taints came within the time of the guard.
        limit: how many are allowed.
        known: how many nodes are known.
    """

    taint: str
    from_us: int
    nodes: int
    limit: int
    known: int


def limit_of(guard: PolicyGuard, known: int) -> int:
    """Return how many nodes a guard allows where so many are known; a share is rounded down, the lower one binds."""
    limits = [] if guard.count is None else [guard.count]
    if guard.share_percent is not None:
        limits.append(known * guard.share_percent // 100)
    return min(limits, default=0)


class _NodePatterns:
    """What a selection says of nodes and taints; what it says of pods is left out."""

    __slots__ = ("_nodes", "_taints", "_traits", "names_taints", "names_traits")

    def __init__(self, selection: PolicySelection, *, is_unknown_in: bool) -> None:
        self._nodes = Patterns(selection.nodes)
        self._taints = Patterns(selection.taints)
        of_nodes = PolicySelection(zones=selection.zones, node_labels=selection.node_labels)
        self._traits = trait_patterns(of_nodes, is_unknown_in=is_unknown_in)
        self.names_taints = bool(selection.taints)
        self.names_traits = self._traits is not None

    def match(self, node: GuardedNode) -> bool:
        if not self._nodes.match(node.name):
            return False
        return self._traits is None or self._traits.match(
            Subject("", "", "", 0, zone=node.zone, node=node.name, node_labels=node.labels)
        )

    def match_taint(self, key: str) -> bool:
        return self._taints.match(key)


class GuardCount:
    """The nodes of one cluster as one guard counts them.

    A guard of evictions of some namespaces, owners or priorities counts each node that the rest of its selection
    matches: which pods a node has is not looked at.
    """

    __slots__ = ("_arrivals", "_changed", "_excluded", "_gone", "_limit", "_looked_us", "_selected", "_taints", "spec")

    def __init__(self, spec: PolicySpec, cluster: str) -> None:
        """Count nothing yet; `spec` has a guard, and selects something of the cluster."""
        self.spec = spec
        self._selected = _NodePatterns(spec.selected, is_unknown_in=True)
        excluded = spec.excluded
        if excluded is not None and (
            excluded.namespaces
            or excluded.owners
            or excluded.priority is not None
            or not Patterns(excluded.clusters).match(cluster)
        ):
            excluded = None  # it leaves out some pods of a node, or nothing here
        self._excluded = None if excluded is None else _NodePatterns(excluded, is_unknown_in=False)
        self._taints: dict[str, Sequence[tuple[str, int]]] = {}  # of the nodes that are known, those that count
        self._gone: dict[str, int] = {}  # until when deleted nodes count
        self._arrivals: dict[str, list[tuple[int, str]]] = {}
        self._changed: dict[str, int] = {}  # since when arrivals of a key have to be looked at
        self._limit = -1
        self._looked_us = 0

    @property
    def guard(self) -> PolicyGuard:
        """The clause."""
        assert self.spec.guard is not None  # noqa: S101 - as its maker promises
        return self.spec.guard

    @property
    def known(self) -> int:
        """How many nodes are known, with those that were deleted just now."""
        return len(self._taints) + len(self._gone)

    def see(self, node: GuardedNode) -> None:
        """Take in a node that is new, has changed, or is gone."""
        before = self._taints.get(node.name)
        is_counted = node.gone_us is None and self._counts(node)
        taints = tuple(self._keys(node)) if is_counted else ()
        if is_counted and taints == before:
            return
        self._taints.pop(node.name, None)
        for key, since_us in before or ():
            arrivals = self._arrivals[key]
            del arrivals[bisect.bisect_left(arrivals, (since_us, node.name))]
            if not arrivals:
                del self._arrivals[key]
        self._gone.pop(node.name, None)
        if node.gone_us is not None:
            # Its zone and labels are gone too: it counts if it did, or if nothing is said of these.
            if before is not None or (not self._selected.names_traits and self._counts(node)):
                self._gone[node.name] = node.gone_us + DELETED_NODE_COUNTS_US
            return
        if is_counted:
            self._taints[node.name] = taints
        for key, since_us in taints:
            bisect.insort(self._arrivals.setdefault(key, []), (since_us, node.name))
            self._changed[key] = min(since_us, self._changed.get(key, since_us))

    def _counts(self, node: GuardedNode) -> bool:
        """Whether it is a node of the selection, whatever its taints."""
        excluded = self._excluded
        return self._selected.match(node) and (excluded is None or excluded.names_taints or not excluded.match(node))

    def _keys(self, node: GuardedNode) -> Iterator[tuple[str, int]]:
        """Yield the keys of its taints that count, each once, and since when the newest of each is there."""
        excluded = self._excluded if self._excluded is not None and self._excluded.match(node) else None
        for key, since_us in sorted(dict(sorted(node.taints, key=lambda taint: taint[1])).items()):
            if self._selected.match_taint(key) and not (excluded is not None and excluded.match_taint(key)):
                yield key, since_us

    def exceeded(self, now_us: int, covered: Mapping[str, Sequence[Span]]) -> list[Exceeded]:
        """Return what exceeds the guard since the last look, one for each key.

        Args:
            now_us: now; it says which deleted nodes still count.
            covered: by key, the spans of incidents that stand: taints that came in them are not counted again.
        """
        if now_us >= self._looked_us + _PURGE_US or now_us < self._looked_us:
            self._looked_us = now_us
            self._gone = {name: until_us for name, until_us in self._gone.items() if until_us > now_us}
        limit = limit_of(self.guard, self.known)
        if limit < self._limit:
            self.look_at_all()
        self._limit = limit
        changed, self._changed = self._changed, {}
        found = (self._of_key(key, since_us, covered.get(key, ())) for key, since_us in sorted(changed.items()))
        return [one for one in found if one is not None]

    def _of_key(self, key: str, since_us: int, covered: Sequence[Span]) -> Exceeded | None:
        """Return the first time in which more taints came than are allowed, of those that came since then or before."""
        arrivals, within_us = self._arrivals.get(key, []), self.guard.within_seconds * SECOND_US
        first = bisect.bisect_left(arrivals, (since_us - within_us, ""))
        open_from_us = min((begin_us for begin_us, end_us in covered if end_us is None), default=None)
        last = len(arrivals) if open_from_us is None else bisect.bisect_left(arrivals, (open_from_us, ""))
        if last - first <= self._limit:
            return None
        free = [
            at_us
            for at_us, _ in arrivals[first:last]
            if not any(begin_us <= at_us and (end_us is None or at_us <= end_us) for begin_us, end_us in covered)
        ]
        begin = 0
        for end, at_us in enumerate(free):
            while at_us - free[begin] > within_us:
                begin += 1
            if end - begin >= self._limit:
                nodes = bisect.bisect_right(free, free[begin] + within_us) - begin
                return Exceeded(taint=key, from_us=free[begin], nodes=nodes, limit=self._limit, known=self.known)
        return None

    def look_again(self, key: str) -> None:
        """Look at all arrivals of a key with the next look: an incident covers others of them than before."""
        arrivals = self._arrivals.get(key)
        if arrivals:
            self._changed[key] = arrivals[0][0]

    def look_at_all(self) -> None:
        """Look at all arrivals with the next look."""
        self._changed = {key: arrivals[0][0] for key, arrivals in self._arrivals.items()}

    def of_span(self, key: str, span: Span) -> list[str]:
        """Return the names of the nodes whose taint of a key came in a span, the first ones first."""
        return [name for _, name in self._slice(key, span)]

    def has_any(self, key: str, span: Span) -> bool:
        """Whether there is such a node."""
        arrivals, (begin, end) = self._arrivals.get(key, []), self._bounds(key, span)
        return begin < min(end, len(arrivals))

    def _slice(self, key: str, span: Span) -> list[tuple[int, str]]:
        begin, end = self._bounds(key, span)
        return self._arrivals.get(key, [])[begin:end]

    def _bounds(self, key: str, span: Span) -> tuple[int, int]:
        arrivals, (from_us, to_us) = self._arrivals.get(key, []), span
        end = len(arrivals) if to_us is None else bisect.bisect_left(arrivals, (to_us + 1, ""))
        return bisect.bisect_left(arrivals, (from_us, "")), end
