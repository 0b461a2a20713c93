"""Who is removed from a group by its peers, and when nobody is: against a coordinator that answers as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors as kafka_errors
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from evictstream.streams.engine.kafka.group_beats import ASSIGN_SECONDS, GroupBeats
from evictstream.streams.member_beats import (
    BEAT_LOOK_SECONDS,
    COME_BACK_SECONDS,
    NO_BEAT_SECONDS,
    Beat,
    read_beat,
    with_beat,
)

TOPIC = "nodes"
MACHINE = "this machine"
PLACES = [(TOPIC, number) for number in range(3)]
JOIN = JoinGroupRequest("g", 0, 0, "", None, "", [])
SYNC = SyncGroupRequest("g", 1, "me", None, [])
FOUND_SECONDS = NO_BEAT_SECONDS + 2 * BEAT_LOOK_SECONDS


class World:
    """A group of "me" and others, a clock, and what the coordinator has been asked."""

    def __init__(self, *owned: int) -> None:
        self.now = 100.0
        self.texts = dict.fromkeys(PLACES, "")
        self.offsets = dict.fromkeys(PLACES, 40)
        self.committed: list[list[int]] = []
        self.removed: list[str] = []
        self.error: type[kafka_errors.KafkaError] | None = None
        self.commit_error: type[kafka_errors.KafkaError] = kafka_errors.NoError
        self.others: dict[int, str] = {}
        self.living: set[str] = set()
        self.state = "Stable"
        self.members: dict[str, int] = {}
        self.rejoins = 0
        self.coordinator = SimpleNamespace(
            coordinator_id=1, group_id="g", member_id="me", generation=1, request_rejoin=self._rejoin
        )
        client = SimpleNamespace(send=self._send)
        self.beats = GroupBeats(client, self.coordinator, PLACES, clock=MACHINE, monotonic=lambda: self.now)
        if owned:
            self.beats.assigned((TOPIC, number) for number in owned)

    def _rejoin(self) -> None:
        self.rejoins += 1

    async def _send(self, _node: int, request: Any, *, group: object) -> Any:
        assert group == "beats"
        if self.error is not None:
            raise self.error
        if isinstance(request, LeaveGroupRequest):
            is_known = request._member_id not in self.removed
            self.removed += [request._member_id] * is_known
            return SimpleNamespace(error_code=0 if is_known else kafka_errors.UnknownMemberIdError.errno)
        if isinstance(request, OffsetFetchRequest):
            assert request._partitions == [(TOPIC, [0, 1, 2])]
            said = [(number, self.offsets[TOPIC, number], self.texts[TOPIC, number], 0) for number in range(3)]
            return SimpleNamespace(topics=[(TOPIC, said)])
        if isinstance(request, DescribeGroupsRequest):
            told = [(name, "", "", b"", _assigned(number)) for name, number in self.members.items()]
            return SimpleNamespace(groups=[(0, "g", self.state, "consumer", "faust", told)])
        assert isinstance(request, OffsetCommitRequest)
        [(_, commits)] = request._topics
        if self.commit_error is kafka_errors.NoError:
            for number, offset, text in commits:
                self.offsets[TOPIC, number], self.texts[TOPIC, number] = offset, text
            self.committed.append([number for number, *_ in commits])
        return SimpleNamespace(topics=[(TOPIC, [(number, self.commit_error.errno) for number, *_ in commits])])

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in which "me" takes its turns and living others beat."""
        for _ in range(int(seconds / BEAT_LOOK_SECONDS)):
            for number, name in self.others.items():
                if name in self.living or not self.texts[TOPIC, number]:
                    self.texts[TOPIC, number] = with_beat("", Beat(name, int(self.now * 1_000)))
            asyncio.run(self.beats.turn())
            self.now += BEAT_LOOK_SECONDS


def _assigned(number: int) -> bytes:
    return bytes(ConsumerProtocolMemberAssignment(0, [(TOPIC, [number])], b"").encode())


