"""What follows from commands: pending until the partition has caught up, done when Kafka has the result."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition

from evictstream.models.execution.command_log import CommandLog
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.command_answers import FIRST_ACCEPTED_SECONDS, CommandAnswers
from evictstream.streams.executor.commands_partition import CATCH_UP_SECONDS, CommandsPartition
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.group_commits import GroupCommits
from evictstream.streams.executor.results import ResultWriter
from tests.models.execution import samples
from tests.streams.executor.conftest import command_now
from tests.streams.executor.test_results import FakeProducer

PLACE = TopicPartition("commands", 0)
AN_HOUR = 3_600.0


class Answering:
    """The parts around `CommandAnswers` for one partition, whose cluster begins no eviction."""

    def __init__(self, mode: ExecutorMode = ExecutorMode.DELETE, *, end: int = 0) -> None:
        self.now = time.monotonic()
        self.producer = FakeProducer()
        self.partition = self.reading(1, end=end)
        evictor: Any = SimpleNamespace(mode=mode)
        self.cluster = ClusterExecutor("c1", evictor, rate=1, burst=1, respond=lambda *_: None)
        consumer: Any = None  # nothing is committed here
        self.answers = CommandAnswers(
            cluster=self.cluster,
            command_log=CommandLog(oldest_seconds=AN_HOUR),
            results=ResultWriter(self.producer, "results"),
            commits=GroupCommits(consumer),
            outcomes=deque(),
            notify=lambda *_: None,
        )
        self.answers.partition = self.partition

    def reading(self, number: int, *, end: int = 0) -> CommandsPartition:
        return CommandsPartition(PLACE, reading=number, start=0, answered=AnsweredOffsets(0), end=end, now=self.now)

    def take(self, *commands: Any) -> None:
        for command in commands:
            offset = self.partition.position
            self.partition.note_read(offset)
            self.answers.take(command, self.partition, offset, self.now)

    def results(self) -> list[tuple[str, str]]:
        """Pod and outcome of each result so far."""
        self.answers.send()
        found = [msgspec.json.decode(value) for value in self.producer.values]
        return [(each["pod"], each["outcome"]) for each in found]


def test_a_command_counts_as_done_when_kafka_has_its_result() -> None:
    answering = Answering()
    answering.take(samples.command())  # so old that it is obsolete
    assert answering.results() == [("a", "Obsolete")]
    assert answering.partition.take_commit() == (0, "")
    assert not answering.answers.is_idle()
    answering.producer.sent[0].succeed(None)
    answering.answers.send()
    assert answering.partition.take_commit() == (1, "")
    assert answering.answers.is_idle()


def test_what_was_read_before_a_loss_counts_no_more() -> None:
    """A restored Kafka has other commands at the same offsets."""
    answering = Answering()
    answering.take(samples.command())
    answering.answers.send()
    answering.answers.drop()
    answering.answers.partition = later = answering.reading(2)
    later.note_read(0)
    answering.producer.sent[0].succeed(None)
    answering.answers.send()
    assert later.take_commit() == (0, "")


def test_what_waits_is_dropped_and_done_when_read_again() -> None:
    answering = Answering(end=2)
    answering.take(command_now("a"))
    answering.answers.drop()
    answering.partition = answering.answers.partition = answering.reading(2)
    answering.take(command_now("a"))
    assert len(answering.cluster) == 1
    assert answering.results() == []


def test_a_cancel_ends_an_eviction_that_is_pending() -> None:
    answering = Answering(end=3)
    answering.take(command_now("a"), command_now("b"), command_now("a", Action.CANCEL))
    assert answering.results() == [("a", "Obsolete")]
    assert [each.command.pod for each in answering.partition.take_pending(answering.now)] == ["b"]
    assert len(answering.cluster) == 0


def test_pending_evictions_wait_for_a_limited_time() -> None:
    answering = Answering(end=1_000)
    answering.take(command_now("a"))
    assert answering.partition.take_pending(answering.now + CATCH_UP_SECONDS) == ()
    late = answering.now + CATCH_UP_SECONDS + 1
    assert [each.command.pod for each in answering.partition.take_pending(late)] == ["a"]
    assert answering.partition.take_pending(late) == ()


@pytest.mark.parametrize(("mode", "results"), [(ExecutorMode.DELETE, [("a", "Accepted")]), (ExecutorMode.OBSERVE, [])])
def test_an_eviction_that_waits_is_accepted_but_by_no_observer(
    mode: ExecutorMode, results: list[tuple[str, str]]
) -> None:
    answering = Answering(mode)
    answering.take(command_now("a"))
    answering.answers.sweep(answering.now + FIRST_ACCEPTED_SECONDS - 1)
    assert answering.results() == []
    answering.answers.sweep(answering.now + FIRST_ACCEPTED_SECONDS + 1)
    answering.answers.sweep(answering.now + FIRST_ACCEPTED_SECONDS + 2)
    assert answering.results() == results


def test_an_observer_answers_nothing_but_observed() -> None:
    answering = Answering(ExecutorMode.OBSERVE)
    answering.take(samples.command())  # so old that an executor that acts answers Obsolete
    assert answering.results() == [("a", "Observed")]
