"""Brakes in a list: which are shown, and how many evictions each holds by the rows."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.kit.cli.brake_table import brakes_kind
from evictstream.kit.see.brakes import SeenBrakeState, count_held, listed_brakes
from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.backstop import outlasted_by
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.brake import Brake, decode_brake
from evictstream.models.steering.selection import selection_text
from evictstream.streams.cli.backstop import outlasted_text
from evictstream.streams.cli.lists import ListTable
from tests.harness.rows import NOON_US, State
from tests.kit.see.test_evictions import SETTINGS, UNREACHABLE
from tests.kit.see.test_evictions import read as read_rows
from tests.models.steering.test_brakes import HOUR_US, NOW_US, read, record

ENDS = instant_text(NOW_US - 30 * SECOND_US)


def test_brakes_are_listed_until_nothing_is_spread() -> None:
    brakes = read(record("open"), record("ended", endsAt=ENDS)).with_record(b"odd", b"{", 0)
    states = {one.id: one.state for one in listed_brakes(brakes, NOW_US)}
    assert states == {
        "odd": SeenBrakeState.UNREADABLE,
        "open": SeenBrakeState.HOLDS,
        "ended": SeenBrakeState.SPREADS,
    }
    assert "ended" not in {one.id for one in listed_brakes(brakes, NOW_US + HOUR_US)}


def test_the_table_says_who_holds_what_until_when() -> None:
    brakes = read(record("open", taints=["dead"]), record("short", endsAt=instant_text(NOW_US + 90 * SECOND_US)))
    items = list(listed_brakes(brakes.with_record(b"odd", b"{", 0), NOW_US))
    kind = brakes_kind(lambda: NOW_US, is_counted=False)
    table = ListTable(kind, is_wide=False, room=None, first=items)
    assert table.titles().split() == ["ID", "STATE", "WHAT", "SINCE", "ENDS", "IN", "BY", "WHY"]
    odd, held, short = map(table.row, items)
    assert odd.startswith("odd    Unreadable  all evictions")
    assert [cell.strip() for cell in held.split("  ") if cell] == [
        "open",
        "Holds",
        "evictions for taint dead",
        "1h0m ago",
        "when released",
        "anna",
        "storm",
    ]
    assert "1m30s" in short
    assert [kind.is_alarming(one) for one in items] == [True, False, False]


def test_the_end_of_a_brake_and_of_its_spread_differ() -> None:
    (ended,) = listed_brakes(read(record("ended", endsAt=ENDS, spreadSeconds=90)), NOW_US)
    assert (ended.ends_at, ended.spread_ends_at) == (ENDS, instant_text(NOW_US + 60 * SECOND_US))
    cells = {column.title: column.cell(ended) for column in brakes_kind(lambda: NOW_US, is_counted=False).columns}
    assert cells["ENDS IN"] == "spread 1m0s"
    assert (cells["ENDS"], cells["SPREAD ENDS"]) == (ended.ends_at, ended.spread_ends_at)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "all evictions"),
        ({"clusters": ["a", "b"], "namespaces": ["shop"]}, "evictions in cluster a or b of namespace shop"),
        ({"zones": list("abcdefg")}, "evictions in zone a or b or c or d or e or 2 more"),
    ],
)
def test_what_is_held_in_words(fields: dict[str, Any], text: str) -> None:
    brake: Brake = decode_brake(record(**fields))
    assert selection_text(brake) == text


def test_due_evictions_are_counted_for_each_brake() -> None:
    rows = State(SETTINGS)
    rows.node("lab", "n-1", UNREACHABLE, zone="z-b")
    for name, seconds in (("slow", 300), ("quick", 20), ("quicker", 10)):
        rows.pod("lab", "n-1", name, seconds)
    brakes = read(
        record("all"),
        record("other", clusters=["prod"]),
        record("zone", zones=["z-a"]),
        record("other-zone", zones=["z-b", "z-c"]),
        appended_us=NOON_US,
    )
    at_us = NOON_US + 60 * SECOND_US
    counted = count_held(brakes, read_rows(rows), at_us)
    listed = {one.id: one.evictions for one in listed_brakes(brakes, at_us, counted)}
    assert listed == {"all": 2, "other": 0, "zone": 0, "other-zone": 2}


def test_a_brake_shows_when_the_built_in_controller_goes_on() -> None:
    rows = State(SETTINGS)
    rows.node("lab", "n-1", UNREACHABLE)
    rows.pod("lab", "n-1", "slow", 60, more=3600)
    rows.pod("lab", "n-1", "quick", 30, more=3600)
    rows.node("other", "m-1", UNREACHABLE)
    rows.pod("other", "m-1", "not-moved", 10)
    brakes = read(
        record("all"), record("lab", clusters=["lab"]), record("other", clusters=["other"]), appended_us=NOON_US
    )
    nodes = [stored.aggregate for stored in read_rows(rows).nodes()]
    at_us = NOON_US + 60 * SECOND_US
    outlasted = outlasted_by(lambda name: brakes.of_cluster(name, at_us), nodes, at_us, RuleParameters())
    assert outlasted.keys() == {"all", "lab"}
    listed = {one.id: one for one in listed_brakes(brakes, at_us, outlasted=outlasted)}
    first = instant_text(outlasted["all"].built_in_us)
    assert [listed[name].built_in_at for name in ("all", "lab", "other")] == [first, first, None]
    assert outlasted_text("brake all", outlasted["all"]) == (
        f"the built-in controller goes on at {first} with the first of 2 pods that brake all holds"
    )
    assert outlasted_text("b", outlasted["all"]._replace(evictions=1), "eu").startswith("eu: the built-in controller")
