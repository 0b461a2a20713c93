"""What a partition publishes of its clusters: when, with which sequence, and what it takes back."""

from __future__ import annotations

import dataclasses
import json

import pytest

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import instant_text
from evictstream.models.messages.fleet import EvictionCounts, FleetCluster, NodeCounts, ProfileRef
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.partition.published import QUIET_US
from tests.faults.simulated.published import impossible
from tests.models.steering.test_brakes import record
from tests.streams.partition.publishing import OTHER, UNREACHABLE, Published
from tests.streams.worker.story import NOON_US, SECOND_US

NODE_PODS = 3
MANY = 250


@pytest.fixture
def world() -> Published:
    """A cluster with a healthy node and one that is unreachable, with three pods."""
    world = Published()
    world.node("well")
    world.node("ill", UNREACHABLE)
    for number in range(NODE_PODS):
        world.pod(f"p{number}", "ill", 10 + 100 * number)
    return world


def test_a_level_says_what_there_is(world: Published) -> None:
    world.pod("q", "nowhere")
    world.run(1)
    world.check()
    assert world.newest.nodes == NodeCounts(healthy=1, unhealthy=1, unknown=1, tainted=1)
    assert (world.newest.cluster, world.newest.zone, world.newest.pods) == ("lab", None, NODE_PODS + 1)
    assert [bucket.evictions for bucket in world.newest.evictions.deadlines] == [1, 1, 1]
    assert world.newest.evictions.scheduled == NODE_PODS


def test_each_state_of_an_eviction_is_counted(world: Published) -> None:
    world.run(9)
    assert world.newest.evictions.open == world.newest.evictions.scheduled == NODE_PODS
    world.run(2)
    world.check()
    assert _states(world.newest.evictions) == (2, 0, 1, 0, 0)
    world.answer("Failed")
    world.run(1, fires=False)
    world.check()
    assert _states(world.newest.evictions) == (2, 0, 0, 1, 1)
    world.run(120, fires=False)
    world.check()
    assert _states(world.newest.evictions) == (1, 1, 0, 1, 1)
    world.node("ill")
    world.run(1)
    world.check()
    assert world.newest.evictions.open == 0
    assert world.newest.nodes.unhealthy == 0


def test_the_first_timer_of_the_built_in_controller_is_published() -> None:
    world = Published()
    world.config = dataclasses.replace(world.config, rules=ClusterRules(RuleParameters(), ["lab"]))
    world.die()
    world.node("ill", UNREACHABLE)
    for name, seconds in (("slow", 100), ("quick", 10)):
        toleration: dict[str, object] = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        moved = json.dumps([toleration | {"builtInSeconds": seconds + 60}])
        meta = {"namespace": "x", "name": name, "uid": name, "annotations": {"evictstream.io/tolerations": moved}}
        spec = {"nodeName": "ill", "tolerations": [toleration | {"tolerationSeconds": seconds + 60}]}
        world._object("lab", "pods", "ADDED", {"kind": "Pod", "metadata": meta, "spec": spec})
    world.run(11)
    world.check()
    assert world.newest.evictions.built_in_at == instant_text(NOON_US + 70 * SECOND_US)
    world.die()
    world.run(1)
    world.check()
    assert world.newest.evictions.built_in_at == instant_text(NOON_US + 70 * SECOND_US)
    world.node("ill")
    world.run(1)
    assert world.newest.evictions.built_in_at is None


def _states(counts: EvictionCounts) -> tuple[int, ...]:
    return counts.scheduled, counts.due, counts.issued, counts.retrying, counts.failing