def _member(text: str) -> str | None:
    beat = read_beat(text)[1]
    return None if beat is None else beat.member


def with_others(*owned: int, dead: int = 1, living: int = 2) -> World:
    world = World(*owned)
    world.others = {dead: "dead", living: "living"}
    world.living = {"living"}
    return world


def test_a_dead_member_is_removed_once_a_living_one_never() -> None:
    world = with_others(0)
    world.pass_time(1.0)
    assert world.removed == []
    world.pass_time(10.0)
    assert (world.removed, world.rejoins) == (["dead"], 1)


@pytest.mark.parametrize(("silent_seconds", "removed"), [(2.1, ["dead"]), (1.0, [])])
def test_one_that_starts_knows_its_machines_dead(silent_seconds: float, removed: list[str]) -> None:
    world = World()
    world.texts[TOPIC, 1] = with_beat("", Beat("dead", int((world.now - silent_seconds) * 1_000), MACHINE))
    world.pass_time(BEAT_LOOK_SECONDS)
    assert world.removed == removed


def test_a_commit_tells_those_that_start_that_it_lives() -> None:
    """The first one of a partition comes before any beat."""
    world = World(0)
    world.now += 60.0
    starting = World()
    starting.now = world.now
    starting.texts[TOPIC, 0] = world.beats.in_commit({(TOPIC, 0): 5})[TOPIC, 0][1].replace(":me", ":other")
    starting.pass_time(BEAT_LOOK_SECONDS)
    assert starting.removed == []


def test_a_member_without_partitions_watches_too() -> None:
    world = with_others()
    world.pass_time(FOUND_SECONDS)
    assert (world.removed, world.committed) == (["dead"], [])


def test_one_that_waits_to_join_removes_a_dead_one() -> None:
    """It is not one of the generation yet, and the answer to its JoinGroup says all, so it need not join again."""
    world = with_others()
    world.coordinator.generation = -1
    world.pass_time(2 * FOUND_SECONDS)
    assert world.removed == [], "a group that becomes empty waits for others, and this one is not in it"

    async def join(_: object) -> None:
        await asyncio.to_thread(world.pass_time, FOUND_SECONDS)

    asyncio.run(world.beats.noting(JOIN, join))
    assert (world.removed, world.rejoins) == (["dead"], 0)


def _unanswered(world: World) -> None:
    world.error = kafka_errors.RequestTimedOutError


def _without_coordinator(world: World) -> None:
    world.coordinator.coordinator_id = None


def _loading(world: World) -> None:
    world.commit_error = kafka_errors.GroupLoadInProgressError


@pytest.mark.parametrize("fault", [_unanswered, _without_coordinator, _loading])
def test_after_an_outage_members_have_time_to_come_back(fault: Callable[[World], None]) -> None:
    world = with_others(0)
    world.pass_time(1.0)
    fault(world)
    world.pass_time(20.0)
    assert world.removed == []
    world.error, world.commit_error, world.coordinator.coordinator_id = None, kafka_errors.NoError, 1
    world.pass_time(COME_BACK_SECONDS + 1.0)
    assert world.removed == []
    world.pass_time(FOUND_SECONDS)
    assert world.removed == ["dead"]


def test_after_an_outage_a_successor_has_time_to_beat() -> None:
    world = World(0, 1)
    world.pass_time(1.0)
    world.members = {"me": 0, "new": 1}
    world.beats.assigned([(TOPIC, 0)])
    world.pass_time(1.0)
    _unanswered(world)
    world.pass_time(20.0)
    world.error = None
    world.pass_time(COME_BACK_SECONDS + 1.0)
    assert world.removed == []


def test_a_watcher_that_stood_still_removes_nobody() -> None:
    world = with_others(0)
    world.pass_time(1.0)
    world.now += 20.0
    world.pass_time(1.0)
    assert world.removed == []


