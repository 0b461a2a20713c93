"""After a stall nothing begins before Kafka has confirmed that the partition is still this executor's."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import (
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    OffsetMetadataTooLargeError,
    UnknownMemberIdError,
)
from kafka.future import Future

from evictstream.streams.broker.group_commits import UNHEARD_SECONDS, GroupCommits
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.machine_clock import clock_name
from evictstream.streams.member_beats import BEAT_SECONDS, read_beat

PLACE = TopicPartition("commands", 0)


class Coordinator:
    """Takes commits, and answers when the test says so.

    Attributes:
        texts: of the commits so far.
        answers: their futures.
        generation: of the member.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.answers: list[Future] = []
        self.generation = 7
        self.commit = object()

    def group_metadata(self) -> Any:
        return SimpleNamespace(member_id="me", generation_id=self.generation, group_instance_id=None)

    def start(self, what: object, _member: object, place: TopicPartition, _offset: int, text: str) -> Future:
        assert (what, place) == (self.commit, PLACE)
        self.texts.append(text)
        self.answers.append(Future())
        return self.answers[-1]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def commits(coordinator: Coordinator) -> GroupCommits:
    both: Any = coordinator
    return GroupCommits(both, both)


@pytest.fixture
def partition() -> CommandsPartition:
    answered = AnsweredOffsets(5)
    answered.add(7)
    return CommandsPartition(PLACE, reading=1, start=5, answered=answered, end=5, now=0.0)


def test_each_commit_names_its_member_and_counts(
    coordinator: Coordinator, commits: GroupCommits, partition: CommandsPartition
) -> None:
    for turn in range(3):
        commits.send(partition, turn * BEAT_SECONDS)
        commits.send(partition, turn * BEAT_SECONDS + 0.1)
        coordinator.answers[-1].success(None)
    beats = [beat for text in coordinator.texts if (beat := read_beat(text)[1]) is not None]
    assert {(beat.member, beat.clock) for beat in beats} == {("me", clock_name())}
    assert beats[0].number < beats[1].number < beats[2].number <= time.monotonic() * 1_000 + len(beats)
    assert 7 in AnsweredOffsets(5, read_beat(coordinator.texts[-1])[0])


def test_a_commit_without_an_answer_is_waited_for(
    coordinator: Coordinator, commits: GroupCommits, partition: CommandsPartition
) -> None:
    commits.send(partition, 0.0)
    commits.send(partition, 10.0)
    assert len(coordinator.texts) == 1


def test_a_doubt_ends_with_a_commit_that_was_sent_since(
    coordinator: Coordinator, commits: GroupCommits, partition: CommandsPartition
) -> None:
    now = time.monotonic()
    commits.send(partition, now)
    commits.doubt(time.monotonic())
    coordinator.answers[0].success(None)  # it was on its way before the stall
    assert commits.is_in_doubt(now)
    commits.send(partition, time.monotonic())
    coordinator.answers[1].success(None)
    assert not commits.is_in_doubt(now)


@pytest.mark.parametrize(
    ("error", "is_in_doubt"),
    [(UnknownMemberIdError(), True), (IllegalGenerationError(), True), (KafkaConnectionError(), False)],
)
def test_a_refusal_keeps_the_doubt_and_silence_does_not(
    coordinator: Coordinator,
    commits: GroupCommits,
    partition: CommandsPartition,
    error: KafkaError,
    *,
    is_in_doubt: bool,
) -> None:
    """A Kafka that is gone gives the partition to nobody else."""
    now = time.monotonic()
    commits.doubt(now)
    commits.send(partition, now)
    coordinator.answers[0].failure(error)
    assert commits.is_in_doubt(now + UNHEARD_SECONDS)
    assert commits.is_in_doubt(now + UNHEARD_SECONDS + 0.1) is is_in_doubt


def test_a_member_that_was_removed_commits_nothing(
    coordinator: Coordinator, commits: GroupCommits, partition: CommandsPartition
) -> None:
    now = time.monotonic()
    commits.doubt(now)
    coordinator.generation = -1
    commits.send(partition, now)
    assert coordinator.texts == []
    assert commits.is_in_doubt(now + UNHEARD_SECONDS + 0.1)


def test_a_broker_that_takes_short_texts_gets_the_beat(
    coordinator: Coordinator, commits: GroupCommits, partition: CommandsPartition
) -> None:
    commits.send(partition, 0.0)
    coordinator.answers[0].failure(OffsetMetadataTooLargeError())
    commits.send(partition, 1.0)
    metadata, beat = read_beat(coordinator.texts[1])
    assert metadata == ""
    assert beat is not None
