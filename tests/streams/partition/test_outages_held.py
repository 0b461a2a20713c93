"""Holds in outages of zones before a partition: through new owners, with nodes that come, go and are deleted."""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evictstream.models.eviction.cluster import ClusterState
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.steering.node_counts import NodeHistory
from tests.harness.examples import examples
from tests.models.steering.test_node_counts import Seen, anew, sick_of
from tests.streams.partition.test_held import Braked

UNREACHABLE: Final = "node.kubernetes.io/unreachable"
HEALTHY, SICK, DELETED = "healthy", "sick", "deleted"
PODS, WAIT = 4, 5  # of a node; and how long each tolerates any taint, seconds
PERCENT, AT_LEAST, SPREAD = 50, 2, 20
CONDITION: Final = {"zone": {"unhealthyPercent": PERCENT, "atLeast": AT_LEAST}}
CLUSTER_ROW: Final = b"cluster\0dark"
LOOKS_US: Final = 250_000  # what held an eviction is looked at five times a second


class Dark(Braked):
    """The same with a third cluster, of nodes in zones, each with some pods."""

    cluster_rows = 0  # written of that cluster

    def __init__(self) -> None:
        super().__init__()
        self.evicts["dark"] = []
        self.log: list[tuple[int, Seen]] = []
        self.zone_of: dict[int, str] = {}

    def _take(self) -> None:
        self.cluster_rows += CLUSTER_ROW in self.outbox.rows
        super()._take()

    def node(self, number: int, what: str, *, zone: str = "a", taints: tuple[str, ...] = (UNREACHABLE,)) -> None:
        self.offset += 1
        name, is_new = f"n{number}", number not in self.zone_of
        meta = {"name": name, "uid": name, "resourceVersion": str(self.offset + 100)}
        is_sick = what == SICK
        node = {
            "kind": "Node",
            "metadata": meta | {"labels": {"topology.kubernetes.io/zone": zone}},
            "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints if is_sick]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown" if is_sick else "True"}]},
        }
        kind = "DELETED" if what == DELETED else "ADDED" if is_new else "MODIFIED"
        self.raw("dark", "nodes", {"cluster": "dark", "type": kind, "object": node})
        self.log.append((self.now_us, Seen(0, number, zone, what)))
        self.zone_of[number] = zone
        if is_new:
            spec = {"nodeName": name, "tolerations": [{"operator": "Exists", "tolerationSeconds": WAIT}]}
            for pod in range(PODS):
                pod_name = f"{name}-p{pod}"
                self.put("dark", "pods", "Pod", {"namespace": "x", "name": pod_name, "uid": pod_name}, spec)

    def hold(self, condition: dict[str, Any] = CONDITION, **more: Any) -> None:
        spec = {"for": {"clusters": ["dark"]}, "hold": {"while": condition, "spreadSeconds": SPREAD, **more}}
        self.policy(spec=spec)

    def turn(self) -> None:
        self.logic.fire(self.now_us, 0, self.outbox)
        self._take()

    def history(self) -> NodeHistory | None:
        """What the row of the cluster has of earlier counts."""
        row = self.rows.get(CLUSTER_ROW)
        return None if row is None else msgspec.json.decode(row, type=ClusterState).history

    def first_issued(self) -> dict[str, float]:
        return {uid: times[0] for uid, times in self.issued("dark").items()}


def dark(*, healthy: int = 4, zone: str = "a") -> Dark:
    world = Dark()
    for number in range(healthy):
        world.node(number, HEALTHY, zone=zone)
    return world


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed at each step"])
def test_a_dark_zone_is_held_and_goes_spread_afterwards(kills: bool) -> None:  # noqa: FBT001 - a case
    world, plain = dark(), dark()
    world.hold()
    for each in (world, plain):
        for number in (0, 1, 2):
            each.node(number, SICK)
    for at in (30, 60):
        world.run(at)
        assert world.first_issued() == {}
        assert world.held() == {("policy/p1", "dark"): 3 * PODS}
        if kills:
            world.die()
    world.node(0, HEALTHY)
    world.node(1, HEALTHY)
    world.run(65)
    if kills:
        world.die()
    world.run(60 + SPREAD + 1)
    issued = world.first_issued()
    assert set(issued) == {f"n2-p{number}" for number in range(PODS)}, "the pods of recovered nodes stay"
    for uid, issued_at in issued.items():
        share = zlib.crc32(uid.encode()) * SPREAD * SECOND_US // 2**32 / SECOND_US
        assert share - 1e-6 <= issued_at - 60 <= share + LOOKS_US / SECOND_US
    for uid, times in world.issued("dark").items():
        assert len(times) == 1, uid
    plain.run(81)
    assert world.issued("free") == plain.issued("free"), "not later for another cluster"
    assert world.held() == {}