@pytest.mark.parametrize("refusal", [kafka_errors.RebalanceInProgressError, kafka_errors.IllegalGenerationError])
def test_a_group_that_takes_no_commits_loses_no_member(refusal: type[kafka_errors.KafkaError]) -> None:
    world = with_others(0)
    world.commit_error = refusal
    world.pass_time(10.0)
    assert world.removed == []


def test_one_that_waits_for_its_assignment_removes_nobody() -> None:
    """The coordinator refuses the beats of all until the leader has assigned."""
    world = with_others()

    async def sync(_: object) -> None:
        await asyncio.to_thread(world.pass_time, 10.0)

    asyncio.run(world.beats.noting(SYNC, sync))
    assert world.removed == []


def test_a_leader_that_never_assigns_is_removed() -> None:
    world = with_others()

    async def join(_: object) -> object:
        return SimpleNamespace(leader_id="leader")

    async def sync(_: object) -> None:
        await asyncio.to_thread(world.pass_time, ASSIGN_SECONDS)
        assert world.removed == []
        await asyncio.to_thread(world.pass_time, 1.0)

    asyncio.run(world.beats.noting(JOIN, join))
    asyncio.run(world.beats.noting(SYNC, sync))
    assert world.removed == ["leader"]


def test_a_successor_that_died_before_its_first_beat_is_removed() -> None:
    world = with_others(0)
    world.pass_time(FOUND_SECONDS)
    assert world.removed == ["dead"]
    world.members, world.state = {"me": 0, "unheard": 1, "living": 2}, "PreparingRebalance"
    world.pass_time(10.0)
    assert world.removed == ["dead"], "nobody is asked to follow it yet"
    world.state = "Stable"
    world.pass_time(1.0)
    assert world.removed == ["dead"]
    world.pass_time(1.0)
    assert world.removed == ["dead", "unheard"]


def test_whoever_had_a_partition_watches_for_its_successor() -> None:
    """Nobody is silent: the beat that stands still in the partition is of a living member, which has another one."""
    world = World(0, 1)
    world.pass_time(1.0)
    world.members = {"me": 0, "unheard": 1}
    world.beats.assigned([(TOPIC, 0)])
    world.pass_time(1.5)
    assert world.removed == []
    world.pass_time(1.0)
    assert world.removed == ["unheard"]


def test_a_successor_that_marks_its_partition_stays() -> None:
    world = with_others(0)
    world.pass_time(FOUND_SECONDS)
    world.members = {"me": 0, "new": 1, "living": 2}
    world.pass_time(1.0)
    world.others, world.texts[TOPIC, 1], world.living = {1: "new", 2: "living"}, "", {"new", "living"}
    world.pass_time(10.0)
    assert world.removed == ["dead"]


def test_a_new_owner_marks_each_partition_then_one() -> None:
    """Else the beats of the owners before it would stand still, and they might have no partition any more."""
    world = World(2, 1)
    world.pass_time(2.0)
    assert world.committed[0] == [1, 2]
    assert set(map(tuple, world.committed[1:])) == {(1,)}
    assert {_member(world.texts[TOPIC, number]) for number in (1, 2)} == {"me"}


def test_a_beat_keeps_the_offset_a_commit_the_beat() -> None:
    world = World(0)
    world.pass_time(1.0)
    assert world.offsets[TOPIC, 0] == 40
    commit = world.beats.in_commit({(TOPIC, 0): 50, ("pods", 0): 7})
    assert commit["pods", 0] == (7, "")
    offset, text = commit[TOPIC, 0]
    assert (offset, _member(text)) == (50, "me")
    world.pass_time(1.0)
    assert world.offsets[TOPIC, 0] == 50


def test_a_partition_without_offset_gets_none() -> None:
    """An offset that nobody has reached would stand beside an empty changelog."""
    world = World(0)
    world.offsets[TOPIC, 0] = -1
    world.pass_time(1.0)
    assert world.committed == []
