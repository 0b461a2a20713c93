"""How many nodes of a zone are unhealthy, and until when more were: also for a new owner."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.node_counts import (
    DELETED_NODE_COUNTS_US,
    MOST_PEAKS,
    MOST_ZONES_WITH_PEAKS,
    NO_HISTORY,
    STILL,
    KnownNodes,
    NodeStanding,
)

HEALTHY, SICK = NodeStanding("a", is_unhealthy=False), NodeStanding("a", is_unhealthy=True)
DAY_US = 86_400 * SECOND_US


def zone(sick: int, healthy: int, at_us: int = 1) -> KnownNodes:
    known = KnownNodes()
    for number in reversed(range(sick + healthy)):
        known.take(f"n{number}", HEALTHY if number >= sick else SICK, at_us)
    return known


@pytest.mark.parametrize(
    ("sick", "healthy", "percent", "at_least", "is_met"),
    [
        pytest.param(0, 0, 1, 1, False, id="no node"),
        pytest.param(1, 0, 100, 1, True, id="one node"),
        pytest.param(1, 0, 100, 2, False, id="one node, too few"),
        pytest.param(1, 2, 33, 1, True, id="one of three"),
        pytest.param(1, 2, 34, 1, False, id="one of three is rounded down"),
        pytest.param(2, 1, 67, 1, False, id="two of three are rounded down"),
        pytest.param(3, 0, 100, 3, True, id="three of three"),
        pytest.param(55, 45, 55, 3, True, id="just enough"),
        pytest.param(54, 46, 55, 3, False, id="one too few"),
        pytest.param(0, 3, 1, 1, False, id="none unhealthy"),
    ],
)
def test_shares_are_rounded_down(sick: int, healthy: int, percent: int, at_least: int, is_met: bool) -> None:  # noqa: FBT001
    found = zone(sick, healthy).unhealthy_until_us("a", percent, at_least, 9)
    assert found == (STILL if is_met else None)


def test_a_new_zone_is_counted_from_its_first_node_on() -> None:
    known = zone(0, 3)
    assert known.unhealthy_until_us("b", 50, 1, 9) is None
    known.take("m", NodeStanding("b", is_unhealthy=True), 9)
    assert known.unhealthy_until_us("b", 50, 1, 9) == STILL
    assert set(known.zones(9)) == {"a", "b"}
    assert (known.known("b", 9), known.known(None, 9), known.unhealthy(None, 9)) == (1, 4, 1)


def test_a_deleted_node_counts_for_ten_minutes_as_it_was() -> None:
    known = zone(6, 4)
    for number in range(6):
        known.take(f"n{number}", SICK._replace(left_at_us=2), 2)
    leaves_us = 2 + DELETED_NODE_COUNTS_US
    assert known.unhealthy_until_us("a", 60, 3, leaves_us - 1) == STILL
    assert known.unhealthy_until_us("a", 60, 3, leaves_us) == leaves_us
    assert known.known("a", leaves_us) == 4


def test_a_node_that_comes_back_counts_once() -> None:
    known = zone(1, 1)
    known.take("n0", SICK._replace(left_at_us=2), 2)
    known.take("n0", HEALTHY, 3)
    assert (known.known("a", 4), known.unhealthy("a", 4)) == (2, 0)
    assert known.known("a", 4 + DELETED_NODE_COUNTS_US) == 2


def test_all_full_needs_each_node_that_is_there() -> None:
    known = zone(2, 1)
    assert known.full_until_us(9) is None
    known.take("n2", HEALTHY._replace(left_at_us=10), 10)
    assert known.full_until_us(11) == STILL, "one that was deleted cannot show that a zone lives"
    known.take("n3", NodeStanding("b", is_unhealthy=False), 12)
    assert known.full_until_us(13) == 12
    assert KnownNodes().full_until_us(13) is None


def test_where_the_zone_is_not_known_the_last_one_counts() -> None:
    known = zone(1, 1)
    known.take("m", NodeStanding("b", is_unhealthy=True), 5)
    assert known.unhealthy_until_us(None, 100, 1, 6) == STILL
    known.take("m", NodeStanding("b", is_unhealthy=False), 7)
    assert known.unhealthy_until_us(None, 100, 1, 8) == 7


def test_a_long_recovery_keeps_few_peaks_that_end_no_sooner() -> None:
    known = zone(1_000, 0)
    for number in range(1_000):
        known.take(f"n{number}", HEALTHY, 10 + number)
    (peaks,) = known.history().peaks.values()  # type: ignore[union-attr]
    assert len(peaks) <= MOST_PEAKS
    for percent in range(1, 101):
        exact_us = 10 + 1_000 - 10 * percent
        found = known.unhealthy_until_us("a", percent, 1, 2_000)
        assert found is not None
        assert exact_us <= found <= exact_us + 100


def test_peaks_older_than_any_spread_are_forgotten() -> None:
    known = zone(3, 0)
    known.take("n0", HEALTHY, 5)
    known.take("n1", HEALTHY, 6 + DAY_US)
    assert known.unhealthy_until_us("a", 100, 1, 7 + DAY_US) is None
    assert known.unhealthy_until_us("a", 66, 1, 7 + DAY_US) == 6 + DAY_US


def test_a_hundred_zones_keep_peaks() -> None:
    known = KnownNodes()
    for number in range(MOST_ZONES_WITH_PEAKS + 20):
        known.take(f"n{number}", NodeStanding(f"z{number}", is_unhealthy=True), number)
        known.take(f"n{number}", NodeStanding(f"z{number}", is_unhealthy=False), 1_000 + number)
    history = known.history()
    assert history is not None
    assert set(history.peaks) == {f"z{number}" for number in range(20, MOST_ZONES_WITH_PEAKS + 20)}


class Zones(dict[str, Any]):
    """Zones that count how often all of them are looked at."""

    __slots__ = ()
    looks = 0

    def values(self) -> Any:
        Zones.looks += 1
        return super().values()


def test_a_healthy_node_costs_the_same_in_many_zones() -> None:
    known = KnownNodes()
    known._zones = Zones()
    Zones.looks = 0
    for number in range(2 * MOST_ZONES_WITH_PEAKS):
        known.take(f"n{number}", NodeStanding(f"z{number}", is_unhealthy=False), number)
    assert Zones.looks == 0
    for number in range(MOST_ZONES_WITH_PEAKS):
        known.take(f"n{number}", NodeStanding(f"z{number}", is_unhealthy=True), 1_000)
    assert Zones.looks == 0


def test_times_of_a_wrong_clock_are_capped() -> None:
    known = zone(2, 0)
    known.take("n0", HEALTHY, 1_000)
    known.saved()
    known.cap_times(500, 400)
    assert known.is_changed
    assert known.unhealthy_until_us("a", 100, 1, 450) == known.full_until_us(450) == 400


class Seen(NamedTuple):
    """One change of a node: it is healthy, unhealthy, or deleted as it was."""

    later_us: int
    node: int
    zone: str
    what: str


SEEN = st.builds(
    Seen,
    later_us=st.sampled_from([0, 1, 60 * SECOND_US, DELETED_NODE_COUNTS_US - 1, DELETED_NODE_COUNTS_US]),
    node=st.integers(0, 4),
    zone=st.sampled_from(["", "a"]),
    what=st.sampled_from(["sick", "sick", "healthy", "deleted", "new owner"]),
)


def anew(seen: list[tuple[int, Seen]], now_us: int) -> list[tuple[int, dict[str, list[NodeStanding]]]]:
    """List since when which nodes counted, by zone, from all that was seen: each state, however short."""
    nodes: dict[int, NodeStanding] = {}
    states: list[tuple[int, dict[str, list[NodeStanding]]]] = []

    def note(at_us: int) -> None:
        zones: dict[str, list[NodeStanding]] = {}
        for standing in nodes.values():
            zones.setdefault(standing.zone, []).append(standing)
        states.append((at_us, zones))

    def leave(until_us: int) -> None:
        ends = [(standing.left_at_us or 0, f"n{number}", number) for number, standing in nodes.items()]
        for left_us, _, number in sorted(end for end in ends if end[0]):
            if left_us + DELETED_NODE_COUNTS_US <= until_us:
                del nodes[number]
                note(left_us + DELETED_NODE_COUNTS_US)

    for at_us, one in seen:
        before = nodes.get(one.node)
        after = following(before, one, at_us)
        if after != before:
            leave(at_us)
            before = nodes.get(one.node)
            after = following(before, one, at_us)
            if after != before and after is not None:
                nodes[one.node] = after
                note(at_us)
    leave(now_us)
    return states


def following(before: NodeStanding | None, seen: Seen, at_us: int) -> NodeStanding | None:
    """Return as what a node counts after a change."""
    if seen.what in {"sick", "healthy"}:
        return NodeStanding(seen.zone, is_unhealthy=seen.what == "sick")
    if seen.what == "deleted" and before is not None and before.left_at_us is None:
        return before._replace(left_at_us=at_us)
    return before


@given(
    seen=st.lists(SEEN, max_size=25),
    percent=st.integers(1, 100),
    at_least=st.integers(1, 4),
    later_us=st.integers(0, 2 * DELETED_NODE_COUNTS_US),
)
def test_until_when_is_what_the_log_says(seen: list[Seen], percent: int, at_least: int, later_us: int) -> None:
    """Counted again from the log; a zone of which nothing was left is forgotten with its peaks."""
    now_us, known, log = DAY_US, KnownNodes(), list[tuple[int, Seen]]()
    nodes: dict[int, NodeStanding] = {}
    for one in seen:
        now_us += one.later_us
        log.append((now_us, one))
        if one.what == "new owner":
            rows = {f"n{number}": standing for number, standing in nodes.items()}
            known = KnownNodes(known.history() or NO_HISTORY, rows.items())
            continue
        after = following(nodes.get(one.node), one, now_us)
        if after is not None:
            nodes[one.node] = after
        known.take(f"n{one.node}", after, now_us)
    now_us += later_us
    states = anew(log, now_us)
    zones = states[-1][1] if states else {}
    assert set(known.zones(now_us)) == set(zones)
    for name, there in zones.items():
        assert (known.unhealthy(name, now_us), known.known(name, now_us)) == (sick_of(there), len(there))
        expected, until_us = None, STILL
        for since_us, counts in reversed(states):
            then = counts.get(name)
            if then is None:
                break
            if sick_of(then) >= at_least and sick_of(then) * 100 // len(then) >= percent:
                expected = until_us
                break
            until_us = since_us
        assert known.unhealthy_until_us(name, percent, at_least, now_us) == expected


def sick_of(standings: list[NodeStanding]) -> int:
    return sum(standing.is_unhealthy for standing in standings)
