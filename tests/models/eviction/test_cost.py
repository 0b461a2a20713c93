"""Nobody can pick a cost: what a record asks for grows as the record does, whatever it says.

Counted are the lines that run in `models`, each turn of a loop for itself, not seconds. Four times the record may take
a little more than four times the lines; work that multiplies takes sixteen times as many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from evictstream.models.eviction import (
    EventType,
    NodeAggregate,
    NodeEvent,
    PodEvent,
    RuleParameters,
    apply_pod,
    expire,
)
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, Node, Pod, Taint, Toleration
from tests.harness.whole_steps import apply_node, decide_all
from tests.models.eviction.scene import ORIGIN, us

SMALL, LARGE = 100, 400
NEAR_LINEAR = 1.35  # times the growth of the record
RULES = RuleParameters(comparison_operators=True)

Attack = Callable[[int], Callable[[], object]]
"""Prepares an aggregate for a size and gives the step to be counted."""


def lines_of(step: Callable[[], object]) -> int:
    """Count the lines that run in `models`."""
    count = 0

    def within(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return within

    def entered(frame: FrameType, _event: str, _arg: Any) -> Any:
        return within if frame.f_globals.get("__name__", "").startswith("evictstream.models.") else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        step()
    finally:
        sys.settrace(before)
    return count


class Site:
    """A node under attack."""

    def __init__(self) -> None:
        self.aggregate = NodeAggregate("lab", "n")
        self.version = 0

    def node(self, taints: list[Taint]) -> Callable[[], object]:
        """Prepare a change of the node."""
        self.version += 1
        node = Node("n", "node", str(self.version), tuple(taints))
        event = NodeEvent(type=EventType.MODIFIED, node=node, at_us=us(self.version), origin=ORIGIN)
        return lambda: apply_node(self.aggregate, event, RULES)

    def pod(
        self, tolerations: list[Toleration], uid: str = "p", event_type: EventType = EventType.MODIFIED
    ) -> Callable[[], object]:
        """Prepare a change of a pod."""
        self.version += 1
        pod = Pod("x", uid, uid, str(self.version), "n", tuple(tolerations))
        event = PodEvent(type=event_type, pod=pod, at_us=us(self.version), origin=ORIGIN)
        return lambda: apply_pod(self.aggregate, event, RULES)


def distinct(count: int) -> list[Taint]:
    return [Taint(f"t{number}", "", NO_EXECUTE) for number in range(count)]


def same_key(count: int) -> list[Taint]:
    return [Taint("t", f"v{number}", NO_EXECUTE) for number in range(count)]


def health(count: int) -> list[Taint]:
    return [Taint(NOT_READY, f"v{number}", NO_EXECUTE) for number in range(count)]


def numbers(count: int) -> list[Taint]:
    return [Taint("t", str(number), NO_EXECUTE) for number in range(count)]


def reversed_exists(count: int) -> list[Toleration]:
    return [Toleration(f"t{number}", "Exists", "", "", 300) for number in reversed(range(count))]


def reversed_values(count: int, key: str = "t") -> list[Toleration]:
    return [Toleration(key, "Equal", f"v{number}", "", 300) for number in reversed(range(count))]


def every_value_and_all(count: int) -> list[Toleration]:
    return [*reversed_values(count, key=""), Toleration("", "Exists", "", "", 9)]


def bounds(operator: str) -> Callable[[int], list[Toleration]]:
    """Make tolerations each of which lets in one number more than those before."""

    def made(count: int) -> list[Toleration]:
        rising = range(count) if operator == "Lt" else range(count, 0, -1)
        return [Toleration("t", operator, str(number), "", 300) for number in rising] + [Toleration("t", "Exists")]

    return made


def tainted(taints: Callable[[int], list[Taint]], tolerations: Callable[[int], list[Toleration]]) -> Attack:
    """Taint a node with a pod on it."""

    def attack(size: int) -> Callable[[], object]:
        site = Site()
        site.pod(tolerations(size))()
        return site.node(taints(size))

    return attack


def arriving(taints: Callable[[int], list[Taint]], tolerations: Callable[[int], list[Toleration]]) -> Attack:
    """Bring a pod onto a tainted node."""

    def attack(size: int) -> Callable[[], object]:
        site = Site()
        site.node(taints(size))()
        return site.pod(tolerations(size))

    return attack


def reordered(taints: Callable[[int], list[Taint]]) -> Attack:
    """Turn the taints of a node round."""

    def attack(size: int) -> Callable[[], object]:
        site = Site()
        site.node(taints(size))()
        return site.node(taints(size)[::-1])

    return attack


def crowded(size: int) -> Callable[[], object]:
    site = Site()
    for number in range(size):
        site.pod([Toleration(f"k{number}", "Exists", "", "", number)], f"p{number}")()
    return site.node([Taint("k1", "", NO_EXECUTE)])


def found_again(size: int) -> Callable[[], object]:
    site = Site()
    site.node(distinct(size))()
    site.pod(reversed_exists(size))()
    return lambda: decide_all(site.aggregate, us(10**6), RULES)


def flapping(size: int) -> Callable[[], object]:
    site = Site()
    site.node(distinct(3))()
    edits = [site.pod([Toleration("", "Exists", "", "", 300 + number % 2)]) for number in range(size)]
    return lambda: [edit() for edit in edits]


def deleted_one_by_one(size: int) -> Callable[[], object]:
    """Delete pods, each in its second, and let an hour and more go by."""
    site = Site()
    ends = [site.pod([], f"p{number}", EventType.DELETED) for number in range(size)]

    def step() -> None:
        for end in ends:
            end()
        while (at_us := site.aggregate.purge_at_us) is not None:
            expire(site.aggregate, at_us, RULES)

    return step


def renamed_nodes(size: int) -> Callable[[], object]:
    """Register node after node under one name: its row remembers those before."""
    site = Site()
    events = []
    for number in range(size):
        node = Node("n", f"node-{number}", str(number + 1))
        events.append(NodeEvent(type=EventType.MODIFIED, node=node, at_us=us(number), origin=ORIGIN))
    return lambda: [apply_node(site.aggregate, event, RULES) for event in events]


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(tainted(distinct, reversed_exists), id="taints tolerated in reverse order"),
        pytest.param(tainted(same_key, reversed_values), id="one key, many values"),
        pytest.param(tainted(same_key, lambda n: reversed_values(n, key="")), id="every key, many values"),
        pytest.param(tainted(health, every_value_and_all), id="health taints many times"),
        pytest.param(tainted(numbers, bounds("Gt")), id="bounds of Gt"),
        pytest.param(tainted(numbers, bounds("Lt")), id="bounds of Lt"),
        pytest.param(arriving(distinct, reversed_exists), id="a pod that tolerates them in reverse order arrives"),
        pytest.param(reordered(distinct), id="taints turned round"),
        pytest.param(reordered(same_key), id="taints of one key turned round"),
        pytest.param(crowded, id="many pods with other tolerations each"),
        pytest.param(found_again, id="decided anew after a takeover"),
        pytest.param(flapping, id="flapping edits"),
        pytest.param(deleted_one_by_one, id="pods deleted one by one"),
        pytest.param(renamed_nodes, id="node after node of one name"),
    ],
)
def test_four_times_the_record_costs_four_times_the_steps(attack: Attack) -> None:
    small, large = lines_of(attack(SMALL)), lines_of(attack(LARGE))
    assert small > SMALL, "the attack must reach what it attacks"
    assert large / small < LARGE / SMALL * NEAR_LINEAR