def test_a_repeat_begins_no_other_wait_in_an_outage() -> None:
    world = dark()
    world.hold(atMostSeconds=60)
    for number in (0, 1):
        world.node(number, SICK)
    world.run(60 + WAIT)
    world.answer("dark", "Failed")
    world.run(600)
    first, second, *_ = world.issued("dark")["n0-p0"]
    assert first == 60 + WAIT
    assert second < first + 60


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_nodes_deleted_in_an_outage_count_for_ten_minutes(kills: bool) -> None:  # noqa: FBT001 - a case
    world = dark(healthy=6)
    world.hold()
    for number in (0, 1, 2, 3):
        world.node(number, SICK)
    world.run(30)
    for number in (0, 1, 2):
        world.node(number, DELETED)
    if kills:
        world.die()
    world.run(30 + 599)
    assert world.first_issued() == {}, "one of three, with those that were taken away four of six"
    if kills:
        world.die()
    world.run(30 + 600 + SPREAD + 1)
    issued = world.first_issued()
    assert set(issued) == {f"n3-p{number}" for number in range(PODS)}
    assert 630 <= min(issued.values()) < max(issued.values()) <= 650


def test_condition_and_taint_count_as_unhealthy() -> None:
    world = dark()
    world.hold()
    world.node(0, SICK)
    world.node(1, SICK, taints=())
    world.run(30)
    assert world.first_issued() == {}, "one has the taint, both are not Ready"


def test_a_node_of_another_zone_goes_on() -> None:
    world = dark()
    world.hold()
    for number in (10, 11, 12):
        world.node(number, HEALTHY, zone="b")
    for number in (0, 1, 10):
        world.node(number, SICK, zone=world.zone_of[number])
    world.run(30)
    assert set(world.first_issued()) == {f"n10-p{number}" for number in range(PODS)}


def test_nothing_is_held_in_a_new_zone_of_one_node() -> None:
    world = dark()
    world.hold()
    world.node(10, HEALTHY, zone="new")
    world.node(10, SICK, zone="new")
    world.run(30)
    assert set(world.first_issued()) == {f"n10-p{number}" for number in range(PODS)}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_a_cluster_without_a_healthy_node_is_held(kills: bool) -> None:  # noqa: FBT001 - a case
    world = dark()
    world.hold({"zones": "allFull"})
    world.node(10, HEALTHY, zone="b")
    for number in (0, 1, 2, 3, 10):
        world.node(number, SICK, zone=world.zone_of[number])
    world.run(60)
    assert world.first_issued() == {}
    world.node(10, HEALTHY, zone="b")
    if kills:
        world.die()
    world.run(60 + SPREAD + 1)
    issued = world.first_issued()
    assert len(issued) == 4 * PODS
    assert 60 <= min(issued.values()) < 66
    assert 74 < max(issued.values()) <= 80.25


def test_what_is_held_is_cancelled_at_once() -> None:
    world = dark()
    world.hold()
    for number in (0, 1):
        world.node(number, SICK)
    world.run(30)
    for number in (0, 1):
        world.node(number, HEALTHY)
    cancelled = [one for one in world.decisions if one["cluster"] == "dark" and one["decision"] == "Cancelled"]
    assert len(cancelled) == 2 * PODS
    assert world.held() == {}
    world.run(120)
    assert world.first_issued() == {}


@pytest.mark.parametrize("spec", [None, {"settleSeconds": 1}, {"for": {"clusters": ["free"]}}, {}])
def test_without_such_a_policy_changes_write_no_history(spec: dict[str, Any] | None) -> None:
    world = dark(healthy=6)
    if spec is not None:
        world.policy(spec={"hold": {"while": CONDITION, "spreadSeconds": 5}} | spec if "for" in spec else spec)
    world.run(1)
    world.turn()
    for at in range(2, 10):
        for number in range(6):
            world.node(number, HEALTHY if at % 2 else SICK)
        world.run(at)
        world.die()
        world.turn()
    assert world.cluster_rows == 0


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_a_later_policy_knows_outages_from_then_on(kills: bool) -> None:  # noqa: FBT001 - a case
    world = dark()
    world.brake("b1", clusters=["dark"])
    for number in (0, 1, 2):
        world.node(number, SICK)
    world.run(30)
    for number in (0, 1):
        world.node(number, HEALTHY)
    world.hold()
    world.turn()
    if kills:
        world.die()
    assert world.history() == NodeHistory(counted_us=world.now_us)
    world.brake("b1", clusters=["dark"], releasedBy="ben", spreadSeconds=0)
    world.run(31)
    assert set(world.first_issued()) == {f"n2-p{number}" for number in range(PODS)}, "an outage before it is not known"


def test_a_policy_of_later_counts_nodes_deleted_before() -> None:
    world = dark(healthy=6)
    for number in (0, 1, 2, 3):
        world.node(number, SICK)
    for number in (0, 1, 2):
        world.node(number, DELETED)
    world.run(1)
    world.hold()
    world.run(500)
    world.die()
    world.run(599)
    assert world.first_issued() == {}, "four of six"
    world.run(600 + SPREAD + 1)
    issued = world.first_issued()
    assert set(issued) == {f"n3-p{number}" for number in range(PODS)}
    assert 600 <= min(issued.values()) < max(issued.values()) <= 620


