"""The fleet as its topics tell it: newest records, sums, and a table that fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.cli.status_table import standings_kind
from evictstream.kit.see.fleet import FleetView, ListedStanding, SeenScope, together
from evictstream.models.instants import instant_text
from evictstream.models.messages.fleet import MOST_BUCKETS
from evictstream.streams.cli.lists import ListTable
from tests.models.messages.test_fleet import CLUSTER, COUNTS, LEVEL

NOON_US = 1_795_262_400_000_000
SECOND_US = 1_000_000
NARROW = 80


def level(cluster: str, *, at: int = 0, **fields: Any) -> bytes:
    return json.dumps(LEVEL | {"cluster": cluster, "at": instant_text(NOON_US + at * SECOND_US)} | fields).encode()


def view_of(*levels: tuple[bytes, bytes | None]) -> FleetView:
    view = FleetView()
    for key, value in levels:
        assert view.take_level(key, value) is None
    return view


def test_the_newest_record_counts_and_a_tombstone_ends() -> None:
    view = view_of((b"a/", level("a", pods=1)), (b"b/", level("b")), (b"a/", level("a", pods=5)), (b"b/", None))
    whole, one = view.standings()
    assert (whole.scope, whole.clusters, whole.pods) == (SeenScope.FLEET, 1, 5)
    assert (one.name, one.pods) == ("a", 5)
    assert view_of((b"a/", level("a")), (b"a/", None)).standings() == []


def test_zones_stand_below_their_cluster_and_count_once() -> None:
    view = view_of((b"a/z1", level("a", zone="z1", pods=2)), (b"a/", level("a", pods=2)), (b"b/", level("b")))
    assert [(one.scope, one.name) for one in view.standings("a")] == [("cluster", "a"), ("zone", "a/z1")]
    assert view.standings()[0].pods == 2 + LEVEL["pods"]


def test_a_cluster_has_its_labels_and_loses_them() -> None:
    view = view_of((b"lab/", level("lab")))
    assert view.take_cluster(b"lab", json.dumps(CLUSTER).encode()) is None
    assert (view.standings()[1].labels, view.standings()[1].cluster_uid) == ({"tier": "gold"}, "u")
    assert view.take_cluster(b"lab", None) is None
    assert view.standings()[1].labels == {}


def test_what_cannot_be_read_is_told_and_changes_nothing() -> None:
    view = view_of((b"a/", level("a")))
    assert view.take_level(b"a/", b"{") is not None
    assert view.take_cluster(b"a", b"{}") is not None
    assert len(view.standings()) == 2


counts = st.integers(0, 9)
minutes = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 5)), max_size=MOST_BUCKETS, unique_by=lambda one: one[0]
)


@st.composite
def standings(draw: st.DrawFn) -> ListedStanding:
    ahead = sorted(draw(minutes))
    later, due, issued, retrying = (draw(counts) for _ in range(4))
    scheduled = later + sum(count for _, count in ahead)
    evictions = COUNTS | {
        "open": scheduled + due + issued + retrying,
        "scheduled": scheduled,
        "due": due,
        "issued": issued,
        "retrying": retrying,
        "later": later,
        "deadlines": [{"before": instant_text(NOON_US + at * 60 * SECOND_US), "evictions": n} for at, n in ahead],
    }
    view = view_of((b"a/", level("a", evictions=evictions, pods=draw(counts))))
    return view.standings()[1]


@given(st.lists(standings(), min_size=1, max_size=5))
def test_sums_of_clusters_are_possible_and_whole(each: list[ListedStanding]) -> None:
    whole = together(each).evictions
    assert whole.open == sum(one.evictions.open for one in each)
    assert whole.open == whole.scheduled + whole.due + whole.issued + whole.retrying
    assert whole.scheduled == whole.later + sum(bucket.evictions for bucket in whole.deadlines)
    assert [bucket.before for bucket in whole.deadlines] == sorted(bucket.before for bucket in whole.deadlines)
    assert whole.held_by[0].evictions == len(each)


def test_the_first_timer_of_the_built_in_controller_is_shown() -> None:
    first, later = (instant_text(NOON_US + at * SECOND_US) for at in (60, 90))
    view = view_of(
        (b"a/", level("a", evictions=COUNTS | {"builtInAt": later})),
        (b"b/", level("b", evictions=COUNTS | {"builtInAt": first})),
        (b"c/", level("c")),
    )
    assert [one.evictions.built_in_at for one in view.standings()] == [first, later, first, None]
    table = ListTable(standings_kind(lambda: NOON_US), is_wide=True, room=None, first=view.standings())
    assert "BUILT-IN AT" in table.titles()
    assert [later in table.row(one) for one in view.standings()] == [False, True, False, False]


def test_the_table_fits_a_narrow_terminal() -> None:
    large = COUNTS | {"open": 123_456, "due": 45_678, "issued": 12_345}
    nodes = {"healthy": 4_990, "unhealthy": 10, "unknown": 0, "tainted": 10}
    view = view_of(
        (b"a/", level("production-europe-west-1-blue", pods=150_000, evictions=large, nodes=nodes)),
        (b"b/", level("b", gap=True, feed={"silent": True})),
    )
    kind = standings_kind(lambda: NOON_US)
    table = ListTable(kind, is_wide=False, room=NARROW, first=view.standings())
    lines = [table.titles(), *map(table.row, view.standings())]
    assert max(map(len, lines)) <= NARROW
    assert {"CLUSTER", "SICK", "OPEN", "DUE", "FAILING", "HELD", "WAITS"} <= set(lines[0].split())
    assert "123456" in lines[3]
    assert "feed" in lines[1]
    assert "feed" in lines[2]


@pytest.mark.parametrize(
    ("fields", "age", "alarms"),
    [
        ({}, 80, False),
        ({}, 100, True),
        ({"gap": True}, 0, True),
        ({"feed": {"silent": True}}, 0, True),
        ({"evictions": COUNTS | {"failing": 1}}, 0, True),
    ],
)
def test_what_alarms_is_red(fields: dict[str, Any], age: int, *, alarms: bool) -> None:
    view = view_of((b"a/", level("a", **fields)))
    kind = standings_kind(lambda: NOON_US + age * SECOND_US)
    assert [kind.is_alarming(one) for one in view.standings()] == [False, alarms]


def test_what_no_worker_can_read_waits_in_each_cluster() -> None:
    view = view_of((b"a/", level("a")), (b"a/z", level("a", zone="z")), (b"b/", level("b")))
    kind = standings_kind(lambda: NOON_US)
    waits = next(column.cell for column in kind.columns if column.title == "WAITS")
    for unreadable, words in (({}, ["-", "-", "-"]), ({"policies": "why"}, ["policies 2", "policies", "policies"])):
        seen = view.standings(unreadable=unreadable)
        assert [waits(one) for one in seen] == words
        assert [kind.is_alarming(one) for one in seen] == [False, bool(unreadable), bool(unreadable)]
        assert all(one.unreadable == unreadable for one in (*seen, *view.standings("a", unreadable)))
