"""Who keeps others from acting, as far as the coordinator tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from evictstream.streams.broker.group_requests import GroupMembers
from evictstream.streams.broker.group_watch import GroupWatch

OWN, ACTING, OTHER = "own", "acting", "other"
PLACE = (TopicPartition("commands", 0),)


def watch(own_id: str = OWN) -> GroupWatch:
    consumer: Any = SimpleNamespace(group_metadata=lambda: SimpleNamespace(member_id=own_id))
    requests: Any = None
    return GroupWatch(consumer, requests)


def group(state: str, *members: str, owner: str | None = None) -> GroupMembers:
    return GroupMembers(state, {member: PLACE if member == owner else () for member in members})


@pytest.mark.parametrize(
    ("found", "dead"),
    [
        pytest.param(group("Stable", OWN, ACTING, owner=ACTING), {ACTING}, id="stable"),
        pytest.param(group("PreparingRebalance", OWN, ACTING, OTHER), {ACTING}, id="a group that waits for it"),
        pytest.param(group("CompletingRebalance", OWN, ACTING), set(), id="a group that takes no commits"),
        pytest.param(group("Stable", OWN, OTHER, owner=OTHER), set(), id="gone, and another one has just begun"),
    ],
)
def test_a_silent_member_of_the_group_is_dead(found: GroupMembers, dead: set[str]) -> None:
    assert watch()._dead(ACTING, found) == dead


def test_nobody_takes_itself_for_dead() -> None:
    assert watch(ACTING)._dead(ACTING, group("Stable", ACTING, OTHER, owner=ACTING)) == set()


@pytest.mark.parametrize(
    ("found", "dead"),
    [
        pytest.param(group("Stable", OWN, OTHER, owner=OTHER), {OTHER}, id="one that has it and does not act"),
        pytest.param(group("Stable", OWN, OTHER, owner=OWN), set(), id="this one is about to act"),
        pytest.param(
            group("CompletingRebalance", OWN, OTHER, "more"), {OTHER, "more"}, id="its leader does not assign"
        ),
        pytest.param(group("PreparingRebalance", OWN, OTHER), {OTHER}, id="somebody does not join"),
        pytest.param(group("Stable", OTHER, "more", owner=OTHER), set(), id="this one is not in it"),
        pytest.param(group("Empty"), set(), id="nobody is in it"),
    ],
)
def test_a_group_in_which_nobody_acts_twice(found: GroupMembers, dead: set[str]) -> None:
    looking = watch()
    assert looking._dead("gone", found) == set()
    assert looking._dead("gone", found) == dead
    assert looking._dead("gone later", found) == set()