def test_the_history_goes_when_its_policy_is_over() -> None:
    world = dark()
    world.hold()
    for number in (0, 1, 2):
        world.node(number, SICK)
    world.run(30)
    for number in (0, 1):
        world.node(number, HEALTHY)
    world.run(31)
    spec = {"for": {"clusters": ["dark"]}, "hold": {"while": CONDITION, "spreadSeconds": SPREAD}}
    world.policy(revision=2, earlier=[{"spec": spec}])
    history = world.history()
    assert history is not None
    assert history.peaks.keys() == {"a"}
    world.run(31 + SPREAD - 1)
    assert world.history() == history, "what it has held is still spread"
    world.run(31 + SPREAD + 1)
    world.turn()
    assert world.history() is None
    world.die()
    rows = world.cluster_rows
    world.node(2, HEALTHY)
    world.run(90)
    assert world.cluster_rows == rows


def test_unreadable_policies_leave_the_history_to_new_owners() -> None:
    world = dark()
    world.hold()
    for number in (0, 1, 2):
        world.node(number, SICK)
    world.run(30)
    world.node(0, HEALTHY)
    world.node(1, HEALTHY)
    policies, history = world.policies, world.history()
    assert history is not None
    world.policies = policies.with_record(b"p2", b"{", world.now_us // 1000)
    world.die()
    world.turn()
    world.policies = policies
    assert world.history() == history
    world.run(30 + SPREAD + 1)
    issued = world.first_issued()
    assert 30 <= min(issued.values()) < max(issued.values()) <= 50


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_cluster_that_comes_later_has_a_history(is_forgotten: bool) -> None:  # noqa: FBT001 - a case
    world = Dark()
    world.hold()
    world.run(11)
    world.node(0, HEALTHY)
    assert world.history() is not None, "from its first node on"
    if is_forgotten:
        world.raw("dark", "nodes", {"cluster": "dark", "type": "FORGET"})
        assert world.history() is None
        world.run(12)
        world.node(0, HEALTHY)
        assert world.history() is not None


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1, 3, 6, 11, 30, 570]),  # seconds until it
        st.integers(0, 5),
        st.sampled_from([SICK, SICK, SICK, HEALTHY, HEALTHY, DELETED, "die"]),
    ),
    max_size=20,
)


def held_at(log: list[tuple[int, Seen]], uid: str, zone: str, due_us: int, at_us: int) -> bool:
    """Say from the whole log whether an eviction waits at an instant."""
    until_us = 1 << 62
    for since_us, zones in reversed(anew([entry for entry in log if entry[0] <= at_us], at_us)):
        nodes = zones.get(zone)
        if nodes is None:
            return False
        if sick_of(nodes) >= AT_LEAST and sick_of(nodes) * 100 // len(nodes) >= PERCENT:
            share_us = zlib.crc32(uid.encode()) * SPREAD * SECOND_US // 2**32
            return due_us <= until_us and at_us < until_us + share_us
        until_us = since_us
    return False


@pytest.mark.slow
@given(steps=STEPS)
@example(steps=[(0.5, 0, SICK), (1, 0, SICK), (1, 0, SICK), (3, 1, SICK)])  # a pod is due when the next record comes
@settings(max_examples=examples(60))
def test_each_eviction_goes_when_the_log_says(steps: list[tuple[float, int, str]]) -> None:
    """Nodes of two zones become unhealthy, recover and are deleted, owners come and go."""
    world, plain = Dark(), Dark()
    now = 0.0
    for each in (world, plain):
        for number in range(6):
            each.node(number, HEALTHY, zone="ab"[number // 4])
    world.hold()
    for later, number, what in steps:
        now += later
        world.run(now)
        plain.run(now)
        if what == "die":
            world.die()
            continue
        world.node(number, what, zone="ab"[number // 4])
        plain.node(number, what, zone="ab"[number // 4])
    world.run(now + 40)
    plain.run(now + 40)
    first = [one for one in world.evicts["dark"] if one["attempt"] == 1]
    free = {one["evictionId"]: one for one in plain.evicts["dark"] if one["attempt"] == 1}
    told = [one for one in world.decisions if one["cluster"] == "dark"]
    began = {one["evictionId"]: instant_us(one["cause"]["at"]) for one in reversed(told)}
    ended = {one["evictionId"]: instant_us(one["cause"]["at"]) for one in told if one["decision"] == "Cancelled"}
    for one in first:
        assert one["evictionId"] in free, "nothing goes that would not go without the policy"
        assert one["deadline"] == free[one["evictionId"]]["deadline"], "windows are kept"
    issued = {one["evictionId"]: instant_us(one["issuedAt"]) for one in first}
    for eviction_id, one in free.items():
        uid, zone = one["podUid"], world.zone_of[int(one["node"][1:])]
        due_us = max(instant_us(one["deadline"]), began[eviction_id])
        end_us = issued.get(eviction_id, ended.get(eviction_id, world.now_us))
        if eviction_id in issued:
            before = [entry for entry in world.log if entry[0] < end_us]  # a record of the same instant may come later
            assert not all(held_at(log, uid, zone, due_us, end_us) for log in (before, world.log))
        for at_us in range(due_us, end_us - LOOKS_US, SECOND_US):
            assert held_at(world.log, uid, zone, due_us, at_us), "what nothing holds goes at once"
