"""How many may be in flight at once before a partition: pods that go or do not, and owners that come and go."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_us
from tests.streams.partition.test_held import PODS, SPREAD, Braked
from tests.streams.worker.story import NOON_US

HERE = {"clusters": ["held"]}
STUCK = 1_800


class Flying(Braked):
    """The same; pods of the limited cluster go when a test says so."""

    def __init__(self, **in_flight: Any) -> None:
        super().__init__()
        if in_flight:
            self.policy(spec={"for": HERE, "inFlight": in_flight})
        self.gone: set[str] = set()

    def pod(self, uid: str, kind: str, **status: Any) -> None:
        """Tell of a pod that is terminating, has finished, or is deleted."""
        name = uid.removeprefix("held-")
        meta = {"namespace": "x", "name": name, "uid": uid, "resourceVersion": str(self.offset + 101)}
        if kind == "terminating":
            meta["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        spec = {"nodeName": "n", "tolerations": [{"operator": "Exists", "tolerationSeconds": 10}]}
        obj = {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}
        of_type = "DELETED" if kind == "deleted" else "MODIFIED"
        self.raw("held", "pods", {"cluster": "held", "type": of_type, "object": obj})
        if kind == "deleted":
            self.gone.add(uid)

    def flying(self) -> set[str]:
        return set(self.issued("held")) - self.gone

    def tried(self) -> set[str]:
        return {one["podUid"] for one in self.evicts["held"] if one["attempt"] > 1}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed at each step"])
def test_the_next_goes_when_one_is_gone(kills: bool) -> None:  # noqa: FBT001 - a case
    world, plain = Flying(count=3), Flying()
    for each in (world, plain):
        each.run(20)
    assert len(world.flying()) == 3
    assert world.held() == {("policy/p1", "held"): PODS - 3}
    for step in range(PODS):
        one = min(world.flying())
        world.pod(one, "terminating")
        world.run(20 + step * 0.01)
        assert len(world.flying()) == min(3, PODS - step), "it is not gone yet"
        if kills:
            world.die()
            world.run(20 + step * 0.01)
        world.pod(one, "deleted")
        world.run(20 + step * 0.01 + 0.005)
        assert len(world.flying()) == min(3, PODS - step - 1)
    assert world.held() == {}
    assert world.deadlines() == plain.deadlines()
    plain.run(world.now_us / SECOND_US - NOON_US / SECOND_US)
    assert world.issued("free") == plain.issued("free"), "not later for another cluster"


def test_what_is_due_longest_goes_first() -> None:
    world = Flying(count=1)
    world.run(20)
    while world.flying():
        world.pod(min(world.flying()), "deleted")
        world.run(20)
    due = [one["deadline"] for one in world.evicts["held"] if one["attempt"] == 1]
    assert due == sorted(due)
    assert len(due) == PODS


def test_one_that_has_finished_counts_no_longer() -> None:
    world = Flying(count=1)
    world.run(20)
    (one,) = world.flying()
    world.pod(one, "finished", phase="Succeeded")
    world.run(20.5)
    assert len(world.flying()) == 2


def test_what_is_only_observed_counts_no_longer() -> None:
    world = Flying(count=1)
    world.run(20)
    world.answer("held", "Observed")
    world.run(20.5)
    assert len(world.flying()) == 2


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_what_was_observed_needs_a_slot_again(kills: bool) -> None:  # noqa: FBT001 - a case
    world, step = Flying(count=3), 20.0
    world.run(step)
    while len(world.flying()) < PODS:
        world.answer("held", "Observed")
        step += 0.01
        world.run(step)
    world.answer("held", "Observed")
    world.answer("held", "Failed")
    for until in (60, 60 + STUCK / 2, 20 + STUCK):
        if kills:
            world.die()
        world.run(until)
        assert len(world.tried()) == 3
    world.run(60 + STUCK)
    assert len(world.tried()) == 6, "they count from their second attempt"


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_pods_that_stay_hold_the_others_half_an_hour(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Flying(count=20)
    world.run(20)
    first = world.flying()
    if kills:  # behind several attempts
        world.run(1_000)
        world.die()
    world.run(10 + STUCK - 1)
    assert world.flying() == first
    assert len(world.evicts["held"]) > 20, "they are tried again"
    world.run(20 + STUCK)
    assert len(world.flying()) == PODS


def test_all_pods_of_one_node_go_together() -> None:
    world = Flying(count=1, of="nodes")
    world.run(20)
    assert len(world.flying()) == PODS


@pytest.mark.parametrize("change", [{}, {"spec": {"for": HERE, "patienceSeconds": 60}}], ids=["deleted", "changed"])
def test_without_its_limit_what_waits_goes_spread(change: dict[str, Any]) -> None:
    world = Flying(count=1)
    world.run(30)
    world.policy(revision=2, earlier=[{"spec": {"for": HERE, "inFlight": {"count": 1}}}], **change)
    world.run(30 + SPREAD + 1)
    times = sorted(at for at, *_ in world.issued("held").values())
    assert len(times) == PODS
    assert 30 <= times[1] < 33
    assert 47 < times[-1] <= 50


@pytest.mark.parametrize("revises", [False, True], ids=["applied later", "and revised"])
def test_a_policy_counts_what_was_in_flight_before_it(revises: bool) -> None:  # noqa: FBT001 - a case
    world = Flying()
    world.run(11.5)
    before = world.flying()
    spec = {"for": HERE, "inFlight": {"count": 10}}
    world.policy(spec=spec)
    if revises:
        world.run(11.6)
        world.policy(revision=2, spec=spec | {"patienceSeconds": 60}, earlier=[{"spec": spec}])
    world.run(60)
    assert world.flying() == before
    assert 10 < len(before) < PODS
    for number, uid in enumerate(sorted(before)):
        world.pod(uid, "deleted")
        world.run(60 + number * 0.01 + 0.005)
        assert len(world.flying()) == max(10, len(before) - number - 1)


def test_another_selection_counts_what_went_before() -> None:
    world, clause = Flying(), {"inFlight": {"count": 10}}
    narrow = {"for": HERE | {"namespaces": ["y"]}, **clause}
    spec = {"nodeName": "n", "tolerations": [{"operator": "Exists", "tolerationSeconds": 5}]}
    world.put("held", "pods", "Pod", {"namespace": "y", "name": "other", "uid": "other"}, spec)
    world.policy(spec=narrow)
    world.run(11.5)
    before = world.flying()
    assert 10 < len(before) < PODS
    world.policy(revision=2, spec={"for": HERE, **clause}, earlier=[{"spec": narrow}])
    world.run(60)
    assert world.flying() == before


@pytest.mark.parametrize("seed", range(4))
def test_never_more_in_flight_over_twenty_owners(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    most = chance.randint(1, 5)
    world = Flying(count=most)
    at = 9.0
    for _ in range(300):
        at += chance.random()
        world.run(at)
        assert len(world.flying()) <= most
        if world.flying() and chance.random() < 0.6:
            uid = chance.choice(sorted(world.flying()))
            if chance.random() < 0.5:
                world.pod(uid, "terminating")
            world.pod(uid, "deleted")
        if chance.random() < 0.07:
            world.die()
    assert len(world.gone) == PODS
    assert all(instant_us(one["issuedAt"]) >= instant_us(one["deadline"]) for one in world.evicts["held"])
