"""Limits before a partition: how fast evictions go, through new owners, and that nothing waits without end."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_us
from tests.streams.partition.test_held import PODS, SPREAD, Braked
from tests.streams.worker.story import NOON_US

HERE = {"clusters": ["held"]}
TWO_A_SECOND = {"for": HERE, "limit": {"evictions": 2}}
ONE_AN_HOUR = {"for": HERE, "limit": {"evictions": 1, "inSeconds": 3_600}}


def limited(**spec: Any) -> Braked:
    """A world that a worker has taken over at its beginning, under one policy."""
    world = Braked()
    world.die()
    world.policy(spec=spec)
    return world


def times(world: Braked, attempts: int = 1_000) -> list[float]:
    """When evictions of the limited cluster were issued, up to an attempt."""
    found = (one for one in world.evicts["held"] if one["attempt"] <= attempts)
    return sorted((instant_us(one["issuedAt"]) - NOON_US) / SECOND_US for one in found)


def test_a_limit_lets_its_cluster_go_at_its_rate() -> None:
    world, plain = limited(**TWO_A_SECOND), Braked()
    for each in (world, plain):
        each.run(29.5)
    assert times(world, attempts=1) == [10 + number / 2 for number in range(PODS)], "the last when arithmetic says"
    assert {one["podUid"] for one in world.evicts["held"]} == {f"held-p{number}" for number in range(PODS)}
    assert world.deadlines() == plain.deadlines()
    assert world.issued("free") == plain.issued("free"), "not later for another cluster"


def test_what_is_due_first_goes_first() -> None:
    world = limited(**TWO_A_SECOND)
    world.run(60)
    due = [one["deadline"] for one in world.evicts["held"] if one["attempt"] == 1]
    assert due == sorted(due)


def test_what_waits_is_held_and_its_decision_says_so() -> None:
    world = limited(**TWO_A_SECOND)
    world.run(20)
    assert world.held() == {("policy/p1", "held"): PODS - 21}
    world.run(60)
    told = [one.get("policy") for one in world.decisions if one["cluster"] == "held" and one["attempt"] == 1]
    assert told.count({"name": "p1", "revision": 1, "clause": "limit"}) == PODS - 1


@pytest.mark.parametrize("seed", range(5))
def test_twenty_new_owners_buy_no_burst(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same each time
    world = limited(limit={"evictions": 1, "burst": 5})
    at = 0.0
    for _ in range(20):
        world.run(at := at + chance.uniform(0, 4))
        world.die()
    world.run(200)
    assert len(times(world, attempts=1)) == PODS
    for (first, since), (last, to) in itertools.combinations(enumerate(times(world)), 2):
        assert last - first + 1 <= to - since + 5 + 1e-6


def test_a_removed_taint_empties_the_line() -> None:
    world = limited(**ONE_AN_HOUR)
    world.run(20)
    assert world.held() == {("policy/p1", "held"): PODS}
    world.taint("held")
    world.run(30)
    assert world.held() == {}
    world.run(7_200)
    assert times(world) == []


@pytest.mark.parametrize("change", [{}, {"spec": {"for": HERE, "settleSeconds": 1}}], ids=["deleted", "changed"])
def test_without_its_limit_what_waits_goes_spread(change: dict[str, Any]) -> None:
    world = limited(**ONE_AN_HOUR)
    world.run(30)
    world.policy(revision=2, earlier=[{"spec": ONE_AN_HOUR}], **change)
    world.run(30 + SPREAD + 1)
    found = times(world, attempts=1)
    assert len(found) == PODS
    assert 30 <= found[0] < 33
    assert 47 < found[-1] <= 50


def test_a_limit_that_stays_spreads_nothing_when_its_policy_changes() -> None:
    world, plain = limited(**TWO_A_SECOND), limited(**TWO_A_SECOND)
    for each in (world, plain):
        each.run(15.25)
    world.policy(revision=2, spec=TWO_A_SECOND | {"settleSeconds": 1}, earlier=[{"spec": TWO_A_SECOND}])
    for each in (world, plain):
        each.run(60)
    assert times(world) == times(plain)


def test_a_brake_holds_what_waits_for_its_turn() -> None:
    world = limited(**TWO_A_SECOND)
    world.run(15.25)
    issued = times(world)
    world.brake(clusters=["held"])
    world.run(40)
    assert times(world) == issued
    world.brake(clusters=["held"], releasedBy="ben", spreadSeconds=0)
    world.run(80)
    assert len(times(world, attempts=1)) == PODS
    later = [at for at in times(world) if at > 20]
    assert all(second - first > 0.499 for first, second in itertools.pairwise(later))


def test_repeated_attempts_take_tokens_too() -> None:
    world = limited(**TWO_A_SECOND)
    world.run(60)
    assert len(times(world)) > len(times(world, attempts=1)), "nothing answers"
    assert all(second - first > 0.499 for first, second in itertools.pairwise(times(world)))


def test_an_empty_line_needs_no_look() -> None:
    world = limited(**TWO_A_SECOND)
    world.run(29.5)
    world.answer("held", "Succeeded")
    world.run(31)
    assert world.held() == {}
    assert (world.logic.next_due_at_us() or 0) > world.now_us + SECOND_US
