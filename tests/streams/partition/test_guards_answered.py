"""Guards before a partition: how an incident goes when somebody answers."""

from __future__ import annotations

import msgspec
import pytest

from tests.streams.partition.storms import ALL, GUARD, NODES, SPREAD, THREE, Storm, names


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


@pytest.mark.parametrize(
    "kills",
    [pytest.param(False, id="", marks=pytest.mark.kit), pytest.param(True, id="workers are killed")],
)
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


def test_the_decision_names_the_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    (incident,) = world.incidents()
    world.answer_incident("Approved")
    world.run(50)
    clauses = {one["policy"]["clause"] for one in world.decisions if one.get("policy")}
    assert clauses == {f"guard:{incident.id}"}
