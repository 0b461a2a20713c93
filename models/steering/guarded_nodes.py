"""Nodes as guards see them, and which of them a guard counts together."""

import bisect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from evictstream.models.kubernetes.traits import NodeLabels, Owner
from evictstream.models.messages.policy_clauses import PolicySelection
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.patterns import Patterns, trait_patterns

Span = tuple[int, int | None]
"""From an instant to another one, both in it; None for no end."""

ALWAYS: Final[Span] = (0, None)

_LAST: Final = sys.maxsize
_Arrival = TypeVar("_Arrival", tuple[int, str], tuple[int, str, Owner])


class GuardedNode(NamedTuple):
    """A node as guards see it.

    Attributes:
        name: of the node.
        taints: keys of its `NoExecute` taints, and since when they are there; a key may be there more than once. Of one
            that is gone, those that it had.
        zone: as in `Subject`, and `labels`; of one that is gone, the zone that it had.
        gone_us: when it was deleted; None while it is known, 0 if it never was.
        pods: how many of its pods leave, or have left, by key of the taint; None where nobody counts them.
    """

    name: str
    taints: Sequence[tuple[str, int]] = ()
    zone: str | None = None
    labels: NodeLabels | None = None
    gone_us: int | None = None
    pods: Mapping[str, int] | None = None


class GuardedPart(NamedTuple):
    """The nodes of a cluster that are counted together.

    Attributes:
        zone: their zone, empty for those without one, or of which it is not known; None for all zones.
        node: the one node, whose pods are counted; None for all nodes.
    """

    zone: str | None = None
    node: str | None = None

    def has(self, node: str, zone: str | None) -> bool:
        """Whether a node of this zone is among them."""
        return (self.zone is None or self.zone == (zone or "")) and self.node in (None, node)


ALL_NODES: Final = GuardedPart()


class Covered(NamedTuple):
    """Taints of one key that belong to an incident: those of some nodes that came in a span."""

    part: GuardedPart
    span: Span

    def has(self, at_us: int, node: str, zone: str | None) -> bool:
        """Whether a taint of a node of this zone belongs to it that came then."""
        from_us, to_us = self.span
        return from_us <= at_us and (to_us is None or at_us <= to_us) and self.part.has(node, zone)


def uncovered(
    arrivals: Sequence[_Arrival], from_us: int, part: GuardedPart, covered: Sequence[Covered], zones: Mapping[str, str]
) -> Iterator[_Arrival]:
    """Yield what came from an instant on and belongs to no incident.

    What those of the whole part cover is skipped at once: it may be all of a large storm.

    Args:
        arrivals: of a part, in order; each begins with its instant and its node.
        from_us: the instant.
        part: whose arrivals they are.
        covered: what belongs to incidents.
        zones: of the nodes.
    """
    of_all = [one.span for one in covered if one.part in (part, ALL_NODES)]
    others = [one for one in covered if one.part not in (part, ALL_NODES)]
    place = bisect.bisect_left(arrivals, (from_us,))
    for first_us, last_us in sorted((first_us, _LAST if last_us is None else last_us) for first_us, last_us in of_all):
        yield from _free(arrivals, range(place, bisect.bisect_left(arrivals, (first_us,))), others, zones)
        place = max(place, bisect.bisect_left(arrivals, (last_us + 1,)))
    yield from _free(arrivals, range(place, len(arrivals)), others, zones)


def _free(
    arrivals: Sequence[_Arrival], places: range, covered: Sequence[Covered], zones: Mapping[str, str]
) -> Iterator[_Arrival]:
    for place in places:
        arrival = arrivals[place]
        if not any(one.has(arrival[0], arrival[1], zones[arrival[1]]) for one in covered):
            yield arrival


class NodePatterns:
    """What a selection says of nodes and taints; what it says of pods is left out.

    Attributes:
        names_taints: whether it says something of taints.
        names_labels: whether it says something of labels.
    """

    __slots__ = ("_nodes", "_taints", "_traits", "names_labels", "names_taints")

    def __init__(self, selection: PolicySelection, *, is_unknown_in: bool) -> None:
        self._nodes = Patterns(selection.nodes)
        self._taints = Patterns(selection.taints)
        of_nodes = PolicySelection(zones=selection.zones, node_labels=selection.node_labels)
        self._traits = trait_patterns(of_nodes, is_unknown_in=is_unknown_in)
        self.names_taints = bool(selection.taints)
        self.names_labels = bool(selection.node_labels)

    def match(self, node: GuardedNode) -> bool:
        """Whether it selects a node."""
        if not self._nodes.match(node.name):
            return False
        return self._traits is None or self._traits.match(
            Subject("", "", "", 0, zone=node.zone, node=node.name, node_labels=node.labels)
        )

    def match_taint(self, key: str) -> bool:
        """Whether it selects taints of a key."""
        return self._taints.match(key)
