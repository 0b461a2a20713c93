"""Which nodes of a cluster carry which taints, since when, and in which zone, after each record of the nodes topic.

A worker applies the records of a cluster's nodes in their order. So what it can know at a moment is one of these views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from evictstream.kit.oracle.guard_parts import CountedPart
from evictstream.kit.oracle.histories import HeardNode
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.readiness import node_turns
from evictstream.kit.oracle.reading import Statement

_DELETED_COUNTS_US: Final = 600 * SECOND_US
_SURELY_COUNTS_US: Final = 570 * SECOND_US  # whatever clocks say
_AFTER_STATES: Final = 1 << 30
_ZONE: Final = "topology.kubernetes.io/zone"


class ViewedNode(NamedTuple):
    """A node in a view.

    Attributes:
        zone: its zone, empty for none.
        state: the place of its state in its history.
        taints: since when it carries each, by key.
    """

    zone: str
    state: int
    taints: Mapping[str, int]


class GoneNode(NamedTuple):
    """A node that was deleted.

    Attributes:
        node: as it was.
        at_us: when that was.
        append_us: the append time of the record that said so.
    """

    node: ViewedNode
    at_us: int
    append_us: int


class Arrival(NamedTuple):
    """Since when a node carries a taint."""

    since_us: int
    node: str


class ZoneTurn(NamedTuple):
    """A record from which on a node is in a zone: its offset and append time."""

    offset: int
    append_us: int
    zone: str


@dataclass(frozen=True, slots=True, eq=False)
class ClusterView:
    """A cluster from a record on.

    Attributes:
        offset: of the record.
        append_us: its append time.
        nodes: those that are there, by name.
        left: those that were deleted less than ten minutes before.
    """

    offset: int
    append_us: int
    nodes: Mapping[str, ViewedNode]
    left: Mapping[str, GoneNode]
    _arrivals: dict[tuple[str, CountedPart], list[Arrival]] = field(default_factory=dict, init=False)

    def known(self, part: CountedPart) -> int:
        """Count the nodes of a part, with the deleted ones."""
        return sum(part.has(name, self.zone_of(name)) for name in {*self.left, *self.nodes})

    def zone_of(self, name: str) -> str:
        """Give the zone of a node; of a deleted one, the one that it had."""
        return self.nodes[name].zone if name in self.nodes else self.left[name].node.zone

    def arrivals(self, key: str, part: CountedPart) -> Sequence[Arrival]:
        """Say which nodes of a part carry a taint and since when, the first ones first."""
        found = self._arrivals.get((key, part))
        if found is None:
            found = self._arrivals[key, part] = sorted(
                Arrival(node.taints[key], name)
                for name, node in self.nodes.items()
                if key in node.taints and part.has(name, node.zone)
            )
        return found

    def gone(self, key: str, part: CountedPart, at_us: int = 0) -> Sequence[tuple[Arrival, GoneNode]]:
        """Say which deleted nodes of a part carried a taint, since when, of those that surely count at an instant."""
        return [
            (Arrival(one.node.taints[key], name), one)
            for name, one in self.left.items()
            if key in one.node.taints and part.has(name, one.node.zone) and at_us < one.at_us + _SURELY_COUNTS_US
        ]

    def any_within(self, key: str, part: CountedPart, from_us: int, to_us: int) -> bool:
        """Tell whether a node of a part carries the taint since an instant in a span, both ends in it."""
        return any(from_us <= one.since_us <= to_us for one in self.arrivals(key, part))


def zone_turns(statements: Iterable[Statement]) -> list[ZoneTurn]:
    """Say in which zones a node was, one after the other; a deleted one is in its last zone."""
    turns: list[ZoneTurn] = []
    for statement, uid in node_turns(statements):
        if uid is None:
            continue
        zone = (statement.content["metadata"].get("labels") or {}).get(_ZONE) or ""
        if not turns or turns[-1].zone != zone:
            turns.append(ZoneTurn(statement.record.offset, statement.record.append_at_us, zone))
    return turns


def cluster_views(
    histories: Mapping[str, Sequence[HeardNode]], zones: Mapping[str, Sequence[ZoneTurn]]
) -> list[ClusterView]:
    """Give the views of a cluster in the order of the records.

    Args:
        histories: of its nodes, by name.
        zones: in which these were, by name.
    """
    of_states = [
        (state.offset, place, name, state.append_at_us)
        for name, states in histories.items()
        for place, state in enumerate(states)
        if place
    ]
    of_zones = [(turn.offset, _AFTER_STATES, name, turn.append_us) for name, turns in zones.items() for turn in turns]
    nodes: dict[str, ViewedNode] = {}
    left: dict[str, GoneNode] = {}
    views = []
    for offset, place, name, append_us in sorted(of_states + of_zones, key=lambda turn: turn[:2]):
        zone = next((turn.zone for turn in reversed(zones.get(name, ())) if turn.offset <= offset), "")
        before = nodes.get(name)
        if place == _AFTER_STATES:
            if before is None or before.zone == zone:
                continue  # a state of the same record has said it
            nodes = {**nodes, name: before._replace(zone=zone)}
        elif histories[name][place].uid is None:
            nodes = {other: node for other, node in nodes.items() if other != name}
            gone = ViewedNode(zone, place, {}) if before is None else before
            left = {**left, name: GoneNode(gone, histories[name][place].at_us, append_us)}
        else:
            taints = {taint.key: taint.since_us for taint in histories[name][place].taints}
            nodes = {**nodes, name: ViewedNode(zone, place, taints)}
            left = {other: one for other, one in left.items() if other != name}
        counting = {other: one for other, one in left.items() if append_us < one.at_us + _DELETED_COUNTS_US}
        views.append(ClusterView(offset, append_us, nodes, counting))
    return views
