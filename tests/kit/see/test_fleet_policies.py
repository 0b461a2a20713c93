"""How policies stand: what the fleet publishes of them, beside their records."""

from __future__ import annotations

from typing import Any

from evictstream.kit.cli.status_policies import policy_standings_kind
from evictstream.kit.see.fleet_policies import PolicyStanding, policy_standings
from evictstream.models.instants import instant_text
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.cli.lists import ListTable
from tests.kit.see.test_fleet import NOON_US, level, view_of
from tests.models.messages.test_fleet import COUNTS
from tests.models.steering.test_policies import policy_record, read_policies

SECOND_US = 1_000_000
ZONE = {"hold": {"while": {"zone": {"unhealthyPercent": 55}}, "atMostSeconds": 3_600}}
POLICIES = read_policies(
    policy_record("dark", revision=3, spec=ZONE),
    policy_record("pace", spec={"for": {"clusters": ["b"]}, "limit": {"evictions": 2}}),
    policy_record("gone", revision=2, earlier=[{"spec": {"observe": True}}]),
    appended_us=NOON_US,
)


def held(by: str, evictions: int, at: int, **clauses: int) -> dict[str, Any]:
    since = instant_text(NOON_US + at * SECOND_US)
    return {"by": by, "evictions": evictions, "oldestAt": since, **({"clauses": clauses} if clauses else {})}


def holding(cluster: str, *holders: dict[str, Any]) -> tuple[bytes, bytes]:
    return f"{cluster}/".encode(), level(cluster, evictions=COUNTS | {"held": 9, "heldBy": list(holders)})


VIEW = view_of(
    holding("a", held("policy/dark", 5, -60, hold=4, spread=1), held("b-1", 7, -90)),
    holding("b", held("policy/dark", 2, -70, hold=2), held("policy/pace", 1, -5, limit=1)),
    holding("c", held("policy/gone", 3, -8)),
    (b"a/z1", level("a", zone="z1")),
)


def test_each_policy_has_what_it_holds_in_all_clusters() -> None:
    dark, gone, pace = policy_standings(VIEW, POLICIES)
    assert (dark.name, dark.held, dark.clusters, dark.waits_for) == ("dark", 7, 2, {"hold": 6, "spread": 1})
    assert dark.oldest_due_at == instant_text(NOON_US - 70 * SECOND_US)
    assert (dark.revision, dark.does) == (3, "hold while 55% of a zone is unhealthy")
    assert (pace.held, pace.does, pace.selected) == (1, "2/s per cluster", "clusters: b")
    assert (gone.held, gone.does, gone.waits_for) == (3, "", {})


def test_of_one_cluster_only_what_matters_there() -> None:
    assert [(one.name, one.held) for one in policy_standings(VIEW, POLICIES, "a")] == [("dark", 5)]
    assert [(one.name, one.held) for one in policy_standings(VIEW, POLICIES, "b")] == [("dark", 2), ("pace", 1)]


def test_without_records_the_names_remain() -> None:
    found = policy_standings(VIEW, NO_POLICIES)
    assert [(one.name, one.held, one.does) for one in found] == [("dark", 7, ""), ("gone", 3, ""), ("pace", 1, "")]


def test_one_that_cannot_be_read_comes_first() -> None:
    first, *_ = policy_standings(VIEW, POLICIES.with_record(b"odd", b"{", 1))
    assert first.name == "odd"
    assert first.problem


def lines(*standings: PolicyStanding) -> list[str]:
    kind = policy_standings_kind(lambda: NOON_US)
    table = ListTable(kind, is_wide=False, room=None, first=standings)
    return [" ".join(line.split()) for line in (table.titles(), *map(table.row, standings))]


def test_the_table_says_what_they_wait_for() -> None:
    titles, *rows = lines(*policy_standings(VIEW, POLICIES.with_record(b"odd", b"{", 1)))
    assert titles == "POLICY HELD OLDEST CLUSTERS WAITS FOR DOES"
    assert rows[0].startswith("odd 0 - 0 it cannot be read")
    assert rows[1] == "dark 7 1m10s ago 2 hold 6,spread 1 hold while 55% of a zone is unhealthy"
    assert rows[2] == "gone 3 8s ago 1 - deleted"
    assert rows[3] == "pace 1 5s ago 1 limit 2/s per cluster"
