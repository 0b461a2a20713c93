"""What a guard counts: in any order of records, of the nodes that it selects, and near linear in their number."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy import PolicyGuard, PolicySelection, PolicySpec
from evictstream.models.steering.guards import Exceeded, GuardCount, GuardedNode
from evictstream.models.steering.node_counts import DELETED_NODE_COUNTS_US

WITHIN = 10
GUARD = PolicyGuard(count=2, within_seconds=WITHIN)


def counted(selected: PolicySelection | None = None, excluded: PolicySelection | None = None) -> GuardCount:
    spec = PolicySpec(guard=GUARD, selected=selected or PolicySelection(), excluded=excluded)
    return GuardCount(spec, "lab")


def node(name: str, *keys: str, at: int = 0, **fields: Any) -> GuardedNode:
    return GuardedNode(name, [(key, at * SECOND_US) for key in keys], **fields)


@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.integers(0, 5),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_the_order_of_records_changes_nothing(instants: list[int], limit: int, looks: list[bool]) -> None:
    count = GuardCount(PolicySpec(guard=PolicyGuard(count=limit, within_seconds=WITHIN)), "lab")
    found: list[Exceeded] = []
    for number, at in enumerate(instants):
        count.see(node(f"n{number}", "k", at=at))
        if looks[number] and not found:
            found += count.exceeded(0, {})
    found += [] if found else count.exceeded(0, {})
    windows = {begin: sum(begin <= at <= begin + WITHIN for at in instants) for begin in instants}
    assert bool(found) == any(most > limit for most in windows.values())
    for exceeded in found:
        assert windows[exceeded.from_us // SECOND_US] > limit


@pytest.mark.parametrize(
    ("selected", "excluded", "known", "has_k"),
    [
        (None, None, 3, 3),
        (PolicySelection(nodes=("n[01]",)), None, 2, 2),
        (PolicySelection(zones=("a",)), None, 1, 1),
        (PolicySelection(node_labels=("pool=gpu",)), None, 1, 1),
        (PolicySelection(taints=("other",)), None, 3, 0),
        (PolicySelection(namespaces=("shop",), owners=("Job",)), None, 3, 3),
        (None, PolicySelection(nodes=("n0",)), 2, 2),
        (None, PolicySelection(taints=("k",)), 3, 0),
        (None, PolicySelection(nodes=("n0",), taints=("k",)), 3, 2),
        (None, PolicySelection(namespaces=("kube-system",), nodes=("n0",)), 3, 3),
        (None, PolicySelection(nodes=("n0",), clusters=("elsewhere",)), 3, 3),
    ],
)
def test_what_a_selection_says_of_nodes_counts(
    selected: PolicySelection | None, excluded: PolicySelection | None, known: int, has_k: int
) -> None:
    count = counted(selected, excluded)
    count.see(node("n0", "k", zone="a", labels=(("pool", "gpu"),)))
    count.see(node("n1", "k", zone="b", labels=()))
    count.see(node("n2", "k", zone="", labels=()))
    assert (count.known, len(count.of_span("k", (0, None)))) == (known, has_k)


def test_a_node_counts_once_for_a_key_since_its_newest() -> None:
    count = counted()
    count.see(GuardedNode("n", [("k", 1), ("k", 9), ("other", 3)]))
    assert (count.of_span("k", (5, None)), count.of_span("other", (3, 3))) == (["n"], ["n"])
    count.see(GuardedNode("n", [("other", 3)]))
    assert (count.has_any("k", (0, None)), count.has_any("other", (0, 2))) == (False, False)


def test_a_deleted_node_is_known_for_a_while() -> None:
    count = counted()
    for number in range(3):
        count.see(node(f"n{number}"))
    count.see(GuardedNode("n0", gone_us=SECOND_US))
    assert count.known == 3
    count.exceeded(SECOND_US + DELETED_NODE_COUNTS_US, {})
    assert count.known == 2
    count.see(node("n0"))
    assert count.known == 3


@pytest.mark.slow
def test_the_cost_of_a_storm_is_near_linear() -> None:
    def lines(nodes: int) -> int:
        seen = 0

        def trace(_: FrameType, event: str, __: object) -> Any:
            nonlocal seen
            seen += event == "line"
            return trace

        count = GuardCount(PolicySpec(guard=PolicyGuard(share_percent=100, within_seconds=600)), "lab")
        sys.settrace(trace)
        try:
            for number in range(nodes):
                count.see(node(f"n{number}", "k", at=number // 10))
                if number % 10 == 0:
                    count.exceeded(number, {})
        finally:
            sys.settrace(None)
        return seen

    assert lines(2_000) < 2.5 * lines(1_000)
