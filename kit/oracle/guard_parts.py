"""Which nodes of a cluster a guard counts together: all, those of a zone, or each alone (docs/policies.md#guard)."""

from __future__ import annotations

from typing import Final, NamedTuple

from evictstream.kit.oracle.reading import Json

OWNERS: Final = "ownersLosingAll"
"""What a guard counts that counts owners."""


class CountedPart(NamedTuple):
    """Some nodes of a cluster.

    Attributes:
        zone: their zone, empty for nodes without one; None for nodes of all zones.
        node: the only one of them; None for all.
    """

    zone: str | None = None
    node: str | None = None

    def has(self, name: str, zone: str) -> bool:
        """Tell whether a node is among them."""
        return self.zone in (None, zone) and self.node in (None, name)

    def meets(self, other: CountedPart) -> bool:
        """Tell whether a node may be in both."""
        return all(None in (one, two) or one == two for one, two in zip(self, other, strict=True))

    def is_counted_by(self, guard: Json) -> bool:
        """Tell whether a guard counts such nodes together."""
        return (self.zone is not None, self.node is not None) == (_by(guard) == "zone", _by(guard) == "node")


def part_of(guard: Json, name: str, zone: str) -> CountedPart:
    """Give with which nodes a guard counts one."""
    if _by(guard) == "zone":
        return CountedPart(zone=zone)
    return CountedPart(node=name) if _by(guard) == "node" else CountedPart()


def measure_of(guard: Json) -> str:
    """Say what a guard counts."""
    return str(guard.get("of", "nodes"))


def counts_alike(one: Json, other: Json) -> bool:
    """Tell whether two guards count the same of the same nodes, whatever they allow."""
    return (_by(one), measure_of(one), one.get("for")) == (_by(other), measure_of(other), other.get("for"))


def _by(guard: Json) -> str:
    return str(guard.get("by", "taintKey"))
