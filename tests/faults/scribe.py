"""Writes down what happens to a fleet as records, the way an imperfect feed does: late, twice, out of date."""

from __future__ import annotations

import random

from evictstream.kit.oracle.records import InputTopic
from tests.faults.objects import Json, Node, Pod, watch_event
from tests.faults.plan import Change

MILLISECOND_US = 1000
LONGEST_DELAY_US = 2_500_000


class Scribe:
    """Collects changes. Resource versions grow with time, as in one cluster they do."""

    def __init__(self, chance: random.Random, start_at_us: int, last_at_us: int) -> None:
        """Begin at `start_at_us`; nothing is appended after `last_at_us`."""
        self.changes: list[Change] = []
        self._chance = chance
        self._start_at_us = start_at_us
        self._last_at_us = last_at_us

    def node(self, node: Node, kind: str, at_us: int) -> None:
        """Tell of a node as it is."""
        self._tell("nodes", node.cluster, node.key, kind, node.shown(version_at(self._start_at_us, at_us)), at_us)

    def pod(self, pod: Pod, kind: str, at_us: int) -> None:
        """Tell of a pod as it is."""
        self._tell("pods", pod.cluster, pod.key, kind, pod.shown(version_at(self._start_at_us, at_us)), at_us)

    def raw(self, change: Change) -> None:
        """Add a record as it is."""
        self.changes.append(change)

    def _tell(self, topic: InputTopic, cluster: str, key: bytes, kind: str, shown: Json, at_us: int) -> None:
        chance = self._chance
        observed_at_us = None if chance.random() < 0.1 else at_us
        appended_at_us = at_us + chance.randrange(1, 60) * MILLISECOND_US
        if chance.random() < 0.08:  # overtaken by later events of other objects, perhaps of the same one
            appended_at_us += chance.randrange(LONGEST_DELAY_US)
        value = watch_event(cluster, kind, shown, observed_at_us)
        self.changes.append(Change(min(appended_at_us, self._last_at_us), topic, key, value))
        if chance.random() < 0.08:
            again_at_us = min(appended_at_us + chance.randrange(LONGEST_DELAY_US), self._last_at_us)
            self.changes.append(Change(again_at_us, topic, key, value))


def version_at(start_at_us: int, at_us: int) -> int:
    """Give the resource version of an object that changes at an instant."""
    return 1000 + max(0, at_us - start_at_us) // 100