def test_what_does_not_change_is_said_each_minute(world: Published) -> None:
    world.node("ill")
    world.run(1)
    before = len(world.levels)
    world.run(59)
    assert len(world.levels) == before
    world.pod("new", "well")
    world.heartbeat()
    world.run(1)
    assert len(world.levels) == before + 1, "the minute is over, or the feed is heard"
    world.run(QUIET_US // SECOND_US - 1)
    assert len(world.levels) == before + 1
    world.run(1)
    assert len(world.levels) == before + 2
    assert world.newest.pods == NODE_PODS + 1


def test_many_changes_of_a_second_make_one_record(world: Published) -> None:
    world.run(1)
    before = len(world.levels)
    for number in range(50):
        world.node(f"n{number}", OTHER)
        world.pod(f"m{number}", f"n{number}")
    world.run(1)
    assert len(world.levels) == before + 1
    world.check()


def test_a_deadline_that_comes_behind_a_gate_is_told(world: Published) -> None:
    world.run(5)
    before = len(world.levels)
    world.run(6, fires=False)
    assert len(world.levels) == before + 1
    assert world.newest.evictions.due == 1
    world.check()


def test_a_silent_feed_is_told_and_heard_again() -> None:
    world = Published()
    seen = []
    for seconds in (0, 65, 0):
        world.run(seconds)
        if not seconds:
            world.heartbeat()
        world.run(1)
        seen.append(world.newest.feed)
    assert [feed is not None and feed.is_silent for feed in seen] == [False, True, False]
    assert len({feed.heard_at for feed in seen if feed is not None}) == 2


def test_what_a_brake_holds_is_told_by_its_id(world: Published) -> None:
    world.brakes = world.brakes.with_record(b"b1", record("b1", clusters=["lab"]), world.now_us // 1000)
    world.brakes = world.brakes.with_record(b"b2", record("b2", clusters=["other"]), world.now_us // 1000)
    world.run(15)
    counts = world.newest.evictions
    assert (counts.due, counts.held, [(one.by, one.evictions) for one in counts.held_by]) == (1, 1, [("b1", 1)])
    assert counts.held_by[0].oldest_at == counts.oldest_due_at
    assert counts.held_by[0].clauses == {}, "a brake has none"
    held = world.newest
    world.brakes = NO_BRAKES
    world.run(2)
    assert [one.brakes for one in (held, world.newest)] == [("b1",), ()]
    assert impossible(held) == ""
    assert world.newest.evictions.held == 0


def test_a_new_owner_says_the_same_with_a_later_sequence(world: Published) -> None:
    world.run(12)
    before = world.newest
    world.die()
    world.now_us -= 5 * SECOND_US  # its clock is behind
    world.publish()
    assert world.newest.sequence > before.sequence
    assert (world.newest.nodes, world.newest.evictions) == (before.nodes, before.evictions)


def test_the_sequence_grows_after_a_worker_that_knows_none(world: Published) -> None:
    """A worker of the version before drops it from the row."""
    world.run(1)
    before = world.newest
    world.rows = {
        key: json.dumps({k: v for k, v in json.loads(value).items() if k != "published"}).encode()
        if key.startswith(b"cluster\x00")
        else value
        for key, value in world.rows.items()
    }
    world.die()
    world.run(1)
    assert world.newest.sequence > before.sequence


def test_nothing_is_published_in_the_middle_of_a_step() -> None:
    world = Published()
    world.node("n")
    for number in range(MANY):
        world.pod(f"p{number}", "n")
    world.run(1)
    before = len(world.levels)
    meta = {"name": "n", "uid": "node-n", "resourceVersion": "100000"}
    node = {"kind": "Node", "metadata": meta, "spec": {"taints": [UNREACHABLE]}}
    parts = world.parts("lab", "nodes", {"type": "MODIFIED", "object": node})
    assert not next(parts).is_last
    world.publish()
    assert len(world.levels) == before
    for _ in parts:
        pass
    world.publish()
    assert world.newest.evictions.open == MANY


@pytest.mark.parametrize("dies", [False, True])
def test_a_forgotten_cluster_leaves_tombstones(world: Published, *, dies: bool) -> None:
    world.heartbeat()
    world.run(1)
    world.raw("lab", "nodes", {"type": "FORGET"})
    world.commit()
    if dies:
        world.die()
    world.run(3)
    assert world.levels[-1] == b"lab/"
    assert world.clusters[-1] == b"lab"
    assert [one for one in world.levels if isinstance(one, bytes)] == [b"lab/"], "once"
    world.now_us += SECOND_US
    world.node("n")
    world.run(1)
    assert world.newest.nodes.healthy == 1
    assert world.newest.evictions.open == 0


def test_a_cluster_of_which_nothing_is_left_leaves_tombstones() -> None:
    world = Published()
    world.node("n")
    world.run(1)
    world.node("n", event_type="DELETED")
    world.run(2)
    assert world.newest.nodes == NodeCounts(healthy=0, unhealthy=0, unknown=0, tainted=0)
    world.run(4000)
    assert world.levels[-1] == b"lab/"
    assert b"cluster\x00lab" not in world.rows


def test_a_cluster_is_named_once_and_when_it_changes() -> None:
    world = Published()
    world.heartbeat(clusterUid="u-1", clusterLabels={"tier": "gold"})
    world.run(130)
    (first,) = world.clusters
    assert isinstance(first, FleetCluster)
    assert (first.cluster, first.cluster_uid, first.labels) == ("lab", "u-1", {"tier": "gold"})
    world.heartbeat(clusterUid="u-1", clusterLabels={"tier": "iron"})
    world.run(5)
    world.heartbeat(clusterUid="u-1")
    world.run(5)
    assert [one.labels for one in world.clusters if isinstance(one, FleetCluster)] == [
        {"tier": "gold"},
        {"tier": "iron"},
        {},
    ]


def test_where_a_cluster_stands_in_an_inventory_is_published() -> None:
    world = Published()
    profile = {"namespace": "fleet", "name": "lab-eu", "manager": "hubs"}
    world.heartbeat(clusterProfile=profile)
    world.run(1)
    world.die()
    world.run(1)
    world.heartbeat()
    world.run(1)
    found = [one.profile for one in world.clusters if isinstance(one, FleetCluster)]
    assert found == [ProfileRef(**profile), ProfileRef(**profile), None]
