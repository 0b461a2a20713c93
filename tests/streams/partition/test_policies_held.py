"""Policies before a partition: what is held, what is not, and that no window moves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evictstream.models.instants import instant_us
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.engine.core.timers import TimerHeap
from evictstream.streams.partition.clusters import Clusters
from evictstream.streams.partition.held import WOKEN_PER_TURN, HeldEvictions
from tests.models.steering.test_policies import policy_record
from tests.streams.partition.test_held import PODS, SPREAD, Braked

HERE = {"clusters": ["held"]}
OBSERVES = {"for": HERE, "observe": True}


def test_observe_issues_nothing_in_its_clusters() -> None:
    world, free = Braked(), Braked()
    world.policy(spec=OBSERVES)
    for each in (world, free):
        each.run(25)
    assert world.issued("held") == {}
    assert world.issued("free") == free.issued("free")
    assert world.held() == {("policy/p1", "held"): PODS}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed before"])
@pytest.mark.parametrize("change", [{}, {"spec": {"for": HERE, "patienceSeconds": 60}}], ids=["deleted", "changed"])
def test_what_a_change_lets_go_goes_once_spread(change: dict[str, Any], kills: bool) -> None:  # noqa: FBT001 - a case
    world, plain = Braked(), Braked()
    world.policy(spec=OBSERVES)
    world.run(60)
    if kills:
        world.die()
    world.policy(revision=2, earlier=[{"spec": OBSERVES}], **change)
    world.run(65)
    if kills:
        world.die()
    world.run(60 + SPREAD + 1)
    issued = world.issued("held")
    assert {len(times) for times in issued.values()} == {1}
    times = sorted(at for (at,) in issued.values())
    assert len(times) == PODS
    assert 60 <= times[0] < 63
    assert 77 < times[-1] <= 80
    plain.run(81)
    assert world.deadlines() == plain.deadlines()
    assert world.issued("free") == plain.issued("free"), "not later for another cluster"
    assert world.held() == {}


def test_settle_waits_for_the_taint_and_moves_no_window() -> None:
    world, plain = Braked(), Braked()
    world.policy(spec={"for": HERE, "settleSeconds": 12})
    for each in (world, plain):
        each.run(20)
    assert {at for (at,) in world.issued("held").values()} == {12, 13, 14}
    assert {at for (at,) in plain.issued("held").values()} == {10, 11, 12, 13, 14}
    assert world.deadlines() == plain.deadlines()


def test_a_taint_that_goes_before_it_settled_evicts_nobody() -> None:
    world, plain = Braked(), Braked()
    world.policy(spec={"settleSeconds": 12})
    for each in (world, plain):
        each.run(11)
        each.taint("held")
        each.taint("free")
        each.run(40)
    assert world.issued("held") == world.issued("free") == {}
    assert len(plain.issued("held")) == 16
    assert world.held() == {}


def test_the_decision_names_policy_revision_and_clause() -> None:
    world = Braked()
    world.policy(revision=7, spec={"for": HERE, "settleSeconds": 20})
    world.run(30)
    told = [(one["cluster"], one.get("policy"), one.get("heldBy")) for one in world.decisions if one["attempt"] == 1]
    clause = {"name": "p1", "revision": 7, "clause": "settle"}
    assert told.count(("held", clause, None)) == PODS
    assert told.count(("free", None, None)) == PODS


def test_patience_is_in_the_command() -> None:
    world = Braked()
    world.policy(spec={"for": HERE, "patienceSeconds": 300})
    world.run(20)
    for one in world.evicts["held"]:
        assert instant_us(one["deleteAfter"]) - instant_us(one["deadline"]) == 300_000_000
    assert not any("deleteAfter" in one for one in world.evicts["free"])


def clauses(chance: random.Random) -> list[dict[str, Any] | None]:
    """Return clauses of each kind; none holds anything for more than a minute after noon."""
    window = {"begins": "12:01", "ends": "13:00", "zone": "UTC"}
    return [
        None,
        OBSERVES,
        {"settleSeconds": chance.randint(1, 40)},
        {"observe": True, "for": {"nodes": ["n*"]}},
        {"limit": {"evictions": chance.randint(1, 3), "burst": chance.randint(1, 9)}},
        {"for": HERE, "limit": {"evictions": 1, "inSeconds": 3, "per": "node"}, "settleSeconds": 15},
        {"hold": {"outsideOf": [window], "spreadSeconds": chance.randint(0, 30)}},
        {"inFlight": {"count": chance.randint(5, 30), "countsSeconds": chance.randint(1, 10)}},
        {"for": {"taints": ["*"]}, "hold": {"while": {"zones": "allFull"}, "atMostSeconds": chance.randint(1, 40)}},
    ]


@pytest.mark.parametrize("seed", range(8))
def test_fifty_changes_in_a_storm_move_no_deadline(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    world, plain = Braked(), Braked()
    spec: dict[str, Any] | None = None
    for number in range(50):
        before, spec = spec, chance.choice(clauses(chance))
        earlier = [] if before is None else [{"spec": before}]
        world.policy(revision=number + 1, earlier=earlier, **({} if spec is None else {"spec": spec}))
        world.run(number / 2 + chance.random() / 2)
        if chance.random() < 0.1:
            world.die()
    world.policy(revision=51)
    world.run(100)
    plain.run(100)
    assert world.deadlines() == plain.deadlines()


@pytest.mark.parametrize("kind", ["brakes", "policies"])
def test_a_record_that_becomes_unreadable_lets_nothing_go(kind: str) -> None:
    """It may have been read right behind the look at the gates, before the turn began."""
    world = Braked()
    world.policy(spec=OBSERVES)
    world.brake("b1", clusters=["free"])
    world.run(20)
    key = {"brakes": b"b1", "policies": b"p1"}[kind]
    setattr(world, kind, getattr(world, kind).with_record(key, b"{", world.now_us // 1000))
    world.run(40)
    assert world.issued("held") == world.issued("free") == {}


def test_many_changes_wake_what_is_held_once() -> None:
    standing = [NO_POLICIES]
    timers = TimerHeap(list)
    held = HeldEvictions(lambda: NO_BRAKES, lambda: standing[0], timers, Clusters())
    for number in range(WOKEN_PER_TURN + 500):
        held.note("c", (b"n", f"u{number}"), "policy/p1/1/observe")
    for revision in range(20):
        value = policy_record("p1", revision=revision + 1, spec={"observe": True})
        standing[0] = standing[0].with_record(b"p1", value, 1)
        held.begin_turn(1)
    held.begin_turn(1)
    assert not held.has_changed


def test_a_later_pod_waits_for_the_taint_alone() -> None:
    world = Braked()
    world.policy(spec={"for": HERE, "settleSeconds": 12})
    world.run(5)
    world.put("held", "pods", "Pod", {"namespace": "x", "name": "late", "uid": "late"}, {"nodeName": "n"})
    world.run(20)
    assert world.issued("held")["late"] == [12]
