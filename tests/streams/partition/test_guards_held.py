"""Guards before a partition: what an incident holds, what it does not, and how it goes when somebody answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.incidents import MOST_INCIDENTS
from tests.models.steering.test_policies import policy_record
from tests.streams.partition.storms import NODES, SPREAD, STAY_SECONDS, THREE, Storm, names

GUARD: dict[str, Any] = {"guard": THREE}
ALL = range(NODES)


def test_a_storm_evicts_nobody_before_approval() -> None:
    """What is scheduled is known ahead; what is due at once waits until the storm shows how large it is."""
    world, plain = Storm(**GUARD), Storm()
    for each in (world, plain):
        each.storm(ALL)
        each.run(700)
    assert len(plain.gone()) == 2 * NODES
    assert world.gone() == {}
    assert world.held() == {("policy/p1", "lab"): 2 * NODES}
    (incident,) = world.incidents()
    assert (incident.taint, incident.nodes, incident.limit, incident.known) == ("agent", NODES, 3, NODES)


def test_a_slow_storm_evicts_what_is_allowed_and_no_more() -> None:
    world = Storm(**GUARD)
    for number in ALL:
        world.run(2 * number + 1)
        world.storm([number])
    world.run(1_000)
    assert set(world.gone()) == names("goes", range(3)), (
        "the guard allows three nodes; what was scheduled on them waits"
    )


def test_as_many_as_are_allowed_go_in_their_time() -> None:
    world, plain = Storm(**GUARD), Storm()
    for each in (world, plain):
        each.storm(range(3))
        each.run(700)
    before, after = plain.gone(), world.gone()
    assert world.deadlines() == plain.deadlines()
    assert {uid: after[uid] - before[uid] for uid in names("stays", range(3))} == dict.fromkeys(
        names("stays", range(3)), 0
    )
    assert {round(after[uid] - before[uid], 3) for uid in names("goes", range(3))} == {1}, "the look around"


def test_what_came_long_before_does_not_count() -> None:
    world = Storm(guard={"count": 3, "withinSeconds": 60})
    for number in ALL:
        world.run(30 * number + 1)
        world.storm([number])
    world.run(1_000)
    assert len(world.gone()) == 2 * NODES


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed before"])
def test_after_approval_everything_goes_once_spread(kills: bool) -> None:  # noqa: FBT001 - a case
    world, plain = Storm(**GUARD), Storm()
    for each in (world, plain):
        each.storm(ALL)
        each.run(100)
    if kills:
        world.die()
    world.answer_incident("Approved")
    world.run(100 + SPREAD / 4)
    if kills:
        world.die()
    world.run(700)
    plain.run(700)
    assert world.deadlines() == plain.deadlines()
    once = [one["podUid"] for one in world.evicts["lab"] if one["attempt"] == 1]
    assert len(once) == len(set(once)) == 2 * NODES
    first = sorted(at for uid, at in world.gone().items() if uid.startswith("goes"))
    assert first[0] >= 100
    assert first[-1] <= 100 + SPREAD
    assert first[-1] - first[0] > SPREAD / 2
    scheduled = {uid: at for uid, at in world.gone().items() if uid.startswith("stays")}
    assert scheduled == {uid: at for uid, at in plain.gone().items() if uid.startswith("stays")}, "not overdue then"


@pytest.mark.parametrize("kills", [False, True], ids=["", "workers are killed"])
def test_a_rejected_incident_waits_until_its_taints_go(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    world.answer_incident("Rejected")
    for seconds in (20, 500, 90_000):
        world.run(seconds)
        if kills:
            world.die()
    assert world.gone() == {}
    for number in ALL:
        world.node(number)
    world.run(90_010)
    assert (world.gone(), world.incidents(), world.held()) == ({}, (), {})


def test_another_key_still_evicts_meanwhile() -> None:
    world = Storm(NODES + 1, **GUARD)
    world.storm(ALL)
    world.run(5)
    world.storm([NODES], key="dead")
    world.run(600)
    assert set(world.gone()) == names("goes", [NODES]) | names("stays", [NODES])


@pytest.mark.parametrize("verdict", ["Approved", "Rejected"])
def test_one_later_node_is_of_no_answered_incident(verdict: str) -> None:
    world = Storm(NODES + 5, **GUARD)
    world.storm(ALL)
    world.run(5)
    world.answer_incident(verdict)
    world.run(40)
    world.storm([NODES])
    world.run(45)
    assert "goes-10" in world.gone()
    world.storm(range(NODES + 1, NODES + 5))
    world.run(60)
    assert len(world.incidents()) == 2
    assert not names("goes", range(NODES + 1, NODES + 5)) & set(world.gone())


def test_a_later_node_is_of_an_incident_that_waits() -> None:
    world = Storm(NODES + 1, **GUARD)
    world.storm(ALL)
    world.run(5)
    world.storm([NODES])
    world.run(600)
    assert (world.gone(), len(world.incidents())) == ({}, 1)


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_recovery_cancels_all_and_releases_nothing(kills: bool) -> None:  # noqa: FBT001 - a case
    """When as many are left as the guard allows, they wait all the same."""
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    for number in range(2, NODES):
        world.node(number)
    if kills:
        world.die()
    world.run(1_000)
    assert world.gone() == {}
    assert world.held() == {("policy/p1", "lab"): 4}
    world.node(0)
    world.node(1)
    world.run(2_000)
    assert (world.gone(), world.incidents()) == ({}, ())
    cancelled = [one for one in world.decisions if one["decision"] == "Cancelled"]
    assert len(cancelled) == 2 * NODES
    assert {one["verdict"] for one in cancelled} == {"TaintRemoved"}


def test_an_approval_expires_and_can_be_given_again() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    world.answer_incident("Approved", seconds=100)
    world.run(1_000)
    assert set(world.gone()) == names("goes", ALL), "what became due later was not approved any more"
    world.answer_incident("Approved", seconds=100)
    world.run(1_000 + SPREAD)
    assert set(world.gone()) == names("goes", ALL) | names("stays", ALL)


def test_an_answer_counts_from_its_first_record() -> None:
    """Another revision of the policy takes it over, and begins no other spread."""
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    world.answer_incident("Approved")
    world.run(10 + SPREAD / 2)
    answers = msgspec.to_builtins(world.policies.standing["p1"].kept_answers())
    world.apply(GUARD | {"patienceSeconds": 60}, *answers)
    world.run(10 + SPREAD + 0.1)
    assert set(world.gone()) == names("goes", ALL)


def test_an_incident_lets_go_if_its_guard_says_when() -> None:
    world = Storm(guard=THREE | {"releaseAfterSeconds": 900})
    world.storm(ALL)
    world.run(899)
    assert world.gone() == {}
    world.die()
    world.run(901 + SPREAD)
    assert len(world.gone()) == 2 * NODES


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_a_rejection_that_is_lost_releases_nothing(kills: bool) -> None:  # noqa: FBT001 - a case
    """As when a record that cannot be read any more is replaced by its file."""
    world = Storm(guard=THREE | {"releaseAfterSeconds": 900})
    world.storm(ALL)
    world.run(10)
    world.answer_incident("Rejected")
    world.run(20)
    if kills:
        world.die()
    world.apply(world.spec)
    world.run(2_000)
    assert (world.gone(), world.logic.firing.guarding.waiting("lab", world.now_us)) == ({}, (world.incidents()[0].id,))
    world.answer_incident("Approved")
    world.run(2_000 + SPREAD)
    assert len(world.gone()) == 2 * NODES


def test_a_new_owner_forgets_no_incident_and_no_approval() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    before = world.incidents()
    world.die()
    world.run(20)
    assert world.incidents() == before
    world.answer_incident("Approved")
    world.die()
    world.run(500)
    assert (before[0].id, len(world.gone())) == (world.incidents()[0].id, 2 * NODES)


def test_a_guard_that_comes_later_finds_the_storm() -> None:
    world = Storm()
    world.storm(ALL)
    world.run(100)
    world.apply(GUARD)
    world.logic.firing.look_at_policies()
    world.run(101)
    assert len(world.incidents()) == 1
    world.run(1_000)
    assert set(world.gone()) == names("goes", ALL), "they had gone before"


def test_a_guard_that_is_widened_finds_the_storm() -> None:
    """None of the nodes that it selected before has a pod to evict."""
    world, wide = Storm(0, **{"for": {"nodes": ["n[0-4]"]}}, **GUARD), {"for": {"nodes": ["n?"]}} | GUARD
    for number in ALL:
        world.node(number)
        world.pod(f"stays-{number}", number, -1 if number < NODES / 2 else STAY_SECONDS)
    world.logic.firing.look_at_policies()  # each second
    world.run(1)
    world.storm(ALL)
    world.run(10)
    assert (world.incidents(), bool(world.logic.firing.guarding.idle)) == ((), True)
    world.apply(wide)
    world.logic.firing.look_at_policies()  # each second
    world.run(1_000)
    assert (world.gone(), [one.nodes for one in world.incidents()]) == ({}, [NODES])


@pytest.mark.parametrize("change", [{}, {"settleSeconds": 1}], ids=["deleted", "without its guard"])
def test_a_guard_that_goes_ends_its_incidents_and_spreads(change: dict[str, Any]) -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    fields = {"spec": change} if change else {}
    world.policy(revision=9, earlier=[{"spec": GUARD}], **fields)
    world.run(400 + SPREAD + 1)
    assert (len(world.gone()), world.incidents()) == (2 * NODES, ())
    assert max(world.gone().values()) - min(world.gone().values()) > SPREAD / 2


@pytest.mark.parametrize("change", [{}, {"settleSeconds": 1}], ids=["deleted", "without its guard"])
def test_a_guard_that_goes_leaves_no_work(change: dict[str, Any]) -> None:
    """Of a node that changed just before; and of taints that begin to evict pods only afterwards."""
    world = Storm(0, **GUARD)
    for number in ALL:
        world.node(number, "starting")
    world.logic.firing.look_at_policies()  # each second
    world.run(5)
    assert world.logic.firing.guarding.idle
    world.node(0, "agent")
    fields = {"spec": change} if change else {}
    world.policy(revision=9, earlier=[{"spec": GUARD}], **fields)
    world.logic.firing.fire(world.now_us, 100, world.outbox)
    assert not world.logic.firing.guarding.has_work
    meta = {"namespace": "x", "name": "late", "uid": "late"}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n1"})
    assert not world.logic.firing.guarding.has_work
    world.apply(GUARD)
    world.logic.firing.look_at_policies()  # each second
    world.run(6)
    assert ([one.taint for one in world.incidents()], world.gone()) == (["starting"], {}), "the guard has come back"


def test_a_guard_that_releases_from_now_on_spreads_what_waits() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(7_200)
    world.apply({"guard": THREE | {"releaseAfterSeconds": 3_600}}, earlier=[{"spec": GUARD}])
    world.run(7_200 + SPREAD + 1)
    assert len(world.gone()) == 2 * NODES
    assert max(world.gone().values()) - min(world.gone().values()) > SPREAD / 2


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_a_guard_without_leaving_pods_switches_no_other_off(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm()
    for number in range(NODES, NODES + 2):
        world.node(number)
    none = {"count": 0, "withinSeconds": 600}
    for name, nodes, guard in (("a", ["n10", "n11"], none), ("b", ["n?"], THREE)):
        record = policy_record(name, spec={"for": {"nodes": nodes}, "guard": guard})
        world.policies = world.policies.with_record(name.encode(), record, world.now_us // 1000)
    world.run(1)
    world.storm([NODES])
    world.run(2)
    if kills:
        world.die()
    world.storm(ALL)
    world.run(600)
    assert (world.gone(), {one.policy for one in world.incidents()}) == ({}, {"b"})


def test_no_newer_incident_drops_one_that_waits() -> None:
    many = MOST_INCIDENTS + 15
    world = Storm(NODES + many, guard={"count": 0, "withinSeconds": 600})
    world.storm(ALL)
    world.run(5)
    (first,) = world.incidents()
    for number in range(NODES, NODES + many):
        world.storm([number], key=f"key-{number}")
        world.run(5 + number)
    world.run(1_000)
    assert (len(world.incidents()), world.incidents()[0]) == (MOST_INCIDENTS, first)
    assert not (names("goes", ALL) | names("stays", ALL)) & set(world.gone())
    for number in range(NODES, NODES + 20):
        world.node(number)
    world.storm(range(NODES, NODES + 20), key="again")
    world.run(1_010)
    assert "again" in {one.taint for one in world.incidents()}, "there is room again"


def test_other_clauses_of_a_policy_change_nothing_of_its_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    before = world.incidents()
    world.apply(GUARD | {"settleSeconds": 5}, earlier=[{"spec": GUARD}])
    world.run(1_000)
    assert (world.gone(), world.incidents()) == ({}, before)


def test_a_selection_of_pods_holds_only_these() -> None:
    spec: dict[str, Any] = {"for": {"namespaces": ["y"]}, "guard": THREE}
    world = Storm(**spec)
    meta = {"namespace": "y", "name": "held", "uid": "held"}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n0"})
    world.storm(ALL)
    world.run(500)
    assert set(world.gone()) == names("goes", ALL) | names("stays", ALL)
    assert world.held() == {("policy/p1", "lab"): 1}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_taints_that_all_tolerate_are_no_incident_yet(kills: bool) -> None:  # noqa: FBT001 - a case
    """Nodes that start have a taint that the pods there tolerate. The first pod that does not makes an incident."""
    world = Storm(0, **GUARD)
    for number in ALL:
        world.node(number, "starting")
        meta = {"namespace": "x", "name": f"agent-{number}", "uid": f"agent-{number}"}
        world.put("lab", "pods", "Pod", meta, {"nodeName": f"n{number}", "tolerations": [{"operator": "Exists"}]})
    world.logic.firing.look_at_policies()  # each second
    world.run(10)
    assert world.incidents() == ()
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
        world.run(20)
    for seconds in (None, 60):
        tolerations: list[dict[str, Any]] = []
        if seconds is not None:
            tolerations = [{"operator": "Exists", "tolerationSeconds": seconds}]
        meta = {"namespace": "x", "name": f"late-{seconds}", "uid": f"late-{seconds}"}
        world.put("lab", "pods", "Pod", meta, {"nodeName": "n0", "tolerations": tolerations})
    world.run(30)
    assert len(world.incidents()) == 1
    world.run(200)
    assert (world.gone(), world.held()) == ({}, {("policy/p1", "lab"): 2})


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
@pytest.mark.parametrize("pause", [0, 900], ids=["one after the other", "all in one turn"])
@pytest.mark.parametrize("of", ["nodes", "pods", "ownersLosingAll"])
def test_repeats_for_another_taint_wait_too(of: str, pause: int, kills: bool) -> None:  # noqa: FBT001 - a case
    """They were issued for a taint that no guard minds, and it has gone: the storm is what they would be issued for."""
    world = Storm(0, **{"for": {"taints": ["agent"]}, "guard": {**THREE, "of": of}})
    for number in ALL:
        world.node(number)
        world.pod(f"p{number}", number, owner=f"ReplicaSet/o{number}")
    world.storm(ALL, key="dead")
    world.run(5)
    assert len(world.gone()) == NODES
    world.storm(ALL)
    world.now_us += pause * SECOND_US
    if kills:
        world.die()
    world.run(4_000)
    assert {one["attempt"] for one in world.evicts["lab"]} == {1}
    assert len(world.incidents()) == 1


def test_the_decision_names_the_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    (incident,) = world.incidents()
    world.answer_incident("Approved")
    world.run(50)
    clauses = {one["policy"]["clause"] for one in world.decisions if one.get("policy")}
    assert clauses == {f"guard:{incident.id}"}


def test_without_a_guard_nothing_is_counted() -> None:
    world = Storm(settleSeconds=5)
    world.storm(ALL)
    world.run(500)
    guarding = world.logic.firing.guarding
    assert (guarding.is_on, guarding.has_work, guarding._guards) == (False, False, {})


def test_a_cluster_that_is_forgotten_leaves_no_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    world.raw("lab", "nodes", {"cluster": "lab", "type": "FORGET"})
    world.run(20)
    assert (world.incidents(), world.held(), world.logic.firing.guarding.has_work) == ((), {}, False)
