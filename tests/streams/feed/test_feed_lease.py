"""When a feed may write: while nobody can have given its right to another one."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import UnknownMemberIdError
from kafka.future import Future

from evictstream.streams.broker.group_commits import UNHEARD_SECONDS, GroupCommits
from evictstream.streams.feed.feed_lease import LEASE_SECONDS, LEASE_SESSION_SECONDS, FeedLease
from evictstream.streams.member_beats import NO_BEAT_SECONDS, UNSURE_SECONDS, read_beat
from evictstream.streams.settings import Settings


class Group:
    """A coordinator, the feed's consumer in one, and the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.owned = {TopicPartition(Settings().feeds_topic, 0)}
        self.texts: list[str] = []
        self.answers: list[Future] = []
        self.commit = object()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.lease = FeedLease(Settings(), "lab")
        self._commits = GroupCommits(self, self)  # type: ignore[arg-type] # stands for both

    def group_metadata(self) -> Any:
        return SimpleNamespace(member_id="me", generation_id=7, group_instance_id=None)

    def start(self, _what: object, _member: object, _place: TopicPartition, _offset: int, text: str) -> Future:
        self.texts.append(text)
        self.answers.append(Future())
        return self.answers[-1]

    def turn(self) -> bool:
        consumer: Any = SimpleNamespace(assignment=lambda: self.owned, position=lambda *_, **__: 5)
        return self.lease._turn(consumer, self._commits)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


def test_one_that_owns_the_right_says_so_and_writes(group: Group) -> None:
    assert group.turn()
    _, beat = read_beat(group.texts[-1])
    assert (beat and beat.member, group.lease.is_sure) == ("me", True)


def test_one_that_stands_by_says_nothing_and_writes_nothing(group: Group) -> None:
    group.owned = set()
    assert not group.turn()
    assert (group.texts, group.lease.is_sure) == ([], False)


def test_one_that_stood_still_writes_after_its_next_commit(group: Group) -> None:
    """Meanwhile another one may have removed it."""
    group.turn()
    group.answers[-1].success(None)
    group.now += NO_BEAT_SECONDS
    assert not group.lease.is_sure
    group.turn()
    assert not group.lease.is_sure
    group.answers[-1].success(None)
    group.turn()
    assert group.lease.is_sure


def test_one_that_was_removed_meanwhile_writes_nothing(group: Group) -> None:
    group.turn()
    group.answers[-1].success(None)
    group.now += NO_BEAT_SECONDS
    group.turn()
    group.answers[-1].failure(UnknownMemberIdError())
    for _ in range(20):
        group.now += UNSURE_SECONDS / 2
        group.turn()
        assert not group.lease.is_sure


def test_a_kafka_that_answers_nothing_gives_the_right_to_nobody(group: Group) -> None:
    """So the feed writes on, until its lease ends."""
    group.turn()
    group.now += NO_BEAT_SECONDS
    group.turn()
    for _ in range(int(UNHEARD_SECONDS / 0.5) + 1):
        group.now += 0.5
        group.turn()
    assert group.lease.is_sure
    assert UNHEARD_SECONDS < LEASE_SECONDS < LEASE_SESSION_SECONDS


def test_a_thread_that_waits_to_write_ends_with_its_session(group: Group) -> None:
    ended = threading.Event()
    ended.set()
    assert not group.lease.may_write(ended)
    group.turn()
    assert group.lease.may_write(threading.Event())


def test_a_wait_for_a_right_that_nobody_confirms_is_one(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka is gone, and the feed still counts itself as the owner: it must not ask without a pause."""
    group.turn()
    waits: list[float | None] = []
    monkeypatch.setattr(group.lease._changed, "wait", waits.append)
    group.lease.wait_held(0.01)
    assert waits
