"""Storms of one taint in a cluster of their own, and the policies with guards that people write meanwhile.

All of it is drawn from streams of its own, so a plan is otherwise what it is without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.faults.objects import NOT_READY, UNREACHABLE, Json, Node, Pod
from tests.faults.plan import Change, PolicyChange, Shape
from tests.faults.scribe import Scribe
from tests.faults.stories import CUSTOM_KEYS, PodLife, draw_tolerations
from tests.faults.storm_owners import with_owners
from tests.faults.storm_parts import StormParts

SECOND_US = 1_000_000
MILLISECOND_US = 1000
STORMY: Final = "storm"
"""The cluster."""

LATEST_SECONDS = 3.0
"""People write policies until so long after the run has become quiet."""

_KEYS = (UNREACHABLE, NOT_READY, *CUSTOM_KEYS)
_GAPS_MS = (0, 5, 5, 20, 20, 300, 900)


def draw_storms(seed: int, shape: Shape, start_at_us: int) -> tuple[tuple[Change, ...], tuple[PolicyChange, ...]]:
    """Draw a stormy cluster and the policies that guard it: in a part of the runs."""
    chance = random.Random(f"storms {seed}")
    if chance.random() >= 0.2:
        return (), ()
    last_at_us = start_at_us + int((shape.active_seconds + LATEST_SECONDS) * SECOND_US)
    scribe, parts = Scribe(chance, start_at_us, last_at_us), StormParts(seed, start_at_us, last_at_us)
    _draw_cluster(chance, scribe, parts, shape, start_at_us)
    names = ["g0", "g1"] if chance.random() < 0.3 else ["g0"]
    policies = [one for name in names for one in _draw_policy(chance, name, parts, shape, start_at_us)]
    policies.sort(key=lambda one: one.at_us)
    return with_owners(seed, (*scribe.changes, *parts.scribe.changes), policies)


class _StormyNode:
    """A node whose taints come and go."""

    def __init__(self, scribe: Scribe, node: Node, at_us: int) -> None:
        self.node = node
        self._scribe = scribe
        self._births = 0
        scribe.node(node, "ADDED", at_us)

    def taint(self, key: str, at_us: int) -> None:
        """Get a taint, or its `timeAdded` again."""
        others = [taint for taint in self.node.taints if taint["key"] != key]
        self._tell([*others, {"key": key, "effect": "NoExecute"}], at_us)

    def recover(self, key: str, at_us: int) -> None:
        """Lose a taint."""
        self._tell([taint for taint in self.node.taints if taint["key"] != key], at_us)

    def delete(self, at_us: int) -> None:
        """Be deleted; whatever happens next, another node of this name comes."""
        self._scribe.node(self.node, "DELETED", at_us)
        self._births += 1
        self.node.uid, self.node.taints = f"{self.node.uid.partition('+')[0]}+{self._births}", []

    def _tell(self, taints: list[Json], at_us: int) -> None:
        is_sick = any(taint["key"] in (NOT_READY, UNREACHABLE) for taint in taints)
        self.node.taints, self.node.ready = taints, "Unknown" if is_sick else "True"
        self._scribe.node(self.node, "MODIFIED", at_us)


def _draw_cluster(chance: random.Random, scribe: Scribe, parts: StormParts, shape: Shape, start_at_us: int) -> None:
    end_seconds = shape.active_seconds
    nodes = []
    names = [f"n{number}" for number in range(chance.randint(3, 8))]
    deeds: list[tuple[float, Callable[[int], None]]] = []
    for number, name in enumerate(names):
        born_us = start_at_us + chance.randrange(900) * MILLISECOND_US
        nodes.append(_StormyNode(scribe, Node(STORMY, name, f"{STORMY}-node-{number}", zone=parts.zone()), born_us))
        for pod_number in range(chance.randint(1, 3)):
            uid = f"{STORMY}-{number}-pod-{pod_number}"
            tolerations = _draw_pod(chance, shape)
            pod = Pod(STORMY, "ns", f"p{number}-{pod_number}", uid, name, tolerations)
            created_us = born_us + chance.randrange(-200, 800) * MILLISECOND_US
            life = PodLife(chance, scribe, pod, max(start_at_us, created_us), shape.largest_window_seconds, names)
            if chance.random() < 0.2:
                deeds.append((chance.uniform(2, end_seconds), life.turn))
    for _ in range(chance.choice([1, 1, 2])):
        deeds += _draw_storm(chance, nodes, end_seconds)
    if chance.random() < 0.4:
        node, key = chance.choice(nodes), chance.choice(_KEYS)
        deeds.append((chance.uniform(2, end_seconds), lambda at_us: node.taint(key, at_us)))
    if chance.random() < 0.25:
        deeds.append((chance.uniform(2, end_seconds), chance.choice(nodes).delete))
    deeds += parts.moves([node.node for node in nodes], end_seconds)
    for seconds, deed in sorted(deeds, key=lambda one: one[0]):
        deed(start_at_us + int(seconds * SECOND_US))


def _draw_pod(chance: random.Random, shape: Shape) -> list[Json]:
    draw = chance.random()
    if draw < 0.35:
        return []
    if draw < 0.7:
        seconds = chance.randint(1, shape.largest_window_seconds)
        return [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
    return draw_tolerations(chance, shape.largest_window_seconds)


def _draw_storm(
    chance: random.Random, nodes: list[_StormyNode], end_seconds: float
) -> Iterator[tuple[float, Callable[[int], None]]]:
    """One taint on many nodes; some of them recover, others follow."""
    key, gap_seconds = chance.choice(_KEYS), chance.choice(_GAPS_MS) / 1000
    struck = chance.sample(nodes, chance.randint(2, len(nodes)))
    others = [node for node in nodes if node not in struck]
    begin = chance.uniform(1.2, end_seconds / 2)

    def tainted(node: _StormyNode) -> Callable[[int], None]:
        return lambda at_us: node.taint(key, at_us)

    def recovered(node: _StormyNode) -> Callable[[int], None]:
        return lambda at_us: node.recover(key, at_us)

    for number, node in enumerate(struck):
        yield begin + number * gap_seconds, tainted(node)
    recover = begin + chance.uniform(1.5, 8)
    left = struck[chance.choice([0, 0, 1, 1, 2, len(struck)]) :]
    for node in left:
        yield recover + chance.choice([0, 0.01]), recovered(node)
    if chance.random() < 0.3:  # then the last ones, and perhaps it begins again
        for node in struck[: len(struck) - len(left)]:
            yield recover + 2, recovered(node)
        if chance.random() < 0.5:
            for node in struck:
                yield recover + 2 + chance.choice([0.005, 0.3, 2]), tainted(node)
    for node in others[: chance.choice([0, 0, 1, 2])]:
        yield begin + chance.uniform(1, 7), tainted(node)


def _draw_policy(
    chance: random.Random, name: str, parts: StormParts, shape: Shape, start_at_us: int
) -> Iterator[PolicyChange]:
    """One policy: it stands from the beginning or comes later, and may change, lose its guard, go and come back."""
    last_seconds = shape.active_seconds + LATEST_SECONDS

    def change(seconds: float, spec: Json | None, spread_seconds: int) -> PolicyChange:
        return PolicyChange(start_at_us + int(min(seconds, last_seconds) * SECOND_US), name, spec, spread_seconds)

    spread_seconds, spec = chance.randint(0, 3), _draw_spec(chance, parts)
    seconds = 0.1 if chance.random() < 0.7 else chance.uniform(0.5, shape.active_seconds)
    yield change(seconds, spec, spread_seconds)
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        seconds += chance.uniform(1.5, 6)
        draw = chance.random()
        if draw < 0.35:
            spec = {**spec, "guard": parts.measured(_draw_guard(chance))}
            yield change(seconds, spec, spread_seconds)
        elif draw < 0.55:
            spec = {**spec, "settleSeconds": 1}
            yield change(seconds, spec, spread_seconds)
        elif draw < 0.7:
            yield change(seconds, {"for": spec["for"], "settleSeconds": 1}, spread_seconds)
        else:
            yield change(seconds, None, spread_seconds)
            if chance.random() < 0.5:
                seconds += chance.choice([0.2, 2.0, 5.0])
                yield change(seconds, spec, spread_seconds)


def _draw_spec(chance: random.Random, parts: StormParts) -> Json:
    selected: Json = {}
    if chance.random() < 0.7:
        selected["clusters"] = chance.choice([[STORMY], [STORMY, "c0"], ["*o*"]])
    if chance.random() < 0.2:
        selected["taints"] = chance.choice([["node.kubernetes.io/*"], list(CUSTOM_KEYS)])
    if chance.random() < 0.1:
        selected["namespaces"] = chance.choice([["ns"], ["other"]])
    return {"for": selected, "guard": parts.measured(_draw_guard(chance))}


def _draw_guard(chance: random.Random) -> Json:
    guard: Json = {"withinSeconds": chance.choice([1, 2, 5, 60, 60])}
    draw = chance.random()
    if draw < 0.7:
        guard["count"] = chance.choice([0, 1, 1, 2, 3])
    if draw >= 0.5:
        guard["sharePercent"] = chance.choice([10, 20, 34, 50, 67])
    if chance.random() < 0.3:
        guard["releaseAfterSeconds"] = chance.randint(2, 8)
    return guard
