"""What a partition publishes of owners that lose pods: levels, those that lose most first, and nothing that is over."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.fleet import FleetLevel
from evictstream.models.messages.workload import FleetWorkload, PodLosses, decode_fleet_workload
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.published_workloads import MOST_WORKLOADS_IN_TURN
from tests.harness.counted import losses_of, workloads_anew
from tests.harness.examples import examples
from tests.models.steering.test_brakes import record
from tests.streams.partition.publishing import OTHER, UNREACHABLE, Published
from tests.streams.worker.story import NOON_US

ZONE = "z1"


class PublishedOwners(Published):
    """One partition that publishes workloads; `standing` is what a reader knows that has only the records."""

    def __init__(self) -> None:
        super().__init__()
        self.config = dataclasses.replace(self.config, workloads_topic="workloads")
        self.logic, self.outbox = EvictionPartition(0, self.config), Outbox()
        self.standing: dict[bytes, FleetWorkload] = {}
        self.written: list[bytes] = []

    def owned(
        self, name: str, node: str, owner: str = "ReplicaSet/web", seconds: int | None = 300, **more: Any
    ) -> None:
        """Tell of a pod; `more` says `phase` and `event_type`."""
        tolerations = [] if seconds is None else [{"operator": "Exists", "tolerationSeconds": seconds}]
        kind, _, controller = owner.partition("/")
        owners = [{"kind": kind, "name": controller, "uid": owner, "controller": True}] if owner else []
        meta = {"namespace": "x", "name": name, "uid": f"uid-{name}", "ownerReferences": owners}
        spec = {"nodeName": node, "tolerations": tolerations}
        status = {"phase": more.get("phase", "Running")}
        obj = {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}
        self._object("lab", "pods", more.get("event_type", "ADDED"), obj)

    def commit(self) -> None:
        for message in self.outbox.messages.get("workloads", ()):
            key = message.key or b""
            self.written.append(key)
            if message.is_tombstone:
                del self.standing[key]
            else:
                self.standing[key] = decode_fleet_workload(message.value)
        super().commit()

    @property
    def whole(self) -> FleetLevel:
        return self.zones()[None]

    def counting(self) -> dict[bytes, FleetWorkload]:
        """Return the records that count by the newest level."""
        first = self.whole.workloads_from or 0
        return {key: one for key, one in self.standing.items() if one.sequence >= first}

    def check_owners(self) -> None:
        """Those that count say what anyone would count of pods and nodes."""
        if None not in self.zones():
            assert self.standing == {}
            return
        held = {uid for places in self.logic.firing.held.by_cluster.values() for _, uid in places}
        anew = workloads_anew(self.logic.known_nodes(), held)
        assert {key: losses_of(one) for key, one in self.counting().items()} == anew


@pytest.fixture
def world() -> PublishedOwners:
    """A node that is unreachable, a healthy one, and an owner with two pods on the first and one on the second."""
    world = PublishedOwners()
    world.node("ill", UNREACHABLE, zone=ZONE)
    world.node("well")
    for name, node in (("a", "ill"), ("b", "ill"), ("c", "well")):
        world.owned(name, node, seconds=10 if name == "a" else 100)
    world.owned("alone", "ill", owner="")
    return world


def test_an_owner_that_loses_pods_has_a_record(world: PublishedOwners) -> None:
    world.run(1)
    (key,) = world.standing
    one = world.standing[key]
    assert key == b"lab/x/ReplicaSet/web"
    assert (one.cluster, one.namespace, one.owner_kind, one.owner_name) == ("lab", "x", "ReplicaSet", "web")
    assert one.pods == PodLosses(bound=3, leaving=2, held=0)
    assert instant_us(one.first_deadline) == NOON_US + 10 * SECOND_US
    assert (one.loses_all_at, one.zones, one.taints) == (None, (ZONE,), (UNREACHABLE["key"],))
    world.run(1)
    assert world.whole.workloads_up_to == one.at
    assert world.whole.workloads_from is not None
    world.check_owners()


def test_steps_say_how_many_pods_are_left_when(world: PublishedOwners) -> None:
    world.run(1)
    (one,) = world.standing.values()
    first_us, second_us = NOON_US + 10 * SECOND_US, NOON_US + 100 * SECOND_US
    assert losses_of(one).steps == ((first_us, first_us, 2), (second_us, second_us, 1))
    world.owned("a", "ill", event_type="DELETED")
    world.run(1)
    assert [losses_of(one).steps for one in world.standing.values()] == [((second_us, second_us, 1),)]


def test_what_is_held_is_left_at_each_step(world: PublishedOwners) -> None:
    world.brakes = world.brakes.with_record(b"b1", record("b1"), world.now_us // 1000)
    world.run(15)
    first_us, second_us = NOON_US + 10 * SECOND_US, NOON_US + 100 * SECOND_US
    assert [losses_of(one).steps for one in world.standing.values()] == [((second_us, second_us, 2),)]
    world.brakes = world.brakes.with_record(b"b1", None, world.now_us // 1000)
    world.run(2)
    assert [losses_of(one).steps for one in world.standing.values()] == [
        ((first_us, first_us, 2), (second_us, second_us, 1))
    ]
    world.check_owners()


def test_steps_beyond_the_most_are_one(world: PublishedOwners) -> None:
    for number in range(20):
        world.owned(f"p{number}", "ill", "Job/long", seconds=200 + number)
    world.run(1)
    steps = losses_of(world.standing[b"lab/x/Job/long"]).steps
    instants = [NOON_US + (200 + number) * SECOND_US for number in range(20)]
    assert steps[:15] == tuple((at, at, 19 - number) for number, at in enumerate(instants[:15]))
    assert steps[15:] == ((instants[15], instants[19], 0),)
    world.check_owners()


def test_losing_all_has_an_instant_until_one_stays(world: PublishedOwners) -> None:
    world.owned("c", "well", event_type="DELETED")
    world.run(1)
    assert [one.loses_all_at and instant_us(one.loses_all_at) for one in world.standing.values()] == [
        NOON_US + 100 * SECOND_US
    ]
    world.owned("d", "well")
    world.run(1)
    assert [one.loses_all_at for one in world.standing.values()] == [None]
    world.check_owners()


def test_a_tombstone_says_that_nothing_leaves_any_more(world: PublishedOwners) -> None:
    world.run(1)
    world.node("ill")
    world.run(1)
    assert world.standing == {}
    written = len(world.written)
    world.run(100)
    assert len(world.written) == written, "nothing is said again"


def test_what_terminates_counts_no_longer(world: PublishedOwners) -> None:
    world.run(1)
    world.owned("a", "ill", event_type="MODIFIED", phase="Succeeded")
    world.run(1)
    assert [one.pods for one in world.standing.values()] == [PodLosses(bound=2, leaving=1, held=0)]
    world.check_owners()


def test_what_a_brake_holds_is_counted_until_it_is_gone(world: PublishedOwners) -> None:
    world.brakes = world.brakes.with_record(b"b1", record("b1"), world.now_us // 1000)
    world.run(15)
    assert [one.pods.held for one in world.standing.values()] == [1]
    world.brakes = world.brakes.with_record(b"b1", None, world.now_us // 1000)
    world.run(2)
    assert [one.pods.held for one in world.standing.values()] == [0]
    world.check_owners()


def test_those_that_lose_most_come_first() -> None:
    world = PublishedOwners()
    world.node("n", OTHER)
    for number in range(MOST_WORKLOADS_IN_TURN + 50):
        world.owned(f"s{number}", "n", f"Job/j{number:03}")
    for number in range(3):
        world.owned(f"m{number}", "n", "ReplicaSet/most")
    world.publish()
    assert len(world.written) == MOST_WORKLOADS_IN_TURN
    assert world.written[0] == b"lab/x/ReplicaSet/most"
    before = world.whole
    assert before.workloads_up_to is None, "there is more to say"
    world.run(2)
    assert len(world.standing) == MOST_WORKLOADS_IN_TURN + 51
    assert world.whole.workloads_up_to is not None
    world.check_owners()


def test_a_new_owner_outdates_what_the_one_before_said(world: PublishedOwners) -> None:
    world.owned("gone", "ill", "Job/gone", seconds=2)
    world.run(1)
    before = set(world.standing)
    world.owned("gone", "ill", "Job/gone", event_type="DELETED")
    world.commit()  # it dies before it has taken that back
    world.die()
    world.run(1)
    assert set(world.standing) == before
    assert set(world.counting()) == {b"lab/x/ReplicaSet/web"}
    world.check_owners()


def test_a_forgotten_cluster_takes_its_owners_along(world: PublishedOwners) -> None:
    world.run(1)
    world.raw("lab", "nodes", {"type": "FORGET"})
    world.run(1)
    assert world.standing == {}
    world.now_us += SECOND_US
    world.node("ill", UNREACHABLE)
    world.owned("a", "ill")
    world.run(1)
    assert [one.pods for one in world.standing.values()] == [PodLosses(bound=1, leaving=1, held=0)]


@pytest.mark.parametrize("taken_note", [True, False])
def test_forgotten_and_heard_at_once_no_owner_loses_pods(world: PublishedOwners, *, taken_note: bool) -> None:
    """The turn in between does not see that the cluster was gone."""
    world.run(1)
    assert world.standing
    if not taken_note:
        world.node("ill")
    world.raw("lab", "nodes", {"type": "FORGET"})
    world.now_us += SECOND_US // 5
    world.heartbeat()
    world.publish()
    world.check_owners()
    assert world.counting() == {}
    assert world.standing == {}


def test_a_node_that_changes_its_zone_is_told(world: PublishedOwners) -> None:
    world.run(1)
    world.node("ill", UNREACHABLE, zone="z2")
    world.run(1)
    assert [one.zones for one in world.standing.values()] == [("z2",)]


def test_switched_off_nothing_is_counted() -> None:
    world = Published()
    world.node("ill", UNREACHABLE)
    world.pod("p", "ill")
    world.run(1)
    assert all(node.workloads is None for node in world.logic.known_nodes())
    assert (world.newest.workloads_from, world.newest.workloads_up_to) == (None, None)


NODES, OWNERS, PODS = ("n1", "n2"), ("ReplicaSet/a", "ReplicaSet/b", "Job/c", ""), ("p", "q", "r", "s")
steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), st.sampled_from(["", "z1", "z2"]), st.integers(0, 2)),
    st.tuples(
        st.just("pod"),
        st.sampled_from(PODS),
        st.sampled_from(NODES),
        st.sampled_from(OWNERS),
        st.sampled_from([None, 5, 50]),
        st.sampled_from(["Running", "Running", "Succeeded"]),
    ),
    st.tuples(st.just("delete"), st.sampled_from(PODS), st.sampled_from(NODES)),
    st.tuples(st.just("time"), st.integers(1, 20)),
    st.tuples(st.just("die")),
    st.tuples(st.just("brake"), st.booleans()),
)


@given(st.lists(steps, max_size=25))
@settings(deadline=None, max_examples=examples(120))
def test_records_that_count_are_right_at_each_quiet_point(drawn: list[tuple[Any, ...]]) -> None:
    world = PublishedOwners()
    world.heartbeat()
    for kind, *what in drawn:
        if kind == "node":
            name, zone, taints = what
            world.node(name, *[UNREACHABLE, OTHER][:taints], zone=zone)
        elif kind == "pod":
            name, node, owner, seconds, phase = what
            world.owned(name, node, owner, seconds, phase=phase, event_type="MODIFIED")
        elif kind == "delete":
            world.owned(what[0], what[1], event_type="DELETED")
        elif kind == "time":
            world.heartbeat()
            world.run(what[0])
        elif kind == "die":
            world.publish()
            world.die()
        else:
            value = record("b1") if what[0] else None
            world.brakes = world.brakes.with_record(b"b1", value, world.now_us // 1000)
        world.heartbeat()
        world.run(1)
        world.check_owners()
