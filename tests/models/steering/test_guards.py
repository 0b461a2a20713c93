"""What a guard counts: in any order of records, of the nodes that it selects, and near linear in their number."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import GuardMeasure, GuardScope, PolicyGuard, PolicySelection
from evictstream.models.steering.guarded_nodes import ALL_NODES, ALWAYS, Covered, GuardedNode, GuardedPart, Span
from evictstream.models.steering.guards import Exceeded, GuardCount
from evictstream.models.steering.incidents import found_together
from evictstream.models.steering.node_counts import DELETED_NODE_COUNTS_US
from evictstream.models.steering.owner_counts import OwnerCount, guard_count
from tests.models.eviction.test_cost import lines_of

WITHIN = 10
GUARD = PolicyGuard(count=2, within_seconds=WITHIN)


BY_ZONE = PolicyGuard(count=2, within_seconds=WITHIN, by=GuardScope.ZONE)


def everywhere(span: Span = ALWAYS) -> Covered:
    return Covered(ALL_NODES, span)


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


@given(
    st.lists(st.integers(0, 60), max_size=14),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=3),
    st.integers(0, 3),
    st.sampled_from((GuardMeasure.NODES, GuardMeasure.OWNERS_LOSING_ALL)),
)
def test_each_look_finds_what_no_answered_incident_covers(
    instants: list[int], spans: list[tuple[int, int]], limit: int, of: GuardMeasure
) -> None:
    count = guard_count(PolicySpec(guard=PolicyGuard(count=limit, of=of, within_seconds=WITHIN)), "lab")
    answered = [everywhere((begin * SECOND_US, (begin + length) * SECOND_US)) for begin, length in spans]
    free: list[int] = []
    for number, at in enumerate(instants):
        count.see(node(f"n{number}", "k", at=at))
        if isinstance(count, OwnerCount):
            count.see_owner(("x", "ReplicaSet", f"r{number}"), {f"n{number}": ("k",)})
        if not any(begin <= at <= begin + length for begin, length in spans):
            free.append(at)
        windows = {begin: sum(begin <= at <= begin + WITHIN for at in free) for begin in free}
        found = [(one.from_us // SECOND_US, one.counted) for one in count.exceeded(0, {"k": answered})]
        too_many = sorted((begin, counted) for begin, counted in windows.items() if counted > limit)
        assert bool(found) == bool(too_many)
        assert set(found) <= set(too_many)
        if found:
            break


@pytest.mark.parametrize(
    ("part", "span", "names"),
    [(ALL_NODES, (1, None), ["r1", "r2"]), (ALL_NODES, (0, 1), ["r0", "r1"]), (GuardedPart("a"), ALWAYS, ["r0", "r2"])],
)
def test_an_incident_covers_the_owners_of_its_span(part: GuardedPart, span: Span, names: list[str]) -> None:
    count = OwnerCount(PolicySpec(guard=GUARD), "lab")
    for at in range(3):
        count.see(node(f"n{at}", "k", at=at, zone="aba"[at]))
        count.see_owner(("x", "ReplicaSet", f"r{at}"), {f"n{at}": ("k",)})
    begin, end = span
    covered = Covered(part, (begin * SECOND_US, None if end is None else end * SECOND_US))
    assert [name for _, _, name in count.losing("k", covered)] == names
    assert count.losing("other", covered) == []


@pytest.mark.parametrize("of", [GuardMeasure.NODES, GuardMeasure.OWNERS_LOSING_ALL])
def test_under_an_answered_incident_one_arrival_costs_little(of: GuardMeasure) -> None:
    """However many it covers, and however many came since then."""

    def lines(size: int) -> int:
        spec = PolicySpec(guard=PolicyGuard(count=9, of=of, within_seconds=WITHIN))
        count = guard_count(spec, "lab")

        def arrive(name: str, at: int) -> None:
            count.see(node(name, "k", at=at))
            if isinstance(count, OwnerCount):
                count.see_owner(("x", "ReplicaSet", name), {name: ("k",)})

        for number in range(size):
            arrive(f"storm-{number}", 100)
            arrive(f"later-{number}", 200 + 2 * number)
        answered = {"k": [everywhere((100 * SECOND_US, 150 * SECOND_US))]}
        assert count.exceeded(0, answered) == []
        arrive("late", 105)
        return lines_of(lambda: count.exceeded(0, answered))

    assert lines(400) <= lines(100)


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
    assert (count.known(), len(count.of_span("k", everywhere()))) == (known, has_k)


def test_a_node_counts_once_for_a_key_since_its_newest() -> None:
    count = counted()
    count.see(GuardedNode("n", [("k", 1), ("k", 9), ("other", 3)]))
    assert (count.of_span("k", everywhere((5, None))), count.of_span("other", everywhere((3, 3)))) == (["n"], ["n"])
    count.see(GuardedNode("n", [("other", 3)]))
    assert (count.has_any("k", everywhere()), count.has_any("other", everywhere((0, 2)))) == (False, False)


def test_a_deleted_node_is_known_for_a_while() -> None:
    count = counted()
    for number in range(3):
        count.see(node(f"n{number}"))
    count.see(GuardedNode("n0", gone_us=SECOND_US))
    assert count.known() == 3
    count.exceeded(SECOND_US + DELETED_NODE_COUNTS_US, {})
    assert count.known() == 2
    count.see(node("n0"))
    assert count.known() == 3


def test_a_deleted_node_is_known_until_its_pods_are_gone() -> None:
    """It is told again when its last pod goes, and counts in the zone that it had."""
    count = GuardCount(PolicySpec(guard=BY_ZONE, selected=PolicySelection(node_labels=("pool=gpu",))), "lab")
    count.see(node("n", zone="a", labels=(("pool", "gpu"),)))
    for _ in range(2):
        count.see(GuardedNode("n", zone="a", gone_us=SECOND_US))
        assert count.known(GuardedPart("a")) == 1
    count.see(GuardedNode("never known", zone="a", gone_us=0))
    count.exceeded(SECOND_US + DELETED_NODE_COUNTS_US, {})
    assert count.known(GuardedPart("a")) == 0


ZONES = st.sampled_from(["a", "b", ""])
RECORDS = st.lists(st.tuples(st.integers(0, 7), ZONES, st.none() | st.integers(0, 30), st.booleans()), max_size=30)


@given(RECORDS, st.booleans())
def test_zones_count_whatever_nodes_were_before(records: list[tuple[int, str, int | None, bool]], looks: bool) -> None:  # noqa: FBT001 - a case
    """What was told earlier, of nodes that moved or were deleted, changes no number of what is now."""
    told, fresh = (GuardCount(PolicySpec(guard=BY_ZONE), "lab") for _ in range(2))
    last: dict[int, GuardedNode] = {}
    for number, zone, at, is_gone in records:
        last[number] = node(f"n{number}", *([] if at is None else ["k"]), at=at or 0, zone=zone)
        if is_gone:
            last[number] = GuardedNode(f"n{number}", zone=zone, gone_us=SECOND_US)
        told.see(last[number])
        if looks:
            told.exceeded(SECOND_US, {})
    for one in last.values():
        fresh.see(one)
    told.look_at_all()
    assert told.exceeded(SECOND_US, {}) == fresh.exceeded(SECOND_US, {})
    for zone in ("a", "b", ""):
        part = GuardedPart(zone)
        assert told.known(part) == fresh.known(part) == sum((one.zone or "") == zone for one in last.values())
        assert told.of_span("k", Covered(part, ALWAYS)) == fresh.of_span("k", Covered(part, ALWAYS))


def test_each_zone_exceeds_by_itself() -> None:
    count = GuardCount(PolicySpec(guard=BY_ZONE), "lab")
    for number in range(7):
        count.see(node(f"n{number}", "k", at=number, zone="ab"[number % 2]))
    found = {one.part.zone: (one.counted, one.known) for one in count.exceeded(0, {})}
    assert found == {"a": (4, 4), "b": (3, 3)}


@pytest.mark.parametrize("by", [GuardScope.TAINT_KEY, GuardScope.ZONE])
def test_an_incident_counted_otherwise_covers_its_nodes(by: GuardScope) -> None:
    """The guard of a policy may have counted by zone before, or not."""
    count = GuardCount(PolicySpec(guard=PolicyGuard(count=2, within_seconds=WITHIN, by=by)), "lab")
    for number in range(6):
        count.see(node(f"n{number}", "k", zone="ab"[number % 2]))
    of_a, of_all = Covered(GuardedPart("a"), ALWAYS), everywhere()
    assert count.of_span("k", of_a) == ["n0", "n2", "n4"]
    assert len(count.of_span("k", of_all)) == 6
    assert [one.counted for one in count.exceeded(0, {"k": [of_a]})] == [3]
    count.look_again("k", GuardedPart("b"))
    assert count.exceeded(0, {"k": [of_all]}) == []


@pytest.mark.parametrize("by", GuardScope)
def test_an_incident_covers_its_nodes_however_they_are_counted(by: GuardScope) -> None:
    """The guard of a policy may have counted by zone or by node before."""
    count = GuardCount(
        PolicySpec(guard=PolicyGuard(count=2, of=GuardMeasure.PODS, within_seconds=WITHIN, by=by)), "lab"
    )
    for number in range(6):
        count.see(node(f"n{number}", "k", zone="ab"[number % 2]))
    of_zone, of_node, of_none = (
        Covered(part, ALWAYS) for part in (GuardedPart("a"), GuardedPart(node="n1"), GuardedPart(node="x"))
    )
    assert (count.of_span("k", of_zone), count.has_any("k", of_zone)) == (["n0", "n2", "n4"], True)
    assert (count.of_span("k", of_node), count.has_any("k", of_node)) == (["n1"], True)
    assert not count.has_any("k", of_none)


PODS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=10)


@given(PODS, st.integers(0, 12), st.booleans())
def test_pods_count_over_the_nodes_of_each_time(nodes: list[tuple[int, int]], limit: int, is_late: bool) -> None:  # noqa: FBT001 - a case
    """Also if they are told to leave after the taint has come."""
    of_pods = PolicyGuard(count=limit, of=GuardMeasure.PODS, within_seconds=WITHIN)
    count = GuardCount(PolicySpec(guard=of_pods), "lab")
    if is_late:
        for number, (at, _) in enumerate(nodes):
            count.see(node(f"n{number}", "k", at=at, pods={}))
        assert count.exceeded(0, {}) == []
    for number, (at, pods) in enumerate(nodes):
        count.see(node(f"n{number}", "k", at=at, pods={"k": pods}))
    windows = {begin: sum(pods for at, pods in nodes if begin <= at <= begin + WITHIN) for begin, _ in nodes}
    found = count.exceeded(0, {})
    assert bool(found) == any(most > limit for most in windows.values())
    for exceeded in found:
        assert windows[exceeded.from_us // SECOND_US] == exceeded.counted > limit


def test_fewer_pods_are_no_reason_to_look() -> None:
    of_pods = PolicyGuard(count=3, of=GuardMeasure.PODS, within_seconds=WITHIN)
    count = GuardCount(PolicySpec(guard=of_pods), "lab")
    for pods in (4, 3, 2):
        count.see(node("n", "k", pods={"k": pods}))
        assert bool(count.exceeded(0, {})) == (pods == 4)
    count.see(node("n", "k", pods={"k": 4}))
    assert len(count.exceeded(0, {})) == 1


def test_where_there_is_no_room_incidents_are_of_all_nodes() -> None:
    found = [
        Exceeded("k", GuardedPart(node=f"n{number}"), from_us=9 - number, counted=5, limit=4, known=1)
        for number in range(5)
    ]
    assert found_together(found, 6) == found
    assert found_together(found, 5) == [Exceeded("k", ALL_NODES, from_us=5, counted=25, limit=4, known=5)]
    assert [one.taint for one in found_together([*found, found[0]._replace(taint="other")], 0)] == ["k", "other"]


@pytest.mark.slow
def test_the_cost_of_a_storm_is_near_linear() -> None:
    def lines(nodes: int, guard: PolicyGuard) -> int:
        seen = 0

        def trace(_: FrameType, event: str, __: object) -> Any:
            nonlocal seen
            seen += event == "line"
            return trace

        count = GuardCount(PolicySpec(guard=guard), "lab")
        sys.settrace(trace)
        try:
            for number in range(nodes):
                count.see(node(f"n{number}", "k", at=number // 10, zone="abc"[number % 3], pods={"k": 9}))
                if number % 10 == 0:
                    count.exceeded(number, {})
        finally:
            sys.settrace(None)
        return seen

    guards = (
        PolicyGuard(share_percent=100, within_seconds=600),
        PolicyGuard(count=100_000, of=GuardMeasure.PODS, within_seconds=60),
        PolicyGuard(share_percent=100, within_seconds=600, by=GuardScope.ZONE),
    )
    for guard in guards:
        assert lines(2_000, guard) < 2.5 * lines(1_000, guard)
