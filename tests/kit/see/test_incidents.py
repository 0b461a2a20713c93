"""Incidents in what is shown: what holds an eviction, and what a new guard would hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from evictstream.kit.replay.cluster_tables import ClusterTables
from evictstream.kit.replay.standing_holds import hold_text
from evictstream.kit.see.evictions import Silences, pending_evictions
from evictstream.kit.see.incidents import found_incidents
from evictstream.kit.see.policies import clauses_text, held_change
from evictstream.kit.see.steering import Steering
from evictstream.kit.see.stored_state import StoredState
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import GuardMeasure, GuardScope, PolicyGuard
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.settings import Settings
from tests.models.steering.test_policies import policy_record
from tests.streams.partition.storms import NODES, THREE, Storm

GUARD: dict[str, Any] = {"guard": THREE}
SILENCES = Silences(feed_us=60 * SECOND_US, report_us=30 * SECOND_US)


def state_of(world: Storm) -> StoredState:
    state = StoredState()
    for key, value in world.rows.items():
        state.load(0, key, value)
    return state


def test_an_eviction_names_the_incident_that_holds_it() -> None:
    world = Storm(**GUARD)
    world.storm(range(NODES))
    world.run(10)
    (incident,) = world.incidents()
    shown = pending_evictions(state_of(world), world.now_us, SILENCES, Steering(policies=world.policies))
    held = {one.held_by for one in shown if one.pod.startswith("goes")}
    assert held == {f"policy/p1/1/guard:{incident.id}"}
    world.answer_incident("Approved")
    world.run(100)
    shown = pending_evictions(state_of(world), world.now_us, SILENCES, Steering(policies=world.policies))
    assert {one.held_by for one in shown} == {None}


def test_a_dry_run_finds_what_a_guard_would_hold() -> None:
    world = Storm()
    world.storm(range(NODES))
    world.run(0.5)
    state = state_of(world)
    after = Steering(policies=NO_POLICIES.with_record(b"p1", policy_record("p1", spec=GUARD), world.now_us // 1000))
    change = held_change(Steering(), after, state, world.now_us)
    assert (change.held, change.released) == (Counter({"lab": NODES}), Counter())
    (cluster,) = state.clusters()
    (found,) = found_incidents(cluster, after, world.now_us)
    assert (found.taint, found.nodes, found.limit, found.known) == ("agent", NODES, 3, NODES)


def test_a_dry_run_counts_apart_what_only_others_hold() -> None:
    world = Storm()
    world.storm(range(NODES))
    world.run(0.5)
    of_some = {"observe": True, "for": {"nodes": [f"n{number}" for number in range(3)]}}
    stand = NO_POLICIES.with_record(b"other", policy_record("other", spec={"observe": True}), world.now_us // 1000)
    would = stand.with_record(b"mine", policy_record("mine", spec=of_some), world.now_us // 1000)
    change = held_change(Steering(policies=stand), Steering(policies=would), state_of(world), world.now_us)
    assert change.still == Counter({"lab": NODES})
    assert change.others == Counter({"lab": NODES - 3})


def test_a_dry_run_counts_each_zone_by_itself() -> None:
    world = Storm()
    world.storm(range(4))
    world.storm(range(4, NODES), zone="b")
    spec = {"guard": {"count": 4, "withinSeconds": 600, "by": "zone"}}
    after = Steering(policies=NO_POLICIES.with_record(b"p1", policy_record("p1", spec=spec), world.now_us // 1000))
    (cluster,) = state_of(world).clusters()
    (found,) = found_incidents(cluster, after, world.now_us)
    assert (found.zone, found.nodes, found.limit, found.known) == ("b", NODES - 4, 4, NODES - 4)


def test_a_dry_run_counts_pods() -> None:
    world = Storm()
    world.storm(range(4))
    world.run(400)
    world.pod_gone("goes-0", 0)
    spec = {"guard": {"count": 7, "of": "pods", "withinSeconds": 600}}
    after = Steering(policies=NO_POLICIES.with_record(b"p1", policy_record("p1", spec=spec), world.now_us // 1000))
    (cluster,) = state_of(world).clusters()
    (found,) = found_incidents(cluster, after, world.now_us)
    assert (found.of, found.nodes, found.limit) == ("pods", 8, 7)


@pytest.mark.parametrize(("more", "nodes"), [({}, 3), ({"for": {"owners": ["*/web0", "*/web1"]}}, 2)])
def test_a_dry_run_counts_owners(more: dict[str, Any], nodes: int) -> None:
    world = Storm()
    for number in range(4):
        world.pod(f"web-{number}", number, None, f"ReplicaSet/web{number}")
    world.pod("other", 9, None, "ReplicaSet/web3")
    world.storm(range(4))
    world.run(400)
    world.pod_gone("web-0", 0)
    spec = {"guard": {"count": 1, "of": "ownersLosingAll", "withinSeconds": 600}, **more}
    after = Steering(policies=NO_POLICIES.with_record(b"p1", policy_record("p1", spec=spec), world.now_us // 1000))
    (cluster,) = state_of(world).clusters()
    (found,) = found_incidents(cluster, after, world.now_us)
    assert (found.of, found.nodes, found.limit) == ("ownersLosingAll", nodes, 1)


def test_a_dry_run_without_the_guard_releases_what_it_holds() -> None:
    world = Storm(**GUARD)
    world.storm(range(NODES))
    world.run(10)
    change = held_change(Steering(policies=world.policies), Steering(), state_of(world), world.now_us)
    assert (change.held, change.released) == (Counter(), Counter({"lab": NODES}))


def test_a_guard_is_told_in_words() -> None:
    guard = PolicyGuard(count=20, share_percent=10, within_seconds=600)
    assert clauses_text(PolicySpec(guard=guard)) == "guard above 20 or 10% of nodes per taint key within 10m"
    guard = PolicyGuard(count=20, by=GuardScope.ZONE, within_seconds=600)
    assert clauses_text(PolicySpec(guard=guard)) == "guard above 20 of nodes per taint key and zone within 10m"
    guard = PolicyGuard(count=20, of=GuardMeasure.PODS, by=GuardScope.NODE, within_seconds=600)
    assert clauses_text(PolicySpec(guard=guard)) == "guard above 20 pods per taint key and node within 10m"
    guard = PolicyGuard(count=5, of=GuardMeasure.OWNERS_LOSING_ALL, within_seconds=1_800)
    assert clauses_text(PolicySpec(guard=guard)) == "guard above 5 owners losing all pods per taint key within 30m"


def test_the_live_rows_name_what_somebody_has_to_answer() -> None:
    world = Storm(**GUARD)
    world.storm(range(NODES))
    world.run(10)
    (incident,) = world.incidents()
    tables = ClusterTables(Settings(), partitions=1)
    for key, value in world.rows.items():
        tables.load(0, key, value)
    tables.loaded()
    (hold,) = tables.holds({"lab": world.policies.of_cluster("lab")}, {"goes-1"}, world.now_us)
    assert hold.until_us is None
    assert hold_text(hold).endswith(
        f"The policy p1 (revision 1, guard:{incident.id}) holds it until somebody answers the incident {incident.id}."
    )
