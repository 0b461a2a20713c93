"""Parts of a stormy cluster that guards count by themselves: zones, nodes that move between them, pods.

All of it is drawn from a stream of its own, so a storm is otherwise what it is without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from tests.faults.objects import Json, Node
from tests.faults.scribe import Scribe

_ZONES = ("a", "a", "b", "b", "")
_MEASURES: tuple[Json, ...] = (
    {},
    {},
    {"by": "zone"},
    {"by": "zone"},
    {"of": "pods"},
    {"of": "pods", "by": "zone"},
    {"of": "pods", "by": "node"},
)


class StormParts:
    """Draws the parts of one storm.

    Attributes:
        scribe: has told of what happens here.
    """

    def __init__(self, seed: int, start_at_us: int, last_at_us: int) -> None:
        self._chance = random.Random(f"parts {seed}")
        self.scribe = Scribe(self._chance, start_at_us, last_at_us)

    def zone(self) -> str:
        """Draw the zone of a node."""
        return self._chance.choice(_ZONES)

    def measured(self, guard: Json) -> Json:
        """Draw what a guard counts; its limit may change, as shares are of nodes."""
        measure = self._chance.choice(_MEASURES)
        if "of" in measure:
            count = self._chance.choice([0, 1, 1, 2, 3])
            guard = {name: value for name, value in guard.items() if name != "sharePercent"} | {"count": count}
        return guard | measure

    def moves(self, nodes: Sequence[Node], end_seconds: float) -> Iterator[tuple[float, Callable[[int], None]]]:
        """Draw nodes that come into another zone, and when; some come back."""
        if self._chance.random() < 0.5:
            return
        for _ in range(self._chance.choice([1, 1, 2])):
            node, seconds = self._chance.choice(nodes), self._chance.uniform(1.5, end_seconds)
            yield seconds, self._moved(node, self._chance.choice(_ZONES))
            if self._chance.random() < 0.3:
                yield seconds + self._chance.choice([0.01, 0.5, 2]), self._moved(node, node.zone or "")

    def _moved(self, node: Node, zone: str) -> Callable[[int], None]:
        def move(at_us: int) -> None:
            node.zone = zone
            self.scribe.node(node, "MODIFIED", at_us)

        return move
