"""The gate `NodeControllerLeaseCircuitBreaker`: a silent node's lease is read before the node is judged.

Names of upstream's cases are those of `TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease` in Kubernetes 1.37.
"""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.lifecycle import ConditionsWritten, LifecycleSettings, NodeLifecycle, WatchedLeases
from evictstream.models.kubernetes import Taint
from tests.kit.upstream.lifecycle.scene import (
    FAKE_NOW_US,
    SECOND_US,
    UNREACHABLE,
    ZONE_1,
    ZONE_2,
    started,
    taints_of,
    up,
)
from tests.kit.upstream.lifecycle.test_pace import ANSWERS_IN_100_MS, FOUND_US, MILLISECOND_US, TEN_PER_SECOND, Scene

SILENT_US = FAKE_NOW_US + 51 * SECOND_US


def with_leases(*names: str, zone_of: dict[str, str] | None = None) -> NodeLifecycle:
    """A controller that has seen one heartbeat of each node."""
    zones = zone_of or {}
    lifecycle = started(*(up(name, zones.get(name, "zone1")) for name in names))
    for name in names:
        lifecycle.renew_lease(name, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    return lifecycle


def written(lifecycle: NodeLifecycle, now_us: int) -> list[str]:
    """Names of the nodes that a round calls silent; a pass over the queues follows it."""
    changes = lifecycle.monitor(now_us)
    lifecycle.no_execute_pass(now_us)
    return [change.node for change in changes if isinstance(change, ConditionsWritten)]


def test_lease_of_the_last_heartbeat_lets_the_node_be_judged() -> None:
    lifecycle = with_leases("node0", "node1")
    lifecycle.renew_lease("node1", SILENT_US)
    assert written(lifecycle, SILENT_US) == ["node0"]
    assert taints_of(lifecycle, "node0") == [UNREACHABLE]


def test_node_without_a_lease_is_judged() -> None:
    """Upstream's "Node lease is missing": not found is an answer."""
    lifecycle = started(up("node0"), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.renew_lease("node1", SILENT_US)
    assert written(lifecycle, SILENT_US) == ["node0"]


def test_stale_cache_judges_no_node_until_it_has_caught_up() -> None:
    """Also not nodes that are dead: they wait for the cache as all others do."""
    lifecycle = with_leases("alive", "dead")
    leases = lifecycle.cluster.leases
    leases.is_cache_behind = True
    lifecycle.renew_lease("alive", SILENT_US)
    assert written(lifecycle, SILENT_US) == []
    assert written(lifecycle, SILENT_US + 5 * SECOND_US) == []
    assert leases.are_awaited
    leases.catch_up()
    assert written(lifecycle, SILENT_US + 10 * SECOND_US) == ["dead"]
    assert taints_of(lifecycle, "alive") == []


def test_stale_cache_without_the_gate_taints_living_nodes() -> None:
    lifecycle = NodeLifecycle(LifecycleSettings(reads_live_leases=False))
    for name in ("node0", "node1", "node2"):
        lifecycle.put_node(up(name), FAKE_NOW_US)
        lifecycle.renew_lease(name, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.cluster.leases.is_cache_behind = True
    for name in ("node0", "node1", "node2"):
        lifecycle.renew_lease(name, SILENT_US)
    assert written(lifecycle, SILENT_US) == ["node0", "node1", "node2"]


def test_read_that_fails_leaves_only_that_node_out() -> None:
    lifecycle = with_leases("node0", "node1")
    lifecycle.cluster.leases.fail = True
    lifecycle.renew_lease("node1", SILENT_US)
    assert written(lifecycle, SILENT_US) == []
    assert dict(lifecycle.zone_states) == {ZONE_1: "Normal"}
    lifecycle.cluster.leases.fail = False
    assert written(lifecycle, SILENT_US + 5 * SECOND_US) == ["node0"]


def test_nodes_that_are_not_judged_are_missing_in_their_zone() -> None:
    """Two of four silent nodes would be a normal zone; with none judged only the living count, and no zone is full."""
    zone_of = {"far0": "zone2"}
    lifecycle = with_leases("node0", "node1", "node2", "far0", zone_of=zone_of)
    lifecycle.cluster.leases.fail = True
    for name in ("node0", "node1"):
        lifecycle.renew_lease(name, SILENT_US)
    assert written(lifecycle, SILENT_US) == []
    assert dict(lifecycle.zone_states) == {ZONE_1: "Normal"}  # zone2 is forgotten: none of its nodes was judged
    lifecycle.cluster.leases.fail = False
    assert sorted(written(lifecycle, SILENT_US + 5 * SECOND_US)) == ["far0", "node2"]
    assert dict(lifecycle.zone_states) == {ZONE_1: "Normal", ZONE_2: "FullDisruption"}


def test_forgotten_zone_begins_again_with_a_full_limiter() -> None:
    """After a round in which no node was judged: a queue with a token, which stamps a taint again or sets one more."""
    names = [f"node{number}" for number in range(6)]
    zone_of = {"far0": "zone2"}
    lifecycle = started(*(up(name, zone_of.get(name, "zone1")) for name in (*names, "far0")), rate=0.0001)
    lifecycle.renew_lease("far0", FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    for at_us in (SILENT_US, SILENT_US + 5 * SECOND_US):
        lifecycle.renew_lease("far0", at_us)
        written(lifecycle, at_us)
    first = lifecycle.nodes["node0"].taints[-1]
    assert [name for name in names if taints_of(lifecycle, name)] == ["node0"]  # the token of the start
    leases = lifecycle.cluster.leases
    leases.is_cache_behind = True
    far_us = SILENT_US + 60 * SECOND_US
    lifecycle.renew_lease("far0", far_us)
    far = [lifecycle.monitor(far_us), lifecycle.monitor(far_us + 5 * SECOND_US)]
    assert far == [(), ()]
    assert dict(lifecycle.zone_states) == {}
    leases.catch_up()
    written(lifecycle, far_us + 10 * SECOND_US)
    assert lifecycle.nodes["node0"].taints[-1] == Taint(first.key, first.value, first.effect, far_us + 10 * SECOND_US)


def test_lease_changed_without_renewal_keeps_its_node_from_judgement() -> None:
    """An annotation, or a clock that went back: another version, and no heartbeat, as long as the node is silent."""
    lifecycle = with_leases("node0", "node1")
    lifecycle.renew_lease("node0", FAKE_NOW_US - SECOND_US)
    for seconds in range(51, 600, 5):
        lifecycle.renew_lease("node1", FAKE_NOW_US + seconds * SECOND_US)
        assert written(lifecycle, FAKE_NOW_US + seconds * SECOND_US) == []
    assert taints_of(lifecycle, "node0") == []


@pytest.mark.parametrize(("reads", "first_ms"), [(False, 100), (True, 200)])
def test_conditions_wait_for_the_read_before_them(*, reads: bool, first_ms: int) -> None:
    scene = Scene(ANSWERS_IN_100_MS, 2, reads_live_leases=reads)
    scene.run(FOUND_US + SECOND_US)
    assert scene.times_ms(ConditionsWritten) == [first_ms, first_ms]


def test_each_round_reads_the_lease_of_each_dead_node() -> None:
    """At ten requests a second 20 of them make a round two seconds longer than the period, as long as they are dead."""
    assert rounds_in(70, reads=False) == 1 + 70 // 5
    assert rounds_in(70, reads=True) == 1 + 70 // (5 + 2)


def rounds_in(seconds: int, *, reads: bool) -> int:
    """Count the rounds of some time with 20 dead nodes, by heartbeats of one more that are seen in them."""
    scene = Scene(TEN_PER_SECOND, 21, rate=0, reads_live_leases=reads)
    scene.run(60 * SECOND_US)
    seen = set()
    for tenth in range(seconds * 10):
        at_us = (600 + tenth) * 100 * MILLISECOND_US
        scene.lifecycle.renew_lease("n20", at_us)
        scene.run(at_us)
        seen.add(scene.lifecycle.health["n20"].probe_at_us)
    return len(seen)


def test_leases_of_deleted_nodes_are_gone_from_both() -> None:
    leases = WatchedLeases()
    leases.put("node0", 1)
    leases.is_cache_behind = True
    leases.delete("node0")
    assert leases.cached("node0") is not None
    leases.catch_up()
    assert leases.cached("node0") is None
